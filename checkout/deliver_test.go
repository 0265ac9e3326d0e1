package checkout

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"daesa/ledger"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing them")

const eventSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// receiver is a merchant's event address that checks every signature by itself.
type receiver struct {
	t      *testing.T
	url    string
	mu     sync.Mutex
	status int
	bodies []string
	ids    []string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t, status: http.StatusNoContent}
	server := httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(server.Close)
	r.url = server.URL + "/events?token=hidden"
	return r
}

func (r *receiver) serve(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		r.t.Error(err)
	}
	id, at := request.Header.Get("webhook-id"), request.Header.Get("webhook-timestamp")
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(eventSecret, "whsec_"))
	if err != nil {
		r.t.Error(err)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + at + "." + string(body)))
	if got, want := request.Header.Get("webhook-signature"), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)); got != want {
		r.t.Errorf("got signature %q, want %q", got, want)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies = append(r.bodies, string(body))
	r.ids = append(r.ids, id)
	if r.status == http.StatusFound {
		w.Header().Set("Location", r.url)
	}
	w.WriteHeader(r.status)
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) received() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.ids...)
}

func (s *shop) worker(merchant, customer Receiver) *EventWorker {
	s.t.Helper()
	w, err := NewEventWorker(EventWorkerConfig{DB: s.db, Merchant: merchant, Customer: customer, Metrics: s.metrics, Now: time.Now})
	must(s.t, err)
	s.t.Cleanup(w.Close)
	return w
}

// eventOf names the one event of a kind and audience.
func (s *shop) eventOf(kind ledger.EventKind, audience ledger.Audience) (id string) {
	s.t.Helper()
	must(s.t, s.db.QueryRow(s.t.Context(), `SELECT event_id FROM events WHERE kind = $1 AND audience = $2`, kind, audience).Scan(&id))
	return id
}

func jobOf(eventID string, attempt int) *river.Job[EventArgs] {
	return &river.Job[EventArgs]{
		JobRow: &rivertype.JobRow{Attempt: attempt, MaxAttempts: deliveryAttempts}, Args: EventArgs{EventID: eventID},
	}
}

func TestEventWorker_DeliversOnceAndOnlyOnce(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID, _ := s.paid(50000)
	to := newReceiver(t)
	w := s.worker(Receiver{URL: to.url, Secret: eventSecret}, Receiver{})
	id := s.eventOf(ledger.EventOrderPaid, ledger.AudienceMerchant)
	for range 2 {
		must(t, w.Work(t.Context(), jobOf(id, 1)))
	}
	if diff := cmp.Diff([]string{id}, to.received()); diff != "" {
		t.Fatal(diff)
	}
	var body eventBody
	must(t, json.Unmarshal([]byte(to.bodies[0]), &body))
	if body.ID != id || body.Type != ledger.EventOrderPaid || body.Data["order_id"] != orderID || body.Data["amount"] != "50000" {
		t.Errorf("got %s, want the facts of the payment", to.bodies[0])
	}
	for state, want := range map[string]int{"delivered": 1, "pending": 0, "dead": 0} {
		list := s.call("GET", "/v1/events?state="+state, nil)
		if events, _ := list.body["events"].([]any); len(events) != want {
			t.Errorf("got %s events %v, want %d", state, list.body, want)
		}
	}
	s.wantMetric(`daesa_checkout_event_deliveries_total{audience="merchant",result="delivered"}`, 1)
}

func TestEventWorker_FailsThenDies(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	s.paid(50000)
	to := newReceiver(t)
	w := s.worker(Receiver{URL: to.url, Secret: eventSecret}, Receiver{})
	id := s.eventOf(ledger.EventOrderPaid, ledger.AudienceMerchant)
	for attempt, status := range []int{500, 404, http.StatusFound} {
		to.answer(status)
		err := w.Work(t.Context(), jobOf(id, attempt+1))
		if err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("status %d: got %v, want an error without the address", status, err)
		}
	}
	if got := len(to.received()); got != 3 {
		t.Errorf("got %d deliveries, want 3: redirects are not followed", got)
	}
	if w.Work(t.Context(), jobOf(id, deliveryAttempts)) == nil {
		t.Error("the last attempt failed too")
	}
	dead := s.call("GET", "/v1/events", nil)
	if events, _ := dead.body["events"].([]any); len(events) != 1 || events[0].(map[string]any)["event_id"] != id {
		t.Fatalf("got dead events %v, want %s", dead.body, id)
	}
	tidy, err := NewTidyWorker(s.jobConfig())
	must(t, err)
	must(t, tidy.Work(t.Context(), nil))
	s.wantMetric(`daesa_checkout_dead_events`, 1)

	before := s.count(`SELECT count(*) FROM river.river_job`)
	for range 2 {
		if answer := s.call("POST", "/v1/events/"+id+"/resend", nil); answer.status != http.StatusAccepted {
			t.Fatalf("got %d %v, want 202", answer.status, answer.body)
		}
	}
	if got := s.count(`SELECT count(*) FROM river.river_job`); got != before+1 {
		t.Errorf("got %d new deliveries, want 1", got-before)
	}
	to.answer(http.StatusOK)
	must(t, w.Work(t.Context(), jobOf(id, 1)))
	must(t, tidy.Work(t.Context(), nil))
	s.wantMetric(`daesa_checkout_dead_events`, 0)
	s.call("POST", "/v1/events/evt_nope/resend", nil).wants(t, http.StatusNotFound, "event_not_found")
	s.call("GET", "/v1/events?state=odd", nil).wants(t, http.StatusBadRequest, "invalid_request")
}

