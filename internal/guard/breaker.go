package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// State is what a breaker does with the next call.
type State string

// The states of a breaker.
const (
	Closed   State = "closed"
	HalfOpen State = "half_open"
	Open     State = "open"
)

// States lists every state.
func States() []State {
	return []State{Closed, HalfOpen, Open}
}

// Level is the state as a gauge shows it: 0 closed, 1 half open, 2 open.
func (s State) Level() float64 {
	switch s {
	case Closed:
	case HalfOpen:
		return 1
	case Open:
		return 2
	}
	return 0
}

// BreakerLimits sets when a breaker opens and how it closes. A zero field takes the declared constant.
type BreakerLimits struct {
	Window         int           // the last calls that count
	MinCalls       int           // fewer than these never open it
	FailurePercent int           // at or above, it opens
	OpenFor        time.Duration // then it tries again
	Trials         int           // calls let through while half open
}

// Or fills zero fields from d.
func (l BreakerLimits) Or(d BreakerLimits) BreakerLimits {
	return BreakerLimits{
		Window: cmp.Or(l.Window, d.Window), MinCalls: cmp.Or(l.MinCalls, d.MinCalls),
		FailurePercent: cmp.Or(l.FailurePercent, d.FailurePercent), OpenFor: cmp.Or(l.OpenFor, d.OpenFor),
		Trials: cmp.Or(l.Trials, d.Trials),
	}
}

// Validate says in one sentence what cannot work; name is the breaker's.
func (l BreakerLimits) Validate(name string) error {
	if l.Window < 1 || l.MinCalls < 1 || l.MinCalls > l.Window || l.FailurePercent < 1 || l.FailurePercent > 100 ||
		l.OpenFor <= 0 || l.Trials < 1 {
		return fmt.Errorf("the %s breaker needs 1 ≤ minimum calls ≤ window, 1 to 100 percent, an open time and a trial", name)
	}
	return nil
}

// Outcome is what one call tells a breaker.
type Outcome int

// The outcomes.
const (
	Succeeded Outcome = iota
	Failed
	Ignored // neither: a definite refusal, or the caller went away
)

// ErrOpen is a call the breaker did not let through.
var ErrOpen = errors.New("circuit breaker is open")

// Breaker counts the last calls and stops asking a service that does not answer.
//
// Each change of state begins a new generation, and a result of an earlier one is dropped: slow calls begun
// before an outage cannot close the breaker, nor open it again. It half-opens by a timer, so its gauge tells the
// truth without traffic. Changes are announced in order and without the lock.
type Breaker struct {
	limits   BreakerLimits
	announce func(from, to State)

	mu         sync.Mutex
	moved      chan struct{} // closed when a refused call may be let through; nil while nobody waits
	state      State
	generation uint64
	window     []bool // true = failed; oldest first
	trials     int    // half open: calls still allowed
	openUntil  time.Time
	closedAt   time.Time // zero = it has never been open
	timer      *time.Timer
	changes    [][2]State
	announcing bool
}

// NewBreaker makes a closed breaker. announce hears of every change, on the goroutine of some call; nil = nobody listens.
func NewBreaker(limits BreakerLimits, announce func(from, to State)) *Breaker {
	return &Breaker{limits: limits, announce: announce, state: Closed}
}

// Token is the permission for one call. Done or Cancel must follow; the first of them counts.
type Token struct {
	breaker    *Breaker
	generation uint64
	once       sync.Once
}

// Acquire asks for permission to make one call.
func (b *Breaker) Acquire() (*Token, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.state {
	case Open:
		return nil, ErrOpen
	case HalfOpen:
		if b.trials == 0 {
			return nil, ErrOpen
		}
		b.trials--
	case Closed:
	}
	return &Token{breaker: b, generation: b.generation}, nil
}

// AcquireWithin is Acquire with patience: what is refused waits up to d for the breaker to try again, or for the trials of
// others to end well. It is refused at once where the breaker stays open for longer than that.
func (b *Breaker) AcquireWithin(ctx context.Context, d time.Duration) (*Token, error) {
	permission, err := b.Acquire()
	if err == nil || d <= 0 {
		return permission, err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		moved := b.waitForMove()
		if permission, err := b.Acquire(); err == nil {
			return permission, nil
		}
		if b.RetryAfter() > d {
			return nil, ErrOpen
		}
		select {
		case <-moved:
		case <-timer.C:
			return nil, ErrOpen
		case <-ctx.Done():
			return nil, ErrOpen
		}
	}
}

