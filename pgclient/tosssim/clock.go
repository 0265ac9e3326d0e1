package tosssim

import (
	"sync"
	"time"
	_ "time/tzdata" // Korean time must work in an image without zone files.
)

// Clock is the simulator's idea of time: sessions, idempotency keys, the list and redelivery go by it. Delays and time-outs
// of connections do not; they run in real time, as the client's do.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// RealClock is the clock on the wall.
func RealClock() Clock { return wallClock{} }

type wallClock struct{}

func (wallClock) Now() time.Time                         { return time.Now() }
func (wallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Accelerated starts at base and passes factor times faster than the clock on the wall, so that 3 days 19 hours of
// redelivery fit into a demonstration.
func Accelerated(base time.Time, factor float64) Clock {
	if factor <= 0 {
		panic("tosssim: the factor of an accelerated clock must be positive")
	}
	return acceleratedClock{base: base, started: time.Now(), factor: factor}
}

type acceleratedClock struct {
	base, started time.Time
	factor        float64
}

func (c acceleratedClock) Now() time.Time {
	return c.base.Add(time.Duration(float64(time.Since(c.started)) * c.factor))
}

func (c acceleratedClock) After(d time.Duration) <-chan time.Time {
	return time.After(time.Duration(float64(d) / c.factor))
}

// ManualClock stands still until a test moves it.
type ManualClock struct {
	mu      sync.Mutex
	now     time.Time
	waiters []waiter
}

type waiter struct {
	due time.Time
	to  chan time.Time
}

// NewManualClock returns a clock that stands at now.
func NewManualClock(now time.Time) *ManualClock { return &ManualClock{now: now} }

// Now returns where the clock stands.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After returns a channel that receives once the clock has been moved by d.
func (c *ManualClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	to := make(chan time.Time, 1)
	if d <= 0 {
		to <- c.now
		return to
	}
	c.waiters = append(c.waiters, waiter{due: c.now.Add(d), to: to})
	return to
}

// Advance moves the clock by d.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(c.now.Add(d))
}

// Set moves the clock to a time, which may lie in the past.
func (c *ManualClock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(now)
}

func (c *ManualClock) set(now time.Time) {
	c.now = now
	waiting := c.waiters[:0]
	for _, w := range c.waiters {
		if w.due.After(now) {
			waiting = append(waiting, w)
			continue
		}
		w.to <- now
	}
	c.waiters = waiting
}

// kst is the zone of every date the gateway writes or reads.
func (s *Sim) kst(t time.Time) time.Time { return t.In(s.zone) }

// stamp renders a time of the payment object: Korean, whole seconds, with offset.
func (s *Sim) stamp(t time.Time) string { return s.kst(t).Format("2006-01-02T15:04:05-07:00") }

// createdAt renders the time of a notice: Korean, without offset, up to six decimals with trailing zeros trimmed. On a clock
// that stands at a whole second the fraction comes from the notice's number, so that every length from six digits to none
// is seen.
func (s *Sim) createdAt(t time.Time, number int64) string {
	if t.Nanosecond() == 0 && number%7 != 0 {
		t = t.Add(time.Duration(number*104_233%1_000_000) * time.Microsecond)
	}
	return s.kst(t).Format("2006-01-02T15:04:05.999999")
}
