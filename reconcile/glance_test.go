package reconcile_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daesa/reconcile"
)

// takenOnce fills the shop with a payment that was taken and canceled once, as both books agree, and audits it.
//
//nolint:dupword // one time in several columns
func (s *shop) takenOnce() {
	s.t.Helper()
	s.exec(`INSERT INTO list_covered (stretches) VALUES ('{[2026-11-28 00:00:00+00, 2026-11-30 04:00:00+00]}')`)
	s.clock.Set(noon().Add(50 * time.Minute))
	for _, sql := range []string{
		`CREATE TABLE noon AS SELECT '2026-11-30 03:00:00+00'::timestamptz AS at`,
		`INSERT INTO orders (order_id, currency, amount, created_at, expires_at) SELECT 'order-1', 'KRW', 1000, at, at FROM noon`,
		`INSERT INTO payments (payment_key, order_id, status, currency, amount, captured, created_at, updated_at)
			SELECT 'pay-1', 'order-1', 'done', 'KRW', 1000, 1000, at, at FROM noon`,
		`INSERT INTO captures (payment_key, number, transaction_key, currency, amount, captured_at, channel, recorded_at)
			SELECT 'pay-1', 1, 'k', 'KRW', 1000, at, 'confirm', at FROM noon`,
		`INSERT INTO cancels (transaction_key, payment_key, order_id, currency, amount, canceled_at, channel, recorded_at)
			SELECT 'g', 'pay-1', 'order-1', 'KRW', 1000, at, 'webhook', at FROM noon`,
		`INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
			SELECT key, 'pay-1', 'order-1', kind, 'DONE', 'KRW', 1000, false, at, '2026-11-30', at, at, 1
			FROM noon, (VALUES ('k', 'capture'), ('g', 'cancel')) AS r (key, kind)`,
	} {
		s.exec(sql)
	}
	if st := s.agrees("before"); st.Verdict != reconcile.VerdictReconciled {
		s.t.Fatalf("before: got %s %v %+v", st.Verdict, st.Reasons, st.Lines)
	}
}

// TestGlance_IsNotTheJudgement: a payment is only passed over at a glance where nothing is to be judged.
//
//nolint:dupword // one time in several columns
func TestGlance_IsNotTheJudgement(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		change  string
		verdict reconcile.Verdict
	}{
		{"marked", `UPDATE captures SET captured_at = captured_at - interval '1 second'`, reconcile.VerdictReconciled},
		{"shown no more", `UPDATE mirror SET missing_since = at WHERE transaction_key = 'k'`, reconcile.VerdictBreaks},
		{"another amount", `UPDATE captures SET amount = 900`, reconcile.VerdictBreaks},
		{"another currency", `UPDATE captures SET currency = 'JPY'`, reconcile.VerdictBreaks},
		{"listed for another order", `UPDATE mirror SET order_id = 'order-2' WHERE transaction_key = 'k'`, reconcile.VerdictBreaks},
		{"another transaction", `UPDATE captures SET transaction_key = 'j'`, reconcile.VerdictBreaks},
		{"listed twice", `INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
			SELECT 'j', 'pay-1', 'order-1', 'capture', 'DONE', 'KRW', 1000, false, at, day, at, at, 1 FROM mirror WHERE transaction_key = 'k'`, reconcile.VerdictBreaks},
		{"booked twice", `UPDATE captures SET amount = 900; INSERT INTO captures (payment_key, number, transaction_key, currency, amount, captured_at, reversed_at, channel, recorded_at)
			SELECT 'pay-1', 2, 'j', 'KRW', 1000, captured_at, captured_at, 'confirm', captured_at FROM captures`, reconcile.VerdictBreaks},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			s.takenOnce()
			s.exec(test.change)
			if st := s.agrees("after"); st.Verdict != test.verdict {
				t.Errorf("got %s %v %+v, want %s", st.Verdict, st.Reasons, st.Lines, test.verdict)
			}
			s.exec(`DELETE FROM captures; DELETE FROM mirror WHERE transaction_key IN ('j', 'k')`)
			if st := s.agrees("without captures"); st.Verdict != reconcile.VerdictReconciled {
				t.Errorf("without captures: got %s %v %+v", st.Verdict, st.Reasons, st.Lines)
			}
		})
	}
}

// TestGlance_NotesTheDays: a closed day of which anything changed is closed again, also where no figure of it moved.
//
//nolint:dupword // one time in several columns
func TestGlance_NotesTheDays(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, change, days string }{
		{"nothing", `SELECT 1`, ""},
		{"a capture of ours", `UPDATE captures SET captured_at = captured_at - interval '1 second'`, "2026-11-30"},
		{"a capture of ours that was another day's", `UPDATE captures SET captured_at = captured_at - interval '1 day'`, "2026-11-29 2026-11-30"},
		{"a listed capture", `UPDATE mirror SET at = at - interval '1 day', day = '2026-11-29' WHERE transaction_key = 'k'`, "2026-11-29 2026-11-30"},
		{"a cancel of ours", `UPDATE cancels SET canceled_at = canceled_at - interval '1 day'`, "2026-11-29 2026-11-30"},
		{"a listed cancel", `UPDATE mirror SET at = at - interval '1 second' WHERE transaction_key = 'g'`, "2026-11-30"},
		{"a row that is no cancel", `UPDATE cancels SET canceled_at = canceled_at - interval '1 day';
			UPDATE mirror SET is_foreign = true, at = at - interval '2 days', day = '2026-11-28' WHERE transaction_key = 'g'`, "2026-11-28 2026-11-29 2026-11-30"},
		{"everything", `UPDATE captures SET captured_at = captured_at - interval '1 day'; UPDATE cancels SET canceled_at = canceled_at - interval '2 days';
			INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('everything', '', '')`, "2026-11-28 2026-11-29 2026-11-30"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			s.takenOnce()
			s.exec(`INSERT INTO audit_runs (scope, day, started_at, ended_at, as_of, verdict, statement, closed, digest, facts)
				SELECT 'day', '2026-11-27'::date + i, at, at, at, 'reconciled', '{}', '', sha256(''), sha256('') FROM noon, generate_series(0, 3) AS i`)
			s.exec(`DELETE FROM days_to_close`)
			s.exec(test.change)
			s.audit(reconcile.ScopeRecent)
			if diff := cmp.Diff(test.days, s.text(`SELECT COALESCE(string_agg(day::text, ' ' ORDER BY day), '') FROM days_to_close`)); diff != "" {
				t.Errorf("days to close again (-want +got):\n%s", diff)
			}
		})
	}
}
