package pgclient

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"daesa/internal/guard"
	"daesa/ledger"
)

// outage is a gateway that is silent until it is back, and then takes its time.
type outage struct {
	back  atomic.Bool
	takes time.Duration
	asked atomic.Int64
	most  atomic.Int64 // questions at once
	now   atomic.Int64
}

func (o *outage) RoundTrip(r *http.Request) (*http.Response, error) {
	o.asked.Add(1)
	o.most.Store(max(o.most.Load(), o.now.Add(1)))
	defer o.now.Add(-1)
	answer := step{hangs: true}
	if o.back.Load() {
		select {
		case <-time.After(o.takes):
			answer = shows(payment(nil))
		case <-r.Context().Done():
		}
	}
	return answer.do(r.Context())
}

// silentForAWhile is a client whose query breaker has just opened.
func silentForAWhile(t *testing.T, o *outage) *Client {
	t.Helper()
	c := mustNew(t, testConfig(o))
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() { _ = question(t.Context(), c) })
	}
	group.Wait()
	if c.queries.State() != guard.Open {
		t.Fatal("the breaker is not open after ten questions without an answer")
	}
	o.asked.Store(0)
	o.most.Store(0)
	return c
}

func question(ctx context.Context, c *Client) error {
	_, err := c.Query(ctx, ledger.ChannelWebhook, "pk_1")
	return err
}

// burst puts n questions at once and returns how many were answered, and the longest that one took.
func burst(t *testing.T, c *Client, n int) (answered int64, longest time.Duration) {
	t.Helper()
	var good, slowest atomic.Int64
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			began := time.Now()
			if question(t.Context(), c) == nil {
				good.Add(1)
			}
			slowest.Store(max(slowest.Load(), int64(time.Since(began))))
		})
	}
	group.Wait()
	return good.Load(), time.Duration(slowest.Load())
}

func TestQuery_ABurstRightAfterAnOutageIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{takes: 300 * time.Millisecond}
		c := silentForAWhile(t, o)
		o.back.Store(true)
		answered, longest := burst(t, c, 60)
		if answered != 60 {
			t.Errorf("%d of 60 answered by a gateway that is back", answered)
		}
		if want := time.Second + 2*o.takes; longest != want {
			t.Errorf("the last took %s, want %s: the breaker's rest, three trials, and its own question", longest, want)
		}
		if got := o.asked.Load(); got != 60 {
			t.Errorf("asked %d times, want 60", got)
		}
	})
}

// TestQuery_ABurstAboveTheCapIsAnsweredInTurns: more questions than there are slots wait for the breaker. They hold none
// meanwhile, and share them when it has closed.
func TestQuery_ABurstAboveTheCapIsAnsweredInTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{takes: 300 * time.Millisecond}
		c := silentForAWhile(t, o)
		o.back.Store(true)
		answered, longest := burst(t, c, 150)
		if answered != 150 || o.asked.Load() != 150 {
			t.Errorf("%d of 150 answered by a gateway that is back, asked %d times", answered, o.asked.Load())
		}
		if got := o.most.Load(); got != 60 {
			t.Errorf("asked %d at once, want the cap of 60", got)
		}
		if want := time.Second + 4*o.takes; longest != want {
			t.Errorf("the last took %s, want %s: the breaker's rest, three trials, and three turns", longest, want)
		}
	})
}

// TestQuery_NobodyQueuesAtASlowGateway: without an outage there is no wait for a slot. A queue would leave every question
// too little time, and none of those that have a slot would be answered.
func TestQuery_NobodyQueuesAtASlowGateway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{takes: 1900 * time.Millisecond}
		o.back.Store(true)
		c := mustNew(t, testConfig(o))
		if answered, longest := burst(t, c, 150); answered != 60 || longest != o.takes || o.asked.Load() != 60 {
			t.Errorf("%d of 150 answered, asked %d times, the last after %s; want the 60 that have a slot", answered, o.asked.Load(), longest)
		}
	})
}

// TestQuery_NoneStartsThatCannotFinish: those that waited for the breaker wait for a slot as long as a third of their time
// is left for the question, and no longer.
func TestQuery_NoneStartsThatCannotFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{takes: 900 * time.Millisecond}
		c := silentForAWhile(t, o)
		time.Sleep(time.Second) // the breaker's rest: the burst meets its trials
		synctest.Wait()
		o.back.Store(true)
		answered, longest := burst(t, c, 150)
		if want := int64(3 + 60 + 60); answered != want || o.asked.Load() != want {
			t.Errorf("%d answered and asked %d times, want %d: three trials and two turns", answered, o.asked.Load(), want)
		}
		if longest > 3*time.Second {
			t.Errorf("a question took %s, above its whole budget", longest)
		}
	})
}

