package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

// wish tries an intent and returns its error.
func (b *books) wish(key, order string, amount ledger.Money) (in ledger.Intended, err error) {
	err = b.try(func(tx pgx.Tx) (err error) {
		in, err = b.ledger.Intend(b.t.Context(), tx, ledger.Intent{PaymentKey: key, OrderID: order, Amount: amount})
		return err
	})
	return in, err
}

func TestIntend_TurnedDown(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_paid", "order_paid", 50_000, 0)
	b.order("order_open", 50_000, 0)
	b.order("order_waits", 50_000, 0)
	b.intend("pk_waits", "order_waits", 50_000)
	b.now = b.now.Add(time.Second)
	b.do(func(tx pgx.Tx) error {
		_, err := b.ledger.CreateOrder(t.Context(), tx, ledger.Order{ID: "order_late", Amount: ledger.Won(50_000), ExpiresAt: b.now})
		return err
	})
	for _, c := range []struct {
		name, key, order string
		amount           ledger.Money
		want             error
		holder           string
	}{
		{"amount below", "pk_new", "order_open", ledger.Won(49_999), ledger.ErrAmountDiffers, ""},
		{"amount above", "pk_new", "order_open", ledger.Won(50_001), ledger.ErrAmountDiffers, ""},
		{"amount of nothing", "pk_new", "order_open", ledger.Won(0), ledger.ErrAmountDiffers, ""},
		{"amount below nothing", "pk_new", "order_open", ledger.Won(-50_000), ledger.ErrAmountDiffers, ""},
		{"another currency", "pk_new", "order_open", ledger.Money{Minor: 50_000, Currency: ledger.JPY}, ledger.ErrAmountDiffers, ""},
		{"no such order", "pk_new", "order_none", ledger.Won(50_000), ledger.ErrNotFound, ""},
		{"the order's time is over", "pk_new", "order_late", ledger.Won(50_000), ledger.ErrOrderExpired, ""},
		{"the order is paid", "pk_new", "order_paid", ledger.Won(50_000), ledger.ErrOrderTaken, "pk_paid"},
		{"another payment is under way", "pk_new", "order_waits", ledger.Won(50_000), ledger.ErrOrderTaken, "pk_waits"},
		{"the key of another order", "pk_paid", "order_open", ledger.Won(50_000), ledger.ErrOtherOrder, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in, err := b.wish(c.key, c.order, c.amount)
			if !errors.Is(err, c.want) || in.Started || in.Holder != c.holder {
				t.Errorf("got %v, started %t, holder %q; want %v and holder %q", err, in.Started, in.Holder, c.want, c.holder)
			}
		})
	}
	t.Cleanup(func() {
		if got := b.list(`SELECT payment_key FROM payments ORDER BY payment_key`); !cmp.Equal(got, []string{"pk_paid", "pk_waits"}) {
			t.Errorf("got payments %v, want that nothing was written", got)
		}
		ledgertest.RequireSound(t, b.pool)
	})
}

func TestIntend_SecondTimeTellsHowTheBooksStand(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 0)
	b.intend("pk_1", "order_1", 50_000)
	if again := b.intend("pk_1", "order_1", 50_000); again.Started || again.Payment.Status != ledger.StatusConfirming || again.Payment.Attempt != 1 {
		t.Errorf("got %+v, want the confirming payment, not started", again)
	}
	ledgertest.RequireSound(t, b.pool)
}

func TestIntend_AfterTurnedAwayTakesANewKey(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 0)
	first := b.intend("pk_1", "order_1", 50_000)
	if r := b.record(b.outcome("pk_1", ledger.EvidenceUnprocessed, 1)); r.After.Status != ledger.StatusReady {
		t.Fatalf("got %s, want ready", r.After.Status)
	}
	second := b.intend("pk_1", "order_1", 50_000)
	if !second.Started || second.Payment.Attempt != 2 || second.Payment.IdempotencyKey() == first.Payment.IdempotencyKey() {
		t.Errorf("got %+v, want a second attempt under a new key", second.Payment)
	}
	if r := b.record(b.outcome("pk_1", ledger.EvidenceRefused, 1)); r.After.Status != ledger.StatusConfirming {
		t.Errorf("got %s by the late word of the first attempt, want confirming", r.After.Status)
	}
	stored, _, err := ledger.Load(t.Context(), b.pool, "pk_1")
	if err != nil || stored.Generation != 2 || stored.IdempotencyKey() != second.Payment.IdempotencyKey() {
		t.Errorf("got generation %d and %v, want 2", stored.Generation, err)
	}
	if diff := cmp.Diff([]string{"confirm_unknown - settled", "confirm_unknown - open"}, b.work()); diff != "" {
		t.Errorf("work (-want +got):\n%s", diff)
	}
	ledgertest.RequireSound(t, b.pool)
}

