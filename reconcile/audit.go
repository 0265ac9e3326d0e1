package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// ScopeName says how much an audit compares.
type ScopeName string

// The scopes.
const (
	ScopeRecent ScopeName = "recent" // the last days and all open work: every minute
	ScopeDay    ScopeName = "day"    // one closed business day
	ScopeAll    ScopeName = "all"    // everything since the books were opened
)

// ScopeNames lists every scope.
func ScopeNames() []ScopeName { return []ScopeName{ScopeRecent, ScopeDay, ScopeAll} }

// Scope is what one audit compares.
type Scope struct {
	Name ScopeName
	Day  ledger.Day // of ScopeDay
}

// limit is how long one statement of the audit may take. A whole history may take longer than anything else may.
func (s Scope) limit() string {
	if s.Name == ScopeRecent {
		return "60s"
	}
	return "10min"
}

// recentDays is longer than a notice can take, so that whatever is still owed lies within.
const recentDays = 5

// storedEntries bounds what one line of a stored statement lists; its figures are always whole.
const storedEntries = 200

// Auditor compares the gateway's books with ours.
type Auditor struct{ cfg Config }

// Run compares both books in one snapshot, keeps the statement whatever it says, opens a mismatch for each
// contradiction and resolves those that are none any more. The error is about our own database; everything else is a
// verdict.
func (a *Auditor) Run(ctx context.Context, scope Scope) (Statement, error) {
	began := a.cfg.now()
	s, err := a.compare(ctx, scope, began, nil)
	if err != nil {
		s = Statement{Verdict: VerdictError, StartedAt: began, AsOf: began, Reasons: []string{err.Error()}}
	}
	s.Scope, s.Day = scope.Name, scope.Day
	if keepErr := a.keep(ctx, s); keepErr != nil {
		s.Verdict = VerdictError
		err = errors.Join(err, keepErr)
	}
	a.cfg.Metrics.audited(s, a.cfg.now())
	if err != nil {
		return s, fmt.Errorf("audit %s %s: %w", scope.Name, scope.Day, err)
	}
	return s, nil
}

// compare reads everything in one snapshot that cannot write. Each transaction that it looked at is handed to see, unless
// that is nil, in the order in which they happened where the scope is a day.
func (a *Auditor) compare(ctx context.Context, scope Scope, now time.Time, see func(seen) error) (Statement, error) {
	var s Statement
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := postgres.InTxWith(ctx, a.cfg.DB, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', @limit, true)`, pgx.StrictNamedArgs{"limit": scope.limit()}); err != nil {
			return fmt.Errorf("give the audit its time: %w", err)
		}
		var err error
		s, err = a.compareIn(ctx, tx, scope, now, see)
		return err
	})
	return s, err
}

// compareIn is compare within a snapshot of the caller's.
func (a *Auditor) compareIn(ctx context.Context, tx pgx.Tx, scope Scope, now time.Time, see func(seen) error) (Statement, error) {
	w, err := a.window(ctx, tx, scope, now)
	if err != nil {
		return Statement{}, err
	}
	t := newTally(w.bounds)
	if scope.Name == ScopeDay {
		t.agreedMax = storedEntries
	}
	if err := a.facts(ctx, tx, w, func(f fact) error { return tell(see, f.seen(t.add(f))) }); err != nil {
		return Statement{}, err
	}
	captures, err := a.captures(ctx, tx, w, t, see)
	if err != nil {
		return Statement{}, err
	}
	s := t.statement(w.reasons)
	s.Captures = captures
	w.looked.Cancels, w.looked.Work = s.Looked.Cancels, s.Looked.Work
	s.Looked = w.looked
	return s, nil
}

// keep stores the statement with what it found, in one transaction.
func (a *Auditor) keep(ctx context.Context, s Statement) error {
	ctx, stop := detached(ctx, 30*time.Second)
	defer stop()
	stored := s.bounded(storedEntries)
	return postgres.InTx(ctx, a.cfg.DB, func(tx pgx.Tx) error {
		now := a.cfg.now()
		b := &pgx.Batch{}
		b.Queue(`
			INSERT INTO audit_runs (scope, day, started_at, ended_at, as_of, verdict, statement)
			VALUES (@scope, NULLIF(@day, '')::date, @started_at, @now, @as_of, @verdict, @statement)`,
			pgx.StrictNamedArgs{
				"scope": string(s.Scope), "day": string(s.Day), "started_at": s.StartedAt, "now": now, "as_of": s.AsOf,
				"verdict": string(s.Verdict), "statement": stored,
			})
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return fmt.Errorf("keep the statement: %w", err)
		}
		if _, err := ledger.OpenMismatches(ctx, tx, s.run(), s.findings, now); err != nil {
			return err
		}
		return resolveAgreed(ctx, tx, now)
	})
}

// run names the audit to those who look at what it found.
func (s Statement) run() string {
	return fmt.Sprintf("audit %s %s", cmp.Or(string(s.Day), string(s.Scope)), s.StartedAt.UTC().Format(time.RFC3339Nano))
}
