package checkout

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"daesa/internal/postgres/postgrestest"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
)

// shop is a merchant: the routes over real HTTP, a database of its own, and a simulated gateway.
type shop struct {
	t       *testing.T
	db      *pgxpool.Pool
	sim     *tosssim.Sim
	handler *Handler
	ledger  *ledger.Ledger
	notices *Notices
	metrics *Metrics
	reg     *prometheus.Registry
	url     string
	ahead   atomic.Int64 // how far the shop's clock is ahead
	orders  atomic.Int64
}

// shopOptions are what a test wants different.
type shopOptions struct {
	db     *pgxpool.Pool
	paths  pgclient.Paths
	config func(*Config)
}

// quickPaths makes timeouts short enough to wait for.
func quickPaths() pgclient.Paths {
	quick := pgclient.Path{
		Attempt: 400 * time.Millisecond, Connect: 300 * time.Millisecond, BackoffMin: time.Millisecond,
		BackoffMax: 5 * time.Millisecond, Total: 3 * time.Second, Attempts: 1,
	}
	paths := pgclient.Paths{Confirm: quick, Cancel: quick, Query: quick, Recover: quick}
	paths.Recover.Wait = time.Second
	return paths
}

func open(t *testing.T, o shopOptions) *shop {
	t.Helper()
	if o.db == nil {
		o.db = postgrestest.New(t)
	}
	s := &shop{t: t, db: o.db, reg: prometheus.NewPedanticRegistry()}
	s.sim = tosssim.New(tosssim.Config{})
	gateway := httptest.NewServer(s.sim.Handler())
	t.Cleanup(gateway.Close)
	t.Cleanup(s.sim.Close)
	reg := s.reg
	now := func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }
	log := slog.New(slog.DiscardHandler)
	client, err := pgclient.New(pgclient.Config{
		BaseURL: gateway.URL, SecretKey: "test_sk_simulator", Paths: o.paths, Metrics: pgclient.NewMetrics(reg), Log: log, Now: now,
	})
	must(t, err)
	t.Cleanup(client.Close)
	s.notices, err = NewNotices(log)
	must(t, err)
	s.ledger, err = ledger.New(ledger.Config{Notify: s.notices, Metrics: ledger.NewMetrics(reg), Now: now})
	must(t, err)
	s.metrics = NewMetrics(reg)
	cfg := Config{
		DB: o.db, Ledger: s.ledger, Gateway: client, Notices: s.notices, TokenKey: []byte("0123456789abcdef"),
		Metrics: s.metrics, Log: log, Now: now,
	}
	if o.config != nil {
		o.config(&cfg)
	}
	s.handler, err = New(cfg)
	must(t, err)
	s.serve(log)
	t.Cleanup(func() {
		if !t.Failed() {
			ledgertest.RequireSound(t, s.db)
		}
	})
	return s
}

// serve mounts the routes as the service does: all but the approval and a status address need an API key.
func (s *shop) serve(log *slog.Logger) {
	problems, err := web.NewProblems(testProblems())
	must(s.t, err)
	adapter, err := web.New(web.Config{Problems: problems, Log: log})
	must(s.t, err)
	key, err := web.NewKey("backoffice", "backoffice-secret-1")
	must(s.t, err)
	other, err := web.NewKey("second", "second-secret-00001")
	must(s.t, err)
	keys := web.Keys{key, other}
	scoped, err := web.NewBearer(web.BearerConfig{Adapter: adapter, Recognize: func(_ context.Context, token string) (web.Caller, error) {
		name, found := keys.Find(token)
		if !found {
			return web.Caller{}, web.ErrUnauthorized
		}
		return web.Caller{Name: name, May: func(string) bool { return true }}, nil
	}})
	must(s.t, err)
	bearer := scoped("everything")
	h, r := s.handler, chi.NewRouter()
	r.Use(web.WithRequestID)
	r.Post("/v1/payments/confirm", adapter.Handle(h.Confirm))
	r.Get("/v1/payments/{payment_key}", func(w http.ResponseWriter, r *http.Request) {
		var get http.Handler = adapter.Handle(h.GetPayment)
		if !r.URL.Query().Has("token") {
			get = bearer(get)
		}
		get.ServeHTTP(w, r)
	})
	r.Group(func(r chi.Router) {
		r.Use(bearer)
		r.Post("/v1/orders", adapter.Handle(h.CreateOrder))
		r.Get("/v1/orders/{order_id}", adapter.Handle(h.GetOrder))
		r.Post("/v1/payments/{payment_key}/cancel", adapter.Handle(h.CancelPayment))
		r.Get("/v1/cancels/{request_id}", adapter.Handle(h.GetCancel))
		r.Get("/v1/customers/{customer_id}/credits", adapter.Handle(h.GetCredits))
		r.Post("/v1/customers/{customer_id}/credits/spend", adapter.Handle(h.SpendCredits))
		r.Get("/v1/events", adapter.Handle(h.ListEvents))
		r.Post("/v1/events/{event_id}/resend", adapter.Handle(h.ResendEvent))
	})
	server := httptest.NewServer(r)
	s.t.Cleanup(server.Close)
	s.url = server.URL
}

