// Package plan works out how many calls may be under way at once on each path, and how many notices one source may
// send, from what was measured: `daesa plan`.
//
// By Little's law, rate calls a second that take so long each hold rate × time slots. A cap below that refuses the rest,
// 1 − cap ÷ (rate × time) of them; a cap far above it lets a slow downstream hold everything there is. So a cap has a
// lower bound, what the peak needs while all is well, and an upper bound, what leaves most of the service to others or
// what the downstream bears. Between them the recommendation is the lower bound with a third to spare.
package plan

import (
	"errors"
	"fmt"
	"math"
	"time"

	"daesa/internal/guard"
)

// Path is one way out of the service, as it was measured.
type Path struct {
	Name string
	// Rate is the peak of calls a second, over all instances; P99 is what 99 of 100 calls take at most while all is well.
	Rate float64
	P99  time.Duration
	// Most is how many the path may hold of all instances together: a share of what the service does at once, or what the
	// downstream bears.
	Most int
	// Cap is the one that is set; 0 = unknown.
	Cap int
	// Refused is the share that was measured to be refused, 0 to 1; negative = unknown.
	Refused float64
}

// Cap is what a path is advised.
type Cap struct {
	Lower, Upper, Recommended int
	// AtCap and AtRecommended are the shares that the set and the recommended cap refuse at the peak with P99.
	AtCap, AtRecommended float64
	// Bears is how slow the downstream may be at the peak before the recommended cap refuses anything.
	Bears time.Duration
	// Short: even the upper bound is below what the peak needs, so some of it is refused.
	Short bool
}

// spare is kept above the lower bound: a third, as the cap of 40 was chosen for 30 (field measurement).
const spare = 4.0 / 3

// errMeasure reports a measurement that is none.
var errMeasure = errors.New("not a measurement")

// Advise works out the cap of a path.
func Advise(p Path) (Cap, error) {
	if p.Rate < 0 || p.P99 < 0 || p.Most < 1 || math.IsNaN(p.Rate) || math.IsInf(p.Rate, 0) {
		return Cap{}, fmt.Errorf("%w: %s has a rate of %v, a p99 of %s and room for %d", errMeasure, p.Name, p.Rate, p.P99, p.Most)
	}
	needs := p.Rate * p.P99.Seconds()
	c := Cap{Lower: max(1, up(needs)), Upper: p.Most}
	c.Recommended = min(max(c.Lower, up(needs*spare)), c.Upper)
	c.Short = c.Lower > c.Upper
	c.AtRecommended = guard.RefusedShare(c.Recommended, p.Rate, p.P99)
	if p.Cap > 0 {
		c.AtCap = guard.RefusedShare(p.Cap, p.Rate, p.P99)
	}
	if p.Rate > 0 {
		c.Bears = time.Duration(float64(c.Recommended) / p.Rate * float64(time.Second))
	}
	return c, nil
}

// up is the next whole number; a hair above one is a rounding of floats, not another call.
func up(x float64) int { return int(math.Ceil(x - 1e-9)) }

// Limit is how many notices a minute one source must be let send: all that may fail in a minute come again together one
// minute later, beside the new ones, and half of that to spare. 100 a minute refused a quarter of a burst of 200, and 300
// took it whole (field measurement).
func Limit(failing, fresh float64) int { return max(1, up((failing+fresh)*1.5)) }
