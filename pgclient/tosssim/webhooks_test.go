package tosssim_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"daesa/pgclient/tosssim"
)

// receiver is the merchant's webhook address.
type receiver struct {
	mu       sync.Mutex
	statuses []int // Of the next answers; 200 when used up.
	got      []received
}

type received struct {
	header http.Header
	body   []byte
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, received{header: request.Header.Clone(), body: body})
	status := http.StatusOK
	if len(r.statuses) > 0 {
		status, r.statuses = r.statuses[0], r.statuses[1:]
	}
	w.Header().Set("Location", "/elsewhere")
	w.WriteHeader(status)
}

func (r *receiver) received() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func (r *receiver) answer(statuses ...int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statuses = statuses
}

func newReceiver(t *testing.T, s *shop) *receiver {
	t.Helper()
	r := &receiver{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	s.SetWebhookURL(server.URL)
	return r
}

const (
	headerTime    = "tosspayments-webhook-transmission-time"
	headerRetried = "tosspayments-webhook-transmission-retried-count"
	headerID      = "tosspayments-webhook-transmission-id"
	headerSigned  = "tosspayments-webhook-signature"
)

func TestNoticeAsSent(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.paid("order-1")
	if sent := s.DeliverDue(t.Context()); sent != 0 {
		t.Errorf("%d sent without an address", sent)
	}
	r := newReceiver(t, s)
	if sent := s.DeliverDue(t.Context()); sent != 1 {
		t.Fatalf("%d sent", sent)
	}
	got := r.received()[0]
	if got.header.Get(headerTime) != "2026-04-15T10:00:00+09:00" || got.header.Get(headerRetried) != "0" ||
		!strings.HasPrefix(got.header.Get(headerID), "whtrans_a01") || got.header.Get(headerSigned) != "" ||
		got.header.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", got.header)
	}
	if !regexp.MustCompile(`^\{"createdAt":"2026-04-15T10:00:00(\.\d{0,5}[1-9])?","eventType":"PAYMENT_STATUS_CHANGED","data":\{`).Match(got.body) {
		t.Errorf("body %s", got.body)
	}
	var event struct{ Data json.RawMessage }
	mustDo(t, json.Unmarshal(got.body, &event))
	if payment, _ := s.Payment(key); string(event.Data) != string(payment) {
		t.Errorf("data %s", event.Data)
	}
	notice := s.Notices()[0]
	if !notice.Done || notice.Lost || len(notice.Deliveries) != 1 || notice.Deliveries[0].Status != 200 {
		t.Errorf("notice %+v", notice)
	}
	if s.DeliverDue(t.Context()) != 0 {
		t.Error("a delivered notice is due again")
	}
}

func TestCreatedAtHasAnyNumberOfDecimals(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	lengths := map[int]bool{}
	for range 200 {
		s.Notify("BILLING_DELETED", []byte(`{}`))
	}
	for _, n := range s.Notices() {
		var event struct{ CreatedAt string }
		mustDo(t, json.Unmarshal(n.Body, &event))
		lengths[len(event.CreatedAt)] = true
	}
	if !lengths[len("2026-04-15T10:00:00")] || !lengths[len("2026-04-15T10:00:00.123456")] || len(lengths) < 3 {
		t.Errorf("lengths %v", lengths)
	}
}

