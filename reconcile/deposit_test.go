package reconcile_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient/tosssim"
)

// TestDeposit_FallsBack: the deposit is looked at again after minutes and hours; one that falls back is taken back
// after a second look. The account then waits again, and is asked about until its time is over.
func TestDeposit_FallsBack(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.VirtualAccount)
	s.record(s.send(s.intend("order-1", key, 10_000)).Observation)
	s.must(s.sim.Deposit(key))
	s.record(s.ask(ledger.ChannelWebhook, key))
	s.clock.Advance(4 * time.Minute)
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusDone {
		t.Errorf("got %s, want done", p.Status)
	}
	s.must(s.sim.RevertDeposit(key))
	s.clock.Advance(7 * time.Minute)
	s.sweep()
	s.clock.Advance(40 * time.Second)
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusWaitingForDeposit {
		t.Errorf("got %s, want the deposit taken back", p.Status)
	}
	s.clock.Advance(25 * time.Hour)
	s.sweep()
	if n := s.number(`SELECT count(*) FROM work WHERE kind = 'deposit_watch' AND closed_at IS NULL`); n != 1 {
		t.Errorf("got %d open watches over an account that waits, want 1", n)
	}
	s.clock.Advance(8 * 24 * time.Hour)
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusFailed {
		t.Errorf("got %s after the account's time, want failed", p.Status)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestDeposit_StandsAfterItsWatch: a deposit that has not fallen back within a day is not asked about any more.
func TestDeposit_StandsAfterItsWatch(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.VirtualAccount)
	s.record(s.send(s.intend("order-1", key, 10_000)).Observation)
	s.must(s.sim.Deposit(key))
	s.record(s.ask(ledger.ChannelWebhook, key))
	s.clock.Advance(25 * time.Hour)
	s.sweep()
	if got := s.text(`SELECT string_agg(closed_as, ', ' ORDER BY work_id) FROM work WHERE kind = 'deposit_watch'`); got != "settled, expired" {
		t.Errorf("the watches over the account and its deposit closed as %s", got)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestDeposit_NeverComes: the gateway sends no notice when an account's time is over. It is asked then, and the order is
// free for another payment.
func TestDeposit_NeverComes(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.tx(func(tx pgx.Tx) error {
		_, err := s.books.CreateOrder(t.Context(), tx, ledger.Order{
			ID: "order-1", Amount: ledger.Won(10_000), Name: "order-1", ExpiresAt: s.clock.Now().Add(30 * 24 * time.Hour),
		})
		return err
	})
	buy := func(method tosssim.Method) (key string) {
		key = s.sim.Authenticate(tosssim.Checkout{OrderID: "order-1", OrderName: "order-1", Amount: 10_000, Method: method})
		s.record(s.send(s.intend("order-1", key, 10_000)).Observation)
		return key
	}
	account := buy(tosssim.VirtualAccount)
	s.clock.Advance(7*24*time.Hour - time.Minute)
	if swept := s.sweep(); swept.Asked != 0 || s.payment(account).Status != ledger.StatusWaitingForDeposit {
		t.Errorf("asked %d times before the account's time was over", swept.Asked)
	}
	s.clock.Advance(10 * time.Minute)
	s.sweep()
	if p := s.payment(account); p.Status != ledger.StatusFailed || p.Reason != "DEPOSIT_OVERDUE" {
		t.Errorf("got %s (%s), want failed", p.Status, p.Reason)
	}
	if n := s.number(`SELECT count(*) FROM work WHERE closed_at IS NULL`); n != 0 {
		t.Errorf("%d rows of work are left", n)
	}
	if p := s.payment(buy(tosssim.Card)); p.Status != ledger.StatusDone || p.Surplus {
		t.Errorf("got %s, surplus %t; want the order paid by card", p.Status, p.Surplus)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestDeposit_AnAccountThatWaitsIsAskedAboutForEver: it holds its order, so a gateway that cannot be asked, or does not
// say that the account's time is over, ends nothing.
func TestDeposit_AnAccountThatWaitsIsAskedAboutForEver(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.VirtualAccount)
	s.record(s.send(s.intend("order-1", key, 10_000)).Observation)
	waiting, _ := s.sim.Payment(key)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, Payment: waiting, N: 20})
	for range 20 {
		s.clock.Advance(24 * time.Hour)
		s.sweep()
	}
	s.sim.Heal()
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.TooMany, N: -1})
	for range 5 {
		s.clock.Advance(24 * time.Hour)
		s.sweep()
	}
	if p := s.payment(key); p.Status != ledger.StatusWaitingForDeposit {
		t.Errorf("got %s without an answer", p.Status)
	}
	s.sim.Heal()
	s.clock.Advance(25 * time.Hour)
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusFailed {
		t.Errorf("got %s, want failed", p.Status)
	}
	ledgertest.RequireSound(t, s.db)
}
