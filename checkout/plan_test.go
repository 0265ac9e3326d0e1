package checkout

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
)

// past fills the tables with what was sold in some two years. What is open, dead or waiting is a small part of each.
//
//nolint:dupword // one time in several columns
const past = `
	CREATE TEMP TABLE sold AS SELECT i, now() - i * interval '50 minutes' AS at FROM generate_series(1, 20000) AS i;
	INSERT INTO orders (order_id, status, currency, amount, created_at, expires_at)
	SELECT 'order-' || i, CASE WHEN i % 500 = 0 THEN 'pending' ELSE 'paid' END, 'KRW', 1000, at, at FROM sold;
	INSERT INTO payments (payment_key, order_id, status, currency, amount, captured, created_at, updated_at)
	SELECT 'pay-' || i, 'order-' || i, 'done', 'KRW', 1000, 1000, at, at FROM sold WHERE i % 500 <> 0;
	INSERT INTO events (event_id, kind, audience, order_id, payment_key, facts, created_at, delivered_at, dead_at)
	SELECT 'event-' || i, 'order.paid', 'merchant', 'order-' || i, 'pay-' || i, '{}', at,
		CASE WHEN i % 500 > 1 THEN at END, CASE WHEN i % 500 = 1 THEN at END FROM sold;
	INSERT INTO caller_requests (scope, key, request_hash, status, reply, created_at)
	SELECT 'shop', 'key-' || i, '', 200, '{}', at FROM sold;
	INSERT INTO cancel_requests (request_id, payment_key, status, currency, amount, refundable, reason, requested_by, created_at, updated_at, key_first_used_at, refund_account)
	SELECT 'request-' || i, 'pay-' || i, CASE WHEN i % 500 = 1 THEN 'unknown' ELSE 'done' END, 'KRW', 1000, 1000, '-', 'merchant', at, at, at,
		CASE WHEN i % 500 = 1 THEN '{}'::jsonb END FROM sold WHERE i % 500 <> 0;
	INSERT INTO mismatches (kind, fingerprint, status, payment_key, detail, opened_at, last_seen_at, resolved_at, resolved_as)
	SELECT 'stale_unknown', i, 'resolved', 'pay-' || i, '-', at, at, at, 'auto' FROM sold;
	INSERT INTO acceptances (acceptance_id, order_id, payment_key, attempt, currency, amount, state, word, asked_at, due_at, ended_at)
	SELECT 'acc_' || lpad(i::text, 26, '0'), 'order-' || i, 'pay-' || i, 1, 'KRW', 1000, CASE WHEN i % 500 = 1 THEN 'held' ELSE 'kept' END,
		'accepted', at, CASE WHEN i % 500 = 1 THEN at END, CASE WHEN i % 500 <> 1 THEN at END FROM sold WHERE i % 500 <> 0;
	DROP TABLE sold;
	ANALYZE`

// TestUpkeep_ReadsNoTableWhole: expiring orders, forgetting what is old, and giving up and counting events cost what
// there is to do, not what was ever sold.
func TestUpkeep_ReadsNoTableWhole(t *testing.T) {
	t.Parallel()
	db, plans := postgrestest.NewExplained(t)
	_, err := db.Exec(t.Context(), past)
	must(t, err)
	notices, err := NewNotices(slog.New(slog.DiscardHandler))
	must(t, err)
	reg := prometheus.NewRegistry()
	books, err := ledger.New(ledger.Config{Notify: notices, Metrics: ledger.NewMetrics(reg), Now: time.Now})
	must(t, err)
	cfg := JobConfig{DB: db, Ledger: books, Metrics: NewMetrics(reg), Now: time.Now}
	expire, err := NewExpireOrdersWorker(cfg)
	must(t, err)
	tidy, err := NewTidyWorker(cfg)
	must(t, err)
	settler, err := NewSettler(SettlerConfig{DB: db, Notices: notices, Metrics: cfg.Metrics, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	must(t, err)
	plans.Forget()
	must(t, settler.Settle(t.Context()))
	must(t, expire.Work(t.Context(), nil))
	must(t, tidy.Work(t.Context(), nil))
	found, err := plans.WholeTables(t.Context(), db, "orders", "payments", "events", "caller_requests", "cancel_requests", "mismatches", "acceptances")
	if err != nil || len(found) > 0 {
		t.Errorf("got %v and %d statements that read a table from end to end:\n%s", err, len(found), strings.Join(found, "\n\n"))
	}
}
