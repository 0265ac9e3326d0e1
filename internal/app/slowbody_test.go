package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"daesa/internal/app"
	"daesa/pgclient/tosssim"
)

// sendSlowly begins a request from an address behind the proxy and leaves its body open.
func (w *world) sendSlowly(path, address string) net.Conn {
	conn, err := new(net.Dialer).DialContext(w.Context(), "tcp", strings.TrimPrefix(w.app.URL(), "http://"))
	if err != nil {
		w.Error(err)
		return nil
	}
	w.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: daesa\r\nX-Forwarded-For: %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{", path, address)
	if err != nil {
		w.Error(err)
	}
	return conn
}

// crowd begins as many requests from each of so many addresses, and returns once more of them are under way than most.
func (w *world) crowd(path string, addresses, each, most int) {
	w.Helper()
	var begin sync.WaitGroup
	for n := range addresses * each {
		begin.Go(func() { w.sendSlowly(path, fmt.Sprintf("198.51.100.%d", n%addresses)) })
	}
	begin.Wait()
	w.eventually("more requests have begun than the class has slots", func() bool {
		begun := int(series(w, w.app.Registry())["daesa_web_in_flight_requests{}"])
		return begun+w.app.counted("daesa_admission_gate_shed_total") > most
	})
}

// requireLimited requires that a source which has spent its limit is told so before its body is here.
func (w *world) requireLimited(path, address string) {
	w.Helper()
	conn := w.sendSlowly(path, address)
	if conn == nil {
		return
	}
	w.must(conn.SetReadDeadline(time.Now().Add(10 * time.Second))) // far less than its body would have
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	w.must(err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusTooManyRequests {
		text, _ := io.ReadAll(answer.Body)
		w.Errorf("one request more from an address got %d before its body: %s", answer.StatusCode, text)
	}
}

// TestConfirm_SlowBodiesHoldNobodyUp: anybody can begin a confirm and send its body slowly, from many addresses. That takes
// no slot of the class that the merchant's own orders and cancels, and other buyers, need.
func TestConfirm_SlowBodiesHoldNobodyUp(t *testing.T) {
	t.Parallel()
	const path, addresses, each, classMost = "/v1/payments/confirm", 20, 12, 176
	w := newWorld(t, func(c *app.Config, _ *tosssim.Config) {
		c.ConfirmRateLimit, c.TrustedProxies = each, []string{"127.0.0.0/8"}
	})
	paid, other := w.sell("order-paid", 50_000), w.open("order-other", 30_000)
	w.crowd(path, addresses, each, classMost)

	w.app.shop.cancel(paid, "cancel-beside", 0).want(t, "the merchant's cancel", "200 done")
	w.app.shop.order("order-beside", 10_000)
	w.app.shop.confirm(other, "order-other", 30_000).want(t, "another buyer's confirm", "200 done")
	w.requireLimited(path, "198.51.100.1")
	if got := w.app.counted("daesa_admission_gate_shed_total"); got != 0 {
		t.Errorf("%d requests were shed", got)
	}
	w.quiesce()
	w.requireAgreed()
}

// TestNotice_SlowBodiesHoldNobodyUp: nor does a stranger's slow notice take one of those that real notices need. A source that
// has spent its limit costs neither.
func TestNotice_SlowBodiesHoldNobodyUp(t *testing.T) {
	t.Parallel()
	const path, addresses, each, classMost = "/webhooks/toss", 20, 10, 160
	w := newWorld(t, func(c *app.Config, _ *tosssim.Config) {
		c.RateLimit, c.TrustedProxies = each, []string{"127.0.0.0/8"}
	})
	paid := w.sell("order-paid", 50_000)
	w.dashboard(paid, 0)
	notice := w.newest(paid)
	w.crowd(path, addresses, each, classMost)

	status, err := w.sim.Deliver(notice.ID)
	w.must(err)
	if status != http.StatusOK {
		t.Errorf("a notice beside them was answered %d, want 200", status)
	}
	w.requireBooked(notice)
	w.requireLimited(path, "198.51.100.1")
	if got := w.app.counted("daesa_admission_gate_shed_total"); got != 0 {
		t.Errorf("%d requests were shed", got)
	}
	w.quiesce()
	w.requireAgreed()
}
