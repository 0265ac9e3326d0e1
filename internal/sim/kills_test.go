package sim_test

import (
	"slices"
	"time"

	"daesa/internal/postgres/postgrestest"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// point names what the process was doing when it was killed.
type point string

// The points. Within each the round trip at which the database is lost is drawn, and whether the server still did what
// it was last asked.
const (
	pointConfirm point = "confirm"
	pointNotice  point = "notice"
	pointCancel  point = "our cancel"
	pointList    point = "list"
	pointSweep   point = "sweep"
	pointAudit   point = "audit"
	pointClosing point = "closing"
	pointSeal    point = "seal"
	pointTidy    point = "tidy"
)

func points() []point {
	return []point{pointConfirm, pointNotice, pointCancel, pointList, pointSweep, pointAudit, pointClosing, pointSeal, pointTidy}
}

// cell is one field of the coverage: the process was killed at this point on a day on which this fault struck.
type cell struct {
	fault faultName
	at    point
}

// kill loses the process in the middle of what it does, and starts another one.
func (s *story) kill(at point) {
	s.Helper()
	most, do := s.victim(at)
	if do == nil {
		return
	}
	ways := postgrestest.Breakages()[:2]
	how := ways[s.rng.IntN(len(ways))]
	for k := s.rng.IntN(most); ; k /= 2 {
		s.observe()
		read := s.front.reads()
		s.line.Arm(k, how)
		do()
		if s.front.reads() > read {
			s.readAt = s.clock.Now()
		}
		broke := s.line.Mend()
		s.requireRead()
		s.tell("the process %s round trip %d of %s: %v", how.Name, k, at, broke)
		if broke {
			s.killed = append(s.killed, at)
			s.kills++
			s.restart()
			return
		}
		if k == 0 {
			return
		}
	}
}

// victim is what is being done, and how many round trips it may take.
func (s *story) victim(at point) (most int, do func()) {
	switch at {
	case pointConfirm:
		return 9, func() { s.confirm(s.order(one(s, tosssim.Card, tosssim.VirtualAccount))) }
	case pointNotice:
		x := s.sell(tosssim.Card)
		if x == nil {
			return 0, nil
		}
		s.dashboard(x, 400)
		return 6, func() { s.deliverNewest(x.key) }
	case pointCancel:
		x := s.sell(tosssim.Card)
		if x == nil {
			return 0, nil
		}
		return 9, func() { s.cancel(x, 400, true) }
	case pointList:
		s.buy()
		s.clock.Advance(time.Minute)
		return 9, func() { _ = s.app.ReadList(s.ctx()) }
	case pointSweep:
		s.twins()
		s.clock.Advance(time.Minute)
		return 12, func() { _ = s.app.Sweep(s.ctx()) }
	case pointAudit:
		return 6, func() {
			_, _ = s.app.Audit(s.ctx(), reconcile.Scope{Name: one(s, reconcile.ScopeRecent, reconcile.ScopeAll)})
		}
	case pointClosing:
		return 6, func() { _ = s.app.CloseDays(s.ctx()) }
	case pointSeal:
		return 9, func() { _ = s.app.Seal(s.ctx()) }
	case pointTidy:
		s.order(tosssim.Card)
		s.clock.Advance(40 * time.Minute)
		return 4, func() { _ = s.app.Tidy(s.ctx()) }
	}
	return 0, nil
}

// deliverNewest sends the newest notice about a payment now.
func (s *story) deliverNewest(key string) {
	notices := s.gateway.Notices()
	for _, n := range slices.Backward(notices) {
		if n.PaymentKey == key {
			status, _ := s.gateway.Deliver(n.ID)
			s.tell("notice %d about %s: %d", n.ID, key, status)
			return
		}
	}
}

// count fills the coverage with what struck and what was killed today.
func (s *story) count() {
	for _, w := range s.weather {
		if !w.struck() {
			s.tell("%s struck nothing", w.name)
			continue
		}
		for _, at := range s.killed {
			s.cells[cell{w.name, at}]++
		}
	}
}
