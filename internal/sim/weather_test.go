package sim_test

import (
	"slices"
	"time"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

func seoul() *time.Location { return ledger.Seoul() }

// faultName names a kind of trouble that lasts for some time, and from which the product must recover by itself.
type faultName string

// weather is one fault in force. It has struck once something met it.
type weather struct {
	name   faultName
	struck func() bool
}

// faultKind is how a fault begins; it tells whether the fault has struck since.
type faultKind struct {
	name  faultName
	begin func(s *story) (struck func() bool)
}

func faults() []faultKind {
	return []faultKind{
		{"gateway silent", func(s *story) func() bool {
			return s.failing(1+s.rng.IntN(2), tosssim.Hang, tosssim.Confirm, tosssim.Get)
		}},
		{"gateway errors", func(s *story) func() bool {
			return s.failing(3+s.rng.IntN(6), one(s, tosssim.Status, tosssim.HTML), tosssim.Confirm, tosssim.Cancel, tosssim.Get, tosssim.List)
		}},
		{"gateway slow", func(s *story) func() bool {
			return s.failing(6, one(s, tosssim.Delay, tosssim.LateReply), tosssim.Confirm, tosssim.Cancel, tosssim.Get, tosssim.List)
		}},
		{"gateway refuses load", func(s *story) func() bool {
			return s.failing(2+s.rng.IntN(3), tosssim.TooMany, tosssim.Confirm, tosssim.Cancel, tosssim.Get, tosssim.List)
		}},
		{"reply lost", func(s *story) func() bool {
			return s.failing(2+s.rng.IntN(2), one(s, tosssim.LostReply, tosssim.DoThenStatus), tosssim.Confirm, tosssim.Cancel)
		}},
		{"reply garbled", func(s *story) func() bool {
			return s.failing(2, one(s, tosssim.Garbage, tosssim.Reset), tosssim.Confirm, tosssim.Cancel, tosssim.Get)
		}},
		{"answer stale", func(s *story) func() bool { return s.failing(1+s.rng.IntN(4), tosssim.Stale, tosssim.Get) }},
		{"notice lost", func(s *story) func() bool {
			s.plan.Lose = 2 + s.rng.IntN(3)
			return s.notices(func(n tosssim.Notice) bool { return n.Lost })
		}},
		{"notice late", func(s *story) func() bool {
			s.plan.HoldTime = one(s, 11*time.Minute, 5*time.Hour, 26*time.Hour)
			return s.notices(func(tosssim.Notice) bool { return true })
		}},
		{"notice twice", func(s *story) func() bool {
			s.plan.Duplicate, s.plan.FreshIDs = 1+s.rng.IntN(2), s.rng.IntN(2) == 0
			return s.sends(2)
		}},
		{"notice out of order", func(s *story) func() bool {
			s.plan.Shuffle = 1 + s.rng.Uint64N(1000)
			return s.sends(2)
		}},
		{"list late", func(s *story) func() bool {
			s.front.with(func() { s.front.lateBy = lateness })
			return s.reads(func() int { return s.front.read })
		}},
		{"list moving", func(s *story) func() bool {
			s.front.with(func() { s.front.flick = true })
			return s.reads(func() int { return s.front.read })
		}},
		{"list short", func(s *story) func() bool {
			s.front.with(func() { s.front.short = true })
			return s.reads(func() int { return s.front.spoilt })
		}},
		{"list empty", func(s *story) func() bool {
			s.gateway.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Status}) // so that what was sold is not yet known from it
			s.front.with(func() { s.front.nothing = one(s, "[]", "[]", "null") })
			return s.reads(func() int { return s.front.spoilt })
		}},
		{"clocks apart", func(s *story) func() bool {
			s.skew.Store(int64(one(s, -45*time.Second, 40*time.Second)))
			return func() bool { return true }
		}},
	}
}

// lateness is how late a row is shown: always within what the service is told.
func lateness(at time.Time) time.Duration { return time.Duration(at.Unix()%9) * time.Minute }

// gather begins the trouble of the day.
func (s *story) gather() {
	for range 2 {
		f := faults()[s.rng.IntN(len(faults()))]
		s.tell("from now on: %s", f.name)
		s.plan.Parallel = 1
		s.weather = append(s.weather, &weather{name: f.name, struck: f.begin(s)})
		s.gateway.SetDelivery(s.plan)
	}
}

// heal ends all trouble.
func (s *story) heal() {
	s.tell("all trouble ends")
	s.weather, s.plan = nil, tosssim.DeliveryPlan{Parallel: 1}
	s.gateway.Heal()
	s.gateway.SetDelivery(s.plan)
	s.front.with(func() {
		s.front.lateBy, s.front.flick, s.front.short, s.front.nothing = nil, false, false, ""
	})
	s.skew.Store(0)
}

// failing makes the next n calls of each operation fail.
func (s *story) failing(n int, kind tosssim.Kind, operations ...tosssim.Op) (struck func() bool) {
	count := func() (calls int) {
		for _, op := range operations {
			calls += s.gateway.Count(op)
		}
		return calls
	}
	for _, op := range operations {
		s.gateway.Fail(tosssim.Fault{Op: op, Kind: kind, N: n, Delay: 15 * time.Millisecond})
	}
	before := count()
	return func() bool { return count() > before }
}

func (s *story) notices(is func(tosssim.Notice) bool) (struck func() bool) {
	before := len(s.gateway.Notices())
	return func() bool {
		return slices.ContainsFunc(s.gateway.Notices()[before:], is)
	}
}

func (s *story) sends(n int) (struck func() bool) {
	before := s.sent
	return func() bool { return s.sent >= before+n }
}

func (s *story) reads(count func() int) (struck func() bool) {
	var before int
	s.front.with(func() { before = count() })
	return func() (more bool) {
		s.front.with(func() { more = count() > before })
		return more
	}
}
