package webhook_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/webhook"
)

// together posts all bodies at once and returns the answers in their order.
func (s *shop) together(tb testing.TB, headers func(i int) map[string]string, bodies ...[]byte) []answer {
	tb.Helper()
	answers, errs := make([]answer, len(bodies)), make([]error, len(bodies))
	var all sync.WaitGroup
	for i, body := range bodies {
		all.Go(func() { answers[i], errs[i] = s.post(tb.Context(), bytes.NewReader(body), headers(i)) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			tb.Fatal(err)
		}
	}
	return answers
}

func noHeaders(int) map[string]string { return nil }

// TestReceive_CopiesAtOnce: twenty copies of one notice that all ask before any is recorded are all acknowledged, and
// leave one cancel. Whether they carry one transmission id or twenty makes no difference.
func TestReceive_CopiesAtOnce(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string]func(i int) map[string]string{
		"one id": func(int) map[string]string {
			return map[string]string{"tosspayments-webhook-transmission-id": "whtrans_same"}
		},
		"twenty ids": func(i int) map[string]string {
			return map[string]string{"tosspayments-webhook-transmission-id": fmt.Sprintf("whtrans_%d", i)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, options{})
			key := s.paid(t, "order-0001", 50_000)
			_, notice := s.cancel(t, key, 0)
			s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Delay, Delay: 200 * time.Millisecond, N: -1})
			copies := make([][]byte, 20)
			for i := range copies {
				copies[i] = notice
			}
			count := map[string]int{}
			for _, got := range s.together(t, headers, copies...) {
				count[fmt.Sprintf("%d %s", got.status, got.outcome)]++
			}
			if count["200 applied_full"] != 1 || count["200 duplicate_skipped"] != 19 {
				t.Errorf("got %v, want one applied and 19 duplicates", count)
			}
			s.wantBooks(t, key, ledger.StatusCanceled, 50_000, 1)
			if got := s.payment(t, key); got.CreditsRevoked != 100 {
				t.Errorf("got %d credits revoked, want 100", got.CreditsRevoked)
			}
			if got := one[int](t, s.db, `SELECT count(*)::integer FROM deliveries WHERE status = 200`); got != 20 {
				t.Errorf("got %d deliveries, want 20", got)
			}
		})
	}
}

// TestReceive_PartsAtOnce: two partial cancels whose notices meet, in parallel and in either order, end in the same books.
func TestReceive_PartsAtOnce(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"parallel", "in order", "reversed"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			s := open(t, options{})
			key := s.paid(t, "order-0001", 10_000)
			_, first := s.cancel(t, key, 6_000)
			_, second := s.cancel(t, key, 4_000)
			var answers []answer
			switch order {
			case "parallel":
				s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Delay, Delay: 100 * time.Millisecond, N: 2})
				answers = s.together(t, noHeaders, first, second)
			case "in order":
				answers = []answer{s.send(t, first), s.send(t, second)}
			case "reversed":
				answers = []answer{s.send(t, second), s.send(t, first)}
			}
			for _, got := range answers {
				if got.status != 200 {
					t.Errorf("got %d %s, want 200", got.status, got.body)
				}
			}
			s.wantBooks(t, key, ledger.StatusCanceled, 10_000, 2)
		})
	}
}

// TestReceive_StepByStep: a second partial cancel is asked about although the payment has been canceled before, the
// running total is never taken for the new part, and an older body never takes anything back.
func TestReceive_StepByStep(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.paid(t, "order-0001", 50_000)
	_, first := s.cancel(t, key, 2_000)
	s.send(t, first).want(t, 200, webhook.OutcomeAppliedPartial)
	s.wantBooks(t, key, ledger.StatusPartiallyCanceled, 2_000, 1)
	_, second := s.cancel(t, key, 3_000)
	s.send(t, second).want(t, 200, webhook.OutcomeAppliedPartial)
	s.wantBooks(t, key, ledger.StatusPartiallyCanceled, 5_000, 2)
	_, third := s.cancel(t, key, 45_000)
	s.send(t, third).want(t, 200, webhook.OutcomeAppliedFull)
	asked := len(s.sim.Calls())
	for _, old := range [][]byte{first, second, third} {
		s.send(t, old).want(t, 200, webhook.OutcomeDuplicateSkipped)
	}
	if got := len(s.sim.Calls()); got != asked {
		t.Errorf("got %d questions for copies, want none", got-asked)
	}
	s.wantBooks(t, key, ledger.StatusCanceled, 50_000, 3)
}

