package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/reconcile"
)

// ErrRange reports days that are no range.
var ErrRange = errors.New("a range ends on or after the day it begins, within ten years")

const rangeMax = 3660

// notAudited is the word for a day without an audit.
const notAudited = "not_audited"

// Range reports every day from one to another, both with it, by its newest audit, and their sums.
func (r *Reporter) Range(ctx context.Context, from, to ledger.Day, write func(Report) error) error {
	if n := to.Start().Sub(from.Start()) / (24 * time.Hour); n < 0 || n >= rangeMax {
		return fmt.Errorf("%s to %s: %w", from, to, ErrRange)
	}
	return r.snapshot(ctx, func(tx pgx.Tx) error {
		days, err := auditedDays(ctx, tx, from, to)
		if err != nil {
			return err
		}
		totals, err := totalsOf(days)
		if err != nil {
			return err
		}
		head, err := headFacts(ctx, tx, to)
		if err != nil {
			return err
		}
		return write(Report{
			Name:  "range",
			Facts: append(rangeFacts(from, to, days), head...),
			Tables: []Table{
				{Name: "days", Columns: rangeColumns(), Rows: list(rangeRows(days))},
				{Name: "totals", Columns: figureColumns(), Rows: list(totals)},
			},
		})
	})
}

// auditedDay is a day with its newest audit; without one there is no run.
type auditedDay struct {
	Day       ledger.Day          `db:"day"`
	RunID     *int64              `db:"run_id"`
	Verdict   reconcile.Verdict   `db:"verdict"`
	AsOf      *time.Time          `db:"as_of"`
	Statement reconcile.Statement `db:"statement"` // figures only
	Digest    string              `db:"digest"`
	Since     *reconcile.Since    `db:"since"` // what changed since the audit before it
	SignedBy  *ledger.Actor       `db:"signed_by"`
	SignedAt  *time.Time          `db:"signed_at"`
	Stands    *bool               `db:"stands"` // the newest audit that saw the whole day says what is signed

	SignedFacts string `db:"signed_facts"` // what the signature covers
}

func (d auditedDay) audited() bool { return d.RunID != nil }

func auditedDays(ctx context.Context, tx pgx.Tx, from, to ledger.Day) ([]auditedDay, error) {
	return postgres.Collect[auditedDay](ctx, tx, "the days", `
		SELECT to_char(d, 'YYYY-MM-DD') AS day, r.run_id, COALESCE(r.verdict, '') AS verdict, r.as_of,
			jsonb_build_object('sums', r.statement->'sums', 'captures', r.statement->'captures',
				'lines', (SELECT jsonb_agg(l - 'entries') FROM jsonb_array_elements(NULLIF(r.statement->'lines', 'null')) AS l)) AS statement,
			COALESCE(encode(r.digest, 'hex'), '') AS digest, r.statement->'since' AS since, g.signed_by, g.signed_at, g.facts = w.facts AS stands,
			COALESCE(encode(g.facts, 'hex'), '') AS signed_facts
		FROM generate_series(@from::date::timestamp, @to::date, interval '1 day') AS d
		LEFT JOIN LATERAL (
			SELECT a.run_id, a.verdict, a.as_of, a.statement, a.digest
			FROM audit_runs a
			WHERE a.day = d::date
			ORDER BY a.started_at DESC, a.run_id DESC
			LIMIT 1) r ON true
		LEFT JOIN LATERAL (
			SELECT a.facts
			FROM audit_runs a
			WHERE a.day = d::date AND a.closed IS NOT NULL
			ORDER BY a.run_id DESC
			LIMIT 1) w ON true
		LEFT JOIN LATERAL (
			SELECT s.signed_by, s.signed_at, s.facts
			FROM day_signoffs s
			WHERE s.day = d::date
			ORDER BY s.signoff_id DESC
			LIMIT 1) g ON true
		ORDER BY d`,
		pgx.StrictNamedArgs{"from": string(from), "to": string(to)})
}

func rangeFacts(from, to ledger.Day, days []auditedDay) []Fact {
	var clean, signed int64
	for _, d := range days {
		if d.signed() == reconcile.SignedYes {
			signed++
		}
		if d.Verdict == reconcile.VerdictReconciled {
			clean++
		}
	}
	return []Fact{
		{"from", Day(from)},
		{"to", Day(to)},
		{"verdict", word(worst(days))},
		{"days_total", Count(len(days))},
		{"days_reconciled", Count(clean)},
		{"days_signed", Count(signed)},
	}
}

// worst is the verdict of a range: the worst of its days. A day that was not audited may hold anything.
func worst(days []auditedDay) reconcile.Verdict {
	order := reconcile.Verdicts()
	verdict := reconcile.VerdictReconciled
	for _, d := range days {
		of := d.Verdict
		if !d.audited() {
			of = reconcile.VerdictIncomplete
		}
		if slices.Index(order, of) > slices.Index(order, verdict) {
			verdict = of
		}
	}
	return verdict
}

func rangeColumns() []Column {
	columns := []Column{{"day", TypeDay}, {"verdict", TypeWord}, {"run_id", TypeCount}, {"as_of", TypeInstant}}
	return append(append(columns, figureColumns()...), signedColumns()...)
}

func rangeRows(days []auditedDay) []Row {
	var rows []Row
	for _, d := range days {
		if !d.audited() {
			rows = append(rows, append(Row{Day(d.Day), Word(notAudited)}, make(Row, len(rangeColumns())-2)...))
			continue
		}
		for _, f := range figuresOf(d.Statement) {
			rows = append(rows, append(Row{Day(d.Day), word(d.Verdict), Count(*d.RunID), moment(d.AsOf)}, append(f.cells(), d.signedCells(word(d.signed()))...)...))
		}
	}
	return rows
}

// totalsOf adds the days up, per currency.
func totalsOf(days []auditedDay) ([]Row, error) {
	sums := make(map[ledger.Currency]*figures)
	for _, d := range days {
		if !d.audited() {
			continue
		}
		for _, f := range figuresOf(d.Statement) {
			if sums[f.Currency] == nil {
				sums[f.Currency] = &figures{Currency: f.Currency}
			}
			if err := sums[f.Currency].add(f); err != nil {
				return nil, fmt.Errorf("add up %s: %w", d.Day, err)
			}
		}
	}
	var rows []Row
	for _, f := range sorted(sums) {
		rows = append(rows, f.cells())
	}
	return rows, nil
}

func sorted(byCurrency map[ledger.Currency]*figures) []figures {
	var all []figures
	for _, c := range slices.SortedFunc(maps.Keys(byCurrency), cmp.Compare[ledger.Currency]) {
		all = append(all, *byCurrency[c])
	}
	return all
}