// TestQuery_ABreakerThatOpensAgainEndsTheTurns: who waited for a slot while the gateway fell back into its outage asks nothing.
func TestQuery_ABreakerThatOpensAgainEndsTheTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		c := mustNew(t, testConfig(tripper(func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			time.Sleep(100 * time.Millisecond)
			return says(http.StatusServiceUnavailable, "").do(r.Context())
		})))
		for range 10 {
			failOnce(c.queries)
		}
		c.queries.Close() // recovery had an answer
		if answered, longest := burst(t, c, 150); answered != 0 || longest > 2*time.Second {
			t.Errorf("%d answered, the last after %s", answered, longest)
		}
		// Nine answers of the first turn leave the breaker closed, and their slots to the next in line.
		if got := asked.Load(); got < 60 || got > 60+9 || c.queries.State() == guard.Closed {
			t.Errorf("asked %d times, breaker %s; want one turn of 60, nine more at most, and then none", got, c.queries.State())
		}
	})
}

// TestQuery_AStampedeAtAHalfOpenBreaker: 50 questions a second come while it lets three through. The others wait within
// their bound and are refused, without slots. That nothing of them is left is what the bubble ends by.
func TestQuery_AStampedeAtAHalfOpenBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{}
		c := silentForAWhile(t, o)
		time.Sleep(time.Second)
		synctest.Wait()
		if c.queries.State() != guard.HalfOpen {
			t.Fatal("the breaker is not half open after its second of rest")
		}
		var group sync.WaitGroup
		var longest, slots atomic.Int64
		for range 120 { // the last of them gives up before the breaker tries again
			group.Go(func() {
				began := time.Now()
				if question(t.Context(), c) == nil {
					t.Error("answered by a silent gateway")
				}
				longest.Store(max(longest.Load(), int64(time.Since(began))))
			})
			time.Sleep(20 * time.Millisecond)
			slots.Store(max(slots.Load(), int64(c.query.slots.Held())))
		}
		group.Wait()
		if o.most.Load() != 3 || o.asked.Load() != 3 || slots.Load() != 3 {
			t.Errorf("asked %d times, %d at once, %d slots in use; want three trials", o.asked.Load(), o.most.Load(), slots.Load())
		}
		if got := time.Duration(longest.Load()); got > 3*time.Second {
			t.Errorf("a question took %s, above its whole budget", got)
		}
		if got := c.query.slots.Held(); got != 0 {
			t.Errorf("%d slots held by nobody", got)
		}
	})
}

func TestQuery_AHalfOpenBreakerStillLetsThreeThroughAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{}
		c := silentForAWhile(t, o)
		answered, longest := burst(t, c, 60)
		if answered != 0 || o.most.Load() != 3 || o.asked.Load() != 3 {
			t.Errorf("a silent gateway was asked %d times, %d at once, by a burst of 60; want three trials", o.asked.Load(), o.most.Load())
		}
		if longest > 3*time.Second {
			t.Errorf("a question took %s, above its whole budget", longest)
		}
	})
}

// TestQuery_ASlowGatewayClosesTheBreaker: a question that waited has less time left than the gateway needs. That says
// nothing about the gateway; the next one with all of its time does.
func TestQuery_ASlowGatewayClosesTheBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{takes: 2500 * time.Millisecond}
		c := silentForAWhile(t, o)
		o.back.Store(true)
		if answered, _ := burst(t, c, 3); answered != 0 {
			t.Error("a question of 3 s waited for one and was answered after another 2.5 s")
		}
		if c.queries.State() != guard.HalfOpen {
			t.Errorf("questions cut short made the breaker %s", c.queries.State())
		}
		if answered, _ := burst(t, c, 3); answered != 3 || c.queries.State() != guard.Closed {
			t.Errorf("%d of 3 answered, breaker %s; want it closed by questions that had all of their time", answered, c.queries.State())
		}
	})
}

func TestQuery_NobodyWaitsForABreakerLongerThanItsPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{}
		cfg := testConfig(o)
		cfg.Breakers.Query.OpenFor = 2 * time.Second
		c := mustNew(t, cfg)
		for range 10 {
			failOnce(c.queries)
		}
		began := time.Now()
		wantReason(t, question(t.Context(), c), ReasonBreakerOpen)
		if took := time.Since(began); took != 0 {
			t.Errorf("waited %s for a breaker that stays open for longer", took)
		}
		time.Sleep(time.Second)
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		wantReason(t, question(ctx, c), ReasonBreakerOpen)
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("waited until %s, after the caller had gone", took)
		}
		if got := c.query.slots.Held(); got != 0 {
			t.Errorf("%d slots held by nobody", got)
		}
	})
}
