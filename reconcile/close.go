package reconcile

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// ErrClosingBusy reports that another audit did not end in time. Nothing was done.
var ErrClosingBusy = errors.New("another audit is under way")

// Close makes a closing run of a business day: both books are compared in full in one snapshot, what the day says now is
// kept with what changed since its earlier run, and a day that a person signed and that says something else now becomes
// a mismatch. A run that could not see the whole day says so, and neither tells nor forgets what the day said.
//
// It may run any number of times, in any number of processes: one after the other, a run that finds nothing new says the
// same bytes again.
func (a *Auditor) Close(ctx context.Context, day ledger.Day) (Statement, error) {
	began := a.cfg.now()
	s, err := a.alone(ctx, func() (s Statement, err error) {
		err = postgres.InTx(ctx, a.cfg.DB, func(tx pgx.Tx) (err error) {
			s, err = a.closeIn(ctx, tx, day)
			return err
		})
		return s, err
	})
	switch {
	case errors.Is(err, errAuditing):
		return Statement{}, fmt.Errorf("close %s: %w", day, ErrClosingBusy)
	case err != nil:
		s = Statement{Verdict: VerdictError, Scope: ScopeDay, Day: day, StartedAt: began, AsOf: began, Reasons: []string{err.Error()}}
		if !day.Start().IsZero() {
			err = errors.Join(err, a.keep(ctx, s))
		}
	}
	a.cfg.Metrics.audited(s, a.cfg.now())
	if err != nil {
		return s, fmt.Errorf("close %s: %w", day, err)
	}
	return s, nil
}

// closeIn is a closing run within a transaction that only writes: the books are read in a snapshot of another, and what
// is read goes to the database as it comes, so that a day of any size needs little memory.
func (a *Auditor) closeIn(ctx context.Context, tx pgx.Tx, day ledger.Day) (Statement, error) {
	if err := giveClosingTime(ctx, tx); err != nil {
		return Statement{}, err
	}
	var staged *staging
	var c *closing
	s, err := a.advance(ctx, Scope{Name: ScopeDay, Day: day}, a.cfg.now(), func() (_ func(seen) error, err error) {
		c = newClosing(day)
		staged, err = newStaging(ctx, tx)
		return func(f seen) error {
			r, on := f.closed()
			if !on {
				return nil
			}
			c.add(r)
			return staged.add(ctx, r)
		}, err
	})
	if err != nil {
		return Statement{}, err
	}
	s.Scope, s.Day = ScopeDay, day
	if s.RunID, err = nextRun(ctx, tx); err != nil {
		return Statement{}, err
	}
	if !s.whole() {
		return s, a.keepClosing(ctx, tx, s, nil, c)
	}
	closed := c.statement(s)
	s.Digest = ledger.Digest(sha256.Sum256(closed)).String()
	if err := staged.settle(ctx, day, s.RunID); err != nil {
		return Statement{}, err
	}
	if s.Since, err = sinceEarlier(ctx, tx, s); err != nil {
		return Statement{}, err
	}
	if err := a.keepClosing(ctx, tx, s, closed, c); err != nil {
		return Statement{}, err
	}
	if err := takeBack(ctx, tx, s); err != nil {
		return Statement{}, err
	}
	return s, a.holdAgainstSignature(ctx, tx, s, c.facts())
}

// whole reports whether the run saw the whole day: only then is it what the day says.
func (s Statement) whole() bool {
	return len(s.Reasons) == 0 && s.Verdict != VerdictIncomplete && s.Verdict != VerdictError
}

// giveClosingTime lets this transaction wait while the other one reads a large day.
func giveClosingTime(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `
		SELECT set_config('idle_in_transaction_session_timeout', '15min', true), set_config('statement_timeout', @limit, true)`,
		pgx.StrictNamedArgs{"limit": wholeLimit})
	if err != nil {
		return fmt.Errorf("give the closing run its time: %w", err)
	}
	return nil
}

// nextRun takes the number of the run before it is kept, because its rows bear it.
func nextRun(ctx context.Context, tx pgx.Tx) (int64, error) {
	rows, err := tx.Query(ctx, `SELECT nextval(pg_get_serial_sequence('audit_runs', 'run_id'))`)
	if err != nil {
		return 0, fmt.Errorf("number the closing run: %w", err)
	}
	run, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	if err != nil {
		return 0, fmt.Errorf("number the closing run: %w", err)
	}
	return run, nil
}

// sinceEarlier says what changed since the newest earlier run that saw the whole day; nil for the first one.
func sinceEarlier(ctx context.Context, tx pgx.Tx, s Statement) (*Since, error) {
	rows, err := tx.Query(ctx, `
		SELECT run_id, started_at, encode(digest, 'hex') AS digest, statement
		FROM audit_runs
		WHERE day = @day::date AND closed IS NOT NULL
		ORDER BY run_id DESC
		LIMIT 1`, pgx.StrictNamedArgs{"day": string(s.Day)})
	if err != nil {
		return nil, fmt.Errorf("read the earlier closing run: %w", err)
	}
	type earlierRun struct {
		RunID     int64     `db:"run_id"`
		StartedAt time.Time `db:"started_at"`
		Digest    string    `db:"digest"`
		Statement Statement `db:"statement"`
	}
	earlier, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[earlierRun])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the earlier closing run: %w", err)
	}
	since := &Since{
		RunID: earlier.RunID, StartedAt: earlier.StartedAt.UTC(), Verdict: earlier.Statement.Verdict, Digest: earlier.Digest,
		Figures: figureChanges(earlier.Statement, s),
	}
	return since, differences(ctx, tx, s.Day, earlier.RunID, func(d difference) error {
		since.add(d)
		return nil
	})
}

// keepClosing stores the run with what it found. Only a run that saw the whole day has a closed statement.
func (a *Auditor) keepClosing(ctx context.Context, tx pgx.Tx, s Statement, closed []byte, c *closing) error {
	now := a.cfg.now()
	var digest, facts []byte
	if closed != nil {
		sum, covered := sha256.Sum256(closed), c.facts()
		digest, facts = sum[:], covered[:]
	}
	b := &pgx.Batch{}
	b.Queue(`
		INSERT INTO audit_runs (run_id, scope, day, started_at, ended_at, as_of, verdict, statement, closed, digest, facts)
		OVERRIDING SYSTEM VALUE
		VALUES (@run, 'day', @day::date, @started_at, @now, @as_of, @verdict, @statement, @closed, @digest, @facts)`,
		pgx.StrictNamedArgs{
			"run": s.RunID, "day": string(s.Day), "started_at": s.StartedAt, "now": now, "as_of": s.AsOf,
			"verdict": string(s.Verdict), "statement": s.bounded(storedEntries), "closed": closed, "digest": digest, "facts": facts,
		})
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("keep the closing run: %w", err)
	}
	if _, err := ledger.OpenMismatches(ctx, tx, s.run(), s.findings, now); err != nil {
		return err
	}
	return resolveAgreed(ctx, tx, now)
}
