package reconcile

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// Since is what changed on a day since its earlier closing run.
type Since struct {
	RunID     int64          `json:"run_id"`
	StartedAt time.Time      `json:"started_at"`
	Verdict   Verdict        `json:"verdict"`
	Digest    string         `json:"digest"`
	Figures   []FigureChange `json:"figures,omitempty"`
	New       int            `json:"new"`
	Gone      int            `json:"gone"`
	Changed   int            `json:"changed"`
	Entries   []Change       `json:"entries,omitempty"` // bounded
	More      int            `json:"more,omitempty"`    // changes left out
}

// Nothing reports whether the day says just what it said before.
func (s *Since) Nothing() bool {
	return len(s.Figures) == 0 && s.New == 0 && s.Gone == 0 && s.Changed == 0
}

// FigureChange is one figure of the statement that is another than before.
type FigureChange struct {
	Name     string          `json:"name"`
	Currency ledger.Currency `json:"currency"`
	Before   Figure          `json:"before"`
	After    Figure          `json:"after"`
}

// Change is one transaction that the day did not have before, has no more, or has differently.
type Change struct {
	Movement       Movement  `json:"movement"`
	OrderID        string    `json:"order_id"`
	PaymentKey     string    `json:"payment_key"`
	TransactionKey string    `json:"transaction_key"`
	At             time.Time `json:"at"`
	Before         *Stood    `json:"before,omitempty"` // absent: it is new
	After          *Stood    `json:"after,omitempty"`  // absent: it is gone
}

// Stood is how a transaction stood, with its amount in each book; no amount where the book did not have it.
type Stood struct {
	Standing Standing `json:"standing"`
	Listed   string   `json:"listed,omitempty"`
	Booked   string   `json:"booked,omitempty"`
}

// figureChanges compares the figures of two statements of one day.
func figureChanges(before, after Statement) []FigureChange {
	was, is := before.figures(), after.figures()
	all := maps.Clone(was)
	maps.Copy(all, is)
	var changes []FigureChange
	for _, k := range figureOrder(all) {
		if was[k] != is[k] {
			changes = append(changes, FigureChange{Name: k.Name, Currency: k.Currency, Before: was[k], After: is[k]})
		}
	}
	return changes
}

// difference is one transaction as two closing runs of a day saw it; nil where a run did not.
type difference struct{ before, after *dayRow }

// change shows the difference.
func (d difference) change() Change {
	r := d.after
	if r == nil {
		r = d.before
	}
	return Change{
		Movement: r.Movement, OrderID: r.OrderID, PaymentKey: r.PaymentKey, TransactionKey: r.TransactionKey, At: r.At.UTC(),
		Before: stood(d.before), After: stood(d.after),
	}
}

func stood(r *dayRow) *Stood {
	if r == nil {
		return nil
	}
	s := Stood{Standing: r.Standing}
	if r.Listed != nil && r.ListedCurrency != nil {
		s.Listed = ledger.Money{Minor: *r.Listed, Currency: *r.ListedCurrency}.String()
	}
	if r.Booked != nil && r.BookedCurrency != nil {
		s.Booked = ledger.Money{Minor: *r.Booked, Currency: *r.BookedCurrency}.String()
	}
	return &s
}

// add counts a difference, and lists the first ones.
func (s *Since) add(d difference) {
	switch {
	case d.before == nil:
		s.New++
	case d.after == nil:
		s.Gone++
	default:
		s.Changed++
	}
	if len(s.Entries) == storedEntries {
		s.More++
		return
	}
	s.Entries = append(s.Entries, d.change())
}

// maybeRow is a row of a closed day, or none.
type maybeRow struct {
	movement, transactionKey, paymentKey, orderID *string
	standing                                      *string
	at                                            *time.Time
	listedCurrency, bookedCurrency                *ledger.Currency
	listed, booked                                *int64
}

func (r *maybeRow) columns() []any {
	return []any{
		&r.movement, &r.transactionKey, &r.paymentKey, &r.orderID, &r.standing, &r.at,
		&r.listedCurrency, &r.listed, &r.bookedCurrency, &r.booked,
	}
}

func (r *maybeRow) row() *dayRow {
	if r.movement == nil {
		return nil
	}
	return &dayRow{
		Movement: Movement(*r.movement), TransactionKey: *r.transactionKey, PaymentKey: *r.paymentKey, OrderID: *r.orderID,
		Standing: Standing(*r.standing), At: *r.at, ListedCurrency: r.listedCurrency, Listed: r.listed,
		BookedCurrency: r.bookedCurrency, Booked: r.booked,
	}
}

// differences hands every transaction that stands otherwise than it did in an earlier closing run of the day to visit, in
// the order in which they happened.
func differences(ctx context.Context, tx pgx.Tx, day ledger.Day, run int64, visit func(difference) error) error {
	//nolint:rowserrcheck // ForEachRow closes the rows and checks their error
	rows, err := tx.Query(ctx, `
		WITH keys AS (
			SELECT movement, transaction_key, payment_key FROM day_rows WHERE day = @day::date AND first_run > @run
			UNION
			SELECT movement, transaction_key, payment_key FROM day_rows WHERE day = @day::date AND gone_run > @run)
		SELECT o.movement, o.transaction_key, o.payment_key, o.order_id, o.standing, o.at, o.listed_currency, o.listed,
			o.booked_currency, o.booked,
			n.movement, n.transaction_key, n.payment_key, n.order_id, n.standing, n.at, n.listed_currency, n.listed,
			n.booked_currency, n.booked
		FROM keys k
		LEFT JOIN day_rows o ON o.day = @day::date AND o.movement = k.movement AND o.transaction_key = k.transaction_key
			AND o.payment_key = k.payment_key AND o.first_run <= @run AND (o.gone_run IS NULL OR o.gone_run > @run)
		LEFT JOIN day_rows n ON n.day = @day::date AND n.movement = k.movement AND n.transaction_key = k.transaction_key
			AND n.payment_key = k.payment_key AND n.gone_run IS NULL
		ORDER BY COALESCE(n.at, o.at), k.movement, k.transaction_key COLLATE "C", k.payment_key COLLATE "C"`,
		pgx.StrictNamedArgs{"day": string(day), "run": run})
	if err != nil {
		return fmt.Errorf("compare %s with its run %d: %w", day, run, err)
	}
	var before, after maybeRow
	_, err = pgx.ForEachRow(rows, append(before.columns(), after.columns()...), func() error {
		d := difference{before.row(), after.row()}
		if (d.before == nil && d.after == nil) || (d.before != nil && d.after != nil && d.same(dayRow.appendCanonical)) {
			return nil // it went and came back, or was otherwise for a while
		}
		return visit(d)
	})
	if err != nil {
		return fmt.Errorf("compare %s with its run %d: %w", day, run, err)
	}
	return nil
}

// same reports whether both have the same bytes of a kind.
func (d difference) same(kind func(dayRow, []byte) []byte) bool {
	return string(d.bytes(d.before, kind)) == string(d.bytes(d.after, kind))
}

func (difference) bytes(r *dayRow, kind func(dayRow, []byte) []byte) []byte {
	if r == nil {
		return nil
	}
	return kind(*r, nil)
}
