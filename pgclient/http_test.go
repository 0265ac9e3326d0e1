package pgclient

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"daesa/ledger"
)

// quick are limits short enough to wait for, and long enough for a busy machine.
func quick(url string) Config {
	cfg := testConfig(nil)
	cfg.BaseURL = url
	path := Path{
		Wait: -1, Connect: 500 * time.Millisecond, Attempt: 800 * time.Millisecond,
		BackoffMin: time.Millisecond, BackoffMax: 2 * time.Millisecond, Total: 3 * time.Second, BodyMax: 1 << 16,
	}
	cfg.Paths = Paths{Confirm: path, Cancel: path, Query: path, Recover: path, List: path}
	return cfg
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func TestHTTP_WhatIsSent(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var requests []*http.Request
	var bodies []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		requests, bodies = append(requests, r), append(bodies, string(body))
		if len(requests) == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, payment(nil))
	})
	c := mustNew(t, quick(url))
	if got, err := confirm(t.Context(), c); err != nil || got.Verdict != VerdictDone || got.Observation.Channel != ledger.ChannelConfirm {
		t.Fatal(got, err)
	}
	for i, r := range requests {
		want := `{"paymentKey":"pk_1","orderId":"order_1","amount":50000}`
		if r.Method != http.MethodPost || r.URL.Path != "/v1/payments/confirm" || bodies[i] != want ||
			r.Header.Get("Idempotency-Key") != "confirm-pk_1-1" || r.Header.Get("Content-Type") != "application/json" ||
			r.Header.Get("Accept-Language") != "ko-KR" || r.Header.Get("Accept-Encoding") != "" ||
			r.Header.Get("Authorization") != "Basic dGVzdF9za18wMTIzNDU2Nzg5YWJjZGVmOg==" {
			t.Errorf("attempt %d: %s %s %s %v", i+1, r.Method, r.URL, bodies[i], r.Header)
		}
	}
	permit, err := c.ReserveCancel(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer permit.Release()
	part := ledger.Won(12000)
	for _, amount := range []*ledger.Money{nil, &part} {
		c.Cancel(t.Context(), permit, CancelRequest{
			PaymentKey: "pk_1", Reason: "변심\x00", Amount: amount, Refundable: ledger.Won(50000), IdempotencyKey: "cancel-1",
			RefundAccount: &RefundAccount{Bank: "20", AccountNumber: "1", HolderName: "홍길동"},
		})
	}
	want := []string{
		`{"cancelReason":"변심","refundableAmount":50000,"refundReceiveAccount":{"bank":"20","accountNumber":"1","holderName":"홍길동"}}`,
		`{"cancelReason":"변심","cancelAmount":12000,"refundableAmount":50000,"refundReceiveAccount":{"bank":"20","accountNumber":"1","holderName":"홍길동"}}`,
	}
	if requests[2].URL.Path != "/v1/payments/pk_1/cancel" || bodies[2] != want[0] || bodies[3] != want[1] {
		t.Errorf("got %s %s, %s", requests[2].URL, bodies[2], bodies[3])
	}
}

// TestHTTP_ADeadIdleConnectionIsNotResentBehindOurBack kills a kept-alive connection after the second request was
// read from it. net/http sends a POST with an Idempotency-Key again by itself if it can rewind its body; then one
// attempt would be two requests, unseen by breaker and metrics.
func TestHTTP_ADeadIdleConnectionIsNotResentBehindOurBack(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var received, connections atomic.Int64
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			wait.Go(func() { oneAnswerThenKill(conn, &received) })
		}
	})
	defer wait.Wait()
	defer func() { _ = listener.Close() }()
	cfg := quick("http://" + listener.Addr().String())
	cfg.Paths.Confirm.Attempts = 1
	c := mustNew(t, cfg)
	defer c.Close()
	if got, err := confirm(t.Context(), c); err != nil || got.Verdict != VerdictDone {
		t.Fatal(got, got.Err, err)
	}
	got, err := confirm(t.Context(), c)
	if err != nil || got.Verdict != VerdictUnknown || got.Err.Reason != ReasonConnection || got.Attempts != 1 {
		t.Fatal(got, got.Err, err)
	}
	if received.Load() != 2 || connections.Load() != 1 {
		t.Errorf("%d requests over %d connections: the second confirm must have met the kept connection, once", received.Load(), connections.Load())
	}
}

