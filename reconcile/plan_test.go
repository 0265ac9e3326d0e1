package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"daesa/internal/postgres/postgrestest"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// history fills the books and the mirror with payments of the last hundred days, a tenth of them canceled.
//
//nolint:dupword // one time in several columns
const history = `
	CREATE TEMP TABLE sold AS
	SELECT i, i %% 10 = 0 AS canceled, '2026-11-29 02:00:00+00'::timestamptz - i * (interval '100 days' / %[1]d) AS at
	FROM generate_series(1, %[1]d) AS i;
	INSERT INTO orders (order_id, status, currency, amount, created_at, expires_at)
	SELECT 'order-' || i, CASE WHEN canceled THEN 'canceled' ELSE 'paid' END, 'KRW', 1000, at, at FROM sold;
	INSERT INTO payments (payment_key, order_id, status, currency, amount, captured, canceled, created_at, updated_at)
	SELECT 'pay-' || i, 'order-' || i, CASE WHEN canceled THEN 'canceled' ELSE 'done' END, 'KRW', 1000, 1000,
		CASE WHEN canceled THEN 1000 ELSE 0 END, at, at FROM sold;
	INSERT INTO captures (payment_key, number, transaction_key, currency, amount, captured_at, channel, recorded_at)
	SELECT 'pay-' || i, 1, 'capture-' || i, 'KRW', 1000, at, 'confirm', at FROM sold;
	INSERT INTO cancels (transaction_key, payment_key, order_id, currency, amount, canceled_at, channel, recorded_at)
	SELECT 'cancel-' || i, 'pay-' || i, 'order-' || i, 'KRW', 1000, at, 'webhook', at FROM sold WHERE canceled;
	SET session_replication_role = replica;
	INSERT INTO journal_transactions (kind, reference, payment_key, order_id, occurred_at, recorded_at)
	SELECT kind, CASE kind WHEN 'capture' THEN 'pay-' || i || '#1' ELSE 'cancel-' || i END, 'pay-' || i, 'order-' || i, at, at
	FROM sold, unnest(ARRAY['capture', 'cancel']) AS kind WHERE canceled OR kind = 'capture';
	INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
	SELECT t.transaction_id, l.line, CASE WHEN l.line = 1 THEN 'gateway_receivable' WHEN t.kind = 'capture' THEN 'sales' ELSE 'refunds' END, 'KRW',
		CASE WHEN (l.line = 1) = (t.kind = 'capture') THEN 1000 ELSE -1000 END
	FROM journal_transactions t, generate_series(1, 2) AS l (line);
	RESET session_replication_role;
	INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
	SELECT kind || '-' || i, 'pay-' || i, 'order-' || i, kind, 'DONE', 'KRW', 1000, false, at, (at AT TIME ZONE 'Asia/Seoul')::date, at, at, 1
	FROM sold, unnest(ARRAY['capture', 'cancel']) AS kind WHERE canceled OR kind = 'capture';
	INSERT INTO work (kind, payment_key, transaction_key, opened_at, due_at, deadline, closed_at, closed_as)
	SELECT CASE WHEN canceled THEN 'cancel_claimed' ELSE 'deposit_watch' END, 'pay-' || i, CASE WHEN canceled THEN 'cancel-' || i END, at, at, at, at, 'settled'
	FROM sold;
	INSERT INTO cancel_requests (request_id, payment_key, status, currency, amount, refundable, reason, requested_by, created_at, updated_at)
	SELECT 'request-' || i, 'pay-' || i, 'done', 'KRW', 1000, 1000, '-', 'merchant', at, at FROM sold WHERE canceled;
	INSERT INTO work (kind, payment_key, opened_at, due_at, deadline)
	SELECT kind, CASE WHEN kind = 'parked' THEN 'other-' ELSE 'pay-' END || i, at, at + interval '1 year', at + interval '1 year'
	FROM sold, unnest(ARRAY['deposit_watch', 'cancel_claimed', 'parked']) AS kind WHERE i %% 1000 = 1;
	INSERT INTO mismatches (kind, fingerprint, status, payment_key, transaction_key, currency, amount, detail, opened_at, last_seen_at, resolved_at, resolved_as)
	SELECT 'cancel_missing_here', i, 'resolved', 'pay-' || i, 'cancel-' || i, 'KRW', 1000, '-', at, at, at, 'auto' FROM sold WHERE canceled;
	INSERT INTO mismatches (kind, fingerprint, payment_key, transaction_key, currency, amount, detail, opened_at, last_seen_at)
	SELECT kind, kind || i, 'other-' || i, CASE WHEN i %% 2000 = 1 THEN 'other-' || i END, 'KRW', 1000, '-', at, at
	FROM sold, unnest(ARRAY['cancel_missing_here', 'cancel_missing_there', 'order_without_payment', 'payment_without_order', 'amount_differs', 'stale_unknown']) AS kind
	WHERE i %% 1000 = 1;
	INSERT INTO list_runs (reason, window_from, window_to, started_at, ended_at, result)
	SELECT 'poll', at + interval '1 day' - interval '15 minutes', at + interval '1 day', at, at, 'complete' FROM sold;
	INSERT INTO list_covered (stretches) VALUES ('{[2026-07-01 00:00:00+00, 2026-11-30 02:00:00+00]}');
	INSERT INTO audit_runs (scope, started_at, ended_at, as_of, verdict, statement)
	SELECT 'recent', at, at, at, 'reconciled', '{}' FROM sold;
	INSERT INTO deliveries (received_at, source, payment_key, body_hash, body_bytes, outcome)
	SELECT at, '192.0.2.1', 'pay-' || i, '', 0, 'applied_full' FROM sold WHERE canceled;
	DROP TABLE sold;
	ANALYZE`

