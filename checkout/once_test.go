package checkout

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"daesa/pgclient/tosssim"
)

func orderBodyOf(id string, amount int) map[string]any {
	return map[string]any{"order_id": id, "amount": amount}
}

func TestOnce_ConcurrentCallersRunOnce(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	var all sync.WaitGroup
	answers := make(chan said, 12)
	for range cap(answers) {
		all.Go(func() {
			answer, err := s.try(t.Context(), "POST", "/v1/orders", orderBodyOf("order-once", 1000), keyHeader, "same")
			if err == nil {
				answers <- answer
			}
		})
	}
	all.Wait()
	close(answers)
	fresh := 0
	for answer := range answers {
		switch {
		case answer.status == http.StatusCreated && answer.header.Get("Idempotent-Replay") == "":
			fresh++
		case answer.status == http.StatusCreated, answer.text("code") == "request_in_flight":
		default:
			t.Errorf("got %d %v, want the one reply or in flight", answer.status, answer.body)
		}
	}
	if fresh != 1 {
		t.Errorf("got %d fresh replies, want 1", fresh)
	}
}

func TestOnce_OtherBodyIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	s.call("POST", "/v1/orders", orderBodyOf("order-a01", 1000), keyHeader, "k").wants(t, http.StatusCreated, "pending")
	s.call("POST", "/v1/orders", orderBodyOf("order-a02", 1000), keyHeader, "k").wants(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
	s.call("POST", "/v1/orders", `{"amount":1000,  "order_id":"order-a01"}`, keyHeader, "k").wants(t, http.StatusCreated, "pending")
	for _, key := range []string{"", "a b", "가", string(make([]byte, 256))} {
		if validKey(key) {
			t.Errorf("got %q accepted as a key", key)
		}
	}
}

func TestOnce_EachActorHasItsOwnKeys(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	s.call("POST", "/v1/orders", orderBodyOf("order-b01", 1000), keyHeader, "k").wants(t, http.StatusCreated, "pending")
	s.call("POST", "/v1/orders", orderBodyOf("order-b02", 1000), keyHeader, "k", "Authorization", "Bearer second-secret-00001").
		wants(t, http.StatusCreated, "pending")
}

func TestOnce_SameOrderUnderAnotherKey(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	s.call("POST", "/v1/orders", orderBodyOf("order-c01", 1000), keyHeader, "k1").wants(t, http.StatusCreated, "pending")
	s.call("POST", "/v1/orders", orderBodyOf("order-c01", 1000), keyHeader, "k2").wants(t, http.StatusOK, "pending")
	s.call("POST", "/v1/orders", orderBodyOf("order-c01", 2000), keyHeader, "k3").wants(t, http.StatusConflict, "order_differs")
}

// TestOnce_LeaseOfACrash: the mark that a crash leaves holds for its time and no longer.
func TestOnce_LeaseOfACrash(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	s.call("POST", "/v1/orders", orderBodyOf("order-d01", 1000), keyHeader, "k").wants(t, http.StatusCreated, "pending")
	_, err := s.db.Exec(t.Context(), `UPDATE caller_requests SET status = NULL, reply = NULL, lease_until = now() + interval '1 minute'`)
	must(t, err)
	s.call("POST", "/v1/orders", orderBodyOf("order-d01", 1000), keyHeader, "k").wants(t, http.StatusConflict, "request_in_flight")
	s.ahead.Store(int64(2 * time.Minute))
	s.call("POST", "/v1/orders", orderBodyOf("order-d01", 1000), keyHeader, "k").wants(t, http.StatusOK, "pending")
	s.call("POST", "/v1/orders", orderBodyOf("order-d99", 1000), keyHeader, "k").wants(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
}

// TestOnce_RepliesThatAreNotFinalAreNotStored: the same request is worth another try, another one under its key is not.
func TestOnce_RepliesThatAreNotFinalAreNotStored(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	spend := func(amount int) said {
		return s.call("POST", "/v1/customers/kim/credits/spend", map[string]any{"amount": amount}, keyHeader, "k")
	}
	spend(3).wants(t, http.StatusConflict, "credits_short")
	if got := s.count(`SELECT count(*) FROM caller_requests WHERE status IS NOT NULL OR reply IS NOT NULL`); got != 0 {
		t.Errorf("got %d stored replies, want 0", got)
	}
	spend(2).wants(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
	s.paid(1000, "customer_id", "kim", "credits", 5)
	spend(2).wants(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
	spend(3).wants(t, http.StatusOK, "")
}

// TestOnce_KeyStaysBoundToItsCancel: neither a cancel whose outcome is unknown nor one that was turned away lets another
// one be sent, or answered, under its key.
func TestOnce_KeyStaysBoundToItsCancel(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		fault tosssim.Fault
	}{
		{"outcome unknown", tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.DoThenHang, N: 1}},
		{"turned away", tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.TooMany, N: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, shopOptions{paths: quickPaths()})
			_, key := s.paid(10000)
			s.sim.Fail(test.fault)
			if first := s.cancel(key, "same", part(1000)); first.status == http.StatusOK {
				t.Fatalf("got %v, want an answer that is not final", first.body)
			}
			s.cancel(key, "same", part(2000)).wants(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
			if again := s.cancel(key, "same", part(1000)); again.status >= http.StatusBadRequest {
				t.Errorf("the same cancel again: got %d %v, want it answered or sent", again.status, again.body)
			}
		})
	}
}

func TestOrder_BadTerms(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	for i, test := range []struct {
		field string
		value any
	}{
		{"order_id", "short"},
		{"order_id", "with space"},
		{"amount", 0},
		{"amount", "1.5"},
		{"amount", nil},
		{"currency", "EUR"},
		{"currency", "CREDIT"},
		{"credits", -1},
		{"credits", 10},
		{"credits", 1_000_000_000_001},
		{"amount", 1_000_000_000_001},
		{"expires_in_seconds", -1},
		{"expires_in_seconds", 1 << 40},
		{"name", string(make([]byte, 0)) + fmt.Sprintf("%0101d", 0)},
		{"amuont", 5},
	} {
		body := orderBodyOf("order-bad", 1000)
		body[test.field] = test.value
		if answer := s.call("POST", "/v1/orders", body, keyHeader, fmt.Sprint("k", i)); answer.status != http.StatusBadRequest {
			t.Errorf("%s = %v: got %d %v, want 400", test.field, test.value, answer.status, answer.body)
		}
	}
	if got := s.count(`SELECT count(*) FROM orders`); got != 0 {
		t.Errorf("got %d orders, want 0", got)
	}
}
