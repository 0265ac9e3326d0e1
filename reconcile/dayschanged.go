package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Business days of which anything changed after a closing run saw them whole are noted, however long ago they were, and
// closed again. The run that looks takes the note back. Audits come one after the other, so that what a closing run's
// snapshot did not show is still marked as changed when it ends, and noted by the audit after it.

// noteMarked notes the closed days of what was marked as changed: by the rows that both books have of it now.
func (r *round) noteMarked(ctx context.Context, marks []dirtyRow) error {
	var cancels, payments []string
	for _, d := range marks {
		if d.Subject == string(aboutCancel) {
			cancels = append(cancels, d.Key)
		} else {
			payments = append(payments, d.Key)
		}
	}
	return r.note(ctx, `
		SELECT g.day
		FROM unnest(@cancels::text[]) AS k (key)
		CROSS JOIN LATERAL (SELECT x.day FROM mirror x WHERE x.transaction_key = k.key OFFSET 0) g
		UNION
		SELECT (c.canceled_at AT TIME ZONE 'Asia/Seoul')::date
		FROM unnest(@cancels::text[]) AS k (key)
		CROSS JOIN LATERAL (SELECT x.canceled_at FROM cancels x WHERE x.transaction_key = k.key OFFSET 0) c
		UNION
		SELECT g.day
		FROM unnest(@payments::text[]) AS k (key)
		CROSS JOIN LATERAL (SELECT x.day, x.kind FROM mirror x WHERE x.payment_key = k.key OFFSET 0) g
		WHERE g.kind = 'capture'
		UNION
		SELECT (c.captured_at AT TIME ZONE 'Asia/Seoul')::date
		FROM unnest(@payments::text[]) AS k (key)
		CROSS JOIN LATERAL (SELECT x.captured_at FROM captures x WHERE x.payment_key = k.key OFFSET 0) c`,
		pgx.StrictNamedArgs{"cancels": distinctOf(cancels), "payments": distinctOf(payments)})
}

// noteMoved notes the closed days of what came to something else, also by the clock alone.
func (r *round) noteMoved(ctx context.Context, changes []change) error {
	days := make(map[string]bool)
	for _, c := range changes {
		for _, s := range slices.Concat(c.before.parts, c.now.parts) {
			days[string(s.Day)] = true
		}
	}
	if len(days) == 0 {
		return nil
	}
	return r.note(ctx, `SELECT day FROM unnest(@days::date[]) AS day`, pgx.StrictNamedArgs{"days": slices.Sorted(maps.Keys(days))})
}

// note notes those of some days that were seen whole by a closing run: the others are to be closed anyway.
func (r *round) note(ctx context.Context, days string, args pgx.StrictNamedArgs) error {
	args["now"] = r.w.now
	_, err := r.tx.Exec(ctx, `
		INSERT INTO days_to_close AS t (day, since)
		SELECT d.day, @now
		FROM (`+days+`) AS d
		WHERE EXISTS (SELECT 1 FROM audit_runs a WHERE a.day = d.day AND a.closed IS NOT NULL OFFSET 0)
		ORDER BY d.day
		ON CONFLICT (day) DO UPDATE SET since = GREATEST(t.since, excluded.since)`, args)
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
