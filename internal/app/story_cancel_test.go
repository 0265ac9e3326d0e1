package app_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// TestCancel_TwoParts cancels twice in part, to nothing, and delivers each notice three times.
func TestCancel_TwoParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.sell("order-parts", 50_000)
	for _, part := range []struct {
		won    int64
		status string
	}{{12_000, "200 partially_canceled"}, {38_000, "200 canceled"}} {
		w.dashboard(key, part.won)
		notice := w.newest(key)
		w.wantDelivery(notice, 200)
		if got := w.app.shop.status("order-parts"); got != part.status {
			t.Errorf("after %d won: got %s, want %s", part.won, got, part.status)
		}
		asked := w.sim.Count(tosssim.Get)
		w.wantDelivery(notice, 200)
		w.wantDelivery(notice, 200)
		if got := w.sim.Count(tosssim.Get); got != asked {
			t.Errorf("the gateway was asked %d times about duplicates", got-asked)
		}
	}
	if got := w.bookTotals(); got != (totals{1, 50_000, 2, 50_000}) {
		t.Errorf("got %+v, want one capture and two cancels", got)
	}
	w.quiesce()
	w.requireAgreed()
}

// TestCancel_PartThenRest: a part and then the rest are two rows, one canceled order and the amount that was paid, by
// whatever way we learn of them, in the books, in the closed day and in its report.
func TestCancel_PartThenRest(t *testing.T) {
	t.Parallel()
	notice := func(w *world, key string) { w.wantDelivery(w.newest(key), 200) }
	for name, cancel := range map[string]func(w *world, key string){
		"a notice of each": func(w *world, key string) {
			w.dashboard(key, 12_000)
			notice(w, key)
			w.dashboard(key, 0)
			notice(w, key)
		},
		"a notice of the rest only": func(w *world, key string) {
			w.dashboard(key, 12_000)
			w.dashboard(key, 0)
			notice(w, key)
		},
		"the list": func(w *world, key string) {
			w.dashboard(key, 12_000)
			w.dashboard(key, 0)
			w.clock.Advance(time.Minute)
			w.readList()
			w.sweep()
		},
		"our own requests": func(w *world, key string) {
			w.app.shop.cancel(key, "cancel-1", 12_000).want(w, "the part", "200 done")
			w.app.shop.cancel(key, "cancel-2", 0).want(w, "the rest", "200 done")
			notice(w, key)
		},
		"a part unheard of, the rest by us": func(w *world, key string) {
			w.dashboard(key, 12_000)
			w.app.shop.cancel(key, "cancel-1", 38_000) // refused: less is left than the books knew, and now they do
			w.app.shop.cancel(key, "cancel-2", 0).want(w, "the rest", "200 done")
			notice(w, key)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			key := w.sell("order-rest", 50_000)
			w.clock.Advance(time.Minute)
			cancel(w, key)
			if got := w.app.shop.status("order-rest"); got != "200 canceled" {
				t.Errorf("got %s", got)
			}
			if got := w.bookTotals(); got != (totals{1, 50_000, 2, 50_000}) {
				t.Errorf("got %+v, want one capture and two cancels", got)
			}
			day := ledger.DayOf(w.clock.Now())
			w.clock.Set(day.End().Add(20 * time.Minute))
			w.readList()
			s, err := w.app.Audit(t.Context(), reconcile.Scope{Name: reconcile.ScopeDay, Day: day})
			w.must(err)
			if s.Verdict != reconcile.VerdictReconciled || s.Sums[0].Canceled != (reconcile.Figure{Count: 2, Amount: 50_000}) || s.Orders[0].Canceled != 1 {
				t.Errorf("the day: got %s %+v %+v", s.Verdict, s.Sums, s.Orders)
			}
			code, report, stderr := command("report", "-database-url", w.url, "-opening-at", w.cfg.OpeningAt.Format(time.RFC3339), "day", string(day))
			if code != 0 || !strings.Contains(report, "\r\nKRW,2,50000,2,50000,0,0,0,0,0,0,0,0,0,0,1,50000,1,50000,0,0,0,0,0,0\r\n") || !strings.Contains(report, "\r\nKRW,1,1,0,0\r\n") ||
				strings.Count(report, "order-rest,") != 3 {
				t.Errorf("the report: got %d %s\n%s", code, stderr, report)
			}
			w.quiesce()
			w.requireAgreed()
		})
	}
}

