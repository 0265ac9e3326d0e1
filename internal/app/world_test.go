package app_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/app"
	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
)

const (
	secretKey = "test_sk_simulator"
	apiSecret = "key-for-the-merchants-own-servers"
)

// opening is when every story begins: a Wednesday morning in Seoul.
func opening() time.Time { return time.Date(2026, 4, 15, 10, 0, 0, 0, ledger.Seoul()) }

// world is a merchant and its gateway: one database, any number of instances over it, and one clock for all.
type world struct {
	testing.TB

	url     string
	db      *pgxpool.Pool // the test's own view of the books; it is never cut
	clock   *tosssim.ManualClock
	sim     *tosssim.Sim
	cfg     app.Config // of every instance
	app     *instance  // the one that is spoken to
	logs    *logBook
	witness *witness
}

// setting changes what a world is made of.
type setting func(*app.Config, *tosssim.Config)

// newWorld opens the books, starts the gateway and one instance. At the end of the test the books must be sound and the
// gateway must have seen nothing that was not intended first.
func newWorld(tb testing.TB, settings ...setting) *world {
	tb.Helper()
	w := &world{TB: tb, url: postgrestest.NewURL(tb), clock: tosssim.NewManualClock(opening()), logs: &logBook{}}
	var err error
	w.db, err = postgres.Open(tb.Context(), postgres.Config{URL: w.url, MaxConns: 4, ApplicationName: "test"})
	w.must(err)
	tb.Cleanup(w.db.Close)
	simulated := tosssim.Config{SecretKey: secretKey, Clock: w.clock}
	w.cfg = app.Config{
		DatabaseURL: w.url, Listen: "127.0.0.1:0", PrivateListen: "127.0.0.1:0", TossSecretKey: secretKey,
		APIKeys: []string{"shop=" + apiSecret}, OpeningAt: opening().Add(-time.Hour), RateLimit: 1_000_000, ConfirmRateLimit: 1_000_000, DatabaseMax: 8, LimitTimeout: 20 * time.Second,
		StopTimeout: 20 * time.Second, Paths: patient(), Breakers: indifferent(), Now: w.clock.Now,
		Log: slog.New(slog.NewJSONHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, s := range settings {
		s(&w.cfg, &simulated)
	}
	w.openGateway(simulated)
	w.witness.store = w.cfg.StoreURL != ""
	w.app = w.start()
	w.listen()
	tb.Cleanup(w.finish)
	return w
}

func (w *world) openGateway(cfg tosssim.Config) {
	w.Helper()
	w.sim = tosssim.New(cfg)
	w.sim.SetDelivery(tosssim.DeliveryPlan{Hold: true})
	w.witness = &witness{db: w.db, next: w.sim.Handler()}
	server := httptest.NewServer(w.witness)
	w.Cleanup(func() {
		w.sim.Close()
		server.Close()
	})
	w.cfg.TossURL = server.URL
}

// finish holds the books against everything that must be true at any time.
func (w *world) finish() {
	w.Helper()
	w.app.stop()
	if w.Failed() {
		return
	}
	ledgertest.RequireSound(w, w.db)
	for _, call := range w.witness.seen() {
		w.Errorf("the gateway was sent something that no committed intent covers: %s", call)
	}
}

// patient gives every call of the gateway client the time that a busy machine needs, and no second attempt that would
// make the number of calls a matter of luck.
func patient() pgclient.Paths {
	once := pgclient.Path{
		Attempt: 8 * time.Second, Connect: 5 * time.Second, Attempts: 1, Wait: -1, BackoffMin: time.Millisecond,
		BackoffMax: time.Millisecond, Total: 9 * time.Second,
	}
	query := once
	query.Attempt, query.Connect, query.Total = 3*time.Second, 2*time.Second, 3*time.Second
	return pgclient.Paths{Confirm: once, Cancel: once, Query: query, Recover: once, List: once}
}

// hasty is patient with an end that a test can wait for.
func hasty(c *app.Config, _ *tosssim.Config) {
	limits := pgclient.Path{
		Attempt: 500 * time.Millisecond, Connect: 500 * time.Millisecond, Attempts: 2, Wait: -1, BackoffMin: time.Millisecond,
		BackoffMax: 2 * time.Millisecond, Total: 2 * time.Second,
	}
	c.Paths.Confirm, c.Paths.Cancel = limits, limits
	limits.Attempts = 1
	c.Paths.Query = limits
}

// indifferent breakers never open for what a test does to the gateway.
func indifferent() pgclient.Breakers {
	never := pgclient.BreakerLimits{Window: 1000, MinCalls: 1000, FailurePercent: 100, OpenFor: time.Millisecond}
	return pgclient.Breakers{Money: never, Query: never, Recover: never}
}

func lazy(c *app.Config, _ *tosssim.Config) { c.Lazy = true }

// instance is one running copy of the service.
type instance struct {
	*app.App
	t      testing.TB
	cutOff bool // its stop is to fail, and the test has looked at that
	cancel context.CancelFunc
	ended  chan error
	shop   *shop
}

// start starts an instance that does nothing by itself: its jobs run when the test says so.
func (w *world) start(changes ...func(*app.Config)) *instance {
	w.Helper()
	return w.launch(func(_ context.Context, a *app.App) error { return a.ServeWithoutJobs() }, changes)
}

// run starts an instance with everything it does by itself.
func (w *world) run(changes ...func(*app.Config)) *instance {
	w.Helper()
	return w.launch(func(ctx context.Context, a *app.App) error { return a.Run(ctx) }, changes)
}

func (w *world) launch(serve func(context.Context, *app.App) error, changes []func(*app.Config)) *instance {
	w.Helper()
	cfg := w.cfg
	for _, change := range changes {
		change(&cfg)
	}
	service, err := app.New(w.Context(), cfg)
	w.must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	i := &instance{App: service, t: w.TB, cancel: cancel, ended: make(chan error, 1), shop: newShop(w.TB, service.URL())}
	ended := i.ended
	go func() { ended <- serve(ctx, service) }()
	w.Cleanup(i.stop)
	return i
}

// stop ends the instance; more than once is once.
func (i *instance) stop() {
	i.t.Helper()
	if err := i.Stop(); err != nil && !i.cutOff {
		i.t.Errorf("stop: %v", err)
	}
	i.cancel()
	if i.ended != nil {
		if err := <-i.ended; err != nil && !i.cutOff {
			i.t.Errorf("serve: %v", err)
		}
		i.ended = nil
	}
	i.shop.close()
}

// restart replaces the instance that is spoken to by a fresh one.
func (w *world) restart() {
	w.Helper()
	w.app.stop()
	w.app = w.start()
	w.listen()
}

// listen lets the gateway's notices go to the instance that is spoken to.
func (w *world) listen() { w.sim.SetWebhookURL(w.app.URL() + "/webhooks/toss") }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) sweep() {
	w.Helper()
	w.must(w.app.Sweep(w.Context()))
}

// later moves the clock and does what the service then does by itself.
func (w *world) later(d time.Duration) {
	w.Helper()
	w.clock.Advance(d)
	w.must(w.app.Tidy(w.Context()))
	w.sweep()
}

// number is the one number that a query gives.
func (w *world) number(sql string, args ...any) int64 {
	w.Helper()
	return one[int64](w, sql, args...)
}

// text is the one text that a query gives.
func (w *world) text(sql string, args ...any) string {
	w.Helper()
	return one[string](w, sql, args...)
}

func one[T any](w *world, sql string, args ...any) T {
	w.Helper()
	rows, err := w.db.Query(w.Context(), sql, args...)
	w.must(err)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	w.must(err)
	return value
}

// eventually waits until the condition holds.
func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	ctx, stop := context.WithTimeout(w.Context(), 30*time.Second)
	defer stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			w.Fatalf("still not so after 30 s: %s", what)
		case <-tick.C:
		}
	}
}

// stays requires that the condition holds for a while: that what would end it has had its chance.
func (w *world) stays(what string, holds func() bool) {
	w.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 30 {
		<-tick.C
		if !holds() {
			w.Fatalf("no longer so: %s", what)
		}
	}
}

// payment is a payment as the books have it.
func (w *world) payment(key string) ledger.Payment {
	w.Helper()
	p, _, err := ledger.Load(w.Context(), w.db, key)
	w.must(err)
	return p
}
