package admission

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
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

	mu       sync.Mutex
	inFlight map[Class]int
}

// NewGate returns an empty gate.
func NewGate(cfg GateConfig) (*Gate, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	g := &Gate{cfg: cfg, shared: cfg.Budget, inFlight: make(map[Class]int, len(cfg.Limits))}
	for class, limit := range cfg.Limits {
		g.shared -= limit.Reserve
		cfg.Metrics.ceiling.WithLabelValues(string(class)).Set(float64(limit.Ceiling))
	}
	if cfg.OneLine > 0 {
		g.line = newLine(cfg.OneLine)
	}
	return g, nil
}

// Admit takes a slot for class, or reports that there is none. The caller gives it back with done, which may be called
// more than once. As every reserve is at least one, no class is ever shut out.
//
// Without Enforce everybody gets a slot, and what would have been refused is counted all the same.
func (g *Gate) Admit(class Class) (done func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.hasSlot(class) {
		g.cfg.Metrics.shed.WithLabelValues(string(class)).Inc()
		if g.cfg.Enforce {
			return nil, false
		}
	}
	g.inFlight[class]++
	g.cfg.Metrics.inFlight.WithLabelValues(string(class)).Inc()
	return sync.OnceFunc(func() { g.count(class, -1) }), true
}

// hasSlot decides; the lock is held.
func (g *Gate) hasSlot(class Class) bool {
	limit := g.cfg.Limits[class]
	if g.inFlight[class] < limit.Reserve {
		return true
	}
	return g.inFlight[class] < limit.Ceiling && g.sharedInUse() < g.shared-limit.Leave
}

// sharedInUse counts the slots that classes hold beyond their reserves.
func (g *Gate) sharedInUse() int {
	used := 0
	for class, limit := range g.cfg.Limits {
		used += max(0, g.inFlight[class]-limit.Reserve)
	}
	return used
}

// Middleware lets a request of class pass when there is a slot for it, and answers [ErrShed] when there is not. The time
// to come back is spread, so that what was refused together does not return together. An unknown class panics: it is a
// mistake in the wiring.
func (g *Gate) Middleware(class Class) func(http.Handler) http.Handler {
	if _, known := g.cfg.Limits[class]; !known {
		panic(fmt.Sprintf("admission: no limit for class %q", class))
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			done, err := g.enter(r, class)
			if err != nil {
				g.cfg.Adapter.Fail(w, r, err)
				return
			}
			defer done()
			next.ServeHTTP(w, r)
		})
	}
}

// enter finds the request a slot, by its class or in the one line.
func (g *Gate) enter(r *http.Request, class Class) (done func(), err error) {
	if g.line == nil {
		done, ok := g.Admit(class)
		if !ok {
			return nil, web.WithRetryAfter(ErrShed, g.cfg.RetryAfter+rand.N(g.cfg.RetryJitter))
		}
		return done, nil
	}
	leave, err := g.line.enter(r)
	if err != nil {
		return nil, err
	}
	g.count(class, 1)
	return func() {
		g.count(class, -1)
		leave()
	}, nil
}

func (g *Gate) count(class Class, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight[class] += n
	g.cfg.Metrics.inFlight.WithLabelValues(string(class)).Add(float64(n))
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
