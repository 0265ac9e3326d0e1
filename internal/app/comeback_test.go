package app_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"daesa/internal/app"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
)

// TestComeback_EverythingAtOnce: after an outage every notice of it comes at the same moment, some for the third time,
// while people buy as ever. What is too much is refused at once and without harm: no sale is, the gateway is asked no more
// than the cap allows at once, and in the end each cancel is in the books once.
func TestComeback_EverythingAtOnce(t *testing.T) {
	t.Parallel()
	const distinct, waves, limit, cap, sales = 40, 3, 70, 10, 10
	w := newWorld(t, func(c *app.Config, _ *tosssim.Config) { c.RateLimit, c.Paths.Query.Cap = limit, cap })
	var notices []tosssim.Notice
	for n := range distinct {
		key := w.sell(fmt.Sprintf("order-%d", n), 10_000)
		w.dashboard(key, 0)
		notices = append(notices, w.newest(key))
	}
	bought := make([]string, sales)
	for n := range bought {
		bought[n] = w.open(fmt.Sprintf("order-beside-%d", n), 20_000)
	}
	asked := w.sim.Count(tosssim.Get)
	s := &storm{world: w, answers: make(map[string]map[string]int)}
	for range waves {
		for _, notice := range notices {
			s.send("notice", func() reply {
				status, err := w.sim.Deliver(notice.ID)
				if err != nil {
					return reply{Code: err.Error()}
				}
				return reply{code: status}
			})
		}
	}
	for n, key := range bought {
		order := fmt.Sprintf("order-beside-%d", n)
		s.send("sale", func() reply {
			return s.asked(http.MethodPost, "/v1/payments/confirm", confirmation(key, order, 20_000))
		})
	}
	s.send("recovery", func() reply {
		if err := w.app.Sweep(context.WithoutCancel(w.Context())); err != nil {
			return reply{Code: err.Error()}
		}
		return reply{code: http.StatusOK}
	})
	s.senders.Wait()

	told := s.answers["notice"]
	if told["429 "] != distinct*waves-limit || told["200 "]+told["502 "]+told["429 "] != distinct*waves {
		t.Errorf("got %v, want all but %d refused by the limit, and of the others applied, known or to come again", told, limit)
	}
	if got := s.answers["sale"]; got["200 done"] != sales {
		t.Errorf("got %v, want every sale made", got)
	}
	if got := w.app.counted("daesa_admission_gate_shed_total"); got != 0 {
		t.Errorf("%d requests were shed", got)
	}
	if got := w.sim.Count(tosssim.Get) - asked; got > limit {
		t.Errorf("the gateway was asked %d times, want once at most for each of the %d notices that were let in", got, limit)
	}
	owed := func() int64 { return w.number(`SELECT count(*) FROM work WHERE closed_at IS NULL`) }
	for left := owed(); left > 0; {
		w.later(10 * time.Minute)
		now := owed()
		if now >= left {
			t.Fatalf("%d questions are still owed of %d: recovery does not get through", now, left)
		}
		left = now
	}
	w.quiesce()
	w.requireAgreed()
	if got := w.number(`SELECT count(*) FROM cancels`); got != distinct {
		t.Errorf("got %d cancels, want %d, each once", got, distinct)
	}
}

// TestComeback_TheWholeBurstIsApplied: the gateway answers no question while cancels happen, until the breaker of questions
// opens. It is back a minute later, when all their notices come again together and that breaker has not closed yet. Every one
// is applied on this first redelivery: a question waits for the breaker longer than that stays open, and then its turn at the
// slots, of which there are fewer.
func TestComeback_TheWholeBurstIsApplied(t *testing.T) {
	t.Parallel()
	const canceled = 80
	w := newWorld(t, func(c *app.Config, _ *tosssim.Config) {
		c.Breakers, c.Paths.Query, c.DatabaseMax, c.RateLimit = pgclient.Breakers{}, pgclient.Path{}, 0, 0 // as they are shipped
	})
	w.sim.SetDelivery(tosssim.DeliveryPlan{Parallel: canceled})
	var sold []string
	for n := range canceled {
		sold = append(sold, w.sell(fmt.Sprintf("order-%03d", n), 10_000))
	}
	w.sim.DeliverDue(t.Context()) // that they were approved
	for _, key := range sold {
		w.dashboard(key, 0)
	}
	w.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Hang, N: -1})
	w.sim.DeliverDue(t.Context())
	if got, want := w.told(sold, 0), fmt.Sprintf("map[502:%d]", canceled); got != want {
		t.Errorf("got %s told in the silence, want %s", got, want)
	}
	w.clock.Advance(time.Minute)
	w.sim.Heal()
	w.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Delay, Delay: 100 * time.Millisecond, N: -1})
	if w.breaker(pgclient.BreakerQuery) == 0 {
		t.Fatal("the breaker lets everything through: there is nothing to come back from")
	}
	w.sim.DeliverDue(t.Context())
	if got, want := w.told(sold, 1), fmt.Sprintf("map[200:%d]", canceled); got != want {
		t.Errorf("got %s told when they came again, want %s", got, want)
	}
	applied := w.number(`SELECT count(*) FROM deliveries WHERE outcome = 'applied_full' AND retried_count = 1`)
	if cancels := w.number(`SELECT count(*) FROM cancels`); applied != canceled || cancels != canceled {
		t.Errorf("got %d applied and %d cancels in the books, want %d, each once", applied, cancels, canceled)
	}
	w.quiesce()
	w.requireAgreed()
}

// breaker is its state: 0 closed, 1 half open, 2 open.
func (w *world) breaker(name pgclient.BreakerName) float64 {
	w.Helper()
	return series(w, w.app.Registry())["daesa_pgclient_breaker_state{breaker="+string(name)+"}"]
}

// told is how many of the newest notices about payments were answered with each status, when they had been sent so often before.
func (w *world) told(keys []string, retried int) string {
	w.Helper()
	statuses := make(map[int]int)
	for _, key := range keys {
		for _, d := range w.newest(key).Deliveries {
			if d.RetriedCount == retried {
				statuses[d.Status]++
			}
		}
	}
	return fmt.Sprint(statuses)
}
