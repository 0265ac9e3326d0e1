package reconcile

import (
	"slices"

	"daesa/ledger"
)

// acceptance is one difference about a transaction that a person accepted: of this kind, with this much money at risk and
// this much in our books, in these words. It covers that difference and no other; what becomes wrong with the same
// transaction later, on either side, is looked at anew.
type acceptance struct {
	Kind           ledger.Kind     `json:"kind"`
	Currency       ledger.Currency `json:"currency"`
	Minor          int64           `json:"minor"`
	Detail         string          `json:"detail"`
	Booked         string          `json:"booked"` // as the evidence of our books writes it; empty where there is none
	BookedCurrency ledger.Currency `json:"booked_currency"`
}

// acceptedAs reads acceptances from the mismatches m.
const acceptedAs = `jsonb_agg(jsonb_build_object('kind', m.kind, 'currency', m.currency, 'minor', m.amount, 'detail', m.detail,
	'booked', COALESCE(m.books ->> 'amount', ''), 'booked_currency', COALESCE(m.books ->> 'currency', '')))`

// of reports whether it is of this kind and this money at risk.
func (a acceptance) of(kind ledger.Kind, atRisk ledger.Money) bool {
	return a.Kind == kind && a.Currency == atRisk.Currency && a.Minor == atRisk.Minor
}

// accepts reports whether a person accepted just this difference, of which one side's money says everything.
func (f fact) accepts(kind ledger.Kind, atRisk ledger.Money) bool {
	return slices.ContainsFunc(f.Accepted, func(a acceptance) bool { return a.of(kind, atRisk) })
}

// acceptedWords reports whether a person accepted just this difference between both sides, said just so: by the list or by
// an answer, which use the same words of a cancel.
func acceptedWords(all []acceptance, kind ledger.Kind, atRisk ledger.Money, detail string) bool {
	return slices.ContainsFunc(all, func(a acceptance) bool { return a.of(kind, atRisk) && a.Detail == detail })
}

// acceptsMoney reports whether a person accepted that this listed capture is of other money in our books, or not in them.
// An answer says the same of it in other words; the money in our books is in the evidence of both.
func (r takenRow) acceptsMoney() bool {
	kind := ledger.KindAmountDiffers
	switch {
	case r.Booked == nil:
		kind = ledger.KindPaymentWithoutOrder
	case *r.BookedCurrency != r.Currency:
		kind = ledger.KindCurrencyDiffers
	}
	return slices.ContainsFunc(r.Acceptances, func(a acceptance) bool {
		return a.of(kind, r.money()) && (r.Booked == nil || a.covers(ledger.Money{Minor: *r.Booked, Currency: *r.BookedCurrency}))
	})
}

// covers reports whether what was accepted had this money in our books. What was not kept of it long ago, covers any.
func (a acceptance) covers(booked ledger.Money) bool {
	return (a.Booked == "" || a.Booked == booked.Decimal()) && (a.BookedCurrency == "" || a.BookedCurrency == booked.Currency)
}
