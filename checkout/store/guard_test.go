package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"daesa/checkout/store/storesim"
	"daesa/internal/guard"
)

// visit is one question as its buyer felt it.
type visit struct {
	answer Answer
	unsent *Unsent
	took   time.Duration
}

// crowd asks n questions at once and returns them in the order in which they ended.
func crowd(t *testing.T, c *Client, n int) []visit {
	t.Helper()
	var mu sync.Mutex
	var visits []visit
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			began := time.Now()
			answer, err := ask(t, c, order(fmt.Sprint(i)))
			v := visit{answer: answer, took: time.Since(began)}
			_ = errors.As(err, &v.unsent)
			mu.Lock()
			defer mu.Unlock()
			visits = append(visits, v)
		})
	}
	group.Wait()
	return visits
}

func count(visits []visit, is func(visit) bool) int {
	return len(slices.DeleteFunc(slices.Clone(visits), func(v visit) bool { return !is(v) }))
}

func accepted(v visit) bool { return v.answer.Word == Accepted }

func TestAsk_TheStoreNeverSeesMoreThanItBears(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := storesim.New(storesim.Config{Secret: secret})
		c := mustNew(t, testConfig(inProcess(sim.Handler())))
		visits := crowd(t, c, 200)
		if n := count(visits, accepted); n != 200 {
			t.Errorf("%d of 200 accepted within their time: 200 ÷ 24 rounds of 50 ms are 450 ms", n)
		}
		if sim.AtMost() != 24 {
			t.Errorf("%d at the store at once, want 24", sim.AtMost())
		}
		for _, call := range sim.Calls() {
			if call.Took != 50*time.Millisecond {
				t.Fatalf("a question took %s at the store, want its 50 ms", call.Took)
			}
		}
	})
}

// TestAsk_WithoutTheCap is what the cap is for: the same store, 64 at once, no deadline.
func TestAsk_WithoutTheCap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := storesim.New(storesim.Config{Secret: secret})
		cfg := testConfig(inProcess(sim.Handler()))
		cfg.Limits = Limits{Cap: 64, Total: time.Minute}
		visits := crowd(t, mustNew(t, cfg), 640)
		if last := visits[len(visits)-1]; !accepted(last) || last.took < time.Second {
			t.Errorf("the last of 640 took %s: the store does not slow down past its knee", last.took)
		}
		if sim.AtMost() != 64 {
			t.Errorf("%d at the store at once, want 64", sim.AtMost())
		}
	})
}

func TestAsk_NobodyWaitsPast800Milliseconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := storesim.New(storesim.Config{Secret: secret})
		sim.Fail(storesim.Fault{Op: storesim.Ask, Kind: storesim.Delay, Delay: time.Minute, N: -1})
		cfg := testConfig(inProcess(sim.Handler()))
		cfg.Limits.Breaker = guard.BreakerLimits{Window: 1000, MinCalls: 1000}
		c := mustNew(t, cfg)
		visits := crowd(t, c, 300)
		if n := count(visits, func(v visit) bool { return v.answer.Word == Late && v.answer.Sent }); n != 24 {
			t.Errorf("%d were sent to a silent store, want 24", n)
		}
		if n := count(visits, func(v visit) bool { return v.unsent != nil && v.unsent.Reason == guard.RefusalCap }); n != 276 {
			t.Errorf("%d got no slot, want the other 276", n)
		}
		for _, v := range visits {
			if want := map[bool]time.Duration{true: 600 * time.Millisecond, false: 800 * time.Millisecond}[v.unsent != nil]; v.took != want {
				t.Fatalf("one took %s, want %s: %+v", v.took, want, v)
			}
		}
		if sim.UnderWay() != 24 || c.slots.Held() != 0 {
			t.Errorf("%d requests at the store, %d slots held, want the 24 that it does not let go, and none", sim.UnderWay(), c.slots.Held())
		}
		sim.Heal()
	})
}

// TestAsk_WhoWaitedHasTimeLeft: the time of the answer is what the wait left of the 800 ms, and at least 200 of them.
func TestAsk_WhoWaitedHasTimeLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := storesim.New(storesim.Config{Secret: secret, Base: 590 * time.Millisecond})
		c := mustNew(t, testConfig(inProcess(sim.Handler())))
		visits := crowd(t, c, 30)
		if n := count(visits, accepted); n != 24 {
			t.Errorf("%d accepted, want the 24 that did not wait", n)
		}
		if n := count(visits, func(v visit) bool { return v.answer.Word == Late && v.took == 800*time.Millisecond }); n != 6 {
			t.Errorf("%d were given up after 800 ms, want the 6 that waited 590 of them", n)
		}
		if c.breaker.State() != guard.Closed {
			t.Errorf("questions cut short by their own wait made the breaker %s", c.breaker.State())
		}
		time.Sleep(time.Second) // the store serves to their end those that were given up
	})
}

func TestReserve_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := mustNew(t, testConfig(tripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})))
		ctx, drain := context.WithCancel(t.Context())
		began := time.Now()
		var group sync.WaitGroup
		for i := range 100 {
			group.Go(func() {
				permit, err := c.Reserve(ctx)
				if err != nil {
					return
				}
				defer permit.Release()
				_ = c.Ask(ctx, permit, order(fmt.Sprint(i)))
			})
		}
		time.Sleep(100 * time.Millisecond)
		drain()
		group.Wait()
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("the drain took %s, want 100 ms", took)
		}
		if c.slots.Held() != 0 || c.breaker.State() != guard.Closed {
			t.Errorf("%d slots held, breaker %s: callers that leave say nothing about the store", c.slots.Held(), c.breaker.State())
		}
	})
}

