package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// What people are shown with a mismatch about one transaction: what either book has of it, and nothing of a book that has
// nothing.

// shownEvidence is what the gateway shows of a transaction, under its own word.
func shownEvidence(transactionKey, word string, amount ledger.Money, at time.Time) map[string]any {
	e := namedEvidence(transactionKey, amount, at)
	e["word"] = word
	return e
}

// bookedEvidence is what our books have of one, and the channel by which they came to know of it.
func bookedEvidence(transactionKey string, amount ledger.Money, at time.Time, channel ledger.Channel) map[string]any {
	e := namedEvidence(transactionKey, amount, at)
	e["channel"] = channel
	return e
}

// namedEvidence is what either has. The key is empty where the gateway has not named the transaction.
func namedEvidence(transactionKey string, amount ledger.Money, at time.Time) map[string]any {
	e := side{Present: true, Amount: amount, At: at}.evidence()
	if transactionKey != "" {
		e["transaction_key"] = transactionKey
	}
	return e
}

func (s side) evidence() map[string]any {
	if !s.Present {
		return map[string]any{"present": false}
	}
	return map[string]any{
		"present": true, "amount": s.Amount.Decimal(), "currency": s.Amount.Currency, "at": s.At.UTC(),
	}
}

// shownEvidence is what the list has of the cancel, or had of it.
func (f fact) shownEvidence() map[string]any {
	if !f.G.Present {
		return f.G.evidence()
	}
	e := shownEvidence(f.TransactionKey, f.Word, f.G.Amount, f.G.At)
	e["present"] = !f.Missing
	return e
}

// bookedEvidence is what our books have of it.
func (f fact) bookedEvidence() map[string]any {
	if !f.B.Present {
		return f.B.evidence()
	}
	return bookedEvidence(f.TransactionKey, f.B.Amount, f.B.At, f.Channel)
}

// shownEvidence is what the list has of the capture.
func (r takenRow) shownEvidence() map[string]any {
	if !r.Listed {
		return side{}.evidence()
	}
	return shownEvidence(r.TransactionKey, r.Word, ledger.Money{Minor: r.Amount, Currency: r.Currency}, r.At)
}

// bookedEvidence is what our books have of it.
func (r takenRow) bookedEvidence() map[string]any {
	if r.Booked == nil || r.BookedCurrency == nil || r.BookedAt == nil || r.Channel == nil {
		return side{}.evidence()
	}
	return bookedEvidence(r.BookedKey, ledger.Money{Minor: *r.Booked, Currency: *r.BookedCurrency}, *r.BookedAt, *r.Channel)
}

// booking is a capture or a cancel of our books under the key of a transaction.
type booking struct {
	Subject    string          `db:"subject"`
	Key        string          `db:"key"` // as our books have it
	Amount     int64           `db:"amount"`
	Currency   ledger.Currency `db:"currency"`
	At         time.Time       `db:"at"`
	Channel    ledger.Channel  `db:"channel"`
	ReversedAt *time.Time      `db:"reversed_at"` // of a deposit that fell back
}

func (k booking) evidence() map[string]any {
	e := bookedEvidence(k.Key, ledger.Money{Minor: k.Amount, Currency: k.Currency}, k.At, k.Channel)
	if k.ReversedAt != nil {
		e["reversed_at"] = k.ReversedAt.UTC()
	}
	return e
}

// besideBooks completes what the list alone has shown: each finding about a transaction gets what our books have of it, in
// one statement for all of them. A capture that the gateway has not named to us is found by its payment, as the audit does.
func besideBooks(ctx context.Context, tx pgx.Tx, findings []ledger.Finding) error {
	var keys, payments []string
	for _, f := range findings {
		if f.Books == nil && f.TransactionKey != "" {
			keys, payments = append(keys, f.TransactionKey), append(payments, f.PaymentKey)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `
		SELECT r.transaction_key AS subject, b.key, b.amount, b.currency, b.at, b.channel, b.reversed_at
		FROM unnest(@keys::text[], @payments::text[]) AS r (transaction_key, payment_key)
		CROSS JOIN LATERAL (
			(SELECT c.transaction_key AS key, c.amount, c.currency, c.canceled_at AS at, c.channel, NULL::timestamptz AS reversed_at
				FROM cancels c WHERE c.transaction_key = r.transaction_key)
			UNION ALL
			(SELECT c.transaction_key, c.amount, c.currency, c.captured_at, c.channel, c.reversed_at
				FROM captures c WHERE c.transaction_key = r.transaction_key)
			UNION ALL
			(SELECT '', c.amount, c.currency, c.captured_at, c.channel, c.reversed_at
				FROM captures c
				WHERE c.payment_key = r.payment_key AND c.transaction_key IS NULL
					AND EXISTS (SELECT 1 FROM mirror g WHERE g.transaction_key = r.transaction_key AND g.kind = 'capture' OFFSET 0)
				ORDER BY c.number DESC)
			LIMIT 1) b`,
		pgx.StrictNamedArgs{"keys": keys, "payments": payments})
	if err != nil {
		return fmt.Errorf("look up what the books have: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[booking])
	if err != nil {
		return fmt.Errorf("look up what the books have: %w", err)
	}
	booked := make(map[string]booking, len(all))
	for _, k := range all {
		booked[k.Subject] = k
	}
	for n, f := range findings {
		if f.Books != nil || f.TransactionKey == "" {
			continue
		}
		findings[n].Books = side{}.evidence()
		if k, known := booked[f.TransactionKey]; known {
			findings[n].Books = k.evidence()
		}
	}
	return nil
}
