package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// soldElsewhere is a payment that the system before us took: its order is not in our books.
func (s *shop) soldElsewhere(order string, won int64) (paymentKey string) {
	s.t.Helper()
	key := s.sim.Authenticate(tosssim.Checkout{OrderID: order, OrderName: order, Amount: won})
	s.must(s.sim.Approve(key))
	return key
}

// TestOpening_ExactInstants: a capture and a cancel of a payment that nobody imported, on either side of the opening, to
// the microsecond. What is before it opens nothing. A cancel after it of money taken before is taken over by itself; of
// money taken after it, it is money of nobody.
func TestOpening_ExactInstants(t *testing.T) {
	t.Parallel()
	taken, undone := noon().Add(-2*time.Hour), noon().Add(-time.Hour)
	for _, test := range []struct {
		name       string
		opening    time.Time
		taken      bool // over by us
		mismatches int
	}{
		{"a microsecond before the capture", taken.Add(-time.Microsecond), false, 1},
		{"at the capture", taken, false, 1},
		{"a microsecond after the capture", taken.Add(time.Microsecond), true, 0},
		{"in between", taken.Add(30 * time.Minute), true, 0},
		{"a microsecond before the cancel", undone.Add(-time.Microsecond), true, 0},
		{"at the cancel", undone, true, 0},
		{"a microsecond after the cancel", undone.Add(time.Microsecond), false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, func(c *reconcile.Config, _ *tosssim.Config) { c.OpeningAt = test.opening })
			s.clock.Set(taken)
			key := s.soldElsewhere("order-old-1", 1000)
			s.clock.Set(undone)
			transaction := s.canceled(key, 400)
			s.clock.Set(noon())
			_, err := s.Mirror.Backfill(t.Context(), noon().Add(-48*time.Hour), noon())
			s.must(err)
			s.poll()
			s.sweep()
			p, _, err := ledger.Load(t.Context(), s.db, key)
			if (err == nil) != test.taken {
				t.Fatalf("got %v and %v, want taken over: %v", p.Status, err, test.taken)
			}
			if got := s.number(`SELECT count(*) FROM mismatches WHERE status <> 'resolved'`); got != test.mismatches {
				t.Errorf("got %d mismatches, want %d", got, test.mismatches)
			}
			if test.mismatches == 0 {
				if n := s.number(`SELECT count(*) FROM work WHERE closed_at IS NULL`); n != 0 {
					t.Errorf("%d rows of work are open", n)
				}
				if st := s.audit(reconcile.ScopeAll); st.Verdict != reconcile.VerdictReconciled {
					t.Errorf("got %s %v", st.Verdict, st.Reasons)
				}
			}
			if test.taken && (!p.HasCancel(transaction) || p.Balance().Minor != 600) {
				t.Errorf("got %+v", p)
			}
			if test.taken {
				for told, want := range map[string]int{"order.paid": 0, "order.partially_canceled": 1} {
					if n := s.number(`SELECT count(*) FROM events WHERE kind = $1`, told); n != want {
						t.Errorf("%d announcements of %s, want %d", n, told, want)
					}
				}
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestOpening_TakenOverOnce: the poll, the sweep and a second instance see the same cancel; it is booked once, and the
// next cancel is one like any other.
func TestOpening_TakenOverOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.clock.Set(noon().Add(-3 * time.Hour))
	key := s.soldElsewhere("order-old-1", 1000)
	early := s.canceled(key, 100) // before the opening as well
	s.clock.Set(noon())
	late := s.canceled(key, 200)
	s.clock.Advance(time.Minute)
	for range 2 {
		s.poll()
		s.sweep()
	}
	s.clock.Advance(time.Minute)
	last := s.canceled(key, 0)
	s.clock.Advance(time.Minute)
	s.poll()
	s.sweep()
	p := s.payment(key)
	for _, transaction := range []string{early, late, last} {
		if !p.HasCancel(transaction) {
			t.Errorf("cancel %s is not in the books", transaction)
		}
	}
	if p.Status != ledger.StatusCanceled || s.number(`SELECT count(*) FROM cancels`) != 3 {
		t.Errorf("got %s", p.Status)
	}
	if created := s.text(`SELECT to_char(created_at AT TIME ZONE 'Asia/Seoul', 'HH24:MI') FROM orders`); created != "09:00" {
		t.Errorf("the order was made at %s, want when its payment was", created)
	}
	if st := s.audit(reconcile.ScopeAll); st.Verdict != reconcile.VerdictReconciled || st.Sums[0].Canceled.Amount != 900 {
		t.Errorf("got %s %+v, want the two cancels since the opening", st.Verdict, st.Sums)
	}
	if n := s.number(`SELECT count(*) FROM events WHERE facts->>'transaction_key' = $1`, early); n != 0 {
		t.Error("a cancel from before the opening was announced")
	}
	ledgertest.RequireSound(t, s.db)
}

// TestOpening_WhatIsNotTakenOver: an order id that our books cannot hold, an order with other terms, another system's.
func TestOpening_WhatIsNotTakenOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		order      string
		change     func(*reconcile.Config)
		prepare    func(s *shop)
		mismatches int
	}{
		"an order id of no form":     {order: "71", mismatches: 1},
		"another system's":           {order: "other-1", change: func(c *reconcile.Config) { sharedID(c, nil) }},
		"an order with other terms":  {order: "order-1", prepare: func(s *shop) { s.order("order-1", 5000, tosssim.Card) }, mismatches: 1},
		"no opening":                 {order: "order-1", change: func(c *reconcile.Config) { c.OpeningAt = time.Time{} }, mismatches: 1},
		"an order that somebody has": {order: "order-1", prepare: func(s *shop) { s.paid("order-1", 1000) }, mismatches: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, func(c *reconcile.Config, _ *tosssim.Config) {
				if test.change != nil {
					test.change(c)
				}
			})
			s.clock.Set(noon().Add(-3 * time.Hour))
			key := s.soldElsewhere(test.order, 1000)
			s.clock.Set(noon())
			if test.prepare != nil {
				test.prepare(s)
			}
			s.canceled(key, 0)
			s.clock.Advance(time.Minute)
			s.poll()
			s.sweep()
			if n := s.number(`SELECT count(*) FROM mismatches WHERE status <> 'resolved'`); n < test.mismatches || n > 2*test.mismatches {
				t.Errorf("got %d mismatches, want %d: %s", n, test.mismatches, s.text(`SELECT COALESCE(string_agg(kind || ' ' || detail, '; '), '') FROM mismatches`))
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestOpening_VoidOfAnEarlierAccount: an account issued before the opening and never paid is canceled after it. No money
// moved; both books count it at nothing.
func TestOpening_VoidOfAnEarlierAccount(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.clock.Set(noon().Add(-3 * time.Hour))
	key := s.sim.Authenticate(tosssim.Checkout{OrderID: "order-old-1", OrderName: "x", Amount: 1000, Method: tosssim.VirtualAccount})
	s.must(s.sim.Approve(key))
	s.clock.Set(noon())
	s.canceled(key, 0)
	s.clock.Advance(time.Minute)
	s.poll()
	s.sweep()
	if st := s.audit(reconcile.ScopeAll); st.Verdict != reconcile.VerdictReconciled || s.number(`SELECT count(*) FROM work WHERE closed_at IS NULL`) != 0 {
		t.Errorf("got %s %v %s", st.Verdict, st.Reasons, fmt.Sprint(st.Lines))
	}
	ledgertest.RequireSound(t, s.db)
}
