package pgclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// BreakerName names a circuit breaker.
type BreakerName string

// The breakers. Approvals and cancels share one; the list has none.
const (
	BreakerMoney   BreakerName = "money"
	BreakerQuery   BreakerName = "query"
	BreakerRecover BreakerName = "recover"
)

// BreakerNames lists every breaker.
func BreakerNames() []BreakerName { return []BreakerName{BreakerMoney, BreakerQuery, BreakerRecover} }

// BreakerState is what a breaker does with the next call.
type BreakerState string

// The states of a breaker.
const (
	BreakerClosed   BreakerState = "closed"
	BreakerHalfOpen BreakerState = "half_open"
	BreakerOpen     BreakerState = "open"
)

// BreakerStates lists every state.
func BreakerStates() []BreakerState {
	return []BreakerState{BreakerClosed, BreakerHalfOpen, BreakerOpen}
}

// BreakerLimits sets when a breaker opens and how it closes. A zero field takes the declared constant.
type BreakerLimits struct {
	Window         int           // the last calls that count
	MinCalls       int           // fewer than these never open it
	FailurePercent int           // at or above, it opens
	OpenFor        time.Duration // then it tries again
	Trials         int           // calls let through while half open
}

// Breakers holds the limits of every breaker.
type Breakers struct {
	Money, Query, Recover BreakerLimits
}

// declaredBreakers are the limits, with their evidence: ten calls pass within a second at peak, so an outage shows
// soon and chance does not; refused cards do not count, so half failing is the gateway, not the customers. The
// query breaker opens for 1 s only, and a question waits for it to close (see Path.Patience), so that the burst of
// redeliveries right after an outage is applied and not refused again.
func declaredBreakers() Breakers {
	declared := BreakerLimits{Window: 10, MinCalls: 10, FailurePercent: 50, OpenFor: 10 * time.Second, Trials: 3}
	query := declared
	query.OpenFor = time.Second
	return Breakers{Money: declared, Query: query, Recover: declared}
}

// NeverOpen are breakers that stay closed whatever comes of the calls.
func NeverOpen() Breakers {
	const never = 1 << 30
	shut := BreakerLimits{Window: never, MinCalls: never}
	return Breakers{Money: shut, Query: shut, Recover: shut}
}

func (b Breakers) or(d Breakers) Breakers {
	return Breakers{Money: b.Money.or(d.Money), Query: b.Query.or(d.Query), Recover: b.Recover.or(d.Recover)}
}

func (b Breakers) validate() error {
	return cmp.Or(
		b.Money.validate(BreakerMoney), b.Query.validate(BreakerQuery), b.Recover.validate(BreakerRecover))
}

func (l BreakerLimits) or(d BreakerLimits) BreakerLimits {
	return BreakerLimits{
		Window: cmp.Or(l.Window, d.Window), MinCalls: cmp.Or(l.MinCalls, d.MinCalls),
		FailurePercent: cmp.Or(l.FailurePercent, d.FailurePercent), OpenFor: cmp.Or(l.OpenFor, d.OpenFor),
		Trials: cmp.Or(l.Trials, d.Trials),
	}
}

func (l BreakerLimits) validate(name BreakerName) error {
	if l.Window < 1 || l.MinCalls < 1 || l.MinCalls > l.Window || l.FailurePercent < 1 || l.FailurePercent > 100 ||
		l.OpenFor <= 0 || l.Trials < 1 {
		return fmt.Errorf("the %s breaker needs 1 ≤ minimum calls ≤ window, 1 to 100 percent, an open time and a trial", name)
	}
	return nil
}

// outcome is what one call tells a breaker.
type outcome int

const (
	succeeded outcome = iota
	failed
	ignored // neither: a definite refusal, or the caller went away
)

// errOpen is a call the breaker did not let through.
var errOpen = errors.New("circuit breaker is open")

// breaker counts the last calls and stops asking a gateway that does not answer.
//
// Each change of state begins a new generation, and a result of an earlier one is dropped: slow calls begun
// before an outage cannot close the breaker, nor open it again. It half-opens by a timer, so its gauge tells the
// truth without traffic. Changes are announced in order and without the lock.
type breaker struct {
	limits   BreakerLimits
	announce func(from, to BreakerState)

	mu         sync.Mutex
	moved      chan struct{} // closed when a refused call may be let through; nil while nobody waits
	state      BreakerState
	generation uint64
	window     []bool // true = failed; oldest first
	trials     int    // half open: calls still allowed
	openUntil  time.Time
	timer      *time.Timer
	changes    [][2]BreakerState
	announcing bool
}

