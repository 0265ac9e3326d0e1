package reconcile_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// forged leaves behind what made-up notices do about payments that nobody canceled: of each payment so many claims that
// name a cancel, and one that names none, all made a second apart and due five minutes later.
func (s *shop) forged(payments, named int) (keys []string) {
	s.t.Helper()
	for n := range payments {
		keys = append(keys, s.paid(fmt.Sprintf("attacked-%04d", n), 10_000))
	}
	now := s.clock.Now()
	s.exec(`
		INSERT INTO work (kind, payment_key, order_id, transaction_key, currency, opened_at, due_at, deadline,
			notice_failed_at, notice_attempt, notice_next_at)
		SELECT 'cancel_claimed', p.payment_key, p.order_id, CASE WHEN n > 0 THEN p.payment_key || '-made-up-' || n END, 'KRW', c.at,
			c.at + interval '5 minutes', c.at + $3::interval, c.at, 0, c.at + interval '1 minute'
		FROM payments p
		CROSS JOIN generate_series(0, $2::integer) AS n
		CROSS JOIN LATERAL (SELECT $1::timestamptz + n * interval '1 second' AS at) AS c
		WHERE p.order_id LIKE 'attacked-%'`, now, named, pgclient.LastChance(now).Sub(now))
	return keys
}

// asked are the payments that were asked about, in order.
func (s *shop) asked() (keys []string) {
	for _, c := range s.sim.Calls() {
		if c.Op == tosssim.Get {
			keys = append(keys, c.PaymentKey)
		}
	}
	return keys
}

func (s *shop) openClaims() int {
	s.t.Helper()
	return s.number(`SELECT count(*) FROM work WHERE kind = 'cancel_claimed' AND closed_at IS NULL`)
}

// questionsHeld keeps every question back until one about a certain payment has come.
type questionsHeld struct {
	reconcile.Gateway

	until string
	once  sync.Once
	asked chan struct{}
}

func (g *questionsHeld) Recover(ctx context.Context, channel ledger.Channel, key string) (ledger.Observation, error) {
	seen := func() (ledger.Observation, error) { return g.Gateway.Recover(ctx, channel, key) }
	if key == g.until {
		defer g.once.Do(func() { close(g.asked) })
		return seen()
	}
	select {
	case <-g.asked:
		return seen()
	case <-ctx.Done():
		return ledger.Observation{}, ctx.Err()
	}
}

// TestStorm_CostsPaymentsNotRows: made-up notices of many payments, each with many made-up cancels, are asked about once a
// payment, beside what is in doubt and never before it, and a cancel that was really lost is found by the first question about it. Until
// every claim is refuted, at its last chance, the storm costs a few questions a payment.
func TestStorm_CostsPaymentsNotRows(t *testing.T) {
	t.Parallel()
	const payments, named = 20, 20
	s := setup(t)
	attacked := s.forged(payments, named)
	canceled := s.paid("order-real", 10_000)
	s.claim(canceled, s.canceled(canceled, 4_000))
	s.exec(`UPDATE work SET due_at = $2 WHERE payment_key = $1`, canceled, s.clock.Now().Add(5*time.Minute))
	doubted := s.order("order-doubt", 10_000, tosssim.Card)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.LostReply})
	s.clock.Advance(5*time.Minute + named*time.Second)
	s.send(s.intend("order-doubt", doubted, 10_000))
	s.exec(`UPDATE work SET due_at = $2 WHERE payment_key = $1`, doubted, s.clock.Now())
	s.sim.ResetCalls()

	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	gate := &questionsHeld{Gateway: s.client, until: doubted, asked: make(chan struct{})}
	_, err := s.another(func(c *reconcile.Config) { c.Gateway = gate }).Sweeper.Sweep(ctx)
	s.must(err)
	if asked := s.asked(); len(asked) == 0 || asked[0] != doubted {
		t.Errorf("the payment in doubt was not asked about before what was claimed had its answers: %q", asked)
	}
	if p := s.payment(canceled); p.Status != ledger.StatusPartiallyCanceled || s.sim.CountKey(tosssim.Get, canceled) != 1 {
		t.Errorf("the real cancel: got %s after %d questions, want it applied by the first", p.Status, s.sim.CountKey(tosssim.Get, canceled))
	}
	for _, key := range attacked {
		if n := s.sim.CountKey(tosssim.Get, key); n != 1 {
			t.Fatalf("asked about one payment %d times, want once", n)
		}
	}
	if open := s.openClaims(); open != payments*(named+1) {
		t.Errorf("%d claims are open, want all of them until their last chance", open)
	}

	for s.openClaims() > 0 {
		due := s.dueAt()
		if due.After(noon().Add(5 * 24 * time.Hour)) {
			t.Fatal("claims outlive their last chance")
		}
		s.clock.Set(due)
		s.sweep()
	}
	if most := 8 * payments; len(s.asked()) > most {
		t.Errorf("asked %d times, want at most %d", len(s.asked()), most)
	}
	if n := s.number(`SELECT count(*) FROM work WHERE kind = 'cancel_claimed' AND closed_as = 'refuted' AND closed_at >= deadline - interval '10 minutes'`); n != payments*(named+1) {
		t.Errorf("%d claims were refuted, want all of them, about their last chance", n)
	}
	if n := s.number(`SELECT count(*) FROM mismatches`); n != 0 {
		t.Errorf("%d mismatches, want none", n)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestStorm_QuestionsThatFindNothingAreBounded: one of a hundred instances may find nothing three times, and once more every
// twenty seconds. What the gateway bears out, or does not answer, costs nothing.
func TestStorm_QuestionsThatFindNothingAreBounded(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *reconcile.Config, _ *tosssim.Config) { c.Replicas = 100 })
	s.forged(6, 2)
	for n := range 5 {
		key := s.paid(orderID(n), 10_000)
		s.claim(key, s.canceled(key, 4_000))
	}
	s.clock.Advance(6 * time.Minute)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.TooMany, N: -1})
	if swept := s.sweep(); swept.Results[reconcile.ResultUnanswered] != 11 {
		t.Errorf("got %v while the gateway does not answer, want all 11 payments asked about", swept.Results)
	}
	s.sim.Heal()
	s.must(s.Sweeper.Hurry(t.Context()))
	s.exec(`UPDATE work SET due_at = due_at - interval '1 second' WHERE order_id IS NULL`) // the real ones, which s.claim made
	if swept := s.sweep(); swept.Results[reconcile.ResultSettled] != 5 || swept.Results[reconcile.ResultWaiting] != 3 {
		t.Errorf("got %v, want all 5 real cancels and 3 that find nothing", swept.Results)
	}
	if held := s.number(`SELECT count(*) FROM work WHERE kind = 'cancel_claimed' AND closed_at IS NULL AND due_at <= $1`, s.clock.Now()); held != 3*3 {
		t.Errorf("%d claims are held back, want those of 3 payments", held)
	}
	for range 3 {
		s.clock.Advance(19 * time.Second)
		if swept := s.sweep(); swept.Asked != 0 {
			t.Errorf("asked %d times within twenty seconds", swept.Asked)
		}
		s.clock.Advance(time.Second)
		if swept := s.sweep(); swept.Asked != 1 {
			t.Errorf("asked %d times after twenty seconds, want once", swept.Asked)
		}
	}
}

