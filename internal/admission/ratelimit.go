package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"time"

	"daesa/internal/web"
)

// ErrRateLimited means that one source sends faster than its limit refills.
var ErrRateLimited = errors.New("rate limit exceeded")

// SharedTimeout bounds the question to the database, the wait for a connection included. The statement takes 0.05 ms on
// one machine (docs/guards.md), and a network between two rooms adds 1 or 2 ms. On two cores with sixteen notices always
// under way one question of a thousand takes more than 50 ms, for want of a processor and of nothing else (experiment 16):
// what takes 200 ms is out of order. A notice has 10 s.
const SharedTimeout = 200 * time.Millisecond

// RateConfig holds what a [RateLimit] needs. All from Timeout on, but for Trusted and Enforce, has a default.
type RateConfig struct {
	Adapter *web.Adapter
	Metrics *Metrics

	// Rules are tried in order; the first that holds the address is the one, and the last is for everybody.
	Rules []Rule
	// Shared counts for all instances; nil leaves each with its share.
	Shared Shared
	// Timeout is how long an answer of Shared is waited for.
	Timeout time.Duration
	// Replicas is how many instances share a rule when Shared does not answer.
	Replicas int
	// Trusted are the proxies whose X-Forwarded-For is believed.
	Trusted []netip.Prefix
	// Enforce refuses; without it the limit only records what it would refuse, to find limits that fit.
	Enforce bool
	// SourcesMax is how many sources are remembered for each rule.
	SourcesMax int
	// RetryJitter is how much later than the true instant a source may be told to come back.
	RetryJitter time.Duration
	// Now is the clock of tests.
	Now func() time.Time
}

func (c RateConfig) withDefaults() RateConfig {
	c.Timeout = cmp.Or(c.Timeout, SharedTimeout)
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.SourcesMax = cmp.Or(c.SourcesMax, sourcesMax)
	c.RetryJitter = cmp.Or(c.RetryJitter, time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c RateConfig) validate() error {
	if c.Adapter == nil {
		return errors.New("admission: RateLimit needs an Adapter: it is how a request is refused")
	}
	if c.Metrics == nil {
		return errors.New("admission: RateLimit needs Metrics: a refusal that is not counted is not seen")
	}
	if err := validateRules(c.Rules); err != nil {
		return err
	}
	for _, rule := range c.Rules {
		if c.Metrics.rules[rule.Name] == nil {
			return fmt.Errorf("admission: rule %q is not among those that NewMetrics was given", rule.Name)
		}
	}
	if c.Replicas < 1 || c.SourcesMax < 1 || c.RetryJitter < 0 || c.Timeout < 0 {
		return errors.New("admission: Replicas and SourcesMax must be at least 1, and no time negative")
	}
	return nil
}

// RateLimit bounds what one source may send, over all instances. A refused request spends nothing, so a source that
// keeps trying is let in again as soon as there is one request to spend.
//
// The database has the last word. It is not asked about a source that is known here to be over its limit, so that a flood
// is not a flood of statements; and when it does not answer in time, this instance gives out its share of the rule by
// itself.
type RateLimit struct {
	cfg   RateConfig
	rules []*limited
	rest  rest
}

// limited is a rule with what this instance knows of those who send under it.
type limited struct {
	Rule

	sources *sources
	metrics *ruleMetrics
}

// NewRateLimit returns a limit that has heard from nobody.
func NewRateLimit(cfg RateConfig) (*RateLimit, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := &RateLimit{cfg: cfg}
	for _, rule := range cfg.Rules {
		metrics := cfg.Metrics.rules[rule.Name]
		l.rules = append(l.rules, &limited{
			Rule: rule, metrics: metrics, sources: newSources(rule, cfg.Replicas, cfg.SourcesMax, metrics.tracked),
		})
	}
	return l, nil
}

// Middleware answers [ErrRateLimited] to a source that has nothing left, with the time until it has again, and a little
// more: what was refused together should not return together.
func (l *RateLimit) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wait, ok := l.Allow(r.Context(), web.ClientIP(r, l.cfg.Trusted)); !ok {
			after := wait + rand.N(max(1, l.cfg.RetryJitter))
			l.cfg.Adapter.Fail(w, r, web.WithRetryAfter(ErrRateLimited, after))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Allow spends one request of the address, or reports how long until there is one. Without Enforce everybody is allowed,
// and what would have been refused is counted as such.
func (l *RateLimit) Allow(ctx context.Context, addr netip.Addr) (wait time.Duration, ok bool) {
	rule := l.ruleFor(addr)
	wait = l.spend(ctx, rule, web.RateKey(addr))
	switch {
	case wait <= 0:
		return 0, true
	case l.cfg.Enforce:
		rule.metrics.refused.Inc()
		return wait, false
	default:
		rule.metrics.wouldRefuse.Inc()
		return 0, true
	}
}

// ruleFor finds the rule of an address; the last holds every one.
func (l *RateLimit) ruleFor(addr netip.Addr) *limited {
	last := len(l.rules) - 1
	for _, rule := range l.rules[:last] {
		if rule.holds(addr) {
			return rule
		}
	}
	return l.rules[last]
}

// spend asks what is known here, then the database, and counts alone when that does not answer.
func (l *RateLimit) spend(ctx context.Context, rule *limited, key string) time.Duration {
	now := l.cfg.Now()
	if l.cfg.Shared == nil {
		return rule.sources.takeShare(key, now)
	}
	if wait := rule.sources.refuses(key, now); wait > 0 {
		rule.metrics.unasked.Inc()
		return wait
	}
	wait, why := l.ask(ctx, rule, key)
	switch {
	case why != "":
		rule.metrics.fallbacks[why].Inc()
		return rule.sources.takeShare(key, now)
	case wait > 0:
		rule.sources.refused(key, now, wait)
	default:
		rule.sources.passed(key, now)
	}
	return wait
}

// ask asks the database, unless it is resting, and says why there is no answer when there is none. The sender's hanging
// up does not end the question: to cut a statement off costs its connection, and a stranger could do that at will.
func (l *RateLimit) ask(ctx context.Context, rule *limited, key string) (wait time.Duration, why Fallback) {
	began := time.Now()
	if !l.rest.ask(began) {
		return 0, FallbackResting
	}
	answered := false // a panic is no answer either
	defer func() { l.rest.answered(began, time.Now(), answered) }()
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.Timeout)
	defer stop()
	wait, err := l.cfg.Shared.Spend(ctx, rule.Rule, key)
	if err != nil {
		return 0, fallbackOf(err)
	}
	answered = true
	l.cfg.Metrics.sharedSeconds.Observe(time.Since(began).Seconds())
	return wait, ""
}
