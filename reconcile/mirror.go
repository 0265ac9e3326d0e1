package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
)

const (
	// overlapMax is how much of the list every poll reads again: rows become visible late.
	overlapMax = 15 * time.Minute
	// rereadDays is how far back the daily read goes: the time in which a notice can still come.
	rereadDays = 4
	// windowMax is the longest window of one read.
	windowMax = 24 * time.Hour
	// listLock is the advisory lock that lets one process read the list at a time: the gateway refuses an abnormal
	// number of calls, and two readers would judge each other's rows.
	listLock = 0x6461657361_01
)

// Reason says why the list was read.
type Reason string

// The reasons.
const (
	ReasonPoll     Reason = "poll"
	ReasonReread   Reason = "reread"
	ReasonBackfill Reason = "backfill"
)

// Reasons lists every reason.
func Reasons() []Reason { return []Reason{ReasonPoll, ReasonReread, ReasonBackfill} }

// Polled is what reading the list came to.
type Polled struct {
	Busy        bool // another process is reading; nothing was done
	Windows     int
	Pages       int
	Rows        int
	Fresh       int // rows never seen before
	Quarantined int
}

// Mirror copies the gateway's list of transactions.
type Mirror struct{ cfg Config }

// Poll reads what is new: from the end of the last complete read, and some minutes before it, until now. After a
// pause of any length it reads everything missed.
func (m *Mirror) Poll(ctx context.Context) (Polled, error) {
	now := m.cfg.now()
	return m.locked(ctx, func() (Polled, error) {
		from, err := m.readUpTo(ctx)
		if err != nil {
			return Polled{}, err
		}
		switch {
		case !from.IsZero():
			from = from.Add(-overlapMax)
		case !m.cfg.OpeningAt.IsZero():
			from = m.cfg.OpeningAt
		default:
			from = now.Add(-rereadDays * day)
		}
		return m.readAll(ctx, ReasonPoll, from, now)
	})
}

// Reread reads the last days again: rows that came late, and rows that changed.
func (m *Mirror) Reread(ctx context.Context) (Polled, error) {
	now := m.cfg.now()
	return m.locked(ctx, func() (Polled, error) { return m.readAll(ctx, ReasonReread, now.Add(-rereadDays*day), now) })
}

// Backfill reads any stretch of time, as far back as a person wants.
func (m *Mirror) Backfill(ctx context.Context, from, to time.Time) (Polled, error) {
	return m.locked(ctx, func() (Polled, error) { return m.readAll(ctx, ReasonBackfill, from, to) })
}

// readUpTo is where the last complete poll ended; zero when there was none.
func (m *Mirror) readUpTo(ctx context.Context) (time.Time, error) {
	rows, err := m.cfg.DB.Query(ctx, `
		SELECT COALESCE(max(window_to), 'epoch') FROM list_runs WHERE result = 'complete' AND reason = 'poll'`)
	if err != nil {
		return time.Time{}, fmt.Errorf("find the last read of the list: %w", err)
	}
	end, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[time.Time])
	if err != nil {
		return time.Time{}, fmt.Errorf("find the last read of the list: %w", err)
	}
	if end.Unix() == 0 {
		return time.Time{}, nil
	}
	return end, nil
}

// readAll reads window after window, oldest first, and stops at the first that fails: a later one would move the end
// of what was read past a gap.
func (m *Mirror) readAll(ctx context.Context, reason Reason, from, to time.Time) (Polled, error) {
	from, to = from.Truncate(time.Second), to.Truncate(time.Second)
	var sum Polled
	for from.Before(to) {
		end := from.Add(windowMax)
		if end.After(to) {
			end = to
		}
		read, err := m.readWindow(ctx, reason, from, end)
		sum.Windows++
		sum.Pages += read.pages
		sum.Rows += read.rows
		sum.Fresh += read.fresh
		sum.Quarantined += read.quarantined
		if err != nil {
			return sum, err
		}
		from = end
	}
	return sum, nil
}

// locked runs read while this process holds the lock. The lock belongs to a database session, so a crash frees it.
func (m *Mirror) locked(ctx context.Context, read func() (Polled, error)) (p Polled, err error) {
	conn, err := m.cfg.DB.Acquire(ctx)
	if err != nil {
		return Polled{}, fmt.Errorf("take the lock of the list: %w", err)
	}
	defer conn.Release()
	var held bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, int64(listLock)).Scan(&held); err != nil {
		return Polled{}, fmt.Errorf("take the lock of the list: %w", err)
	}
	if !held {
		return Polled{Busy: true}, nil
	}
	defer func() {
		free, stop := detached(ctx, 5*time.Second)
		defer stop()
		if _, unlockErr := conn.Exec(free, `SELECT pg_advisory_unlock($1)`, int64(listLock)); unlockErr != nil {
			err = errors.Join(err, fmt.Errorf("free the lock of the list: %w", unlockErr), conn.Conn().Close(free))
		}
	}()
	return read()
}

// inTx is a transaction of the mirror's.
func (m *Mirror) inTx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return postgres.InTx(ctx, m.cfg.DB, fn)
}
