package reconcile

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// totalKey names one running sum.
type totalKey struct {
	day      ledger.Day
	line     LineName
	currency ledger.Currency
}

// total is a figure with the number of entries behind it.
type total struct {
	Figure
	entries int
}

func (t total) plus(u total) total { return total{t.Figure.plus(u.Figure), t.entries + u.entries} }

func (t total) minus() total {
	return total{Figure{-t.Count, -t.Amount}, -t.entries}
}

// totals are sums per day, line and currency.
type totals map[totalKey]total

// add moves the sums by what a share counts.
func (t totals) add(s share) {
	u := total{Figure: Figure{s.Count, s.Amount}}
	if s.Line.listed() {
		u.entries = 1
	}
	key := totalKey{s.Day, s.Line, s.Currency}
	t[key] = t[key].plus(u)
}

// take moves the sums back by what a share counted.
func (t totals) take(s share) {
	u := total{Figure: Figure{s.Count, s.Amount}}
	if s.Line.listed() {
		u.entries = 1
	}
	key := totalKey{s.Day, s.Line, s.Currency}
	t[key] = t[key].plus(u.minus())
}

// totalRow is one running sum as its row holds it.
type totalRow struct {
	Day      string `db:"day" json:"day"`
	Line     string `db:"line" json:"line"`
	Currency string `db:"currency" json:"currency"`
	Count    int    `db:"count" json:"count"`
	Amount   int64  `db:"amount" json:"amount"`
	Entries  int    `db:"entries" json:"entries"`
}

func rowsOf(sums totals) []totalRow {
	var rows []totalRow
	for k, v := range sums {
		if v != (total{}) {
			rows = append(rows, totalRow{string(k.day), string(k.line), string(k.currency), v.Count, v.Amount, v.entries})
		}
	}
	return rows
}

func (r *round) addTotals(ctx context.Context, by totals) error {
	rows := rowsOf(by)
	if len(rows) == 0 {
		return nil
	}
	_, err := r.tx.Exec(ctx, `
		INSERT INTO audit_totals AS t (day, line, currency, count, amount, entries)
		SELECT day, line, currency, count, amount, entries
		FROM jsonb_to_recordset(@rows::jsonb) AS r (day date, line text, currency text, count bigint, amount bigint, entries bigint)
		ON CONFLICT (day, line, currency) DO UPDATE
		SET count = t.count + excluded.count, amount = t.amount + excluded.amount, entries = t.entries + excluded.entries`,
		pgx.StrictNamedArgs{"rows": rows})
	if err != nil {
		return fmt.Errorf("move the sums: %w", err)
	}
	return nil
}

func (r *round) storedTotals(ctx context.Context, sql string, args pgx.StrictNamedArgs) (totals, error) {
	rows, err := r.tx.Query(ctx, sql, args)
	if err != nil {
		return nil, fmt.Errorf("read the sums: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[totalRow])
	if err != nil {
		return nil, fmt.Errorf("read the sums: %w", err)
	}
	return totalsOf(all), nil
}

func totalsOf(rows []totalRow) totals {
	sums := totals{}
	for _, row := range rows {
		key := totalKey{ledger.Day(row.Day), LineName(row.Line), ledger.Currency(row.Currency)}
		sums[key] = total{Figure{row.Count, row.Amount}, row.Entries}
	}
	return sums
}
