package guard

import (
	"context"
	"time"
)

// Refusal is why a call was turned away before anything was sent.
type Refusal string

// The refusals.
const (
	RefusalCap      Refusal = "cap"
	RefusalBreaker  Refusal = "breaker"
	RefusalDeadline Refusal = "deadline"
)

// Refusals lists every refusal.
func Refusals() []Refusal { return []Refusal{RefusalCap, RefusalBreaker, RefusalDeadline} }

// Bulkhead bounds the calls under way on one path. There is no queue beyond the stated wait: work that cannot
// begin is refused, and goroutines never grow with the number of those who wait.
type Bulkhead struct {
	slots chan struct{}
	wait  time.Duration
}

// NewBulkhead makes a bulkhead of so many slots, for which a call waits at most that long; not above 0 = not at all.
func NewBulkhead(slots int, wait time.Duration) *Bulkhead {
	return &Bulkhead{slots: make(chan struct{}, slots), wait: wait}
}

// Acquire takes a slot, or says which limit was met first: the cap (after the path's wait) or the caller's own end.
func (b *Bulkhead) Acquire(ctx context.Context) (Refusal, bool) { return b.AcquireWithin(ctx, b.wait) }

// AcquireWithin is Acquire with another wait; not above 0 = none.
func (b *Bulkhead) AcquireWithin(ctx context.Context, wait time.Duration) (Refusal, bool) {
	if ctx.Err() != nil {
		return RefusalDeadline, false
	}
	select {
	case b.slots <- struct{}{}:
		return "", true
	default:
	}
	if wait <= 0 {
		return RefusalCap, false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case b.slots <- struct{}{}:
		return "", true
	case <-timer.C:
		return RefusalCap, false
	case <-ctx.Done():
		return RefusalDeadline, false
	}
}

// Try takes a slot if one is free this instant.
func (b *Bulkhead) Try() bool {
	select {
	case b.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// Release gives a slot back.
func (b *Bulkhead) Release() { <-b.slots }

// Held is how many slots are taken.
func (b *Bulkhead) Held() int { return len(b.slots) }
