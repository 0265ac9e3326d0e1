package sim_test

import (
	"time"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

// lastNight is a night after everything has come to rest, so that what happens in it meets nothing else: what would hide
// behind other trouble is seen alone.
func (s *story) lastNight() {
	s.Helper()
	days := s.rng
	s.rng = s.people
	defer func() { s.rng = days }()
	today := ledger.DayOf(s.clock.Now())
	if today.End().Sub(s.clock.Now()) < 3*time.Hour {
		today = today.Next()
	}
	s.pass(today.End().Add(-2 * time.Hour).Sub(s.clock.Now()))
	s.tell("=== the last night")
	s.fallUnheard()
	s.lag()
	s.oweOver(today.End())
	s.pass(30 * time.Minute)
}

// lag is a copy of the gateway's that is behind for half an hour, and the only one to answer: nothing else says that the
// deposit fell back, and it did not.
func (s *story) lag() {
	s.Helper()
	x := s.order(tosssim.VirtualAccount)
	s.confirm(x)
	s.must(s.gateway.Deposit(x.key))
	s.pass(time.Minute)
	s.gateway.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, N: -1, PaymentKey: x.key})
	s.pass(30 * time.Minute)
	s.requireDeposits()
	s.heal()
}

// fallUnheard takes back a deposit of days ago, and nobody is told but by the list.
func (s *story) fallUnheard() {
	s.Helper()
	if s.listing.FallenRow != tosssim.FallenRowOwn {
		return // any other way is seen when the list of that day is read again, or not at all
	}
	for _, x := range s.sales {
		if x.spoilt || x.method != tosssim.VirtualAccount || !x.fell.IsZero() || s.object(x.key).Status != "DONE" {
			continue
		}
		s.gateway.SetDelivery(tosssim.DeliveryPlan{Parallel: 1, Lose: 100})
		s.must(s.gateway.RevertDeposit(x.key))
		s.heal()
		x.fell = s.clock.Now()
		s.tell("the deposit of %s falls back, and no notice says so", x.key)
		return
	}
}

// oweOver is a midnight after which the list cannot be read for some minutes, and before which it showed a cancel about whose
// payment nobody can be asked. No closing before the next read may call the day settled. It is signed as one of which
// something is owed, and is as it was signed when the cancel is applied.
func (s *story) oweOver(midnight time.Time) {
	s.Helper()
	today := ledger.DayOf(s.clock.Now())
	x := s.order(tosssim.Transfer)
	s.confirm(x)
	unanswered := tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, N: -1, PaymentKey: x.key}
	s.gateway.Fail(unanswered)
	if s.dashboard(x, 300) == "" {
		s.Errorf("a healthy gateway does not cancel")
		return
	}
	s.pass(midnight.Add(time.Minute).Sub(s.clock.Now()))
	s.gateway.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Status, N: -1})
	s.pass(11 * time.Minute) // the day may be closed, and the list was not read past it
	s.gateway.Heal()
	s.gateway.Fail(unanswered)
	s.pass(13 * time.Minute)
	s.signDay(today, "os:finance")
	if g := s.signed[today]; !g.pending && s.breaking(today) == nil {
		s.Errorf("%s is signed at %s as one of which nothing is owed, and nobody could ask about a cancel of it", today, g.at)
	}
	s.heal()
}