// TestCancel_NoticeNeverComes finds a cancel that nobody told us about: at once when eager, and otherwise not before
// the sender has had all its time. The late notice then changes nothing.
func TestCancel_NoticeNeverComes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.sell("order-silent", 50_000)
	w.clock.Advance(time.Hour)
	canceledAt := w.clock.Now()
	w.dashboard(key, 0)
	w.clock.Advance(time.Minute)
	w.readList()
	s, err := w.app.AuditAll(t.Context())
	w.must(err)
	if s.Verdict != reconcile.VerdictPending || s.Sums[0].Pending != (reconcile.Figure{Count: 1, Amount: 50_000}) {
		t.Errorf("got %s with %+v pending, want one cancel of 50,000 pending", s.Verdict, s.Sums[0].Pending)
	}
	w.sweep()
	w.requireFoundBySelf(key, canceledAt)
}

func TestCancel_NoticeNeverComesLazy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lazy)
	key := w.sell("order-silent", 50_000)
	w.clock.Advance(time.Hour)
	canceledAt := w.clock.Now()
	w.dashboard(key, 0)
	asked := w.sim.Count(tosssim.Get)
	for range 3 { // 3 days and some hours: the sender might still come
		w.clock.Advance(29 * time.Hour)
		w.readList()
		w.sweep()
		w.requirePending(canceledAt)
		if got := w.app.shop.status("order-silent"); got != "200 paid" {
			t.Fatalf("got %s after %s, want nothing before the last chance", got, w.clock.Now().Sub(canceledAt))
		}
	}
	lastChance := canceledAt.Add(3*24*time.Hour + 19*time.Hour + 16*time.Minute)
	w.clock.Set(lastChance.Add(-time.Second))
	w.readList()
	w.sweep()
	if got := w.sim.Count(tosssim.Get); got != asked {
		t.Errorf("the gateway was asked %d times before the last chance", got-asked)
	}
	w.clock.Set(lastChance)
	w.readList()
	w.sweep()
	if got := w.payment(key).Cancels; len(got) != 1 || got[0].Channel != ledger.ChannelLastChance {
		t.Errorf("got %+v, want the cancel, found at the last chance", got)
	}
	w.requireFoundBySelf(key, canceledAt)
}

// requirePending fails the test unless the audit shows one cancel that is owed, and since when.
func (w *world) requirePending(canceledAt time.Time) {
	w.Helper()
	w.clock.Advance(time.Minute) // what was found less than a minute ago is in flight
	s, err := w.app.AuditAll(w.Context())
	w.must(err)
	if s.Verdict != reconcile.VerdictPending || s.Sums[0].Pending != (reconcile.Figure{Count: 1, Amount: 50_000}) || !s.Sums[0].Holds() {
		w.Fatalf("got %s with %+v, want one cancel of 50,000 pending", s.Verdict, s.Sums)
	}
	pending := s.Line(reconcile.LineSweeping, "KRW")
	if len(pending.Entries) != 1 || pending.Entries[0].Since.Before(canceledAt) || pending.Entries[0].Since.After(canceledAt.Add(29*time.Hour)) {
		w.Errorf("got %+v, want one entry that says since when", pending)
	}
}

func (w *world) requireFoundBySelf(key string, canceledAt time.Time) {
	w.Helper()
	c := w.payment(key).Cancels
	if len(c) != 1 || !c[0].CanceledAt.Equal(canceledAt) || c[0].Channel == ledger.ChannelWebhook {
		w.Fatalf("got the cancels %+v, want one of %s that no notice brought", c, canceledAt)
	}
	w.wantDelivery(w.newest(key), 200)
	if got := w.payment(key).Cancels; len(got) != 1 {
		w.Errorf("got %d cancels after the late notice, want 1", len(got))
	}
	w.quiesce()
	w.requireAgreed()
}

// TestCancel_Asynchronous follows a cancel that the gateway finishes later, or gives up.
func TestCancel_Asynchronous(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		done   bool
		status string
		booked int
	}{{"done", true, "200 canceled", 1}, {"aborted", false, "200 paid", 0}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.app.shop.order("order-async", 50_000)
			key := w.authenticate("order-async", 50_000, tosssim.ForeignEasyPay)
			w.app.shop.confirm(key, "order-async", 50_000).want(t, "confirm", "200 done")
			got := w.app.shop.cancel(key, "cancel-async", 0).want(t, "cancel", "202 in_progress")
			w.later(2 * time.Minute)
			if got := w.payment(key).Cancels; len(got) != 0 {
				t.Fatalf("got %+v booked while the gateway is at it", got)
			}
			w.requireNothingOwed([]ledger.WorkKind{ledger.WorkCancelInProgress})
			w.must(w.sim.FinishCancel(w.inProgress(key), test.done))
			w.later(time.Hour)
			if got := w.app.shop.status("order-async"); got != test.status {
				t.Errorf("got %s, want %s", got, test.status)
			}
			if got := len(w.payment(key).Cancels); got != test.booked {
				t.Errorf("got %d cancels, want %d", got, test.booked)
			}
			want := map[bool]string{true: "200 done", false: "200 refused"}[test.done]
			w.app.shop.call("GET", "/v1/cancels/"+got.Cancel, "", nil).want(t, "the request", want)
			w.quiesce()
			w.requireAgreed()
		})
	}
}

