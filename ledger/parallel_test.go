package ledger_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

// recorded tries to record and returns what came of it.
func (b *books) recorded(o ledger.Observation) (r ledger.Recorded, err error) {
	err = b.try(func(tx pgx.Tx) (err error) {
		r, err = b.ledger.Record(b.t.Context(), tx, o)
		return err
	})
	return r, err
}

// TestInvariantI1_TwentyTimesAtOnce: one row, nineteen that find it there, and no error.
func TestInvariantI1_TwentyTimesAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 7)
	var applied atomic.Int32
	together(t, 20, func(int) error {
		r, err := b.recorded(b.captured("pk_1", "order_1", 50_000, done("c1", 50_000)))
		applied.Add(int32(len(r.Applied)))
		return err
	})
	if applied.Load() != 1 {
		t.Errorf("got the cancel applied %d times, want once", applied.Load())
	}
	if got := b.mismatches(); len(got) != 0 {
		t.Errorf("got mismatches %v, want none", got)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestRecord_TwoPartsAtOnce: each answer shows what the gateway had done when it was asked; in either order both
// parts are booked.
func TestRecord_TwoPartsAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	for i := range 8 {
		key, order := fmt.Sprintf("pk_%d", i), fmt.Sprintf("order_%d", i)
		c1, c2 := done(fmt.Sprintf("a%d", i), 6_000), done(fmt.Sprintf("b%d", i), 4_000)
		b.sold(key, order, 10_000, 0)
		looks := []ledger.Observation{b.captured(key, order, 10_000, c1), b.captured(key, order, 10_000, c1, c2)}
		together(t, 2, func(n int) error {
			_, err := b.recorded(looks[(n+i)%2])
			return err
		})
		p, o, err := ledger.Load(t.Context(), b.pool, key)
		if err != nil || p.Status != ledger.StatusCanceled || len(p.Cancels) != 2 || o.Status != ledger.OrderCanceled {
			t.Errorf("%s: got %s with %d cancels, order %s and %v", key, p.Status, len(p.Cancels), o.Status, err)
		}
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestRecord_AdoptsAtOnce: many answers about a key never seen put it in the books once.
func TestRecord_AdoptsAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 7)
	together(t, 8, func(i int) error {
		if i == 0 {
			_, err := b.wish("pk_1", "order_1", ledger.Won(50_000))
			return err
		}
		_, err := b.recorded(b.captured("pk_1", "order_1", 50_000, done("c1", 10_000)))
		return err
	})
	if p, _, err := ledger.Load(t.Context(), b.pool, "pk_1"); err != nil || p.Status != ledger.StatusPartiallyCanceled || len(p.Captures) != 1 {
		t.Errorf("got %s with %d captures and %v", p.Status, len(p.Captures), err)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestRecord_AKeyThatAppears: the payment is put in the books while answers about it are between looking for it and reading
// it. They must not go on without the locks that make each decide by what the others wrote.
func TestRecord_AKeyThatAppears(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 7)
	b.sold("pk_0", "order_0", 50_000, 0)
	together(t, 20, func(int) error { // every session knows the statements, so that it waits where it reads, and not before
		_, err := b.recorded(b.captured("pk_0", "order_0", 50_000))
		return err
	})
	intent, err := b.pool.Begin(t.Context()) //nolint:forbidigo // it stays open until the others are where they are to be
	if err != nil {
		t.Fatal(err)
	}
	if _, err := intent.Exec(t.Context(), `LOCK TABLE captures IN ACCESS EXCLUSIVE MODE`); err != nil { // nobody reads the payment
		t.Fatal(err)
	}
	const answers = 4
	var group errgroup.Group
	for i := range answers {
		group.Go(func() error {
			_, err := b.recorded(b.captured("pk_1", "order_1", 50_000, done(fmt.Sprintf("c%d", i), 1_000)))
			return err
		})
	}
	waitForLocks(t, b, answers)
	if _, err := b.ledger.Intend(t.Context(), intent, ledger.Intent{PaymentKey: "pk_1", OrderID: "order_1", Amount: ledger.Won(50_000)}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(intent.Commit(t.Context()), group.Wait()); err != nil {
		t.Fatal(err)
	}
	p, _, err := ledger.Load(t.Context(), b.pool, "pk_1")
	if err != nil || p.Status != ledger.StatusPartiallyCanceled || len(p.Captures) != 1 || len(p.Cancels) != answers {
		t.Errorf("got %s with %d captures, %d cancels and %v", p.Status, len(p.Captures), len(p.Cancels), err)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestInvariantI11_TwoPaymentsOfAnOrderAtOnce: whichever money is recorded first holds the order; the other is
// surplus, and none is lost to an error.
func TestInvariantI11_TwoPaymentsOfAnOrderAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	for i := range 6 {
		order := fmt.Sprintf("order_%d", i)
		b.order(order, 50_000, 7)
		together(t, 3, func(n int) error {
			_, err := b.recorded(b.captured(fmt.Sprintf("pk_%d_%d", i, n), order, 50_000))
			return err
		})
	}
	if got := b.list(`SELECT order_id FROM payments WHERE surplus GROUP BY order_id HAVING count(*) = 2`); len(got) != 6 {
		t.Errorf("got two surplus payments for %v, want for all 6 orders", got)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestRecordAndIntend_NeverWaitForEachOther mixes everything that locks an order and its payments. PostgreSQL
// reports a deadlock as an error and counts it; there must be none.
func TestRecordAndIntend_NeverWaitForEachOther(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_a", "order_1", 50_000, 7)
	b.record(b.captured("pk_b", "order_1", 50_000))
	together(t, 24, func(i int) error {
		c := done(fmt.Sprintf("c%d", i), 1_000)
		switch i % 4 {
		case 0:
			_, err := b.recorded(b.captured("pk_a", "order_1", 50_000, c))
			return err
		case 1:
			_, err := b.recorded(b.captured("pk_b", "order_1", 50_000, c))
			return err
		case 2:
			_, err := b.wish("pk_a", "order_1", ledger.Won(50_000))
			return err
		default:
			_, err := b.spend(fmt.Sprintf("s%d", i), "cus_1", 1)
			return err
		}
	})
	var deadlocks int
	if err := b.pool.QueryRow(t.Context(), `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&deadlocks); err != nil || deadlocks != 0 {
		t.Errorf("got %d deadlocks and %v, want none", deadlocks, err)
	}
	if got := b.list(`SELECT transaction_key FROM cancels`); len(got) != 12 {
		t.Errorf("got %d cancels, want 12", len(got))
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestRecord_ReadsAgainAfterItsLock: the second of two observations waits for the first and decides on what the
// first left, not on what it saw before it waited.
func TestRecord_ReadsAgainAfterItsLock(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 0)
	written := make(chan struct{})
	together(t, 2, func(i int) error {
		if i == 0 {
			return b.try(func(tx pgx.Tx) error {
				_, err := b.ledger.Record(t.Context(), tx, b.captured("pk_1", "order_1", 50_000, done("c1", 50_000)))
				close(written)
				if err == nil {
					waitForALock(t, b)
				}
				return err
			})
		}
		<-written
		r, err := b.recorded(b.captured("pk_1", "order_1", 50_000, done("c1", 50_000)))
		if err == nil && (r.Outcome != ledger.OutcomeUnchanged || r.Before.Status != ledger.StatusCanceled) {
			return fmt.Errorf("got %s on %s, want unchanged on canceled", r.Outcome, r.Before.Status)
		}
		return err
	})
	ledgertest.RequireSound(t, b.pool)
}

// TestRecord_SecondLookAtOnce: the same look, recorded by several at once, is one look.
func TestRecord_SecondLookAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 7)
	account := b.captured("pk_1", "order_1", 50_000)
	account.VirtualAccount = true
	b.record(account)
	account.Evidence = ledger.EvidenceWaiting
	account.AskedAt, account.SeenAt = b.now.Add(time.Minute), b.now.Add(time.Minute)
	together(t, 6, func(int) error {
		r, err := b.recorded(account)
		if err == nil && r.After.Status != ledger.StatusDone {
			return fmt.Errorf("got %s after one look, want done", r.After.Status)
		}
		return err
	})
	ledgertest.RequireSound(t, b.pool)
}
