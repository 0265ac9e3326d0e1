package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// reader is a mirror whose process holds the lock of the list.
type reader struct {
	*Mirror

	lock *pgx.Conn
}

// lockEvery is how often somebody who waits for the lock tries it.
const lockEvery = 250 * time.Millisecond

var errLockLost = errors.New("the lock of the list is lost: another instance may be reading")

// locked runs read while this process holds the lock, if its clock is right and the gateway has not asked to be left alone. One process reads
// at a time: the gateway refuses an abnormal number of calls, and two readers would judge each other's rows. The lock
// belongs to a database session, so a crash frees it.
func (m *Mirror) locked(ctx context.Context, patience time.Duration, read func(reader) (Polled, error)) (p Polled, err error) {
	conn, err := m.cfg.DB.Acquire(ctx)
	if err != nil {
		return Polled{}, fmt.Errorf("take the lock of the list: %w", err)
	}
	defer conn.Release()
	held, err := take(ctx, conn.Conn(), patience)
	if err != nil {
		return Polled{}, fmt.Errorf("take the lock of the list: %w", err)
	}
	if !held {
		return Polled{Busy: true}, nil
	}
	defer func() {
		free, stop := detached(ctx, 5*time.Second)
		defer stop()
		if _, unlockErr := conn.Exec(free, `SELECT pg_advisory_unlock($1)`, postgres.LockList); unlockErr != nil {
			err = errors.Join(err, fmt.Errorf("free the lock of the list: %w", unlockErr), conn.Conn().Close(free))
		}
	}()
	if err := m.clocksAgree(ctx); err != nil {
		return Polled{}, err
	}
	if err := m.paused(ctx); err != nil {
		return Polled{}, err
	}
	return read(reader{Mirror: m, lock: conn.Conn()})
}

// take tries the lock for as long as patience lasts.
func take(ctx context.Context, conn *pgx.Conn, patience time.Duration) (held bool, err error) {
	over := time.NewTimer(patience)
	defer over.Stop()
	again := time.NewTicker(lockEvery)
	defer again.Stop()
	for {
		if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, postgres.LockList).Scan(&held); err != nil || held || patience == 0 {
			return held, err
		}
		select {
		case <-again.C:
		case <-over.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// paused reports whether the gateway is being left alone. All instances go by the same rows.
func (m *Mirror) paused(ctx context.Context) error {
	now := m.cfg.now()
	rows, err := m.cfg.DB.Query(ctx, `
		SELECT COALESCE(max(paused_until), 'epoch') FROM list_runs WHERE paused_until > @now`, pgx.StrictNamedArgs{"now": now})
	if err != nil {
		return fmt.Errorf("look for a pause of the list: %w", err)
	}
	until, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[time.Time])
	if err != nil {
		return fmt.Errorf("look for a pause of the list: %w", err)
	}
	if until.After(now) {
		return fmt.Errorf("until %s: %w", ledger.Stamp(until), ErrPaused)
	}
	return nil
}

// holds makes sure that the lock is still ours: it is as long as its session lives. A session that was cut has let
// somebody else in.
func (r reader) holds(ctx context.Context) error {
	if err := r.lock.Ping(ctx); err != nil {
		return errors.Join(errLockLost, err)
	}
	return nil
}

// readAll reads window after window, oldest first, and stops at the first that fails: a later one would move the end
// of what was read past a gap.
func (r reader) readAll(ctx context.Context, reason Reason, from, to time.Time) (Polled, error) {
	var sum Polled
	for _, g := range windows(from, to) {
		read, err := r.readWindow(ctx, reason, g.From, g.To)
		sum = sum.plus(read.polled())
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// windows cuts a stretch into pieces that the gateway answers.
func windows(from, to time.Time) []Stretch {
	from, to = from.Truncate(time.Second), to.Truncate(time.Second)
	var all []Stretch
	for from.Before(to) {
		end := from.Add(windowMax)
		if end.After(to) {
			end = to
		}
		all = append(all, Stretch{from, end})
		from = end
	}
	return all
}

// takeUpWithin is how old a read may be that is gone on with; an older one is given up, and its window read anew.
const takeUpWithin = day

// takeUp goes on with the reads of one reason that a reader left in the middle: it died, or lost its lock. The pages
// it wrote stay, the next is asked for after its cursor. Whoever it was can write no more of them: their turn is over.
// Reads of which nothing was written, or too old, are given up.
func (r reader) takeUp(ctx context.Context, reason Reason) (Polled, error) {
	var sum Polled
	now := r.cfg.now()
	if _, err := r.cfg.DB.Exec(ctx, `
		UPDATE list_runs SET result = 'failed', ended_at = @now, error = 'interrupted'
		WHERE result = 'running' AND (cursor = '' OR started_at < @stale)`,
		pgx.StrictNamedArgs{"now": now, "stale": now.Add(-takeUpWithin)}); err != nil {
		return sum, fmt.Errorf("give up interrupted reads of the list: %w", err)
	}
	rows, err := r.cfg.DB.Query(ctx, `
		UPDATE list_runs SET turn = turn + 1
		WHERE result = 'running' AND reason = @reason
		RETURNING run_id, turn, reason, window_from, window_to, started_at, pages, rows, fresh, quarantined, cursor`,
		pgx.StrictNamedArgs{"reason": string(reason)})
	if err != nil {
		return sum, fmt.Errorf("take up interrupted reads of the list: %w", err)
	}
	left, err := pgx.CollectRows(rows, pgx.RowToStructByName[read])
	if err != nil {
		return sum, fmt.Errorf("take up interrupted reads of the list: %w", err)
	}
	for _, w := range left {
		r.cfg.Log.InfoContext(ctx, "going on with an interrupted read of the list", slog.Int64("run_id", w.Run),
			slog.Time("from", w.From), slog.Time("to", w.To), slog.Int("pages", w.Pages))
		w, err := r.finish(ctx, w)
		sum = sum.plus(w.polled())
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}
