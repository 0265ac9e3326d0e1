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

const (
	// overlapMax is how much of the list every poll reads again: rows become visible late.
	overlapMax = 15 * time.Minute
	// rereadDays is how far back the daily read goes: the time in which a notice can still come.
	rereadDays = 4
	// windowMax is the longest window of one read.
	windowMax = 24 * time.Hour
)

// Reason says why the list was read.
type Reason string

// The reasons.
const (
	ReasonPoll     Reason = "poll"
	ReasonReread   Reason = "reread"
	ReasonBackfill Reason = "backfill" // somebody asked for a stretch of the past
	ReasonMakeUp   Reason = "make_up"  // what was never read since the books were opened
)

// Reasons lists every reason.
func Reasons() []Reason { return []Reason{ReasonPoll, ReasonReread, ReasonBackfill, ReasonMakeUp} }

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

var (
	// ErrBusy reports that another instance is reading the list. It is no success: nothing was read here.
	ErrBusy = errors.New("the gateway's list is being read by another instance")
	// ErrPaused reports that the gateway has refused by rate and is left alone for a while. Nothing was read.
	ErrPaused = errors.New("the gateway refused to show its list so often and is left alone")
)

// Poll reads what is new: from the end of the last complete poll, and some minutes before it, until now. After a
// pause of any length it reads everything missed. A poll that ended in the future, because every clock was ahead, counts
// only up to now. What was never read since the books opened, because the opening was
// set to an earlier instant later, say, is made up for in pieces; that it cannot be read takes nothing from what is new.
func (m *Mirror) Poll(ctx context.Context) (Polled, error) { return m.poll(ctx, 0) }

// poll is Poll that waits for another reader for so long.
func (m *Mirror) poll(ctx context.Context, patience time.Duration) (Polled, error) {
	return m.locked(ctx, patience, func(r reader) (Polled, error) {
		if err := m.cfg.keepSettings(ctx); err != nil {
			return Polled{}, err
		}
		sum, err := r.takeUp(ctx, ReasonPoll)
		if err != nil {
			return sum, err
		}
		now := m.cfg.now()
		from, err := m.readUpTo(ctx)
		if err != nil {
			return sum, err
		}
		switch {
		case !from.IsZero():
			from = earlier(from, now).Add(-overlapMax)
		case !m.cfg.OpeningAt.IsZero():
			from = m.cfg.OpeningAt
		default:
			from = now.Add(-rereadDays * day)
		}
		if err := m.unreadFuture(ctx, now); err != nil {
			return sum, err
		}
		read, err := r.readAll(ctx, ReasonPoll, from, now)
		sum = sum.plus(read)
		if err != nil {
			return sum, err
		}
		made, err := r.makeUp(ctx, now)
		if err != nil {
			m.cfg.Log.WarnContext(ctx, "what was never read could not be made up for; what is new was read", slog.Any("error", err))
		}
		return sum.plus(made), nil
	})
}

// Reread reads the last days again: rows that came late, and rows that changed.
func (m *Mirror) Reread(ctx context.Context) (Polled, error) {
	now := m.cfg.now()
	return m.locked(ctx, 0, func(r reader) (Polled, error) { return r.readAll(ctx, ReasonReread, now.Add(-rereadDays*day), now) })
}

// RereadNightly is Reread once a night. The reads themselves say what of tonight's is done, so that one that failed,
// died or found another reader is gone on with by the next call.
func (m *Mirror) RereadNightly(ctx context.Context) (Polled, error) {
	now := m.cfg.now()
	night := lastNight(now)
	left, err := m.unreadTonight(ctx, now, night)
	if err != nil || len(left) == 0 {
		return Polled{}, err
	}
	return m.locked(ctx, 0, func(r reader) (Polled, error) {
		sum, err := r.takeUp(ctx, ReasonReread)
		if err != nil {
			return sum, err
		}
		if left, err = m.unreadTonight(ctx, now, night); err != nil {
			return sum, err
		}
		for n, g := range left {
			if n == len(left)-1 && g.To.Equal(night) {
				g.To = now // the list has gone on since
			}
			read, err := r.readAll(ctx, ReasonReread, g.From, g.To)
			sum = sum.plus(read)
			if err != nil {
				return sum, err
			}
		}
		return sum, nil
	})
}

// unreadTonight is what of the last days has not been read again since the night began.
func (m *Mirror) unreadTonight(ctx context.Context, now, night time.Time) ([]Stretch, error) {
	rows, err := m.cfg.DB.Query(ctx, `
		WITH done AS (
			SELECT COALESCE(range_agg(tstzrange(window_from, window_to, '[]')), '{}') AS stretches
			FROM list_runs
			WHERE started_at >= @night AND reason = 'reread' AND result = 'complete')
		SELECT lower(g) AS from, upper(g) AS to
		FROM done, unnest(tstzmultirange(tstzrange(@from, @night)) - stretches) AS g
		ORDER BY g`,
		pgx.StrictNamedArgs{"from": now.Add(-rereadDays * day).Truncate(time.Second), "night": night})
	if err != nil {
		return nil, fmt.Errorf("look for tonight's read of the list: %w", err)
	}
	left, err := pgx.CollectRows(rows, pgx.RowToStructByName[Stretch])
	if err != nil {
		return nil, fmt.Errorf("look for tonight's read of the list: %w", err)
	}
	return left, nil
}

// lastNight is half past four in Seoul, when few buy anything.
func lastNight(now time.Time) time.Time {
	night := ledger.DayOf(now).Start().Add(4*time.Hour + 30*time.Minute)
	if night.After(now) {
		return night.Add(-day)
	}
	return night
}

// Backfill reads any stretch of time again, as far back as a person wants.
func (m *Mirror) Backfill(ctx context.Context, from, to time.Time) (Polled, error) {
	return m.locked(ctx, 0, func(r reader) (Polled, error) { return r.readAll(ctx, ReasonBackfill, from, to) })
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

// unreadFuture takes back what a reader whose clock was ahead noted as covered: what has not come cannot have been read.
func (m *Mirror) unreadFuture(ctx context.Context, now time.Time) error {
	_, err := m.cfg.DB.Exec(ctx, `
		UPDATE list_covered
		SET stretches = stretches * tstzmultirange(tstzrange(NULL, @now, '[]'))
		WHERE upper(stretches) > @now`, pgx.StrictNamedArgs{"now": now})
	if err != nil {
		return fmt.Errorf("take back what of the list lies ahead: %w", err)
	}
	return nil
}

// earlier is the earlier of two instants.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// inTx is a transaction of the mirror's. That of a command that opens the books or reads the past is refused once the
// service goes by other settings, also in the middle of a long stretch.
func (m *Mirror) inTx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return postgres.InTx(ctx, m.cfg.DB, func(tx pgx.Tx) error {
		if m.cfg.Beside {
			if err := RequireSettings(ctx, tx, m.cfg, true); err != nil {
				return err
			}
		}
		return fn(tx)
	})
}
