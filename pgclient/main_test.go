package pgclient

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"daesa/internal/guard"
	"daesa/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tripper answers without a socket, so that it can be used where time is fake.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// step is what the gateway does with one call: answer, or never, or break the connection.
type step struct {
	status        int
	body          string
	retryAfter    string
	hangs, breaks bool
}

func (s step) do(ctx context.Context) (*http.Response, error) {
	switch {
	case s.hangs:
		<-ctx.Done()
		return nil, ctx.Err()
	case s.breaks:
		return nil, io.ErrUnexpectedEOF
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if s.retryAfter != "" {
		header.Set("Retry-After", s.retryAfter)
	}
	return &http.Response{StatusCode: s.status, Header: header, Body: io.NopCloser(strings.NewReader(s.body))}, nil
}

func says(status int, code string) step {
	return step{status: status, body: `{"code":"` + code + `","message":"안내"}`}
}

func shows(body string) step { return step{status: http.StatusOK, body: body} }

func page(status int) step { return step{status: status, body: "<html>"} }

// script takes the steps in turn, the last one for ever, and counts the calls.
func script(steps ...step) (transport tripper, count *atomic.Int64) {
	count = &atomic.Int64{}
	return func(r *http.Request) (*http.Response, error) {
		at := min(int(count.Add(1)), len(steps)) - 1
		return steps[at].do(r.Context())
	}, count
}

func testConfig(transport http.RoundTripper) Config {
	return Config{
		SecretKey: "test_sk_0123456789abcdef", Transport: transport,
		Metrics: NewMetrics(prometheus.NewPedanticRegistry()), Log: slog.New(slog.DiscardHandler), Now: time.Now,
	}
}

func mustNew(tb testing.TB, cfg Config) *Client {
	tb.Helper()
	c, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// fixture reads a file of testdata.
func fixture(tb testing.TB, name string) []byte {
	tb.Helper()
	body, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return body
}

// payment is a card payment of 50,000 won with some fields changed; nil removes one.
func payment(changes map[string]any) string {
	fields := map[string]any{
		"version": "2022-11-16", "paymentKey": "pk_1", "orderId": "order_1", "mId": "tshop", "currency": "KRW",
		"method": "카드", "totalAmount": 50000, "balanceAmount": 50000, "suppliedAmount": 45455, "vat": 4545,
		"taxFreeAmount": 0, "taxExemptionAmount": 0, "status": "DONE", "cancels": nil, "secret": nil,
		"requestedAt": "2026-04-15T10:12:03+09:00", "approvedAt": "2026-04-15T10:12:41+09:00",
		"lastTransactionKey": "tx_1", "card": map[string]any{"amount": 50000, "number": "12345678****000*"},
		"virtualAccount": nil,
	}
	for name, value := range changes {
		if value == absent {
			delete(fields, name)
			continue
		}
		fields[name] = value
	}
	body, _ := json.Marshal(fields)
	return string(body)
}

const absent = "\x00absent"

// cancel is one element of cancels.
func cancel(key string, amount, status any) map[string]any {
	return map[string]any{
		"transactionKey": key, "cancelAmount": amount, "cancelStatus": status, "cancelReason": "변심",
		"canceledAt": "2026-04-16T09:30:11+09:00", "refundableAmount": 0,
	}
}

func list(items ...any) []any { return items }

// failOnce tells the breaker of one call that came to nothing.
func failOnce(b *guard.Breaker) {
	if permission, err := b.Acquire(); err == nil {
		permission.Done(guard.Failed)
	}
}

// confirm reserves and approves pk_1.
func confirm(ctx context.Context, c *Client) (Result, error) {
	permit, err := c.ReserveConfirm(ctx)
	if err != nil {
		return Result{}, err
	}
	defer permit.Release()
	return c.Confirm(ctx, permit, ConfirmRequest{
		PaymentKey: "pk_1", OrderID: "order_1", Amount: ledger.Won(50000), IdempotencyKey: "confirm-pk_1-1",
	}), nil
}