// changes touches every table that marks a change.
const changes = `
	UPDATE mirror SET missing_since = now() WHERE transaction_key IN ('cancel-100', 'capture-100');
	UPDATE cancels SET amount = 0 WHERE transaction_key = 'cancel-200';
	UPDATE captures SET captured_at = captured_at - interval '1 second' WHERE payment_key = 'pay-300';
	UPDATE payments SET virtual_account = true WHERE payment_key = 'pay-400';
	UPDATE mismatches SET resolved_as = 'accepted', note = 'agreed' WHERE transaction_key = 'cancel-100';
	INSERT INTO work (kind, payment_key, transaction_key, currency, amount, opened_at, due_at, deadline)
	SELECT 'cancel_claimed', 'pay-' || i, 'claimed-' || i, 'KRW', 1000, at, at + interval '1 year', at + interval '1 year'
	FROM generate_series(1, 100) AS i, (SELECT '2026-11-30 02:00:00+00'::timestamptz AS at) AS t`

// closedDays are the audits that were kept of the days of the history, with every transaction as it stood in them, and
// signatures on them; and mismatches about what contradicts itself, of which a few are open.
const closedDays = `
	INSERT INTO audit_runs (scope, day, started_at, ended_at, as_of, verdict, statement, closed, digest, facts)
	SELECT 'day', day, day + interval '1 day', day + interval '1 day', day + interval '1 day', 'reconciled', '{}', '', sha256(''), sha256('')
	FROM (SELECT DISTINCT day FROM mirror WHERE day < '2026-11-29') AS d;
	INSERT INTO day_rows (day, movement, transaction_key, payment_key, order_id, standing, at, listed_currency, listed, booked_currency, booked, first_run)
	SELECT g.day, g.kind, g.transaction_key, g.payment_key, g.order_id, 'applied', g.at, 'KRW', g.amount, 'KRW', g.amount, r.run_id
	FROM mirror g JOIN audit_runs r ON r.day = g.day WHERE g.kind IN ('capture', 'cancel');
	INSERT INTO day_signoffs (day, signed_by, signed_at, run_id, digest, facts)
	SELECT day, 'os:kim', ended_at, run_id, digest, facts FROM audit_runs, generate_series(1, 30) WHERE day IS NOT NULL;
	INSERT INTO mismatches (kind, fingerprint, status, payment_key, transaction_key, currency, amount, detail, opened_at, last_seen_at, resolved_at, resolved_as)
	SELECT 'history_changed', 'changed' || transaction_key, CASE WHEN open THEN 'open' ELSE 'resolved' END, payment_key, transaction_key, 'KRW', 1000, '-',
		at, at + interval '1 minute', CASE WHEN NOT open THEN at END, CASE WHEN NOT open THEN 'auto' END
	FROM (SELECT transaction_key, payment_key, at, transaction_key IN ('capture-5', 'cancel-50', 'capture-5000') AS open FROM mirror WHERE kind IN ('capture', 'cancel')) AS g;
	UPDATE work SET due_at = '2026-11-29 02:00:00+00' WHERE closed_at IS NULL AND kind = 'cancel_claimed';
	ANALYZE`

// remember fills the shop with a history of so many payments.
func (s *shop) remember(payments int) {
	s.t.Helper()
	s.exec(fmt.Sprintf(history, payments))
}

