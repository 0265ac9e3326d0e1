package sim_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"daesa/ledger"
)

// mendedMost is when the books have surely taken notice that a contradiction is none any more.
const mendedMost = 30 * time.Hour

// passing is a contradiction that is put right later, after which what was found because of it ends by itself.
type passing struct {
	name   string
	inject func(s *story) bool
	late   bool // put right only when what is owed has been owed for too long
	mend   func(s *story, claims []*claim)
}

// passings lists the contradictions that pass. What the gateway hid, wrote otherwise or lied about ends in any case.
func passings() []passing {
	lie := func(kind ledger.Kind, member, value string) func(*story) bool {
		return func(s *story) bool { return s.lie(kind, member, value) }
	}
	return []passing{
		{name: "the list shows a cancel late", inject: (*story).hideCancel},
		{name: "the list shows a capture late", inject: (*story).hideCapture},
		{name: "a cancel comes back to the list", inject: (*story).vanishCancel},
		{name: "a capture comes back to the list", inject: (*story).vanishCapture},
		{name: "a deposit comes back to the list", inject: (*story).unlistDeposit},
		{name: "a word becomes known", mend: (*story).makeReadable, inject: func(s *story) bool {
			return s.oddRow(ledger.KindUnrecognized, "PARTIAL_REVERSED", "700")
		}},
		{name: "a fraction becomes whole", mend: (*story).makeReadable, inject: func(s *story) bool {
			return s.oddRow(ledger.KindQuarantined, "EXPIRED", "700.5")
		}},
		{name: "the second payment is given back", inject: (*story).payTwice, mend: (*story).giveBack},
		{name: "the payment names the right order again", late: true, inject: lie(ledger.KindOrderDiffers, "orderId", `"order-9999"`)},
		{name: "the payment names the right merchant again", late: true, inject: lie(ledger.KindMerchantDiffers, "mId", `"tsimshop99"`)},
		{name: "the payment names the right amount again", late: true, inject: lie(ledger.KindAmountDiffers, "totalAmount", `77777`)},
		{name: "the payment can be read again", late: true, inject: func(s *story) bool {
			if s.rng.IntN(2) == 0 {
				return s.lie(ledger.KindQuarantined, "totalAmount", `1000.5`)
			}
			return s.lie(ledger.KindUnrecognized, "status", `"PARTIAL_REVERSED"`)
		}},
	}
}

// mend is one that was injected, and how it is put right.
type mend struct {
	late bool
	do   func()
}

// afterwards is the evening after the last day: things go wrong that will be put right, and at times very many at once.
// It draws from a stream of its own, so that the days before are what they are without it.
func (s *story) afterwards() {
	s.Helper()
	days := s.rng
	s.rng = s.late
	defer func() { s.rng = days }()
	s.front.with(func() { // what is older than the books may change as it likes
		s.front.forged["old-change"] = map[string]json.RawMessage{"amount": json.RawMessage("501")}
		s.front.hidden["old-cancel"] = true
	})
	for _, n := range s.rng.Perm(len(passings()))[:4] {
		s.passing(passings()[n])
	}
	switch s.rng.IntN(6) {
	case 0:
		s.manyAtOnce()
	case 1:
		s.contradict(contradiction{"the list has a capture in another currency", (*story).forgeCurrency})
	}
	s.rng = s.owners
	switch s.rng.IntN(3) {
	case 0:
		s.contradict(contradiction{"the list has a cancel of another order", (*story).disownCancel})
	case 1:
		s.contradict(contradiction{"the list has a capture of another order", (*story).disownCapture})
	}
}

// passing injects a contradiction and notes how it is put right.
func (s *story) passing(p passing) {
	s.Helper()
	var hidden map[string]bool
	var forged, lies map[string]map[string]json.RawMessage
	s.front.with(func() {
		hidden, forged, lies = maps.Clone(s.front.hidden), maps.Clone(s.front.forged), maps.Clone(s.front.lies)
	})
	known := len(s.claims)
	if !p.inject(s) {
		return
	}
	s.breaks[p.name]++
	s.tell("CONTRADICTION, to be put right: %s", p.name)
	var undo []func()
	s.front.with(func() {
		undo = append(undo, forget(s.front.hidden, hidden), forget(s.front.forged, forged), forget(s.front.lies, lies))
	})
	claims := slices.Clone(s.claims[known:])
	s.mends = append(s.mends, mend{late: p.late, do: func() {
		s.tell("put right: %s", p.name)
		s.front.with(func() {
			for _, f := range undo {
				f()
			}
		})
		if p.mend != nil {
			p.mend(s, claims)
		}
		for _, c := range claims {
			delete(s.unbooked, c.transaction)
			c.broken, c.mended, c.settles = time.Time{}, s.clock.Now(), !c.accepted
		}
	}})
}

