package sim_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/app"
	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/ledger/seal"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
)

const (
	secretKey  = "test_sk_simulator"
	apiSecret  = "key-for-the-merchants-own-servers"
	merchantID = "tsimshop01"
	// listLag is how late the gateway's list may be, as the service is told.
	listLag = 10 * time.Minute
)

// town is what a story is played on: one database, a gateway with a front, one instance of the service at a time, and a
// clock for all that only the story moves.
type town struct {
	testing.TB

	db      *pgxpool.Pool // the story's own view of the books; it is never cut
	clock   *tosssim.ManualClock
	skew    *atomic.Int64 // how far the service's clock is ahead of the gateway's
	gateway *tosssim.Sim
	listing tosssim.Config // what nobody documents of the list
	front   *front
	line    *postgrestest.Line
	cfg     app.Config
	app     *app.App
	client  *http.Client
	ended   chan error
	sealed  seal.Options // what an auditor holds in hand
}

func newTown(tb testing.TB, opening time.Time, listing tosssim.Config) *town {
	tb.Helper()
	t := &town{
		TB: tb, clock: tosssim.NewManualClock(opening), skew: &atomic.Int64{}, line: postgrestest.NewLine(),
		client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 4}},
	}
	url := postgrestest.NewURL(tb)
	var err error
	t.db, err = postgres.Open(tb.Context(), postgres.Config{URL: url, MaxConns: 3, ApplicationName: "sim"})
	t.must(err)
	tb.Cleanup(t.db.Close)
	t.listing = listing
	t.gateway = tosssim.New(tosssim.Config{
		SecretKey: secretKey, MerchantID: merchantID, Clock: t.clock, CancelRowSign: listing.CancelRowSign, FallenRow: listing.FallenRow,
	})
	t.gateway.SetDelivery(tosssim.DeliveryPlan{})
	t.front = newFront(t.gateway, t.clock)
	server := httptest.NewServer(t.front)
	tb.Cleanup(func() {
		t.gateway.Close()
		server.Close()
	})
	t.cfg = app.Config{
		DatabaseURL: url, Listen: "127.0.0.1:0", PrivateListen: "127.0.0.1:0", TossURL: server.URL, TossSecretKey: secretKey,
		MerchantID: merchantID, OrderPattern: "^order-", APIKeys: []string{"shop=" + apiSecret}, OpeningAt: opening, ListLag: listLag,
		RateLimit: 1_000_000, ConfirmRateLimit: 1_000_000, DatabaseMax: 4, StopTimeout: 20 * time.Second, Paths: quick(),
		Breakers: indifferent(), Now: t.now, Dial: t.line.Dial, Log: slog.New(slog.DiscardHandler),
	}
	t.cfg.SealKeyFile = filepath.Join(tb.TempDir(), "seal.pem")
	key, err := seal.GenerateKey(t.cfg.SealKeyFile)
	t.must(err)
	t.sealed = seal.Options{Keys: []ed25519.PublicKey{key.Public()}}
	t.start()
	tb.Cleanup(t.stop)
	return t
}

// now is the service's clock.
func (t *town) now() time.Time { return t.clock.Now().Add(time.Duration(t.skew.Load())) }

// quick lets a silent gateway cost little of the machine's time. One question at a time, so that a seed is one story.
func quick() pgclient.Paths {
	once := pgclient.Path{
		Cap: 1, Attempt: 400 * time.Millisecond, Connect: 400 * time.Millisecond, Attempts: 1, Wait: -1,
		BackoffMin: time.Millisecond, BackoffMax: time.Millisecond, Total: 500 * time.Millisecond,
	}
	twice := once
	twice.Attempts, twice.Total = 2, time.Second
	list := once
	list.Attempt, list.Connect, list.Total = 4*time.Second, 2*time.Second, 5*time.Second
	return pgclient.Paths{Confirm: twice, Cancel: twice, Query: once, Recover: once, List: list}
}

// indifferent breakers never open: when they close again would depend on the machine.
func indifferent() pgclient.Breakers {
	never := pgclient.BreakerLimits{Window: 1000, MinCalls: 1000, FailurePercent: 100, OpenFor: time.Millisecond}
	return pgclient.Breakers{Money: never, Query: never, Recover: never}
}

// start starts an instance that does nothing by itself: its jobs run when the story says so.
func (t *town) start() {
	t.Helper()
	instance, err := app.New(context.WithoutCancel(t.Context()), t.cfg)
	t.must(err)
	t.app, t.ended = instance, make(chan error, 1)
	ended := t.ended
	go func() { ended <- instance.ServeWithoutJobs() }()
	t.gateway.SetWebhookURL(instance.URL() + "/webhooks/toss")
}

// stop ends the instance; more than once is once.
func (t *town) stop() {
	if t.app == nil {
		return
	}
	if err := t.app.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if err := <-t.ended; err != nil {
		t.Errorf("serve: %v", err)
	}
	t.app = nil
	t.client.CloseIdleConnections()
}

// restart replaces the instance by a fresh one, over a line that is whole.
func (t *town) restart() {
	t.Helper()
	t.line.Mend()
	t.stop()
	t.start()
}

func (t *town) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// answer is what the service answered: 0 when it did not.
type answer struct {
	code   int
	Status json.RawMessage `json:"status"`
	Code   string          `json:"code"`
	body   []byte
}

// is the answer in short: its HTTP status, and the status of what it is about or the code of the problem.
func (a answer) is() string {
	var status string
	if json.Unmarshal(a.Status, &status) != nil {
		status = a.Code
	}
	return http.StatusText(a.code) + " " + status
}

// post sends what the merchant's server or the buyer's browser sends.
func (t *town) post(path, key string, body map[string]any) answer {
	t.Helper()
	content, err := json.Marshal(body)
	t.must(err)
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, t.app.URL()+path, bytes.NewReader(content))
	t.must(err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+apiSecret)
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := t.client.Do(request)
	if err != nil {
		return answer{}
	}
	defer response.Body.Close()
	got := answer{code: response.StatusCode}
	got.body, _ = io.ReadAll(response.Body)
	_ = json.Unmarshal(got.body, &got) // what is no object has no fields
	if got.code == http.StatusInternalServerError {
		t.Errorf("%s was answered 500: %s", path, got.body)
	}
	return got
}

// rowsOf reads rows of the books.
func rowsOf[T any](t *town, sql string, args ...any) []T {
	t.Helper()
	rows, err := t.db.Query(context.WithoutCancel(t.Context()), sql, args...)
	t.must(err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[T])
	t.must(err)
	return all
}
