package app_test

import (
	"time"

	"pgregory.net/rapid"

	"daesa/pgclient/tosssim"
)

// What a history is made of beside the merchant's own calls.

func methods() []tosssim.Method {
	return []tosssim.Method{tosssim.Card, tosssim.Card, tosssim.EasyPay, tosssim.VirtualAccount}
}

// trouble makes the gateway fail the next calls of one kind.
func (h *history) trouble() {
	h.sim.Fail(tosssim.Fault{
		Op: rapid.SampledFrom([]tosssim.Op{tosssim.Confirm, tosssim.Cancel, tosssim.Get, tosssim.List}).Draw(h.r, "op"),
		Kind: rapid.SampledFrom([]tosssim.Kind{
			tosssim.LateReply, tosssim.LostReply, tosssim.Status, tosssim.DoThenStatus, tosssim.HTML, tosssim.Hang,
			tosssim.DoThenHang, tosssim.Reset, tosssim.Garbage, tosssim.TooMany, tosssim.Stale, tosssim.Delay,
		}).Draw(h.r, "fault"),
		N:     rapid.IntRange(1, 3).Draw(h.r, "calls"),
		Delay: time.Duration(rapid.IntRange(0, 20).Draw(h.r, "delay")) * time.Millisecond,
	})
}

func (h *history) dashboardCancel() {
	if s := h.any(); s.key != "" {
		part := rapid.SampledFrom([]int64{0, 0, 500, 700}).Draw(h.r, "part")
		_, _ = h.sim.CancelInDashboard(s.key, part, "고객 변심") // refused unless it was approved
	}
}

// account is what happens to a virtual account: a deposit, one that falls back, a window that fails.
func (h *history) account() {
	s := h.any()
	if s.key == "" {
		return
	}
	switch rapid.IntRange(0, 3).Draw(h.r, "account") { // each is refused in the wrong state
	case 0, 1:
		_ = h.sim.Deposit(s.key)
	case 2:
		_ = h.sim.RevertDeposit(s.key)
	case 3:
		_ = h.sim.Expire(s.key)
	}
}

// deliverAny delivers any notice there ever was: early, again, out of order.
func (h *history) deliverAny() {
	if notices := h.sim.Notices(); len(notices) > 0 {
		n := notices[rapid.IntRange(0, len(notices)-1).Draw(h.r, "notice")]
		if got := h.deliver(n); got == 500 {
			h.Errorf("notice %d was answered 500: %s", n.ID, n.Body)
		}
	}
}

// loseNotice loses the next notice for good.
func (h *history) loseNotice() {
	h.sim.SetDelivery(tosssim.DeliveryPlan{Hold: true, Lose: 1})
}

func (h *history) deliverDue() {
	h.sim.SetDelivery(tosssim.DeliveryPlan{
		Duplicate: rapid.IntRange(0, 2).Draw(h.r, "copies"), Shuffle: rapid.Uint64().Draw(h.r, "shuffle"),
		Parallel: rapid.IntRange(1, 4).Draw(h.r, "parallel"), FreshIDs: rapid.Bool().Draw(h.r, "fresh_ids"),
	})
	h.sim.DeliverDue(h.Context())
	h.sim.SetDelivery(tosssim.DeliveryPlan{Hold: true})
}

// sweepAny and listAny may fail, when the database is away; what they were about stays.
func (h *history) sweepAny() { _ = h.app.Sweep(h.Context()) }
func (h *history) listAny()  { _ = h.app.ReadList(h.Context()) }

func (h *history) pass() {
	h.clock.Advance(rapid.SampledFrom([]time.Duration{
		time.Second, 45 * time.Second, 2 * time.Minute, 11 * time.Minute, time.Hour, 26 * time.Hour, 92 * time.Hour,
	}).Draw(h.r, "time"))
}

// crashNext makes the database go away at one of the next round trips.
func (h *history) crashNext() {
	h.line.Arm(rapid.IntRange(0, 14).Draw(h.r, "round_trip"), rapid.SampledFrom(breakages()).Draw(h.r, "how"))
}

// crashed is the process that starts again.
func (h *history) crashed() {
	h.line.Mend()
	h.restartUnder()
}
