package checkout

import (
	"net/http"
	"testing"
	"time"

	"daesa/ledger"
)

func (s *shop) jobConfig() JobConfig {
	return JobConfig{DB: s.db, Ledger: s.ledger, Metrics: s.metrics, Now: s.handler.now}
}

func TestExpireOrders(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	unpaid := s.bareOrder(1000)
	_, key := s.paid(2000)
	worker, err := NewExpireOrdersWorker(s.jobConfig())
	must(t, err)
	must(t, worker.Work(t.Context(), nil))
	s.call("GET", "/v1/orders/"+unpaid, nil).wants(t, http.StatusOK, "pending")
	s.ahead.Store(int64(32 * time.Minute))
	for range 2 {
		must(t, worker.Work(t.Context(), nil))
	}
	s.call("GET", "/v1/orders/"+unpaid, nil).wants(t, http.StatusOK, "expired")
	s.wantBooks(key, ledger.StatusDone, ledger.OrderPaid)
	s.wantMetric(`daesa_checkout_orders_expired_total`, 1)
}

func TestTidy_ForgetsOldRequestsOnly(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	s.bareOrder(1000)
	worker, err := NewTidyWorker(s.jobConfig())
	must(t, err)
	for _, test := range []struct {
		ahead time.Duration
		want  int
	}{{14 * 24 * time.Hour, 1}, {15*24*time.Hour + time.Minute, 0}} {
		s.ahead.Store(int64(test.ahead))
		must(t, worker.Work(t.Context(), nil))
		if got := s.count(`SELECT count(*) FROM caller_requests`); got != test.want {
			t.Errorf("after %s: got %d requests, want %d", test.ahead, got, test.want)
		}
	}
}

// TestTidy_ForgetsEventsAndAccounts: a delivered event goes in time, unless somebody looks into its payment; one that was
// not delivered stays. An account that a refund goes to is kept only as long as the request can be sent again.
func TestTidy_ForgetsEventsAndAccounts(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	_, told := s.paid(1000)
	_, looked := s.paid(2000)
	_, waiting := s.paid(3000)
	now := s.handler.now()
	exec := func(sql string, args ...any) {
		t.Helper()
		_, err := s.db.Exec(t.Context(), sql, args...)
		must(t, err)
	}
	exec(`UPDATE events SET delivered_at = $1 WHERE payment_key <> $2`, now, waiting)
	exec(`INSERT INTO mismatches (kind, fingerprint, payment_key, detail, opened_at, last_seen_at) VALUES ('stale_unknown', 'f', $1, '-', $2, $2)`, looked, now)
	exec(`INSERT INTO cancel_requests (request_id, payment_key, status, currency, amount, refundable, reason, refund_account, requested_by, created_at, key_first_used_at, updated_at)
		VALUES ('r1', $1, 'unknown', 'KRW', 1000, 1000, '-', '{"bank":"20"}', 'shop', $2, $2, $2)`, told, now)
	worker, err := NewTidyWorker(s.jobConfig())
	must(t, err)
	for _, test := range []struct {
		days, events, accounts int
	}{{13, 3, 1}, {15, 3, 0}, {395, 3, 0}, {397, 2, 0}} {
		s.ahead.Store(int64(test.days) * int64(24*time.Hour))
		must(t, worker.Work(t.Context(), nil))
		events := s.count(`SELECT count(DISTINCT payment_key) FROM events`)
		accounts := s.count(`SELECT count(*) FROM cancel_requests WHERE refund_account IS NOT NULL`)
		if events != test.events || accounts != test.accounts {
			t.Errorf("after %d days: got events of %d payments and %d accounts, want %d and %d", test.days, events, accounts, test.events, test.accounts)
		}
	}
	if n := s.count(`SELECT count(*) FROM events WHERE payment_key = $1`, told); n != 0 {
		t.Errorf("the delivered event of a payment that nobody looks into is still there")
	}
	exec(`UPDATE cancel_requests SET status = 'refused'`) // nobody was asked for it
}

// TestTidy_BuriesEventsWhoseLastAttemptLeftNoTrace: nothing is undelivered for ever without being listed as dead.
func TestTidy_BuriesEventsWhoseLastAttemptLeftNoTrace(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	s.paid(1000)
	worker, err := NewTidyWorker(s.jobConfig())
	must(t, err)
	dead := func(want int64) {
		t.Helper()
		must(t, worker.Work(t.Context(), nil))
		s.wantMetric(`daesa_checkout_dead_events`, want)
	}
	const day = 24 * time.Hour
	s.ahead.Store(int64(5 * day)) // the last attempt may still be made
	dead(0)
	s.ahead.Store(int64(6*day + time.Minute))
	dead(1)
	id := s.eventOf(ledger.EventOrderPaid, ledger.AudienceMerchant)
	s.call("POST", "/v1/events/"+id+"/resend", nil)
	dead(0)
	s.ahead.Store(int64(11 * day))
	dead(0)
	s.ahead.Store(int64(13 * day))
	dead(1)
	s.call("POST", "/v1/events/"+id+"/resend", nil)
	unwanted := s.worker(Receiver{}, Receiver{})
	if unwanted.Work(t.Context(), jobOf(id, 1)) == nil {
		t.Fatal("want the job canceled for want of an address")
	}
	s.ahead.Store(int64(30 * day))
	dead(0)
}

func TestMetrics_EverySeriesExistsFromTheStart(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	for _, series := range []string{
		`daesa_checkout_confirms_total{result="unknown"}`, `daesa_checkout_cancels_total{result="refused"}`,
		`daesa_checkout_refused_before_sending_krw_total{reason="breaker"}`, `daesa_checkout_dead_events`,
		`daesa_checkout_event_deliveries_total{audience="customer",result="dead"}`,
	} {
		s.wantMetric(series, 0)
	}
}

func TestConfig_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil {
		t.Error("got an empty configuration accepted")
	}
	if _, err := NewExpireOrdersWorker(JobConfig{}); err == nil {
		t.Error("got a job without a database accepted")
	}
	if _, err := NewNotices(nil); err == nil {
		t.Error("got notices without a log accepted")
	}
}
