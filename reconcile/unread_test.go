package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// TestSweep_MoneyThatCannotBeReadIsQuarantined: an answer in a currency never seen, or of half a won, changes nothing in
// the books; a person is shown it, and asking goes on until the gateway can be read.
func TestSweep_MoneyThatCannotBeReadIsQuarantined(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, from, to string }{
		{"unknown currency", `"currency":"KRW"`, `"currency":"XAU"`},
		{"half a won", `"totalAmount":10000`, `"totalAmount":10000.5`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			confirming := s.order("order-1", 10_000, tosssim.Card)
			s.send(s.intend("order-1", confirming, 10_000))
			claimed := s.paid("order-2", 10_000)
			s.canceled(claimed, 0)
			s.claim(claimed, "")
			for _, key := range []string{confirming, claimed} {
				shown, _ := s.sim.Payment(key)
				s.sim.Fail(tosssim.Fault{
					Op: tosssim.Get, Kind: tosssim.Body, Code: 200, ContentType: "application/json", PaymentKey: key,
					Body: strings.Replace(string(shown), c.from, c.to, 1),
				})
			}
			s.clock.Advance(time.Minute)
			if swept := s.sweep(); swept.Results[reconcile.ResultUnanswered] != 2 || s.mismatches(ledger.KindQuarantined) != 2 {
				t.Errorf("got %v and %d quarantined, want both", swept.Results, s.mismatches(ledger.KindQuarantined))
			}
			if n := s.number(`SELECT sum(amount) FROM mismatches WHERE kind = 'quarantined'`); n != 20_000 {
				t.Errorf("got %d at risk, want 20,000", n)
			}
			s.clock.Advance(time.Hour)
			s.sweep()
			if p := s.payment(confirming); p.Status != ledger.StatusDone {
				t.Errorf("got %s once the answer can be read, want done", p.Status)
			}
			if p := s.payment(claimed); p.Status != ledger.StatusCanceled {
				t.Errorf("got %s once the answer can be read, want canceled", p.Status)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}
