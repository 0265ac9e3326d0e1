package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"daesa/checkout"
	"daesa/internal/app"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// ready asks the private listener whether the instance should be sent requests.
func (i *instance) ready() string {
	got, err := i.shop.send(mustRequest(i.t, http.MethodGet, i.PrivateURL()+"/readyz"))
	if err != nil {
		return err.Error()
	}
	return got.is()
}

func mustRequest(tb testing.TB, method, url string) *http.Request {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), method, url, http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	return request
}

// inFlight is some notices and confirms that wait for a gateway which does not answer yet.
type inFlight struct {
	notices  []tosssim.Notice
	statuses chan int
	replies  chan reply
}

// fly sends notices of so many cancels and so many confirms, and returns once all of them have reached the gateway.
func (w *world) fly(canceled, confirmed int) inFlight {
	w.Helper()
	f := inFlight{statuses: make(chan int, canceled), replies: make(chan reply, confirmed)}
	f.notices = w.canceled("order-canceled", canceled)
	var keys, orders []string
	for i := range confirmed {
		orders = append(orders, fmt.Sprintf("order-confirmed-%d", i))
		keys = append(keys, w.open(orders[i], 30_000))
	}
	w.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Delay, Delay: time.Minute, N: -1})
	w.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Delay, Delay: time.Minute, N: -1})
	shop := w.app.shop
	for _, notice := range f.notices {
		go func() { f.statuses <- w.delivered(notice) }()
	}
	sold := w.sim.Count(tosssim.Confirm)
	for i := range confirmed {
		go func() {
			got, err := shop.try(context.WithoutCancel(w.Context()), http.MethodPost, "/v1/payments/confirm", "", confirmation(keys[i], orders[i], 30_000))
			if err != nil {
				got.Code = err.Error()
			}
			f.replies <- got
		}()
	}
	w.eventually("all are at the gateway", func() bool {
		arrived := w.sim.Count(tosssim.Confirm) - sold
		for _, notice := range f.notices {
			arrived += min(1, w.sim.CountKey(tosssim.Get, notice.PaymentKey))
		}
		return arrived >= canceled+confirmed
	})
	return f
}

// canceled sells and cancels so many orders at the gateway, and returns their notices.
func (w *world) canceled(order string, n int) (notices []tosssim.Notice) {
	w.Helper()
	for i := range n {
		key := w.sell(fmt.Sprintf("%s-%d", order, i), 50_000)
		w.dashboard(key, 0)
		notices = append(notices, w.newest(key))
	}
	return notices
}

// delivered is what a notice was answered, 0 where nobody answered.
func (w *world) delivered(notice tosssim.Notice) int {
	status, err := w.sim.Deliver(notice.ID)
	if err != nil {
		return 0
	}
	return status
}

// land requires that everything in flight was answered for good.
func (w *world) land(f inFlight) {
	w.Helper()
	for range f.notices {
		if got := <-f.statuses; got != http.StatusOK {
			w.Errorf("a notice in flight was answered %d, want 200", got)
		}
	}
	for range cap(f.replies) {
		if got := <-f.replies; got.is() != "200 done" {
			w.Errorf("a confirm in flight was answered %s, want 200 done", got.is())
		}
	}
	for _, n := range f.notices {
		w.requireBooked(n)
	}
}

// TestStop_FinishesWhatIsInFlight stops an instance that is at work: readiness goes first, nothing new is let in, what
// is in flight is finished and answered, and the stop keeps within its limit.
func TestStop_FinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.app.stop()
	w.app = w.run()
	w.listen()
	w.eventually("ready", func() bool { return w.app.ready() == "200 ready" })
	f := w.fly(6, 6)

	stopped := make(chan error, 1)
	go func() { stopped <- w.app.Stop() }()
	w.eventually("not ready", func() bool { return w.app.ready() == "503 stopping" })
	w.eventually("new connections are refused", func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(w.app.URL(), "http://"))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	select {
	case err := <-stopped:
		t.Fatalf("stopped with requests in flight: %v", err)
	default:
	}
	w.sim.Heal()
	w.land(f)
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
	if err := w.app.Stop(); err != nil {
		t.Errorf("a second stop: %v", err)
	}
	w.restart()
	w.quiesce()
	w.requireAgreed()
}

// TestStop_IsBounded gives up on what does not end, says so, and leaves it to recovery.
func TestStop_IsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	victim := w.start(func(c *app.Config) { c.StopTimeout = 300 * time.Millisecond })
	key := w.open("order-stuck", 50_000)
	w.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.LateReply, Delay: time.Minute})
	gone := make(chan error, 1)
	go func() {
		_, err := victim.shop.try(context.WithoutCancel(t.Context()), http.MethodPost, "/v1/payments/confirm", "", confirmation(key, "order-stuck", 50_000))
		gone <- err
	}()
	w.eventually("the gateway has approved", func() bool { return w.sim.Totals().Captures == 1 })
	victim.cutOff = true
	if err := victim.Stop(); err == nil || !strings.Contains(err.Error(), "in flight") {
		t.Errorf("got %v, want to be told that a request was cut off", err)
	}
	if err := <-gone; err == nil {
		t.Error("the buyer got an answer from a service that had stopped")
	}
	if got := w.payment(key).Status; got != "confirming" {
		t.Errorf("got %s, want confirming", got)
	}
	w.sim.Heal()
	w.later(time.Minute)
	if got := w.app.shop.status("order-stuck"); got != "200 paid" {
		t.Errorf("got %s after recovery, want paid", got)
	}
	w.quiesce()
	w.requireAgreed()
}

