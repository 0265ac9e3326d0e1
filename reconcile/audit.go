package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// ScopeName says how much an audit compares.
type ScopeName string

// The scopes.
const (
	ScopeRecent ScopeName = "recent" // everything, by what changed since the last run: every minute
	ScopeDay    ScopeName = "day"    // one closed business day, in full
	ScopeAll    ScopeName = "all"    // everything since the books were opened, in full: every night
)

// ScopeNames lists every scope.
func ScopeNames() []ScopeName { return []ScopeName{ScopeRecent, ScopeDay, ScopeAll} }

// Scope is what one audit compares.
type Scope struct {
	Name ScopeName
	Day  ledger.Day // of ScopeDay
}

// storedEntries bounds what one line of a stored statement lists; its figures are always whole.
const storedEntries = 200

// Auditor compares the gateway's books with ours.
type Auditor struct{ cfg Config }

// wholeLimit is how long one statement of an audit may take that reads a whole day or everything.
const wholeLimit = "10min"

// errAuditing reports that another audit holds the lock. It is no verdict: nothing was looked at.
var errAuditing = errors.New("another audit is running")

// Run compares both books in one snapshot, keeps the statement whatever it says, opens a mismatch for each
// contradiction and resolves those that are none any more. The error is about our own database; everything else is a
// verdict.
//
// What the comparison remembers is committed before the statement is kept. A crash between the two loses one statement
// and nothing else: what is open is listed by every later one.
//
// A day is closed: see [Auditor.Close].
func (a *Auditor) Run(ctx context.Context, scope Scope) (Statement, error) {
	if scope.Name == ScopeDay {
		return a.Close(ctx, scope.Day)
	}
	began := a.cfg.now()
	s, err := a.alone(ctx, func() (Statement, error) { return a.advance(ctx, scope, began, nil) })
	if errors.Is(err, errAuditing) {
		return Statement{}, fmt.Errorf("audit %s %s: %w", scope.Name, scope.Day, err)
	}
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

// alone runs one audit while this session holds the lock, waiting for another as long as any lock may take. A crash
// frees it.
func (a *Auditor) alone(ctx context.Context, run func() (Statement, error)) (s Statement, err error) {
	conn, err := a.cfg.DB.Acquire(ctx)
	if err != nil {
		return Statement{}, fmt.Errorf("take the lock of the audit: %w", err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, postgres.LockAudit); err != nil {
		if postgres.IsLockTimeout(err) {
			return Statement{}, errAuditing
		}
		return Statement{}, fmt.Errorf("take the lock of the audit: %w", err)
	}
	defer func() {
		free, stop := detached(ctx, 5*time.Second)
		defer stop()
		if _, unlockErr := conn.Exec(free, `SELECT pg_advisory_unlock($1)`, postgres.LockAudit); unlockErr != nil {
			err = errors.Join(err, fmt.Errorf("free the lock of the audit: %w", unlockErr), conn.Conn().Close(free))
		}
	}()
	return run()
}

// watcher begins to watch what a run of a day looks at. It begins anew when the snapshot was given up for the sake of
// another transaction.
type watcher func() (see func(seen) error, err error)

// advance brings what is remembered up to date with one snapshot and says what it comes to. A run of a day or of
// everything compares in full as well, and holds what is remembered against it.
func (a *Auditor) advance(ctx context.Context, scope Scope, now time.Time, watch watcher) (Statement, error) {
	var s Statement
	err := postgres.InTxWith(ctx, a.cfg.DB, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		last, err := a.lastState(ctx, tx)
		if err != nil {
			return err
		}
		by := last.steady(now)
		w, err := a.window(ctx, tx, scope, by)
		if err != nil {
			return err
		}
		r := round{Auditor: a, tx: tx, w: w, last: last}
		if scope.Name == ScopeDay {
			if r.w, err = a.window(ctx, tx, Scope{Name: ScopeRecent}, by); err != nil {
				return err
			}
		}
		t, enough, err := r.compared(ctx, scope, w, watch)
		if err != nil {
			return err
		}
		s = t.statement(w.reasons)
		s.StartedAt = now
		s.Drift, s.drifted = r.drift.found, r.drift.count
		s.CapturesOpen = scope.Name == ScopeRecent
		w.looked.Cancels, w.looked.Work, w.looked.Judged = s.Looked.Cancels, s.Looked.Work, r.judged
		s.Looked = w.looked
		return r.settle(ctx, !enough)
	})
	return s, err
}

// compared is what the scope comes to, once what changed has been judged. Enough is false when what was remembered did
// not suffice and everything was compared instead.
func (r *round) compared(ctx context.Context, scope Scope, w window, watch watcher) (t *tally, enough bool, err error) {
	if enough, err = r.catchUp(ctx); err != nil {
		return nil, enough, err
	}
	if !enough || scope.Name == ScopeAll {
		if t, err = r.everything(ctx, enough); err != nil {
			return nil, enough, err
		}
	}
	switch scope.Name {
	case ScopeDay:
		t, err = r.day(ctx, w, scope.Day, watch)
		return t, enough, err
	case ScopeRecent:
		if t, err = r.runningTally(ctx); err != nil {
			return nil, enough, err
		}
	case ScopeAll:
	}
	return t, enough, r.contradict(ctx, w, t, nil)
}

// compare reads everything in full, in one snapshot that cannot write. Each transaction that it looked at is handed to
// see, unless that is nil, in the order in which they happened where the scope is a day.
func (a *Auditor) compare(ctx context.Context, scope Scope, now time.Time, see func(seen) error) (Statement, error) {
	var s Statement
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := postgres.InTxWith(ctx, a.cfg.DB, options, func(tx pgx.Tx) error {
		if err := giveTime(ctx, tx); err != nil {
			return err
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
	r := round{Auditor: a, tx: tx, w: w}
	t := w.tally()
	err = r.inFull(ctx, w, func(facts []factRow) error {
		for _, f := range facts {
			if !f.counts() || !w.holds(f) {
				continue
			}
			if err := tell(see, f.fact().seen(t.add(f.fact()))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Statement{}, err
	}
	if _, err := a.captures(ctx, tx, w, t, see); err != nil {
		return Statement{}, err
	}
	beside := r.contradict
	if scope.Name == ScopeDay {
		beside = r.besideDay
	}
	if err := beside(ctx, w, t, see); err != nil {
		return Statement{}, err
	}
	s := t.statement(w.reasons)
	w.looked.Cancels, w.looked.Work = s.Looked.Cancels, s.Looked.Work
	s.Looked = w.looked
	return s, nil
}

// keep stores the statement, and then what it found. The statement has a transaction of its own: however much there is
// to write of what was found, and whatever becomes of it, the statement is not lost with it.
func (a *Auditor) keep(ctx context.Context, s Statement) error {
	stored := s.bounded(storedEntries)
	err := a.write(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO audit_runs (scope, day, started_at, ended_at, as_of, verdict, statement)
			VALUES (@scope, NULLIF(@day, '')::date, @started_at, @now, @as_of, @verdict, @statement)`,
			pgx.StrictNamedArgs{
				"scope": string(s.Scope), "day": string(s.Day), "started_at": s.StartedAt, "now": now, "as_of": s.AsOf,
				"verdict": string(s.Verdict), "statement": stored,
			})
		if err != nil {
			return fmt.Errorf("keep the statement: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return a.open(ctx, s)
}

const (
	// seenEvery is how often a mismatch that stands as it was is noted as seen again.
	seenEvery = time.Hour
	// findingsAtOnce bounds how many findings one transaction writes.
	findingsAtOnce = 2_000
)

// open writes what is new of what was found, piece by piece, and closes what the facts have overtaken. A crash on the
// way loses nothing: the next run finds the rest.
func (a *Auditor) open(ctx context.Context, s Statement) error {
	fresh, err := ledger.ToWrite(ctx, a.cfg.DB, s.findings, a.cfg.now().Add(-seenEvery))
	if err != nil {
		return err
	}
	for piece := range slices.Chunk(fresh, findingsAtOnce) {
		err := a.write(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
			_, err := ledger.OpenMismatches(ctx, tx, s.run(), piece, now)
			return err
		})
		if err != nil {
			return err
		}
	}
	return a.write(ctx, resolveAgreed)
}

// write is one transaction that the end of the caller's context does not cut off.
func (a *Auditor) write(ctx context.Context, do func(context.Context, pgx.Tx, time.Time) error) error {
	ctx, stop := detached(ctx, 30*time.Second)
	defer stop()
	return postgres.InTx(ctx, a.cfg.DB, func(tx pgx.Tx) error { return do(ctx, tx, a.cfg.now()) })
}

// run names the audit to those who look at what it found.
func (s Statement) run() string {
	return fmt.Sprintf("audit %s %s", cmp.Or(string(s.Day), string(s.Scope)), s.StartedAt.UTC().Format(time.RFC3339Nano))
}
