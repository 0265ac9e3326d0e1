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
	closingDays      = 35
	notedMost        = 7 // how many days that are noted one look at all days takes up
	closeAgain       = time.Hour
	closeAgainUnread = 10 * time.Minute
	// commitsWithin is how much older than its commit the time in a row can be: what a closing run did not see may
	// bear a time from just before it.
	commitsWithin = time.Minute
)

// CloseDays audits every closed business day that has no settled audit yet, oldest first. Which days those are is read
// from the audits themselves, so that a day is closed however many ticks were missed. A day that could not be closed
// cleanly is looked at again: soon when the list was incomplete, hourly while something is pending or broken. A settled
// one is looked at again when either book learned of something that happened on it.
func (a *Auditor) CloseDays(ctx context.Context) ([]Statement, error) {
	days, err := a.openDays(ctx)
	if err != nil {
		return nil, err
	}
	var done []Statement
	var failed error
	for _, d := range days {
		s, err := a.Close(ctx, d)
		if err != nil {
			failed = errors.Join(failed, err)
			if ctx.Err() != nil {
				break
			}
			continue // a day that cannot be read must not keep the later ones open
		}
		done = append(done, s)
	}
	return done, failed
}

// closable are the business days d that are closed by themselves: those of the last weeks that have ended. Where the books
// were opened at a known instant they begin with its day, else with the first day that the list was read for from its very
// start.
const closable = `
			(SELECT (COALESCE(@opens, min(lower(stretches)) + interval '1 day' - interval '1 microsecond', @now) AT TIME ZONE 'Asia/Seoul')::date AS day
			FROM list_covered) AS began
			CROSS JOIN LATERAL generate_series(GREATEST(@oldest::date, began.day)::timestamp, @last::date, interval '1 day') AS d`

// closable adds what the days are named by to the arguments of a statement.
func (c Config) closable(now time.Time, args pgx.StrictNamedArgs) pgx.StrictNamedArgs {
	args["now"], args["opens"] = now, postgres.NullTime(c.OpeningAt)
	args["oldest"] = oldestClosed(now)
	args["last"] = string(LastEnded(now.Add(-c.ListLag)))
	return args
}

// noteUnclosed notes the business days of a series d that the list was read for, from the opening of the books or their start
// to the list's lag after their end, and that no run has seen whole. Without an opening nothing says where older books begin.
const noteUnclosed = `
			WHERE covers.stretches @> tstzrange(GREATEST(d AT TIME ZONE 'Asia/Seoul', @opens), (d + interval '1 day') AT TIME ZONE 'Asia/Seoul' + @lag::interval)
				AND (d + interval '1 day') AT TIME ZONE 'Asia/Seoul' > @opens
				AND NOT EXISTS (SELECT 1 FROM audit_runs a WHERE a.day = d::date AND a.closed IS NOT NULL OFFSET 0)
			ORDER BY d
			ON CONFLICT (day) DO UPDATE SET since = GREATEST(t.since, excluded.since)`

// noteReadable notes those of the days that a read which has ended touches, or to whose proof it belongs, that are older than
// those that are closed anyway: the books were opened long ago, or a gap was filled late. One that failed covers nothing.
const noteReadable = `
			INSERT INTO days_to_close AS t (day, since)
			SELECT d::date, @now
			FROM ended
			CROSS JOIN covered AS covers
			CROSS JOIN LATERAL generate_series(((window_from - @lag::interval) AT TIME ZONE 'Asia/Seoul')::date::timestamp,
				LEAST((window_to AT TIME ZONE 'Asia/Seoul')::date, @oldest::date - 1)::timestamp, interval '1 day') AS d` + noteUnclosed

// noteOld notes all of them, once a night: those of an opening that was moved back, of a service that closed no old days, or
// whose closing failed for as long as they were closed anyway.
func (a *Auditor) noteOld(ctx context.Context) error {
	now := a.cfg.now()
	_, err := a.cfg.DB.Exec(ctx, `
			INSERT INTO days_to_close AS t (day, since)
			SELECT d::date, @now
			FROM list_covered AS covers
			CROSS JOIN LATERAL generate_series((@opens AT TIME ZONE 'Asia/Seoul')::date::timestamp, @oldest::date - interval '1 day', interval '1 day') AS d`+noteUnclosed,
		pgx.StrictNamedArgs{"now": now, "opens": postgres.NullTime(a.cfg.OpeningAt), "lag": a.cfg.ListLag, "oldest": oldestClosed(now)})
	if err != nil {
		return fmt.Errorf("note old days that are not closed: %w", err)
	}
	return nil
}

