package reconcile

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// What the gateway says of one transaction can contradict itself where both books agree: its row of the list came again
// with other money than first read, is gone, has a word that nobody knows, or money that cannot be held. No comparison
// shows that, because the mirror keeps what it read first. The open mismatch about the row does, and as long as it is open
// the day of the row breaks. It stands beside the identity like every break, and is summed nowhere else. So does a mismatch
// between our books and the journal, on the day on which its transaction happened by our books.

// Once a person has accepted it, the row stands beside the sum for good, as long as the two sides do not agree.

// contradiction is a mismatch about one transaction that no comparison shows: one that is open, or that a person accepted.
type contradiction struct {
	Accepted       bool             `db:"accepted"`
	Kind           ledger.Kind      `db:"kind"`
	TransactionKey string           `db:"transaction_key"`
	PaymentKey     string           `db:"payment_key"`
	OrderID        string           `db:"order_id"`
	Currency       ledger.Currency  `db:"currency"`
	Amount         int64            `db:"amount"` // at risk; nothing where nobody can hold it
	Detail         string           `db:"detail"`
	At             time.Time        `db:"at"`
	ListedAs       string           `db:"listed_as"` // the kind of its row; empty where the mirror holds none
	Listed         *int64           `db:"listed"`
	ListedCurrency *ledger.Currency `db:"listed_currency"`
	Booked         *int64           `db:"booked"`
	BookedCurrency *ledger.Currency `db:"booked_currency"`
	Unnamed        bool             `db:"unnamed"` // it is about the standing capture of a payment, whose key our books do not know
	Fact           string           `db:"fact"`    // what of the journal it is about: kind and reference; empty where it is not
}

// contradictedWhere reads the mismatches x about what the list contradicts itself in; open and accepted ones each through
// an index of their own.
const contradictedWhere = `
			SELECT x.mismatch_id, x.kind, x.transaction_key, x.payment_key, x.order_id, x.currency, x.amount, x.detail, x.gateway, x.books,
				x.opened_at, x.last_seen_at, x.status, x.status = 'resolved' AS accepted
			FROM mismatches x
			WHERE x.transaction_key IS NOT NULL AND x.kind IN ('history_changed', 'quarantined', 'unrecognized_status', 'journal_differs')`