// TestReceive_LateInTheDay: what is in the books is known for good, weeks later and under another transmission id.
func TestReceive_LateInTheDay(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.paid(t, "order-0001", 50_000)
	_, notice := s.cancel(t, key, 0)
	s.send(t, notice).want(t, 200, webhook.OutcomeAppliedFull)
	s.clock.Advance(91 * time.Hour)
	s.send(t, notice).want(t, 200, webhook.OutcomeDuplicateSkipped)
	s.clock.Advance(40 * 24 * time.Hour)
	again := map[string]string{"tosspayments-webhook-transmission-id": "whtrans_other", "tosspayments-webhook-transmission-retried-count": "7"}
	s.sendWith(t, bytes.NewReader(notice), again).want(t, 200, webhook.OutcomeDuplicateSkipped)
	s.wantBooks(t, key, ledger.StatusCanceled, 50_000, 1)
}

// TestReceive_AgainstAnotherChannel: a notice and a sweep that record the same cancel at once agree.
func TestReceive_AgainstAnotherChannel(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	for i := range 10 {
		key := s.paid(t, fmt.Sprintf("order-%04d", i), 50_000)
		_, notice := s.cancel(t, key, 0)
		var swept sync.WaitGroup
		swept.Go(func() { s.learn(t, key, ledger.ChannelSweep) })
		got := s.send(t, notice)
		swept.Wait()
		if got.status != 200 {
			t.Errorf("got %d %s, want 200", got.status, got.body)
		}
		s.wantBooks(t, key, ledger.StatusCanceled, 50_000, 1)
	}
}

// TestReceive_OvertakesItsApproval: a cancel whose notice comes while our confirm is still out is recorded together
// with the capture; one for a key never seen is refused and found by the redelivery.
func TestReceive_OvertakesItsApproval(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.order(t, "order-0001", 50_000, tosssim.Card)
	s.approve(t, key)
	_, notice := s.cancel(t, key, 0)
	s.send(t, notice).want(t, 404, webhook.OutcomePaymentNotFound)
	if got := s.work(t); len(got) != 1 {
		t.Errorf("got work %v, want one parked claim", got)
	}
	s.intend(t, "order-0001", key, 50_000)
	if got := text(t, s.db, `SELECT kind FROM work WHERE closed_at IS NULL ORDER BY kind`); fmt.Sprint(got) != "[cancel_claimed confirm_unknown]" {
		t.Errorf("got work %v, want the claim adopted", got)
	}
	s.send(t, notice).want(t, 200, webhook.OutcomeAppliedFull)
	s.learn(t, key, ledger.ChannelConfirm) // the answer to our confirm, read at last
	s.wantBooks(t, key, ledger.StatusCanceled, 50_000, 1)
	if got := s.work(t); len(got) != 0 {
		t.Errorf("got work %v, want none", got)
	}
}

// TestReceive_SenderHangsUp: an answer of the gateway that we hold is recorded, although nobody waits any more; a
// question that is still out ends.
func TestReceive_SenderHangsUp(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.paid(t, "order-0001", 50_000)
	_, notice := s.cancel(t, key, 0)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Hang, N: 1})
	ctx, hangUp := context.WithCancel(t.Context())
	var sent sync.WaitGroup
	sent.Go(func() { s.post(ctx, bytes.NewReader(notice), nil) }) //nolint:errcheck // nobody waits for the answer
	waitFor(t, func() (int, bool) { return s.sim.Held(), s.sim.Held() == 1 })
	hangUp()
	sent.Wait()
	outcome := waitFor(t, func() (string, bool) {
		got := one[string](t, s.db, `SELECT outcome || ' ' || reason FROM deliveries`)
		return got, got != "received "
	})
	if outcome != "query_failed canceled" {
		t.Errorf("got %q, want query_failed canceled", outcome)
	}
	s.sim.Heal()
	s.send(t, notice).want(t, 200, webhook.OutcomeAppliedFull)
}

// TestReceive_ParkedClaimOfAKnownPayment: a claim that was parked while the payment was being written is asked about as
// soon as any other, once a further notice finds the payment.
func TestReceive_ParkedClaimOfAKnownPayment(t *testing.T) {
	t.Parallel()
	s := open(t, options{config: func(c *webhook.Config) { c.Eager = true }})
	key := s.paid(t, "order-0001", 50_000)
	transactionKey, notice := s.cancel(t, key, 0)
	last := s.clock.Now().Add(91 * time.Hour)
	if _, err := s.db.Exec(t.Context(), `
		INSERT INTO work (kind, payment_key, transaction_key, opened_at, due_at, deadline) VALUES ('parked', $1, $2, $3, $4, $4)`,
		key, transactionKey, s.clock.Now(), last); err != nil {
		t.Fatal(err)
	}
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Reset})
	s.send(t, notice).want(t, 502, webhook.OutcomeQueryFailed)
	due := one[time.Time](t, s.db, `SELECT due_at FROM work WHERE kind = 'cancel_claimed' AND order_id = 'order-0001'`)
	if got := due.Sub(s.clock.Now()); got > 10*time.Minute {
		t.Errorf("the claim is due in %s, want minutes", got)
	}
}
