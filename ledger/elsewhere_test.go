package ledger_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

// TestRecord_OneTransactionKeyForTwoPayments: no book can hold a transaction twice. What else the observation says is
// recorded, the contradiction is a mismatch, and the same answer again changes nothing.
func TestRecord_OneTransactionKeyForTwoPayments(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		change   func(o *ledger.Observation)
		status   ledger.Status
		applied  int
		conflict []string
	}{
		{
			"a cancel", func(o *ledger.Observation) { o.Cancels = []ledger.ObservedCancel{done("shared", 20_000)} },
			ledger.StatusDone, 0,
			[]string{"history_changed shared 20000 KRW"},
		},
		{"a cancel among others", func(o *ledger.Observation) {
			o.Cancels = []ledger.ObservedCancel{done("c2", 10_000), done("shared", 20_000), done("c3", 5_000)}
		}, ledger.StatusPartiallyCanceled, 2, []string{"history_changed shared 20000 KRW"}},
		{
			"a cancel under way", func(o *ledger.Observation) { o.Cancels = []ledger.ObservedCancel{underway("shared", 20_000)} },
			ledger.StatusDone, 0,
			[]string{"history_changed shared 20000 KRW"},
		},
		{
			"a capture", func(o *ledger.Observation) { o.LastTransactionKey = "taken" },
			ledger.StatusDone, 0,
			[]string{"history_changed taken 50000 KRW"},
		},
		{"both", func(o *ledger.Observation) {
			o.LastTransactionKey, o.Cancels = "taken", []ledger.ObservedCancel{done("shared", 50_000)}
		}, ledger.StatusDone, 0, []string{"history_changed shared 50000 KRW", "history_changed taken 50000 KRW"}},
		{
			"none", func(o *ledger.Observation) { o.Cancels = []ledger.ObservedCancel{done("c2", 20_000)} },
			ledger.StatusPartiallyCanceled, 1, nil,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.order("order_1", 50_000, 0)
			b.intend("pk_1", "order_1", 50_000)
			first := b.captured("pk_1", "order_1", 50_000)
			first.LastTransactionKey = "taken"
			b.record(first)
			b.record(b.captured("pk_1", "order_1", 50_000, done("shared", 20_000)))
			b.order("order_2", 50_000, 0)
			b.intend("pk_2", "order_2", 50_000)
			for range 2 {
				o := b.captured("pk_2", "order_2", 50_000)
				test.change(&o)
				r := b.record(o)
				if r.After.Status != test.status || len(r.After.Cancels) != test.applied || len(r.Elsewhere) != len(test.conflict) {
					t.Errorf("got %s, %d cancels and %v elsewhere", r.After.Status, len(r.After.Cancels), r.Elsewhere)
				}
			}
			got := b.list(`SELECT kind || ' ' || transaction_key || ' ' || amount || ' ' || currency FROM mismatches WHERE payment_key = 'pk_2' AND times_seen = 2 ORDER BY transaction_key`)
			if diff := cmp.Diff(test.conflict, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("mismatches (-want +got):\n%s", diff)
			}
			ledgertest.RequireSound(t, b.pool)
		})
	}
}

// TestRecord_AVoidUnderAnotherPaymentsKey is booked under a name of its own.
func TestRecord_AVoidUnderAnotherPaymentsKey(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 0)
	b.record(b.captured("pk_1", "order_1", 50_000, done("shared", 20_000)))
	b.order("order_2", 50_000, 0)
	b.intend("pk_2", "order_2", 50_000)
	o := b.captured("pk_2", "order_2", 50_000, done("shared", 50_000))
	o.Evidence, o.VirtualAccount, o.LastTransactionKey = ledger.EvidenceVoided, true, "shared"
	if r := b.record(o); r.After.Status != ledger.StatusCanceled || len(r.Applied) != 1 || r.Applied[0].TransactionKey != "void:pk_2" {
		t.Errorf("got %s and %v, want the void", r.After.Status, r.Applied)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestRecord_OneTransactionKeyForTwoPaymentsAtOnce: whoever comes second sees the first, at the latest when it comes
// again.
func TestRecord_OneTransactionKeyForTwoPaymentsAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	for _, n := range []string{"1", "2"} {
		b.sold("pk_"+n, "order_"+n, 50_000, 0)
	}
	together(t, 2, func(i int) error {
		n := []string{"1", "2"}[i]
		_, err := b.recorded(b.captured("pk_"+n, "order_"+n, 50_000, done("shared", 20_000)))
		if err != nil && !postgres.Violates(err, "cancels_pkey") && !errors.Is(err, ledger.ErrNotFound) {
			return err
		}
		return nil
	})
	for _, n := range []string{"1", "2"} {
		b.record(b.captured("pk_"+n, "order_"+n, 50_000, done("shared", 20_000)))
	}
	if got := b.list(`SELECT count(*)::text FROM cancels UNION ALL SELECT count(*)::text FROM mismatches`); got[0] != "1" || got[1] != "1" {
		t.Errorf("got %v cancels and mismatches, want one each", got)
	}
	ledgertest.RequireSound(t, b.pool)
}