// oneAnswerThenKill answers the first request of a connection and closes it after reading the second.
func oneAnswerThenKill(conn net.Conn, received *atomic.Int64) {
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReader(conn)
	for i := range 2 {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, request.Body)
		received.Add(1)
		if i == 0 {
			body := payment(nil)
			response := http.Response{
				StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
			}
			_ = response.Write(conn)
		}
	}
}

func TestHTTP_ABrokenAnswerIsNeverAnAnswer(t *testing.T) {
	t.Parallel()
	bomb := gzipped(bytes.Repeat([]byte(" "), 8<<20))
	for _, test := range []struct {
		name    string
		want    Reason
		handler http.HandlerFunc
	}{
		{"page 200", ReasonUnreadable, status(200, "text/html", "<html>")},
		{"page 403", ReasonUnreadable, status(403, "text/html", "<html>")},
		{"page 502", ReasonUnreadable, status(502, "text/html", "<html>")},
		{"code in a 504", ReasonServerError, status(504, "application/json", `{"code":"COMMON_ERROR"}`)},
		{"new error envelope", ReasonKeyRefused, status(401, "application/json", `{"version":"1","traceId":"t","error":{"code":"UNAUTHORIZED_KEY","message":"m"}}`)},
		{"empty 200", ReasonUnreadable, status(200, "application/json", "")},
		{"204", ReasonUnreadable, status(204, "", "")},
		{"201", ReasonUnreadable, status(201, "application/json", payment(nil))},
		{"OK", ReasonUnreadable, status(200, "text/plain", "OK")},
		{"half an object", ReasonUnreadable, status(200, "application/json", payment(nil)[:100])},
		{"two objects", ReasonUnreadable, status(200, "application/json", payment(nil)+payment(nil))},
		{"null", ReasonUnreadable, status(200, "application/json", "null")},
		{"deep", ReasonUnreadable, status(200, "application/json", strings.Repeat("[", 20000))},
		{"too large", ReasonUnreadable, status(200, "application/json", payment(nil)+strings.Repeat(" ", 1<<17))},
		{"too large a page", ReasonUnreadable, status(500, "text/html", strings.Repeat(" ", 1<<17))},
		{"compressed unasked", ReasonUnreadable, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		}},
		{"body stalls", ReasonTimeout, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, payment(nil)[:50])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
		{"hangs", ReasonTimeout, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"cut off", ReasonConnection, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5000")
			_, _ = io.WriteString(w, payment(nil)[:50])
		}},
		{"reset", ReasonConnection, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		{"not found", ReasonNotFound, status(404, "application/json", `{"code":"NOT_FOUND_PAYMENT","message":"m"}`)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := mustNew(t, quick(serve(t, test.handler)))
			began := time.Now()
			_, err := c.Query(t.Context(), ledger.ChannelWebhook, "pk_1")
			wantReason(t, err, test.want)
			if strings.Contains(err.Error(), "pk_1") || strings.Contains(err.Error(), "html>") || strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("the error tells too much: %v", err)
			}
			if time.Since(began) > 5*time.Second {
				t.Error("took longer than its limit")
			}
		})
	}
}

func status(code int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

func TestHTTP_RedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var stolen atomic.Int64
	other := serve(t, func(http.ResponseWriter, *http.Request) { stolen.Add(1) })
	for _, code := range []int{301, 302, 307, 308} {
		c := mustNew(t, quick(serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, code) })))
		_, err := c.Query(t.Context(), ledger.ChannelWebhook, "pk_1")
		wantReason(t, err, ReasonUnreadable)
		if got, _ := confirm(t.Context(), c); got.Verdict != VerdictUnknown {
			t.Errorf("%d: got %s", code, got.Verdict)
		}
	}
	if stolen.Load() != 0 {
		t.Error("our key went to another host")
	}
}

