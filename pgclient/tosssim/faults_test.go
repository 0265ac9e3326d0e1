package tosssim_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"daesa/pgclient/tosssim"
)

func TestFaultsThatDoNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.Authenticate(tosssim.Checkout{OrderID: "order-1", Amount: 50_000})
	try := func(f tosssim.Fault) answer {
		f.Op = tosssim.Confirm
		s.Fail(f)
		return s.confirm(key, "order-1", "50000", "Idempotency-Key", "k")
	}
	if out := try(tosssim.Fault{Kind: tosssim.Status, Code: 503, Body: `{"code":"X"}`, Headers: map[string]string{"Retry-After": "7"}}); out.status != 503 || out.code() != "X" || out.header.Get("Retry-After") != "7" {
		t.Errorf("status: %d %s %v", out.status, out.body, out.header)
	}
	wantRefusal(t, try(tosssim.Fault{Kind: tosssim.Status}), 500, "FAILED_INTERNAL_SYSTEM_PROCESSING")
	wantRefusal(t, try(tosssim.Fault{Kind: tosssim.TooMany}), 429, "TOO_MANY_REQUESTS")
	if out := try(tosssim.Fault{Kind: tosssim.HTML}); out.status != 502 || !strings.Contains(string(out.body), "<html>") || out.header.Get("Content-Type") != "text/html" {
		t.Errorf("html: %d %s", out.status, out.body)
	}
	if out := try(tosssim.Fault{Kind: tosssim.Body, Body: "null", ContentType: "text/plain"}); out.status != 200 || string(out.body) != "null" || out.header.Get("Content-Type") != "text/plain" {
		t.Errorf("body: %d %s", out.status, out.body)
	}
	if out := try(tosssim.Fault{Kind: tosssim.EmptyArray}); out.status != 200 || string(out.body) != "[]" {
		t.Errorf("empty array: %d %s", out.status, out.body)
	}
	if s.Totals().Captures != 0 {
		t.Error("money moved")
	}
	if out := s.confirm(key, "order-1", "50000", "Idempotency-Key", "k"); out.status != http.StatusOK {
		t.Errorf("the key was bound by a fault: %d %s", out.status, out.body)
	}
}

func TestFaultsThatDoIt(t *testing.T) {
	t.Parallel()
	for kind, check := range map[tosssim.Kind]func(*testing.T, answer, error){ //nolint:exhaustive // The others do nothing, or hang.
		tosssim.Delay: func(t *testing.T, out answer, _ error) {
			t.Helper()
			wantFields(t, out.body, map[string]string{"status": `"DONE"`})
		},
		tosssim.LateReply: func(t *testing.T, out answer, _ error) {
			t.Helper()
			wantFields(t, out.body, map[string]string{"status": `"DONE"`})
		},
		tosssim.LostReply: func(t *testing.T, _ answer, err error) {
			t.Helper()
			if err == nil {
				t.Error("there was a reply")
			}
		},
		tosssim.DoThenStatus: func(t *testing.T, out answer, _ error) {
			t.Helper()
			wantRefusal(t, out, 500, "FAILED_INTERNAL_SYSTEM_PROCESSING")
		},
		tosssim.Garbage: func(t *testing.T, out answer, _ error) {
			t.Helper()
			if out.status != http.StatusOK || json.Valid(out.body) || len(out.body) == 0 {
				t.Errorf("garbage %d %s", out.status, out.body)
			}
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := newShop(t, tosssim.Config{})
			key := s.Authenticate(tosssim.Checkout{OrderID: "order-1", Amount: 50_000})
			s.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: kind, Delay: time.Millisecond})
			out, err := s.send(http.MethodPost, "/v1/payments/confirm",
				`{"paymentKey":"`+key+`","orderId":"order-1","amount":50000}`, "Idempotency-Key", "k")
			check(t, out, err)
			if s.Totals().Captures != 1 {
				t.Error("it was not done")
			}
			again := s.confirm(key, "order-1", "50000", "Idempotency-Key", "k")
			if again.status != http.StatusOK || again.text("status") != "DONE" {
				t.Errorf("the true reply is not bound: %d %s", again.status, again.body)
			}
		})
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.paid("order-1")
	s.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Reset})
	if _, err := s.send(http.MethodGet, "/v1/payments/"+key, ""); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("error %v", err)
	}
}