func testProblems() []web.ProblemRow {
	row := func(err error, status int, code string) web.ProblemRow {
		return web.ProblemRow{Err: err, Status: status, Code: code, Title: err.Error()}
	}
	return []web.ProblemRow{
		row(ErrUnavailable, 503, "database_unavailable"),
		row(ErrRequest, 400, "invalid_request"), row(ErrAmount, 400, "amount_malformed"),
		row(ErrRefundAccount, 400, "refund_account_required"), row(ErrKeyMissing, 400, "idempotency_key_missing"),
		row(ErrRefused, 402, "payment_refused"), row(ErrNoEvent, 404, "event_not_found"),
		row(ErrCanceled, 409, "payment_canceled"), row(ErrCancelRefused, 409, "cancel_refused"),
		row(ErrBooksBehind, 409, "refundable_changed"), row(ErrInFlight, 409, "request_in_flight"),
		row(ErrKeyReused, 422, "idempotency_key_reused"), row(ErrMisconfigured, 502, "gateway_setup"),
		row(ErrUnprocessed, 503, "gateway_unprocessed"), row(ErrBusy, 503, "gateway_busy"), row(ErrDown, 503, "gateway_down"),
		row(ledger.ErrAmountDiffers, 400, "amount_mismatch"), row(ledger.ErrNotFound, 404, "not_found"),
		row(ledger.ErrOrderExpired, 409, "order_expired"), row(ledger.ErrOrderTaken, 409, "order_taken"),
		row(ledger.ErrOtherOrder, 409, "other_order"), row(ledger.ErrOrderDiffers, 409, "order_differs"),
		row(ledger.ErrCancelUnderWay, 409, "cancel_under_way"), row(ledger.ErrNotCancelable, 409, "not_cancelable"),
		row(ledger.ErrCancelTooMuch, 409, "cancel_too_much"), row(ledger.ErrCancelPart, 409, "cancel_part"),
		row(ledger.ErrCreditsShort, 409, "credits_short"), row(ledger.ErrSpendDiffers, 422, "spend_differs"),
		row(ErrUnderWay, 409, "confirm_under_way"), row(ErrStoreDeclined, 409, "store_declined"),
		row(ErrStoreLate, 503, "store_late"), row(ErrStoreDown, 503, "store_down"),
		row(web.ErrUnauthorized, 401, "unauthorized"), row(web.ErrBodyMalformed, 400, "malformed"),
		row(web.ErrUnsupportedMedia, 415, "media"),
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// said is an answer of the shop.
type said struct {
	status int
	header http.Header
	body   map[string]any
}

func (a said) text(name string) string {
	s, _ := a.body[name].(string)
	return s
}

// call sends a request with an API key; headers come in pairs.
func (s *shop) call(method, path string, body any, headers ...string) said {
	s.t.Helper()
	answer, err := s.try(s.t.Context(), method, path, body, headers...)
	must(s.t, err)
	return answer
}

func (s *shop) try(ctx context.Context, method, path string, body any, headers ...string) (said, error) {
	raw, ok := body.(string)
	if !ok && body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return said{}, err
		}
		raw = string(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader([]byte(raw)))
	if err != nil {
		return said{}, err
	}
	request.Header.Set("Authorization", "Bearer backoffice-secret-1")
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return said{}, err
	}
	defer response.Body.Close()
	answer := said{status: response.StatusCode, header: response.Header}
	decoder := json.NewDecoder(response.Body)
	decoder.UseNumber()
	if err := decoder.Decode(&answer.body); err != nil {
		return said{}, fmt.Errorf("answer %d: %w", answer.status, err)
	}
	return answer, nil
}

