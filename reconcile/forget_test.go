package reconcile_test

import (
	"testing"
	"time"

	"daesa/reconcile"
)

// TestForget: what came each minute and went well goes; what somebody may still ask for stays, and so does all that a
// later read or audit goes by.
func TestForget(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.poll()
	s.audit(reconcile.ScopeRecent)
	s.audit(reconcile.ScopeAll)
	s.exec(`INSERT INTO list_runs (reason, window_from, window_to, started_at, result)
		SELECT reason, at - interval '1 minute', at, at + interval '1 second', result FROM (VALUES ('poll', 'complete'), ('poll', 'failed'), ('reread', 'complete')) AS r (reason, result),
			(SELECT $1::timestamptz - interval '1 hour' AS at) AS t`, noon())
	s.exec(`INSERT INTO audit_runs (scope, started_at, ended_at, as_of, verdict, statement) VALUES ('recent', $1, $1, $1, 'breaks', '{}')`, noon())
	s.exec(`INSERT INTO mismatches (kind, fingerprint, payment_key, detail, opened_at, last_seen_at) VALUES ('stale_unknown', 'f', 'pay-2', '-', $1, $1)`, noon())
	s.exec(`INSERT INTO work (kind, payment_key, opened_at, due_at, deadline, closed_at, closed_as) VALUES
		('deposit_watch', 'pay-1', $1, $1, $1, $1, 'settled'), ('deposit_watch', 'pay-2', $1, $1, $1, $1, 'settled'),
		('deposit_watch', 'pay-3', $1, $1, $1, NULL, NULL)`, noon())
	rows := func() [3]int {
		return [3]int{s.number(`SELECT count(*) FROM list_runs`), s.number(`SELECT count(*) FROM audit_runs`), s.number(`SELECT count(*) FROM work`)}
	}
	for _, step := range []struct {
		days int
		want [3]int
	}{{59, [3]int{4, 3, 3}}, {2, [3]int{3, 2, 3}}, {336, [3]int{3, 2, 2}}} {
		s.clock.Advance(time.Duration(step.days) * 24 * time.Hour)
		s.must(s.Auditor.Forget(t.Context()))
		if got := rows(); got != step.want {
			t.Errorf("%d days later: got %v reads, audits and work, want %v", step.days, got, step.want)
		}
	}
	s.clock.Set(noon().Add(62 * 24 * time.Hour))
	if p := s.poll(); p.Windows != 63 {
		t.Errorf("got %d windows, want everything since the last poll", p.Windows)
	}
	if st := s.audit(reconcile.ScopeAll); st.Verdict != reconcile.VerdictReconciled {
		t.Errorf("got %s %v", st.Verdict, st.Reasons)
	}
}