func TestIntend_AnotherKeyAfterTheFirstFailed(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 0)
	b.intend("pk_1", "order_1", 50_000)
	b.record(b.outcome("pk_1", ledger.EvidenceRefused, 1))
	if in := b.intend("pk_2", "order_1", 50_000); !in.Started {
		t.Fatalf("got %+v, want the order free for another payment", in)
	}
	b.record(b.captured("pk_2", "order_1", 50_000))
	dead := b.captured("pk_1", "order_1", 50_000)
	dead.Evidence = ledger.EvidenceDead
	if r := b.record(dead); r.Order.Status != ledger.OrderPaid || r.After.Status != ledger.StatusFailed {
		t.Errorf("got order %s by the end of the first payment, want paid", r.Order.Status)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestIntend_DoubleClick: of many intents at once one is started, whether they carry one key or each their own.
func TestIntend_DoubleClick(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		key  func(i int) string
	}{
		{"one key", func(int) string { return "pk_1" }},
		{"many keys", func(i int) string { return fmt.Sprintf("pk_%d", i) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.order("order_1", 50_000, 0)
			var started atomic.Int32
			together(t, 8, func(i int) error {
				in, err := b.wish(c.key(i), "order_1", ledger.Won(50_000))
				if in.Started {
					started.Add(1)
				}
				if errors.Is(err, ledger.ErrOrderTaken) {
					return nil
				}
				return err
			})
			if started.Load() != 1 {
				t.Errorf("got %d attempts, want 1", started.Load())
			}
			ledgertest.RequireSound(t, b.pool)
		})
	}
}

// TestIntend_OneKeyForTwoOrders: the locks of two orders do not meet, so the row itself must decide.
func TestIntend_OneKeyForTwoOrders(t *testing.T) {
	t.Parallel()
	b := open(t)
	const orders = 6
	for i := range orders {
		b.order(fmt.Sprintf("order_%d", i), 50_000, 0)
	}
	var started atomic.Int32
	together(t, orders, func(i int) error {
		in, err := b.wish("pk_1", fmt.Sprintf("order_%d", i), ledger.Won(50_000))
		if err == nil && in.Started {
			started.Add(1)
		}
		if errors.Is(err, ledger.ErrOtherOrder) || errors.Is(err, ledger.ErrLostRace) {
			return nil
		}
		return err
	})
	if started.Load() != 1 {
		t.Errorf("got %d attempts, want 1", started.Load())
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestIntend_LostRace holds the order of two intents for one key still: the second finds the row taken when it
// writes, and nothing of it stays.
func TestIntend_LostRace(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 0)
	b.order("order_2", 50_000, 0)
	arrived, decided := make(chan struct{}), make(chan struct{})
	together(t, 2, func(i int) error {
		if i == 0 {
			return b.try(func(tx pgx.Tx) error {
				_, err := b.ledger.Intend(t.Context(), tx, ledger.Intent{PaymentKey: "pk_1", OrderID: "order_1", Amount: ledger.Won(50_000)})
				close(arrived)
				if err == nil {
					waitForALock(t, b)
				}
				close(decided)
				return err
			})
		}
		<-arrived
		_, err := b.wish("pk_1", "order_2", ledger.Won(50_000))
		<-decided
		if !errors.Is(err, ledger.ErrLostRace) {
			return fmt.Errorf("got %w, want %w", err, ledger.ErrLostRace)
		}
		return nil
	})
	if got := b.work(); len(got) != 1 {
		t.Errorf("got work %v, want that of the first alone", got)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestIntend_LostRaceWithWhatLooksLikeItself: while an intent waits to write, its key appears for another order, in the
// status or with the attempt that the intent has read, or in both. It is the payment that was read only for the same order.
func TestIntend_LostRaceWithWhatLooksLikeItself(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		first func(b *books, tx pgx.Tx) error // before the other intent waits
		then  func(b *books) ledger.Observation
		want  ledger.Status
	}{
		{"ready again, turned away after an attempt", func(b *books, tx pgx.Tx) error {
			_, err := b.ledger.Intend(b.t.Context(), tx, ledger.Intent{PaymentKey: "pk_1", OrderID: "order_1", Amount: ledger.Won(50_000)})
			return err
		}, func(b *books) ledger.Observation { return b.outcome("pk_1", ledger.EvidenceUnprocessed, 1) }, ledger.StatusReady},
		{"never attempted, and paid", func(b *books, tx pgx.Tx) error {
			_, err := b.ledger.Record(b.t.Context(), tx, b.captured("pk_1", "order_1", 50_000))
			return err
		}, func(b *books) ledger.Observation { return b.captured("pk_1", "order_1", 50_000) }, ledger.StatusDone},
		{"never attempted, and ready: the gateway has just named it", func(b *books, tx pgx.Tx) error {
			_, err := b.ledger.Record(b.t.Context(), tx, b.unpaid("pk_1", "order_1", 50_000))
			return err
		}, func(b *books) ledger.Observation { return b.unpaid("pk_1", "order_1", 50_000) }, ledger.StatusReady},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.order("order_1", 50_000, 0)
			b.order("order_2", 50_000, 0)
			arrived := make(chan struct{})
			together(t, 2, func(i int) error {
				if i == 1 {
					<-arrived
					_, err := b.wish("pk_1", "order_2", ledger.Won(50_000))
					if !errors.Is(err, ledger.ErrLostRace) {
						t.Errorf("got %v, want %v", err, ledger.ErrLostRace)
					}
					return nil
				}
				return b.try(func(tx pgx.Tx) error {
					err := c.first(b, tx)
					close(arrived)
					if err != nil {
						return err
					}
					waitForALock(t, b)
					_, err = b.ledger.Record(t.Context(), tx, c.then(b))
					return err
				})
			})
			p, _, err := ledger.Load(t.Context(), b.pool, "pk_1")
			if err != nil || p.Status != c.want || p.OrderID != "order_1" {
				t.Errorf("got %s of %s and %v, want it as the first left it", p.Status, p.OrderID, err)
			}
			ledgertest.RequireSound(t, b.pool)
		})
	}
}

