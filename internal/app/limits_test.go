package app_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/app"
	"daesa/pgclient/tosssim"
)

// notify posts a notice as anybody could, with headers of the sender's own making.
func (i *instance) notify(header map[string]string) reply {
	i.t.Helper()
	request := mustRequest(i.t, http.MethodPost, i.URL()+"/webhooks/toss")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	return i.notifyWith(request)
}

func (i *instance) notifyWith(request *http.Request) reply {
	i.t.Helper()
	request.Body = io.NopCloser(strings.NewReader(`{"eventType":"something.else","createdAt":"2026-04-15T10:00:00"}`))
	got, err := i.shop.send(request)
	if err != nil {
		i.t.Fatal(err)
	}
	return got
}

// TestRateLimit_InventedAddresses limits one socket as one client whatever it writes into its headers.
func TestRateLimit_InventedAddresses(t *testing.T) {
	t.Parallel()
	const limit, sent = 20, 70
	w := newWorld(t, func(c *app.Config, _ *tosssim.Config) { c.RateLimit = limit })
	refused := 0
	for n := range sent {
		address := fmt.Sprintf("198.51.100.%d", n)
		got := w.app.notify(map[string]string{"X-Forwarded-For": address, "X-Real-Ip": address, "True-Client-Ip": address, "Forwarded": "for=" + address})
		if got.code == http.StatusTooManyRequests {
			refused++
			if got.Code != "rate_limited" || got.header.Get("Retry-After") == "" {
				t.Errorf("got %s with Retry-After %q, want rate_limited and when to come again", got.is(), got.header.Get("Retry-After"))
			}
		}
	}
	if refused == 0 || refused > sent-limit {
		t.Errorf("got %d of %d refused, want at most %d to pass at once", refused, sent, limit)
	}
	counted := 0.0
	for name, value := range series(t, w.app.Registry()) {
		if strings.HasPrefix(name, "daesa_admission_rate_refused_total{") {
			counted += value
		}
	}
	if int(counted) != refused {
		t.Errorf("got %v refusals counted, want %d", counted, refused)
	}
	if got := w.text(`SELECT string_agg(DISTINCT source, ' ') FROM deliveries`); got != "127.0.0.1" {
		t.Errorf("got deliveries from %q, want the peer alone", got)
	}
	if strings.Contains(w.logs.String(), "198.51.100.") {
		t.Error("an invented address stands in the log")
	}
	told := strings.Count(w.logs.String(), "DAESA_TRUSTED_PROXIES")
	if got := w.app.counted("daesa_web_untrusted_forwarded_total"); got != sent || told != 1 {
		t.Errorf("%d of %d counted as of a proxy that nobody has named, told %d times; want all and once", got, sent, told)
	}
}