func TestEventWorker_WithoutAddress(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	s.paid(50000)
	w := s.worker(Receiver{}, Receiver{})
	id := s.eventOf(ledger.EventOrderPaid, ledger.AudienceMerchant)
	if err := w.Work(t.Context(), jobOf(id, 1)); err == nil || !strings.Contains(err.Error(), "no address configured") {
		t.Errorf("got %v, want the job canceled for want of an address", err)
	}
	if got := s.count(`SELECT count(*) FROM events WHERE delivered_at IS NULL AND dead_at IS NULL AND last_answer = 'no address configured'`); got != 1 {
		t.Errorf("got %d undelivered events, want 1", got)
	}
	if err := w.Work(t.Context(), jobOf("evt_nope", 1)); err == nil {
		t.Error("an event that does not exist cannot be delivered")
	}
}

// TestEventWorker_ByRiver lets the real job client find and work what a payment and its cancel inserted.
func TestEventWorker_ByRiver(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	merchant, customer := newReceiver(t), newReceiver(t)
	workers := river.NewWorkers()
	river.AddWorker(workers, s.worker(Receiver{merchant.url, eventSecret}, Receiver{customer.url, eventSecret}))
	client, err := river.NewClient(riverpgxv5.New(s.db), &river.Config{
		Schema: "river", Workers: workers, Queues: map[string]river.QueueConfig{EventsQueue: {MaxWorkers: 2}},
		FetchPollInterval: 20 * time.Millisecond, FetchCooldown: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler), TestOnly: true,
	})
	must(t, err)
	must(t, client.Start(t.Context()))
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer stop()
		must(t, client.StopAndCancel(ctx))
	})
	_, key := s.paid(50000, "customer_id", "kim")
	s.cancel(key, "c1", whole()).wants(t, http.StatusOK, "done")
	eventually(t, "paid and canceled are told to the merchant, canceled to the customer", func() bool {
		return len(merchant.received()) == 2 && len(customer.received()) == 1
	})
	if !strings.Contains(customer.bodies[0], "50,000원") || strings.Contains(customer.bodies[0], key) {
		t.Errorf("got %s, want a text with the amount and without the payment key", customer.bodies[0])
	}
	eventually(t, "all are noted as delivered", func() bool {
		return s.count(`SELECT count(*) FROM events WHERE delivered_at IS NULL`) == 0
	})
}

func TestDeliveryWait_DaysInAll(t *testing.T) {
	t.Parallel()
	var all time.Duration
	for attempt := 1; attempt < deliveryAttempts; attempt++ {
		all += deliveryWait(attempt)
	}
	if deliveryWait(1) != deliveryFirst || all < 4*24*time.Hour || all > 6*24*time.Hour {
		t.Errorf("got a first wait of %s and %s in all, want 5s and about five days", deliveryWait(1), all)
	}
}

func TestReceiver_Validate(t *testing.T) {
	t.Parallel()
	for _, bad := range []Receiver{
		{URL: "shop.example", Secret: eventSecret},
		{URL: "ftp://shop.example", Secret: eventSecret},
		{URL: "https://shop.example"},
		{URL: "https://shop.example", Secret: "whsec_!"},
	} {
		if bad.validate(ledger.AudienceMerchant) == nil {
			t.Errorf("got %v accepted", bad)
		}
	}
}

func TestNoticeText_Golden(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, kind := range []ledger.EventKind{ledger.EventOrderPartiallyCanceled, ledger.EventOrderCanceled, ledger.EventOrderPaid} {
		for _, money := range [][3]string{{"KRW", "50000", "1234567"}, {"USD", "726.24", "0.76"}, {"JPY", "999", "1000"}} {
			text := noticeText(kind, map[string]any{
				"order_id": "order-0001", "currency": money[0], "amount": money[1], "balance": money[2],
			})
			fmt.Fprintf(&all, "%s %s\n  ko %s\n  en %s\n", kind, money[0], text["ko"], text["en"])
		}
	}
	path := filepath.Join("testdata", "notices.golden")
	if *update {
		must(t, os.MkdirAll("testdata", 0o750))
		must(t, os.WriteFile(path, []byte(all.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Error(diff)
	}
}
