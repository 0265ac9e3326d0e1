package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// Business days of which anything changed after a closing run saw them whole are noted, however long ago they were, and
// closed again. The run that looks takes the note back. Audits come one after the other, so that what a closing run's
// snapshot did not show is still marked as changed when it ends, and noted by the audit after it.

// touchedDays are business days of which something changed.
type touchedDays struct {
	marked map[string]bool // cancels that were marked: the days that both books have of them now count, whatever they come to
	days   map[string]bool
}

// days begins to gather those of what was marked.
func (m markedKeys) days() touchedDays {
	t := touchedDays{marked: make(map[string]bool, len(m.cancels)), days: make(map[string]bool)}
	for _, key := range m.cancels {
		t.marked[key] = true
	}
	for _, day := range m.dates {
		t.days[day] = true
	}
	return t
}

// row adds the days that both books have of a marked cancel.
func (t touchedDays) row(f factRow) {
	if !t.marked[f.TransactionKey] {
		return
	}
	if f.ListedDay != nil {
		t.days[*f.ListedDay] = true
	}
	if f.BAt != nil {
		t.days[string(ledger.DayOf(*f.BAt))] = true
	}
}

// glance adds the days that both books have of a marked payment's captures.
func (t touchedDays) glance(g glance) {
	for _, day := range g.Days {
		t.days[day] = true
	}
}

// moved adds the days of what came to something else, also by the clock alone.
func (t touchedDays) moved(changes []change) {
	for _, c := range changes {
		for _, s := range slices.Concat(c.before.parts, c.now.parts) {
			t.days[string(s.Day)] = true
		}
	}
}

// noteMarked notes the closed days of what was marked as changed, where that is not judged by itself.
func (r *round) noteMarked(ctx context.Context, marks []dirtyRow) error {
	m := marked(marks)
	touched := m.days()
	for piece := range slices.Chunk(m.cancels, keysAtOnce) {
		facts, err := r.facts(ctx, r.tx, piece)
		if err != nil {
			return err
		}
		for _, f := range facts {
			touched.row(f)
		}
	}
	for piece := range slices.Chunk(m.payments, keysAtOnce) {
		glances, err := r.glanceAt(ctx, piece)
		if err != nil {
			return err
		}
		for _, g := range glances {
			touched.glance(g)
		}
	}
	return r.note(ctx, touched)
}

// note notes those days that were seen whole by a closing run: the others are to be closed anyway.
func (r *round) note(ctx context.Context, touched touchedDays) error {
	if len(touched.days) == 0 {
		return nil
	}
	_, err := r.tx.Exec(ctx, `
		INSERT INTO days_to_close AS t (day, since)
		SELECT d.day, @now
		FROM unnest(@days::date[]) AS d (day)
		WHERE EXISTS (SELECT 1 FROM audit_runs a WHERE a.day = d.day AND a.closed IS NOT NULL OFFSET 0)
		ORDER BY d.day
		ON CONFLICT (day) DO UPDATE SET since = GREATEST(t.since, excluded.since)`,
		pgx.StrictNamedArgs{"now": r.w.now, "days": slices.Sorted(maps.Keys(touched.days))})
	if err != nil {
		return fmt.Errorf("note which closed days changed: %w", err)
	}
	return nil
}

// takeBack drops the note of a day that a closing run has looked at since.
func takeBack(ctx context.Context, tx pgx.Tx, s Statement) error {
	_, err := tx.Exec(ctx, `DELETE FROM days_to_close WHERE day = @day::date AND since <= @looked`,
		pgx.StrictNamedArgs{"day": string(s.Day), "looked": s.StartedAt})
	if err != nil {
		return fmt.Errorf("take back that %s changed: %w", s.Day, err)
	}
	return nil
}