// TestRateLimit_TrustedProxy tells the clients of a proxy of ours apart, and believes only what that proxy wrote.
func TestRateLimit_TrustedProxy(t *testing.T) {
	t.Parallel()
	const limit = 20
	w := newWorld(t, func(c *app.Config, _ *tosssim.Config) { c.RateLimit, c.TrustedProxies = limit, []string{"127.0.0.0/8"} })
	for n := range 3 * limit {
		if got := w.app.notify(map[string]string{"X-Forwarded-For": fmt.Sprintf("198.51.100.%d", n)}); got.code != http.StatusOK {
			t.Fatalf("client %d: got %s, want 200", n, got.is())
		}
	}
	refused := 0
	for n := range 3 * limit {
		if got := w.app.notify(map[string]string{"X-Forwarded-For": fmt.Sprintf("203.0.113.%d, 198.51.100.250", n)}); got.code == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused == 0 {
		t.Error("a client behind the proxy escaped its limit by inventing a client of its own")
	}
}

// TestRateLimit_Confirm limits one source that makes up payment keys, tells the clients of a proxy of ours apart, and
// leaves notices alone.
func TestRateLimit_Confirm(t *testing.T) {
	t.Parallel()
	const limit = 5
	w := newWorld(t, func(c *app.Config, _ *tosssim.Config) {
		c.ConfirmRateLimit, c.TrustedProxies = limit, []string{"127.0.0.0/8"}
	})
	confirm := func(address string) reply {
		request := mustRequest(t, http.MethodPost, w.app.URL()+"/v1/payments/confirm")
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-Forwarded-For", address)
		request.Body = io.NopCloser(strings.NewReader(`{"paymentKey":"made-up","orderId":"order-none","amount":1}`))
		got, err := w.app.shop.send(request)
		w.must(err)
		return got
	}
	for n := range 3 * limit {
		got := confirm("198.51.100.1")
		if n < limit && got.code != http.StatusNotFound {
			t.Errorf("request %d: got %s, want it looked at", n, got.is())
		}
	}
	if got := confirm("198.51.100.1"); got.code != http.StatusTooManyRequests || got.Code != "rate_limited" || got.header.Get("Retry-After") == "" {
		t.Errorf("got %s, want rate_limited and when to come again", got.is())
	}
	if got := confirm("198.51.100.2"); got.code != http.StatusNotFound {
		t.Errorf("another source: got %s, want it looked at", got.is())
	}
	if got := w.app.notify(map[string]string{"X-Forwarded-For": "198.51.100.1"}); got.code != http.StatusOK {
		t.Errorf("a notice: got %s, want 200", got.is())
	}
	if got := series(t, w.app.Registry())[`daesa_admission_rate_refused_total{rule=confirm}`]; got < limit {
		t.Errorf("got %v refusals counted, want most of those sent", got)
	}
}

// flood is a body without end that counts what was taken from it.
type flood struct {
	left    int64
	pattern string
	taken   atomic.Int64 // the transport may still read when the answer is there
}

// Read gives the pattern over and over.
func (f *flood) Read(p []byte) (int, error) {
	if f.left <= 0 {
		return 0, io.EOF
	}
	n := copy(p, strings.Repeat(f.pattern, len(p)/len(f.pattern)+1)[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	f.taken.Add(int64(n))
	return n, nil
}

// TestBodies_Bombs sends what is too large, too deep or compressed. It is refused early, with a 4xx or by hanging up,
// and everybody else is served.
func TestBodies_Bombs(t *testing.T) {
	t.Parallel()
	const huge = 100 << 20
	const takenMost = 12 << 20 // what fits into the buffers of both sockets, several times over
	w := newWorld(t)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, _ = io.Copy(zip, &flood{left: 32 << 20, pattern: " "})
	_ = zip.Close()
	deep := strings.Repeat(`{"data":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	for _, path := range []string{"/webhooks/toss", "/v1/payments/confirm", "/v1/orders"} {
		for _, bomb := range []struct {
			name     string
			body     io.Reader
			length   int64
			encoding string
		}{
			{name: "declared", body: &flood{left: huge, pattern: `{"a":1}`}, length: huge},
			{name: "chunked", body: &flood{left: huge, pattern: `{"a":1}`}, length: -1},
			{name: "long text", body: io.MultiReader(strings.NewReader(`{"cancelReason":"`), &flood{left: 10 << 20, pattern: "가"}), length: -1},
			{name: "compressed", body: bytes.NewReader(zipped.Bytes()), length: int64(zipped.Len()), encoding: "gzip"},
			{name: "deep", body: strings.NewReader(deep), length: int64(len(deep))},
		} {
			request := mustRequest(t, http.MethodPost, w.app.URL()+path)
			request.Body, request.ContentLength = io.NopCloser(bomb.body), bomb.length
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Authorization", "Bearer "+apiSecret)
			request.Header.Set("Idempotency-Key", "bomb-"+bomb.name)
			if bomb.encoding != "" {
				request.Header.Set("Content-Encoding", bomb.encoding)
			}
			got, err := w.app.shop.send(request)
			if err == nil && (got.code < 400 || got.code >= 500) {
				t.Errorf("%s to %s: got %s, want a 4xx", bomb.name, path, got.is())
			}
			if f, ok := bomb.body.(*flood); ok && f.taken.Load() > takenMost {
				t.Errorf("%s to %s: %d bytes were taken in", bomb.name, path, f.taken.Load())
			}
		}
	}
	w.sell("order-after", 50_000)
	w.quiesce()
	w.requireAgreed()
}

// TestSurface answers what it does not serve with a problem, too.
func TestSurface(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, test := range []struct{ method, path, want string }{
		{"GET", "/", "404 no_route"},
		{"GET", "/v2/orders", "404 no_route"},
		{"POST", "/webhooks/toss/", "404 no_route"},
		{"POST", "/v1/payments/..%2F..%2Fadmin/cancel", "400 invalid_request"},
		{"GET", "/webhooks/toss", "405 method_not_allowed"},
		{"DELETE", "/v1/orders", "405 method_not_allowed"},
		{"PUT", "/v1/payments/confirm", "405 method_not_allowed"},
		{"GET", "/v1/orders/none", "404 not_found"},
	} {
		got := w.app.shop.call(test.method, test.path, "key", map[string]any{"reason": "x"}).want(t, test.method+" "+test.path, test.want)
		if media := got.header.Get("Content-Type"); media != "application/problem+json" {
			t.Errorf("%s %s: got a %s, want a problem", test.method, test.path, media)
		}
		if got.code == http.StatusMethodNotAllowed && got.header.Get("Allow") == "" {
			t.Errorf("%s %s: what is allowed is not said", test.method, test.path)
		}
	}
	for _, path := range []string{"/v1/orders/none", "/v1/payments/none", "/v1/cancels/none", "/v1/customers/c/credits", "/v1/events"} {
		for _, key := range []string{"", "Bearer wrong", "Bearer " + apiSecret + "x", "Basic " + apiSecret} {
			request := mustRequest(t, http.MethodGet, w.app.URL()+path)
			request.Header.Set("Authorization", key)
			got, err := w.app.shop.send(request)
			w.must(err)
			got.want(t, path+" with "+key, "401 unauthorized")
		}
	}
}

// TestCORS lets the merchant's pages confirm and nobody else's.
func TestCORS(t *testing.T) {
	t.Parallel()
	const ours = "https://shop.example"
	w := newWorld(t, func(c *app.Config, _ *tosssim.Config) { c.CORSOrigins = []string{ours} })
	key := w.open("order-page", 50_000)
	from := func(method, origin string) reply {
		request := mustRequest(t, method, w.app.URL()+"/v1/payments/confirm")
		request.Header.Set("Origin", origin)
		if method == http.MethodPost {
			request.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(`{"paymentKey":%q,"orderId":"order-page","amount":"50000"}`, key)))
			request.Header.Set("Content-Type", "application/json")
		} else {
			request.Header.Set("Access-Control-Request-Method", http.MethodPost)
		}
		got, err := w.app.shop.send(request)
		w.must(err)
		return got
	}
	for _, evil := range []string{"https://evil.example", "https://shop.example.evil.example", "http://shop.example", "null"} {
		from(http.MethodOptions, evil).want(t, "preflight from "+evil, "403 origin_forbidden")
		if got := from(http.MethodPost, evil).want(t, "confirm from "+evil, "403 origin_forbidden"); got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s was told that it may", evil)
		}
	}
	if got := w.sim.Count(tosssim.Confirm); got != 0 {
		t.Errorf("the gateway was called %d times for foreign pages", got)
	}
	if got := from(http.MethodOptions, ours); got.code != http.StatusNoContent || got.header.Get("Access-Control-Allow-Origin") != ours {
		t.Errorf("preflight from our page: got %d, %v", got.code, got.header)
	}
	if got := from(http.MethodPost, ours).want(t, "confirm from our page", "200 done"); got.header.Get("Access-Control-Allow-Origin") != ours {
		t.Errorf("our page may not read the answer: %v", got.header)
	}
}

// TestReady_ABusyInstanceIsReady: an instance whose connections are all at work still takes requests. Where it did not, a
// balancer would send what it has to the others, which are as busy.
func TestReady_ABusyInstanceIsReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.run(func(c *app.Config) { c.DatabaseMax = 8 })
	w.eventually("ready", func() bool { return i.ready() == "200 ready" })
	held := make(map[*pgxpool.Conn]bool)
	defer func() {
		for conn := range held {
			conn.Release()
		}
	}()
	pool := i.Money()
	for len(held) < int(pool.Config().MaxConns) { // its jobs give theirs back
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held[conn] = true
	}
	if got := i.ready(); got != "200 ready" {
		t.Errorf("got %s while every connection is at work, want 200 ready", got)
	}
}