// noted are those whose turn it is: what changed since it was closed first, then the ones that wait longest. One that could
// not be seen whole is looked at each hour, or at once when it is noted again.
const noted = `
			SELECT m.day FROM days_to_close m
			LEFT JOIN LATERAL (
				SELECT r.closed IS NOT NULL AS whole, r.started_at FROM audit_runs r
				WHERE r.scope = 'day' AND r.day = m.day
				ORDER BY r.started_at DESC
				LIMIT 1) r ON true
			WHERE m.day < @oldest::date AND (r.whole IS NULL
				OR (r.started_at <= @unread AND (r.whole OR r.started_at <= @again OR r.started_at < m.since)))
			ORDER BY r.whole IS NOT TRUE, r.started_at NULLS FIRST, m.day
			LIMIT @noted_most`

// oldestClosed is the first business day that is closed whether or not anything of it is noted.
func oldestClosed(now time.Time) string { return string(ledger.DayOf(now.Add(-closingDays * day))) }

// openDays lists the days to audit now, those of the last weeks first. Older ones are among them that are noted, because
// anything changed since they were closed or because the list was read for them only now: some at a time.
func (a *Auditor) openDays(ctx context.Context) ([]ledger.Day, error) {
	now := a.cfg.now()
	rows, err := a.cfg.DB.Query(ctx, `
		SELECT to_char(d, 'YYYY-MM-DD')
		FROM (SELECT d::date AS d FROM `+closable+`
			UNION
			(`+noted+`)) AS days
		LEFT JOIN LATERAL (
			SELECT r.verdict, r.started_at FROM audit_runs r
			WHERE r.scope = 'day' AND r.day = d::date
			ORDER BY r.started_at DESC
			LIMIT 1) r ON true
		WHERE r.verdict IS NULL
			OR (r.verdict IN ('incomplete', 'error') AND r.started_at <= @unread)
			OR (r.verdict IN ('breaks', 'reconciled_with_pending') AND r.started_at <= @again)
			OR (r.started_at <= @unread AND (
				EXISTS (SELECT 1 FROM days_to_close m WHERE m.day = d::date)
				OR EXISTS (SELECT 1 FROM mirror g WHERE g.day = d::date AND g.first_seen_at >= r.started_at - @commits_within::interval)
				OR EXISTS (SELECT 1 FROM mirror g WHERE g.day = d::date AND g.missing_since >= r.started_at - @commits_within::interval)
				OR EXISTS (SELECT 1 FROM cancels c WHERE (c.canceled_at AT TIME ZONE 'Asia/Seoul')::date = d::date
					AND c.recorded_at >= r.started_at - @commits_within::interval)
				OR EXISTS (SELECT 1 FROM captures c WHERE (c.captured_at AT TIME ZONE 'Asia/Seoul')::date = d::date
					AND c.recorded_at >= r.started_at - @commits_within::interval)))
		ORDER BY d < @oldest::date, d`,
		a.cfg.closable(now, pgx.StrictNamedArgs{
			"unread": now.Add(-closeAgainUnread), "again": now.Add(-closeAgain), "commits_within": commitsWithin, "noted_most": notedMost,
		}))
	if err != nil {
		return nil, fmt.Errorf("look for days to close: %w", err)
	}
	days, err := pgx.CollectRows(rows, pgx.RowTo[ledger.Day])
	if err != nil {
		return nil, fmt.Errorf("look for days to close: %w", err)
	}
	return days, nil
}

// RunNightly audits everything once a night. The audits themselves say whether tonight's is done, so that a missed tick
// is made up for; one that failed or could not tell is made again within the hour. After it, old days that are not closed
// are noted, and the books of the last weeks are held against the journal.
func (a *Auditor) RunNightly(ctx context.Context) (s Statement, ran bool, err error) {
	now := a.cfg.now()
	rows, err := a.cfg.DB.Query(ctx, `
		SELECT EXISTS (SELECT 1 FROM audit_runs
			WHERE scope = 'all' AND started_at >= @night AND (started_at > @again OR verdict NOT IN ('incomplete', 'error')))`,
		pgx.StrictNamedArgs{"night": lastNight(now), "again": now.Add(-closeAgain)})
	if err != nil {
		return Statement{}, false, fmt.Errorf("look for tonight's audit: %w", err)
	}
	done, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
	if err != nil {
		return Statement{}, false, fmt.Errorf("look for tonight's audit: %w", err)
	}
	if done {
		return Statement{}, false, nil
	}
	if s, err = a.Run(ctx, Scope{Name: ScopeAll}); err != nil {
		return s, true, err
	}
	if err := a.noteOld(ctx); err != nil {
		return s, true, err
	}
	return s, true, a.proveDays(ctx)
}
