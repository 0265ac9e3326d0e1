package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
)

// ErrNotFound reports a payment key, order or customer that is not in our books.
var ErrNotFound = errors.New("not in the books")

// Notifier hands announcements to whoever delivers them, inside the transaction that makes them true: it adds to the
// batch that is written then.
type Notifier interface {
	Notify(ctx context.Context, b *pgx.Batch, announcements []Announcement) error
}

// Config is what a Ledger needs.
type Config struct {
	Notify  Notifier
	Metrics *Metrics
	Now     func() time.Time

	// MerchantID is what the gateway must say of every payment; "" = not checked.
	MerchantID string
}

func (c Config) validate() error {
	switch {
	case c.Notify == nil:
		return errors.New("ledger: Notify is required")
	case c.Metrics == nil:
		return errors.New("ledger: Metrics is required")
	case c.Now == nil:
		return errors.New("ledger: Now is required")
	}
	return nil
}

// Ledger writes the books. It holds no connection: every writer takes the caller's transaction and never
// commits it.
type Ledger struct {
	notify     Notifier
	metrics    *Metrics
	now        func() time.Time
	merchantID string
}

// New makes a Ledger.
func New(cfg Config) (*Ledger, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Ledger{notify: cfg.Notify, metrics: cfg.Metrics, now: cfg.Now, merchantID: cfg.MerchantID}, nil
}

// Outcome says what an observation did to the books. None of them is an error.
type Outcome string

// The outcomes of Record.
const (
	OutcomeApplied   Outcome = "applied"   // status or money changed
	OutcomeUnchanged Outcome = "unchanged" // the books already say so, or the evidence is older or weaker
	OutcomePending   Outcome = "pending"   // unchanged so far: the gateway is still working on it
	OutcomeConflict  Outcome = "conflict"  // the gateway contradicts the books: a mismatch is open, nothing else changed
)

// Outcomes lists every outcome.
func Outcomes() []Outcome {
	return []Outcome{OutcomeApplied, OutcomeUnchanged, OutcomePending, OutcomeConflict}
}

// Recorded is what Record did. Replies are made from After, never from the gateway's answer.
type Recorded struct {
	Outcome Outcome
	Before  Payment
	After   Payment
	Order   Order
	Applied []Cancel // cancels that this call added
	Open    []ObservedCancel
	Detail  string // of a conflict

	// Elsewhere are transactions of the observation that the books hold for another payment.
	Elsewhere []string
}

// Record is the only way an observation changes a payment: it locks the order and the payment, reads them
// again, decides, writes everything the decision means in the caller's transaction, and closes the work that
// it settles. Two round trips: lock and read, write and announce.
//
// A payment key never seen is put in the books when the observation names an order of ours; otherwise
// ErrNotFound. The same observation any number of times, in any order with others, ends in the same books.
func (l *Ledger) Record(ctx context.Context, tx pgx.Tx, o Observation) (Recorded, error) {
	b, recorded, err := l.record(ctx, tx, o, time.Time{})
	if err != nil {
		return Recorded{}, err
	}
	return recorded, l.send(ctx, tx, b, o, recorded)
}

// RecordLast is Record for a transaction that does nothing after it: what is written is sent with COMMIT, one round trip
// in all. What accompany adds to the batch, a row of the caller's own, is written with the observation. It sees what was
// recorded and must not read.
func (l *Ledger) RecordLast(
	ctx context.Context, tx pgx.Tx, o Observation, accompany func(b *pgx.Batch, recorded Recorded),
) (Recorded, error) {
	b, recorded, err := l.record(ctx, tx, o, time.Time{})
	if err != nil {
		return Recorded{}, err
	}
	accompany(b, recorded)
	return recorded, postgres.WithCommit(tx, b, func() { l.metrics.recorded(o.Channel, recorded) })
}

// record locks, reads and decides, and returns what is to be written. Of an import nothing is announced that happened
// before openingAt.
func (l *Ledger) record(ctx context.Context, tx pgx.Tx, o Observation, openingAt time.Time) (*pgx.Batch, Recorded, error) {
	now := l.now()
	keys := o.transactionKeys()
	row, err := lock(ctx, tx, o.PaymentKey, keys...)
	if errors.Is(err, ErrNotFound) {
		row, err = l.adopt(ctx, tx, o, now)
	}
	if err != nil {
		return nil, Recorded{}, fmt.Errorf("record %s of payment %s: %w", o.Evidence, o.PaymentKey, err)
	}
	before := row.payment()
	before.MerchantID = cmp.Or(before.MerchantID, l.merchantID)
	o, twice := o.withoutElsewhere(row.Elsewhere)
	decision := Decide(before, o)
	decision.Findings = append(twice, decision.Findings...)
	e := workOut(before, row.order(), row.holder(), o, decision, now)
	e.hush(openingAt, now)
	recorded := Recorded{
		Outcome: e.outcome(), Before: before, After: e.after, Order: e.order, Applied: e.cancels, Open: decision.Open,
	}
	for _, f := range twice {
		recorded.Elsewhere = append(recorded.Elsewhere, f.TransactionKey)
	}
	if decision.Conflict() && len(e.findings) > 0 {
		recorded.Detail = e.findings[len(e.findings)-1].Detail
	}
	b := e.batch(o, now)
	if len(e.announcements) > 0 {
		if err := l.notify.Notify(ctx, b, e.announcements); err != nil {
			return nil, Recorded{}, fmt.Errorf("announce what was recorded of payment %s: %w", o.PaymentKey, err)
		}
	}
	return b, recorded, nil
}

