package guard

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// usual are the limits of a breaker that opens for so long.
func usual(openFor time.Duration) BreakerLimits {
	return BreakerLimits{Window: 10, MinCalls: 10, FailurePercent: 50, OpenFor: openFor, Trials: 3}
}

// call passes one result through the breaker.
func (b *Breaker) call(o Outcome) error {
	permission, err := b.Acquire()
	if err == nil {
		permission.Done(o)
	}
	return err
}

func TestBreaker_OpensHalfOpensByItselfAndCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var changes []string
		b := NewBreaker(usual(10*time.Second), func(from, to State) {
			changes = append(changes, fmt.Sprintf("%s>%s", from, to))
		})
		for range 9 {
			_ = b.call(Failed)
		}
		for range 50 { // refused cards neither open it nor dilute the failures
			_ = b.call(Ignored)
		}
		if b.State() != Closed {
			t.Fatal("opened before ten calls that count")
		}
		_ = b.call(Failed)
		if err := b.call(Succeeded); !errors.Is(err, ErrOpen) || b.RetryAfter() != 10*time.Second {
			t.Fatalf("got %v, retry after %s", err, b.RetryAfter())
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if b.State() != HalfOpen {
			t.Fatal("not half open although nobody called")
		}
		for range 5 { // results that say nothing give the trial back
			_ = b.call(Ignored)
		}
		for range 3 {
			_ = b.call(Succeeded)
		}
		want := []string{"closed>open", "open>half_open", "half_open>closed"}
		if diff := cmp.Diff(want, changes); diff != "" {
			t.Error(diff)
		}
	})
}

// TestBreaker_ASuccessOpensNothing: a short outage leaves a window that one call more makes full. When that call is
// answered the gateway is back.
func TestBreaker_ASuccessOpensNothing(t *testing.T) {
	t.Parallel()
	b := NewBreaker(usual(10*time.Second), nil)
	for range 9 {
		_ = b.call(Failed)
	}
	if _ = b.call(Succeeded); b.State() != Closed {
		t.Fatal("the first answer after the outage opened it")
	}
	if _ = b.call(Failed); b.State() != Open {
		t.Error("nine failures of ten calls leave it closed")
	}
}

func TestBreaker_HalfOpenLetsOnlyTheTrialsThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(usual(time.Second), nil)
		late, _ := b.Acquire()
		for range 10 {
			_ = b.call(Failed)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		late.Done(Succeeded) // begun before the outage: proves nothing about now
		var admitted []*Token
		for range 50 {
			if permission, err := b.Acquire(); err == nil {
				admitted = append(admitted, permission)
			}
		}
		if len(admitted) != 3 || b.State() != HalfOpen {
			t.Fatalf("%d admitted, %s", len(admitted), b.State())
		}
		admitted[0].Cancel() // never used
		admitted[0].Done(Failed)
		again, err := b.Acquire()
		if err != nil {
			t.Fatal("the unused trial did not come back")
		}
		for _, permission := range []*Token{again, admitted[1], admitted[2]} {
			permission.Done(Failed)
		}
		if b.State() != Open {
			t.Fatal("failed trials did not open it again")
		}
		b.Close()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if b.State() != Closed {
			t.Fatal("the timer of an earlier period half-opened a closed breaker")
		}
	})
}

// TestBreaker_RenewGoesByTheBreakersPresentState: a permission stands as long as the breaker has not moved; after that it is
// asked for anew, and what is given back is nobody's.
func TestBreaker_RenewGoesByTheBreakersPresentState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(usual(time.Second), nil)
		early, _ := b.Acquire()
		if same, err := b.Renew(early); err != nil || same != early {
			t.Errorf("got %v and another permission of a breaker that has not moved", err)
		}
		for range 10 {
			_ = b.call(Failed)
		}
		if _, err := b.Renew(early); !errors.Is(err, ErrOpen) {
			t.Errorf("got %v from an open breaker", err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		trials := make([]*Token, 3)
		for n := range trials {
			trials[n], _ = b.Acquire()
		}
		if _, err := b.Renew(early); !errors.Is(err, ErrOpen) {
			t.Errorf("got %v beside all trials", err)
		}
		if same, err := b.Renew(trials[0]); err != nil || same != trials[0] {
			t.Errorf("got %v and another trial", err)
		}
		for _, trial := range trials {
			trial.Done(Succeeded)
		}
		if renewed, err := b.Renew(early); err != nil || renewed == early {
			t.Errorf("got %v from a closed breaker, want a permission of its own", err)
		}
	})
}

