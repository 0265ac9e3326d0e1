package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

// release tries to free the order that a payment holds.
func (b *books) release(key string) (released bool) {
	b.t.Helper()
	b.do(func(tx pgx.Tx) (err error) {
		released, err = b.ledger.Release(b.t.Context(), tx, key)
		return err
	})
	return released
}

// doubtful is an order of half a day whose only payment has been in doubt for longer than an hour, and holds it no more.
func doubtful(t *testing.T) *books {
	t.Helper()
	b := open(t)
	b.do(func(tx pgx.Tx) error {
		_, err := b.ledger.CreateOrder(t.Context(), tx, ledger.Order{
			ID: "order_1", Amount: ledger.Won(50_000), CustomerID: "cus_1", Credits: 7, ExpiresAt: b.now.Add(12 * time.Hour),
		})
		return err
	})
	b.intend("pk_made_up", "order_1", 50_000)
	b.record(b.outcome("pk_made_up", ledger.EvidenceLost, 1))
	b.now = b.now.Add(ledger.UndecidedAgeMax + time.Second)
	if !b.release("pk_made_up") {
		t.Fatal("an unknown payment of more than an hour still holds its order")
	}
	return b
}

// TestRelease_OnlyWhatHasBeenInDoubtForAnHour: nothing else lets go of its order, and nothing does so twice.
func TestRelease_OnlyWhatHasBeenInDoubtForAnHour(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_paid", "order_paid", 50_000, 0)
	b.order("order_1", 50_000, 0)
	b.intend("pk_1", "order_1", 50_000)
	b.record(b.outcome("pk_1", ledger.EvidenceLost, 1))
	b.now = b.now.Add(ledger.UndecidedAgeMax - time.Second)
	for _, key := range []string{"pk_1", "pk_paid", "pk_never_seen"} {
		if b.release(key) {
			t.Errorf("%s let go of its order", key)
		}
	}
	b.now = b.now.Add(2 * time.Second)
	if first, second := b.release("pk_1"), b.release("pk_1"); !first || second || b.release("pk_paid") {
		t.Errorf("got %t and %t, want released once", first, second)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestRelease_FreesTheOrderAndEndsNoDoubt: the buyer pays with another key, and the first is asked about as before.
func TestRelease_FreesTheOrderAndEndsNoDoubt(t *testing.T) {
	t.Parallel()
	b := doubtful(t)
	if in := b.intend("pk_buyer", "order_1", 50_000); !in.Started {
		t.Fatalf("got %+v, want another key to be confirmed", in.Payment)
	}
	if r := b.record(b.captured("pk_buyer", "order_1", 50_000)); r.After.Surplus || r.Order.Status != ledger.OrderPaid {
		t.Errorf("got surplus %t and order %s, want the order paid", r.After.Surplus, r.Order.Status)
	}
	if again := b.intend("pk_made_up", "order_1", 50_000); again.Started || again.Payment.Status != ledger.StatusUnknown {
		t.Errorf("got %s, started %t; want the doubt to stand", again.Payment.Status, again.Started)
	}
	if diff := cmp.Diff([]string{"confirm_unknown - open", "confirm_unknown - settled"}, b.work()); diff != "" {
		t.Errorf("work (-want +got):\n%s", diff)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestRelease_LateMoneyTakesTheOrderBack: it is the order's money as long as no other payment holds the order.
func TestRelease_LateMoneyTakesTheOrderBack(t *testing.T) {
	t.Parallel()
	b := doubtful(t)
	r := b.record(b.captured("pk_made_up", "order_1", 50_000))
	if r.After.Surplus || r.After.Status != ledger.StatusDone || r.Order.Status != ledger.OrderPaid || r.After.CreditsGranted != 7 {
		t.Errorf("got %+v and order %s, want the order paid", r.After, r.Order.Status)
	}
	if diff := cmp.Diff([]string{"credits_issued 7", "customer_credits -7", "gateway_receivable 50000", "sales -50000"}, b.trial()); diff != "" {
		t.Errorf("trial balance (-want +got):\n%s", diff)
	}
	if got := b.mismatches(); len(got) != 0 {
		t.Errorf("got mismatches %v, want none", got)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestRelease_LateMoneyForATakenOrderIsSurplus: the order was paid with another key meanwhile.
func TestRelease_LateMoneyForATakenOrderIsSurplus(t *testing.T) {
	t.Parallel()
	b := doubtful(t)
	b.intend("pk_buyer", "order_1", 50_000)
	b.record(b.captured("pk_buyer", "order_1", 50_000))
	r := b.record(b.captured("pk_made_up", "order_1", 50_000))
	if !r.After.Surplus || r.Order.Status != ledger.OrderPaid {
		t.Errorf("got surplus %t and order %s, want a surplus", r.After.Surplus, r.Order.Status)
	}
	if diff := cmp.Diff([]string{"order_paid_twice 1"}, b.mismatches()); diff != "" {
		t.Errorf("mismatches (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"credits_issued 7", "customer_credits -7", "gateway_receivable 100000", "sales -50000", "suspense -50000",
	}, b.trial()); diff != "" {
		t.Errorf("trial balance (-want +got):\n%s", diff)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestRelease_WhatMovesNoMoneyTakesNothingBack: the order expires in its time, and a late word that the payment is
// dead, void or turned away leaves it alone.
func TestRelease_WhatMovesNoMoneyTakesNothingBack(t *testing.T) {
	t.Parallel()
	for _, e := range []ledger.Evidence{ledger.EvidenceDead, ledger.EvidenceVoided, ledger.EvidenceOpen} {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			b := doubtful(t)
			seen := b.captured("pk_made_up", "order_1", 50_000)
			seen.Evidence, seen.CapturedAt = e, time.Time{}
			if r := b.record(seen); !r.After.Surplus || r.Order.Status != ledger.OrderPending {
				t.Errorf("got surplus %t and order %s, want a pending order", r.After.Surplus, r.Order.Status)
			}
			if in := b.intend("pk_buyer", "order_1", 50_000); !in.Started {
				t.Errorf("got %+v, want another key to be confirmed", in.Payment)
			}
			ledgertest.RequireSound(t, b.pool)
		})
	}
}

// TestRelease_TheOrderExpiresInItsTime: a payment that does not hold its order does not keep it open either. Money that
// comes after all pays it, and a person is told.
func TestRelease_TheOrderExpiresInItsTime(t *testing.T) {
	t.Parallel()
	b := doubtful(t)
	b.now = b.now.Add(12 * time.Hour)
	var expired int64
	b.do(func(tx pgx.Tx) (err error) {
		expired, err = b.ledger.ExpireOrders(t.Context(), tx, 10)
		return err
	})
	if expired != 1 {
		t.Errorf("got %d orders expired, want 1", expired)
	}
	if r := b.record(b.captured("pk_made_up", "order_1", 50_000)); r.Order.Status != ledger.OrderPaid || r.After.Surplus {
		t.Errorf("got order %s and surplus %t, want paid", r.Order.Status, r.After.Surplus)
	}
	if diff := cmp.Diff([]string{"paid_after_expiry 1"}, b.mismatches()); diff != "" {
		t.Errorf("mismatches (-want +got):\n%s", diff)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestRelease_AnAttemptTurnedAwayMayBeConfirmedAgain: the process died after the intent. Turned away after all, the
// payment is ready, and a new attempt holds the order again.
func TestRelease_AnAttemptTurnedAwayMayBeConfirmedAgain(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.do(func(tx pgx.Tx) error {
		_, err := b.ledger.CreateOrder(t.Context(), tx, ledger.Order{ID: "order_1", Amount: ledger.Won(50_000), ExpiresAt: b.now.Add(12 * time.Hour)})
		return err
	})
	b.intend("pk_1", "order_1", 50_000)
	b.now = b.now.Add(ledger.UndecidedAgeMax + time.Second)
	if !b.release("pk_1") {
		t.Fatal("a confirm of more than an hour ago still holds its order")
	}
	b.record(b.outcome("pk_1", ledger.EvidenceUnprocessed, 1))
	if in := b.intend("pk_1", "order_1", 50_000); !in.Started || in.Payment.Surplus {
		t.Errorf("got started %t, surplus %t; want a new attempt that holds the order", in.Started, in.Payment.Surplus)
	}
	if _, err := b.wish("pk_2", "order_1", ledger.Won(50_000)); err == nil {
		t.Error("another payment took an order that is held")
	}
	ledgertest.RequireSound(t, b.pool)
}