// Renew is the same permission, or a new one where the breaker has changed its state since that was given: what had to wait
// for something else meanwhile goes by what the breaker says now.
func (b *Breaker) Renew(given *Token) (*Token, error) {
	b.mu.Lock()
	stands := given.generation == b.generation
	b.mu.Unlock()
	if stands {
		return given, nil
	}
	given.Cancel()
	return b.Acquire()
}

// waitForMove is closed at the next change after which another call may pass.
func (b *Breaker) waitForMove() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.moved == nil {
		b.moved = make(chan struct{})
	}
	return b.moved
}

// wake lets those who wait look again. The lock is held.
func (b *Breaker) wake() {
	if b.moved != nil {
		close(b.moved)
		b.moved = nil
	}
}

// Done tells what came of the call. There is nobody to tell of a nil token, which stands for no breaker.
func (t *Token) Done(o Outcome) {
	if t == nil {
		return
	}
	t.once.Do(func() { t.breaker.record(t.generation, o) })
}

// Cancel gives back a permission that was never used.
func (t *Token) Cancel() { t.Done(Ignored) }

func (b *Breaker) record(generation uint64, o Outcome) {
	b.mu.Lock()
	if generation == b.generation {
		b.count(o)
	}
	b.mu.Unlock()
	b.announceChanges()
}

// count adds one result of the present generation. The lock is held.
func (b *Breaker) count(o Outcome) {
	if o == Ignored {
		if b.state == HalfOpen {
			b.trials++
			b.wake()
		}
		return
	}
	b.window = append(b.window, o == Failed)
	switch b.state {
	case Closed:
		if len(b.window) > b.limits.Window {
			b.window = b.window[1:]
		}
		// An answer that came opens nothing, even where it is the call that makes the window full: nine failures of an
		// outage and then the first success are a gateway that is back.
		if o == Failed && len(b.window) >= b.limits.MinCalls && b.failing() {
			b.become(Open)
		}
	case HalfOpen:
		if len(b.window) < b.limits.Trials {
			return
		}
		if b.failing() {
			b.become(Open)
		} else {
			b.become(Closed)
		}
	case Open: // no call of an open generation exists
	}
}

func (b *Breaker) failing() bool {
	failures := 0
	for _, failure := range b.window {
		if failure {
			failures++
		}
	}
	return failures*100 >= b.limits.FailurePercent*len(b.window)
}

// become changes the state and begins a new generation. The lock is held.
func (b *Breaker) become(state State) {
	b.changes = append(b.changes, [2]State{b.state, state})
	b.state = state
	b.generation++
	b.window = nil
	b.trials = b.limits.Trials
	b.wake()
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	if state == Closed {
		b.closedAt = time.Now()
	}
	if state == Open {
		b.openUntil = time.Now().Add(b.limits.OpenFor)
		generation := b.generation
		b.timer = time.AfterFunc(b.limits.OpenFor, func() { b.halfOpen(generation) })
	}
}

func (b *Breaker) halfOpen(generation uint64) {
	b.mu.Lock()
	if b.generation == generation {
		b.become(HalfOpen)
	}
	b.mu.Unlock()
	b.announceChanges()
}

// Close ends an outage early: something else has seen the other side answer.
func (b *Breaker) Close() {
	b.mu.Lock()
	if b.state != Closed {
		b.become(Closed)
	}
	b.mu.Unlock()
	b.announceChanges()
}

// State is what happens to the next call.
func (b *Breaker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// RetryAfter is how long calls will certainly be refused.
func (b *Breaker) RetryAfter() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != Open {
		return 0
	}
	return max(0, time.Until(b.openUntil))
}

// ClosedFor is how long calls have been let through since the last outage: nothing while they are not yet, and longer than
// anything where there has been none.
func (b *Breaker) ClosedFor() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != Closed {
		return 0
	}
	return time.Since(b.closedAt)
}

// Stop ends the timer; the breaker stays as it is.
func (b *Breaker) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
}

// announceChanges delivers what happened, in order, by one goroutine at a time. Whoever finds it busy leaves: the
// busy one will take that change along.
func (b *Breaker) announceChanges() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.announcing || b.announce == nil {
		return
	}
	b.announcing = true
	for len(b.changes) > 0 {
		change := b.changes[0]
		b.changes = b.changes[1:]
		b.mu.Unlock()
		b.announce(change[0], change[1])
		b.mu.Lock()
	}
	b.announcing = false
}
