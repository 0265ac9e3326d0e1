package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"daesa/ledger"
)

// TestCheck_OurCancelsAgreeWithTheBooks: a request that was settled past the books is found.
func TestCheck_OurCancelsAgreeWithTheBooks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status ledger.CancelRequestStatus
		want   []string
	}{
		{"done without a cancel", ledger.CancelRequestDone, []string{"I9 req_1: our cancel is done and not in the books"}},
		{"in progress without work", ledger.CancelRequestInProgress, []string{"I6 req_1: our cancel is in progress and nobody asks"}},
		{"refused", ledger.CancelRequestRefused, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.sold("pk_1", "order_1", 50_000, 0)
			b.asked("req_1", "pk_1", 12_000)
			b.answer("req_1", c.status, "never-booked")
			violations, err := ledger.Check(t.Context(), b.pool)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range violations {
				got = append(got, v.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}
