package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// ErrNoClosing means that no closing run of the day was ever made.
var ErrNoClosing = errors.New("the day was never closed")

// Signed says how a day stands to the signatures on it.
type Signed string

// The ways.
const (
	SignedNot     Signed = "no"
	SignedYes     Signed = "yes"
	SignedChanged Signed = "changed" // the day says something else now than what was signed
)

// DaySummary is one business day in a list of days.
type DaySummary struct {
	Day       ledger.Day `json:"day"`
	Verdict   Verdict    `json:"verdict"` // of the newest closing run; empty: there is none yet
	RunID     int64      `json:"run_id,omitempty"`
	StartedAt *time.Time `json:"started_at,omitempty"`
	Digest    string     `json:"digest,omitempty"`
	Sums      []Sum      `json:"sums"`
	Breaks    int        `json:"breaks"`
	Signed    Signed     `json:"signed"`
	Signature *Signature `json:"signature,omitempty"` // the newest
}

// DayDetail is one business day with everything said and signed about it.
type DayDetail struct {
	Day        ledger.Day  `json:"day"`
	Signed     Signed      `json:"signed"`
	Signatures []Signature `json:"signatures"`
	Runs       []DayRun    `json:"runs"`             // newest first, bounded
	Statement  Statement   `json:"statement"`        // of the newest closing run
	Closed     string      `json:"closed,omitempty"` // what the digest is of; empty where the newest run did not see the whole day
}

// DayRun is one closing run of a day.
type DayRun struct {
	RunID     int64     `json:"run_id" db:"run_id"`
	StartedAt time.Time `json:"started_at" db:"started_at"`
	Verdict   Verdict   `json:"verdict" db:"verdict"`
	Digest    string    `json:"digest,omitempty" db:"digest"`
}

// DaysMax bounds one list of days, runsListed one list of a day's runs.
const (
	DaysMax    = 400
	runsListed = 50
)

// ErrDays means that a list of days is asked for that would end before it begins.
var ErrDays = errors.New("a list of days ends on or after the day it begins")

// LastEnded is the newest business day that has ended.
func LastEnded(now time.Time) ledger.Day {
	return ledger.DayOf(ledger.DayOf(now).Start().Add(-time.Hour))
}

// daySummaryRow is one day as the query has it.
type daySummaryRow struct {
	Day         ledger.Day    `db:"day"`
	Verdict     Verdict       `db:"verdict"`
	RunID       int64         `db:"run_id"`
	StartedAt   *time.Time    `db:"started_at"`
	Digest      string        `db:"digest"`
	Sums        []Sum         `db:"sums"`
	Breaks      int           `db:"breaks"`
	SignedBy    *ledger.Actor `db:"signed_by"`
	SignedAt    *time.Time    `db:"signed_at"`
	SignedRun   *int64        `db:"signed_run"`
	SignedAs    *string       `db:"signed_as"`
	JournalHead *string       `db:"journal_head"`
	Note        *string       `db:"note"`
	BookedUpTo  *int64        `db:"booked_up_to"`
	SealedThen  *bool         `db:"sealed_then"`
	SealedBy    *string       `db:"sealed_by"`
	Stands      *bool         `db:"stands"`
}

