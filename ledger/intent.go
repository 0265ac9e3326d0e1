package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Reasons why an intent to confirm is turned down. Nothing was written and nothing may be sent.
var (
	// ErrAmountDiffers: the caller's amount is not the order's.
	ErrAmountDiffers = errors.New("the amount is not the order's")
	// ErrOrderExpired: the order's time is over.
	ErrOrderExpired = errors.New("the order has expired")
	// ErrOrderTaken: another payment holds the order.
	ErrOrderTaken = errors.New("another payment holds the order")
	// ErrOtherOrder: the payment key belongs to another order.
	ErrOtherOrder = errors.New("the payment key belongs to another order")
)

// ConfirmBudget is past the longest time from the beginning of an intent to the end of its call: ten seconds to commit,
// thirty-one for the call with its second attempt, and what a busy machine adds. Until then the call's own caller may
// be waiting for the answer, so nobody asks and nobody sends the same call again; after it only a crash or a lost
// answer is left. Cancels of ours have the same.
const ConfirmBudget = 55 * time.Second

// Intent is the wish to confirm a payment.
type Intent struct {
	PaymentKey string
	OrderID    string
	Amount     Money
	MerchantID string // "" when not checked
}

// Intended is what an intent met. With Started the caller owns the attempt and must send and Record it;
// otherwise Payment is how the books already stand, and nothing was written.
type Intended struct {
	Started bool
	Payment Payment
	Order   Order
	Holder  string // with ErrOrderTaken: the payment that holds the order
}

// Intend writes that we are about to confirm (I5): the caller commits it before it sends anything. One attempt
// owns the row: the status and the attempt number are compared and set under the order's lock, and work is
// opened in the same transaction so that a crash at any later point leaves a payment that somebody asks about.
// Three round trips.
func (l *Ledger) Intend(ctx context.Context, tx pgx.Tx, in Intent) (Intended, error) {
	now := l.now()
	order, err := lockOrder(ctx, tx, in.OrderID)
	if err != nil {
		return Intended{}, fmt.Errorf("intend payment %s: %w", in.PaymentKey, err)
	}
	row, err := lock(ctx, tx, in.PaymentKey)
	fresh := errors.Is(err, ErrNotFound)
	if err != nil && !fresh {
		return Intended{}, fmt.Errorf("intend payment %s: %w", in.PaymentKey, err)
	}
	payment := row.payment()
	if fresh {
		payment = Payment{
			Key: in.PaymentKey, OrderID: order.ID, MerchantID: in.MerchantID, Status: StatusReady,
			Amount: order.Amount, Generation: 1,
		}
	}
	intended := Intended{Payment: payment, Order: order}
	switch {
	case payment.OrderID != order.ID:
		return intended, ErrOtherOrder
	case in.Amount != order.Amount:
		return intended, ErrAmountDiffers
	case transitions[payment.Status][EventIntended].verdict != goes:
		return intended, nil
	case order.Status == OrderExpired || (order.Status == OrderPending && !now.Before(order.ExpiresAt)):
		return intended, ErrOrderExpired
	}
	if intended.Holder, err = holderOf(ctx, tx, order.ID, payment.Key); err != nil || intended.Holder != "" {
		return intended, errors.Join(err, takenBy(intended.Holder))
	}
	intended.Started = true
	intended.Payment = payment.intended(now)
	return intended, writeIntent(ctx, tx, intended.Payment, now)
}

func takenBy(holder string) error {
	if holder == "" {
		return nil
	}
	return ErrOrderTaken
}

// intended is the payment with a new attempt. A payment that was turned away before gets a new idempotency
// key: the gateway binds the old key to its refusal.
func (p Payment) intended(now time.Time) Payment {
	if p.Attempt > 0 {
		p.Generation++
		p.KeyFirstUsedAt = time.Time{}
	}
	if p.KeyFirstUsedAt.IsZero() {
		p.KeyFirstUsedAt = now
	}
	p.Status, p.Attempt, p.Reason, p.Surplus = StatusConfirming, p.Attempt+1, "", false
	p.IntendedAt, p.UndecidedSince, p.UpdatedAt = now, now, now
	return p
}

// confirmKey is the gateway idempotency key of a confirm: payment + generation.
func confirmKey(paymentKey string, generation int) string {
	return fmt.Sprintf("confirm-%s-%d", paymentKey, generation)
}

// ErrLostRace reports that another attempt took the row first.
var ErrLostRace = errors.New("another attempt took the payment first")

func writeIntent(ctx context.Context, tx pgx.Tx, p Payment, now time.Time) error {
	b := &pgx.Batch{}
	b.Queue(`
		INSERT INTO payments AS p (payment_key, order_id, merchant_id, status, currency, amount, attempt, generation,
			key_first_used_at, intended_at, undecided_since, created_at, updated_at)
		VALUES (@payment_key, @order_id, @merchant_id, 'confirming', @currency, @amount, @attempt, @generation,
			@key_first_used_at, @now, @now, @now, @now)
		ON CONFLICT (payment_key) DO UPDATE
		SET status = 'confirming', attempt = excluded.attempt, generation = excluded.generation, reason = '',
			surplus = false, key_first_used_at = excluded.key_first_used_at, intended_at = @now, undecided_since = @now, updated_at = @now
		WHERE p.status = 'ready' AND p.attempt = excluded.attempt - 1 AND p.order_id = excluded.order_id`,
		pgx.StrictNamedArgs{
			"payment_key": p.Key, "order_id": p.OrderID, "merchant_id": p.MerchantID, "currency": p.Amount.Currency,
			"amount": p.Amount.Minor, "attempt": p.Attempt, "generation": p.Generation,
			"key_first_used_at": p.KeyFirstUsedAt, "now": now,
		}).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != 1 {
			return ErrLostRace
		}
		return nil
	})
	QueueWork(b, Work{
		Kind: WorkConfirmUnknown, PaymentKey: p.Key, OrderID: p.OrderID, AtRisk: p.Amount,
		DueAt: now.Add(ConfirmBudget), Deadline: now.Add(UndecidedAgeMax),
	}, now)
	queueAdoption(b, p, now)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("intend payment %s: %w", p.Key, err)
	}
	return nil
}

// queueAdoption turns what was parked for a key never seen into a claim against the payment that now exists. Where
// a later notice has already made the same claim, the parked row stays and is settled with it.
func queueAdoption(b *pgx.Batch, p Payment, now time.Time) {
	b.Queue(`
		UPDATE work w
		SET kind = 'cancel_claimed', order_id = @order_id, currency = @currency, due_at = LEAST(w.deadline, @due_at)
		WHERE w.payment_key = @payment_key AND w.kind = 'parked' AND w.closed_at IS NULL
			AND (w.transaction_key IS NOT NULL OR NOT EXISTS (
				SELECT 1 FROM work c
				WHERE c.payment_key = w.payment_key AND c.subject = 'cancel_claimed' AND c.closed_at IS NULL))`,
		pgx.StrictNamedArgs{
			"payment_key": p.Key, "order_id": p.OrderID, "currency": p.Amount.Currency, "due_at": now.Add(ConfirmBudget),
		})
}