// TestSignal ends the program with SIGTERM while notices and confirms are in flight, twice for good measure. Somebody in front
// of it goes on sending: what is answered 200 is in the books, whenever it came.
func TestSignal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	self, err := os.Executable()
	w.must(err)
	program := exec.CommandContext(t.Context(), self, programArgument, "serve", "-database-url", w.url,
		"-toss-secret-key", secretKey, "-toss-url", w.cfg.TossURL, "-listen", "127.0.0.1:0", "-private-listen", "127.0.0.1:0",
		"-api-keys", "shop="+apiSecret, "-stop-timeout", "20s", "-path-query-attempt", "15s")
	stderr, err := program.StderrPipe()
	w.must(err)
	w.must(program.Start())
	w.clock.Set(time.Now())
	address := make(chan string, 1)
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			var line struct{ Msg, Public string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
				address <- line.Public
			}
		}
	}()
	served := newShop(t, "http://"+<-address)
	t.Cleanup(served.close)
	w.sim.SetWebhookURL(served.url + "/webhooks/toss")
	inside := w.app.shop
	w.app.shop = served
	late := w.canceled("order-late", 6)
	f := w.fly(40, 20)
	w.app.shop = inside
	w.must(program.Process.Signal(syscall.SIGTERM))
	answered := make(chan int, len(late))
	for _, notice := range late {
		go func() { answered <- w.delivered(notice) }()
	}
	w.must(program.Process.Signal(syscall.SIGTERM))
	w.eventually("new connections are refused", func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(served.url, "http://"))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	w.sim.Heal()
	w.land(f)
	known := 0
	for range late {
		switch got := <-answered; got {
		case http.StatusOK:
			known++
		case 0, http.StatusBadGateway, http.StatusServiceUnavailable:
		default:
			t.Errorf("a notice that came late was answered %d", got)
		}
	}
	if booked := int(w.number(`SELECT count(*) FROM cancels`)) - len(f.notices); booked < known {
		t.Errorf("%d notices that came late were answered 200, and %d are in the books", known, booked)
	}
	<-logged
	if err := program.Wait(); err != nil {
		t.Errorf("got %v, want exit 0", err)
	}
}

// TestReady_DatabaseAway takes an instance out of service while its database cannot be reached.
func TestReady_DatabaseAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wire := newLine()
	i := w.run(func(c *app.Config) { c.Dial, c.DialLimits = wire.Dial, wire.Dial })
	w.eventually("ready", func() bool { return i.ready() == "200 ready" })
	wire.Arm(0, breakage{Stays: true})
	w.eventually("not ready", func() bool { return i.ready() == "503 database unreachable" })
	i.shop.call(http.MethodGet, "/v1/orders/order-away", "", nil).want(t, "a look-up meanwhile", "503 database_unavailable")
	wire.Mend()
	w.eventually("ready again", func() bool { return i.ready() == "200 ready" })
}

// TestTwoInstances run over one database: both answer, and what has to be done once is done once.
func TestTwoInstances(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.run(), w.run()
	first.shop.order("order-both", 50_000)
	key := w.authenticate("order-both", 50_000, tosssim.Card)
	second.shop.confirm(key, "order-both", 50_000).want(t, "confirm on the other instance", "200 done")
	if got := first.shop.status("order-both"); got != "200 paid" {
		t.Errorf("got %s, want paid", got)
	}
	closing, sweep := reconcile.CloseDaysArgs{}.Kind(), reconcile.SweepArgs{}.Kind()
	rare := []string{reconcile.RereadArgs{}.Kind(), reconcile.AuditAllArgs{}.Kind(), closing, checkout.TidyCheckoutArgs{}.Kind()}
	w.eventually("what is rarely done was tried", func() bool { // at once: one may find the list under way, and come again
		return w.number(`SELECT count(DISTINCT kind) FROM river.river_job WHERE kind = ANY($1) AND finalized_at IS NOT NULL`, rare) == int64(len(rare))
	})
	w.eventually("the days are closed", func() bool {
		return w.number(`SELECT count(*) FROM river.river_job WHERE kind = $1 AND state = 'completed'`, closing) > 0
	})
	w.eventually("sweeps go on", func() bool {
		return w.number(`SELECT count(*) FROM river.river_job WHERE kind = $1 AND state = 'completed'`, sweep) > 5
	})
	if got := w.number(`SELECT count(*) FROM river.river_job WHERE kind = ANY($1)`, rare); got != int64(len(rare)) {
		t.Errorf("what comes each ten minutes was begun %d times, want each of %v once", got, rare)
	}
	if got := w.number(`SELECT count(*) - (extract(epoch FROM max(scheduled_at) - min(scheduled_at)) + 1.5)::int FROM river.river_job WHERE kind = $1`, sweep); got > 0 {
		t.Errorf("%d more sweeps than seconds", got)
	}
}

// TestPrivate keeps figures and profiles off the public listener.
func TestPrivate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.run()
	for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/vars", "/healthz", "/readyz", "/__sim/totals"} {
		if got := i.shop.call(http.MethodGet, path, "", nil); got.is() != "404 no_route" {
			t.Errorf("%s in public: got %s, want 404", path, got.is())
		}
	}
	for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/goroutine", "/healthz", "/readyz"} {
		got, err := i.shop.send(mustRequest(t, http.MethodGet, i.PrivateURL()+path))
		if err != nil || got.code != http.StatusOK {
			t.Errorf("%s in private: got %d and %v, want 200", path, got.code, err)
		}
	}
}
