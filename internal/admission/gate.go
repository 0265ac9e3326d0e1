package admission

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"daesa/internal/web"
)

// ErrShed means that the service is doing all it can and this request has to come again.
var ErrShed = errors.New("too many requests in flight")

// Class groups requests by what is lost when they are late.
type Class string

const (
	// ClassMoney is confirming and canceling payments: a person waits, and money may be under way.
	ClassMoney Class = "money"
	// ClassNotification is the gateway's notices: late ones are sent again, which makes more of them.
	ClassNotification Class = "notification"
	// ClassReading is look-ups and pages: asking again costs nothing.
	ClassReading Class = "reading"
)

// Classes lists every class, the one shed last first.
func Classes() []Class {
	return []Class{ClassMoney, ClassNotification, ClassReading}
}

// Gate admits requests to one budget of slots.
//
// A class fills its reserve first, which is always there for it. Beyond that it takes from the slots that are in no
// class's reserve, as long as it stays under its ceiling and leaves as many of them free as it must. As reading must
// leave the most, it is the first to be shed when the whole service is busy, whoever keeps it so.
type Gate struct {
	cfg    GateConfig
	shared int   // Slots in no reserve.
	line   *line // In place of the classes, when OneLine is set.

	mu      sync.Mutex
	classes map[Class]*slots
}

// slots are those of one class.
type slots struct {
	ClassLimit

	inFlight int // The lock of the gate guards it.
	metrics  *classMetrics
}

// NewGate returns an empty gate.
func NewGate(cfg GateConfig) (*Gate, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	g := &Gate{cfg: cfg, shared: cfg.Budget, classes: make(map[Class]*slots, len(cfg.Limits))}
	for class, limit := range cfg.Limits {
		g.shared -= limit.Reserve
		metrics := cfg.Metrics.classes[class]
		metrics.ceiling.Set(float64(limit.Ceiling))
		g.classes[class] = &slots{ClassLimit: limit, metrics: metrics}
	}
	if cfg.OneLine > 0 {
		g.line = newLine(cfg.OneLine)
	}
	return g, nil
}

// Admit takes a slot for class, or reports that there is none. The caller gives it back with done, which may be called
// more than once. As every reserve is at least one, no class is ever shut out.
//
// There is no queue before the slots. Who waits here waits for somebody else's work to end, inside a deadline that the
// work itself needs; told at once to come again, it costs nothing, and the calls that are worth waiting for have a bounded
// wait of their own, each at what it waits for.
//
// Without Enforce everybody gets a slot, and what would have been refused is counted as such.
func (g *Gate) Admit(class Class) (done func(), ok bool) {
	s := g.classes[class]
	if !g.take(s) {
		return nil, false
	}
	var given atomic.Bool
	return func() {
		if !given.Swap(true) {
			g.count(s, -1)
		}
	}, true
}

// take is Admit for a caller that gives its slot back exactly once.
func (g *Gate) take(s *slots) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.hasSlot(s) {
		if g.cfg.Enforce {
			s.metrics.shed.Inc()
			return false
		}
		s.metrics.wouldShed.Inc()
	}
	s.inFlight++
	s.metrics.inFlight.Inc()
	return true
}

// hasSlot decides; the lock is held.
func (g *Gate) hasSlot(s *slots) bool {
	if s.inFlight < s.Reserve {
		return true
	}
	return s.inFlight < s.Ceiling && g.sharedInUse() < g.shared-s.Leave
}

// sharedInUse counts the slots that classes hold beyond their reserves.
func (g *Gate) sharedInUse() int {
	used := 0
	for _, s := range g.classes {
		used += max(0, s.inFlight-s.Reserve)
	}
	return used
}

// Middleware lets a request of class pass when there is a slot for it, and answers [ErrShed] when there is not. The time
// to come back is spread, so that what was refused together does not return together. An unknown class panics: it is a
// mistake in the wiring.
func (g *Gate) Middleware(class Class) func(http.Handler) http.Handler {
	s, known := g.classes[class]
	if !known {
		panic(fmt.Sprintf("admission: no limit for class %q", class))
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := g.enter(r, s); err != nil {
				g.cfg.Adapter.Fail(w, r, err)
				return
			}
			defer g.leave(s)
			if arrived, ok := web.Arrived(r.Context()); ok {
				s.metrics.wait.Observe(time.Since(arrived).Seconds())
			}
			next.ServeHTTP(w, r)
		})
	}
}

