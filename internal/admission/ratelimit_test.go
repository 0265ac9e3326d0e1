package admission

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func newRateLimit(tb testing.TB, cfg RateConfig) *RateLimit {
	tb.Helper()
	cfg.Adapter, cfg.Metrics = newAdapter(tb), newMetrics()
	limit, err := NewRateLimit(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return limit
}

func webhook(perMinute, burst int) []Rule {
	return []Rule{{Name: "webhook", PerMinute: perMinute, Burst: burst}}
}

// addr is an address; its last number tells sources apart.
func addr(n int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, byte(n >> 8), byte(n)}) }

// tally is the Shared of one process, with the trouble that a test makes.
type tally struct {
	fullAt map[string]time.Time
	asked  int
	// answers replaces the answer while it is set; it may block.
	answers func(ctx context.Context) error
}

func newTally() *tally { return &tally{fullAt: make(map[string]time.Time)} }

// Spend counts as the database does.
func (s *tally) Spend(ctx context.Context, rule Rule, source string) (wait time.Duration, err error) {
	s.asked++
	if s.answers != nil {
		if err := s.answers(ctx); err != nil {
			return 0, err
		}
	}
	key := rule.Name + " " + source
	s.fullAt[key], wait = rule.pace().take(s.fullAt[key], time.Now())
	return wait, nil
}

func (l *RateLimit) figures() *ruleMetrics { return l.rules[len(l.rules)-1].metrics }

// TestRateLimit_RefusedRequestsSpendNothing, neither here nor in the database.
func TestRateLimit_RefusedRequestsSpendNothing(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]Shared{"shared": newTally(), "alone": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				limit := newRateLimit(t, RateConfig{Rules: webhook(60, 2), Shared: shared, Enforce: true})
				for i := range 100 {
					if _, ok := limit.Allow(t.Context(), addr(1)); ok != (i < 2) {
						t.Fatalf("got %v for request %d, want the burst of 2 only", ok, i)
					}
				}
				wait, ok := limit.Allow(t.Context(), addr(1))
				if ok || wait != time.Second {
					t.Fatalf("got wait %v, %v, want exactly a second", wait, ok)
				}
				time.Sleep(wait)
				if _, ok := limit.Allow(t.Context(), addr(1)); !ok {
					t.Error("refused after the wait")
				}
				if _, ok := limit.Allow(t.Context(), addr(2)); !ok {
					t.Error("another source was refused")
				}
				if got := testutil.ToFloat64(limit.figures().refused); got != 99 {
					t.Errorf("got %v refusals counted, want 99", got)
				}
			})
		})
	}
}

// TestRateLimit_AFloodIsNotAFloodOfStatements: a source that the database has refused is not asked about until it may
// have something to spend, also when all that it spent was spent on other instances.
func TestRateLimit_AFloodIsNotAFloodOfStatements(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTally()
		limit := newRateLimit(t, RateConfig{Rules: webhook(60, 10), Shared: shared, Enforce: true, Replicas: 3})
		other := newRateLimit(t, RateConfig{Rules: webhook(60, 10), Shared: shared, Enforce: true, Replicas: 3})
		for range 10 {
			other.Allow(t.Context(), addr(1))
		}
		shared.asked = 0
		passed := 0
		for range 1000 { // ten seconds
			if _, ok := limit.Allow(t.Context(), addr(1)); ok {
				passed++
			}
			time.Sleep(10 * time.Millisecond)
		}
		if passed != 9 && passed != 10 {
			t.Errorf("got %d passed, want what refills in ten seconds", passed)
		}
		if shared.asked > 2*passed+2 {
			t.Errorf("asked the database %d times about a flood, want about twice for each that passed", shared.asked)
		}
		if refused, unasked := testutil.ToFloat64(limit.figures().refused), testutil.ToFloat64(limit.figures().unasked); int(refused) != 1000-passed ||
			int(unasked) != 1000-shared.asked {
			t.Errorf("got %v refused and %v of them unasked, want %d and %d", refused, unasked, 1000-passed, 1000-shared.asked)
		}
	})
}

