package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// makeUpMax is how many windows of what was never read one poll makes up for.
	makeUpMax = 7
	// makeUpFor is when a poll stops making up: the next one brings what is new.
	makeUpFor = time.Minute
	// A window that could not be read is tried again after a minute, then after twice as long, up to an hour.
	makeUpAgain     = time.Minute
	makeUpAgainMost = time.Hour
)

// Stretch is a stretch of time: from its first instant up to, and without, its end.
type Stretch struct {
	From time.Time `db:"from" json:"from"`
	To   time.Time `db:"to"   json:"to"`
}

// makeUp reads what was never read since the books were opened, oldest first, some windows at a time. A window that
// cannot be read waits longer each time and holds up no other.
func (r reader) makeUp(ctx context.Context, now time.Time) (Polled, error) {
	sum, err := r.takeUp(ctx, ReasonMakeUp)
	if err != nil {
		return sum, err
	}
	to := now.Truncate(time.Second)
	if r.cfg.OpeningAt.IsZero() || !r.cfg.OpeningAt.Before(to) {
		return sum, nil
	}
	owed, err := r.owed(ctx, to, now)
	if err != nil {
		return sum, err
	}
	for _, w := range owed[:min(len(owed), makeUpMax)] {
		if r.cfg.now().Sub(now) > makeUpFor {
			break
		}
		if err := r.pace(ctx); err != nil {
			return sum, err
		}
		read, err := r.readWindow(ctx, ReasonMakeUp, w.From, w.To)
		sum = sum.plus(read.polled())
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// owed lists the windows that were never read and are not waiting for their next try.
func (r reader) owed(ctx context.Context, to, now time.Time) ([]Stretch, error) {
	gaps, err := r.gaps(ctx, r.cfg.OpeningAt, to)
	if err != nil || len(gaps) == 0 {
		return nil, err
	}
	waiting, err := r.waiting(ctx, now)
	if err != nil {
		return nil, err
	}
	var owed []Stretch
	for _, g := range gaps {
		for _, w := range windows(g.From, g.To) {
			if !waiting[w.From.Unix()] {
				owed = append(owed, w)
			}
		}
	}
	return owed, nil
}

// gaps is what was never read of a stretch, oldest first.
func (m *Mirror) gaps(ctx context.Context, from, to time.Time) ([]Stretch, error) {
	rows, err := m.cfg.DB.Query(ctx, `
		SELECT lower(g) AS from, upper(g) AS to
		FROM (SELECT COALESCE((SELECT stretches FROM list_covered), '{}') AS stretches) AS c,
			unnest(tstzmultirange(tstzrange(@from, @to)) - c.stretches) AS g
		ORDER BY g`,
		pgx.StrictNamedArgs{"from": from.Truncate(time.Second), "to": to.Truncate(time.Second)})
	if err != nil {
		return nil, fmt.Errorf("look for what was never read: %w", err)
	}
	gaps, err := pgx.CollectRows(rows, pgx.RowToStructByName[Stretch])
	if err != nil {
		return nil, fmt.Errorf("look for what was never read: %w", err)
	}
	return gaps, nil
}

// waiting names the windows, by their beginning, whose last reads failed and whose next is not due.
func (m *Mirror) waiting(ctx context.Context, now time.Time) (map[int64]bool, error) {
	rows, err := m.cfg.DB.Query(ctx, `
		SELECT extract(epoch FROM window_from)::bigint
		FROM (
			SELECT window_from, ended_at FROM list_runs
			WHERE reason = 'make_up' AND result = 'failed' AND error <> 'interrupted' AND started_at > @since
			ORDER BY run_id DESC
			LIMIT 1000) AS failed
		GROUP BY window_from
		HAVING max(ended_at) + LEAST(@most::interval, @again::interval * power(2, LEAST(count(*), 10) - 1)) > @now`,
		pgx.StrictNamedArgs{"since": now.Add(-day), "most": makeUpAgainMost, "again": makeUpAgain, "now": now})
	if err != nil {
		return nil, fmt.Errorf("look for windows that could not be read: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("look for windows that could not be read: %w", err)
	}
	waiting := make(map[int64]bool, len(found))
	for _, at := range found {
		waiting[at] = true
	}
	return waiting, nil
}

// pace keeps reads of the past apart: the gateway counts calls by the minute, and what is new goes before.
func (m *Mirror) pace(ctx context.Context) error {
	if m.cfg.Pace <= 0 {
		return ctx.Err()
	}
	return wait(ctx, m.cfg.Pace)
}
