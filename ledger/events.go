package ledger

import (
	"crypto/sha256"
	"encoding/base32"
	"maps"
	"strings"
	"time"
)

// Audience is whom an event is for.
type Audience string

// The audiences.
const (
	AudienceMerchant Audience = "merchant"
	AudienceCustomer Audience = "customer"
)

// EventKind is what the merchant or the customer is told.
type EventKind string

// The kinds of events.
const (
	EventOrderPaid              EventKind = "order.paid"
	EventOrderPartiallyCanceled EventKind = "order.partially_canceled"
	EventOrderCanceled          EventKind = "order.canceled"
	EventOrderReopened          EventKind = "order.reopened" // a deposit fell back
	EventPaymentFailed          EventKind = "payment.failed"
	EventPaymentSurplus         EventKind = "payment.surplus"   // money for an order already paid
	EventStoreCheck             EventKind = "order.store_check" // the store and the order may not agree
)

// EventKinds lists every kind of event.
func EventKinds() []EventKind {
	return []EventKind{
		EventOrderPaid, EventOrderPartiallyCanceled, EventOrderCanceled, EventOrderReopened, EventPaymentFailed, EventPaymentSurplus,
		EventStoreCheck,
	}
}

// Announcement is one thing to tell, written in the transaction that made it true. Its id follows from the
// fact, so that whoever receives it twice can tell.
type Announcement struct {
	ID         string
	Kind       EventKind
	Audience   Audience
	OrderID    string
	PaymentKey string
	Facts      map[string]any
	At         time.Time
}

// NewAnnouncement makes an announcement about a payment; the reference tells it from others of its kind.
func NewAnnouncement(kind EventKind, to Audience, orderID, paymentKey, reference string, facts map[string]any, at time.Time) Announcement {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(kind), string(to), paymentKey, reference}, "\x00")))
	id := "evt_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
	return Announcement{ID: id, Kind: kind, Audience: to, OrderID: orderID, PaymentKey: paymentKey, Facts: facts, At: at}
}

// tell works out who must hear of the effects, in the order in which they happened. What becomes of a surplus
// payment's money later is no event of the order, which another payment holds. Nobody paid with a key that the gateway
// has never heard of, so its end is told to nobody.
func (e *effects) tell(o Observation) {
	p := e.after
	if r := e.decision.Reversed; r != nil && !p.Surplus {
		e.announce(EventOrderReopened, AudienceMerchant, captureReference(p.Key, r.Number), r.Amount, r.ReversedAt, nil)
	}
	if c := e.decision.Capture; c != nil {
		kind := EventOrderPaid
		if p.Surplus {
			kind = EventPaymentSurplus
		}
		e.announce(kind, AudienceMerchant, captureReference(p.Key, c.Number), c.Amount, c.CapturedAt, nil)
	}
	if !p.Surplus {
		e.tellCancels()
	}
	if p.Status == StatusFailed && e.before.Status != StatusFailed && !o.Stranger {
		e.announce(EventPaymentFailed, AudienceMerchant, "failed", p.Amount, p.UpdatedAt, map[string]any{"code": p.Reason})
	}
}

// tellCancels tells the merchant of every new cancel, and the customer, when the order names one, of those that give
// money back. A void that the gateway knows under several keys is told once.
func (e *effects) tellCancels() {
	left := e.after.Captured()
	voided := e.before.Status == StatusCanceled
	for _, c := range e.after.Cancels {
		left.Minor -= c.Amount.Minor
		void := !c.Amount.Positive()
		if !e.isNew(c) || (void && voided) {
			continue
		}
		voided = voided || void
		kind := EventOrderPartiallyCanceled
		if left.IsZero() {
			kind = EventOrderCanceled
		}
		extra := map[string]any{"transaction_key": c.TransactionKey, "balance": left.Decimal()}
		e.announce(kind, AudienceMerchant, c.TransactionKey, c.Amount, c.CanceledAt, extra)
		if !void && e.order.CustomerID != "" {
			e.announce(kind, AudienceCustomer, c.TransactionKey, c.Amount, c.CanceledAt, extra)
		}
	}
}

func (e *effects) isNew(c Cancel) bool { return !e.before.HasCancel(c.TransactionKey) }

func (e *effects) announce(kind EventKind, to Audience, reference string, amount Money, at time.Time, extra map[string]any) {
	facts := map[string]any{
		"order_id": e.after.OrderID, "payment_key": e.after.Key, "amount": amount.Decimal(),
		"currency": amount.Currency, "occurred_at": at.UTC(),
	}
	maps.Copy(facts, extra)
	if to == AudienceCustomer {
		delete(facts, "payment_key")
		facts["customer_id"] = e.order.CustomerID
	}
	e.announcements = append(e.announcements, NewAnnouncement(kind, to, e.after.OrderID, e.after.Key, reference, facts, at))
}
