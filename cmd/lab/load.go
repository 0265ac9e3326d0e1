package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// sent is one delivery of a notice, as its sender sees it.
type sent struct {
	payment payment
	due     time.Duration // after the phase began
	began   time.Duration
	took    time.Duration
	status  int // 0 when no answer came
	err     error
}

// ended is when the answer came.
func (s sent) ended() time.Duration { return s.began + s.took }

// evenly spreads n arrivals over a time.
func evenly(n int, over time.Duration) []time.Duration {
	at := make([]time.Duration, n)
	for i := range at {
		at[i] = over * time.Duration(i) / time.Duration(n)
	}
	return at
}

// load is an open loop: every delivery begins at its time, whether or not earlier ones have been answered, as the
// gateway's own sender does it. A closed loop would slow down with the service and hide what it is measured for.
type load struct {
	send     func(payment) (status int, err error)
	inFlight atomic.Int64
	most     atomic.Int64
}

// run sends every notice once and waits for all answers. When ctx ends, no more are begun.
func (l *load) run(ctx context.Context, list []payment, at []time.Duration) []sent {
	all := make([]sent, 0, len(list))
	var under sync.WaitGroup
	var mu sync.Mutex
	began := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i, p := range list {
		timer.Reset(at[i] - time.Since(began))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		if ctx.Err() != nil {
			break
		}
		under.Go(func() {
			s := sent{payment: p, due: at[i], began: time.Since(began)}
			l.enter()
			s.status, s.err = l.send(p)
			l.inFlight.Add(-1)
			s.took = time.Since(began) - s.began
			mu.Lock()
			defer mu.Unlock()
			all = append(all, s)
		})
	}
	under.Wait()
	return all
}

func (l *load) enter() {
	now := l.inFlight.Add(1)
	for most := l.most.Load(); now > most && !l.most.CompareAndSwap(most, now); most = l.most.Load() {
	}
}