// longOpen is a shop with a history of closed and signed days, and the plans of what is asked of it.
func longOpen(t *testing.T, more ...option) (*shop, *postgrestest.Plans) {
	t.Helper()
	db, plans := postgrestest.NewExplained(t)
	s := setup(t, append(more, func(c *reconcile.Config, _ *tosssim.Config) {
		c.DB, c.OpeningAt = db, noon().Add(-120*24*time.Hour)
	})...)
	s.remember(10_000)
	s.exec(closedDays)
	return s, plans
}

// wholeTables are the statements that read a table of the history from end to end.
func (s *shop) wholeTables(plans *postgrestest.Plans) []string {
	s.t.Helper()
	found, err := plans.WholeTables(s.t.Context(), s.db, "mirror", "cancels", "captures", "payments", "orders", "work", "cancel_requests",
		"list_runs", "audit_runs", "deliveries", "audit_judged", "mismatches", "mismatch_trail", "journal_transactions", "journal_entries",
		"day_rows", "day_signoffs")
	s.must(err)
	return found
}

// TestEveryMinute_ReadsNoTableWhole: what is done each minute costs what is recent and what is open, not what ever
// happened.
func TestEveryMinute_ReadsNoTableWhole(t *testing.T) {
	t.Parallel()
	s, plans := longOpen(t, func(c *reconcile.Config, _ *tosssim.Config) { c.Stretch = 5_000 })
	s.audit(reconcile.ScopeRecent) // the first compares everything
	s.exec(changes)
	s.exec(`ANALYZE`)
	plans.Forget()
	s.clock.Advance(time.Minute)
	s.row("waits", "pay-400", "order-400", "WAITING_FOR_DEPOSIT", "0")
	s.sweep()
	s.poll()
	if n := s.number(`SELECT count(*) FROM work WHERE payment_key = 'pay-400' AND kind = 'deposit_watch' AND closed_at IS NULL`); n != 1 {
		t.Errorf("got %d questions about a deposit that the list takes back, want one", n)
	}
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictBreaks || st.Sums[0].Canceled.Count != 1000 || st.Looked.Judged < 100 {
		t.Errorf("got %s %v %+v %+v", st.Verdict, st.Reasons, st.Looked, st.Sums)
	}
	s.close()
	_, err := s.Mirror.RereadNightly(t.Context())
	s.must(err)
	// The closing runs' own table is gone with them; one like it lets their statements be planned.
	s.exec(`CREATE TABLE day_rows_seen AS SELECT movement, transaction_key, payment_key, order_id, standing, at, listed_currency, listed,
		booked_currency, booked FROM day_rows WHERE false`)
	s.exec(`CREATE INDEX ON day_rows_seen (movement, transaction_key, payment_key)`)
	if found := s.wholeTables(plans); len(found) > 0 {
		t.Errorf("%d statements read a table from end to end:\n%s", len(found), strings.Join(found, "\n\n"))
	}
}

// TestEachNight_OneComparisonReadsEverything: of what is done each night, only the comparison of everything costs what ever
// happened, which is what it is for. That is two statements: the keys of both books, and how far the list was read.
func TestEachNight_OneComparisonReadsEverything(t *testing.T) {
	t.Parallel()
	s, plans := longOpen(t)
	s.exec(`UPDATE cancels SET amount = 0 WHERE transaction_key = 'cancel-200'`)
	s.clock.Advance(24 * time.Hour)
	plans.Forget()
	_, ran, err := s.Auditor.RunNightly(t.Context())
	s.must(err)
	noted, proven := s.number(`SELECT count(*) FROM days_to_close`), s.number(`SELECT count(*) FROM mismatches WHERE kind = 'journal_differs'`)
	if !ran || noted < 10 || proven != 1 {
		t.Errorf("ran %v, noted %d old days and found %d differences with the journal, want the days before the first sale and one", ran, noted, proven)
	}
	found := s.wholeTables(plans)
	for _, meant := range []string{"FROM list_covered), latest AS (", "SELECT key FROM ("} {
		n := len(found)
		found = slices.DeleteFunc(found, func(sql string) bool { return strings.Contains(strings.Join(strings.Fields(sql), " "), meant) })
		if n-len(found) != 1 {
			t.Errorf("%d statements have %q, want the one of the comparison", n-len(found), meant)
		}
	}
	if len(found) > 0 {
		t.Errorf("%d more statements read a table from end to end:\n%s", len(found), strings.Join(found, "\n\n"))
	}
}