// waitForALock returns once another session of the database waits for a lock, and fails the test if none does.
func waitForALock(t *testing.T, b *books) {
	t.Helper()
	waitForLocks(t, b, 1)
}

// waitForLocks returns once so many sessions do.
func waitForLocks(t *testing.T, b *books, sessions int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	for {
		var waiting bool
		err := b.pool.QueryRow(ctx, `
			SELECT count(*) >= $1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`, sessions).Scan(&waiting)
		if err != nil {
			t.Errorf("look for a waiting session: %v", err)
			return
		}
		if waiting {
			return
		}
	}
}

func TestExpireOrders_LeavesWhatAPaymentHolds(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_free", 50_000, 0)
	b.order("order_held", 50_000, 0)
	b.order("order_failed", 50_000, 0)
	b.intend("pk_held", "order_held", 50_000)
	b.intend("pk_failed", "order_failed", 50_000)
	b.record(b.outcome("pk_failed", ledger.EvidenceRefused, 1))
	expire := func() (n int64) {
		b.do(func(tx pgx.Tx) (err error) {
			n, err = b.ledger.ExpireOrders(t.Context(), tx, 10)
			return err
		})
		return n
	}
	if n := expire(); n != 0 {
		t.Errorf("got %d orders expired before their time, want none", n)
	}
	b.now = b.now.Add(30 * time.Minute)
	if n := expire(); n != 0 {
		t.Errorf("got %d orders expired in the minute that an intent of their last moment may still need, want none", n)
	}
	b.now = b.now.Add(time.Minute)
	if n := expire(); n != 2 {
		t.Errorf("got %d orders expired, want 2", n)
	}
	late := b.record(b.captured("pk_failed", "order_failed", 50_000))
	if late.Order.Status != ledger.OrderPaid {
		t.Errorf("got order %s for money after expiry, want paid", late.Order.Status)
	}
	if diff := cmp.Diff([]string{"paid_after_expiry 1"}, b.mismatches()); diff != "" {
		t.Errorf("mismatches (-want +got):\n%s", diff)
	}
	ledgertest.RequireSound(t, b.pool)
}
