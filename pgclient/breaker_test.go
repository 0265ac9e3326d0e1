package pgclient

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

// call passes one result through the breaker.
func (b *breaker) call(o outcome) error {
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
		b := newBreaker(declaredBreakers().Money, func(from, to BreakerState) {
			changes = append(changes, fmt.Sprintf("%s>%s", from, to))
		})
		for range 9 {
			_ = b.call(failed)
		}
		for range 50 { // refused cards neither open it nor dilute the failures
			_ = b.call(ignored)
		}
		if b.State() != BreakerClosed {
			t.Fatal("opened before ten calls that count")
		}
		_ = b.call(failed)
		if err := b.call(succeeded); !errors.Is(err, errOpen) || b.RetryAfter() != 10*time.Second {
			t.Fatalf("got %v, retry after %s", err, b.RetryAfter())
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if b.State() != BreakerHalfOpen {
			t.Fatal("not half open although nobody called")
		}
		for range 5 { // results that say nothing give the trial back
			_ = b.call(ignored)
		}
		for range 3 {
			_ = b.call(succeeded)
		}
		want := []string{"closed>open", "open>half_open", "half_open>closed"}
		if diff := cmp.Diff(want, changes); diff != "" {
			t.Error(diff)
		}
	})
}

func TestBreaker_HalfOpenLetsOnlyTheTrialsThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(declaredBreakers().Query, nil)
		late, _ := b.Acquire()
		for range 10 {
			_ = b.call(failed)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		late.Done(succeeded) // begun before the outage: proves nothing about now
		var admitted []*token
		for range 50 {
			if permission, err := b.Acquire(); err == nil {
				admitted = append(admitted, permission)
			}
		}
		if len(admitted) != 3 || b.State() != BreakerHalfOpen {
			t.Fatalf("%d admitted, %s", len(admitted), b.State())
		}
		admitted[0].Cancel() // never used
		admitted[0].Done(failed)
		again, err := b.Acquire()
		if err != nil {
			t.Fatal("the unused trial did not come back")
		}
		for _, permission := range []*token{again, admitted[1], admitted[2]} {
			permission.Done(failed)
		}
		if b.State() != BreakerOpen {
			t.Fatal("failed trials did not open it again")
		}
		b.Close()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if b.State() != BreakerClosed {
			t.Fatal("the timer of an earlier period half-opened a closed breaker")
		}
	})
}

func TestBreaker_ChangesAreAnnouncedInOrder(t *testing.T) {
	t.Parallel()
	last := BreakerClosed
	var broken bool
	b := newBreaker(BreakerLimits{Window: 1, MinCalls: 1, FailurePercent: 50, OpenFor: time.Hour, Trials: 1},
		func(from, to BreakerState) {
			broken = broken || from != last
			last = to
		})
	defer b.stop()
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 200 {
				_ = b.call(failed)
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
	state   BreakerState
	results []bool
	opened  time.Time
}

func compareWithModel(steps []string, limits BreakerLimits) string {
	b := newBreaker(limits, nil)
	defer b.stop()
	m := &breakerModel{limits: limits, state: BreakerClosed}
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
			err = b.call(map[string]outcome{"ok": succeeded, "fail": failed, "ignore": ignored}[step])
		}
		synctest.Wait()
		if m.state == BreakerOpen && time.Since(m.opened) >= limits.OpenFor {
			m.become(BreakerHalfOpen)
		}
		if b.State() != m.state || (err != nil) != refused {
			return fmt.Sprintf("step %d %s: got %s refused %t, want %s refused %t", i, step, b.State(), err != nil, m.state, refused)
		}
	}
	return ""
}

func (m *breakerModel) become(state BreakerState) {
	m.state, m.results, m.opened = state, nil, time.Now()
}

// step moves the model and says whether the call is refused.
func (m *breakerModel) step(step string) bool {
	switch {
	case step == "close":
		if m.state != BreakerClosed {
			m.become(BreakerClosed)
		}
		return false
	case step == "1s" || step == "10s":
		return false
	case m.state == BreakerOpen:
		return true
	case step == "ignore":
		return false
	}
	m.results = append(m.results, step == "fail")
	if m.state == BreakerHalfOpen {
		if len(m.results) == m.limits.Trials {
			m.become(map[bool]BreakerState{true: BreakerOpen, false: BreakerClosed}[m.bad()])
		}
		return false
	}
	m.results = m.results[max(0, len(m.results)-m.limits.Window):]
	if len(m.results) >= m.limits.MinCalls && m.bad() {
		m.become(BreakerOpen)
	}
	return false
}

func (m *breakerModel) bad() bool {
	failures := len(slices.DeleteFunc(slices.Clone(m.results), func(failure bool) bool { return !failure }))
	return failures*100 >= m.limits.FailurePercent*len(m.results)
}
