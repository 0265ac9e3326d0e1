package report

import (
	"io"
	"testing"
	"time"

	"daesa/internal/postgres/postgrestest"
)

// history fills the books with ten thousand orders of a hundred days, a tenth of them canceled.
//
//nolint:dupword // one time in several columns
const history = `
	CREATE TEMP TABLE sold AS
	SELECT i, i % 10 = 0 AS canceled, '2026-11-30 02:00:00+00'::timestamptz - i * (interval '100 days' / 10000) AS at
	FROM generate_series(1, 10000) AS i;
	INSERT INTO orders (order_id, status, currency, amount, created_at, expires_at)
	SELECT 'order-' || i, CASE WHEN canceled THEN 'canceled' ELSE 'paid' END, 'KRW', 1000, at, at FROM sold;
	INSERT INTO payments (payment_key, order_id, status, currency, amount, captured, canceled, created_at, updated_at)
	SELECT 'pay-' || i, 'order-' || i, CASE WHEN canceled THEN 'canceled' ELSE 'done' END, 'KRW', 1000, 1000,
		CASE WHEN canceled THEN 1000 ELSE 0 END, at, at FROM sold;
	INSERT INTO captures (payment_key, number, transaction_key, currency, amount, captured_at, channel, recorded_at)
	SELECT 'pay-' || i, 1, 'capture-' || i, 'KRW', 1000, at, 'confirm', at FROM sold;
	INSERT INTO cancels (transaction_key, payment_key, order_id, currency, amount, canceled_at, channel, recorded_at)
	SELECT 'cancel-' || i, 'pay-' || i, 'order-' || i, 'KRW', 1000, at, 'webhook', at FROM sold WHERE canceled;
	INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
	SELECT kind || '-' || i, 'pay-' || i, 'order-' || i, kind, 'DONE', 'KRW', 1000, false, at, (at AT TIME ZONE 'Asia/Seoul')::date, at, at, 1
	FROM sold, unnest(ARRAY['capture', 'cancel']) AS kind WHERE canceled OR kind = 'capture';
	INSERT INTO work (kind, payment_key, transaction_key, opened_at, due_at, deadline, closed_at, closed_as)
	SELECT 'cancel_claimed', 'pay-' || i, 'cancel-' || i, at, at, at, at, 'settled' FROM sold;
	INSERT INTO cancel_requests (request_id, payment_key, status, currency, amount, refundable, reason, requested_by, created_at, updated_at)
	SELECT 'request-' || i, 'pay-' || i, 'done', 'KRW', 1000, 1000, '-', 'merchant', at, at FROM sold;
	INSERT INTO mismatches (kind, fingerprint, payment_key, order_id, transaction_key, currency, amount, detail, opened_at, last_seen_at)
	SELECT 'amount_differs', i, 'pay-' || i, 'order-' || i, 'cancel-' || i, 'KRW', 1000, '-', at, at FROM sold WHERE canceled;
	INSERT INTO events (event_id, kind, audience, order_id, payment_key, facts, created_at)
	SELECT 'evt-' || i, 'order.paid', 'merchant', 'order-' || i, 'pay-' || i, '{}', at FROM sold WHERE canceled;
	INSERT INTO river.river_job (args, kind, max_attempts, created_at) SELECT jsonb_build_object('event_id', 'evt-' || i || n), 'deliver_event', 30, at FROM sold, generate_series(1, 30) AS n WHERE canceled;
	INSERT INTO deliveries (received_at, source, payment_key, body_hash, body_bytes, outcome)
	SELECT at, '192.0.2.1', 'pay-' || i, '', 0, 'applied_full' FROM sold;
	INSERT INTO list_covered (stretches) VALUES ('{[2026-07-01 00:00:00+00, 2026-12-02 02:00:00+00]}');
	INSERT INTO audit_runs (scope, day, started_at, ended_at, as_of, verdict, statement)
	SELECT 'day', (at AT TIME ZONE 'Asia/Seoul')::date, at, at, at, 'reconciled', '{"sums": [], "lines": null}' FROM sold;
	WITH written AS (
		INSERT INTO journal_transactions (kind, reference, payment_key, occurred_at, recorded_at)
		SELECT 'capture', 'pay-' || i, 'pay-' || i, at, at FROM sold RETURNING transaction_id)
	INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
	SELECT transaction_id, line, 'sales', 'KRW', CASE line WHEN 1 THEN 1000 ELSE -1000 END FROM written, generate_series(1, 2) AS line;
	DROP TABLE sold;
	ANALYZE`

// TestReports_ReadNoTableWhole: a report costs what it is about, not what ever happened.
func TestReports_ReadNoTableWhole(t *testing.T) {
	t.Parallel()
	db, plans := postgrestest.NewExplained(t)
	s := open(t, db)
	s.exec(history)
	s.now = noon().Add(14 * time.Hour)
	plans.Forget()
	nowhere := func(r Report) error { return r.Write(io.Discard, CSV, English) }
	s.must(s.Order(t.Context(), "order-5000", nowhere))
	s.must(s.Range(t.Context(), "2026-11-01", "2026-11-30", nowhere))
	s.must(s.Day(t.Context(), "2026-11-29", nowhere))
	found, err := plans.WholeTables(t.Context(), db, "orders", "payments", "captures", "cancels", "cancel_requests", "mirror", "work", "mismatches",
		"mismatch_trail", "events", "deliveries", "audit_runs", "journal_transactions", "journal_entries", "river_job")
	s.must(err)
	for _, plan := range found {
		t.Errorf("reads a whole table:\n%s", plan)
	}
}