// send writes what was decided, in one round trip.
func (l *Ledger) send(ctx context.Context, tx pgx.Tx, b *pgx.Batch, o Observation, recorded Recorded) error {
	if b.Len() > 0 {
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return fmt.Errorf("record %s of payment %s: %w", o.Evidence, o.PaymentKey, err)
		}
	}
	l.metrics.recorded(o.Channel, recorded)
	return nil
}

func (e *effects) outcome() Outcome {
	switch {
	case e.decision.Conflict():
		return OutcomeConflict
	case e.decision.Changed():
		return OutcomeApplied
	case len(e.decision.Open) > 0 || e.after.doubted() || e.after.Status.Undecided():
		return OutcomePending
	}
	return OutcomeUnchanged
}

// lock takes the order's row first and the payment's second, then reads both. A payment that is put in the books between
// the two was read without a lock; now that it is there, it is locked.
func lock(ctx context.Context, tx pgx.Tx, paymentKey string, keys ...string) (paymentRow, error) {
	row, locked, err := lockAndRead(ctx, tx, paymentKey, keys)
	if err == nil && !locked {
		row, locked, err = lockAndRead(ctx, tx, paymentKey, keys)
	}
	if err == nil && !locked {
		err = errors.New("lock: the payment is there and cannot be locked")
	}
	return row, err
}

// lockAndRead locks in one statement, by one snapshot, so that it has both rows or none; and reads in a statement of its
// own: a statement that waited for a lock still sees the rows around it as they were before. In the same round trip it asks
// which of the transaction keys belong to another payment.
func lockAndRead(ctx context.Context, tx pgx.Tx, paymentKey string, keys []string) (row paymentRow, locked bool, err error) {
	b := &pgx.Batch{}
	args := postgres.Args{"payment_key": paymentKey}
	b.Queue(`
		SELECT o.order_id
		FROM payments p
		JOIN orders o ON o.order_id = p.order_id
		WHERE p.payment_key = @payment_key
		FOR UPDATE OF o, p`, args)
	b.Queue(paymentColumns, args)
	queueElsewhere(b, paymentKey, keys)
	results := tx.SendBatch(ctx, b)
	defer func() { _ = results.Close() }() // its error is that of the statements below
	tag, err := results.Exec()
	if err != nil {
		return row, false, fmt.Errorf("lock: %w", err)
	}
	rows, err := results.Query()
	if err != nil {
		return row, false, fmt.Errorf("read: %w", err)
	}
	if row, err = collectPayment(rows); err != nil {
		return row, false, err
	}
	if rows, err = results.Query(); err != nil {
		return row, false, fmt.Errorf("read: %w", err)
	}
	if row.Elsewhere, err = pgx.CollectRows(rows, pgx.RowToStructByName[elsewhere]); err != nil {
		return row, false, fmt.Errorf("read: %w", err)
	}
	return row, tag.RowsAffected() == 1, results.Close()
}

func collectPayment(rows pgx.Rows) (paymentRow, error) {
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[paymentRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return paymentRow{}, ErrNotFound
	}
	return row, err
}

// adopt puts a payment key in the books that the gateway named for an order of ours: a listed payment whose
// confirm never reached us, or an answer by order id that is about another key than asked. Notices parked for
// the key become claims against it.
func (l *Ledger) adopt(ctx context.Context, tx pgx.Tx, o Observation, now time.Time) (paymentRow, error) {
	if !o.Evidence.HasObject() {
		return paymentRow{}, ErrNotFound
	}
	order, err := lockOrder(ctx, tx, o.OrderID)
	if err != nil {
		return paymentRow{}, err
	}
	b := &pgx.Batch{}
	b.Queue(`
		INSERT INTO payments (payment_key, order_id, merchant_id, status, currency, amount, created_at, updated_at)
		VALUES (@payment_key, @order_id, @merchant_id, 'ready', @currency, @amount, @now, @now)
		ON CONFLICT (payment_key) DO NOTHING`,
		postgres.Args{
			"payment_key": o.PaymentKey, "order_id": order.ID, "merchant_id": l.merchantID, "currency": order.Amount.Currency,
			"amount": order.Amount.Minor, "now": now,
		})
	queueAdoption(b, Payment{Key: o.PaymentKey, OrderID: order.ID, Amount: order.Amount}, now)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return paymentRow{}, fmt.Errorf("adopt: %w", err)
	}
	return lock(ctx, tx, o.PaymentKey, o.transactionKeys()...)
}
