package webhook_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/webhook"
)

// TestReceive_StormOfForgedNotices: made-up notices of one payment stop costing questions, and lose nothing: real
// cancels of other payments are applied meanwhile, and that of the same payment by its redelivery.
func TestReceive_StormOfForgedNotices(t *testing.T) {
	t.Parallel()
	const free = 10 // questions about one payment that may prove nothing
	s := open(t, options{})
	attacked, other := s.paid(t, "order-0001", 50_000), s.paid(t, "order-0002", 30_000)
	s.sim.ResetCalls()
	forged := encoded(t, notice(whole(attacked, "order-0001", nil), nil))
	for range free {
		s.send(t, forged).want(t, 409, webhook.OutcomeStateMismatch)
	}
	for range 30 {
		s.send(t, forged).want(t, 502, webhook.OutcomeQueryFailed)
	}
	if got := len(s.sim.Calls()); got != free {
		t.Errorf("got %d questions, want %d", got, free)
	}
	if got := s.counted(t, "daesa_webhook_query_failed_total", "fruitless"); got != 30 {
		t.Errorf("got %d counted as fruitless, want 30", got)
	}
	if got := one[int](t, s.db, `SELECT count(*)::integer FROM deliveries WHERE outcome = 'query_failed' AND reason = 'fruitless' AND status = 502`); got != 30 {
		t.Errorf("got %d deliveries refused as fruitless, want 30", got)
	}

	for range free + 5 { // real cancels cost nothing, however many
		_, told := s.cancel(t, other, 1_000)
		s.send(t, told).want(t, 200, webhook.OutcomeAppliedPartial)
	}
	_, told := s.cancel(t, attacked, 50_000)
	s.send(t, told).want(t, 502, webhook.OutcomeQueryFailed)
	if got := one[int](t, s.db, `SELECT count(*)::integer FROM work WHERE kind = 'cancel_claimed' AND closed_at IS NULL AND payment_key = $1`, attacked); got == 0 {
		t.Error("a refused notice left no claim behind")
	}
	s.clock.Advance(time.Minute)
	s.send(t, told).want(t, 200, webhook.OutcomeAppliedFull)
	s.wantBooks(t, attacked, ledger.StatusCanceled, 50_000, 1)
}

// TestReceive_FurtherNoticesHurryAClaimOnceAnHour: a claim that has been asked about for long, and is seldom by now, is
// asked about as soon as a new one when another notice makes it, but not twice within an hour because of notices.
func TestReceive_FurtherNoticesHurryAClaimOnceAnHour(t *testing.T) {
	t.Parallel()
	s := open(t, options{config: func(c *webhook.Config) { c.Eager = true }})
	key := s.paid(t, "order-0001", 50_000)
	forged := encoded(t, notice(whole(key, "order-0001", nil), nil))
	s.send(t, forged).want(t, 409, webhook.OutcomeStateMismatch)
	for _, test := range []struct{ asked, want time.Duration }{
		{2 * time.Hour, 5 * time.Minute}, {55 * time.Minute, 5 * time.Minute}, {10 * time.Minute, 50 * time.Minute},
	} {
		if _, err := s.db.Exec(t.Context(), `UPDATE work SET last_asked_at = $1, due_at = $2 WHERE closed_at IS NULL`,
			s.clock.Now().Add(-test.asked), s.clock.Now().Add(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		s.send(t, forged).want(t, 409, webhook.OutcomeStateMismatch)
		if got := one[time.Time](t, s.db, `SELECT due_at FROM work WHERE closed_at IS NULL`).Sub(s.clock.Now()); got != test.want {
			t.Errorf("asked about %s ago: due in %s, want %s", test.asked, got, test.want)
		}
	}
}

// TestReceive_StormOfNoticesThatTheBooksAgreeWith: made-up notices about a payment of which a part was canceled are no news
// to the books, and cost no more questions than those that the gateway contradicts.
func TestReceive_StormOfNoticesThatTheBooksAgreeWith(t *testing.T) {
	t.Parallel()
	for _, shape := range []string{"names no cancel", "names the capture"} {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			s := open(t, options{})
			key := s.paid(t, "order-0001", 50_000)
			_, told := s.cancel(t, key, 1_000)
			s.send(t, told).want(t, 200, webhook.OutcomeAppliedPartial)
			var cancels []fields
			if shape == "names the capture" {
				cancels = []fields{cancelOf(one[string](t, s.db, `SELECT transaction_key FROM captures`), 1_000, nil)}
			}
			forged := encoded(t, notice(whole(key, "order-0001", fields{
				"status": "PARTIAL_CANCELED", "balanceAmount": 49_000, "cancels": cancels, "lastTransactionKey": nil,
			}), nil))
			s.clock.Advance(time.Second)
			s.sim.ResetCalls()
			for range 10 {
				s.send(t, forged).want(t, 200, webhook.OutcomeDuplicateSkipped)
			}
			for range 20 {
				s.send(t, forged).want(t, 502, webhook.OutcomeQueryFailed)
			}
			if got := len(s.sim.Calls()); got != 10 {
				t.Errorf("got %d questions, want 10", got)
			}
			_, told = s.cancel(t, key, 2_000)
			s.clock.Advance(time.Minute)
			s.send(t, told).want(t, 200, webhook.OutcomeAppliedPartial)
		})
	}
}