// TestStorm_TwoSweepersAtOnce: what two instances take of one payment differs, and every claim is asked about.
func TestStorm_TwoSweepersAtOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	attacked := s.forged(4, 20)
	for n, key := range attacked {
		s.exec(`UPDATE work SET transaction_key = $2 WHERE work_id = (SELECT min(work_id) FROM work WHERE payment_key = $1 AND transaction_key IS NOT NULL)`,
			key, s.canceled(key, int64(1_000*(n+1))))
	}
	s.clock.Advance(6 * time.Minute)
	other := s.another(func(*reconcile.Config) {})
	failed := make(chan error, 2)
	for _, r := range []*reconcile.Reconciler{s.Reconciler, other} {
		go func() {
			_, err := r.Sweeper.Sweep(context.WithoutCancel(t.Context()))
			failed <- err
		}()
	}
	s.must(<-failed)
	s.must(<-failed)
	if n := s.number(`SELECT count(*) FROM work WHERE kind = 'cancel_claimed' AND attempts <> 1`); n != 0 {
		t.Errorf("%d claims were not asked about exactly once", n)
	}
	if n := s.number(`SELECT count(*) FROM cancels`); n != len(attacked) {
		t.Errorf("%d cancels are booked, want %d", n, len(attacked))
	}
	ledgertest.RequireSound(t, s.db)
}

// interrupted is a gateway that something happens to while it is asked.
type interrupted struct {
	reconcile.Gateway
	while func()
}

func (g interrupted) Recover(ctx context.Context, channel ledger.Channel, paymentKey string) (ledger.Observation, error) {
	seen, err := g.Gateway.Recover(ctx, channel, paymentKey)
	g.while()
	return seen, err
}

// TestClaim_AnotherNoticeWhileWeAsk: a claim that is made once more while its last question is under way is not refuted by
// the answer, which may be from before the cancel, and is asked about again within minutes.
func TestClaim_AnotherNoticeWhileWeAsk(t *testing.T) {
	t.Parallel()
	for _, named := range []string{"", "named"} {
		t.Run("claim "+named, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 10_000)
			s.claim(key, named)
			s.clock.Set(pgclient.LastChance(s.clock.Now()))
			r := s.another(func(c *reconcile.Config) {
				c.Gateway = interrupted{c.Gateway, func() {
					s.exec(`UPDATE work SET notice_attempt = 0, notice_next_at = $1`, s.clock.Now().Add(time.Minute))
				}}
			})
			_, err := r.Sweeper.Sweep(t.Context())
			s.must(err)
			if s.openClaims() != 1 {
				t.Fatal("the claim was refuted by an answer from before its notice")
			}
			if wait := s.dueAt().Sub(s.clock.Now()); wait != 5*time.Minute {
				t.Errorf("it is asked about again in %s, want 5 minutes", wait)
			}
			s.clock.Advance(5 * time.Minute)
			s.sweep()
			if s.openClaims() != 0 {
				t.Error("the claim outlives its last chance")
			}
		})
	}
}

