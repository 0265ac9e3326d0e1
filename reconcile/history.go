package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

const (
	// historyPatience is how long somebody who reads the past waits for the lock before saying so.
	historyPatience = 2 * time.Second
	// historyAgain is how long to wait before asking whether a pause of the gateway's is over.
	historyAgain = 5 * time.Second
)

// History is a stretch of the past that somebody wants read.
type History struct {
	From, To time.Time
	Again    bool // also what was read before
	// Progress hears of every window before it is read and after it was, and of every wait.
	Progress func(HistoryProgress)
}

// HistoryProgress is how far the reading of a History has come.
type HistoryProgress struct {
	Window  int // the one in hand, from 1
	Windows int
	Stretch Stretch // the window in hand
	Waiting string  // for whom, "" while reading
	Ended   bool    // the window was read
	Sum     Polled  // of all windows so far
}

// HistoryRead is what the reading of a History came to.
type HistoryRead struct {
	Polled

	Covered []Stretch // read before, and not again
	Left    []Stretch // not read: somebody stopped it, or it failed
}

// ReadHistory reads a stretch of the past, window after window. It holds the lock for one window at a time and leaves
// room between them, so that the service goes on reading what is new. What was read before is left out unless it is
// asked for again; a read that stopped, or died, is gone on with by the next call. The error is why something is left.
func (m *Mirror) ReadHistory(ctx context.Context, h History) (HistoryRead, error) {
	var done HistoryRead
	if now := m.cfg.now(); h.To.After(now) {
		h.To = now
	}
	if h.Progress == nil {
		h.Progress = func(HistoryProgress) {}
	}
	whole := windows(h.From, h.To)
	if len(whole) == 0 {
		return done, nil
	}
	taken, err := m.patiently(ctx, h, HistoryProgress{}, func(r reader) (Polled, error) { return r.takeUp(ctx, ReasonBackfill) })
	done.Polled = taken
	if err != nil {
		done.Left = whole
		return done, err
	}
	left := whole
	if !h.Again {
		if left, err = m.unread(ctx, h, &done); err != nil {
			return done, err
		}
	}
	err = m.readHistory(ctx, h, left, &done)
	return done, err
}

// readHistory reads the windows and notes what is left when it stops.
func (m *Mirror) readHistory(ctx context.Context, h History, left []Stretch, done *HistoryRead) error {
	for n, w := range left {
		if n > 0 {
			if err := m.pace(ctx); err != nil {
				done.Left = left[n:]
				return err
			}
		}
		p := HistoryProgress{Window: n + 1, Windows: len(left), Stretch: w, Sum: done.Polled}
		h.Progress(p)
		read, err := m.patiently(ctx, h, p, func(r reader) (Polled, error) { return r.readAll(ctx, ReasonBackfill, w.From, w.To) })
		done.Polled = done.plus(read)
		if err != nil {
			done.Left = left[n:]
			return err
		}
		p.Ended, p.Sum = true, done.Polled
		h.Progress(p)
	}
	return nil
}

// unread is what of the stretch was never read, in windows; what was is noted.
func (m *Mirror) unread(ctx context.Context, h History, done *HistoryRead) ([]Stretch, error) {
	gaps, err := m.gaps(ctx, h.From, h.To)
	if err != nil {
		return nil, err
	}
	var left []Stretch
	at := h.From
	for _, g := range append(gaps, Stretch{h.To, h.To}) {
		if g.From.After(at) {
			done.Covered = append(done.Covered, Stretch{at, g.From})
		}
		left = append(left, windows(g.From, g.To)...)
		at = g.To
	}
	return left, nil
}

// patiently reads while it holds the lock. Another reader, and a gateway that wants to be left alone, are waited for.
func (m *Mirror) patiently(ctx context.Context, h History, p HistoryProgress, read func(reader) (Polled, error)) (Polled, error) {
	for {
		got, err := m.locked(ctx, historyPatience, read)
		refused, _ := refusedByRate(err)
		switch {
		case ctx.Err() != nil:
			return got, ctx.Err()
		case got.Busy:
			p.Waiting = "another reader of the list"
			h.Progress(p)
		case refused || errors.Is(err, ErrPaused):
			p.Waiting = "the gateway, which refuses to be asked so often"
			h.Progress(p)
			if err := wait(ctx, historyAgain); err != nil {
				return got, err
			}
		default:
			return got, err
		}
	}
}

