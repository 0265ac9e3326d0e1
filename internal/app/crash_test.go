package app_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"daesa/pgclient/tosssim"
)

// pointsMax stops a search for crash points that does not end.
const pointsMax = 60

// crashed is one operation on which the database was lost at every possible point: k = 0, 1, 2, … until the operation
// needs fewer round trips than that.
type crashed struct {
	*world

	// prepare brings about a payment on which the operation can be done.
	prepare func(order string) (key string)
	// operate does it on the instance whose line may break.
	operate func(on *instance, order, key string)
	keys    []string // of the payments operated on, one for each point
	orders  []string
}

// everywhere runs the operation once for each point, on an instance of its own that then dies.
func (c *crashed) everywhere(how breakage) {
	c.Helper()
	first, step := how.Stride()
	for k := first; k < pointsMax; k += step {
		order := fmt.Sprintf("order-%02d-%02d", len(c.orders), k)
		wire := newLine()
		victim := c.start(wire.under)
		c.sim.SetWebhookURL(victim.URL() + "/webhooks/toss")
		c.operate(victim, "order-warm-"+order, c.prepare("order-warm-"+order)) // what was prepared once is not prepared again

		key := c.prepare(order)
		c.keys, c.orders = append(c.keys, key), append(c.orders, order)
		wire.Arm(k, how)
		c.operate(victim, order, key)
		broke := wire.Mend()
		victim.stop()
		if !broke {
			c.Logf("%s: %d points", how.Name, k)
			if k < 3 {
				c.Errorf("only %d points were tried: the line does not count", k)
			}
			return
		}
	}
	c.Fatalf("the operation still breaks after %d round trips", pointsMax)
}

// settle restarts the service, lets every caller try once more and the world become quiet, and holds the books against
// the gateway.
func (c *crashed) settle(again func(order, key string)) {
	c.Helper()
	c.restart()
	c.clock.Advance(3 * time.Minute) // past every lease and budget
	for n, key := range c.keys {
		again(c.orders[n], key)
	}
	c.quiesce()
	c.requireAgreed()
}

// notFailed fails the test for an answer that no caller can live with.
func (c *crashed) notFailed(what string, r reply, allowed ...string) {
	c.Helper()
	for _, short := range allowed {
		if r.is() == short {
			return
		}
	}
	c.Errorf("%s: got %s, want one of %q: %s", what, r.is(), allowed, r.body)
}

func TestCrash_Confirm(t *testing.T) {
	t.Parallel()
	for _, how := range breakages() {
		t.Run(how.Name, func(t *testing.T) {
			t.Parallel()
			c := &crashed{world: newWorld(t)}
			c.prepare = func(order string) string { return c.open(order, 50_000) }
			c.operate = func(on *instance, order, key string) {
				got := on.shop.confirm(key, order, 50_000)
				c.notFailed("confirm", got, "200 done", "202 unknown", "202 confirming", "503 database_unavailable")
				if got.code == http.StatusOK && c.payment(key).Captured().Minor != 50_000 {
					t.Errorf("%s was answered done and is not in the books", key)
				}
				begun := c.number(`SELECT count(*) FROM payments WHERE payment_key = $1`, key) != 0
				if got.code == http.StatusServiceUnavailable && (begun || c.sim.CountKey(tosssim.Confirm, key) != 0) {
					t.Errorf("%s was answered not begun, and was", key)
				}
			}
			c.everywhere(how)
			c.settle(func(order, key string) {
				c.notFailed("the second press", c.app.shop.confirm(key, order, 50_000), "200 done", "202 unknown", "202 confirming")
			})
			if got, want := c.sim.Totals().Captures, int(c.number(`SELECT count(*) FROM orders WHERE status = 'paid'`)); got != want {
				t.Errorf("got %d captures for %d paid orders", got, want)
			}
		})
	}
}

func TestCrash_Webhook(t *testing.T) {
	t.Parallel()
	for _, how := range breakages() {
		t.Run(how.Name, func(t *testing.T) {
			t.Parallel()
			c := &crashed{world: newWorld(t)}
			c.prepare = func(order string) string {
				key := c.sell(order, 50_000)
				c.dashboard(key, 12_000)
				return key
			}
			c.operate = func(_ *instance, _, key string) {
				if got := c.deliver(c.newest(key)); got != http.StatusOK && got != http.StatusServiceUnavailable {
					t.Errorf("got %d for a notice, want 200 or 503", got)
				}
			}
			c.everywhere(how)
			c.settle(func(_, key string) { c.wantDelivery(c.newest(key), http.StatusOK) })
			if got := c.number(`SELECT count(*) FROM payments WHERE canceled <> 12000`); got != 0 {
				t.Errorf("%d payments are not canceled by exactly 12,000", got)
			}
		})
	}
}

func TestCrash_OurCancel(t *testing.T) {
	t.Parallel()
	for _, how := range breakages() {
		t.Run(how.Name, func(t *testing.T) {
			t.Parallel()
			c := &crashed{world: newWorld(t)}
			c.prepare = func(order string) string { return c.sell(order, 50_000) }
			c.operate = func(on *instance, order, key string) {
				got := on.shop.cancel(key, "cancel-"+order, 12_000)
				c.notFailed("cancel", got, "200 done", "202 sending", "202 unknown", "503 database_unavailable")
				if got.code == http.StatusOK && c.payment(key).Canceled().Minor != 12_000 {
					t.Errorf("the cancel of %s was answered done and is not in the books", key)
				}
			}
			c.everywhere(how)
			c.settle(func(order, key string) {
				c.notFailed("the cancel again", c.app.shop.cancel(key, "cancel-"+order, 12_000), "200 done", "202 sending", "202 unknown")
			})
			if got := c.number(`SELECT count(*) FROM payments WHERE canceled <> 12000`); got != 0 {
				t.Errorf("%d payments are not canceled by exactly 12,000", got)
			}
		})
	}
}