// TestReceive_StormAboutAPaymentUnknownToTheGateway: that the gateway has no such payment is an answer that proves nothing.
func TestReceive_StormAboutAPaymentUnknownToTheGateway(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	s.order(t, "order-0001", 50_000, tosssim.Card)
	s.intend(t, "order-0001", "pk_made_up", 50_000)
	s.sim.ResetCalls()
	for range 30 {
		s.send(t, encoded(t, notice(whole("pk_made_up", "order-0001", nil), nil))).want(t, 502, webhook.OutcomeQueryFailed)
	}
	if got := len(s.sim.Calls()); got != 10 {
		t.Errorf("got %d questions, want 10", got)
	}
}

// together is a gateway of which several ask before any has its answer.
type together struct {
	webhook.Gateway
	meet func()
}

func (g together) Query(ctx context.Context, channel ledger.Channel, paymentKey string) (ledger.Observation, error) {
	seen, err := g.Gateway.Query(ctx, channel, paymentKey)
	g.meet()
	return seen, err
}

// TestReceive_RealCancelsWithTheirCopies: far more cancels of one payment than may prove nothing, the notice of each twice at
// the same instant, so that both ask; then as many that another channel books while their notice asks. All are answered.
func TestReceive_RealCancelsWithTheirCopies(t *testing.T) {
	t.Parallel()
	const cancels = 25
	var mu sync.Mutex
	meet := func() {}
	s := open(t, options{config: func(c *webhook.Config) {
		c.Gateway = together{c.Gateway, func() {
			mu.Lock()
			m := meet
			mu.Unlock()
			m()
		}}
	}})
	key := s.paid(t, "order-0001", 50_000)
	for range cancels {
		s.clock.Advance(time.Second)
		var both sync.WaitGroup
		both.Add(2)
		mu.Lock()
		meet = func() { both.Done(); both.Wait() }
		mu.Unlock()
		_, told := s.cancel(t, key, 500)
		var copies sync.WaitGroup
		got := make([]string, 2)
		for n := range got {
			copies.Go(func() {
				a := s.send(t, told)
				got[n] = fmt.Sprint(a.status, " ", a.outcome)
			})
		}
		copies.Wait()
		if got[0] == got[1] || (got[0] != "200 duplicate_skipped" && got[1] != "200 duplicate_skipped") {
			t.Fatalf("got %q, want one applied and one duplicate", got)
		}
	}
	mu.Lock()
	meet = func() { s.learn(t, key, ledger.ChannelCancel) }
	mu.Unlock()
	for range cancels {
		s.clock.Advance(time.Second)
		_, told := s.cancel(t, key, 500)
		s.send(t, told).want(t, 200, webhook.OutcomeDuplicateSkipped)
	}
	if got := s.counted(t, "daesa_webhook_query_failed_total", "fruitless"); got != 0 {
		t.Errorf("%d notices were refused", got)
	}
}

// TestReceive_NotFoundOpensNoBreaker: fifty look-ups in a row that the gateway answers with 404 say nothing about whether it
// is well; the next notice is asked about.
func TestReceive_NotFoundOpensNoBreaker(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	for n := range 50 {
		order, key := fmt.Sprintf("order-%04d", n), fmt.Sprintf("pk_made_up_%04d", n)
		s.order(t, order, 50_000, tosssim.Card)
		s.intend(t, order, key, 50_000)
		s.send(t, encoded(t, notice(whole(key, order, nil), nil))).want(t, 502, webhook.OutcomeQueryFailed)
	}
	if got := s.counted(t, "daesa_webhook_query_failed_total", "not_found"); got != 50 {
		t.Fatalf("%d look-ups were answered with 404, want 50", got)
	}
	key := s.paid(t, "order-real", 50_000)
	_, told := s.cancel(t, key, 50_000)
	s.send(t, told).want(t, 200, webhook.OutcomeAppliedFull)
}
