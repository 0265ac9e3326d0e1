package app_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"daesa/internal/app"
	"daesa/internal/postgres/postgrestest"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
)

// TestWebhook_SilenceOpensTheQueryBreaker holds the service's own budgets against each other: the handler must leave
// the client the time to find out by itself that the gateway is silent, or nothing would ever count as a failure.
func TestWebhook_SilenceOpensTheQueryBreaker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *app.Config, _ *tosssim.Config) {
		c.Breakers.Query = pgclient.BreakerLimits{OpenFor: time.Minute}
	})
	var notices []tosssim.Notice
	for n := range 12 {
		key := w.sell(fmt.Sprintf("order-%03d", n), 1000)
		w.dashboard(key, 0)
		notices = append(notices, w.newest(key))
	}
	w.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Hang, N: -1})
	var delivering sync.WaitGroup
	for _, n := range notices {
		delivering.Go(func() {
			if status, err := w.sim.Deliver(n.ID); err != nil || status != 502 {
				t.Errorf("got %d %v, want 502", status, err)
			}
		})
	}
	delivering.Wait()
	if got := series(t, w.app.Registry())["daesa_pgclient_breaker_state{breaker=query}"]; got != 2 {
		t.Errorf("got breaker state %v after 12 silent questions, want 2 (open)", got)
	}
	w.sim.Heal()
}

// TestStop_DoesNotWaitForASilentList stops while a page of the gateway's list is awaited, which may take minutes.
func TestStop_DoesNotWaitForASilentList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Hang, N: -1})
	reader := w.run(func(c *app.Config) {
		c.StopTimeout = 1500 * time.Millisecond
		c.Paths.List = pgclient.Path{
			Attempt: time.Minute, Connect: time.Second, Attempts: 2, Wait: -1, BackoffMin: time.Millisecond,
			BackoffMax: time.Millisecond, Total: 3 * time.Minute,
		}
	})
	w.eventually("the list is read", func() bool { return w.sim.Count(tosssim.List) > 0 })
	began := time.Now()
	reader.cutOff = true
	_ = reader.Stop()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the stop took %s beside a list that takes minutes", took)
	}
	w.sim.Heal()
}

// TestNew_SettingsThatWorkBadly are as wrong as those that cannot work at all.
func TestNew_SettingsThatWorkBadly(t *testing.T) {
	t.Parallel()
	url := postgrestest.NewURL(t)
	for _, test := range []struct {
		name   string
		change func(*app.Config)
		want   string
	}{
		{"one connection for jobs and requests", func(c *app.Config) { c.DatabaseMax = 1 }, "DAESA_DATABASE_MAX"},
		{"a list read backwards in time", func(c *app.Config) { c.ListEvery = -5 * time.Second }, "DAESA_LIST_EVERY"},
		{"a list read without pause", func(c *app.Config) { c.ListEvery = time.Millisecond }, "DAESA_LIST_EVERY"},
		{"a lag that no read covers", func(c *app.Config) { c.ListLag = time.Hour }, "DAESA_LIST_LAG"},
		{"a stop that waits for nothing", func(c *app.Config) { c.StopTimeout = -time.Second }, "DAESA_STOP_TIMEOUT"},
		{"half a security key", func(c *app.Config) { c.TossSecurityKey = "abc123" }, "TOSS_SECURITY_KEY"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cfg := app.Config{DatabaseURL: url, TossSecretKey: secretKey, Listen: "127.0.0.1:0", PrivateListen: "127.0.0.1:0"}
			test.change(&cfg)
			service, err := app.New(t.Context(), cfg)
			if err == nil {
				_ = service.Stop()
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one sentence that names %s", err, test.want)
			}
		})
	}
}
