package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"daesa/internal/guard"
	"daesa/ledger"
)

// Config is what a Client needs.
type Config struct {
	URL       string // where the store takes questions
	Secret    string // "whsec_" and base64; signs each call
	Replicas  int    // instances that share the cap; 0 = 1
	Limits    Limits
	Transport http.RoundTripper // for tests; nil = an own pool of connections

	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time
}

func (c Config) withDefaults() Config {
	c.URL = strings.TrimSuffix(c.URL, "/")
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.Limits = c.Limits.or(declared())
	return c
}

func (c Config) validate() error {
	if c.Metrics == nil || c.Log == nil || c.Now == nil {
		return errors.New("metrics, a log and a clock are required")
	}
	at, err := url.Parse(c.URL)
	if err != nil || at.Host == "" || at.RawQuery != "" || at.Fragment != "" || (at.Scheme != "http" && at.Scheme != "https") {
		return errors.New("the address must look like https://shop.example/acceptances")
	}
	if _, err := standardwebhooks.NewWebhook(c.Secret); err != nil || c.Secret == "" {
		return errors.New("the secret must be whsec_ followed by base64")
	}
	if c.Replicas < 1 {
		return fmt.Errorf("the number of replicas must be at least 1, not %d", c.Replicas)
	}
	return c.Limits.validate()
}

// Client asks the store. Its methods may be used by many goroutines.
type Client struct {
	cfg       Config
	signer    *standardwebhooks.Webhook
	slots     *guard.Bulkhead
	releasing *guard.Bulkhead
	breaker   *guard.Breaker
	load      *guard.Load
	http      *http.Client
}

// New checks the configuration and returns a Client. It sends nothing.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("store client: %w", err)
	}
	signer, err := standardwebhooks.NewWebhook(cfg.Secret)
	if err != nil {
		return nil, errors.New("store client: the secret is not base64")
	}
	slots := cfg.Limits.share(cfg.Replicas)
	cfg.Metrics.may(PathAsk, slots)
	cfg.Metrics.may(PathRelease, releasesKept)
	c := &Client{
		cfg: cfg, signer: signer, http: newHTTPClient(cfg, slots+releasesKept),
		slots:     guard.NewBulkhead(slots, cfg.Limits.Total-cfg.Limits.Least),
		releasing: guard.NewBulkhead(releasesKept, 0),
		load:      guard.NewLoad(slots),
	}
	cfg.Metrics.shares.Watch("", c.load)
	c.breaker = guard.NewBreaker(cfg.Limits.Breaker, c.changed)
	return c, nil
}

func (c *Client) changed(from, to guard.State) {
	c.cfg.Metrics.breakerState(to)
	c.cfg.Log.Warn("breaker changed",
		slog.String("breaker", "store"), slog.String("from", string(from)), slog.String("to", string(to)))
}

// Close drops idle connections and stops the breaker's timer. Calls under way go on.
func (c *Client) Close() {
	c.breaker.Stop()
	c.http.CloseIdleConnections()
}

// Acceptance is what the store is asked to take on. It says nothing about the buyer.
type Acceptance struct {
	ID      string // of this question; the same in its release
	OrderID string
	Amount  ledger.Money
}

// Word is what a question came to.
type Word string

// The words.
const (
	Accepted    Word = "accepted"
	Declined    Word = "declined"
	Late        Word = "late"        // no answer within the time, the wait for a slot included
	Unreachable Word = "unreachable" // no answer that could be read: a broken connection, a failing store, an open breaker
)

// Words lists every word.
func Words() []Word { return []Word{Accepted, Declined, Late, Unreachable} }

// Answer is what the store said, or that it said nothing.
type Answer struct {
	Word   Word
	Reason string // why it declined, in its own words: bounded and free of control characters
	Sent   bool   // it may have got the question
}

// Unsent says that our own guard refused: the store was not asked.
type Unsent struct {
	Reason     guard.Refusal
	RetryAfter time.Duration
}

// Error says which layer refused.
func (u *Unsent) Error() string { return "store not asked: " + string(u.Reason) }

// Word is what it comes to for the buyer.
func (u *Unsent) Word() Word {
	if u.Reason == guard.RefusalBreaker {
		return Unreachable
	}
	return Late
}

// Permit is a slot at the store and the breaker's permission, for one question of one goroutine. Release must be called,
// and may be called more than once.
type Permit struct {
	client   *Client
	token    *guard.Token
	began    time.Time // when the question began to wait
	since    time.Time // when the slot was got
	until    time.Time // the end of the question, counted from before the wait
	released atomic.Bool
}

// Until is the end of the question's time.
func (p *Permit) Until() time.Time { return p.until }

// Release gives back what the permit holds.
func (p *Permit) Release() {
	if p.released.Swap(true) {
		return
	}
	p.token.Cancel()
	p.client.cfg.Metrics.inFlight.WithLabelValues(string(PathAsk)).Dec()
	p.client.slots.Release()
	p.client.load.Release(time.Since(p.since))
}

