package store

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"daesa/internal/guard"
)

// Limits bound the questions. A zero field takes the declared constant.
type Limits struct {
	Cap     int           // questions at the store at once, over all replicas
	Total   time.Duration // one question: the wait for a slot, what is written before it is sent, and the answer
	Least   time.Duration // of Total, what the answer has at least: nobody waits for a slot into it
	Release time.Duration // one release
	Breaker guard.BreakerLimits
}

// declared are the limits, with their evidence.
//
// Cap 24: a store was measured that answers 25 at once in 50 ms and takes longer for each one more; the 25th is left to
// releases, which beyond that take slots that no question wants. With a pool of 64 in front of it, waiting grew to 1.0 s and everything to 1.1 s, while
// the store itself took 61 ms. Total 800 ms: a buyer who waits longer presses again, and that makes the queue longer. Least
// 200 ms: three times what the store takes at its busiest, so that who has waited is not sent only to be given up.
//
// The breaker opens as that of the gateway does, but for 2 s only: while it is open every sale is refused, or goes without
// the store's word, and three trials in 2 s are far below what a store bears that is just coming back.
func declared() Limits {
	return Limits{
		Cap: 24, Total: 800 * time.Millisecond, Least: 200 * time.Millisecond, Release: 5 * time.Second,
		Breaker: guard.BreakerLimits{Window: 10, MinCalls: 10, FailurePercent: 50, OpenFor: 2 * time.Second, Trials: 3},
	}
}

// releasesKept is the slots that are always there for releases: together with the cap, what the store bears.
const releasesKept = 1

// ReleasesAtOnce is how many releases are worth sending at once, when the store has slots to spare.
const ReleasesAtOnce = 4

func (l Limits) or(d Limits) Limits {
	full := Limits{
		Cap: cmp.Or(l.Cap, d.Cap), Total: cmp.Or(l.Total, d.Total), Least: l.Least,
		Release: cmp.Or(l.Release, d.Release), Breaker: l.Breaker.Or(d.Breaker),
	}
	if full.Least == 0 {
		full.Least = min(d.Least, full.Total/2)
	}
	return full
}

func (l Limits) validate() error {
	switch {
	case l.Cap < 1:
		return fmt.Errorf("the cap of questions must be at least 1, not %d", l.Cap)
	case l.Total <= 0 || l.Release <= 0:
		return errors.New("a question and a release need a time above 0")
	case l.Least <= 0 || l.Least > l.Total:
		return fmt.Errorf("an answer cannot have at least %s of %s", l.Least, l.Total)
	}
	return l.Breaker.Validate("store")
}

// share is the part of the cap that is ours when several instances run.
func (l Limits) share(replicas int) int { return max(1, l.Cap/replicas) }
