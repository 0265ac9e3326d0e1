package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"daesa/checkout"
	"daesa/checkout/store"
	"daesa/checkout/store/storesim"
	"daesa/internal/app"
	"daesa/internal/guard"
	"daesa/pgclient/tosssim"
)

const storeSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// kitchen is a world whose merchant has a store that takes orders on.
type kitchen struct {
	*world

	store *storesim.Sim
}

func newKitchen(tb testing.TB, settings ...setting) *kitchen {
	tb.Helper()
	k := &kitchen{store: storesim.New(storesim.Config{Secret: storeSecret, Base: -1})}
	server := httptest.NewServer(k.store.Handler())
	tb.Cleanup(server.Close)
	tb.Cleanup(k.store.Heal)
	asked := func(c *app.Config, _ *tosssim.Config) {
		c.StoreURL, c.StoreSecret = server.URL, storeSecret
		c.StoreLimits = store.Limits{Total: 8 * time.Second, Breaker: guard.BreakerLimits{Window: 1000, MinCalls: 1000}}
	}
	k.world = newWorld(tb, append([]setting{asked}, settings...)...)
	return k
}

// requireSettled holds the store against the books when nothing moves any more: it holds each order that was paid, once,
// and nothing else, and nothing is owed to it.
func (k *kitchen) requireSettled() {
	k.Helper()
	open := k.text(`SELECT COALESCE(string_agg(state || ' ' || order_id || ': ' || last_answer, '; '), '') FROM acceptances WHERE ended_at IS NULL`)
	if open != "" {
		k.Errorf("not settled with the store: %s", open)
	}
	rows, err := k.db.Query(k.Context(), `SELECT o.order_id FROM orders o WHERE o.status NOT IN ('pending', 'expired') ORDER BY 1`)
	k.must(err)
	paid, err := pgx.CollectRows(rows, pgx.RowTo[string])
	k.must(err)
	if diff := cmp.Diff(paid, k.store.Held(), cmpopts.EquateEmpty()); diff != "" {
		k.Errorf("orders paid and orders the store holds (-books +store):\n%s", diff)
	}
	if told := k.number(`SELECT count(*) FROM events WHERE kind = 'order.store_check'`); told != 0 {
		k.Errorf("%d orders that somebody has to look at, although books and store agree", told)
	}
}

// TestCrash_ConfirmWithAStore loses the database at every point of an approval that the store has to accept: before and
// after its row, its yes, the intent, the call and the outcome. In the end the store holds what was paid, and nothing else.
func TestCrash_ConfirmWithAStore(t *testing.T) {
	t.Parallel()
	for _, how := range breakages() {
		t.Run(how.Name, func(t *testing.T) {
			t.Parallel()
			k := newKitchen(t)
			c := &crashed{world: k.world}
			c.prepare = func(order string) string { return c.open(order, 50_000) }
			c.operate = func(on *instance, order, key string) {
				got := on.shop.confirm(key, order, 50_000)
				c.notFailed("confirm", got, "200 done", "202 unknown", "202 confirming", "503 database_unavailable")
				begun := c.number(`SELECT count(*) FROM payments WHERE payment_key = $1`, key) != 0
				if got.code == http.StatusServiceUnavailable && (begun || c.sim.CountKey(tosssim.Confirm, key) != 0) {
					t.Errorf("%s was answered not begun, and was", key)
				}
			}
			c.everywhere(how)
			c.settle(func(order, key string) {
				c.notFailed("the second press", c.app.shop.confirm(key, order, 50_000), "200 done", "202 unknown", "202 confirming")
			})
			k.requireSettled()
		})
	}
}

// TestCrash_ReleaseToTheStore loses the database at every point of a release: the store hears of each at least once.
func TestCrash_ReleaseToTheStore(t *testing.T) {
	t.Parallel()
	for _, how := range breakages() {
		t.Run(how.Name, func(t *testing.T) {
			t.Parallel()
			k := newKitchen(t)
			c := &crashed{world: k.world}
			c.prepare = func(order string) string {
				key := c.open(order, 50_000)
				c.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_PAYMENT"})
				c.app.shop.confirm(key, order, 50_000).want(t, "a refused card", "402 REJECT_CARD_PAYMENT")
				c.clock.Advance(3 * time.Minute)
				return key
			}
			c.operate = func(on *instance, _, _ string) { _ = on.SettleAcceptances(t.Context()) } // its error is the line's
			c.everywhere(how)
			c.settle(func(string, string) {})
			k.requireSettled()
			if got, want := len(k.store.Acceptances()), k.store.Count(storesim.Ask); got != want {
				t.Errorf("%d acceptances of %d questions", got, want)
			}
		})
	}
}