func TestRedelivery(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	r := newReceiver(t, s)
	r.answer(502, 404, 500, 201, 204, 302, 429, 503)
	s.paid("order-1")
	schedule := tosssim.RedeliverySchedule()
	whole := time.Duration(0)
	for i := range 8 {
		if sent := s.DeliverDue(t.Context()); sent != 1 {
			t.Fatalf("delivery %d: %d sent", i, sent)
		}
		if s.DeliverDue(t.Context()) != 0 {
			t.Fatalf("delivery %d is repeated at once", i)
		}
		if i == 7 {
			break
		}
		s.clock.Advance(schedule[i] - time.Second)
		if s.DeliverDue(t.Context()) != 0 {
			t.Fatalf("delivery %d comes early", i+1)
		}
		s.clock.Advance(time.Second)
		whole += schedule[i]
	}
	if whole != 3*24*time.Hour+19*time.Hour+time.Minute {
		t.Errorf("the schedule takes %s", whole)
	}
	got, notice := r.received(), s.Notices()[0]
	if !notice.Lost || notice.Done || len(notice.Deliveries) != 8 {
		t.Errorf("notice %+v", notice)
	}
	last := got[7].header
	if last.Get(headerRetried) != "7" || last.Get(headerID) != got[0].header.Get(headerID) ||
		last.Get(headerTime) != "2026-04-19T05:01:00+09:00" || string(got[7].body) != string(got[0].body) {
		t.Errorf("last delivery %v", last)
	}
	s.clock.Advance(30 * 24 * time.Hour)
	if s.DeliverDue(t.Context()) != 0 {
		t.Error("a lost notice is due")
	}
	if status, err := s.Deliver(notice.ID); status != 200 || err != nil || !s.Notices()[0].Done {
		t.Errorf("manual resend: %d %v", status, err)
	}
}

func TestFreshIDs(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	r := newReceiver(t, s)
	r.answer(500)
	s.SetDelivery(tosssim.DeliveryPlan{FreshIDs: true})
	s.paid("order-1")
	s.DeliverDue(t.Context())
	s.clock.Advance(time.Minute)
	s.DeliverDue(t.Context())
	got := r.received()
	if len(got) != 2 || got[0].header.Get(headerID) == got[1].header.Get(headerID) {
		t.Errorf("received %v", got)
	}
}

func TestDeliveryPlans(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	r := newReceiver(t, s)

	s.SetDelivery(tosssim.DeliveryPlan{Lose: 1})
	s.Notify("A", []byte(`{}`))
	kept := s.Notify("B", []byte(`{}`))
	s.SetDelivery(tosssim.DeliveryPlan{LoseIf: func(n tosssim.Notice) bool { return n.EventType == "C" }})
	s.Notify("C", []byte(`{}`))
	if sent := s.DeliverDue(t.Context()); sent != 1 || !s.Notices()[0].Lost || !s.Notices()[2].Lost {
		t.Errorf("losing: %d sent, %+v", sent, s.Notices())
	}
	if status, err := s.Deliver(kept); status != 200 || err != nil || r.received()[1].header.Get(headerRetried) != "1" {
		t.Errorf("resend: %d %v", status, err)
	}

	s.SetDelivery(tosssim.DeliveryPlan{Hold: true})
	held := s.Notify("D", []byte(`{}`))
	if s.DeliverDue(t.Context()) != 0 {
		t.Error("a held notice was sent")
	}
	if status, err := s.Deliver(held); status != 200 || err != nil {
		t.Errorf("held: %d %v", status, err)
	}

	s.SetDelivery(tosssim.DeliveryPlan{HoldTime: time.Minute, Duplicate: 2})
	s.Notify("E", []byte(`{}`))
	early := s.DeliverDue(t.Context())
	s.clock.Advance(time.Minute)
	if sent := s.DeliverDue(t.Context()); early != 0 || sent != 3 || len(r.received()) != 6 {
		t.Errorf("hold time and copies: %d, then %d", early, sent)
	}

	s.SetDelivery(tosssim.DeliveryPlan{Shuffle: 1, Parallel: 1})
	for range 20 {
		s.Notify("F", []byte(`{}`))
	}
	s.DeliverDue(t.Context())
	var ids []string
	for _, got := range r.received()[6:] {
		ids = append(ids, got.header.Get(headerID))
	}
	if len(ids) != 20 || slices.IsSorted(ids) {
		t.Errorf("not shuffled: %v", ids)
	}
}

