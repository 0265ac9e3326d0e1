package pgclient

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"daesa/internal/guard"
)

// lane is one path with its guard, outermost first: deadline, slot, retry, breaker, limit per attempt, HTTP.
type lane struct {
	name    PathName
	limits  Path
	slots   *guard.Bulkhead
	load    *guard.Load
	breaker *guard.Breaker // nil for the list: one caller with its own back-off
	http    *http.Client
	headers http.Header
	metrics *Metrics
	log     *slog.Logger
}

func newLane(cfg Config, name PathName, b *guard.Breaker) *lane {
	limits := cfg.Paths.named(name)
	slots := limits.share(cfg.Replicas)
	cfg.Metrics.caps.WithLabelValues(string(name)).Set(float64(slots))
	load := guard.NewLoad(slots)
	cfg.Metrics.shares.Watch(string(name), load)
	return &lane{
		name: name, limits: limits, slots: guard.NewBulkhead(slots, limits.Wait), load: load, breaker: b,
		http: newHTTPClient(cfg.Transport, limits, slots), headers: commonHeaders(cfg.SecretKey),
		metrics: cfg.Metrics, log: cfg.Log,
	}
}

// Permit is a slot and the breaker's permission, claimed before the caller commits its intent. Release must be
// called, and may be called more than once; a permission that was never used goes back to the breaker. A permit is
// for one call of one goroutine.
type Permit struct {
	lane     *lane
	token    *guard.Token  // nil without a breaker, and once used
	waited   time.Duration // for the breaker: it is lacking to the call
	taken    time.Time
	use      slotUse // "" = the breaker let nobody through
	released atomic.Bool
}

// Release gives back what the permit holds.
func (p *Permit) Release() {
	if p.released.Swap(true) {
		return
	}
	if p.token != nil {
		p.token.Cancel()
	}
	held := time.Since(p.taken)
	p.lane.metrics.inFlight.WithLabelValues(string(p.lane.name)).Dec()
	p.lane.load.Release(held)
	if p.use != "" {
		p.lane.metrics.slotSeconds.WithLabelValues(string(p.lane.name), string(p.use)).Observe(held.Seconds())
	}
	p.lane.slots.Release()
}

// reserve claims a slot and the breaker's permission. When it refuses, nothing was sent.
func (l *lane) reserve(ctx context.Context) (*Permit, *Unsent) {
	began := time.Now()
	defer func() { l.metrics.queueSeconds.WithLabelValues(string(l.name)).Observe(time.Since(began).Seconds()) }()
	refusal, ok := l.slots.Acquire(ctx)
	l.load.Arrive(refusal == guard.RefusalCap)
	if !ok {
		l.metrics.refused(l.name, refusal)
		unsent := &Unsent{Reason: refusal}
		if refusal == RefusalCap {
			unsent.RetryAfter = time.Second
		}
		return nil, unsent
	}
	l.metrics.inFlight.WithLabelValues(string(l.name)).Inc()
	permit := &Permit{lane: l, taken: time.Now()}
	if l.breaker == nil {
		permit.use = slotUnsent
		return permit, nil
	}
	asked := time.Now()
	permission, err := l.breaker.AcquireWithin(ctx, l.limits.Patience)
	permit.waited = time.Since(asked)
	if err != nil {
		permit.Release()
		l.metrics.refused(l.name, RefusalBreaker)
		return nil, &Unsent{Reason: RefusalBreaker, RetryAfter: max(time.Second, l.breaker.RetryAfter())}
	}
	permit.token, permit.use = permission, slotUnsent
	return permit, nil
}

// sent is what came of a call: the error of the attempt that says most, and whether an earlier one is in doubt.
type sent struct {
	err      *Error
	doubt    bool
	attempts int
}

// send makes the attempts of one call under the permit. When the breaker refuses the second attempt, the first
// one's error stands: "not permitted" would read as "never sent".
func (p *Permit) send(ctx context.Context, c call) sent {
	l := p.lane
	caller := ctx
	ctx, stop := context.WithTimeout(ctx, l.limits.call()-p.waited)
	defer stop()
	result := sent{}
	defer func() { p.use = useOf(result) }()
	for {
		permission, err := p.permission()
		if err != nil {
			l.metrics.refused(l.name, RefusalBreaker)
			if result.attempts == 0 {
				result.err = (&Unsent{Reason: RefusalBreaker, RetryAfter: l.breaker.RetryAfter()}).lookupError()
			}
			return result
		}
		result.doubt = result.doubt || (result.err != nil && result.err.inDoubt())
		result.err = p.attempt(ctx, caller, permission, c)
		result.attempts++
		if result.err == nil || !result.err.retryable() || result.attempts >= l.limits.Attempts ||
			!l.pause(ctx, result.err.RetryAfter) {
			return result
		}
		l.metrics.secondTries.WithLabelValues(string(l.name)).Inc()
	}
}

// useOf is what a slot was held for by a call that ended so.
func useOf(s sent) slotUse {
	switch {
	case s.attempts == 0:
		return slotUnsent
	case s.err != nil && (s.err.breakerOutcome() == guard.Failed || s.err.Reason == ReasonCanceled):
		return slotFailed
	}
	return slotAnswered
}

// permission is the permit's own for the first attempt and a fresh one after that: every attempt passes the breaker.
// It is nil on a path without a breaker.
func (p *Permit) permission() (*guard.Token, error) {
	if p.token != nil {
		first := p.token
		p.token = nil
		return first, nil
	}
	if p.lane.breaker == nil {
		return nil, nil
	}
	return p.lane.breaker.Acquire()
}

// attempt sends once, within the attempt's own limit, and tells breaker, metrics and log what came of it.
func (p *Permit) attempt(ctx, caller context.Context, permission *guard.Token, c call) *Error {
	l := p.lane
	ctx, stop := context.WithTimeout(ctx, l.limits.Attempt)
	defer stop()
	outcome := guard.Failed // of a panic
	defer func() {
		if permission != nil {
			permission.Done(outcome)
		}
	}()
	began := time.Now()
	err := l.exchange(ctx, c)
	took := time.Since(began)
	if err != nil && err.Status == 0 && errors.Is(caller.Err(), context.Canceled) {
		err.Reason = ReasonCanceled // the caller's leaving says nothing about the gateway; its deadline does: nothing came
	}
	outcome = err.breakerOutcome()
	if outcome == guard.Failed && err.Reason == ReasonTimeout && p.waited > l.limits.Attempt/10 {
		outcome = guard.Ignored // it had less than its time, so that it says nothing about a gateway that is only slow
	}
	l.metrics.answered(l.name, took, err)
	if err != nil {
		l.log.WarnContext(ctx, "gateway call without a result", slog.String("path", string(l.name)),
			slog.String("reason", string(err.Reason)), slog.Int("status", err.Status), slog.String("code", err.Code),
			slog.String("detail", err.Detail), slog.String("trace_id", err.TraceID), slog.Duration("took", took))
	}
	return err
}

// pause waits before the second attempt. It says no when the gateway asks for longer than the path can wait, or
// when the call's time is over.
func (l *lane) pause(ctx context.Context, asked time.Duration) bool {
	least, most := l.limits.BackoffMin, l.limits.BackoffMax
	if asked > most {
		return false
	}
	wait := max(asked, least+rand.N(most-least+1))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
