package report

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/reconcile"
)

// figureColumns are the identity in one currency, side by side: gateway = canceled + pending + accepted + unexplained;
// then what a person accepted beside that sum and what must be nothing; and the money taken: listed = booked + what is
// pending, accepted and missing of the captures.
func figureColumns() []Column {
	columns := []Column{{"currency", TypeWord}}
	for _, name := range []string{
		"gateway", "canceled", "pending", "accepted", "unexplained", "accepted_beside", "breaks", "listed", "booked",
		"captures_pending", "captures_accepted", "captures_missing",
	} {
		columns = append(columns, Column{name + "_count", TypeCount}, Column{name + "_amount", TypeMoney})
	}
	return columns
}

// figures is the identity of one statement in one currency.
type figures struct {
	Currency                                          ledger.Currency
	Gateway, Canceled, Pending, Accepted, Unexplained reconcile.Figure
	AcceptedBeside, Breaks, Listed, Booked            reconcile.Figure
	TakenPending, TakenAccepted, TakenMissing         reconcile.Figure
}

func (f *figures) parts() []*reconcile.Figure {
	return []*reconcile.Figure{
		&f.Gateway, &f.Canceled, &f.Pending, &f.Accepted, &f.Unexplained, &f.AcceptedBeside, &f.Breaks, &f.Listed, &f.Booked,
		&f.TakenPending, &f.TakenAccepted, &f.TakenMissing,
	}
}

func (f *figures) cells() []Cell {
	cells := []Cell{word(f.Currency)}
	for _, p := range f.parts() {
		cells = append(cells, Count(p.Count), money(p.Amount, f.Currency))
	}
	return cells
}

// figuresOf takes the figures out of a statement, one for each currency, ordered by its code. A statement without any is
// nothing in won: that is what was found.
func figuresOf(s reconcile.Statement) []figures {
	found := make(map[ledger.Currency]*figures)
	of := func(c ledger.Currency) *figures {
		if found[c] == nil {
			found[c] = &figures{Currency: c}
		}
		return found[c]
	}
	for _, sum := range s.Sums {
		f := of(sum.Currency)
		f.Gateway, f.Canceled, f.Pending, f.Accepted, f.Unexplained = sum.Gateway, sum.Canceled, sum.Pending, sum.Accepted, sum.Unexplained
	}
	for _, c := range s.Captures {
		f := of(c.Currency)
		f.Listed, f.Booked, f.TakenPending, f.TakenAccepted, f.TakenMissing = c.Listed, c.Booked, c.Pending, c.Accepted, c.Missing
	}
	for _, l := range s.Lines {
		switch l.Name { //nolint:exhaustive // the others are in the sums
		case reconcile.LineBreaks:
			of(l.Currency).Breaks = l.Figure
		case reconcile.LineAcceptedBeside:
			of(l.Currency).AcceptedBeside = l.Figure
		}
	}
	if len(found) == 0 {
		of(ledger.KRW)
	}
	return sorted(found)
}

// add adds the figures of another day; what no number can hold is an error, never a wrong sum.
func (f *figures) add(g figures) error {
	theirs := g.parts()
	for i, mine := range f.parts() {
		sum, err := ledger.Money{Minor: mine.Amount, Currency: f.Currency}.Add(ledger.Money{Minor: theirs[i].Amount, Currency: g.Currency})
		if err != nil {
			return err
		}
		mine.Count, mine.Amount = mine.Count+theirs[i].Count, sum.Minor
	}
	return nil
}

// headFacts are the seal of the journal at the end of a day.
func headFacts(ctx context.Context, db ledger.Querier, day ledger.Day) ([]Fact, error) {
	head, err := ledger.HeadOf(ctx, db, day)
	switch {
	case errors.Is(err, ledger.ErrNotSealed):
		return notSealed(), nil
	case err != nil:
		return nil, err
	}
	return []Fact{
		{"sealed", Word("yes")},
		{"head", Text(head.Hash.String())},
		{"head_day", Day(head.Day)},
		{"head_sequence", Count(head.Sequence)},
		{"head_key", text(head.KeyID)},
	}, nil
}

// notSealed are the facts of a journal that nothing proves from outside yet.
func notSealed() []Fact {
	return []Fact{{"sealed", Word("no")}, {"head", nil}, {"head_day", nil}, {"head_sequence", nil}, {"head_key", nil}}
}

// one reads the one row of a query, or none.
func one[T any](ctx context.Context, tx pgx.Tx, what, sql string, args pgx.StrictNamedArgs) (*T, error) {
	all, err := postgres.Collect[T](ctx, tx, what, sql, args)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	if len(all) > 1 {
		return nil, fmt.Errorf("read %s: %d rows, want one", what, len(all))
	}
	return &all[0], nil
}