// TestClaim_ListedWhileWeAsk: a claim that the list bears out while its last question is under way is not refuted by the
// answer, and is due at once.
func TestClaim_ListedWhileWeAsk(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 10_000)
	s.claim(key, "listed-late")
	s.clock.Set(pgclient.LastChance(s.clock.Now()))
	r := s.another(func(c *reconcile.Config) {
		c.Gateway = interrupted{c.Gateway, func() {
			s.exec(`UPDATE work SET kind = 'cancel_listed', due_at = LEAST(due_at, $1) WHERE kind = 'cancel_claimed'`, s.clock.Now())
		}}
	})
	_, err := r.Sweeper.Sweep(t.Context())
	s.must(err)
	if n := s.number(`SELECT count(*) FROM work WHERE kind = 'cancel_listed' AND closed_at IS NULL`); n != 1 {
		t.Error("what the list bears out was refuted")
	}
}

// TestClaim_KeepsNothingOwedWaiting: what becomes owed while a claim is asked about does not wait for the answer, whether or
// not anything else was due.
func TestClaim_KeepsNothingOwedWaiting(t *testing.T) {
	t.Parallel()
	s := setup(t)
	claimed := s.paid("order-0", 10_000)
	s.claim(claimed, "made-up")
	var owed []string
	for n := range 3 {
		key := s.paid(fmt.Sprint("order-", n+1), 20_000)
		s.claim(key, s.canceled(key, 5_000))
		s.exec(`UPDATE work SET due_at = due_at + interval '1 day' WHERE payment_key = $1`, key)
		owed = append(owed, key)
	}
	s.clock.Advance(6 * time.Minute)
	r := s.another(func(c *reconcile.Config) {
		c.Gateway = meanwhile{c.Gateway, claimed, func() {
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for n, key := range owed { // each when the one before is done, and so nothing is due
				s.exec(`UPDATE work SET kind = 'cancel_listed', due_at = $2 WHERE payment_key = $1`, key, s.clock.Now())
				for limit := time.Now().Add(20 * time.Second); s.number(`SELECT count(*) FROM cancels`) == n; <-tick.C {
					if time.Now().After(limit) {
						t.Errorf("the %d. waits for the claim", n+1)
						return
					}
				}
			}
		}}
	})
	_, err := r.Sweeper.Sweep(t.Context())
	s.must(err)
}

// meanwhile is a gateway at which something happens while it is asked about one payment.
type meanwhile struct {
	reconcile.Gateway
	about string
	while func()
}

func (g meanwhile) Recover(ctx context.Context, channel ledger.Channel, paymentKey string) (ledger.Observation, error) {
	seen, err := g.Gateway.Recover(ctx, channel, paymentKey)
	if paymentKey == g.about {
		g.while()
	}
	return seen, err
}

// TestClaim_CrashBeforeTheAnswerIsWritten: the claims of a sweeper that dies come back when its lease is over.
func TestClaim_CrashBeforeTheAnswerIsWritten(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 10_000)
	s.claim(key, s.canceled(key, 4_000))
	s.claim(key, "made-up")
	ctx, die := context.WithCancel(t.Context())
	r := s.another(func(c *reconcile.Config) { c.Gateway = interrupted{c.Gateway, die} })
	if _, err := r.Sweeper.Sweep(ctx); err == nil {
		t.Fatal("the answer was written after all")
	}
	s.clock.Advance(time.Minute)
	if swept := s.sweep(); swept.Asked != 0 {
		t.Errorf("asked %d times within the lease", swept.Asked)
	}
	s.clock.Advance(time.Minute)
	if swept := s.sweep(); swept.Asked != 1 || swept.Results[reconcile.ResultSettled] != 1 || s.openClaims() != 1 {
		t.Errorf("got %v and %d open claims, want one question that settles the real one", swept.Results, s.openClaims())
	}
}

// TestClaim_YoungOnesWaitForTheirOwnQuestion: the answer to an older claim may be from before the cancel of one that was
// made just now.
func TestClaim_YoungOnesWaitForTheirOwnQuestion(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 10_000)
	s.claim(key, "old")
	for _, c := range []struct {
		name string
		age  time.Duration
	}{{"young", 59 * time.Second}, {"ripe", time.Minute}} {
		s.claim(key, c.name)
		s.exec(`UPDATE work SET opened_at = $2, due_at = $3 WHERE transaction_key = $1`, c.name, s.clock.Now().Add(-c.age), s.clock.Now().Add(4*time.Minute))
	}
	s.sweep()
	for name, want := range map[string]time.Duration{"old": time.Hour, "ripe": time.Hour, "young": 4 * time.Minute} {
		if due := s.number(`SELECT extract(epoch FROM due_at - $2)::integer FROM work WHERE transaction_key = $1`, name, s.clock.Now()); due != int(want.Seconds()) {
			t.Errorf("%s is due in %d s, want %s", name, due, want)
		}
	}
}
