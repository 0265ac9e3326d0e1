package app_test

import (
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

func (w *world) mismatches(kind ledger.Kind) int64 {
	w.Helper()
	return w.number(`SELECT count(*) FROM mismatches WHERE kind = $1 AND status <> 'resolved'`, string(kind))
}

// TestOrder_ExpiresAndMoneyComesLate lets an order expire; a confirm is refused, and money that the gateway took all the
// same is the order's, with a mismatch for a person.
func TestOrder_ExpiresAndMoneyComesLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.app.shop.order("order-late", 50_000)
	w.clock.Advance(29 * time.Minute)
	key := w.authenticate("order-late", 50_000, tosssim.Card)
	w.later(2 * time.Minute)
	if got := w.app.shop.status("order-late"); got != "200 expired" {
		t.Errorf("got %s, want expired", got)
	}
	w.app.shop.confirm(key, "order-late", 50_000).want(t, "confirm", "409 order_expired")
	if got := w.sim.Count(tosssim.Confirm); got != 0 {
		t.Errorf("the gateway was called %d times for an expired order", got)
	}
	w.must(w.sim.Approve(key)) // by somebody else with our key
	w.clock.Advance(20 * time.Minute)
	w.readList()
	w.sweep()
	w.wantStanding("order-late", "200 paid", totals{1, 50_000, 0, 0})
	if got := w.mismatches(ledger.KindPaidAfterExpiry); got != 1 {
		t.Errorf("got %d mismatches about money after expiry, want 1", got)
	}
	w.quiesce()
	w.requireAgreed()
}

// TestOrder_PaidTwice keeps the second money in suspense: the order stays as it is, a person is told, and its refund
// touches the order no more.
func TestOrder_PaidTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.sell("order-double", 50_000)
	second := w.authenticate("order-double", 50_000, tosssim.Card)
	w.app.shop.confirm(second, "order-double", 50_000).want(t, "the second window", "409 order_taken")
	w.must(w.sim.Approve(second))
	w.clock.Advance(20 * time.Minute)
	w.readList()
	w.sweep()
	w.wantStanding("order-double", "200 paid", totals{2, 100_000, 0, 0})
	if !w.payment(second).Surplus || w.payment(first).Surplus {
		t.Error("the second payment, and only it, must be surplus")
	}
	if got := w.mismatches(ledger.KindPaidTwice); got != 1 {
		t.Errorf("got %d mismatches about an order paid twice, want 1", got)
	}
	w.dashboard(second, 0)
	w.wantDelivery(w.newest(second), 200)
	w.wantStanding("order-double", "200 paid", totals{2, 100_000, 1, 50_000})
	w.quiesce()
	w.requireAgreed()
}

// TestCredits_SpentThenCanceled takes granted credits back in proportion; what was spent becomes a debt and a mismatch,
// never a reason to lose the cancel.
func TestCredits_SpentThenCanceled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.app.shop.orderFor("order-credits", 50_000, "customer-1", 1_000)
	key := w.authenticate("order-credits", 50_000, tosssim.Card)
	w.app.shop.confirm(key, "order-credits", 50_000).want(t, "confirm", "200 done")
	w.wantCredits("customer-1", 1_000)
	spend := map[string]any{"spend_id": "spend-1", "amount": 800}
	for range 2 { // the same spend again is the same spend
		if got := w.app.shop.call("POST", "/v1/customers/customer-1/credits/spend", "spend-1", spend); got.code != 200 && got.code != 201 {
			t.Fatalf("spend: got %s: %s", got.is(), got.body)
		}
	}
	w.wantCredits("customer-1", 200)
	w.dashboard(key, 12_500)
	w.wantDelivery(w.newest(key), 200)
	w.wantCredits("customer-1", -50)
	w.dashboard(key, 0)
	w.wantDelivery(w.newest(key), 200)
	w.wantCredits("customer-1", -800)
	if got := w.mismatches(ledger.KindCreditsSpent); got < 1 {
		t.Errorf("got %d mismatches about spent credits, want at least 1", got)
	}
	w.quiesce()
	w.requireAgreed()
}

func (w *world) wantCredits(customer string, want int64) {
	w.Helper()
	if got := w.number(`SELECT balance FROM credit_accounts WHERE customer_id = $1`, customer); got != want {
		w.Errorf("got %d credits, want %d", got, want)
	}
}

// TestConfirm_DearOrderCheapPayment compares the amount with the order's, and calls nobody when it differs.
func TestConfirm_DearOrderCheapPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.app.shop.order("order-dear", 500_000)
	key := w.authenticate("order-dear", 1_000, tosssim.Card)
	w.app.shop.confirm(key, "order-dear", 1_000).want(t, "the cheap amount", "400 amount_mismatch")
	w.app.shop.confirm(key, "order-none", 1_000).want(t, "no such order", "404 not_found")
	if got := w.sim.Count(tosssim.Confirm); got != 0 {
		t.Errorf("the gateway was called %d times", got)
	}
	// The dear amount for the cheap payment is the gateway's to refuse.
	if got := w.app.shop.confirm(key, "order-dear", 500_000); got.code == 200 {
		t.Errorf("got %s for a payment of another amount", got.is())
	}
	w.quiesce()
	w.requireAgreed()
}
