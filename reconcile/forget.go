package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// keepLeast is for everything: audits and rereads look at the last days, and closing runs at the last 35.
	keepLeast = 40 * day
	// forgottenMax bounds one statement, so that no lock is held for long. The next call goes on.
	forgottenMax = 5_000
)

// Keep is how long is kept what proves nothing that is not kept elsewhere. Captures and cancels of the mirror, and the
// closing runs of days, are kept for good: without them no statement could be computed again.
type Keep struct {
	// Runs is for polls that went well and for passing audits of the last days, of which there is one a minute.
	Runs time.Duration
	// Findings is for every other read and audit but those of days: what failed, broke, or covered everything.
	Findings time.Duration
	// Work is for answers that were owed and came: the longest time in which a card can be refunded, and a month.
	Work time.Duration
	// Strange is for rows of the list that move no money or belong to other systems, after their day was closed.
	Strange time.Duration
}

func (k Keep) withDefaults() Keep {
	return Keep{
		Runs: cmp.Or(k.Runs, 60*day), Findings: cmp.Or(k.Findings, 396*day), Work: cmp.Or(k.Work, 396*day),
		Strange: cmp.Or(k.Strange, 5*366*day),
	}
}

func (k Keep) validate() error {
	if min(k.Runs, k.Findings, k.Work, k.Strange) < keepLeast {
		return errors.New("reconcile: reads, audits, closed work and rows without money must be kept for at least 40 days, in which days are closed again")
	}
	return nil
}

// Forget takes away what grows by the minute and proves nothing that is not kept elsewhere: how far the list was read
// is in list_covered, what a cancel came to is in the books. The newest poll stays, because the next one goes on from
// it, and so does work whose payment has a mismatch that nobody has resolved. The rows to delete are named in an array,
// so that they are looked up however many they are; of two that run at once, one finds them gone.
func (a *Auditor) Forget(ctx context.Context) error {
	now, keep := a.cfg.now(), a.cfg.Keep
	for _, step := range []struct {
		what string
		sql  string
		args pgx.StrictNamedArgs
	}{
		{"polls", `
			DELETE FROM list_runs
			WHERE run_id = ANY (ARRAY(
				SELECT r.run_id FROM list_runs r
				WHERE r.result = 'complete' AND r.reason = 'poll' AND r.window_to < @before
					AND r.window_to < (SELECT max(n.window_to) FROM list_runs n WHERE n.result = 'complete' AND n.reason = 'poll')
				ORDER BY r.window_to
				LIMIT @most))`, pgx.StrictNamedArgs{"before": now.Add(-keep.Runs), "most": forgottenMax}},
		{"other reads", `
			DELETE FROM list_runs
			WHERE run_id = ANY (ARRAY(
				SELECT r.run_id FROM list_runs r
				WHERE r.started_at < @before AND (r.result = 'failed' OR (r.result = 'complete' AND r.reason <> 'poll'))
				ORDER BY r.started_at
				LIMIT @most))`, pgx.StrictNamedArgs{"before": now.Add(-keep.Findings), "most": forgottenMax}},
		{"other audits", `
			DELETE FROM audit_runs
			WHERE run_id = ANY (ARRAY(
				SELECT r.run_id FROM audit_runs r
				WHERE r.scope = ANY (@scopes) AND r.started_at < @before
				ORDER BY r.started_at
				LIMIT @most))`, pgx.StrictNamedArgs{
			"before": now.Add(-keep.Findings), "scopes": []string{string(ScopeRecent), string(ScopeAll)}, "most": forgottenMax,
		}},
		{"rows without money", `
			DELETE FROM mirror
			WHERE (kind = 'none' OR is_foreign) AND transaction_key = ANY (ARRAY(
				SELECT g.transaction_key FROM mirror g
				WHERE (g.kind = 'none' OR g.is_foreign) AND g.at < @before
					AND (g.at < @opening OR EXISTS (SELECT 1 FROM audit_runs r WHERE r.day = g.day AND r.closed IS NOT NULL OFFSET 0))
					AND NOT EXISTS (SELECT 1 FROM work w WHERE w.payment_key = g.payment_key AND w.closed_at IS NULL OFFSET 0)
					AND NOT EXISTS (SELECT 1 FROM mismatches m WHERE m.payment_key = g.payment_key OFFSET 0)
				ORDER BY g.at
				LIMIT @most))`, pgx.StrictNamedArgs{
			"before": now.Add(-keep.Strange), "opening": a.cfg.OpeningAt, "most": forgottenMax,
		}},
		{"audits", `
			DELETE FROM audit_runs
			WHERE run_id = ANY (ARRAY(
				SELECT r.run_id FROM audit_runs r
				WHERE r.scope = 'recent' AND r.started_at < @before AND r.verdict IN ('reconciled', 'reconciled_with_pending')
				ORDER BY r.started_at
				LIMIT @most))`, pgx.StrictNamedArgs{"before": now.Add(-keep.Runs), "most": forgottenMax}},
		{"work", `
			DELETE FROM work
			WHERE work_id = ANY (ARRAY(
				SELECT w.work_id FROM work w
				WHERE w.closed_at < @before
					AND NOT EXISTS (SELECT 1 FROM mismatches m WHERE m.payment_key = w.payment_key AND m.status <> 'resolved' OFFSET 0)
				ORDER BY w.closed_at
				LIMIT @most))`, pgx.StrictNamedArgs{"before": now.Add(-keep.Work), "most": forgottenMax}},
	} {
		if _, err := a.cfg.DB.Exec(ctx, step.sql, step.args); err != nil {
			return fmt.Errorf("forget old %s: %w", step.what, err)
		}
	}
	return nil
}