// enter finds the request a slot, by its class or in the one line.
func (g *Gate) enter(r *http.Request, s *slots) error {
	if g.line == nil {
		if !g.take(s) {
			return web.WithRetryAfter(ErrShed, g.cfg.RetryAfter+rand.N(g.cfg.RetryJitter))
		}
		return nil
	}
	if err := g.line.enter(r); err != nil {
		return err
	}
	g.count(s, 1)
	return nil
}

// leave gives back what enter found.
func (g *Gate) leave(s *slots) {
	g.count(s, -1)
	if g.line != nil {
		g.line.leave()
	}
}

func (g *Gate) count(s *slots, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.inFlight += n
	s.metrics.inFlight.Add(float64(n))
}

// GateConfig holds what a [Gate] needs. Budget, Limits and the two times have defaults.
type GateConfig struct {
	Adapter *web.Adapter
	Metrics *Metrics

	// Enforce refuses; without it the gate only records what it would refuse, to find limits that fit.
	Enforce bool
	// Budget is how many requests may be in flight in all.
	Budget int
	// Limits has an entry for every class.
	Limits map[Class]ClassLimit
	// OneLine, above 0, puts one line of so many slots in place of the classes, in which requests wait. It is there to be
	// compared with.
	OneLine int
	// RetryAfter is the earliest time to come back, and RetryJitter how much later it may be said to be.
	RetryAfter, RetryJitter time.Duration
}

// ClassLimit bounds one class, in requests in flight.
type ClassLimit struct {
	// Reserve is what nobody else may use, at least 1.
	Reserve int
	// Ceiling is the most the class may have, shared slots included.
	Ceiling int
	// Leave is how many shared slots the class leaves to the others.
	Leave int
}

// defaultLimits fit a budget of 256. The reserve of money is above the caps of the calls it makes (40 confirms and 10
// cancels), and that of notification is its cap of 60 queries, so neither waits here for a slot that its own cap would
// have given it. Reading takes at most three eighths of the budget.
func defaultLimits() map[Class]ClassLimit {
	return map[Class]ClassLimit{
		ClassMoney:        {Reserve: 64, Ceiling: 176, Leave: 0},
		ClassNotification: {Reserve: 64, Ceiling: 160, Leave: 16},
		ClassReading:      {Reserve: 16, Ceiling: 96, Leave: 48},
	}
}

func (c GateConfig) withDefaults() GateConfig {
	if c.Budget == 0 && c.Limits == nil {
		c.Budget, c.Limits = 256, defaultLimits()
	}
	if c.RetryAfter == 0 {
		c.RetryAfter = time.Second
	}
	if c.RetryJitter == 0 {
		c.RetryJitter = 2 * time.Second
	}
	return c
}

func (c GateConfig) validate() error {
	if c.Adapter == nil {
		return errors.New("admission: Gate needs an Adapter: it is how a request is refused")
	}
	if c.Metrics == nil {
		return errors.New("admission: Gate needs Metrics: a refusal that is not counted is not seen")
	}
	if c.OneLine < 0 {
		return errors.New("admission: OneLine cannot be negative")
	}
	if c.RetryAfter < 0 || c.RetryJitter < 0 {
		return errors.New("admission: RetryAfter and RetryJitter cannot be negative")
	}
	if len(c.Limits) != len(Classes()) {
		return fmt.Errorf("admission: Limits must have exactly the classes %v", Classes())
	}
	reserved := 0
	for _, class := range Classes() {
		limit, ok := c.Limits[class]
		if !ok {
			return fmt.Errorf("admission: class %s has no limit", class)
		}
		if limit.Reserve < 1 || limit.Ceiling < limit.Reserve || limit.Ceiling > c.Budget || limit.Leave < 0 {
			return fmt.Errorf("admission: class %s needs 1 ≤ Reserve ≤ Ceiling ≤ Budget and 0 ≤ Leave", class)
		}
		reserved += limit.Reserve
	}
	if reserved > c.Budget {
		return fmt.Errorf("admission: the reserves make %d, more than the Budget of %d", reserved, c.Budget)
	}
	return nil
}
