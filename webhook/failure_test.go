package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
	"daesa/webhook"
)

// TestReceive_QuestionFails: whatever keeps the gateway from answering, the notice is refused, nothing changes, the
// claim stays behind, and the redelivery applies it.
func TestReceive_QuestionFails(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		fault  tosssim.Fault
		reason string
	}{
		{"reset", tosssim.Fault{Kind: tosssim.Reset}, "connection"},
		{"500", tosssim.Fault{Kind: tosssim.Status}, "server_error"},
		{"429", tosssim.Fault{Kind: tosssim.TooMany}, "rate_limited"},
		{"key refused", tosssim.Fault{Kind: tosssim.Refuse, Body: "UNAUTHORIZED_KEY"}, "key_refused"},
		{"not found there", tosssim.Fault{Kind: tosssim.Refuse, Body: "NOT_FOUND_PAYMENT"}, "not_found"},
		{"web page 502", tosssim.Fault{Kind: tosssim.HTML}, "unreadable"},
		{"web page 200", tosssim.Fault{Kind: tosssim.HTML, Code: 200}, "unreadable"},
		{"web page 403", tosssim.Fault{Kind: tosssim.HTML, Code: 403}, "unreadable"},
		{"empty", tosssim.Fault{Kind: tosssim.Body, Body: ""}, "unreadable"},
		{"no content", tosssim.Fault{Kind: tosssim.Body, Code: 204}, "unreadable"},
		{"text", tosssim.Fault{Kind: tosssim.Body, Body: "OK", ContentType: "text/plain"}, "unreadable"},
		{"half a reply", tosssim.Fault{Kind: tosssim.Garbage}, "unreadable"},
		{"a list", tosssim.Fault{Kind: tosssim.EmptyArray}, "unreadable"},
		{"hang", tosssim.Fault{Kind: tosssim.Hang}, "timeout"},
		{"stalled body", tosssim.Fault{Kind: tosssim.StalledBody}, "timeout"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, options{paths: quick()})
			key := s.paid(t, "order-0001", 50_000)
			transaction, notice := s.cancel(t, key, 0)
			test.fault.Op = tosssim.Get
			s.sim.Fail(test.fault)
			s.send(t, notice).want(t, 502, webhook.OutcomeQueryFailed)
			s.wantBooks(t, key, ledger.StatusDone, 0, 0)
			if got := one[string](t, s.db, `SELECT reason FROM deliveries`); got != test.reason {
				t.Errorf("got reason %q, want %q", got, test.reason)
			}
			if got := s.counted(t, "daesa_webhook_query_failed_total", test.reason); got != 1 {
				t.Errorf("got a count of %d for %s, want 1", got, test.reason)
			}
			if got := s.work(t); len(got) != 1 || !strings.HasPrefix(got[0], "cancel_claimed "+transaction+" due 3 days 19:16:00") {
				t.Errorf("got work %v, want one claim of %s, due at the last chance", got, transaction)
			}
			s.sim.Heal()
			s.clock.Advance(time.Minute)
			s.sendWith(t, bytes.NewReader(notice), map[string]string{"tosspayments-webhook-transmission-retried-count": "1"}).
				want(t, 200, webhook.OutcomeAppliedFull)
			s.wantBooks(t, key, ledger.StatusCanceled, 50_000, 1)
			if got := s.work(t); len(got) != 0 {
				t.Errorf("got work %v, want none", got)
			}
		})
	}
}

// quick is a gateway client that gives a question up after a moment, as the real one does after 3 s.
func quick() pgclient.Paths {
	return pgclient.Paths{Query: pgclient.Path{
		Connect: 200 * time.Millisecond, Attempt: 300 * time.Millisecond, Total: 300 * time.Millisecond,
	}}
}

