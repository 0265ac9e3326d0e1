package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
)

const (
	// overlapMax is how much of the list every poll reads again: rows become visible late.
	overlapMax = 15 * time.Minute
	// rereadDays is how far back the daily read goes: the time in which a notice can still come.
	rereadDays = 4
	// windowMax is the longest window of one read.
	windowMax = 24 * time.Hour
	// makeUpMax is how much of what was never read one poll makes up for.
	makeUpMax = 7 * day
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

func (p Polled) plus(q Polled) Polled {
	return Polled{
		Windows: p.Windows + q.Windows, Pages: p.Pages + q.Pages, Rows: p.Rows + q.Rows, Fresh: p.Fresh + q.Fresh,
		Quarantined: p.Quarantined + q.Quarantined,
	}
}

// Mirror copies the gateway's list of transactions.
type Mirror struct{ cfg Config }

// ErrBusy reports that another instance is reading the list. It is no success: nothing was read here.
var ErrBusy = errors.New("the gateway's list is being read by another instance")

// Poll reads what is new: from the end of the last complete poll, and some minutes before it, until now. After a
// pause of any length it reads everything missed. What was never read since the books opened, because the opening was
// set to an earlier instant later, say, is made up for in pieces.
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
		sum, err := m.readAll(ctx, ReasonPoll, from, now)
		if err != nil {
			return sum, err
		}
		made, err := m.makeUp(ctx, now)
		return sum.plus(made), err
	})
}

// Reread reads the last days again: rows that came late, and rows that changed.
func (m *Mirror) Reread(ctx context.Context) (Polled, error) {
	now := m.cfg.now()
	return m.locked(ctx, func() (Polled, error) { return m.readAll(ctx, ReasonReread, now.Add(-rereadDays*day), now) })
}

// RereadNightly is Reread once a night. The reads themselves say whether tonight's is done, so that one that failed or
// found another reader is made up for by the next call.
func (m *Mirror) RereadNightly(ctx context.Context) (Polled, error) {
	now := m.cfg.now()
	rows, err := m.cfg.DB.Query(ctx, `
		SELECT COALESCE(range_agg(tstzrange(window_from, window_to, '[]')) @> tstzrange(@from, @night), false)
		FROM list_runs
		WHERE started_at >= @night AND reason = 'reread' AND result = 'complete'`,
		pgx.StrictNamedArgs{"from": now.Add(-rereadDays * day), "night": lastNight(now)})
	if err != nil {
		return Polled{}, fmt.Errorf("look for tonight's read of the list: %w", err)
	}
	done, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
	if err != nil {
		return Polled{}, fmt.Errorf("look for tonight's read of the list: %w", err)
	}
	if done {
		return Polled{}, nil
	}
	return m.Reread(ctx)
}

// lastNight is half past four in Seoul, when few buy anything.
func lastNight(now time.Time) time.Time {
	night := ledger.DayOf(now).Start().Add(4*time.Hour + 30*time.Minute)
	if night.After(now) {
		return night.Add(-day)
	}
	return night
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

// gap is a stretch of time for which the list was never read completely.
type gap struct {
	From time.Time `db:"from"`
	To   time.Time `db:"to"`
}

// makeUp reads the oldest gap since the books were opened, some days of it at a time: what is new comes first.
func (m *Mirror) makeUp(ctx context.Context, now time.Time) (Polled, error) {
	to := now.Truncate(time.Second)
	if m.cfg.OpeningAt.IsZero() || !m.cfg.OpeningAt.Before(to) {
		return Polled{}, nil
	}
	rows, err := m.cfg.DB.Query(ctx, `
		SELECT lower(g) AS from, upper(g) AS to
		FROM list_covered, unnest(tstzmultirange(tstzrange(@opening, @to)) - stretches) AS g
		ORDER BY g
		LIMIT 1`,
		pgx.StrictNamedArgs{"opening": m.cfg.OpeningAt, "to": to})
	if err != nil {
		return Polled{}, fmt.Errorf("look for what was never read: %w", err)
	}
	gaps, err := pgx.CollectRows(rows, pgx.RowToStructByName[gap])
	if err != nil {
		return Polled{}, fmt.Errorf("look for what was never read: %w", err)
	}
	if len(gaps) == 0 {
		return Polled{}, nil
	}
	g := gaps[0]
	if most := g.From.Add(makeUpMax); g.To.After(most) {
		g.To = most
	}
	return m.readAll(ctx, ReasonBackfill, g.From, g.To)
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
