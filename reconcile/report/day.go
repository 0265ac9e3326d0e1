package report

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/reconcile"
)

// Day reports one business day: the statement, and every row behind every line of it. Both are compared anew, in one
// snapshot, so that they agree with each other; the newest audit that was kept of the day is named beside them, and
// whether it said the same, to the last transaction. The day is signed where just this is what was signed.
func (r *Reporter) Day(ctx context.Context, day ledger.Day, write func(Report) error) error {
	now := r.cfg.Now().Truncate(time.Microsecond)
	scope := reconcile.Scope{Name: reconcile.ScopeDay, Day: day}
	return r.snapshot(ctx, func(tx pgx.Tx) error {
		statement, said, err := r.cfg.Auditor.SaysIn(ctx, tx, day, now)
		if err != nil {
			return err
		}
		kept, err := auditedDays(ctx, tx, day, day)
		if err != nil {
			return err
		}
		facts, err := dayFacts(ctx, tx, kept[0], statement, said)
		if err != nil {
			return err
		}
		signatures, err := signatureRows(ctx, tx, day)
		if err != nil {
			return err
		}
		return write(Report{
			Name:  "day",
			Facts: facts,
			Tables: []Table{
				{Name: "identity", Columns: figureColumns(), Rows: list(identityRows(statement))},
				{Name: "lines", Columns: lineColumns(), Rows: list(lineRows(statement))},
				{Name: "captures", Columns: captureColumns(), Rows: list(captureRows(statement))},
				{Name: "orders", Columns: orderColumns(), Rows: list(orderRows(statement))},
				{Name: "changes", Columns: changeColumns(), Rows: list(changeRows(kept[0].Since))},
				{Name: "signatures", Columns: signatureColumns(), Rows: list(signatures)},
				{Name: "rows", Columns: rowColumns(), Rows: func(row func(Row) error) error {
					_, err := r.cfg.Auditor.ListIn(ctx, tx, scope, now, func(of reconcile.Row) error { return row(dayRow(of)) })
					return err
				}},
			},
		})
	})
}

// dayFacts say what the day is, how much of it could be seen, which audit was kept of it, and its seal.
func dayFacts(ctx context.Context, tx pgx.Tx, kept auditedDay, s reconcile.Statement, said reconcile.Said) ([]Fact, error) {
	head, err := headFacts(ctx, tx, kept.Day)
	if err != nil {
		return nil, err
	}
	facts := []Fact{
		{"day", Day(kept.Day)},
		{"verdict", word(s.Verdict)},
		{"reasons", sentences(strings.Join(s.Reasons, between))},
		{"as_of", instant(s.AsOf)},
		{"list_lag", text(s.Looked.Lag)},
		{"reads", Count(s.Looked.Runs)},
		{"failed_reads", Count(s.Looked.FailedRuns)},
		{"list_rows", Count(s.Looked.Rows)},
		{"foreign_rows", Count(s.Looked.ForeignRows)},
		{"book_cancels", Count(s.Looked.Cancels)},
		{"open_work", Count(s.Looked.Work)},
	}
	facts = append(append(facts, keptFacts(kept, s, said)...), sinceFacts(kept.Since)...)
	signed := kept.signedCells(kept.signedNow(said))
	facts = append(facts, Fact{"signed", signed[0]}, Fact{"signed_by", signed[1]}, Fact{"signed_at", signed[2]})
	return append(facts, head...), nil
}

// keptFacts name the newest audit that was kept of the day, and say whether it found the same. Where either did not see the
// whole day there is nothing to hold against the other.
func keptFacts(kept auditedDay, s reconcile.Statement, said reconcile.Said) []Fact {
	if !kept.audited() {
		return []Fact{{"run_id", nil}, {"run_verdict", Word(notAudited)}, {"run_agrees", nil}, {"digest", nil}}
	}
	var agrees Cell = Word("yes")
	switch {
	case kept.Verdict != s.Verdict || !slices.Equal(figuresOf(kept.Statement), figuresOf(s)):
		agrees = Word("no")
	case kept.Digest == "" || said.Digest == "":
		agrees = nil
	case kept.Digest != said.Digest:
		agrees = Word("no")
	}
	return []Fact{{"run_id", Count(*kept.RunID)}, {"run_verdict", word(kept.Verdict)}, {"run_agrees", agrees}, {"digest", text(kept.Digest)}}
}