// HistoryDay is what both books know of one business day, or of the part of it that was asked about.
type HistoryDay struct {
	Day        ledger.Day `db:"day"        json:"day"`
	Whole      bool       `db:"whole"      json:"whole"` // the list was read completely
	Rows       int        `db:"rows"       json:"rows"`
	Captures   int        `db:"captures"   json:"captures"`
	Cancels    int        `db:"cancels"    json:"cancels"`
	Foreign    int        `db:"foreign"    json:"foreign"`
	Before     int        `db:"before"     json:"before_opening"`
	Booked     int        `db:"booked"     json:"booked"`     // captures and cancels that are in our books
	Work       int        `db:"work"       json:"work"`       // that somebody is asking about
	Mismatches int        `db:"mismatches" json:"mismatches"` // that are an open mismatch
}

// HistoryDays tells what is known of each day of a stretch.
func (m *Mirror) HistoryDays(ctx context.Context, from, to time.Time) ([]HistoryDay, error) {
	if !from.Before(to) {
		return nil, nil
	}
	from, to = from.Truncate(time.Second), to.Truncate(time.Second)
	rows, err := m.cfg.DB.Query(ctx, `
		WITH days AS (
			SELECT d::date AS day, GREATEST(d AT TIME ZONE 'Asia/Seoul', @from) AS since,
				LEAST((d + interval '1 day') AT TIME ZONE 'Asia/Seoul', @to) AS until
			FROM generate_series(@first::date::timestamp, @last::date, interval '1 day') AS d)
		SELECT to_char(d.day, 'YYYY-MM-DD') AS day,
			COALESCE((SELECT c.stretches @> tstzrange(d.since, d.until) FROM list_covered c), false) AS whole,
			g.rows, g.captures, g.cancels, g.foreign, g.before, g.booked, g.work, g.mismatches
		FROM days d
		CROSS JOIN LATERAL (
			SELECT count(*)::integer AS rows,
				count(*) FILTER (WHERE g.kind = 'capture')::integer AS captures,
				count(*) FILTER (WHERE g.kind = 'cancel')::integer AS cancels,
				count(*) FILTER (WHERE g.is_foreign)::integer AS foreign,
				count(*) FILTER (WHERE g.at < @opening)::integer AS before,
				count(*) FILTER (WHERE EXISTS (SELECT 1 FROM cancels c WHERE c.transaction_key = g.transaction_key OFFSET 0)
					OR EXISTS (SELECT 1 FROM captures c WHERE c.payment_key = g.payment_key AND c.transaction_key = g.transaction_key OFFSET 0))::integer AS booked,
				count(*) FILTER (WHERE EXISTS (SELECT 1 FROM work w WHERE w.payment_key = g.payment_key AND w.closed_at IS NULL
					AND (w.transaction_key = g.transaction_key OR (w.kind = 'confirm_unknown' AND g.kind = 'capture')) OFFSET 0))::integer AS work,
				count(*) FILTER (WHERE EXISTS (SELECT 1 FROM mismatches m WHERE m.payment_key = g.payment_key AND m.status <> 'resolved'
					AND (m.transaction_key = g.transaction_key OR m.transaction_key IS NULL) OFFSET 0))::integer AS mismatches
			FROM mirror g
			WHERE g.at >= d.since AND g.at < d.until) AS g
		ORDER BY d.day`,
		pgx.StrictNamedArgs{
			"from": from, "to": to, "opening": m.cfg.OpeningAt, "first": string(ledger.DayOf(from)),
			"last": string(ledger.DayOf(to.Add(-time.Second))),
		})
	if err != nil {
		return nil, fmt.Errorf("tell the days of the list: %w", err)
	}
	days, err := pgx.CollectRows(rows, pgx.RowToStructByName[HistoryDay])
	if err != nil {
		return nil, fmt.Errorf("tell the days of the list: %w", err)
	}
	return days, nil
}

// wait waits, unless somebody stops it.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
