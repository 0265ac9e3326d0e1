package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

func (s *shop) find(f ledger.Finding) {
	s.t.Helper()
	s.tx(func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		ledger.QueueMismatch(b, f, s.clock.Now())
		return tx.SendBatch(s.t.Context(), b).Close()
	})
}

// TestAgreed_SecondCapture: a payment that the list has as taken twice and our books once does not agree.
func TestAgreed_SecondCapture(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 10_000)
	s.clock.Advance(time.Minute)
	s.row("second", key, "order-1", "DONE", "10000")
	s.clock.Advance(time.Minute)
	s.poll()
	s.exec(`UPDATE captures SET transaction_key = (SELECT transaction_key FROM mirror WHERE transaction_key <> 'second')`)
	s.find(ledger.Finding{Kind: ledger.KindPaymentWithoutOrder, PaymentKey: key, OrderID: "order-1", AtRisk: ledger.Won(10_000), Detail: "-"})
	s.must(s.Sweeper.Tend(t.Context()))
	if s.mismatches(ledger.KindPaymentWithoutOrder) != 1 {
		t.Error("it ended while a listed capture is not booked")
	}
	s.exec(`DELETE FROM mirror WHERE transaction_key = 'second'`)
	s.must(s.Sweeper.Tend(t.Context()))
	if s.mismatches(ledger.KindPaymentWithoutOrder) != 0 {
		t.Error("it stays although everything listed is booked")
	}
}

// TestAgreed_ReopenedClaim: work that had ended before a mismatch was opened again says nothing about it.
func TestAgreed_ReopenedClaim(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 10_000)
	owed := ledger.Finding{Kind: ledger.KindCancelMissingHere, PaymentKey: key, OrderID: "order-1", AtRisk: ledger.Won(1), Detail: "-"}
	s.claim(key, "")
	s.find(owed)
	s.clock.Advance(time.Hour)
	s.exec(`UPDATE work SET closed_at = $1, closed_as = 'settled'`, s.clock.Now())
	s.must(s.Sweeper.Tend(t.Context()))
	if s.mismatches(ledger.KindCancelMissingHere) != 0 {
		t.Fatal("the claim has ended and it stays")
	}
	s.clock.Advance(60 * 24 * time.Hour)
	s.find(owed)
	s.must(s.Sweeper.Tend(t.Context()))
	if s.mismatches(ledger.KindCancelMissingHere) != 1 {
		t.Error("the work of the first claim ended the second")
	}
	s.clock.Advance(time.Hour)
	s.exec(`UPDATE work SET closed_at = $1`, s.clock.Now())
	s.must(s.Sweeper.Tend(t.Context()))
	if s.mismatches(ledger.KindCancelMissingHere) != 0 {
		t.Error("the second claim has ended and it stays")
	}
}

// TestPoll_OursWhateverThePattern: a payment in our books is ours, also where its order has another form than ours have.
func TestPoll_OursWhateverThePattern(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *reconcile.Config, _ *tosssim.Config) { c.OurOrders = regexp.MustCompile(`^mistyped-`) })
	s.canceled(s.paid("order-1", 10_000), 4_000)
	s.row("other", "pay-other", "x-1", "DONE", "10000")
	s.clock.Advance(time.Minute)
	s.poll()
	if got := s.number(`SELECT count(*) FROM mirror WHERE is_foreign`); got != 1 {
		t.Errorf("%d rows are foreign, want the other system's", got)
	}
	if got := s.number(`SELECT count(*) FROM work WHERE kind = 'cancel_listed'`); got != 1 {
		t.Errorf("%d cancels of ours are asked about", got)
	}
}

// TestPoll_ClocksThatLieApart: an instance whose clock is not the database's reads nothing, and what happens until
// another one reads after a pause is read whole.
func TestPoll_ClocksThatLieApart(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.poll()
	for _, test := range []struct {
		apart   time.Duration
		refused bool
	}{{6 * time.Hour, true}, {-6 * time.Hour, true}, {time.Minute + time.Second, true}, {time.Minute, false}, {-time.Minute, false}} {
		apart, refused := test.apart, test.refused
		off := s.another(func(c *reconcile.Config) { c.Now = func() time.Time { return s.clock.Now().Add(apart) } })
		for _, read := range []func(context.Context) (reconcile.Polled, error){off.Mirror.Poll, off.Mirror.Reread} {
			if _, err := read(t.Context()); errors.Is(err, reconcile.ErrClocks) != refused || (err != nil) != refused {
				t.Errorf("%s ahead: got %v", apart, err)
			}
		}
	}
	s.clock.Advance(20 * time.Minute)
	s.paid("order-1", 10_000)
	s.clock.Advance(40 * time.Minute)
	if p := s.poll(); p.Fresh != 1 {
		t.Errorf("got %+v, want the new row", p)
	}
}

// TestPoll_ClockAhead: what clocks that were ahead, the database's as well, had not seen yet is not covered, and is read
// when its time has come.
func TestPoll_ClockAhead(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.poll()
	ahead := s.another(func(c *reconcile.Config) {
		c.Now = func() time.Time { return s.clock.Now().Add(6 * time.Hour) }
		c.DatabaseNow = func(context.Context) (time.Time, error) { return c.Now(), nil }
	})
	_, err := ahead.Mirror.Poll(t.Context())
	s.must(err)
	s.clock.Advance(time.Minute)
	s.paid("order-1", 10_000)
	s.clock.Advance(time.Minute)
	if p := s.poll(); p.Fresh != 1 {
		t.Errorf("got %+v, want the new row", p)
	}
	if got := s.number(`SELECT count(*) FROM list_covered WHERE upper(stretches) > $1`, s.clock.Now()); got != 0 {
		t.Error("the future is covered")
	}
}

// TestPoll_CoversNoFuture: a read of a window that goes beyond now covers it up to now only.
func TestPoll_CoversNoFuture(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, err := s.Mirror.Backfill(t.Context(), s.clock.Now().Add(-time.Hour), s.clock.Now().Add(5*time.Hour))
	s.must(err)
	if got := s.number(`SELECT count(*) FROM list_covered WHERE upper(stretches) > $1`, s.clock.Now()); got != 0 {
		t.Error("the future is covered")
	}
}

// TestPoll_QuarantinedWithoutKey: rows that cannot be read are a subject each, and a booking explains none of them.
func TestPoll_QuarantinedWithoutKey(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 10_000)
	row := func(amount string) string {
		return fmt.Sprintf(`{"mId":"tsimshop01","paymentKey":%q,"orderId":"order-1","method":"카드","status":"DONE",
			"transactionAt":%q,"currency":"KRW","amount":%s}`, key, s.clock.Now().Format(time.RFC3339), amount)
	}
	body := "[" + row("1000") + "," + row("2000") + "]"
	s.clock.Advance(time.Minute)
	s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Body, Body: body, N: 1})
	s.poll()
	if got := s.mismatches(ledger.KindQuarantined); got != 2 {
		t.Errorf("%d rows are looked into, want 2", got)
	}
	s.exec(`UPDATE captures SET recorded_at = recorded_at + interval '2 hours'`)
	s.must(s.Sweeper.Tend(t.Context()))
	if got := s.mismatches(ledger.KindQuarantined); got != 2 {
		t.Errorf("%d of 2 are left after a booking", got)
	}
}