func TestDeliverDueStopsWithItsContext(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	newReceiver(t, s)
	s.Notify("A", []byte(`{}`))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if sent := s.DeliverDue(ctx); sent != 0 {
		t.Errorf("%d sent", sent)
	}
	if sent := s.DeliverDue(t.Context()); sent != 1 {
		t.Errorf("%d sent afterwards", sent)
	}
}

func TestUnreachableReceiver(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	id := s.Notify("A", []byte(`{}`))
	if _, err := s.Deliver(id); err == nil {
		t.Error("delivered without an address")
	}
	if _, err := s.Send(nil, nil); err == nil {
		t.Error("sent without an address")
	}
	if _, err := s.Deliver(id + 100); !errors.Is(err, tosssim.ErrNotFound) {
		t.Errorf("unknown notice: %v", err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	s.SetWebhookURL(gone.URL)
	if status, err := s.Deliver(id); status != 0 || err == nil {
		t.Errorf("got %d %v", status, err)
	}
	if n := s.Notices()[0]; n.Done || n.Deliveries[0].Err == "" || !n.NextAt.Equal(base().Add(time.Minute)) {
		t.Errorf("notice %+v", n)
	}
	s.SetWebhookURL(":")
	if _, err := s.Send(nil, nil); err == nil {
		t.Error("sent to nonsense")
	}
}

func TestSendAnything(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	r := newReceiver(t, s)
	r.answer(401)
	status, err := s.Send([]byte(`forged`), map[string]string{headerRetried: "3", headerID: ""})
	got := r.received()[0]
	if status != 401 || err != nil || string(got.body) != "forged" || got.header.Get(headerRetried) != "3" ||
		len(got.header.Values(headerID)) != 0 || got.header.Get(headerTime) == "" || len(s.Notices()) != 0 {
		t.Errorf("got %d %v %v", status, err, got)
	}
}

func TestPayoutIsSigned(t *testing.T) {
	t.Parallel()
	security := strings.Repeat("5e", 32)
	s := newShop(t, tosssim.Config{SecurityKey: security})
	r := newReceiver(t, s)
	s.Payout(5000, true)
	s.DeliverDue(t.Context())
	got := r.received()[0]
	key, _ := hex.DecodeString(security)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(string(got.body) + ":" + got.header.Get(headerTime)))
	want := "v1:" + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if values := strings.Split(got.header.Get(headerSigned), ","); len(values) != 2 || values[0] != want || values[1] == want {
		t.Errorf("signature %q, want %q", got.header.Get(headerSigned), want)
	}
	if !strings.Contains(string(got.body), `"value":5000.0`) || !strings.Contains(string(got.body), `"status":"COMPLETED"`) {
		t.Errorf("body %s", got.body)
	}
}

func TestRunSendsAndRepeats(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	r := newReceiver(t, s)
	r.answer(500)
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	running.Go(func() { s.Run(ctx) })
	s.paid("order-1")
	eventually(t, "the first delivery", func() bool { return len(s.Notices()[0].Deliveries) == 1 })
	eventually(t, "the second delivery", func() bool {
		s.clock.Advance(time.Minute)
		return s.Notices()[0].Done
	})
	// The sender also notices that a window expires.
	s.Open(tosssim.Checkout{OrderID: "order-2", Amount: 1})
	s.clock.Advance(30 * time.Minute)
	eventually(t, "the expiry", func() bool { return len(r.received()) == 3 })
	cancel()
	running.Wait()
}

func TestCloseEndsRun(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer slow.Close()
	defer close(release)
	s.SetWebhookURL(slow.URL)
	var running sync.WaitGroup
	running.Go(func() { s.Run(t.Context()) })
	s.SetDelivery(tosssim.DeliveryPlan{Parallel: 1})
	s.Notify("A", []byte(`{}`))
	s.Notify("B", []byte(`{}`))
	s.Close()
	running.Wait()
	s.Run(t.Context()) // Returns at once.
	if s.DeliverDue(t.Context()) != 0 {
		t.Error("sent after Close")
	}
}