// Days lists the business days of a stretch, newest first, from the first that was ever closed to the last that has
// ended: one that has no closing run yet is there too. At most the newest DaysMax are listed. ErrDays.
func (a *Auditor) Days(ctx context.Context, from, to ledger.Day) ([]DaySummary, error) {
	if from > to {
		return nil, fmt.Errorf("%s to %s: %w", from, to, ErrDays)
	}
	if last := LastEnded(a.cfg.now()); to > last {
		to = last
	}
	rows, err := a.cfg.DB.Query(ctx, `
		SELECT to_char(d, 'YYYY-MM-DD') AS day, COALESCE(r.verdict, '') AS verdict, COALESCE(r.run_id, 0) AS run_id, r.started_at,
			COALESCE(encode(r.digest, 'hex'), '') AS digest,
			CASE WHEN jsonb_typeof(r.statement->'sums') = 'array' THEN r.statement->'sums' ELSE '[]' END AS sums,
			COALESCE((SELECT sum((l->>'count')::integer)
				FROM jsonb_array_elements(CASE WHEN jsonb_typeof(r.statement->'lines') = 'array' THEN r.statement->'lines' ELSE '[]' END) AS l
				WHERE l->>'name' = 'breaks'), 0)::integer AS breaks,
			g.signed_by, g.signed_at, g.run_id AS signed_run, encode(g.digest, 'hex') AS signed_as, g.journal_head, g.note,
			g.booked_up_to, g.sealed_then, g.sealed_by,
			g.facts = w.facts AS stands
		FROM generate_series(
			GREATEST(@from::date, (SELECT min(day) FROM audit_runs WHERE scope = 'day' AND day IS NOT NULL))::timestamp,
			@to::date, interval '1 day') AS d
		LEFT JOIN LATERAL (
			SELECT x.verdict, x.run_id, x.started_at, x.digest, x.statement FROM audit_runs x
			WHERE x.scope = 'day' AND x.day = d::date
			ORDER BY x.started_at DESC, x.run_id DESC
			LIMIT 1) r ON true
		LEFT JOIN LATERAL (
			SELECT x.facts FROM audit_runs x
			WHERE x.day = d::date AND x.closed IS NOT NULL
			ORDER BY x.run_id DESC
			LIMIT 1) w ON true
		LEFT JOIN LATERAL (
			SELECT x.signed_by, x.signed_at, x.run_id, x.digest, x.facts, x.journal_head, x.note, `+sealingColumns+`
			FROM day_signoffs x
			WHERE x.day = d::date
			ORDER BY x.signoff_id DESC
			LIMIT 1) g ON true
		WHERE EXISTS (SELECT 1 FROM audit_runs x WHERE x.scope = 'day' AND x.day IS NOT NULL)
		ORDER BY d DESC
		LIMIT @limit`,
		pgx.StrictNamedArgs{"from": string(from), "to": string(to), "limit": DaysMax})
	if err != nil {
		return nil, fmt.Errorf("list the days: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[daySummaryRow])
	if err != nil {
		return nil, fmt.Errorf("list the days: %w", err)
	}
	days := make([]DaySummary, 0, len(found))
	for _, r := range found {
		days = append(days, r.summary())
	}
	return days, nil
}

func (r daySummaryRow) summary() DaySummary {
	d := DaySummary{
		Day: r.Day, Verdict: r.Verdict, RunID: r.RunID, Digest: r.Digest, Sums: r.Sums, Breaks: r.Breaks, Signed: SignedNot,
	}
	if r.StartedAt != nil {
		at := r.StartedAt.UTC()
		d.StartedAt = &at
	}
	if r.SignedBy == nil {
		return d
	}
	d.Signed = SignedChanged
	if r.Stands != nil && *r.Stands {
		d.Signed = SignedYes
	}
	by := sealing{BookedUpTo: r.BookedUpTo, Then: r.SealedThen != nil && *r.SealedThen, By: r.SealedBy}
	d.Signature = &Signature{
		Day: r.Day, SignedBy: *r.SignedBy, SignedAt: r.SignedAt.UTC(), RunID: *r.SignedRun, Digest: *r.SignedAs,
		JournalHead: r.JournalHead, Note: *r.Note, BookedUpTo: by.BookedUpTo, Sealed: by.sealed(), SealedBy: by.By,
	}
	return d
}

// Day reads everything that was said and signed about a business day. A day without a closing run gives ErrNoClosing.
func (a *Auditor) Day(ctx context.Context, day ledger.Day) (DayDetail, error) {
	rows, err := a.cfg.DB.Query(ctx, `
		SELECT run_id, started_at, verdict, COALESCE(encode(digest, 'hex'), '') AS digest
		FROM audit_runs
		WHERE scope = 'day' AND day = @day::date
		ORDER BY started_at DESC, run_id DESC
		LIMIT @limit`, pgx.StrictNamedArgs{"day": string(day), "limit": runsListed})
	if err != nil {
		return DayDetail{}, fmt.Errorf("read the runs of %s: %w", day, err)
	}
	d := DayDetail{Day: day, Signed: SignedNot}
	if d.Runs, err = pgx.CollectRows(rows, pgx.RowToStructByName[DayRun]); err != nil {
		return DayDetail{}, fmt.Errorf("read the runs of %s: %w", day, err)
	}
	if len(d.Runs) == 0 {
		return DayDetail{}, fmt.Errorf("%s: %w", day, ErrNoClosing)
	}
	if d.Signatures, err = Signatures(ctx, a.cfg.DB, day); err != nil {
		return DayDetail{}, err
	}
	return d, a.statement(ctx, &d)
}

// statement adds the newest statement, and whether it says what was signed. A run that did not see the whole day tells
// nothing about that; the newest one that did is asked.
func (a *Auditor) statement(ctx context.Context, d *DayDetail) error {
	var facts string
	err := a.cfg.DB.QueryRow(ctx, `
		SELECT r.statement, COALESCE(convert_from(r.closed, 'UTF8'), ''),
			COALESCE((SELECT encode(w.facts, 'hex') FROM audit_runs w
				WHERE w.day = r.day AND w.closed IS NOT NULL
				ORDER BY w.run_id DESC
				LIMIT 1), '')
		FROM audit_runs r
		WHERE r.run_id = @run`, pgx.StrictNamedArgs{"run": d.Runs[0].RunID}).Scan(&d.Statement, &d.Closed, &facts)
	if err != nil {
		return fmt.Errorf("read the statement of %s: %w", d.Day, err)
	}
	d.Statement.RunID = d.Runs[0].RunID
	if n := len(d.Signatures); n > 0 {
		d.Signed = SignedChanged
		if d.Signatures[n-1].facts == facts {
			d.Signed = SignedYes
		}
	}
	for i := range d.Runs {
		d.Runs[i].StartedAt = d.Runs[i].StartedAt.UTC()
	}
	return nil
}
