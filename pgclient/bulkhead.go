package pgclient

import (
	"context"
	"time"
)

// bulkhead bounds the calls under way on one path. There is no queue beyond the stated wait: work that cannot
// begin is refused, and goroutines never grow with the number of those who wait.
type bulkhead struct {
	slots chan struct{}
	wait  time.Duration
}

func newBulkhead(slots int, wait time.Duration) *bulkhead {
	return &bulkhead{slots: make(chan struct{}, slots), wait: wait}
}

// acquire takes a slot, or says which limit was met first: the cap (after the path's wait) or the caller's own end.
func (b *bulkhead) acquire(ctx context.Context) (Refusal, bool) {
	if ctx.Err() != nil {
		return RefusalDeadline, false
	}
	select {
	case b.slots <- struct{}{}:
		return "", true
	default:
	}
	if b.wait <= 0 {
		return RefusalCap, false
	}
	timer := time.NewTimer(b.wait)
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

func (b *bulkhead) release() { <-b.slots }
