package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// ErrKnownAhead reports a trial balance as known at an instant that has not come: what is recorded until then would change it.
var ErrKnownAhead = errors.New("nobody knows yet what will be recorded by then")

// TrialBalance reports every account as of an instant, as it was known at another. The zero time is now. ErrKnownAhead.
func (r *Reporter) TrialBalance(ctx context.Context, asOf, knownAt time.Time, write func(Report) error) error {
	now := r.cfg.Now()
	if knownAt.IsZero() {
		knownAt = now
	}
	if knownAt.After(now) {
		return fmt.Errorf("known at %s: %w", ledger.Stamp(knownAt), ErrKnownAhead)
	}
	if asOf.IsZero() {
		asOf = knownAt
	}
	return r.snapshot(ctx, func(tx pgx.Tx) error {
		balance, err := ledger.Balances(ctx, tx, asOf, knownAt)
		if err != nil {
			return err
		}
		head, err := lastHeadFacts(ctx, tx, balance.KnownAt)
		if err != nil {
			return err
		}
		balanced := "yes"
		if !balance.Zero() {
			balanced = "no"
		}
		return write(Report{
			Name: "trial_balance",
			Facts: append([]Fact{
				{"as_of", instant(balance.AsOf)},
				{"known_at", instant(balance.KnownAt)},
				{"balanced", Word(balanced)},
			}, head...),
			Tables: []Table{
				{Name: "accounts", Columns: balanceColumns("account"), Rows: list(balanceRows(balance.Lines))},
				{Name: "totals", Columns: balanceColumns(""), Rows: list(balanceRows(balance.Totals()))},
			},
		})
	})
}

// lastHeadFacts are the newest seal that was there at the instant: everything before it is proven by it.
func lastHeadFacts(ctx context.Context, tx pgx.Tx, knownAt time.Time) ([]Fact, error) {
	type sealed struct {
		Day ledger.Day `db:"day"`
	}
	last, err := one[sealed](ctx, tx, "the newest head", `
		SELECT to_char(day, 'YYYY-MM-DD') AS day
		FROM journal_heads
		WHERE sealed_at <= @known_at
		ORDER BY sequence DESC
		LIMIT 1`, pgx.StrictNamedArgs{"known_at": knownAt})
	if err != nil {
		return nil, err
	}
	if last == nil {
		return notSealed(), nil
	}
	return headFacts(ctx, tx, last.Day)
}

func balanceColumns(first string) []Column {
	columns := []Column{{"currency", TypeWord}, {"debits", TypeMoney}, {"credits", TypeMoney}, {"balance", TypeMoney}}
	if first == "" {
		return columns
	}
	return append([]Column{{first, TypeWord}}, columns...)
}

func balanceRows(lines []ledger.Balance) []Row {
	rows := make([]Row, len(lines))
	for i, l := range lines {
		rows[i] = Row{word(l.Debits.Currency), Money(l.Debits), Money(l.Credits), Money(l.Net())}
		if l.Account != "" {
			rows[i] = append(Row{word(l.Account)}, rows[i]...)
		}
	}
	return rows
}