// TestReceive_RedeliveryClock: the claim knows which redelivery failed last, when the next is expected, and when the
// last chance is; the first failure sets the deadline for good.
func TestReceive_RedeliveryClock(t *testing.T) {
	t.Parallel()
	for _, eager := range []bool{false, true} {
		s := open(t, options{config: func(c *webhook.Config) { c.Eager = eager }})
		key := s.paid(t, "order-0001", 50_000)
		_, notice := s.cancel(t, key, 0)
		minutes := []int{1, 4, 16, 64, 256, 1024, 4096}
		last := start.Add(3*24*time.Hour + 19*time.Hour + time.Minute + 15*time.Minute)
		due := last
		if eager {
			due = start.Add(5 * time.Minute)
		}
		for n := range len(minutes) + 1 {
			s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Refuse, Body: "NOT_FOUND_PAYMENT", N: 1})
			s.sendWith(t, bytes.NewReader(notice), map[string]string{"tosspayments-webhook-transmission-retried-count": fmt.Sprint(n)}).
				want(t, 502, webhook.OutcomeQueryFailed)
			next := "<nil>"
			if n < len(minutes) {
				next = fmt.Sprint(s.clock.Now().Add(time.Duration(minutes[n]) * time.Minute).UTC().Unix())
			}
			got := one[string](t, s.db, `
				SELECT format('%s %s %s due %s until %s', notice_attempt, extract(epoch FROM notice_failed_at)::bigint,
					COALESCE(extract(epoch FROM notice_next_at)::bigint::text, '<nil>'),
					extract(epoch FROM due_at)::bigint, extract(epoch FROM deadline)::bigint)
				FROM work WHERE closed_at IS NULL AND kind = 'cancel_claimed'`)
			want := fmt.Sprintf("%d %d %s due %d until %d", n, start.Unix(), next, due.Unix(), last.Unix())
			if got != want {
				t.Errorf("eager %v, redelivery %d: got %s, want %s", eager, n, got, want)
			}
			if n < len(minutes) {
				s.clock.Advance(time.Duration(minutes[n]) * time.Minute)
			}
		}
		s.send(t, notice).want(t, 200, webhook.OutcomeAppliedFull)
	}
}

// TestReceive_DatabaseDown: nothing is acknowledged, whatever the notice says.
func TestReceive_DatabaseDown(t *testing.T) {
	t.Parallel()
	down, err := postgres.Open(t.Context(), postgres.Config{URL: postgrestest.NewURL(t)})
	if err != nil {
		t.Fatal(err)
	}
	down.Close()
	s := open(t, options{handlers: down})
	for _, body := range []string{
		`{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":"pk_1","status":"DONE"}}`,
		`{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":"pk_1","status":"CANCELED"}}`,
		`{"eventType":"BILLING_DELETED"}`,
	} {
		s.send(t, []byte(body)).want(t, 503, webhook.OutcomeDBFailed)
	}
	if got := s.counted(t, "daesa_webhook_outcomes_total", "db_failed"); got != 3 {
		t.Errorf("got a count of %d, want 3", got)
	}
}

// cut is a network to the database that can lose the answer to a COMMIT, or break before it.
type cut struct {
	net.Conn

	mode *atomic.Value
	lost bool
}

// Write forwards, unless the COMMIT is to be lost on its way. It travels with the delivery's outcome; by itself it is a
// prepared statement, whose name says nothing.
func (c *cut) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(webhook.OutcomeAppliedFull)) {
		switch c.mode.Swap("") {
		case "lose the answer":
			c.lost = true
		case "lose the commit":
			return len(p), c.Close()
		}
	}
	return c.Conn.Write(p)
}

// Read reads, unless the answer is lost: then it is waited for, so that the server has committed.
func (c *cut) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.lost {
		return 0, errors.Join(io.ErrUnexpectedEOF, c.Close())
	}
	return n, err
}

