package reconcile_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"daesa/internal/postgres/postgrestest"
	"daesa/pgclient/tosssim"
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
	}{{59, [3]int{4, 3, 3}}, {2, [3]int{3, 2, 3}}, {336, [3]int{1, 0, 2}}} {
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

// TestForget_RowsOfTheList: captures and cancels stay for good, whoever is through with them. Rows without money and of
// other systems go when they are old, their day was closed, and nothing was ever found about their payment.
func TestForget_RowsOfTheList(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.exec(`INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, is_foreign, first_seen_at, last_seen_at, first_run)
		SELECT key, 'pay-' || key, 'order', kind, '-', 'KRW', 0, false, $1::timestamptz - age::interval, ($1::timestamptz - age::interval)::date, other, $1, $1, 1 FROM (VALUES
			('capture', 'capture', false, '1 hour'), ('cancel', 'cancel', false, '1 hour'), ('unrecognized', 'unrecognized', false, '1 hour'),
			('none', 'none', false, '10 minutes'), ('foreign', 'cancel', true, '10 minutes'), ('work', 'none', false, '10 minutes'),
			('mismatch', 'none', false, '10 minutes'), ('accepted', 'cancel', true, '10 minutes'), ('before', 'none', false, '20 hours'),
			('unclosed', 'none', false, '-24 hours')) AS r (key, kind, other, age)`, noon())
	//nolint:dupword // three columns that are whole or not there
	s.exec(`INSERT INTO audit_runs (scope, day, started_at, ended_at, as_of, verdict, statement, closed, digest, facts)
		VALUES ('day', '2026-11-30', $1, $1, $1, 'reconciled', '{}', '-', sha256('-'), sha256('-')),
			('day', '2026-12-01', $1, $1, $1, 'incomplete', '{}', NULL, NULL, NULL)`, noon())
	s.exec(`INSERT INTO work (kind, payment_key, opened_at, due_at, deadline) VALUES ('parked', 'pay-work', $1, $1, $1)`, noon())
	s.exec(`INSERT INTO mismatches (kind, fingerprint, payment_key, detail, opened_at, last_seen_at) VALUES ('history_changed', 'f1', 'pay-mismatch', '-', $1, $1)`, noon())
	s.exec(`INSERT INTO mismatches (kind, fingerprint, payment_key, detail, opened_at, last_seen_at, status, resolved_at, resolved_as, note)
		VALUES ('history_changed', 'f2', 'pay-accepted', '-', $1, $1, 'resolved', $1, 'accepted', 'agreed')`, noon())
	left := func() string {
		return s.text(`SELECT string_agg(transaction_key, ' ' ORDER BY transaction_key) FROM mirror`)
	}
	all := left()
	s.clock.Set(noon().Add(5*366*24*time.Hour - time.Hour))
	s.must(s.Auditor.Forget(t.Context()))
	if got := left(); got != "accepted cancel capture foreign mismatch none unclosed unrecognized work" {
		t.Errorf("five years later but an hour: got %s of %s, want all but what was before the opening", got, all)
	}
	s.clock.Advance(72 * time.Hour)
	var both sync.WaitGroup
	for range 2 { // two instances at once
		both.Go(func() {
			if err := s.Auditor.Forget(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if got := left(); got != "accepted cancel capture mismatch unclosed unrecognized work" {
		t.Errorf("five years later: got %s", got)
	}
}

// TestForget_ReadsNoTableWhole: forgetting costs what there is to forget.
func TestForget_ReadsNoTableWhole(t *testing.T) {
	t.Parallel()
	db, plans := postgrestest.NewExplained(t)
	s := setup(t, func(c *reconcile.Config, _ *tosssim.Config) { c.DB, c.OpeningAt = db, noon().Add(-120*24*time.Hour) })
	s.remember(10_000)
	s.exec(`INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
		SELECT 'none-' || i, 'pay-x', 'x', 'none', '-', 'KRW', 0, false, $1, '2026-11-30', $1, $1, 1 FROM generate_series(1, 1000) AS i`, noon())
	s.exec(`ANALYZE`)
	plans.Forget()
	s.must(s.Auditor.Forget(t.Context()))
	found, err := plans.WholeTables(t.Context(), db, "mirror", "work", "list_runs", "audit_runs", "mismatches")
	if err != nil || len(found) > 0 {
		t.Errorf("got %v and %d statements that read a table from end to end:\n%s", err, len(found), strings.Join(found, "\n\n"))
	}
}