func TestBreaker_ClosedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(usual(time.Second), nil)
		if got := b.ClosedFor(); got < 24*time.Hour {
			t.Errorf("closed for %s, want for ever: there was no outage", got)
		}
		for range 10 {
			_ = b.call(Failed)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := b.ClosedFor(); got != 0 {
			t.Errorf("closed for %s while it is half open", got)
		}
		b.Close()
		time.Sleep(3 * time.Second)
		if got := b.ClosedFor(); got != 3*time.Second {
			t.Errorf("closed for %s, want 3 s", got)
		}
	})
}

func TestBreaker_ChangesAreAnnouncedInOrder(t *testing.T) {
	t.Parallel()
	last := Closed
	var broken bool
	b := NewBreaker(BreakerLimits{Window: 1, MinCalls: 1, FailurePercent: 50, OpenFor: time.Hour, Trials: 1},
		func(from, to State) {
			broken = broken || from != last
			last = to
		})
	defer b.Stop()
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 200 {
				_ = b.call(Failed)
				b.Close()
			}
		})
	}
	wait.Wait()
	if broken || last != b.State() {
		t.Errorf("order broken %t; last announced %s, is %s", broken, last, b.State())
	}
}

// TestBreaker_BehavesLikeItsModel compares it with a list of results, over random histories in fake time.
func TestBreaker_BehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{
			"ok", "ok", "fail", "fail", "fail", "fail", "ignore", "1s", "10s", "close",
		}), 1, 120).Draw(rt, "steps")
		limits := BreakerLimits{Window: 10, MinCalls: 5, FailurePercent: 50, OpenFor: 10 * time.Second, Trials: 3}
		problem := ""
		synctest.Test(t, func(*testing.T) { problem = compareWithModel(steps, limits) })
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

type breakerModel struct {
	limits  BreakerLimits
	state   State
	results []bool
	opened  time.Time
}

func compareWithModel(steps []string, limits BreakerLimits) string {
	b := NewBreaker(limits, nil)
	defer b.Stop()
	m := &breakerModel{limits: limits, state: Closed}
	for i, step := range steps {
		refused := m.step(step)
		var err error
		switch step {
		case "1s":
			time.Sleep(time.Second)
		case "10s":
			time.Sleep(10 * time.Second)
		case "close":
			b.Close()
		default:
			err = b.call(map[string]Outcome{"ok": Succeeded, "fail": Failed, "ignore": Ignored}[step])
		}
		synctest.Wait()
		if m.state == Open && time.Since(m.opened) >= limits.OpenFor {
			m.become(HalfOpen)
		}
		if b.State() != m.state || (err != nil) != refused {
			return fmt.Sprintf("step %d %s: got %s refused %t, want %s refused %t", i, step, b.State(), err != nil, m.state, refused)
		}
	}
	return ""
}

func (m *breakerModel) become(state State) {
	m.state, m.results, m.opened = state, nil, time.Now()
}

// step moves the model and says whether the call is refused.
func (m *breakerModel) step(step string) bool {
	switch {
	case step == "close":
		if m.state != Closed {
			m.become(Closed)
		}
		return false
	case step == "1s" || step == "10s":
		return false
	case m.state == Open:
		return true
	case step == "ignore":
		return false
	}
	m.results = append(m.results, step == "fail")
	if m.state == HalfOpen {
		if len(m.results) == m.limits.Trials {
			m.become(map[bool]State{true: Open, false: Closed}[m.bad()])
		}
		return false
	}
	m.results = m.results[max(0, len(m.results)-m.limits.Window):]
	if step == "fail" && len(m.results) >= m.limits.MinCalls && m.bad() {
		m.become(Open)
	}
	return false
}

func (m *breakerModel) bad() bool {
	failures := len(slices.DeleteFunc(slices.Clone(m.results), func(failure bool) bool { return !failure }))
	return failures*100 >= m.limits.FailurePercent*len(m.results)
}
