package report

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/reconcile"
)

// Applied reports every cancel that both books have, whenever it was: the rows behind the applied line of the cumulative
// statement, in the order of their transaction keys, and then what they add up to in each currency.
func (r *Reporter) Applied(ctx context.Context, write func(Report) error) error {
	now := r.cfg.Now()
	return r.snapshot(ctx, func(tx pgx.Tx) error {
		head, err := lastHeadFacts(ctx, tx, now)
		if err != nil {
			return err
		}
		sums := make(map[ledger.Currency]reconcile.Figure)
		return write(Report{
			Name:  "applied",
			Facts: head,
			Tables: []Table{
				{Name: "rows", Columns: appliedColumns(), Rows: func(row func(Row) error) error {
					clear(sums)
					return r.cfg.Auditor.AppliedIn(ctx, tx, func(of reconcile.Row) error {
						sum := sums[of.Currency]
						sum.Count, sum.Amount = sum.Count+of.Count, sum.Amount+of.Amount
						sums[of.Currency] = sum
						return row(appliedRow(of))
					})
				}},
				// Its rows are there once those above were written.
				{Name: "lines", Columns: lineColumns(), Rows: func(row func(Row) error) error {
					for _, c := range slices.Sorted(maps.Keys(sums)) {
						if err := row(Row{word(reconcile.LineApplied), word(c), Count(sums[c].Count), money(sums[c].Amount, c)}); err != nil {
							return err
						}
					}
					return nil
				}},
			},
		})
	})
}

func appliedColumns() []Column {
	return []Column{
		{"at", TypeInstant},
		{"order_id", TypeText},
		{"payment_key", TypeText},
		{"transaction_key", TypeText},
		{"currency", TypeWord},
		{"count", TypeCount},
		{"amount", TypeMoney},
		{"gateway_amount", TypeMoney},
		{"channel", TypeWord},
	}
}

func appliedRow(r reconcile.Row) Row {
	return Row{
		instant(r.At), text(r.OrderID), text(r.PaymentKey), text(r.TransactionKey), word(r.Currency), Count(r.Count),
		money(r.Amount, r.Currency), held(r.Gateway), word(r.Channel),
	}
}
