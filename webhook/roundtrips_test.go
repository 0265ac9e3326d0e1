package webhook_test

import (
	"fmt"
	"testing"
	"time"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/pgclient/tosssim"
	"daesa/webhook"
)

// TestReceive_RoundTrips: a notice that leads to nothing costs one round trip, one that fails two, one that applies a
// cancel three at most: the delivery, lock and read, and the rest, its announcement and the commit included.
func TestReceive_RoundTrips(t *testing.T) {
	t.Parallel()
	cfg := postgres.Config{URL: postgrestest.NewURL(t), MaxConns: 1}
	meter := postgrestest.CountRoundTrips(&cfg)
	handlers, err := postgres.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(handlers.Close)
	s := open(t, options{db: handlers})

	ignored := []byte(`{"eventType":"BILLING_DELETED","data":{}}`)
	both := s.paid(t, "order-both", 50_000)
	_, _ = s.cancel(t, both, 20_000)
	_, notice := s.cancel(t, both, 0)
	s.send(t, notice).want(t, 200, webhook.OutcomeAppliedFull) // two cancels at once, as below
	warm := s.paid(t, "order-warm", 50_000)
	_, notice = s.cancel(t, warm, 10_000)
	s.send(t, notice).want(t, 200, webhook.OutcomeAppliedPartial)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, N: 1})
	_, notice = s.cancel(t, warm, 0)
	s.send(t, notice).want(t, 502, webhook.OutcomeQueryFailed)
	s.send(t, notice).want(t, 200, webhook.OutcomeAppliedFull)
	s.send(t, ignored).want(t, 200, webhook.OutcomeEventIgnored) // each statement is prepared when it is first sent
	s.send(t, statusDone(warm)).want(t, 200, webhook.OutcomeStatusIgnored)

	key := s.paid(t, "order-0001", 50_000)
	_, part := s.cancel(t, key, 20_000)
	_, rest := s.cancel(t, key, 0)
	never := []byte(`{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":"pk_never","status":"CANCELED"}}`)
	for _, test := range []struct {
		name  string
		body  []byte
		fails bool
		want  webhook.Outcome
		most  int64
	}{
		{"ignored event", ignored, false, webhook.OutcomeEventIgnored, 1},
		{"ignored status", statusDone(key), false, webhook.OutcomeStatusIgnored, 1},
		{"never seen", never, false, webhook.OutcomePaymentNotFound, 1},
		{"unparsable", []byte(`[]`), false, webhook.OutcomeBodyUnparsable, 1},
		{"question fails", part, true, webhook.OutcomeQueryFailed, 2},
		{"applied", part, false, webhook.OutcomeAppliedFull, 3}, // the gateway shows both cancels by now
		{"copy", part, false, webhook.OutcomeDuplicateSkipped, 1},
		{"copy of the other", rest, false, webhook.OutcomeDuplicateSkipped, 1},
	} {
		if test.fails {
			s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, N: 1})
		}
		if err := handlers.Ping(t.Context()); err != nil { // a connection idle for a second is tried before it is used
			t.Fatal(err)
		}
		meter.Reset()
		got := s.send(t, test.body)
		if trips := meter.RoundTrips(); trips > test.most || trips == 0 {
			t.Errorf("%s: got %d round trips, want at most %d", test.name, trips, test.most)
		}
		if got.outcome != string(test.want) {
			t.Errorf("%s: got %s, want %s", test.name, got.body, test.want)
		}
	}
}

func statusDone(paymentKey string) []byte {
	return fmt.Appendf(nil, `{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":%q,"status":"DONE"}}`, paymentKey)
}

// TestReceive_OneTransaction: the cancel, the outcome of its delivery and the job that tells of it are written by the
// same transaction, so a delivery is two commits: kept, and applied.
func TestReceive_OneTransaction(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.paid(t, "order-0001", 50_000)
	jobs := one[int64](t, s.db, `SELECT max(id) FROM river.river_job`)
	_, notice := s.cancel(t, key, 0)
	s.send(t, notice).want(t, 200, webhook.OutcomeAppliedFull)
	got := one[int](t, s.db, `
		SELECT count(DISTINCT writer)::integer
		FROM (SELECT xmin::text AS writer FROM deliveries
			UNION ALL SELECT xmin::text FROM cancels
			UNION ALL SELECT xmin::text FROM payments
			UNION ALL SELECT xmin::text FROM river.river_job WHERE id > $1) AS rows`, jobs)
	if got != 1 {
		t.Errorf("got %d transactions that wrote the cancel, want 1", got)
	}
}

// waitFor asks until the answer is good enough, for at most ten seconds, and returns the last answer.
func waitFor[T any](tb testing.TB, ask func() (T, bool)) T {
	tb.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	for {
		got, ok := ask()
		if ok {
			return got
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return got
		}
	}
}