// Reserve claims a slot, for which it waits as long as the answer still has its time, and the breaker's permission. From
// its beginning the time of the question runs. The error is an [*Unsent].
func (c *Client) Reserve(ctx context.Context) (*Permit, error) {
	began := time.Now()
	refusal, ok := c.slots.Acquire(ctx)
	c.cfg.Metrics.waited(time.Since(began))
	if !ok {
		c.load.Arrive(refusal == guard.RefusalCap)
		c.cfg.Metrics.ended(began)
		c.cfg.Metrics.refused(PathAsk, refusal)
		return nil, &Unsent{Reason: refusal}
	}
	token, err := c.breaker.Acquire()
	if err != nil {
		c.slots.Release()
		c.cfg.Metrics.ended(began)
		c.cfg.Metrics.refused(PathAsk, guard.RefusalBreaker)
		return nil, &Unsent{Reason: guard.RefusalBreaker, RetryAfter: c.breaker.RetryAfter()}
	}
	c.load.Arrive(false) // what the breaker refuses asks nothing of the slots
	c.cfg.Metrics.inFlight.WithLabelValues(string(PathAsk)).Inc()
	return &Permit{client: c, token: token, began: began, since: time.Now(), until: began.Add(c.cfg.Limits.Total)}, nil
}

// Ask asks the store under the permit, once. It ends with the question's time or with ctx, whichever is first.
func (c *Client) Ask(ctx context.Context, permit *Permit, a Acceptance) Answer {
	defer c.cfg.Metrics.ended(permit.began)
	left := time.Until(permit.until)
	if left <= 0 || permit.released.Load() {
		c.cfg.Metrics.refused(PathAsk, guard.RefusalDeadline)
		return Answer{Word: Late}
	}
	call, stop := context.WithDeadline(ctx, permit.until)
	defer stop()
	result := resultUnreadable // of a panic
	defer func() { permit.token.Done(c.tells(result, left)) }()
	began := time.Now()
	reply := c.exchange(call, c.question(a))
	result = reply.result
	if errors.Is(ctx.Err(), context.Canceled) && result == resultTimeout {
		result = resultCanceled // the caller's leaving says nothing about the store
	}
	c.note(ctx, PathAsk, result, time.Since(began), a)
	return Answer{Word: result.word(), Reason: reply.reason, Sent: reply.sent}
}

// tells is what a result says about the store's health to the breaker. A question that had to wait has less time than the
// store may need: that it ran out says nothing.
func (c *Client) tells(r result, left time.Duration) guard.Outcome {
	switch r {
	case resultAccepted, resultDeclined, resultReleased:
		return guard.Succeeded
	case resultTimeout:
		if left < c.cfg.Limits.Total*9/10 {
			return guard.Ignored
		}
		return guard.Failed
	case resultConnection, resultServerError, resultRateLimited, resultUnreadable:
		return guard.Failed
	case resultRefused, resultCanceled:
	}
	return guard.Ignored
}

// ErrBusy means that the store has all that it bears at once.
var ErrBusy = errors.New("the store has no room for a release")

// Release tells the store that an acceptance is void, once. Without an error the store has heard it; it may be told any
// number of times. It does not wait for a slot: one is kept for releases, and the others are taken while no question wants
// them.
func (c *Client) Release(ctx context.Context, a Acceptance) error {
	slot := c.releasing
	if !slot.Try() {
		if slot = c.slots; !slot.Try() {
			c.cfg.Metrics.refused(PathRelease, guard.RefusalCap)
			return ErrBusy
		}
	}
	c.cfg.Metrics.inFlight.WithLabelValues(string(PathRelease)).Inc()
	defer func() {
		c.cfg.Metrics.inFlight.WithLabelValues(string(PathRelease)).Dec()
		slot.Release()
	}()
	call, stop := context.WithTimeout(ctx, c.cfg.Limits.Release)
	defer stop()
	began := time.Now()
	reply := c.exchange(call, c.release(a))
	c.note(ctx, PathRelease, reply.result, time.Since(began), a)
	if reply.result != resultReleased {
		return fmt.Errorf("release acceptance %s: %s", a.ID, reply.result)
	}
	return nil
}

// note tells metrics and log what a call came to.
func (c *Client) note(ctx context.Context, path Path, r result, took time.Duration, a Acceptance) {
	c.cfg.Metrics.answered(path, r, took)
	switch r {
	case resultAccepted, resultDeclined, resultReleased, resultCanceled:
	case resultTimeout, resultConnection, resultServerError, resultRateLimited, resultRefused, resultUnreadable:
		c.cfg.Log.WarnContext(ctx, "store call without an answer", slog.String("path", string(path)),
			slog.String("result", string(r)), slog.String("acceptance_id", a.ID), slog.String("order_id", a.OrderID),
			slog.Duration("took", took))
	}
}
