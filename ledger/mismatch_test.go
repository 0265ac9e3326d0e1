package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"daesa/ledger/ledgertest"
)

// TestRecord_AContradictionSeenAgainShowsWhatIsAtRiskNow keeps one mismatch for one contradiction, with the figures of
// the last look at it: what a person accepts must be what stands there.
func TestRecord_AContradictionSeenAgainShowsWhatIsAtRiskNow(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 0)
	b.intend("pk_1", "order_1", 50_000)
	b.record(b.captured("pk_1", "order_1", 49_000))
	b.record(b.captured("pk_1", "order_1", 48_000))
	got := b.list(`SELECT kind || ' ' || amount || ' ' || currency || ' ' || times_seen FROM mismatches`)
	if diff := cmp.Diff([]string{"amount_differs 48000 KRW 2"}, got); diff != "" {
		t.Errorf("mismatches (-want +got):\n%s", diff)
	}
	ledgertest.RequireSound(t, b.pool)
}
