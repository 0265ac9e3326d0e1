package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// What an import can meet. Nothing is written then.
var (
	// ErrNotBefore reports a payment that began after the books were opened: it is not of the system before us.
	ErrNotBefore = errors.New("the payment did not begin before the books were opened")
	// ErrNothingTaken reports a payment that the gateway shows without money, paid or still to come.
	ErrNothingTaken = errors.New("the gateway shows no money for the payment, and none to come")
	// ErrContradicts reports evidence that the books would not take.
	ErrContradicts = errors.New("the gateway contradicts what is to be imported")
)

// Import is a payment of the system before us, with the order that our books lack.
type Import struct {
	Order     Order // its terms; CreatedAt and ExpiresAt follow from the evidence when they are zero
	Seen      Observation
	OpeningAt time.Time
}

// Began reports whether the gateway shows that the payment began before an instant: its money was taken, or at least
// its window was opened. A time that the gateway did not tell proves nothing.
func (o Observation) Began(before time.Time) bool {
	early := func(t time.Time) bool { return !t.IsZero() && t.Before(before) }
	return early(o.CapturedAt) || early(o.RequestedAt)
}

// check reports why the payment cannot be imported, whatever the books hold.
func (in Import) check(merchantID string) error {
	switch {
	case !slices.Contains([]Evidence{EvidenceCaptured, EvidenceVoided, EvidenceWaiting}, in.Seen.Evidence):
		return fmt.Errorf("%s: %w", in.Seen.Word, ErrNothingTaken)
	case !in.Seen.Began(in.OpeningAt):
		return ErrNotBefore
	}
	blank := Payment{Key: in.Seen.PaymentKey, OrderID: in.Order.ID, MerchantID: merchantID, Status: StatusReady, Amount: in.Order.Amount}
	if d := Decide(blank, in.Seen); d.Conflict() {
		return fmt.Errorf("%s: %w", d.Findings[len(d.Findings)-1].Detail, ErrContradicts)
	}
	return nil
}

// order is the order to write: its times are those of the payment where nobody told others.
func (in Import) order() Order {
	o := in.Order
	if o.CreatedAt.IsZero() {
		o.CreatedAt = in.Seen.RequestedAt
	}
	if o.CreatedAt.IsZero() || (!in.Seen.CapturedAt.IsZero() && in.Seen.CapturedAt.Before(o.CreatedAt)) {
		o.CreatedAt = in.Seen.CapturedAt
	}
	if o.ExpiresAt.IsZero() {
		o.ExpiresAt = in.Seen.DueAt
	}
	if o.ExpiresAt.Before(o.CreatedAt) {
		o.ExpiresAt = o.CreatedAt
	}
	return o
}

// CanImport reports what Import would meet, without writing. A row that appears meanwhile can still change that.
func (l *Ledger) CanImport(ctx context.Context, db Querier, in Import) error {
	if err := in.check(l.merchantID); err != nil {
		return err
	}
	known, err := LoadOrder(ctx, db, in.Order.ID)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !sameTerms(known, in.Order) {
		return fmt.Errorf("order %s: %w", known.ID, ErrOrderDiffers)
	}
	holder, err := holderOf(ctx, db, in.Order.ID, in.Seen.PaymentKey)
	if err == nil && holder != "" {
		err = fmt.Errorf("order %s: %w", known.ID, ErrOrderTaken)
	}
	return err
}

// Import puts a payment that began before the books were opened into them: the order, the payment, its captures and
// cancels, and the journal of all of it, as the gateway shows them. What happened before the opening is announced to
// nobody, and no credits are granted but those of the order that the caller names. Again is fine: then nothing changes.
func (l *Ledger) Import(ctx context.Context, tx pgx.Tx, in Import) (Recorded, error) {
	if err := in.check(l.merchantID); err != nil {
		return Recorded{}, fmt.Errorf("import payment %s: %w", in.Seen.PaymentKey, err)
	}
	order := in.order()
	if _, err := tx.Exec(ctx, `
		INSERT INTO orders (order_id, status, currency, amount, customer_id, name, credits, created_at, expires_at)
		VALUES (@order_id, 'pending', @currency, @amount, NULLIF(@customer_id, ''), @name, @credits, @created_at, @expires_at)
		ON CONFLICT (order_id) DO NOTHING`,
		pgx.StrictNamedArgs{
			"order_id": order.ID, "currency": order.Amount.Currency, "amount": order.Amount.Minor, "customer_id": order.CustomerID,
			"name": order.Name, "credits": order.Credits, "created_at": order.CreatedAt, "expires_at": order.ExpiresAt,
		}); err != nil {
		return Recorded{}, fmt.Errorf("import order %s: %w", order.ID, err)
	}
	known, err := lockOrder(ctx, tx, order.ID)
	if err != nil {
		return Recorded{}, fmt.Errorf("import payment %s: %w", in.Seen.PaymentKey, err)
	}
	if !sameTerms(known, order) {
		return Recorded{}, fmt.Errorf("import payment %s of order %s: %w", in.Seen.PaymentKey, order.ID, ErrOrderDiffers)
	}
	if holder, err := holderOf(ctx, tx, order.ID, in.Seen.PaymentKey); err != nil || holder != "" {
		return Recorded{}, errors.Join(err, fmt.Errorf("import payment %s of order %s: %w", in.Seen.PaymentKey, order.ID, ErrOrderTaken))
	}
	b, recorded, err := l.record(ctx, tx, in.Seen, in.OpeningAt)
	if err == nil {
		err = l.send(ctx, tx, b, in.Seen, recorded)
	}
	if err == nil && recorded.Outcome == OutcomeConflict {
		err = fmt.Errorf("import payment %s: %s: %w", in.Seen.PaymentKey, recorded.Detail, ErrContradicts)
	}
	return recorded, err
}

// sameTerms reports whether an order is the one that is meant.
func sameTerms(known, meant Order) bool {
	return known.Amount == meant.Amount && known.CustomerID == meant.CustomerID && known.Credits == meant.Credits && known.Name == meant.Name
}

// hush takes out what happened before the books were opened: nobody is told of it, and a deposit that has stood for so
// long does not fall back any more.
func (e *effects) hush(openingAt, now time.Time) {
	if openingAt.IsZero() {
		return
	}
	e.announcements = slices.DeleteFunc(e.announcements, func(a Announcement) bool { return a.At.Before(openingAt) })
	e.settled = e.decision.Capture != nil && now.Sub(e.decision.Capture.CapturedAt) > watchFor
}
