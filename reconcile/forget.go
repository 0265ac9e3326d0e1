package reconcile

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const (
	// runsKept is for polls that went well and for passing audits of the last days, of which there is one a minute.
	// Failed reads, broken audits, and those of days and of everything are kept for good.
	runsKept = 60 * day
	// workKept is for answers that were owed and came: the longest time in which a card can be refunded, and a month.
	workKept = 396 * day
	// forgottenMax bounds one statement, so that no lock is held for long. The next call goes on.
	forgottenMax = 5_000
)

// Forget takes away what grows by the minute and proves nothing that is not kept elsewhere: how far the list was read
// is in list_covered, what a cancel came to is in the books. The newest poll stays, because the next one goes on from
// it, and so does work whose payment has a mismatch that nobody has resolved.
func (a *Auditor) Forget(ctx context.Context) error {
	now := a.cfg.now()
	for _, step := range []struct {
		what string
		sql  string
		args pgx.StrictNamedArgs
	}{
		{"polls", `
			DELETE FROM list_runs
			WHERE run_id IN (
				SELECT r.run_id FROM list_runs r
				WHERE r.result = 'complete' AND r.reason = 'poll' AND r.window_to < @before
					AND r.window_to < (SELECT max(n.window_to) FROM list_runs n WHERE n.result = 'complete' AND n.reason = 'poll')
				ORDER BY r.window_to
				LIMIT @most)`, pgx.StrictNamedArgs{"before": now.Add(-runsKept), "most": forgottenMax}},
		{"audits", `
			DELETE FROM audit_runs
			WHERE run_id IN (
				SELECT r.run_id FROM audit_runs r
				WHERE r.scope = 'recent' AND r.started_at < @before AND r.verdict IN ('reconciled', 'reconciled_with_pending')
				ORDER BY r.started_at
				LIMIT @most)`, pgx.StrictNamedArgs{"before": now.Add(-runsKept), "most": forgottenMax}},
		{"work", `
			DELETE FROM work
			WHERE work_id IN (
				SELECT w.work_id FROM work w
				WHERE w.closed_at < @before
					AND NOT EXISTS (SELECT 1 FROM mismatches m WHERE m.payment_key = w.payment_key AND m.status <> 'resolved' OFFSET 0)
				ORDER BY w.closed_at
				LIMIT @most)`, pgx.StrictNamedArgs{"before": now.Add(-workKept), "most": forgottenMax}},
	} {
		if _, err := a.cfg.DB.Exec(ctx, step.sql, step.args); err != nil {
			return fmt.Errorf("forget old %s: %w", step.what, err)
		}
	}
	return nil
}
