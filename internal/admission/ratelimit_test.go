package admission

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func newRateLimit(t *testing.T, cfg RateConfig) *RateLimit {
	t.Helper()
	cfg.Adapter, cfg.Metrics = newAdapter(t), newMetrics()
	limit, err := NewRateLimit(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return limit
}

// TestRateLimit_BurstOfRedeliveries sends 200 notices in 30 s, as many as fail while the gateway is silent.
func TestRateLimit_BurstOfRedeliveries(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		limit    Limit
		min, max int
	}{
		{"a limit of 300 takes all", WebhookLimit(), 200, 200},
		{"a limit of 100 takes the burst and what refills in 30 s", Limit{"webhook", 100, 100}, 149, 151},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				limit := newRateLimit(t, RateConfig{Limit: tt.limit})
				passed := 0
				for range 200 {
					if _, ok := limit.Allow("203.0.113.9"); ok {
						passed++
					}
					time.Sleep(150 * time.Millisecond)
				}
				if passed < tt.min || passed > tt.max {
					t.Errorf("got %d passed, want %d to %d", passed, tt.min, tt.max)
				}
				if got := testutil.ToFloat64(limit.cfg.Metrics.rateRefused.WithLabelValues("webhook")); int(got) != 200-passed {
					t.Errorf("got %v refusals counted, want %d", got, 200-passed)
				}
			})
		})
	}
}

func TestRateLimit_RefusedRequestsTakeNoToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := newRateLimit(t, RateConfig{Limit: Limit{"webhook", 60, 2}})
		for i := range 100 {
			if _, ok := limit.Allow("a"); ok != (i < 2) {
				t.Fatalf("got %v for request %d, want the burst of 2 only", ok, i)
			}
		}
		wait, ok := limit.Allow("a")
		if ok || wait != time.Second {
			t.Fatalf("got wait %v, %v, want exactly a second", wait, ok)
		}
		time.Sleep(wait)
		if _, ok := limit.Allow("a"); !ok {
			t.Error("refused after the wait, want one token")
		}
		if _, ok := limit.Allow("b"); !ok {
			t.Error("another source was refused, want a bucket of its own")
		}
	})
}

func TestRateLimit_ForgetsSourcesThatAreQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := newRateLimit(t, RateConfig{Limit: Limit{"webhook", 60, 60}})
		for i := range sweepMax {
			limit.Allow(fmt.Sprint("source ", i))
		}
		time.Sleep(59 * time.Second)
		limit.Allow("late")
		if got := tracked(limit); got != sweepMax+1 {
			t.Errorf("got %v sources before a bucket can be full, want %d", got, sweepMax+1)
		}
		time.Sleep(time.Second)
		limit.Allow("late")
		if got := tracked(limit); got != 1 {
			t.Errorf("got %v sources, want only the one that still sends", got)
		}
	})
}

func TestRateLimit_RemembersABoundedNumber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := newRateLimit(t, RateConfig{Limit: Limit{"webhook", 1, 1}, SourcesMax: 3})
		for i := range 100 {
			limit.Allow("steady") // Heard from all the time, so never the one to be forgotten.
			limit.Allow(fmt.Sprint("stranger ", i))
			if got := tracked(limit); got > 3 || int(got) != limit.recent.Len() {
				t.Fatalf("got %v sources and %d buckets, want at most 3", got, limit.recent.Len())
			}
		}
		if _, ok := limit.Allow("steady"); ok {
			t.Error("strangers emptied the memory of a source over its limit")
		}
	})
}

func TestRateLimit_Middleware(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := newRateLimit(t, RateConfig{
			Limit:   Limit{"webhook", 6, 1},
			Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		})
		handler := limit.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		steps := []struct {
			name, peer, forwarded string
			want                  int
		}{
			{"first", "203.0.113.9:1", "", 200},
			{"same address with an invented one", "203.0.113.9:2", "198.51.100.1", 429},
			{"through a proxy", "10.0.0.1:1", "198.51.100.1", 200},
			{"again through another proxy", "10.0.0.2:1", "198.51.100.1", 429},
			{"IPv6", "[2001:db8::1]:1", "", 200},
			{"neighbor in the same /64", "[2001:db8::2]:1", "", 429},
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
			if w.Code == 429 && w.Header().Get("Retry-After") != "10" {
				t.Errorf("%s: got Retry-After %q, want 10", step.name, w.Header().Get("Retry-After"))
			}
		}
	})
}

func TestNewRateLimit_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	adapter, metrics := newAdapter(t), newMetrics()
	for name, cfg := range map[string]RateConfig{
		"no adapter":   {Metrics: metrics, Limit: WebhookLimit()},
		"no metrics":   {Adapter: adapter, Limit: WebhookLimit()},
		"no limit":     {Adapter: adapter, Metrics: metrics},
		"unknown rule": {Adapter: adapter, Metrics: metrics, Limit: Limit{"new", 1, 1}},
		"no memory":    {Adapter: adapter, Metrics: metrics, Limit: WebhookLimit(), SourcesMax: -1},
	} {
		if _, err := NewRateLimit(cfg); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func tracked(limit *RateLimit) float64 {
	return testutil.ToFloat64(limit.cfg.Metrics.rateSources.WithLabelValues("webhook"))
}
