package webhook_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
	"daesa/webhook"
)

// TestReceive_BodyLimits: a body that is too large, compressed, broken off or slow is refused within its limits, and
// is a delivery with one outcome like any other.
func TestReceive_BodyLimits(t *testing.T) {
	t.Parallel()
	s := open(t, options{config: func(c *webhook.Config) { c.BodyBudget = 200 * time.Millisecond }})
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	if _, err := zip.Write([]byte(`{"eventType":"BILLING_DELETED"}`)); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	slow, sent := io.Pipe()
	t.Cleanup(func() { sent.CloseWithError(io.EOF) })
	for _, test := range []struct {
		name    string
		body    io.Reader
		headers map[string]string
		status  int
		reason  string
	}{
		{"too large", strings.NewReader(strings.Repeat("x", 256<<10+1)), nil, 413, "too_large"},
		{"too large, length unknown", io.MultiReader(strings.NewReader(strings.Repeat("x", 256<<10+1))), nil, 413, "too_large"},
		{"compressed", &zipped, map[string]string{"Content-Encoding": "gzip"}, 415, "encoded"},
		{"slow", slow, nil, 408, "too_slow"},
	} {
		got := s.sendWith(t, test.body, test.headers)
		if got.status != test.status || got.outcome != "body_unparsable" {
			t.Errorf("%s: got %d %s, want %d body_unparsable", test.name, got.status, got.body, test.status)
		}
		delivery := one[string](t, s.db, `SELECT format('%s %s %s', outcome, reason, status) FROM deliveries ORDER BY delivery_id DESC LIMIT 1`)
		if want := fmt.Sprintf("body_unparsable %s %d", test.reason, test.status); delivery != want {
			t.Errorf("%s: got delivery %q, want %q", test.name, delivery, want)
		}
	}
}

// TestReceive_LargestBody: a body of exactly the limit is read.
func TestReceive_LargestBody(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	head, tail := `{"eventType":"BILLING_DELETED","x":"`, `"}`
	body := head + strings.Repeat("x", 256<<10-len(head)-len(tail)) + tail
	s.send(t, []byte(body)).want(t, 200, webhook.OutcomeEventIgnored)
}

// TestReceive_BrokenOff: a sender that leaves in the middle of its body leaves a delivery with an outcome.
func TestReceive_BrokenOff(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	host := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/webhooks/toss")
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "POST /webhooks/toss HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\n{\"eventType\"", host)
	if err := errors.Join(err, conn.Close()); err != nil {
		t.Fatal(err)
	}
	got := waitFor(t, func() ([]string, bool) {
		rows := text(t, s.db, `SELECT format('%s %s', outcome, reason) FROM deliveries`)
		return rows, len(rows) > 0
	})
	if fmt.Sprint(got) != "[body_unparsable broken_off]" {
		t.Errorf("got %v, want one body broken off", got)
	}
}

// TestReceive_SilentGateway: while the gateway does not answer, no database connection is held, every notice is
// answered when the question's own time is over, and pools of one and two connections serve them all.
func TestReceive_SilentGateway(t *testing.T) {
	t.Parallel()
	for _, size := range []int32{1, 2} {
		t.Run(fmt.Sprintf("pool of %d", size), func(t *testing.T) {
			t.Parallel()
			url := postgrestest.NewURL(t)
			db, err := postgres.Open(t.Context(), postgres.Config{URL: url, MaxConns: 4})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(db.Close)
			small, err := postgres.Open(t.Context(), postgres.Config{URL: url, MaxConns: size, ApplicationName: "handlers"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(small.Close)
			s := open(t, options{db: db, handlers: small, paths: pgclient.Paths{Query: pgclient.Path{
				Connect: 500 * time.Millisecond, Attempt: 700 * time.Millisecond, Total: 700 * time.Millisecond,
			}}})
			keys, bodies := make([]string, 4), make([][]byte, 4) // fewer failures than open the breaker
			for i := range keys {
				keys[i] = s.paid(t, fmt.Sprintf("order-%04d", i), 50_000)
				_, bodies[i] = s.cancel(t, keys[i], 0)
			}
			s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Hang, N: -1})
			var watched sync.WaitGroup
			watched.Go(func() {
				waitFor(t, func() (int, bool) { return s.sim.Held(), s.sim.Held() == len(keys) })
				if got := small.Stat().AcquiredConns(); got != 0 {
					t.Errorf("got %d connections held during the questions, want none", got)
				}
				if got := one[int](t, s.db, `
					SELECT count(*)::integer FROM pg_stat_activity
					WHERE datname = current_database() AND application_name = 'handlers' AND state <> 'idle'`); got != 0 {
					t.Errorf("got %d busy sessions during the questions, want none", got)
				}
			})
			for _, got := range s.together(t, noHeaders, bodies...) {
				got.want(t, 502, webhook.OutcomeQueryFailed)
			}
			watched.Wait()
			s.sim.Heal()
			for _, got := range s.together(t, noHeaders, bodies...) {
				got.want(t, 200, webhook.OutcomeAppliedFull)
			}
			for _, key := range keys {
				s.wantBooks(t, key, ledger.StatusCanceled, 50_000, 1)
			}
		})
	}
}