// TestRateLimit_WholeRuleHere: what passed here alone already is the whole rule, so that the database need not be asked.
func TestRateLimit_WholeRuleHere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTally()
		limit := newRateLimit(t, RateConfig{Rules: webhook(60, 10), Shared: shared, Enforce: true, Replicas: 3})
		for range 50 {
			limit.Allow(t.Context(), addr(1))
		}
		if shared.asked != 10 {
			t.Errorf("asked %d times, want only for the 10 that passed", shared.asked)
		}
	})
}

// slow is a database that answers when the one who asked has given up.
func slow(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestRateLimit_FallsBackToItsShare: without an answer in time an instance gives out its share of the rule, leaves the
// database alone after a few failures, tries it once a while, and asks again when it answers.
func TestRateLimit_FallsBackToItsShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTally()
		shared.answers = slow
		limit := newRateLimit(t, RateConfig{Rules: webhook(60, 300), Shared: shared, Replicas: 3, Enforce: true})
		began, passed := time.Now(), 0
		for range 500 {
			if _, ok := limit.Allow(t.Context(), addr(1)); ok {
				passed++
			}
		}
		if took := time.Since(began); took != failuresMost*SharedTimeout {
			t.Errorf("took %s, want to wait %s for each of %d failures and no longer", took, SharedTimeout, failuresMost)
		}
		if passed != 100 {
			t.Errorf("got %d passed, want a third of the burst of 300", passed)
		}
		figures := limit.figures()
		for reason, want := range map[Fallback]float64{FallbackSlow: failuresMost, FallbackResting: 500 - failuresMost, FallbackBusy: 0, FallbackFailed: 0} {
			if got := testutil.ToFloat64(figures.fallbacks[reason]); got != want {
				t.Errorf("got %v %s counted, want %v", got, reason, want)
			}
		}

		asked := shared.asked
		time.Sleep(restFor)
		limit.Allow(t.Context(), addr(2))
		limit.Allow(t.Context(), addr(2))
		if shared.asked != asked+1 {
			t.Errorf("asked %d times after the rest, want one trial", shared.asked-asked)
		}
		shared.answers = nil
		time.Sleep(restFor)
		for range 10 {
			limit.Allow(t.Context(), addr(3))
		}
		if shared.asked != asked+11 {
			t.Errorf("asked %d times, want every time once it answers again", shared.asked-asked-1)
		}
	})
}

// TestRateLimit_FailuresInARow: a database that fails now and then is asked every time.
func TestRateLimit_FailuresInARow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTally()
		limit := newRateLimit(t, RateConfig{Rules: webhook(300, 300), Shared: shared, Enforce: true})
		const sent = 10 * failuresMost
		for n := range sent {
			shared.answers = func(context.Context) error { return errors.New("gone") }
			if n%failuresMost == 0 {
				shared.answers = nil
			}
			limit.Allow(t.Context(), addr(1))
		}
		if shared.asked != sent {
			t.Errorf("asked %d times of %d", shared.asked, sent)
		}
	})
}

// standstill is a Shared that answers only until it stands still.
type standstill struct {
	asked, failed atomic.Int64
	until         time.Time
}

// Spend waits while the database stands still, as long as it may.
func (s *standstill) Spend(ctx context.Context, _ Rule, _ string) (time.Duration, error) {
	s.asked.Add(1)
	select {
	case <-time.After(time.Until(s.until)):
		return 0, nil
	case <-ctx.Done():
		s.failed.Add(1)
		return 0, ctx.Err()
	}
}

