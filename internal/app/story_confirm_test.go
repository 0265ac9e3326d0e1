package app_test

import (
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

// TestConfirm_ReplyIsLost plays every way in which the gateway can take the money and not say so, or say nothing: the
// buyer is told that it is not known, presses again at once and after a restart, another instance asks, and in the end
// there is one approval under one idempotency key.
func TestConfirm_ReplyIsLost(t *testing.T) {
	t.Parallel()
	for _, fault := range []tosssim.Fault{
		{Kind: tosssim.LostReply},
		{Kind: tosssim.DoThenHang},
		{Kind: tosssim.Hang},
		{Kind: tosssim.Reset},
		{Kind: tosssim.DoThenStatus, Code: 500},
		{Kind: tosssim.DoThenStatus, Code: 502},
		{Kind: tosssim.Status, Code: 503},
		{Kind: tosssim.HTML},
		{Kind: tosssim.HTML, Code: 200},
		{Kind: tosssim.Garbage},
		{Kind: tosssim.StalledBody},
		{Kind: tosssim.EmptyArray},
		{Kind: tosssim.Body, Body: ""},
		{Kind: tosssim.Body, Code: 204},
	} {
		t.Run(string(fault.Kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, hasty)
			key := w.open("order-lost", 50_000)
			fault.Op, fault.N = tosssim.Confirm, 2
			w.sim.Fail(fault)
			first := w.app.shop.confirm(key, "order-lost", 50_000).want(t, "the first press", "202 unknown")
			if got := w.number(`SELECT count(*) FROM work WHERE kind = 'confirm_unknown' AND closed_at IS NULL`); got != 1 {
				t.Errorf("got %d questions open, want 1", got)
			}
			w.sim.Heal()

			w.restart()
			other := w.start()
			w.clock.Advance(time.Minute)
			w.must(other.Sweep(t.Context()))
			w.app.shop.confirm(key, "order-lost", 50_000).want(t, "the second press", "200 done")
			w.app.shop.call("GET", first.URL, "", nil).want(t, "the status address", "200 done")
			if got := w.app.shop.status("order-lost"); got != "200 paid" {
				t.Errorf("got order %s, want paid", got)
			}
			if keys := w.keysSent(tosssim.Confirm)[key]; len(keys) != 1 {
				t.Errorf("got the idempotency keys %v, want one", keys)
			}
			if got := w.sim.Totals(); got.Captures != 1 || got.Captured["KRW"] != 50_000 {
				t.Errorf("got %+v at the gateway, want one capture", got)
			}
			w.quiesce()
			w.requireAgreed()
		})
	}
}

// TestConfirm_CancelOvertakesReply is a cancel in the dashboard between the approval and its reply.
func TestConfirm_CancelOvertakesReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.open("order-overtaken", 50_000)
	w.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.LateReply, Delay: time.Minute})
	answered := make(chan reply, 1)
	go func() { answered <- w.app.shop.confirm(key, "order-overtaken", 50_000) }()
	w.eventually("the gateway has approved", func() bool { return w.sim.Totals().Captures == 1 })
	w.dashboard(key, 0)
	w.wantDelivery(w.newest(key), 200)
	if got := w.app.shop.status("order-overtaken"); got != "200 canceled" {
		t.Errorf("got order %s before the reply, want canceled", got)
	}
	w.sim.Heal() // the late reply comes: DONE, from before the cancel
	(<-answered).want(t, "the late reply", "409 payment_canceled")
	w.wantDelivery(w.newest(key), 200)
	if got := w.app.shop.status("order-overtaken"); got != "200 canceled" {
		t.Errorf("got order %s after the reply, want canceled", got)
	}
	w.quiesce()
	w.requireAgreed()
}

// TestConfirm_BuyerHangsUp cuts the buyer's connection while the gateway approves.
func TestConfirm_BuyerHangsUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.open("order-hangup", 50_000)
	w.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.LateReply, Delay: time.Minute})
	ctx, hangUp := contextOf(t)
	gone := make(chan error, 1)
	go func() {
		_, err := w.app.shop.try(ctx, "POST", "/v1/payments/confirm", "", confirmation(key, "order-hangup", 50_000))
		gone <- err
	}()
	w.eventually("the gateway has approved", func() bool { return w.sim.Totals().Captures == 1 })
	hangUp()
	if err := <-gone; err == nil {
		t.Error("the buyer got an answer")
	}
	w.stays("the attempt is under way", func() bool { return w.payment(key).Status == ledger.StatusConfirming })
	w.sim.Heal()
	w.eventually("the approval is booked", func() bool {
		return w.number(`SELECT count(*) FROM payments WHERE status = 'done'`) == 1
	})
	if got := w.sim.Count(tosssim.Confirm); got != 1 {
		t.Errorf("got %d confirms at the gateway, want 1", got)
	}
	w.quiesce()
	w.requireAgreed()
}

// TestConfirm_DoubleClick presses again while the first attempt is at the gateway, also on another instance.
func TestConfirm_DoubleClick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.start()
	key := w.open("order-twice", 50_000)
	w.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.LateReply, Delay: time.Minute})
	answered := make(chan reply, 1)
	go func() { answered <- w.app.shop.confirm(key, "order-twice", 50_000) }()
	w.eventually("the gateway has approved", func() bool { return w.sim.Totals().Captures == 1 })
	for _, i := range []*instance{w.app, other} {
		i.shop.confirm(key, "order-twice", 50_000).want(t, "the second press", "202 confirming")
	}
	w.sim.Heal()
	(<-answered).want(t, "the first press", "200 done")
	other.shop.confirm(key, "order-twice", 50_000).want(t, "a third press", "200 done")
	if got := w.sim.Count(tosssim.Confirm); got != 1 {
		t.Errorf("got %d confirms at the gateway, want 1", got)
	}
	w.quiesce()
	w.requireAgreed()
}

// TestConfirm_TwoPaymentsForOneOrder is a buyer with two windows: the second must not be approved while money may have
// moved with the first, and may once it surely has not.
func TestConfirm_TwoPaymentsForOneOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hasty)
	first := w.open("order-windows", 50_000)
	second := w.authenticate("order-windows", 50_000, tosssim.Card)
	w.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.LostReply, N: 2})
	w.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, Code: 500, N: -1})
	w.app.shop.confirm(first, "order-windows", 50_000).want(t, "the first window", "202 unknown")
	w.app.shop.confirm(second, "order-windows", 50_000).want(t, "the second window, first in doubt", "409 order_taken")
	w.sim.Heal()
	w.app.shop.confirm(second, "order-windows", 50_000).want(t, "the second window, first paid", "409 order_taken")
	if got := w.sim.CountKey(tosssim.Confirm, second); got != 0 {
		t.Errorf("the second payment was sent to the gateway %d times, want never", got)
	}

	third := w.open("order-replaced", 30_000)
	fourth := w.authenticate("order-replaced", 30_000, tosssim.Card)
	w.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Reset, N: 2})
	w.app.shop.confirm(third, "order-replaced", 30_000).want(t, "the first window, lost on the way", "202 unknown")
	w.must(w.sim.Abort(third, "PAY_PROCESS_ABORTED"))
	w.app.shop.confirm(fourth, "order-replaced", 30_000).want(t, "the second window, first aborted", "200 done")
	w.quiesce()
	w.requireAgreed()
}