func TestAsk_NotSentWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := mustNew(t, testConfig(tripper(func(*http.Request) (*http.Response, error) {
			t.Error("sent")
			return nil, http.ErrServerClosed
		})))
		permit, err := c.Reserve(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(800 * time.Millisecond) // what is written before a question took too long
		if got := c.Ask(t.Context(), permit, order("one")); got != (Answer{Word: Late}) {
			t.Errorf("got %+v", got)
		}
		permit.Release()
		permit.Release()
		if c.slots.Held() != 0 {
			t.Error("the slot is still held")
		}
	})
}

func TestAsk_AFailingStoreIsLeftAloneAndTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := storesim.New(storesim.Config{Secret: secret})
		sim.Fail(storesim.Fault{Op: storesim.Ask, Kind: storesim.Status, Code: 503, N: 10})
		c := mustNew(t, testConfig(inProcess(sim.Handler())))
		for i := range 10 {
			if got, err := ask(t, c, order(fmt.Sprint(i))); err != nil || got.Word != Unreachable {
				t.Fatal(got, err)
			}
		}
		_, err := ask(t, c, order("x"))
		var unsent *Unsent
		if !errors.As(err, &unsent) || unsent.Reason != guard.RefusalBreaker || unsent.RetryAfter != 2*time.Second {
			t.Fatalf("got %v", err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		permit, err := c.Reserve(t.Context()) // its row could not be written: the trial goes back
		if err != nil {
			t.Fatal(err)
		}
		permit.Release()
		if n := count(crowd(t, c, 10), accepted); n != 3 {
			t.Errorf("%d got through a breaker that is half open, want 3", n)
		}
		if c.breaker.State() != guard.Closed {
			t.Errorf("breaker %s", c.breaker.State())
		}
	})
}

// TestRelease_QuestionsGoFirst: with the 24 questions one release makes 25 at the store; with fewer there is room for more.
func TestRelease_QuestionsGoFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := storesim.New(storesim.Config{Secret: secret})
		c := mustNew(t, testConfig(inProcess(sim.Handler())))
		var group sync.WaitGroup
		for i := range 24 {
			group.Go(func() { _, _ = ask(t, c, order(fmt.Sprint(i))) })
		}
		synctest.Wait()
		release := func() (heard, busy int) {
			var releases sync.WaitGroup
			var mu sync.Mutex
			for range 3 {
				releases.Go(func() {
					err := c.Release(t.Context(), order("gone"))
					mu.Lock()
					defer mu.Unlock()
					if errors.Is(err, ErrBusy) {
						busy++
					} else if err == nil {
						heard++
					}
				})
			}
			releases.Wait()
			return heard, busy
		}
		heard, busy := release()
		group.Wait()
		if heard != 1 || busy != 2 || sim.AtMost() != 25 {
			t.Errorf("beside 24 questions: %d heard, %d busy, %d at the store at once", heard, busy, sim.AtMost())
		}
		if heard, busy = release(); heard != 3 || busy != 0 || c.slots.Held() != 0 || c.releasing.Held() != 0 {
			t.Errorf("alone: %d heard, %d busy; %d and %d slots held", heard, busy, c.slots.Held(), c.releasing.Held())
		}
	})
}

func TestRelease_EndsByItselfAndWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := mustNew(t, testConfig(tripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})))
		began := time.Now()
		if err := c.Release(t.Context(), order("one")); err == nil || time.Since(began) != 5*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		ctx, drain := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer drain()
		if err := c.Release(ctx, order("one")); err == nil || time.Since(began) != 5*time.Second+10*time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// TestLoad_WhatTheBreakerRefusesAsksForNoSlot: in front of a store that hangs the breaker opens, and the rest of the buyers
// never come to the slots. The share that the cap is predicted to refuse is of those that do: none.
func TestLoad_WhatTheBreakerRefusesAsksForNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := storesim.New(storesim.Config{Secret: secret})
		sim.Fail(storesim.Fault{Op: storesim.Ask, Kind: storesim.Delay, Delay: time.Minute, N: -1})
		c := mustNew(t, testConfig(inProcess(sim.Handler())))
		defer sim.Heal()
		var group sync.WaitGroup
		refused := 0
		for i := range 30 * 50 {
			if c.breaker.State() == guard.Open {
				if _, err := ask(t, c, order(fmt.Sprint(i))); err == nil {
					t.Fatal("asked past an open breaker")
				}
				refused++
			} else {
				group.Go(func() { _, _ = ask(t, c, order(fmt.Sprint(i))) })
			}
			time.Sleep(20 * time.Millisecond)
		}
		group.Wait()
		predicted, measured := c.load.Shares()
		if refused < 1000 {
			t.Fatalf("the breaker refused %d of 1,500: that shows nothing", refused)
		}
		if predicted != 0 || measured != 0 {
			t.Errorf("predicted %.3f, measured %.3f of those that came to the slots, want none", predicted, measured)
		}
	})
}
