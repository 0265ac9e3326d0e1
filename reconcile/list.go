package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// Movement says which way money went.
type Movement string

// The movements.
const (
	MovementCapture Movement = "capture" // taken
	MovementCancel  Movement = "cancel"  // given back
)

// Movements lists every movement.
func Movements() []Movement { return []Movement{MovementCapture, MovementCancel} }

// Row is one transaction behind one line of a statement. The rows of a line add up to its figure; one that breaks is a
// row of the line breaks as well, beside the row that counts it.
//
// Captures have lines of their own, [CaptureLineNames], which are the figures of the statement's Captures.
type Row struct {
	Movement       Movement // empty: nobody can tell, of a row that cannot be read
	Line           LineName
	OrderID        string
	PaymentKey     string
	TransactionKey string // empty where the gateway has not named a capture of ours
	Currency       ledger.Currency
	Count          int            // what the row adds to its line: 0 for the rest of a transaction that is counted elsewhere
	Amount         int64          // minor units
	Gateway        *ledger.Money  // nil: the gateway's list does not have it
	Booked         *ledger.Money  // nil: our books do not have it
	At             time.Time      // when it happened, by the gateway's list where that has it
	Channel        ledger.Channel // how our books came to know of it; empty when they do not
	Kind           ledger.Kind    // of a row that breaks, or that a person accepted beside the sum
	Note           string

	// Of a cancel that is owed: which redelivery, of 7, comes next, when, and until when one can settle it. 0 and zero
	// where no notice came or none is expected.
	Attempt      int
	NextExpected time.Time
	LastChance   time.Time
}

// List hands every row behind every line of a scope to visit, those that agree as well, and returns the statement that
// they add up to: both are read in one snapshot. Nothing is kept of it. Cancels come first, then captures that the
// gateway lists, then those that it does not. The rows of a day come in the order in which they happened, and in the
// same order each time.
//
// Rows are handed over as they are read, so that a day of any size needs little memory. While visit works, the snapshot
// stays open: visit should write to a file and not wait for a person. Its error ends the list and is returned.
func (a *Auditor) List(ctx context.Context, scope Scope, visit func(Row) error) (Statement, error) {
	began := a.cfg.now()
	s, err := a.compare(ctx, scope, began, visitRows(visit))
	return listed(s, scope, began, err)
}

// ListIn is List within a snapshot of the caller's, as of an instant of the caller's: whoever lists twice in one snapshot
// gets the same twice, and can have the statement before the rows.
func (a *Auditor) ListIn(ctx context.Context, tx pgx.Tx, scope Scope, now time.Time, visit func(Row) error) (Statement, error) {
	s, err := a.compareIn(ctx, tx, scope, now, visitRows(visit))
	return listed(s, scope, now, err)
}

func visitRows(visit func(Row) error) func(seen) error {
	return func(f seen) error {
		for _, r := range f.rows() {
			if err := visit(r); err != nil {
				return err
			}
		}
		return nil
	}
}

func listed(s Statement, scope Scope, began time.Time, err error) (Statement, error) {
	if err != nil {
		return Statement{}, fmt.Errorf("list %s %s: %w", scope.Name, scope.Day, err)
	}
	s.Scope, s.Day, s.StartedAt = scope.Name, scope.Day, began
	return s, nil
}

// NewAuditor is an auditor by itself, for commands and reports. It needs DB, Metrics and Now; order pattern, opening and
// lag must be what the service was told.
func NewAuditor(cfg Config) (*Auditor, error) {
	cfg = cfg.withDefaults()
	switch {
	case cfg.DB == nil:
		return nil, errors.New("reconcile: DB is required")
	case cfg.Metrics == nil:
		return nil, errors.New("reconcile: Metrics is required")
	case cfg.Now == nil:
		return nil, errors.New("reconcile: Now is required")
	}
	return &Auditor{cfg: cfg}, nil
}

// seen is one transaction that an audit looked at, and what it came to.
type seen struct {
	judged
	Movement       Movement
	TransactionKey string
	PaymentKey     string
	OrderID        string
	G, B           side
	At             time.Time
	Channel        ledger.Channel
	W              owing
}

// tell hands what was seen to whoever wants to see it.
func tell(see func(seen) error, what seen) error {
	if see == nil {
		return nil
	}
	return see(what)
}

func (f fact) seen(j judged) seen {
	return seen{
		judged: j, Movement: MovementCancel, TransactionKey: f.TransactionKey, PaymentKey: f.PaymentKey, OrderID: f.OrderID,
		G: f.G, B: f.B, At: f.since(), Channel: f.Channel, W: f.W,
	}
}

func (r takenRow) seen(j judged) seen {
	s := seen{
		judged: j, Movement: MovementCapture, TransactionKey: r.TransactionKey, PaymentKey: r.PaymentKey, OrderID: r.OrderID, At: r.At,
	}
	if r.Listed {
		s.G = side{Present: true, Amount: ledger.Money{Minor: r.Amount, Currency: r.Currency}, At: r.At}
	}
	if r.Booked != nil && r.BookedCurrency != nil {
		s.B = side{Present: true, Amount: ledger.Money{Minor: *r.Booked, Currency: *r.BookedCurrency}, At: r.At}
	}
	if r.Channel != nil {
		s.Channel = *r.Channel
	}
	return s
}

// rows is one row for each line that the transaction stands on.
func (s seen) rows() []Row {
	rows := make([]Row, 0, len(s.parts))
	for _, p := range s.parts {
		r := Row{
			Movement: s.Movement, Line: p.line.of(s.Movement), OrderID: s.OrderID, PaymentKey: s.PaymentKey, TransactionKey: s.TransactionKey,
			Currency: p.amount.Currency, Count: p.count, Amount: p.amount.Minor, Gateway: s.G.money(), Booked: s.B.money(),
			At: s.At, Channel: s.Channel, Kind: s.kind, Note: s.note,
		}
		if p.line == LineApplied {
			r.Kind, r.Note = "", "" // what a person accepted of it has a row of its own
		}
		if p.line == LineBreaks {
			r.Kind, r.Note = s.finding.Kind, s.finding.Detail
		}
		if p.line.pending() || p.line == LineUnproven {
			r.owed(s.W)
		}
		rows = append(rows, r)
	}
	return rows
}

// owed tells how far the gateway's redeliveries of a notice are.
func (r *Row) owed(w owing) {
	if !w.Present {
		return
	}
	if w.NoticeAttempt >= 0 {
		r.Attempt = nextAttempt(w.NoticeAttempt)
	}
	r.NextExpected, r.LastChance = w.NoticeNextAt, w.Deadline
}

func (s side) money() *ledger.Money {
	if !s.Present {
		return nil
	}
	return &s.Amount
}