// TestRateLimit_AMomentOfStandstill: what is asked while the database stands still for a moment fails together, and is no
// reason to leave it alone; a database that goes on standing still is left alone, however much is asked of it.
func TestRateLimit_AMomentOfStandstill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := &standstill{until: time.Now().Add(SharedTimeout * 3 / 2)}
		limit := newRateLimit(t, RateConfig{Rules: webhook(6000, 6000), Shared: shared, Enforce: true})
		arrive := func(n int) { // one a millisecond
			for range n {
				go limit.Allow(t.Context(), addr(1))
				time.Sleep(time.Millisecond)
			}
		}
		arrive(1000)
		if asked, failed := shared.asked.Load(), shared.failed.Load(); asked != 1000 || failed <= failuresMost {
			t.Errorf("asked %d times of 1000, and %d failed; want to be asked every time, and more than %d to fail", asked, failed, failuresMost)
		}
		if got := testutil.ToFloat64(limit.figures().fallbacks[FallbackResting]); got != 0 {
			t.Errorf("the database was left alone %v times", got)
		}

		synctest.Wait()
		before := shared.asked.Load()
		shared.until = time.Now().Add(time.Hour)
		arrive(1000)
		most := int64(failuresMost*SharedTimeout/time.Millisecond) + 1
		if asked := shared.asked.Load() - before; asked > most {
			t.Errorf("asked %d times of 1000 in vain, want at most %d", asked, most)
		}
		time.Sleep(SharedTimeout)
	})
}

// TestRateLimit_OneTrialAtATime: while one request tries the database, no other waits for it.
func TestRateLimit_OneTrialAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTally()
		shared.answers = slow
		limit := newRateLimit(t, RateConfig{Rules: webhook(300, 300), Shared: shared, Enforce: true})
		for range failuresMost {
			limit.Allow(t.Context(), addr(1))
		}
		time.Sleep(restFor)
		go limit.Allow(t.Context(), addr(1))
		synctest.Wait()
		began := time.Now()
		limit.Allow(t.Context(), addr(2))
		if took := time.Since(began); took != 0 {
			t.Errorf("waited %s beside the one who tries", took)
		}
		time.Sleep(SharedTimeout)
	})
}

// TestRateLimit_APanicIsATrialThatFailed: the one who tries the database again may die of it, and the next one tries again.
func TestRateLimit_APanicIsATrialThatFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTally()
		shared.answers = func(context.Context) error { return errors.New("gone") }
		limit := newRateLimit(t, RateConfig{Rules: webhook(300, 300), Shared: shared, Enforce: true})
		for range failuresMost {
			limit.Allow(t.Context(), addr(1))
		}
		time.Sleep(restFor)
		shared.answers = func(context.Context) error { panic("broken") }
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			limit.Allow(t.Context(), addr(1))
		}()
		shared.answers = nil
		time.Sleep(restFor)
		asked := shared.asked
		limit.Allow(t.Context(), addr(1))
		if shared.asked != asked+1 {
			t.Error("the database is never asked again")
		}
	})
}

// TestRateLimit_TheShareRemembers: what passed while the database answered is charged to the share as well, so that its
// failing is no second burst.
func TestRateLimit_TheShareRemembers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTally()
		limit := newRateLimit(t, RateConfig{Rules: webhook(60, 30), Shared: shared, Replicas: 3, Enforce: true})
		for range 25 {
			limit.Allow(t.Context(), addr(1))
		}
		shared.answers = func(context.Context) error { return errors.New("gone") }
		if wait, ok := limit.Allow(t.Context(), addr(1)); ok || wait != 3*time.Second {
			t.Errorf("got %v, %s, want refused until the share refills one", ok, wait)
		}
		if got := testutil.ToFloat64(limit.figures().fallbacks[FallbackFailed]); got != 1 {
			t.Errorf("got %v failures counted, want 1", got)
		}
	})
}

