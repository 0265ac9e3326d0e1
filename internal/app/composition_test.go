package app_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daesa/internal/app"
	"daesa/pgclient/tosssim"
)

// storm is everything that can be too much at once, and what each sender was answered.
type storm struct {
	*world

	senders sync.WaitGroup
	mu      sync.Mutex
	answers map[string]map[string]int // by what was sent, then by the answer in short
}

// send does one thing at the same time as all others.
func (s *storm) send(what string, act func() reply) {
	s.senders.Go(func() {
		got := act()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.answers[what] == nil {
			s.answers[what] = make(map[string]int)
		}
		s.answers[what][got.is()]++
	})
}

// asked is a request with the merchant's key.
func (s *storm) asked(method, path string, body any) reply {
	got, err := s.app.shop.try(context.WithoutCancel(s.Context()), method, path, "", body)
	if err != nil {
		got.Code = err.Error()
	}
	return got
}

// inFlight is how many requests of a class have a slot.
func (s *storm) inFlight(class string) int {
	s.Helper()
	return int(series(s, s.app.Registry())["daesa_admission_gate_in_flight_requests{class="+class+"}"])
}

const (
	stormConfirms, confirmCap = 50, 40
	stormNotices, queryCap    = 30, 20
	stormReads, readsAtOnce   = 150, 80 // 64 of the shared slots and the reserve of 16
)

// stormy lets slow calls of the gateway, and statements that wait for a lock, be slow for as long as the storm lasts.
func stormy(c *app.Config, _ *tosssim.Config) {
	c.Paths.Confirm.Cap, c.Paths.Query.Cap = confirmCap, queryCap
	c.Paths.Query.Attempt, c.Paths.Query.Total, c.WebhookQueryBudget = 8*time.Second, 8*time.Second, 8*time.Second
	c.DatabaseURL += "&lock_timeout=60000"
}

// TestStorm_NobodyStandsBeforeAnother has a slow gateway fill the confirms, a burst of redeliveries fill the questions
// and a flood of look-ups fill what reading may have, at the same time. What each class has kept for itself is there for
// its other requests, and what every sender was told is what the service has counted.
func TestStorm_NobodyStandsBeforeAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stormy)
	s := &storm{world: w, answers: make(map[string]map[string]int)}
	var confirms, canceled []string
	for n := range stormConfirms {
		confirms = append(confirms, w.open(fmt.Sprintf("order-confirm-%d", n), 30_000))
	}
	for n := range stormNotices {
		key := w.sell(fmt.Sprintf("order-canceled-%d", n), 50_000)
		w.dashboard(key, 0)
		canceled = append(canceled, key)
	}
	settled := w.sell("order-settled", 50_000)
	w.dashboard(settled, 0)
	w.wantDelivery(w.newest(settled), http.StatusOK)
	paid := w.sell("order-paid", 50_000)
	before, sold := series(t, w.app.Registry()), w.sim.Count(tosssim.Confirm)

	for _, op := range []tosssim.Op{tosssim.Confirm, tosssim.Get} {
		w.sim.Fail(tosssim.Fault{Op: op, Kind: tosssim.Delay, Delay: time.Minute, N: -1})
	}
	for n, key := range confirms {
		order := fmt.Sprintf("order-confirm-%d", n)
		s.send("confirm", func() reply {
			return s.asked(http.MethodPost, "/v1/payments/confirm", confirmation(key, order, 30_000))
		})
	}
	for _, key := range canceled {
		notice := w.newest(key)
		s.send("notice", func() reply {
			status, err := w.sim.Deliver(notice.ID)
			if err != nil {
				return reply{Code: err.Error()}
			}
			return reply{code: status}
		})
	}
	w.eventually("confirms and questions are at their caps", func() bool {
		return s.inFlight("money") == confirmCap && s.inFlight("notification") == queryCap
	})
	w.app.shop.call(http.MethodGet, "/v1/orders/order-settled", "", nil).want(t, "a look-up beside both", "200 canceled")

	holder, err := w.db.Begin(t.Context()) //nolint:forbidigo // it is held open on purpose
	w.must(err)
	defer holder.Rollback(context.WithoutCancel(t.Context()))
	_, err = holder.Exec(t.Context(), `LOCK TABLE incidents IN ACCESS EXCLUSIVE MODE`)
	w.must(err)
	for range stormReads {
		s.send("look-up", func() reply { return s.asked(http.MethodGet, "/v1/incidents", nil) })
	}
	w.eventually("reading has all that it may have", func() bool { return s.inFlight("reading") == readsAtOnce })

	w.app.shop.order("order-beside", 10_000)
	w.wantDelivery(w.newest(settled), http.StatusOK)
	w.app.shop.confirm(paid, "order-paid", 50_000).want(t, "a second press beside the storm", "200 done")
	w.app.shop.call(http.MethodGet, "/v1/orders/order-settled", "", nil).want(t, "one look-up more", "503 overloaded")

	w.must(holder.Rollback(t.Context()))
	w.sim.Heal()
	s.senders.Wait()
	s.requireCounted(before)
	if got := w.sim.Count(tosssim.Confirm) - sold; got != confirmCap {
		t.Errorf("the gateway was sent %d confirms, want the %d that had a slot", got, confirmCap)
	}
	w.quiesce()
	w.requireAgreed()
}