// order makes an order and an authenticated payment for it.
func (s *shop) order(amount int64, extra ...any) (orderID, paymentKey string) {
	s.t.Helper()
	orderID = s.bareOrder(amount, extra...)
	return orderID, s.sim.Authenticate(tosssim.Checkout{OrderID: orderID, OrderName: "시험 상품", Amount: amount})
}

func (s *shop) bareOrder(amount int64, extra ...any) string {
	s.t.Helper()
	orderID := fmt.Sprintf("order-%04d", s.orders.Add(1))
	body := map[string]any{"order_id": orderID, "amount": amount, "name": "시험 상품"}
	for i := 0; i+1 < len(extra); i += 2 {
		body[extra[i].(string)] = extra[i+1]
	}
	if answer := s.call("POST", "/v1/orders", body, keyHeader, "create-"+orderID); answer.status != http.StatusCreated {
		s.t.Fatalf("create order: got %d %v, want 201", answer.status, answer.body)
	}
	return orderID
}

func confirmOf(paymentKey, orderID string, amount any) map[string]any {
	return map[string]any{"paymentKey": paymentKey, "orderId": orderID, "amount": amount}
}

func (s *shop) confirm(paymentKey, orderID string, amount any) said {
	s.t.Helper()
	return s.call("POST", "/v1/payments/confirm", confirmOf(paymentKey, orderID, amount), "Authorization", "")
}

// paid makes an order that is paid.
func (s *shop) paid(amount int64, extra ...any) (orderID, paymentKey string) {
	s.t.Helper()
	orderID, paymentKey = s.order(amount, extra...)
	if answer := s.confirm(paymentKey, orderID, amount); answer.status != http.StatusOK {
		s.t.Fatalf("confirm: got %d %v, want 200", answer.status, answer.body)
	}
	return orderID, paymentKey
}

func (s *shop) cancel(paymentKey, key string, body map[string]any) said {
	s.t.Helper()
	return s.call("POST", "/v1/payments/"+paymentKey+"/cancel", body, keyHeader, key)
}

// wants fails the test unless the answer has the status and the code or status given.
func (a said) wants(t *testing.T, status int, word string) {
	t.Helper()
	got := a.text("code")
	if got == "" {
		got = a.text("status")
	}
	if a.status != status || got != word {
		t.Fatalf("got %d %q in %v, want %d %q", a.status, got, a.body, status, word)
	}
}

// books is how a payment stands.
func (s *shop) books(paymentKey string) (ledger.Payment, ledger.Order) {
	s.t.Helper()
	p, o, err := ledger.Load(s.t.Context(), s.db, paymentKey)
	must(s.t, err)
	return p, o
}

func (s *shop) wantBooks(paymentKey string, status ledger.Status, order ledger.OrderStatus) {
	s.t.Helper()
	p, o := s.books(paymentKey)
	if p.Status != status || o.Status != order {
		s.t.Fatalf("books: got payment %s and order %s, want %s and %s", p.Status, o.Status, status, order)
	}
}

// effects counts the calls that changed something at the gateway.
func (s *shop) effects(op tosssim.Op, paymentKey string) int {
	n := 0
	for _, c := range s.sim.Calls() {
		if c.Op == op && c.PaymentKey == paymentKey && c.Effect {
			n++
		}
	}
	return n
}

// eventually polls a condition until it holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// wantMetric compares one series, named as the exposition format writes it.
func (s *shop) wantMetric(series string, want int64) {
	s.t.Helper()
	var text strings.Builder
	families, err := s.reg.Gather()
	must(s.t, err)
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&text, f)
		must(s.t, err)
	}
	if line := fmt.Sprintf("%s %d\n", series, want); !strings.Contains(text.String(), line) {
		s.t.Errorf("want metric %s, got\n%s", line, text.String())
	}
}
