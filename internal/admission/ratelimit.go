package admission

import (
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"daesa/internal/web"
)

// ErrRateLimited means that one source sends faster than its limit refills.
var ErrRateLimited = errors.New("rate limit exceeded")

// Limit is a rule: a source may send Burst at once, and PerMinute refill, evenly. The name is a metric's label.
type Limit struct {
	Name             string
	PerMinute, Burst int
}

// WebhookLimit is the rule for the gateway's notices. They come in bursts: all that fail in one minute come again
// together, one minute later, beside the new ones. 100 a minute refused a quarter of such a burst of 200 in 30 s; 300
// takes it whole, with half to spare.
func WebhookLimit() Limit {
	return Limit{Name: "webhook", PerMinute: 300, Burst: 300}
}

// sourcesMax bounds the memory that strangers can make us use, at some 300 bytes each.
const sourcesMax = 100_000

// sweepMax bounds the work that one request does for the sources that have gone.
const sweepMax = 8

// RateConfig holds what a [RateLimit] needs. SourcesMax has a default.
type RateConfig struct {
	Adapter *web.Adapter
	Metrics *Metrics

	Limit Limit
	// Trusted are the proxies whose X-Forwarded-For is believed.
	Trusted []netip.Prefix
	// SourcesMax is how many sources are remembered.
	SourcesMax int
}

func (c RateConfig) withDefaults() RateConfig {
	c.SourcesMax = cmp.Or(c.SourcesMax, sourcesMax)
	return c
}

func (c RateConfig) validate() error {
	if c.Adapter == nil {
		return errors.New("admission: RateLimit needs an Adapter: it is how a request is refused")
	}
	if c.Metrics == nil {
		return errors.New("admission: RateLimit needs Metrics: a refusal that is not counted is not seen")
	}
	if c.Limit.Name == "" || c.Limit.PerMinute < 1 || c.Limit.Burst < 1 {
		return errors.New("admission: a Limit needs a Name, and PerMinute and Burst of at least 1")
	}
	if !c.Metrics.hasRule(c.Limit.Name) {
		return fmt.Errorf("admission: rule %q is not among those that NewMetrics was given", c.Limit.Name)
	}
	if c.SourcesMax < 1 {
		return errors.New("admission: SourcesMax must be at least 1")
	}
	return nil
}

// RateLimit holds one token bucket per source. A refused request takes no token, so a source that keeps trying is let
// in again as soon as one has refilled.
type RateLimit struct {
	cfg    RateConfig
	perSec rate.Limit
	refill time.Duration // How long an untouched bucket takes to be full, and so to be worth nothing.

	mu      sync.Mutex
	sources map[string]*list.Element
	recent  *list.List // Of *source, the one heard from last in front.
}

// source is one sender's bucket.
type source struct {
	key    string
	bucket *rate.Limiter
	heard  time.Time
}

// NewRateLimit returns a limit that has heard from nobody.
func NewRateLimit(cfg RateConfig) (*RateLimit, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	perMinute := time.Duration(cfg.Limit.PerMinute)
	return &RateLimit{
		cfg:     cfg,
		perSec:  rate.Limit(cfg.Limit.PerMinute) / 60,
		refill:  time.Duration(cfg.Limit.Burst) * time.Minute / perMinute,
		sources: make(map[string]*list.Element),
		recent:  list.New(),
	}, nil
}

// Middleware answers [ErrRateLimited] to a source whose bucket is empty, with the time until the next token.
func (l *RateLimit) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := web.RateKey(web.ClientIP(r, l.cfg.Trusted))
		if wait, ok := l.Allow(key); !ok {
			l.cfg.Adapter.Fail(w, r, web.WithRetryAfter(ErrRateLimited, wait))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Allow takes a token from the bucket of key, or reports how long the next one takes.
func (l *RateLimit) Allow(key string) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.sweep(now)
	bucket := l.bucketOf(key, now)
	if bucket.AllowN(now, 1) {
		return 0, true
	}
	l.cfg.Metrics.rateRefused.WithLabelValues(l.cfg.Limit.Name).Inc()
	missing := 1 - bucket.TokensAt(now)
	return time.Duration(missing / float64(l.perSec) * float64(time.Second)), false
}

// bucketOf returns the bucket of key, a full one if it is new. When no further source fits, the one that has been quiet
// for longest is forgotten: its bucket is the fullest of those that were drained alike.
func (l *RateLimit) bucketOf(key string, now time.Time) *rate.Limiter {
	if element, known := l.sources[key]; known {
		l.recent.MoveToFront(element)
		known := element.Value.(*source)
		known.heard = now
		return known.bucket
	}
	if len(l.sources) >= l.cfg.SourcesMax {
		l.forget(l.recent.Back())
	}
	bucket := rate.NewLimiter(l.perSec, l.cfg.Limit.Burst)
	l.sources[key] = l.recent.PushFront(&source{key: key, bucket: bucket, heard: now})
	l.track()
	return bucket
}

// sweep forgets some of the sources whose buckets have refilled. It runs with each request instead of in a goroutine of
// its own: while nobody sends, what is remembered does not grow.
func (l *RateLimit) sweep(now time.Time) {
	for range sweepMax {
		oldest := l.recent.Back()
		if oldest == nil || now.Sub(oldest.Value.(*source).heard) < l.refill {
			return
		}
		l.forget(oldest)
	}
}

func (l *RateLimit) forget(element *list.Element) {
	delete(l.sources, element.Value.(*source).key)
	l.recent.Remove(element)
	l.track()
}

func (l *RateLimit) track() {
	l.cfg.Metrics.rateSources.WithLabelValues(l.cfg.Limit.Name).Set(float64(len(l.sources)))
}
