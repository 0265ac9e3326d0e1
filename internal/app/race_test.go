package app_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"daesa/pgclient/tosssim"
)

// together runs every act at the same instant and waits for all.
func together(acts ...func()) {
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for _, act := range acts {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-begin
			act()
		})
	}
	ready.Wait()
	close(begin)
	done.Wait()
}

func times(n int, act func()) []func() {
	acts := make([]func(), n)
	for i := range acts {
		acts[i] = act
	}
	return acts
}

// TestRace_EqualNotices delivers one notice twenty times at once, over two instances.
func TestRace_EqualNotices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.sell("order-equal", 50_000)
	w.dashboard(key, 0)
	notice := w.newest(key)
	statuses := make(chan int, 20)
	together(times(20, func() {
		status, err := w.sim.Deliver(notice.ID)
		if err != nil {
			status = 0
		}
		statuses <- status
	})...)
	for range 20 {
		if got := <-statuses; got != http.StatusOK {
			t.Errorf("got %d, want 200", got)
		}
	}
	if got := w.number(`SELECT count(*) FROM cancels`); got != 1 {
		t.Errorf("got %d cancels, want 1", got)
	}
	w.quiesce()
	w.requireAgreed()
}

// TestRace_TwoPartialCancels delivers the notices of two partial cancels at once and in the wrong order.
func TestRace_TwoPartialCancels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.sell("order-parts", 50_000)
	w.dashboard(key, 12_000)
	first := w.newest(key)
	w.dashboard(key, 20_000)
	second := w.newest(key)
	together(func() { w.deliver(second) }, func() { w.deliver(first) })
	w.wantDelivery(second, 200)
	w.wantDelivery(first, 200)
	w.wantStanding("order-parts", "200 partially_canceled", totals{1, 50_000, 2, 32_000})
	w.quiesce()
	w.requireAgreed()
}

// TestRace_OurCancelAndItsNotice lets the notice of our own cancel overtake its reply.
func TestRace_OurCancelAndItsNotice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.sell("order-ours", 50_000)
	w.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.LateReply, Delay: time.Minute})
	answered := make(chan reply, 1)
	go func() { answered <- w.app.shop.cancel(key, "cancel-ours", 12_000) }()
	w.eventually("the gateway has canceled", func() bool { return w.sim.Totals().Cancels == 1 })
	w.app.shop.cancel(key, "cancel-other", 1_000).want(t, "another cancel meanwhile", "409 cancel_under_way")
	w.wantDelivery(w.newest(key), 200)
	w.sim.Heal()
	(<-answered).want(t, "our cancel", "200 done")
	w.wantStanding("order-ours", "200 partially_canceled", totals{1, 50_000, 1, 12_000})
	w.quiesce()
	w.requireAgreed()
}

// TestRace_SameCancelTwice asks for one cancel from two places at once.
func TestRace_SameCancelTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.start()
	key := w.sell("order-same", 50_000)
	together(
		func() { w.notServerError(w.app.shop.cancel(key, "cancel-same", 12_000)) },
		func() { w.notServerError(other.shop.cancel(key, "cancel-same", 12_000)) },
		func() { w.notServerError(w.app.shop.cancel(key, "cancel-rest", 0)) },
	)
	if got := w.sim.Totals().Cancels; got < 1 || got > 2 {
		t.Errorf("got %d cancels at the gateway, want 1 or 2", got)
	}
	w.quiesce()
	w.requireAgreed()
}

func (w *world) notServerError(r reply) {
	w.Helper()
	if r.code >= 500 {
		w.Errorf("got %s: %s", r.is(), r.body)
	}
}

// TestRace_NoticeAgainstRecovery lets notices, sweeps of two instances, readers of the list and a pressing buyer meet on
// payments whose confirms were lost and which were canceled at once.
func TestRace_NoticeAgainstRecovery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hasty)
	other := w.start()
	var keys, orders []string
	for _, order := range []string{"order-one", "order-two", "order-three", "order-four"} {
		key := w.open(order, 50_000)
		w.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.LostReply, N: 2, PaymentKey: key})
		w.app.shop.confirm(key, order, 50_000).want(t, "confirm "+order, "202 unknown")
		w.dashboard(key, 20_000)
		keys, orders = append(keys, key), append(orders, order)
	}
	w.clock.Advance(time.Minute)
	acts := []func(){
		func() { w.must(w.app.Sweep(t.Context())) }, func() { w.must(other.Sweep(t.Context())) },
		func() { w.must(w.app.ReadList(t.Context())) }, func() { w.must(other.ReadList(t.Context())) },
	}
	for i, key := range keys {
		notice := w.newest(key)
		acts = append(acts, times(3, func() { w.deliver(notice) })...)
		acts = append(acts, func() { w.notServerError(other.shop.confirm(key, orders[i], 50_000)) })
	}
	together(acts...)
	w.quiesce()
	for _, order := range orders {
		if got := w.app.shop.status(order); got != "200 partially_canceled" {
			t.Errorf("got %s %s, want partially_canceled", order, got)
		}
	}
	w.requireAgreed()
}

// TestRace_LastChance lets the last look and a late redelivery meet.
func TestRace_LastChance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lazy, hasty)
	key := w.sell("order-last", 50_000)
	w.dashboard(key, 0)
	notice := w.newest(key)
	w.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, Code: 500})
	w.wantDelivery(notice, http.StatusBadGateway)
	w.clock.Advance(3*24*time.Hour + 19*time.Hour + 17*time.Minute)
	together(
		func() { w.must(w.app.Sweep(t.Context())) },
		func() { w.deliver(notice) },
		func() { w.must(w.app.ReadList(t.Context())) },
	)
	w.wantDelivery(notice, 200)
	w.wantStanding("order-last", "200 canceled", totals{1, 50_000, 1, 50_000})
	w.quiesce()
	w.requireAgreed()
}
