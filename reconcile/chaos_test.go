package reconcile_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// TestStory_Chaos: whatever is lost, in whatever order (confirms, answers, notices, pages of the list, our own
// cancels), once the gateway answers again the books hold exactly what it did, and the identity held all the way.
func TestStory_Chaos(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := setup(t, smallPages)
			c := chaos{shop: s, dice: rand.New(rand.NewPCG(seed, 1))}
			for range 60 {
				c.step()
			}
			s.sim.Heal()
			for range 12 {
				s.clock.Advance(7 * time.Hour)
				s.poll()
				s.sweep()
			}
			st := s.audit(reconcile.ScopeAll)
			if st.Verdict != reconcile.VerdictReconciled {
				t.Errorf("got %s %v %+v", st.Verdict, st.Reasons, st.Lines)
			}
			totals := s.sim.Totals()
			if got := s.number(`SELECT COALESCE(sum(amount), 0) FROM cancels`); int64(got) != totals.Canceled["KRW"] {
				t.Errorf("got %d canceled, the gateway says %d", got, totals.Canceled["KRW"])
			}
			if got := s.number(`SELECT COALESCE(sum(amount), 0) FROM captures`); int64(got) != totals.Captured["KRW"] {
				t.Errorf("got %d captured, the gateway says %d", got, totals.Captured["KRW"])
			}
			if n := s.number(`SELECT count(*) FROM payments WHERE undecided_since IS NOT NULL`) + s.number(`SELECT count(*) FROM work WHERE closed_at IS NULL`); n != 0 {
				t.Errorf("%d payments and rows of work are left open", n)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

type chaos struct {
	*shop
	dice   *rand.Rand
	orders int
	asked  int
	keys   []string
}

// step is one thing that happens.
func (c *chaos) step() {
	c.t.Helper()
	c.clock.Advance(time.Duration(c.dice.IntN(90)) * time.Second)
	switch c.dice.IntN(9) {
	case 0, 1, 2:
		c.buy()
	case 3:
		c.cancelThere()
	case 4:
		c.cancelHere()
	case 5:
		c.fail()
	case 6:
		c.sim.Heal()
	case 7:
		_, _ = c.Mirror.Poll(c.t.Context()) // a list that cannot be read is part of it
		c.identity()
	case 8:
		_, err := c.Sweeper.Sweep(c.t.Context())
		c.must(err)
		c.identity()
	}
}

func (c *chaos) identity() {
	c.t.Helper()
	st := c.audit(reconcile.ScopeRecent)
	if st.Verdict == reconcile.VerdictBreaks || st.Verdict == reconcile.VerdictError {
		c.t.Fatalf("got %s %+v", st.Verdict, st.Lines)
	}
}

// buy confirms a payment; half of the answers are lost on our side.
func (c *chaos) buy() {
	c.t.Helper()
	c.orders++
	id := orderID(c.orders)
	won := int64(1000 + c.dice.IntN(9)*1000)
	key := c.order(id, won, tosssim.Card)
	result := c.send(c.intend(id, key, won))
	if result.Err == nil && c.dice.IntN(2) == 0 {
		c.record(result.Observation)
	}
	c.keys = append(c.keys, key)
}

// cancelThere cancels in the gateway's dashboard, where that is possible. No notice comes.
func (c *chaos) cancelThere() {
	if len(c.keys) == 0 {
		return
	}
	key := c.keys[c.dice.IntN(len(c.keys))]
	_, _ = c.sim.CancelInDashboard(key, int64(c.dice.IntN(3))*1000, "dashboard") // refused where nothing is left
}

// cancelHere asks for a cancel of our own and forgets the answer.
func (c *chaos) cancelHere() {
	c.t.Helper()
	for _, key := range c.keys {
		p := c.payment(key)
		if !p.Status.HoldsMoney() || c.number(`SELECT count(*) FROM cancel_requests WHERE payment_key = $1`, key) > 0 {
			continue
		}
		c.asked++
		part := ledger.Won(700) // no cancel in the dashboard is of this amount
		c.request(fmt.Sprint("req-", c.asked), key, &part)
		return
	}
}

// fail scripts a fault of the gateway.
func (c *chaos) fail() {
	op := []tosssim.Op{tosssim.Confirm, tosssim.Cancel, tosssim.Get, tosssim.List}[c.dice.IntN(4)]
	kind := []tosssim.Kind{tosssim.LostReply, tosssim.Reset, tosssim.TooMany, tosssim.HTML, tosssim.Garbage}[c.dice.IntN(5)]
	c.sim.Fail(tosssim.Fault{Op: op, Kind: kind, N: 1 + c.dice.IntN(3)})
}
