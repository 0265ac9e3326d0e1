package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

// TestSurplus_PaidTwice: the second payment's money waits in suspense and the order never hears of it.
func TestSurplus_PaidTwice(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 7)
	told := len(b.heard.all)
	r := b.record(b.captured("pk_2", "order_1", 50_000))
	if !r.After.Surplus || r.After.Status != ledger.StatusDone || r.Order.Status != ledger.OrderPaid || r.After.CreditsGranted != 0 {
		t.Fatalf("got %+v, want a surplus that is done and grants nothing", r.After)
	}
	if diff := cmp.Diff([]string{"order_paid_twice 1"}, b.mismatches()); diff != "" {
		t.Errorf("mismatches (-want +got):\n%s", diff)
	}
	r = b.record(b.captured("pk_2", "order_1", 50_000, done("c1", 20_000), done("c2", 30_000)))
	if r.After.Status != ledger.StatusCanceled || r.Order.Status != ledger.OrderPaid {
		t.Errorf("got payment %s and order %s, want canceled and paid", r.After.Status, r.Order.Status)
	}
	if diff := cmp.Diff([]string{"credits_issued 7", "customer_credits -7", "gateway_receivable 50000", "sales -50000"}, b.trial()); diff != "" {
		t.Errorf("trial balance (-want +got):\n%s", diff)
	}
	var kinds []ledger.EventKind
	for _, a := range b.heard.all[told:] {
		kinds = append(kinds, a.Kind)
	}
	if diff := cmp.Diff([]ledger.EventKind{ledger.EventPaymentSurplus}, kinds); diff != "" {
		t.Errorf("announcements (-want +got):\n%s", diff)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestSurplus_FailedPaymentTurnsOutPaid: the buyer paid with a second key while the first was believed refused.
func TestSurplus_FailedPaymentTurnsOutPaid(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 0)
	b.intend("pk_1", "order_1", 50_000)
	b.record(b.outcome("pk_1", ledger.EvidenceRefused, 1))
	b.intend("pk_2", "order_1", 50_000)
	r := b.record(b.captured("pk_1", "order_1", 50_000))
	if !r.After.Surplus || r.Order.Status != ledger.OrderPending {
		t.Fatalf("got surplus %t and order %s, want a surplus and a pending order", r.After.Surplus, r.Order.Status)
	}
	r = b.record(b.captured("pk_2", "order_1", 50_000))
	if r.After.Surplus || r.Order.Status != ledger.OrderPaid {
		t.Errorf("got surplus %t and order %s, want the order paid by the second", r.After.Surplus, r.Order.Status)
	}
	if diff := cmp.Diff([]string{"gateway_receivable 100000", "sales -50000", "suspense -50000"}, b.trial()); diff != "" {
		t.Errorf("trial balance (-want +got):\n%s", diff)
	}
	ledgertest.RequireSound(t, b.pool)
}