// TestRateLimit_OneAloneKnows: what passed while the database did not answer is no second burst when it is back, where one
// instance let it pass.
func TestRateLimit_OneAloneKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTally()
		shared.answers = func(context.Context) error { return errors.New("gone") }
		limit := newRateLimit(t, RateConfig{Rules: webhook(60, 30), Shared: shared, Enforce: true})
		passed := 0
		for n := range 60 {
			if n == 40 {
				shared.answers = nil
				time.Sleep(restFor)
			}
			if _, ok := limit.Allow(t.Context(), addr(1)); ok {
				passed++
			}
		}
		if passed != 31 {
			t.Errorf("got %d passed, want the burst of 30 and one of the second that went by", passed)
		}
	})
}

// TestRateLimit_SenderHangsUp: a question goes on without the one who caused it, or a stranger could cost us a connection
// with each request.
func TestRateLimit_SenderHangsUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTally()
		shared.answers = func(ctx context.Context) error { return ctx.Err() }
		limit := newRateLimit(t, RateConfig{Rules: webhook(60, 30), Shared: shared, Enforce: true})
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		if _, ok := limit.Allow(gone, addr(1)); !ok || shared.fullAt["webhook 203.0.0.1"].IsZero() {
			t.Error("the question ended with its sender")
		}
	})
}

// TestRateLimit_RecordOnly counts what it would refuse apart from what it refuses, and refuses nothing.
func TestRateLimit_RecordOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := newRateLimit(t, RateConfig{Rules: webhook(60, 5), Shared: newTally()})
		for range 20 {
			if _, ok := limit.Allow(t.Context(), addr(1)); !ok {
				t.Fatal("refused in record-only mode")
			}
		}
		if refused, would := testutil.ToFloat64(limit.figures().refused), testutil.ToFloat64(limit.figures().wouldRefuse); refused != 0 || would != 15 {
			t.Errorf("got %v refused and %v that would be, want 0 and 15", refused, would)
		}
	})
}

// TestRateLimit_GatewaysOwnRule: strangers cannot spend what the gateway has, nor the gateway what strangers have, also
// behind one proxy address.
func TestRateLimit_GatewaysOwnRule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rules := []Rule{
			{Name: "webhook_gateway", PerMinute: 60, Burst: 8, Addresses: []netip.Prefix{netip.MustParsePrefix("13.124.18.147/32")}},
			{Name: "webhook", PerMinute: 60, Burst: 3},
		}
		limit := newRateLimit(t, RateConfig{Rules: rules, Shared: newTally(), Enforce: true})
		passed := func(from string) (n int) {
			for range 20 {
				if _, ok := limit.Allow(t.Context(), netip.MustParseAddr(from)); ok {
					n++
				}
			}
			return n
		}
		if got := passed("203.0.113.9"); got != 3 {
			t.Errorf("got %d of a stranger's passed, want 3", got)
		}
		if got := passed("13.124.18.147"); got != 8 {
			t.Errorf("got %d of the gateway's passed, want 8", got)
		}
		for i, want := range []float64{12, 17} {
			if got := testutil.ToFloat64(limit.rules[i].metrics.refused); got != want {
				t.Errorf("%s: got %v refused, want %v", rules[i].Name, got, want)
			}
		}
	})
}

func TestRateLimit_ForgetsSourcesThatAreQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := newRateLimit(t, RateConfig{Rules: webhook(60, 60)})
		for i := range sweepMax {
			limit.Allow(t.Context(), addr(i))
		}
		time.Sleep(59 * time.Second)
		limit.Allow(t.Context(), addr(99))
		if got := testutil.ToFloat64(limit.figures().tracked); got != sweepMax+1 {
			t.Errorf("got %v sources before an allowance can be whole, want %d", got, sweepMax+1)
		}
		time.Sleep(time.Second)
		limit.Allow(t.Context(), addr(99))
		if got := testutil.ToFloat64(limit.figures().tracked); got != 1 {
			t.Errorf("got %v sources, want only the one that still sends", got)
		}
	})
}