// forget takes those keys out again that were not there before.
func forget[V any](from, before map[string]V) func() {
	var fresh []string
	for key := range from {
		if _, was := before[key]; !was {
			fresh = append(fresh, key)
		}
	}
	return func() { maps.DeleteFunc(from, func(key string, _ V) bool { return slices.Contains(fresh, key) }) }
}

// putRight puts right what is to be put right by now.
func (s *story) putRight(late bool) {
	s.Helper()
	days := s.rng
	s.rng = s.late
	defer func() { s.rng = days }()
	for _, m := range s.mends {
		if m.late == late {
			m.do()
		}
	}
}

// makeReadable has a row that nobody could read say of a payment that it came to nothing.
func (s *story) makeReadable(claims []*claim) {
	s.front.with(func() {
		for _, c := range claims {
			s.front.forged[c.transaction] = map[string]json.RawMessage{
				"status": json.RawMessage(`"EXPIRED"`), "amount": json.RawMessage("700"),
			}
		}
	})
}

// giveBack is a person who gives the second payment of the newest order that was paid twice back, all of it.
func (s *story) giveBack([]*claim) {
	s.Helper()
	for _, second := range slices.Backward(s.sales) {
		if second.spoilt && second.second && s.dashboard(second, 0) != "" {
			s.returned[second.order] = true
			return
		}
	}
}

// forgeCurrency makes the list name another currency for money that was taken, and the same number.
func (s *story) forgeCurrency() bool {
	x := s.spoil()
	if x == nil {
		return false
	}
	capture := s.lastTransaction(x.key)
	s.front.with(func() { s.front.forged[capture] = map[string]json.RawMessage{"currency": json.RawMessage(`"JPY"`)} })
	s.expect(claim{
		kind: ledger.KindCurrencyDiffers, payments: []string{x.key}, transaction: capture, taken: true, why: "the list has another currency",
		due: s.clock.Now().Add(soon), breaks: s.clock.Now(), broken: s.clock.Now().Add(soon), day: s.today(),
	})
	return true
}

// disownCancel makes the list name another order for a cancel.
func (s *story) disownCancel() bool {
	x := s.spoil()
	if x == nil {
		return false
	}
	key := s.dashboard(x, 350)
	if key == "" {
		return false
	}
	s.disown(x, key, "cancel")
	return true
}

// disownCapture makes the list name another order for money that was taken.
func (s *story) disownCapture() bool {
	x := s.spoil()
	if x == nil {
		return false
	}
	s.disown(x, s.lastTransaction(x.key), "capture")
	return true
}

func (s *story) disown(x *sale, key, what string) {
	s.front.with(func() { s.front.forged[key] = map[string]json.RawMessage{"orderId": json.RawMessage(`"order-9998"`)} })
	s.expect(claim{
		kind: ledger.KindOrderDiffers, payments: []string{x.key}, transaction: key, why: "the list has another order for the " + what,
		due: s.clock.Now().Add(soon), breaks: s.clock.Now(), broken: s.clock.Now().Add(soon), day: s.today(),
	})
}

// stormSize is how many mismatches are too many to be looked at one by one.
const stormSize = 201

// manyAtOnce is money for very many orders that are not in the books, all of it listed at once.
func (s *story) manyAtOnce() {
	s.Helper()
	s.storm = true
	for n := range stormSize {
		payment, key := fmt.Sprintf("tsims20260101000000sm%03d", n), fmt.Sprintf("storm-%03d", n)
		s.must(s.gateway.PutTransaction(s.row(key, payment, fmt.Sprintf("order-storm-%03d", n), "DONE", "900", s.clock.Now())))
		s.expect(claim{
			kind: ledger.KindPaymentWithoutOrder, payments: []string{payment}, transaction: key, taken: true, why: "one of very many",
			due: s.clock.Now().Add(soon), breaks: s.clock.Now(), broken: s.clock.Now().Add(soon),
		})
	}
	s.breaks["very many at once"]++
	s.tell("CONTRADICTION: money for %d orders nobody made", stormSize)
}

// requireStorm: what one run found by the hundreds is one incident, and nothing else is.
func (s *story) requireStorm() {
	s.Helper()
	type storms struct {
		Incidents int `db:"incidents"`
		Single    int `db:"single"`
		Other     int `db:"other"`
	}
	found := rowsOf[storms](s.town, `
		SELECT (SELECT count(*) FROM incidents)::integer AS incidents,
			(SELECT count(*) FROM mismatches WHERE order_id LIKE 'order-storm-%' AND incident_id IS NULL)::integer AS single,
			(SELECT count(*) FROM mismatches WHERE order_id NOT LIKE 'order-storm-%' AND incident_id IS NOT NULL)::integer AS other`)[0]
	want := storms{}
	if s.storm {
		want = storms{Incidents: 1, Other: found.Other} // what the same run found beside it is part of it
	}
	if found != want {
		s.Errorf("the mismatches are %+v, want %+v", found, want)
	}
}