// TestReceive_OwnLimit: with the limits as they are, a silent gateway costs three seconds, and most of the sender's ten
// are left.
func TestReceive_OwnLimit(t *testing.T) {
	t.Parallel()
	s := open(t, options{config: func(c *webhook.Config) { c.Now = time.Now }})
	key := s.paid(t, "order-0001", 50_000)
	_, body := s.cancel(t, key, 0)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Hang, N: -1})
	began := time.Now()
	s.send(t, body).want(t, 502, webhook.OutcomeQueryFailed)
	if took := time.Since(began); took < 2900*time.Millisecond || took > 4*time.Second {
		t.Errorf("took %s, want about 3 s", took)
	}
	if got := one[string](t, s.db, `SELECT format('%s %s', reason, query_ms BETWEEN 2900 AND 3400) FROM deliveries`); got != "timeout t" {
		t.Errorf("got %q, want the client's own timeout after 3 s", got)
	}
	for metric, labels := range map[string][]string{
		"daesa_webhook_seconds": {"no"}, "daesa_webhook_query_seconds": {"failed"}, "daesa_webhook_budget_left_seconds": nil,
	} {
		if got := s.counted(t, metric, labels...); got != 1 {
			t.Errorf("got %d observations of %s, want 1", got, metric)
		}
	}
}

// TestReceive_Deadline: a database that makes everybody wait is left in time for an answer that the sender still hears.
func TestReceive_Deadline(t *testing.T) {
	t.Parallel()
	s := open(t, options{config: func(c *webhook.Config) {
		c.QueryBudget, c.Deadline = 500*time.Millisecond, 1600*time.Millisecond
	}})
	key := s.paid(t, "order-0001", 50_000)
	_, body := s.cancel(t, key, 0)
	lock, err := s.db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if _, err := lock.Exec(t.Context(), `BEGIN`); err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), `SELECT order_id FROM orders FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.send(t, body).want(t, 503, webhook.OutcomeDBFailed)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %s, want the deadline", took)
	}
	if _, err := lock.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if got := one[string](t, s.db, `SELECT format('%s %s', outcome, status) FROM deliveries`); got != "db_failed 503" {
		t.Errorf("got delivery %q, want db_failed", got)
	}
	s.send(t, body).want(t, 200, webhook.OutcomeAppliedFull)
}

// TestReceive_Strangers: claims of payments never seen are bounded in all, those about one payment of ours too.
func TestReceive_Strangers(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	many := func(key string, batch int) []byte {
		var cancels []fields
		for i := range 50 {
			cancels = append(cancels, cancelOf(fmt.Sprintf("tx_%d_%d", batch, i), 100, nil))
		}
		return encoded(t, notice(fields{"paymentKey": key, "status": "CANCELED", "cancels": cancels}, nil))
	}
	s.send(t, many("pk_never", 0)).want(t, 404, webhook.OutcomePaymentNotFound)
	if got := len(s.work(t)); got != 20 {
		t.Errorf("got %d parked claims of one notice, want 20", got)
	}
	key := s.paid(t, "order-0001", 50_000)
	for batch := range 3 {
		s.send(t, many(key, batch)).want(t, 409, webhook.OutcomeStateMismatch)
	}
	if got := one[int](t, s.db, `SELECT count(*)::integer FROM work WHERE payment_key = $1 AND closed_at IS NULL`, key); got > 39 {
		t.Errorf("got %d claims of one payment, want them bounded", got)
	}
	if _, err := s.db.Exec(t.Context(), `
		INSERT INTO work (kind, payment_key, opened_at, due_at, deadline)
		SELECT 'parked', 'pk_' || n, $1, $1, $1 FROM generate_series(1, 10000) AS n`, s.clock.Now()); err != nil {
		t.Fatal(err)
	}
	s.send(t, many("pk_other", 0)).want(t, 404, webhook.OutcomePaymentNotFound)
	if got := one[int](t, s.db, `SELECT count(*)::integer FROM work WHERE payment_key = 'pk_other'`); got != 0 {
		t.Errorf("got %d parked claims beyond the limit, want none", got)
	}
	if got := s.counted(t, "daesa_webhook_not_parked_total"); got != 1 {
		t.Errorf("got a count of %d, want 1", got)
	}
	if got := one[int](t, s.db, `SELECT count(*)::integer FROM mismatches`); got != 0 {
		t.Errorf("got %d mismatches made by a stranger, want none", got)
	}
}

// asked is a gateway that notes until when the question may take.
type asked struct {
	webhook.Gateway

	until *time.Time
}

// Query asks.
func (a asked) Query(ctx context.Context, channel ledger.Channel, paymentKey string) (ledger.Observation, error) {
	*a.until, _ = ctx.Deadline()
	return a.Gateway.Query(ctx, channel, paymentKey)
}

// TestReceive_DeadlineCountsFromTheHeaders: the sender waits while its body arrives and while it has no slot, so that is part
// of the deadline.
func TestReceive_DeadlineCountsFromTheHeaders(t *testing.T) {
	t.Parallel()
	const deadline = 9 * time.Second
	var began, until time.Time
	s := open(t, options{config: func(c *webhook.Config) {
		c.Gateway, c.Deadline, c.QueryBudget = asked{c.Gateway, &until}, deadline, deadline-time.Second
	}})
	key := s.paid(t, "order-0001", 50_000)
	_, body := s.cancel(t, key, 0)
	web.WithRequestID(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began = web.Began(r.Context())
		if err := s.handler.Receive(w, r); err != nil {
			t.Error(err)
		}
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/toss", bytes.NewReader(body)))
	if want := began.Add(deadline - time.Second); began.IsZero() || !until.Equal(want) {
		t.Errorf("the question may take until %s, want %s: a second before the deadline of a request that began at %s", until, want, began)
	}
	s.wantBooks(t, key, ledger.StatusCanceled, 50_000, 1)
}