// TestStore_TroubleOfEveryKind sells a hundred orders while store and gateway fail in turn, and presses again until all is
// well: one yes of the store for each order that was paid.
func TestStore_TroubleOfEveryKind(t *testing.T) {
	t.Parallel()
	k := newKitchen(t, hasty, func(c *app.Config, _ *tosssim.Config) { c.StoreLimits.Total = 800 * time.Millisecond })
	orders := make([]string, 60)
	var selling sync.WaitGroup
	at := make(chan int)
	for range 8 {
		selling.Go(func() {
			for n := range at {
				orders[n] = fmt.Sprintf("order-trouble-%02d", n)
				key := k.open(orders[n], 1_000)
				k.trouble(n, orders[n])
				for range 2 { // everybody presses twice
					k.app.shop.confirm(key, orders[n], 1_000)
				}
			}
		})
	}
	for n := range orders {
		at <- n
	}
	close(at)
	selling.Wait()
	k.store.Heal()
	k.quiesce()
	k.requireAgreed()
	k.requireSettled()
	if held := k.store.Held(); len(held) == 0 || len(slices.Compact(held)) == len(orders) {
		t.Errorf("%d of %d orders were paid: the trouble made no difference", len(held), len(orders))
	}
}

// trouble lets something go wrong with the order whose number it is.
func (k *kitchen) trouble(n int, order string) {
	at := func(op storesim.Op, kind storesim.Kind) {
		k.store.Fail(storesim.Fault{Op: op, Kind: kind, Code: http.StatusServiceUnavailable, OrderID: order})
	}
	switch n % 10 {
	case 0:
		at(storesim.Ask, storesim.Status)
	case 1:
		at(storesim.Ask, storesim.LostReply)
	case 2:
		at(storesim.Ask, storesim.Garbage)
	case 3:
		k.store.Decline(order, "품절")
	case 4:
		k.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_PAYMENT"})
	case 5:
		k.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.LostReply})
		at(storesim.Release, storesim.Status)
	case 6:
		at(storesim.Ask, storesim.DoThenHang)
	case 7:
		k.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Code: 401, Body: "UNAUTHORIZED_KEY"})
		at(storesim.Release, storesim.LostReply)
	}
}

// TestStore_JobsOfAnInstance lets a whole instance release by itself, and stop while the store does not answer.
func TestStore_JobsOfAnInstance(t *testing.T) {
	t.Parallel()
	k := newKitchen(t, func(c *app.Config, _ *tosssim.Config) { c.Now = nil })
	i := k.run()
	k.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_PAYMENT", N: 2})
	key := k.open("order-released", 50_000)
	i.shop.confirm(key, "order-released", 50_000).want(t, "a refused card", "402 REJECT_CARD_PAYMENT")
	k.eventually("the store has heard of it", func() bool { return len(k.store.Held()) == 0 })

	k.store.Fail(storesim.Fault{Op: storesim.Release, Kind: storesim.Hang, N: -1})
	key = k.open("order-hanging", 50_000)
	i.shop.confirm(key, "order-hanging", 50_000).want(t, "a refused card", "402 REJECT_CARD_PAYMENT")
	k.eventually("a release hangs", func() bool { return k.store.UnderWay() == 1 })
	began := time.Now()
	i.stop()
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the stop took %s", took)
	}
	k.eventually("nothing of it is left at the store", func() bool { return k.store.UnderWay() == 0 })
}

// TestStore_Settings: what cannot work is refused at start.
func TestStore_Settings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, change := range map[string]func(*app.Config){
		"no secret":      func(c *app.Config) { c.StoreURL = "http://127.0.0.1:1" },
		"no address":     func(c *app.Config) { c.StoreSecret = storeSecret },
		"half a secret":  func(c *app.Config) { c.StoreURL, c.StoreSecret = "http://127.0.0.1:1", "whsec_?" },
		"half a one":     func(c *app.Config) { c.StoreURL, c.StoreSecret = "127.0.0.1:1", storeSecret },
		"no such policy": func(c *app.Config) { c.StoreLate = checkout.StorePolicy("wait") },
	} {
		cfg := w.cfg
		change(&cfg)
		if a, err := app.New(t.Context(), cfg); err == nil {
			t.Errorf("%s: started", name)
			_ = a.Stop()
		}
	}
}