func TestHTTP_KeysThatAreNotPlainAreNeverSent(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	c := mustNew(t, quick(serve(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })))
	for _, key := range []string{"", "../settlements", "pk/cancel", "pk?x=1", "pk%2Fcancel", "http://127.0.0.1:9/", "pk\nX: 1"} {
		_, err := c.Query(t.Context(), ledger.ChannelWebhook, key)
		wantReason(t, err, ReasonRefused)
		permit, _ := c.ReserveConfirm(t.Context())
		if got := c.Confirm(t.Context(), permit, ConfirmRequest{PaymentKey: key, OrderID: "order_1", Amount: ledger.Won(1), IdempotencyKey: "k"}); got.Verdict != VerdictUnprocessed || got.Attempts != 0 {
			t.Errorf("%q: %v", key, got)
		}
		permit.Release()
	}
	for _, id := range []string{"", "..", ".", "a b", "a\x00"} {
		_, err := c.RecoverOrder(t.Context(), ledger.ChannelRecover, id)
		wantReason(t, err, ReasonRefused)
	}
	if calls.Load() != 0 {
		t.Errorf("%d requests were sent", calls.Load())
	}
}

func TestHTTP_OrdersOfOddFormStayOnTheirPath(t *testing.T) {
	t.Parallel()
	var path atomic.Value
	c := mustNew(t, quick(serve(t, func(w http.ResponseWriter, r *http.Request) {
		path.Store(r.URL.EscapedPath())
		_, _ = io.WriteString(w, payment(map[string]any{"orderId": "../71?x", "paymentKey": "pk_2"}))
	})))
	seen, err := c.RecoverOrder(t.Context(), ledger.ChannelRecover, "../71?x")
	if err != nil || path.Load() != "/v1/payments/orders/..%2F71%3Fx" || seen.PaymentKey != "pk_2" {
		t.Error(seen, err, path.Load())
	}
	_, err = c.RecoverOrder(t.Context(), ledger.ChannelRecover, "order_1")
	wantReason(t, err, ReasonInconsistent)
}

func TestHTTP_ASilentAddressCostsNoMoreThanItsLimit(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // connections are taken by the kernel and never read
	c := mustNew(t, quick("http://"+listener.Addr().String()))
	began := time.Now()
	_, err = c.Query(t.Context(), ledger.ChannelWebhook, "pk_1")
	wantReason(t, err, ReasonTimeout)
	if took := time.Since(began); took < 800*time.Millisecond || took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	_ = listener.Close()
	_, err = c.Query(t.Context(), ledger.ChannelWebhook, "pk_1")
	wantReason(t, err, ReasonConnection)
}

func TestHTTP_TheCallersDeadlineEndsTheCall(t *testing.T) {
	t.Parallel()
	c := mustNew(t, quick(serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })))
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	_, err := c.Query(ctx, ledger.ChannelWebhook, "pk_1")
	wantReason(t, err, ReasonTimeout)
}

func TestHTTP_TraceAndMessageReachTheErrorBounded(t *testing.T) {
	t.Parallel()
	c := mustNew(t, quick(serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Tosspayments-Trace-Id", "trace-1")
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusTooManyRequests)
		_ = json.NewEncoder(w).Encode(map[string]any{"code": strings.Repeat("X", 900), "message": "느려요\x00" + strings.Repeat("가", 900)})
	})))
	_, err := c.Query(t.Context(), ledger.ChannelWebhook, "pk_1")
	var failure *Error
	if !errors.As(err, &failure) || failure.TraceID != "trace-1" || failure.RetryAfter != 3*time.Second || failure.Reason != ReasonRateLimited ||
		len(failure.Code) != 100 || !strings.HasPrefix(failure.Message, "느려요가") || len([]rune(failure.Message)) != 510 {
		t.Errorf("%+v", failure)
	}
}