func TestRateLimit_RemembersABoundedNumber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := newRateLimit(t, RateConfig{Rules: webhook(1, 1), SourcesMax: 3, Enforce: true})
		for i := range 100 {
			limit.Allow(t.Context(), addr(1000)) // Heard from all the time, so never the one to be forgotten.
			limit.Allow(t.Context(), addr(i))
			if got, kept := testutil.ToFloat64(limit.figures().tracked), limit.rules[0].sources.recent.Len(); got > 3 || int(got) != kept {
				t.Fatalf("got %v sources and %d kept, want at most 3", got, kept)
			}
		}
		if _, ok := limit.Allow(t.Context(), addr(1000)); ok {
			t.Error("strangers emptied the memory of a source over its limit")
		}
	})
}

func TestRateLimit_Middleware(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := newRateLimit(t, RateConfig{
			Rules: webhook(6, 1), Shared: newTally(), Enforce: true, RetryJitter: 3 * time.Second,
			Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		})
		handler := limit.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		steps := []struct {
			name, peer, forwarded string
			want                  int
		}{
			{"first", "203.0.113.9:1", "", 200},
			{"same address with an invented one", "203.0.113.9:2", "198.51.100.1", 429},
			{"the same, written as IPv6", "[::ffff:203.0.113.9]:3", "", 429},
			{"through a proxy", "10.0.0.1:1", "198.51.100.1", 200},
			{"again through another proxy", "10.0.0.2:1", "198.51.100.1", 429},
			{"again with an address invented before it", "10.0.0.2:1", "192.0.2.77, 198.51.100.1", 429},
			{"again as IPv6, with a port", "10.0.0.2:1", "[::ffff:198.51.100.1]:99", 429},
			{"IPv6", "[2001:db8::1]:1", "", 200},
			{"neighbor in the same /64", "[2001:db8::2]:1", "", 429},
			{"neighbor with a zone", "[2001:db8::3%eth0]:1", "", 429},
			{"neighbor in the next /64", "[2001:db8:0:1::1]:1", "", 200},
		}
		for _, step := range steps {
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
			r.RemoteAddr = step.peer
			r.Header.Set("X-Forwarded-For", step.forwarded)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != step.want {
				t.Errorf("%s: got %d, want %d", step.name, w.Code, step.want)
			}
			if after, err := strconv.Atoi(w.Header().Get("Retry-After")); w.Code == 429 && (err != nil || after < 10 || after > 13) {
				t.Errorf("%s: got Retry-After %q, want 10 and at most 3 more", step.name, w.Header().Get("Retry-After"))
			}
		}
	})
}

func TestNewRateLimit_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := RateConfig{Adapter: newAdapter(t), Metrics: newMetrics(), Rules: []Rule{webhookRule()}}
	own := Rule{Name: "webhook_gateway", PerMinute: 1, Burst: 1, Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	for name, change := range map[string]func(*RateConfig){
		"no adapter":          func(c *RateConfig) { c.Adapter = nil },
		"no metrics":          func(c *RateConfig) { c.Metrics = nil },
		"no rules":            func(c *RateConfig) { c.Rules = nil },
		"a rule for nobody":   func(c *RateConfig) { c.Rules = []Rule{own} },
		"two for everybody":   func(c *RateConfig) { c.Rules = []Rule{webhookRule(), webhookRule()} },
		"unknown rule":        func(c *RateConfig) { c.Rules = []Rule{{Name: "new", PerMinute: 1, Burst: 1}} },
		"no burst":            func(c *RateConfig) { c.Rules = webhook(1, 0) },
		"faster than a clock": func(c *RateConfig) { c.Rules = webhook(perMinuteMost+1, 1) },
		"no memory":           func(c *RateConfig) { c.SourcesMax = -1 },
		"no instance":         func(c *RateConfig) { c.Replicas = -1 },
	} {
		cfg := good
		change(&cfg)
		if _, err := NewRateLimit(cfg); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	if _, err := NewRateLimit(good); err != nil {
		t.Errorf("got %v", err)
	}
}