// contradictions reads what is open about the transactions of a window, and then what a person accepted; of each, first
// where the books and the journal differ, in the order in which they happened. It costs what is open and was accepted, whatever else ever happened. One whose sides agree by now is
// none: the run resolves it when it ends, if it is open still.
//
// A row that cannot be held has no place in the mirror and is of the day that it names, or else of the day on which it was
// found; where it names no currency that is known, it is listed as won. A difference of the journal about a capture is of the
// transaction as which the list shows it, from whenever it does.
func (r *round) contradictions(ctx context.Context, w window) ([]contradiction, error) {
	rows, err := r.tx.Query(ctx, `
		SELECT m.accepted, m.kind, k.transaction_key, COALESCE(g.payment_key, m.payment_key, '') AS payment_key,
			COALESCE(g.order_id, m.order_id, '') AS order_id, COALESCE(m.currency, c.currency, 'KRW') AS currency,
			CASE WHEN m.currency IS NULL THEN 0 ELSE COALESCE(m.amount, 0) END AS amount, m.detail, d.at,
			CASE WHEN m.kind <> 'journal_differs' THEN COALESCE(g.kind, '')
				WHEN m.books ->> 'entry' <> 'deposit_reversal' THEN m.books ->> 'entry' ELSE '' END AS listed_as,
			g.amount AS listed, g.currency AS listed_currency, b.amount AS booked, b.currency AS booked_currency,
			COALESCE(b.unnamed, false) AS unnamed,
			CASE WHEN m.kind = 'journal_differs' THEN concat_ws(' ', m.books ->> 'entry', m.books ->> 'reference') ELSE '' END AS fact
		FROM (`+contradictedWhere+` AND x.status <> 'resolved' UNION ALL `+contradictedWhere+` AND x.resolved_as = 'accepted' OFFSET 0) m
		LEFT JOIN LATERAL (
			SELECT x.transaction_key, x.captured_at FROM captures x
			WHERE m.kind = 'journal_differs' AND m.books ->> 'entry' = 'capture'
				AND x.payment_key = split_part(m.books ->> 'reference', '#', 1) AND x.payment_key || '#' || x.number = m.books ->> 'reference'
			LIMIT 1) t ON true
		CROSS JOIN LATERAL (SELECT COALESCE(t.transaction_key, CASE WHEN m.kind = 'journal_differs' AND m.books ->> 'entry' = 'capture' THEN
			`+listedKey("m.payment_key", "COALESCE(t.captured_at, (m.books ->> 'at')::timestamptz)")+` END, m.transaction_key) AS transaction_key) k
		LEFT JOIN LATERAL (
			SELECT x.transaction_key, x.payment_key, x.order_id, x.kind, x.amount, x.currency, x.at, x.is_foreign FROM mirror x
			WHERE x.transaction_key = k.transaction_key
			LIMIT 1) g ON true
		CROSS JOIN LATERAL (SELECT COALESCE(CASE WHEN m.kind = 'journal_differs' THEN (m.books ->> 'at')::timestamptz END, g.at,
			CASE WHEN m.gateway ->> 'at' ~ '^2[0-9]{3}-' THEN (m.gateway ->> 'at')::timestamptz END, m.opened_at) AS at) d
		LEFT JOIN unnest(@currencies::text[]) AS c (currency) ON c.currency = m.gateway ->> 'currency'
		LEFT JOIN LATERAL (
			(SELECT x.amount, x.currency, false AS unnamed FROM cancels x
				WHERE m.kind <> 'journal_differs' AND g.kind IN ('cancel', 'unrecognized') AND x.transaction_key = g.transaction_key)
			UNION ALL
			(SELECT x.amount, x.currency, x.transaction_key IS NULL AND x.reversed_at IS NULL FROM captures x
				WHERE m.kind <> 'journal_differs' AND g.kind = 'capture' AND x.payment_key = g.payment_key AND (x.transaction_key = g.transaction_key OR x.transaction_key IS NULL)
				ORDER BY x.transaction_key NULLS LAST
				LIMIT 1)
			UNION ALL
			(SELECT x.amount, x.currency, false FROM cancels x
				WHERE m.kind = 'journal_differs' AND m.books ->> 'entry' = 'cancel' AND x.transaction_key = m.books ->> 'reference')
			UNION ALL
			(SELECT x.amount, x.currency, m.books ->> 'entry' = 'capture' AND x.transaction_key IS NULL AND x.reversed_at IS NULL FROM captures x
				WHERE m.kind = 'journal_differs' AND m.books ->> 'entry' <> 'cancel' AND x.payment_key = split_part(m.books ->> 'reference', '#', 1)
					AND x.payment_key || '#' || x.number = m.books ->> 'reference')
			LIMIT 1) b ON true
		WHERE d.at >= @from AND d.at < @to AND NOT COALESCE(g.is_foreign, false)
			AND NOT (`+strings.Join(rowAgreements(), " OR ")+`)
		ORDER BY m.accepted, m.kind <> 'journal_differs', d.at, k.transaction_key COLLATE "C", m.kind, m.mismatch_id`,
		pgx.StrictNamedArgs{"from": w.from, "to": w.until(), "currencies": moneyCurrencies()})
	if err != nil {
		return nil, fmt.Errorf("look for what contradicts itself: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[contradiction])
	if err != nil {
		return nil, fmt.Errorf("look for what contradicts itself: %w", err)
	}
	return all, nil
}

// named is what a line has already, by the names under which one and the same can come again.
type named map[string]bool

// named names what is on a line. The comparison knows a capture of ours that the gateway has not named by its payment, of
// which one capture stands.
func (t *tally) named(line LineName) named {
	names := make(named)
	for k, entries := range t.entries {
		for _, e := range entries {
			if k.name != line {
				continue
			}
			if e.TransactionKey == "" {
				names[unnamedOf(e.PaymentKey)] = true
			} else {
				names[e.TransactionKey] = true
			}
		}
	}
	return names
}

func unnamedOf(paymentKey string) string { return "payment " + paymentKey }

func inJournal(transactionKey string) string { return "journal " + transactionKey }

// has reports whether the line has it: as what the comparison or another contradiction says of the same transaction, or
// itself. Of what a list says of a transaction, what the journal says of it stands for both; but one capture that differs
// from the journal says nothing of the next that bears the same key.
func (n named) has(c contradiction) bool {
	if n[c.TransactionKey] || (c.Unnamed && n[unnamedOf(c.PaymentKey)]) {
		return true
	}
	if c.Fact != "" {
		return n[c.Fact]
	}
	return n[inJournal(c.TransactionKey)]
}

func (n named) add(c contradiction) {
	if c.Fact == "" {
		n[c.TransactionKey] = true
		return
	}
	n[c.Fact], n[inJournal(c.TransactionKey)] = true, true
}

// contradict adds to the tally what contradicts itself of a window, beside what the comparison found.
func (r *round) contradict(ctx context.Context, w window, t *tally, see func(seen) error) error {
	return r.contradictBeside(ctx, w, t, t.named(LineBreaks), see)
}

// contradictBeside adds to the tally what is open about the transactions of a window, each once, unless a break of the same
// transaction is there already; and what a person accepted of them, unless it breaks or the comparison has it beside the
// sum. Who accepts one difference of a transaction still sees what else is open about it.
func (r *round) contradictBeside(ctx context.Context, w window, t *tally, breaks named, see func(seen) error) error {
	all, err := r.contradictions(ctx, w)
	if err != nil || len(all) == 0 {
		return err
	}
	accepted := t.named(LineAcceptedBeside)
	for _, c := range all {
		if breaks.has(c) || (c.Accepted && accepted.has(c)) {
			continue
		}
		if c.Accepted {
			accepted.add(c)
		} else {
			breaks.add(c)
		}
		t.contradict(c)
		if err := tell(see, c.seen()); err != nil {
			return err
		}
	}
	return nil
}

// contradict puts what contradicts itself on its line. It is a mismatch already, so nothing is found by it.
func (t *tally) contradict(c contradiction) {
	if !c.Accepted {
		t.contradicted++
	}
	t.place(c)
}

func (t *tally) place(c contradiction) {
	t.totals.add(share{Day: ledger.DayOf(c.At), Line: c.line(), Currency: c.Currency, Count: 1, Amount: c.Amount})
	key := lineKey{c.line(), c.Currency}
	t.entries[key] = append(t.entries[key], Entry{
		OrderID: c.OrderID, PaymentKey: c.PaymentKey, TransactionKey: c.TransactionKey, Amount: c.Amount, Since: c.At.UTC(),
		Note: c.Detail, Kind: c.Kind,
	})
}

// seen is the row as a run of a day looked at it. What nobody can read moved nobody knows which way.
func (c contradiction) seen() seen {
	atRisk := ledger.Money{Minor: c.Amount, Currency: c.Currency}
	j := judged{parts: []part{{c.line(), 1, atRisk}}, kind: c.Kind, note: c.Detail}
	if !c.Accepted {
		j.finding = &ledger.Finding{Kind: c.Kind, Detail: c.Detail, AtRisk: atRisk}
	}
	return seen{
		judged: j, Movement: c.movement(),
		TransactionKey: c.TransactionKey, PaymentKey: c.PaymentKey, OrderID: c.OrderID,
		G: sideOf(c.ListedCurrency, c.Listed, &c.At), B: sideOf(c.BookedCurrency, c.Booked, &c.At), At: c.At,
	}
}

func (c contradiction) line() LineName {
	if c.Accepted {
		return LineAcceptedBeside
	}
	return LineBreaks
}

// movement is what moved: by the list, or by our books where they have a cancel that the list has with a word of its own.
func (c contradiction) movement() Movement {
	switch {
	case c.ListedAs == "capture":
		return MovementCapture
	case c.ListedAs == "cancel", c.Kind == ledger.KindUnrecognized && c.Booked != nil:
		return MovementCancel
	}
	return ""
}