func identityRows(s reconcile.Statement) []Row {
	var rows []Row
	for _, f := range figuresOf(s) {
		rows = append(rows, f.cells())
	}
	return rows
}

func lineColumns() []Column {
	return []Column{{"line", TypeWord}, {"currency", TypeWord}, {"count", TypeCount}, {"amount", TypeMoney}}
}

// lineRows are the lines that the rows of the day add up to, captures after what the statement lists.
func lineRows(s reconcile.Statement) []Row {
	var rows []Row
	for _, l := range s.Lines {
		rows = append(rows, lineRow(l.Name, l.Currency, l.Figure))
	}
	for _, name := range reconcile.CaptureLineNames() {
		for _, c := range s.Captures {
			if f := c.Line(name); f != (reconcile.Figure{}) {
				rows = append(rows, lineRow(name, c.Currency, f))
			}
		}
	}
	return rows
}

func lineRow(name reconcile.LineName, currency ledger.Currency, f reconcile.Figure) Row {
	return Row{word(name), word(currency), Count(f.Count), money(f.Amount, currency)}
}

func captureColumns() []Column {
	columns := []Column{{"currency", TypeWord}}
	for _, name := range []string{"listed", "booked", "pending", "accepted", "missing", "taken_back"} {
		columns = append(columns, Column{name + "_count", TypeCount}, Column{name + "_amount", TypeMoney})
	}
	return columns
}

func captureRows(s reconcile.Statement) []Row {
	var rows []Row
	for _, c := range s.Captures {
		row := Row{word(c.Currency)}
		for _, f := range []reconcile.Figure{c.Listed, c.Booked, c.Pending, c.Accepted, c.Missing, c.TakenBack} {
			row = append(row, Count(f.Count), money(f.Amount, c.Currency))
		}
		rows = append(rows, row)
	}
	return rows
}

func orderColumns() []Column {
	return []Column{
		{"currency", TypeWord},
		{"orders_gateway", TypeCount},
		{"orders_canceled", TypeCount},
		{"orders_pending", TypeCount},
		{"orders_other", TypeCount},
	}
}

func orderRows(s reconcile.Statement) []Row {
	var rows []Row
	for _, o := range s.Orders {
		rows = append(rows, Row{word(o.Currency), Count(o.Gateway), Count(o.Canceled), Count(o.Pending), Count(o.Other)})
	}
	return rows
}

func rowColumns() []Column {
	return []Column{
		{"at", TypeInstant},
		{"movement", TypeWord},
		{"line", TypeWord},
		{"order_id", TypeText},
		{"payment_key", TypeText},
		{"transaction_key", TypeText},
		{"currency", TypeWord},
		{"count", TypeCount},
		{"amount", TypeMoney},
		{"gateway_amount", TypeMoney},
		{"booked_amount", TypeMoney},
		{"booked_currency", TypeWord},
		{"channel", TypeWord},
		{"attempt", TypeCount},
		{"next_expected", TypeInstant},
		{"last_chance", TypeInstant},
		{"kind", TypeWord},
		{"note", TypeText},
	}
}

func dayRow(r reconcile.Row) Row {
	return Row{
		instant(r.At), word(r.Movement), word(r.Line), text(r.OrderID), text(r.PaymentKey), text(r.TransactionKey),
		word(r.Currency), Count(r.Count), money(r.Amount, r.Currency), held(r.Gateway), held(r.Booked), currencyOf(r.Booked),
		word(r.Channel), ordinal(r.Attempt), instant(r.NextExpected), instant(r.LastChance), word(r.Kind), sentences(r.Note),
	}
}

// ordinal is a number that counts from one, nothing for none.
func ordinal(n int) Cell {
	if n == 0 {
		return nil
	}
	return Count(n)
}

// held is what one of the books has, nothing when it has none.
func held(m *ledger.Money) Cell {
	if m == nil {
		return nil
	}
	return Money(*m)
}

// currencyOf names the currency of what our books have, which differs from the gateway's in a row that breaks for it.
func currencyOf(m *ledger.Money) Cell {
	if m == nil {
		return nil
	}
	return word(m.Currency)
}