func newBreaker(limits BreakerLimits, announce func(from, to BreakerState)) *breaker {
	return &breaker{limits: limits, announce: announce, state: BreakerClosed}
}

// token is the permission for one call. Done or Cancel must follow; the first of them counts.
type token struct {
	breaker    *breaker
	generation uint64
	once       sync.Once
}

// Acquire asks for permission to make one call.
func (b *breaker) Acquire() (*token, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.state {
	case BreakerOpen:
		return nil, errOpen
	case BreakerHalfOpen:
		if b.trials == 0 {
			return nil, errOpen
		}
		b.trials--
	case BreakerClosed:
	}
	return &token{breaker: b, generation: b.generation}, nil
}

// AcquireWithin is Acquire with patience: what is refused waits up to d for the breaker to try again, or for the trials of
// others to end well. It is refused at once where the breaker stays open for longer than that.
func (b *breaker) AcquireWithin(ctx context.Context, d time.Duration) (*token, error) {
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
			return nil, errOpen
		}
		select {
		case <-moved:
		case <-timer.C:
			return nil, errOpen
		case <-ctx.Done():
			return nil, errOpen
		}
	}
}

// waitForMove is closed at the next change after which another call may pass.
func (b *breaker) waitForMove() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.moved == nil {
		b.moved = make(chan struct{})
	}
	return b.moved
}

// wake lets those who wait look again. The lock is held.
func (b *breaker) wake() {
	if b.moved != nil {
		close(b.moved)
		b.moved = nil
	}
}

// Done tells what came of the call.
func (t *token) Done(o outcome) { t.once.Do(func() { t.breaker.record(t.generation, o) }) }

// Cancel gives back a permission that was never used.
func (t *token) Cancel() { t.Done(ignored) }

func (b *breaker) record(generation uint64, o outcome) {
	b.mu.Lock()
	if generation == b.generation {
		b.count(o)
	}
	b.mu.Unlock()
	b.announceChanges()
}

// count adds one result of the present generation. The lock is held.
func (b *breaker) count(o outcome) {
	if o == ignored {
		if b.state == BreakerHalfOpen {
			b.trials++
			b.wake()
		}
		return
	}
	b.window = append(b.window, o == failed)
	switch b.state {
	case BreakerClosed:
		if len(b.window) > b.limits.Window {
			b.window = b.window[1:]
		}
		if len(b.window) >= b.limits.MinCalls && b.failing() {
			b.become(BreakerOpen)
		}
	case BreakerHalfOpen:
		if len(b.window) < b.limits.Trials {
			return
		}
		if b.failing() {
			b.become(BreakerOpen)
		} else {
			b.become(BreakerClosed)
		}
	case BreakerOpen: // no call of an open generation exists
	}
}

func (b *breaker) failing() bool {
	failures := 0
	for _, failure := range b.window {
		if failure {
			failures++
		}
	}
	return failures*100 >= b.limits.FailurePercent*len(b.window)
}

// become changes the state and begins a new generation. The lock is held.
func (b *breaker) become(state BreakerState) {
	b.changes = append(b.changes, [2]BreakerState{b.state, state})
	b.state = state
	b.generation++
	b.window = nil
	b.trials = b.limits.Trials
	b.wake()
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	if state == BreakerOpen {
		b.openUntil = time.Now().Add(b.limits.OpenFor)
		generation := b.generation
		b.timer = time.AfterFunc(b.limits.OpenFor, func() { b.halfOpen(generation) })
	}
}

func (b *breaker) halfOpen(generation uint64) {
	b.mu.Lock()
	if b.generation == generation {
		b.become(BreakerHalfOpen)
	}
	b.mu.Unlock()
	b.announceChanges()
}

// Close ends an outage early: something else has seen the gateway answer.
func (b *breaker) Close() {
	b.mu.Lock()
	if b.state != BreakerClosed {
		b.become(BreakerClosed)
	}
	b.mu.Unlock()
	b.announceChanges()
}

// State is what happens to the next call.
func (b *breaker) State() BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// RetryAfter is how long calls will certainly be refused.
func (b *breaker) RetryAfter() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != BreakerOpen {
		return 0
	}
	return max(0, time.Until(b.openUntil))
}

// stop ends the timer; the breaker stays as it is.
func (b *breaker) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
}

// announceChanges delivers what happened, in order, by one goroutine at a time. Whoever finds it busy leaves: the
// busy one will take that change along.
func (b *breaker) announceChanges() {
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
