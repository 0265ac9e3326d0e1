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

// Permit is the breaker's permission and a slot, claimed before the caller commits its intent. Release must be
// called, and may be called more than once; a permission that was never used goes back to the breaker. A permit is
// for one call of one goroutine.
type Permit struct {
	lane     *lane
	token    *guard.Token    // nil without a breaker, and once used
	share    *guard.Bulkhead // of the slots, that this one counts in; nil = it may be any
	waited   time.Duration   // beyond the path's own wait for a slot: it is lacking to the call
	taken    time.Time
	use      slotUse // "" = the breaker let nobody through
	released atomic.Bool
}

// Release gives back what the permit holds.
func (p *Permit) Release() {
	if p.released.Swap(true) {
		return
	}
	p.token.Cancel()
	held := time.Since(p.taken)
	p.lane.metrics.inFlight.WithLabelValues(string(p.lane.name)).Dec()
	p.lane.load.Release(held)
	if p.use != "" {
		p.lane.metrics.slotSeconds.WithLabelValues(string(p.lane.name), string(p.use)).Observe(held.Seconds())
	}
	p.lane.slots.Release()
	if p.share != nil {
		p.share.Release()
	}
}

// reserve claims the breaker's permission and a slot, of the share when there is one. When it refuses, nothing was sent.
//
// The breaker comes first: whoever waits for it holds no slot, so that all who wait may pass when it closes. They come to
// the slots at once then, and take turns there, each within its own time.
func (l *lane) reserve(ctx context.Context, share *guard.Bulkhead) (*Permit, *Unsent) {
	began := time.Now()
	defer func() { l.metrics.queueSeconds.WithLabelValues(string(l.name)).Observe(time.Since(began).Seconds()) }()
	permission, err := l.permission(ctx, l.limits.Patience)
	if err != nil {
		return nil, l.refuse(RefusalBreaker)
	}
	refusal, ok := l.slot(ctx, share, l.slotWait(began))
	l.load.Arrive(refusal == guard.RefusalCap)
	if !ok {
		permission.Cancel()
		return nil, l.refuse(refusal)
	}
	l.metrics.inFlight.WithLabelValues(string(l.name)).Inc()
	permit := &Permit{lane: l, token: permission, share: share, taken: time.Now()}
	permit.waited = max(0, permit.taken.Sub(began)-max(0, l.limits.Wait))
	if permit.token, err = l.renewed(permission); err != nil {
		permit.Release()
		return nil, l.refuse(RefusalBreaker)
	}
	permit.use = slotUnsent
	return permit, nil
}

// slot takes one, of the share first when there is one: both within the one wait.
func (l *lane) slot(ctx context.Context, share *guard.Bulkhead, wait time.Duration) (guard.Refusal, bool) {
	if share == nil {
		return l.slots.AcquireWithin(ctx, wait)
	}
	began := time.Now()
	if refusal, ok := share.AcquireWithin(ctx, wait); !ok {
		return refusal, false
	}
	refusal, ok := l.slots.AcquireWithin(ctx, wait-time.Since(began))
	if !ok {
		share.Release()
	}
	return refusal, ok
}

// permission is the breaker's, waited for up to patience, and nil on a path without a breaker.
func (l *lane) permission(ctx context.Context, patience time.Duration) (*guard.Token, error) {
	if l.breaker == nil {
		return nil, nil //nolint:nilnil // nobody to ask
	}
	return l.breaker.AcquireWithin(ctx, patience)
}

// renewed is the permission as it stands once there is a slot: the breaker may have opened during the wait.
func (l *lane) renewed(permission *guard.Token) (*guard.Token, error) {
	if permission == nil {
		return nil, nil //nolint:nilnil // a path without a breaker
	}
	return l.breaker.Renew(permission)
}

// slotWait is how long a call that came at began may wait for a slot. Where the breaker has closed within the time of one
// call, those that it held up share the slots with each other, and none of them is too many: the path's own wait is for a
// gateway that is busy, which a queue makes worse.
func (l *lane) slotWait(began time.Time) time.Duration {
	if l.breaker == nil || l.breaker.ClosedFor() >= l.limits.Total {
		return l.limits.Wait
	}
	return max(l.limits.Wait, l.limits.Comeback-time.Since(began))
}

// refuse counts a refusal and says when to come again.
func (l *lane) refuse(why Refusal) *Unsent {
	l.metrics.refused(l.name, why)
	unsent := &Unsent{Reason: why}
	switch why {
	case RefusalCap:
		unsent.RetryAfter = time.Second
	case RefusalBreaker:
		unsent.RetryAfter = max(time.Second, l.breaker.RetryAfter())
	case RefusalDeadline:
	}
	return unsent
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
	defer func() { permission.Done(outcome) }()
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