// TestReceive_CommitLost: when the connection breaks at the COMMIT, nobody knows whether it happened. The notice is
// refused, and its redelivery ends in one cancel either way.
func TestReceive_CommitLost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mode, outcome string
		again         webhook.Outcome
		cancels       int
	}{
		{"lose the answer", "applied_full", webhook.OutcomeDuplicateSkipped, 1},
		{"lose the commit", "db_failed", webhook.OutcomeAppliedFull, 0},
	} {
		t.Run(test.mode, func(t *testing.T) {
			t.Parallel()
			url := postgrestest.NewURL(t)
			db, err := postgres.Open(t.Context(), postgres.Config{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(db.Close)
			mode := &atomic.Value{}
			mode.Store("")
			broken, err := postgres.Open(t.Context(), postgres.Config{
				URL: url, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
					return &cut{Conn: conn, mode: mode}, err
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(broken.Close)
			s := open(t, options{db: db, handlers: broken})
			key := s.paid(t, "order-0001", 50_000)
			_, notice := s.cancel(t, key, 0)
			mode.Store(test.mode)
			s.send(t, notice).want(t, 503, webhook.OutcomeDBFailed)
			if got := len(s.payment(t, key).Cancels); got != test.cancels {
				t.Errorf("got %d cancels before the redelivery, want %d", got, test.cancels)
			}
			got := one[string](t, s.db, `SELECT format('%s %s %s', outcome, reason, status) FROM deliveries`)
			if want := test.outcome + " commit_unknown 503"; got != want {
				t.Errorf("got delivery %q, want %q", got, want)
			}
			s.send(t, notice).want(t, 200, test.again)
			s.wantBooks(t, key, ledger.StatusCanceled, 50_000, 1)
		})
	}
}

// refusing is a teller that cannot tell.
type refusing struct{ err error }

// Notify refuses.
func (n refusing) Notify(context.Context, *pgx.Batch, []ledger.Announcement) error { return n.err }

// TestReceive_ApplyFails: when the books refuse, everything of the transaction is undone, the outcome is written all
// the same, and the next delivery can succeed.
func TestReceive_ApplyFails(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	sound := open(t, options{db: db})
	key := sound.paid(t, "order-0001", 50_000)
	transaction, notice := sound.cancel(t, key, 0)
	object, _ := sound.sim.Payment(key)
	for _, test := range []struct {
		err     error
		status  int
		outcome webhook.Outcome
		reason  string
	}{
		{errors.New("no such audience"), 500, webhook.OutcomeApplyFailed, "refused"},
		{context.DeadlineExceeded, 503, webhook.OutcomeDBFailed, "unavailable"},
	} {
		s := open(t, options{db: db, notify: refusing{test.err}})
		if err := s.sim.PutPayment(object); err != nil {
			t.Fatal(err)
		}
		s.send(t, notice).want(t, test.status, test.outcome)
		s.wantBooks(t, key, ledger.StatusDone, 0, 0)
		got := one[string](t, s.db, `SELECT format('%s %s %s', outcome, reason, status) FROM deliveries ORDER BY delivery_id DESC LIMIT 1`)
		if want := fmt.Sprintf("%s %s %d", test.outcome, test.reason, test.status); got != want {
			t.Errorf("got delivery %q, want %q", got, want)
		}
		if got := s.work(t); len(got) != 1 || !strings.HasPrefix(got[0], "cancel_claimed "+transaction) {
			t.Errorf("got work %v, want the claim", got)
		}
		if got := s.counted(t, "daesa_webhook_outcomes_total", string(test.outcome)); got != 1 {
			t.Errorf("got a count of %d for %s, want 1", got, test.outcome)
		}
	}
	sound.send(t, notice).want(t, 200, webhook.OutcomeAppliedFull)
	if got := sound.work(t); len(got) != 0 {
		t.Errorf("got work %v, want none", got)
	}
}

// TestReap: a delivery that a crash left open is closed, its payment is due at once, and the redelivery applies it.
func TestReap(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.paid(t, "order-0001", 50_000)
	_, notice := s.cancel(t, key, 0)
	// The process died between the question and the commit: the delivery was kept, and nothing else.
	for range 3 {
		if _, err := s.db.Exec(t.Context(), `
			INSERT INTO deliveries (received_at, source, payment_key, body_hash, body_bytes, outcome, retried_count)
			VALUES ($1, '127.0.0.1', $2, '', 0, 'received', 0)`, s.clock.Now(), key); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.handler.Reap(t.Context()); n != 0 || err != nil {
		t.Errorf("got %d, %v for deliveries that may still be answered, want none", n, err)
	}
	s.clock.Advance(61 * time.Second)
	for _, want := range []int{3, 0} {
		if n, err := s.handler.Reap(t.Context()); n != want || err != nil {
			t.Errorf("got %d, %v, want %d", n, err, want)
		}
	}
	if got := text(t, s.db, `SELECT DISTINCT format('%s %s %s', outcome, reason, reaped) FROM deliveries`); len(got) != 1 || got[0] != "db_failed crashed t" {
		t.Errorf("got deliveries %v, want them closed", got)
	}
	if got := s.work(t); len(got) != 1 || !strings.HasPrefix(got[0], "cancel_claimed - due 00:00:00 ") {
		t.Errorf("got work %v, want one claim due now", got)
	}
	s.clock.Advance(time.Second)
	s.send(t, notice).want(t, 200, webhook.OutcomeAppliedFull)
	if got := s.work(t); len(got) != 0 {
		t.Errorf("got work %v, want none", got)
	}
}

// TestReap_LastChanceCountsFromTheDelivery: a service that was down for hours does not push the last chance out. The
// sender counts from the first delivery that failed.
func TestReap_LastChanceCountsFromTheDelivery(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.paid(t, "order-0001", 50_000)
	for range 2 {
		if _, err := s.db.Exec(t.Context(), `
			INSERT INTO deliveries (received_at, source, payment_key, body_hash, body_bytes, outcome)
			VALUES ($1, '127.0.0.1', $2, '', 0, 'received')`, s.clock.Now(), key); err != nil {
			t.Fatal(err)
		}
		s.clock.Advance(time.Minute)
	}
	s.clock.Advance(6 * time.Hour)
	if n, err := s.handler.Reap(t.Context()); n != 2 || err != nil {
		t.Fatalf("got %d, %v, want 2", n, err)
	}
	if got := one[time.Time](t, s.db, `SELECT deadline FROM work WHERE kind = 'cancel_claimed'`); !got.Equal(pgclient.LastChance(start)) {
		t.Errorf("got the last chance at %s, want %s", got.UTC(), pgclient.LastChance(start))
	}
}

// TestReceive_AllOrNothing: whichever row of a cancel cannot be written, none is; and when it can be, all are.
func TestReceive_AllOrNothing(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	if _, err := s.db.Exec(t.Context(), `
		CREATE FUNCTION break_off() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'broken off' USING ERRCODE = 'admin_shutdown'; END $$`); err != nil {
		t.Fatal(err)
	}
	const counts = `SELECT format('%s %s %s %s %s', (SELECT count(*) FROM cancels), (SELECT count(*) FROM journal_entries),
		(SELECT count(*) FROM events), (SELECT count(*) FROM river.river_job), (SELECT sum(revoked) FROM credit_accounts))`
	for i, at := range []string{
		"UPDATE ON payments", "UPDATE ON orders", "INSERT ON cancels", "INSERT ON journal_transactions", "INSERT ON journal_entries",
		"UPDATE ON credit_accounts", "INSERT ON events", "INSERT ON river.river_job",
	} {
		key := s.paid(t, fmt.Sprintf("order-%04d", i), 50_000)
		_, body := s.cancel(t, key, 0)
		before := one[string](t, s.db, counts)
		if _, err := s.db.Exec(t.Context(), `CREATE TRIGGER broken BEFORE `+at+` FOR EACH STATEMENT EXECUTE FUNCTION break_off()`); err != nil {
			t.Fatal(err)
		}
		if got := s.send(t, body); got.status != 503 || got.outcome != "db_failed" {
			t.Errorf("%s: got %d %s, want 503", at, got.status, got.body)
		}
		if got := one[string](t, s.db, counts); got != before {
			t.Errorf("%s: got %s, want nothing written: %s", at, got, before)
		}
		s.wantBooks(t, key, ledger.StatusDone, 0, 0)
		_, table, _ := strings.Cut(at, " ON ")
		if _, err := s.db.Exec(t.Context(), `DROP TRIGGER broken ON `+table); err != nil {
			t.Fatal(err)
		}
		s.send(t, body).want(t, 200, webhook.OutcomeAppliedFull)
		s.wantBooks(t, key, ledger.StatusCanceled, 50_000, 1)
	}
}