// TestStorm_NoticesTakeNoConnectionOfMoney has more duplicates wait for the database at once than it lets payments have
// connections. Each is one statement; a confirm takes five connections one after the other, and would stand behind them each time.
func TestStorm_NoticesTakeNoConnectionOfMoney(t *testing.T) {
	t.Parallel()
	const duplicates = 24 // three times the connections of payments
	w := newWorld(t, stormy)
	s := &storm{world: w, answers: make(map[string]map[string]int)}
	settled := w.sell("order-settled", 50_000)
	w.dashboard(settled, 0)
	notice := w.newest(settled)
	w.wantDelivery(notice, http.StatusOK)
	paid, wanted := w.sell("order-paid", 50_000), w.open("order-wanted", 30_000)

	holder, err := w.db.Begin(t.Context()) //nolint:forbidigo // it is held open on purpose
	w.must(err)
	defer holder.Rollback(context.WithoutCancel(t.Context()))
	_, err = holder.Exec(t.Context(), `LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE`)
	w.must(err)
	for range duplicates {
		s.send("duplicate", func() reply {
			status, err := w.sim.Deliver(notice.ID)
			if err != nil {
				return reply{Code: err.Error()}
			}
			return reply{code: status}
		})
	}
	w.eventually("all of them are let in", func() bool { return s.inFlight("notification") == duplicates })

	w.app.shop.confirm(wanted, "order-wanted", 30_000).want(t, "a confirm beside them", "200 done")
	w.app.shop.cancel(paid, "cancel-beside", 0).want(t, "a cancel beside them", "200 done")
	w.must(holder.Rollback(t.Context()))
	s.senders.Wait()
	if diff := cmp.Diff(map[string]map[string]int{"duplicate": {"200 ": duplicates}}, s.answers); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	w.quiesce()
	w.requireAgreed()
}

// requireCounted holds what the senders were answered against the figures of the service.
func (s *storm) requireCounted(before map[string]float64) {
	s.Helper()
	after := series(s, s.app.Registry())
	counted := func(name string) int { return int(after[name] - before[name]) }
	want := map[string]map[string]int{
		"confirm": {"200 done": confirmCap, "503 gateway_busy": stormConfirms - confirmCap},
		"notice":  {"200 ": queryCap, "502 ": stormNotices - queryCap},
		"look-up": {"200 ": readsAtOnce, "503 overloaded": stormReads - readsAtOnce},
	}
	if diff := cmp.Diff(want, s.answers); diff != "" {
		s.Errorf("answers (-want +got):\n%s", diff)
	}
	told := map[string]int{
		"daesa_admission_gate_shed_total{class=money}":                                       0,
		"daesa_admission_gate_shed_total{class=notification}":                                0,
		"daesa_admission_gate_shed_total{class=reading}":                                     s.answers["look-up"]["503 overloaded"] + 1,
		"daesa_pgclient_refusals_total{path=confirm,reason=cap}":                             s.answers["confirm"]["503 gateway_busy"],
		"daesa_pgclient_refusals_total{path=query,reason=cap}":                               s.answers["notice"]["502 "],
		"daesa_webhook_outcomes_total{outcome=applied_full}":                                 s.answers["notice"]["200 "],
		"daesa_webhook_outcomes_total{outcome=query_failed}":                                 s.answers["notice"]["502 "],
		"daesa_webhook_outcomes_total{outcome=duplicate_skipped}":                            1,
		"daesa_web_request_seconds{method=POST,route=/webhooks/toss,status_class=2xx}":       s.answers["notice"]["200 "] + 1,
		"daesa_web_request_seconds{method=POST,route=/webhooks/toss,status_class=5xx}":       s.answers["notice"]["502 "],
		"daesa_web_request_seconds{method=POST,route=/v1/payments/confirm,status_class=2xx}": s.answers["confirm"]["200 done"] + 1,
		"daesa_web_request_seconds{method=POST,route=/v1/payments/confirm,status_class=5xx}": s.answers["confirm"]["503 gateway_busy"],
		"daesa_web_request_seconds{method=GET,route=/v1/incidents,status_class=2xx}":         s.answers["look-up"]["200 "],
		"daesa_web_request_seconds{method=GET,route=/v1/incidents,status_class=5xx}":         s.answers["look-up"]["503 overloaded"],
		"daesa_admission_gate_wait_seconds{class=reading}":                                   s.answers["look-up"]["200 "] + 1,
		"daesa_admission_rate_refused_total{rule=webhook}":                                   0,
		"daesa_admission_rate_refused_total{rule=confirm}":                                   0,
	}
	got := make(map[string]int)
	for name := range maps.Keys(told) {
		got[name] = counted(name)
	}
	if diff := cmp.Diff(told, got); diff != "" {
		s.Errorf("what senders were told, and what was counted (-told +counted):\n%s", diff)
	}
	for _, class := range []string{"money", "notification", "reading"} {
		if n := s.inFlight(class); n != 0 {
			s.Errorf("%d of %s are still in flight", n, class)
		}
	}
}
