package admission

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Rule is how fast one source may send: Burst at once, and PerMinute refill, evenly. The name is a metric's label and
// part of the key under which all instances count together.
type Rule struct {
	Name             string
	PerMinute, Burst int
	// Addresses are the sources that the rule is for; none means everybody.
	Addresses []netip.Prefix
}

// perMinuteMost keeps the interval between two requests well above the microsecond that the database counts in.
const perMinuteMost = 6_000_000

// Countable reports whether a rule can let so many pass, in a minute or at once.
func Countable(n int) bool { return n >= 1 && n <= perMinuteMost }

func (r Rule) validate() error {
	if r.Name == "" || !Countable(r.PerMinute) || !Countable(r.Burst) {
		return fmt.Errorf("admission: a Rule needs a Name, and PerMinute and Burst from 1 to %d", perMinuteMost)
	}
	return nil
}

// holds reports whether the rule is for the address.
func (r Rule) holds(addr netip.Addr) bool {
	if len(r.Addresses) == 0 {
		return true
	}
	for _, prefix := range r.Addresses {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// validateRules checks that every address has exactly one rule: the first that holds it, and the last holds all.
func validateRules(rules []Rule) error {
	for i, r := range rules {
		if err := r.validate(); err != nil {
			return err
		}
		if last := i == len(rules)-1; last != (len(r.Addresses) == 0) {
			return errors.New("admission: the last rule, and no other, is for everybody")
		}
	}
	if len(rules) == 0 {
		return errors.New("admission: RateLimit needs at least one rule")
	}
	return nil
}

// pace is a rule as an allowance that refills. A request costs every; the whole allowance is worth window.
func (r Rule) pace() pace {
	every := time.Minute / time.Duration(r.PerMinute)
	return pace{every: every, window: time.Duration(r.Burst) * every}
}

// share is the part of the rule that one of several instances may give out by itself, at least one request.
func (r Rule) share(replicas int) pace {
	every := r.pace().every * time.Duration(replicas)
	return pace{every: every, window: time.Duration(max(1, r.Burst/replicas)) * every}
}

// pace counts by the generic cell rate algorithm: all that is kept of a source is one instant, the one at which its
// allowance is whole again. A bucket of tokens that refill evenly behaves the same and needs two numbers.
type pace struct {
	every, window time.Duration
}

// clockTolerance is how far ahead an instant may be for no other reason than that two clocks, or two transactions, see
// different times. What is further ahead was written before a clock was set back, and counts for nothing; else such a
// source would be refused until the clock is where it was.
const clockTolerance = time.Second

// take spends one request at now from an allowance that is whole at fullAt. When there is none left it spends nothing
// and says how long until there is.
func (p pace) take(fullAt, now time.Time) (after time.Time, wait time.Duration) {
	if fullAt.Before(now) || fullAt.Sub(now) > p.window+clockTolerance {
		fullAt = now
	}
	if wait := fullAt.Sub(now) + p.every - p.window; wait > 0 {
		return fullAt, wait
	}
	return fullAt.Add(p.every), 0
}

// charge spends one request that somebody else has let pass: at the most it leaves nothing.
func (p pace) charge(fullAt, now time.Time) time.Time {
	after, wait := p.take(fullAt, now)
	if wait > 0 {
		return now.Add(p.window)
	}
	return after
}
