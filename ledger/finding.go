package ledger

import (
	"cmp"
	"strings"
)

// Kind is what is wrong between the gateway's books and ours.
type Kind string

// The kinds of mismatch, in both directions.
const (
	KindCancelMissingHere   Kind = "cancel_missing_here"  // canceled at the gateway, not in our books
	KindCancelMissingThere  Kind = "cancel_missing_there" // canceled here, not in the gateway's list
	KindAmountDiffers       Kind = "amount_differs"
	KindCurrencyDiffers     Kind = "currency_differs"
	KindOrderDiffers        Kind = "order_differs"
	KindMerchantDiffers     Kind = "merchant_differs"
	KindPaymentWithoutOrder Kind = "payment_without_order"
	KindOrderWithoutPayment Kind = "order_without_payment" // paid here, no capture at the gateway
	KindPaidTwice           Kind = "order_paid_twice"
	KindPaidAfterExpiry     Kind = "paid_after_expiry"
	KindStaleUnknown        Kind = "stale_unknown"
	KindCreditsSpent        Kind = "credits_already_spent"
	KindHistoryChanged      Kind = "history_changed"
	KindQuarantined         Kind = "quarantined" // money that cannot be read exactly
	KindUnrecognized        Kind = "unrecognized_status"
	KindSignedDayChanged    Kind = "signed_day_changed" // a business day says something else than what a person signed
	KindJournalDiffers      Kind = "journal_differs"    // a row of our books and its transaction in the journal differ
)

// Kinds lists every kind.
func Kinds() []Kind {
	return []Kind{
		KindCancelMissingHere, KindCancelMissingThere, KindAmountDiffers, KindCurrencyDiffers, KindOrderDiffers,
		KindMerchantDiffers, KindPaymentWithoutOrder, KindOrderWithoutPayment, KindPaidTwice, KindPaidAfterExpiry,
		KindStaleUnknown, KindCreditsSpent, KindHistoryChanged, KindQuarantined, KindUnrecognized,
		KindSignedDayChanged, KindJournalDiffers,
	}
}

// Finding is one contradiction. Its fingerprint is stable: the same contradiction found again is the same
// mismatch.
type Finding struct {
	Kind           Kind
	PaymentKey     string
	OrderID        string
	TransactionKey string
	Subject        string // what tells it apart where the transaction key does not; "" = that key does
	AtRisk         Money
	Detail         string
	Gateway        map[string]any // evidence of the gateway's side
	Books          map[string]any // evidence of ours
}

// Fingerprint identifies the contradiction across runs and channels.
func (f Finding) Fingerprint() string {
	return strings.Join([]string{string(f.Kind), f.PaymentKey, f.OrderID, cmp.Or(f.Subject, f.TransactionKey)}, "|")
}

// summary is the evidence of the gateway's side, without personal data.
func (o Observation) summary() map[string]any {
	cancels := make([]map[string]any, 0, len(o.Cancels))
	for _, c := range o.Cancels {
		cancels = append(cancels, map[string]any{
			"transaction_key": c.TransactionKey, "amount": c.Amount.Decimal(), "state": c.State,
		})
	}
	return map[string]any{
		"payment_key": o.PaymentKey, "order_id": o.OrderID, "merchant_id": o.MerchantID, "word": o.Word,
		"total": o.Total.Decimal(), "balance": o.Balance.Decimal(), "currency": o.Total.Currency,
		"last_transaction_key": o.LastTransactionKey, "asked_at": o.AskedAt.UTC(), "channel": o.Channel, "cancels": cancels,
	}
}

// summary is the evidence of our side.
func (p Payment) summary() map[string]any {
	return map[string]any{
		"status": p.Status, "amount": p.Amount.Decimal(), "captured": p.Captured().Decimal(),
		"canceled": p.Canceled().Decimal(), "currency": p.Amount.Currency, "order_id": p.OrderID, "attempt": p.Attempt,
	}
}
