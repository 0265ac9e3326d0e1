package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

// TestQuarantine_IsAMismatchAndNothingElse: an answer that cannot be read is shown to a person once, however often it
// comes, and a stranger's key leaves nothing.
func TestQuarantine_IsAMismatchAndNothingElse(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 0)
	work := b.work()
	for _, key := range []string{"pk_1", "pk_1", "pk_stranger"} {
		b.do(func(tx pgx.Tx) error {
			return b.ledger.Quarantine(t.Context(), tx, key, "totalAmount: currency EUR is not known", map[string]any{"asked": "again"})
		})
	}
	if diff := cmp.Diff([]string{"quarantined 2"}, b.mismatches()); diff != "" {
		t.Errorf("mismatches (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(work, b.work()); diff != "" {
		t.Errorf("work changed (-before +after):\n%s", diff)
	}
	if p, _, err := ledger.Load(t.Context(), b.pool, "pk_1"); err != nil || p.Status != ledger.StatusDone {
		t.Errorf("got %s and %v, want the payment as it was", p.Status, err)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestRecord_ComparesTheMerchantOfPaymentsThatNameNone: neither a payment whose intent checked no merchant nor one
// that is adopted takes money of another merchant.
func TestRecord_ComparesTheMerchantOfPaymentsThatNameNone(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 0)
	b.order("order_2", 50_000, 0)
	b.intend("pk_1", "order_1", 50_000)
	l, err := ledger.New(ledger.Config{
		Notify: b.heard, Metrics: ledger.NewMetrics(prometheus.NewPedanticRegistry()), Now: func() time.Time { return b.now }, MerchantID: "shop",
	})
	if err != nil {
		t.Fatal(err)
	}
	b.ledger = l
	for key, order := range map[string]string{"pk_1": "order_1", "pk_2": "order_2"} {
		for _, merchant := range []string{"shop2", ""} {
			seen := b.captured(key, order, 50_000)
			seen.MerchantID = merchant
			if r := b.record(seen); r.Outcome != ledger.OutcomeConflict || r.After.Captured().Positive() {
				t.Errorf("%s of merchant %q: got %s with %s captured, want a conflict", key, merchant, r.Outcome, r.After.Captured())
			}
		}
		seen := b.captured(key, order, 50_000)
		seen.MerchantID = "shop"
		if r := b.record(seen); r.Outcome != ledger.OutcomeApplied {
			t.Errorf("%s of our merchant: got %s, want applied", key, r.Outcome)
		}
	}
	if diff := cmp.Diff([]string{"merchant_differs 2", "merchant_differs 2"}, b.mismatches()); diff != "" {
		t.Errorf("mismatches (-want +got):\n%s", diff)
	}
	ledgertest.RequireSound(t, b.pool)
}