func TestRefuseIsBound(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.Authenticate(tosssim.Checkout{OrderID: "order-1", Amount: 50_000})
	s.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_COMPANY"})
	s.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "ODD", Code: 422})
	for range 2 {
		wantRefusal(t, s.confirm(key, "order-1", "50000", "Idempotency-Key", "k"), 403, "REJECT_CARD_COMPANY")
		s.Heal()
	}
}

func TestFaultsCountAndAim(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	hit, spared := s.paid("order-1"), s.paid("order-2")
	s.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, N: 2, PaymentKey: hit})
	got := []int{
		s.get(spared).status, s.get(hit).status, s.must(http.MethodGet, "/v1/payments/orders/order-1", "").status,
		s.get(hit).status,
	}
	if got[0] != 200 || got[1] != 500 || got[2] != 500 || got[3] != 200 {
		t.Errorf("statuses %v", got)
	}
	s.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.EmptyArray, N: -1})
	for range 3 {
		if rows := s.list(today); len(rows) != 0 {
			t.Error("the fault wore off")
		}
	}
	s.Heal()
	if rows := s.list(today); len(rows) != 2 {
		t.Error("the fault stayed")
	}
}

func TestStale(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.paid("order-1")
	s.cancel(key, "")
	s.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale})
	s.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, Payment: []byte(`{"status":"OLD"}`)})
	s.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, PaymentKey: "nobody"})
	for _, want := range []string{"DONE", "OLD", "CANCELED"} {
		if got := s.get(key).text("status"); got != want {
			t.Errorf("status %s, want %s", got, want)
		}
	}
	if got := s.get("nobody").code(); got != "NOT_FOUND_PAYMENT" {
		t.Errorf("nobody: %s", got)
	}
}

func TestHangHoldsOnAfterTheCallerLeft(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.paid("order-1")
	s.client.Timeout = 50 * time.Millisecond
	s.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Hang})
	if _, err := s.send(http.MethodGet, "/v1/payments/"+key, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if s.Held() != 1 {
		t.Errorf("held %d", s.Held())
	}
	eventually(t, "the end of the hold", func() bool {
		s.clock.Advance(4 * time.Minute)
		return s.Held() == 0
	})
}

func TestHealAndCloseReleaseWhatIsHeld(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]func(*shop){
		"heal": func(s *shop) { s.Heal() }, "close": func(s *shop) { s.Close(); s.Close() }, "reset": func(s *shop) { s.Reset() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, tosssim.Config{})
			key := s.paid("order-1")
			s.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Hang})
			s.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.DoThenHang})
			s.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.StalledBody})
			var waiting sync.WaitGroup
			for _, call := range [][3]string{
				{http.MethodGet, "/v1/payments/" + key},
				{http.MethodGet, "/v1/transactions?" + today},
				{http.MethodPost, "/v1/payments/" + key + "/cancel", `{"cancelReason":"r"}`},
			} {
				waiting.Go(func() {
					if _, err := s.send(call[0], call[1], call[2]); err == nil {
						t.Errorf("%s was answered", call[1])
					}
				})
			}
			eventually(t, "three held requests", func() bool { return s.Held() == 3 })
			if s.Totals().Cancels != 1 {
				t.Error("the cancel was not done")
			}
			release(s)
			waiting.Wait()
			eventually(t, "the release", func() bool { return s.Held() == 0 })
		})
	}
}

func TestStalledBody(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.paid("order-1")
	s.client.Timeout = 50 * time.Millisecond
	s.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.StalledBody})
	out, err := s.send(http.MethodGet, "/v1/payments/"+key, "")
	if err == nil || out.status != http.StatusOK || len(out.body) == 0 {
		t.Errorf("got %d, %d bytes, %v", out.status, len(out.body), err)
	}
}

func TestFailPanicsOnNonsense(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	for _, f := range []tosssim.Fault{{Op: "pay", Kind: tosssim.Hang}, {Op: tosssim.Get, Kind: "explode"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v was accepted", f)
				}
			}()
			s.Fail(f)
		}()
	}
}