// inProgress is the transaction key of the cancel that the gateway has not finished.
func (w *world) inProgress(key string) string {
	w.Helper()
	raw, _ := w.sim.Payment(key)
	var p struct {
		Cancels []struct {
			TransactionKey string `json:"transactionKey"`
			CancelStatus   string `json:"cancelStatus"`
		} `json:"cancels"`
	}
	w.must(json.Unmarshal(raw, &p))
	for _, c := range p.Cancels {
		if c.CancelStatus == "IN_PROGRESS" {
			return c.TransactionKey
		}
	}
	w.Fatal("no cancel is in progress")
	return ""
}

// TestCancel_ReplyIsLost loses the reply to our own cancel while somebody cancels the same amount in the dashboard: the
// same request is sent again under the same key, so both are booked and neither is done twice.
func TestCancel_ReplyIsLost(t *testing.T) {
	t.Parallel()
	for _, fault := range []tosssim.Fault{
		{Kind: tosssim.LostReply}, {Kind: tosssim.DoThenStatus, Code: 503}, {Kind: tosssim.Reset}, {Kind: tosssim.HTML},
	} {
		t.Run(string(fault.Kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, hasty)
			key := w.sell("order-lost", 50_000)
			fault.Op, fault.N = tosssim.Cancel, 2
			w.sim.Fail(fault)
			first := w.app.shop.cancel(key, "cancel-lost", 5_000).want(t, "our cancel", "202 unknown")
			w.restart()
			w.later(time.Minute)
			w.app.shop.call("GET", "/v1/cancels/"+first.Cancel, "", nil).want(t, "our cancel later", "200 done")
			w.dashboard(key, 5_000)
			w.wantDelivery(w.newest(key), 200)
			w.clock.Advance(3 * time.Minute)
			w.app.shop.cancel(key, "cancel-lost", 5_000).want(t, "our cancel again", "200 done")
			if got := w.bookTotals(); got != (totals{1, 50_000, 2, 10_000}) {
				t.Errorf("got %+v, want two cancels of 5,000", got)
			}
			if keys := w.keysSent(tosssim.Cancel)[key]; len(keys) != 1 {
				t.Errorf("got the idempotency keys %v, want one", keys)
			}
			w.quiesce()
			w.requireAgreed()
		})
	}
}

// TestCancel_TwoOfEqualSize are two requests, not one repeated.
func TestCancel_TwoOfEqualSize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.sell("order-equal", 50_000)
	w.app.shop.cancel(key, "cancel-1", 5_000).want(t, "the first", "200 done")
	w.app.shop.cancel(key, "cancel-2", 5_000).want(t, "the second", "200 done")
	w.app.shop.cancel(key, "cancel-2", 6_000).want(t, "the second with another amount", "422 idempotency_key_reused")
	w.app.shop.cancel(key, "cancel-3", 40_001).want(t, "more than is left", "409 cancel_too_much")
	if keys := w.keysSent(tosssim.Cancel)[key]; len(keys) != 2 {
		t.Errorf("got the idempotency keys %v, want two", keys)
	}
	w.quiesce()
	w.requireAgreed()
}

// TestCancel_Forged is refused as long as the gateway does not say so, and leaves the order alone.
func TestCancel_Forged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.sell("order-forged", 90_000)
	w.dashboard(key, 1_000)
	genuine := w.newest(key)
	w.wantDelivery(genuine, 200)
	forged := strings.NewReplacer(`"PARTIAL_CANCELED"`, `"CANCELED"`, w.payment(key).Cancels[0].TransactionKey, "forged").
		Replace(string(genuine.Body))
	status, err := w.sim.Send([]byte(forged), nil)
	w.must(err)
	if status != 409 {
		t.Errorf("got %d for the forgery, want 409", status)
	}
	if got := w.app.shop.status("order-forged"); got != "200 partially_canceled" {
		t.Errorf("got %s, want partially_canceled", got)
	}
	w.quiesce()
	w.requireAgreed()
}
