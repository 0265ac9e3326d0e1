package tosssim_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"daesa/pgclient/tosssim"
)

func TestAuthentication(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.paid("order-1")
	for authorization, want := range map[string]string{
		"":                               "UNAUTHORIZED_KEY",
		"Basic dGVzdF9za19vdGhlcjo=":     "UNAUTHORIZED_KEY",
		"Basic 77u/dGVzdF9zazo=":         "UNAUTHORIZED_KEY", // A byte order mark before the key.
		"Basic dGVzdF9za19zaW11bGF0b3I=": "INCORRECT_BASIC_AUTH_FORMAT",
		"Basic !":                        "INCORRECT_BASIC_AUTH_FORMAT",
		"Bearer abc":                     "INCORRECT_BASIC_AUTH_FORMAT",
	} {
		status := http.StatusUnauthorized
		if want == "INCORRECT_BASIC_AUTH_FORMAT" {
			status = http.StatusForbidden
		}
		wantRefusal(t, s.get(key, "Authorization", authorization), status, want)
	}
}

func TestLookUps(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	first, second := s.paid("order-1"), s.paid("order-1")
	if first == second || len(s.Keys()) != 2 {
		t.Fatalf("keys %v", s.Keys())
	}
	if got := s.must(http.MethodGet, "/v1/payments/orders/order-1", "").text("paymentKey"); got != second {
		t.Errorf("by order: %s, want the newest %s", got, second)
	}
	wantRefusal(t, s.get("nobody"), http.StatusNotFound, "NOT_FOUND_PAYMENT")
	wantRefusal(t, s.must(http.MethodGet, "/v1/payments/orders/none", ""), http.StatusNotFound, "NOT_FOUND_PAYMENT")
	wantRefusal(t, s.must(http.MethodGet, "/v1/payments/"+first+"/cancel", ""), http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED")
	for _, path := range []string{"/v1/settlements", "/", "/v1/payments", "/v1/payments/a/b/c", "/v1/payments/a/refund"} {
		wantRefusal(t, s.must(http.MethodGet, path, ""), http.StatusNotFound, "NOT_FOUND")
	}
	// A key that walks stays one key.
	wantRefusal(t, s.get("x%2F..%2F"+first), http.StatusNotFound, "NOT_FOUND_PAYMENT")
	if s.Count(tosssim.Get) != 4 || s.CountKey(tosssim.Get, second) != 1 {
		t.Errorf("calls %+v", s.Calls())
	}
	s.ResetCalls()
	if len(s.Calls()) != 0 {
		t.Error("calls remain")
	}
}

func TestAcceptLanguageTranslates(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.paid("order-1")
	out := s.get(key, "Accept-Language", "en-US")
	card, _ := out.object["card"].(map[string]any)
	if out.text("method") != "CARD" || card["cardType"] != "CREDIT" || card["ownerType"] != "PERSONAL" {
		t.Errorf("english: %s", out.body)
	}
	if got := s.get("nobody", "Accept-Language", "en-US").text("message"); got != "not found payment" {
		t.Errorf("message %q", got)
	}
	list := s.must(http.MethodGet, "/v1/transactions?startDate=2026-04-15&endDate=2026-04-16", "", "Accept-Language", "en")
	if !strings.Contains(string(list.body), `"method":"CARD"`) {
		t.Errorf("list %s", list.body)
	}
	if got := s.get(key, "Accept-Language", "ko-KR").text("method"); got != "카드" {
		t.Errorf("korean: %s", got)
	}
}

func TestTestCodes(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	for code, status := range map[string]int{
		"REJECT_CARD_COMPANY": 403, "PROVIDER_ERROR": 400, "NOT_FOUND_PAYMENT_SESSION": 404, "UNAUTHORIZED_KEY": 401,
		"IDEMPOTENT_REQUEST_PROCESSING": 409, "FAILED_INTERNAL_SYSTEM_PROCESSING": 500, "NOT_CANCELABLE_AMOUNT": 403,
		"REFUND_REJECTED": 400, "FAILED_REFUND_PROCESS": 500, "A_CODE_OF_TOMORROW": 400,
	} {
		wantRefusal(t, s.confirm("no-such-key", "o", "1", "TossPayments-Test-Code", code), status, code)
		wantRefusal(t, s.cancel("no-such-key", "", "TossPayments-Test-Code", code), status, code)
	}
	live := newShop(t, tosssim.Config{SecretKey: "live_sk_simulator"})
	out := live.confirm("no-such-key", "o", "1", "TossPayments-Test-Code", "PROVIDER_ERROR",
		"Authorization", "Basic bGl2ZV9za19zaW11bGF0b3I6")
	wantRefusal(t, out, http.StatusNotFound, "NOT_FOUND_PAYMENT")
}

func TestIdempotencyReplaysTheFirstReply(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.paid("order-1")
	first := s.cancel(key, `,"cancelAmount":1000`, "Idempotency-Key", "cancel-1")
	again := s.cancel(key, `,"cancelAmount":2000`, "Idempotency-Key", "cancel-1") // The body is not part of the scope.
	if first.status != http.StatusOK || string(first.body) != string(again.body) || s.Totals().Cancels != 1 {
		t.Errorf("replay %d %s", again.status, again.body)
	}
	trace := again.header.Get("x-tosspayments-trace-id")
	if again.header.Get("idempotency-key") != "cancel-1" ||
		!strings.HasSuffix(trace, ", "+first.header.Get("x-tosspayments-trace-id")) {
		t.Errorf("headers of the replay %v", again.header)
	}
	if calls := s.Calls(); calls[len(calls)-1].Effect || !calls[len(calls)-2].Effect {
		t.Error("the replay had the effect")
	}

	other := s.paid("order-2") // Another address is another scope.
	if out := s.cancel(other, "", "Idempotency-Key", "cancel-1"); out.status != http.StatusOK || s.Totals().Cancels != 2 {
		t.Errorf("other address %d %s", out.status, out.body)
	}
	s.clock.Advance(15*24*time.Hour - time.Second)
	s.cancel(key, "", "Idempotency-Key", "cancel-1")
	if s.Totals().Cancels != 2 {
		t.Error("the key acted again within fifteen days")
	}
	s.clock.Advance(time.Second)
	s.cancel(key, `,"cancelAmount":1000`, "Idempotency-Key", "cancel-1")
	if s.Totals().Cancels != 3 {
		t.Error("the key did not act after fifteen days")
	}
}

func TestIdempotencyBindsRefusals(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.Authenticate(tosssim.Checkout{OrderID: "order-1", Amount: 50_000})
	wrong := s.confirm(key, "order-1", "1", "Idempotency-Key", "k")
	right := s.confirm(key, "order-1", "50000", "Idempotency-Key", "k")
	if string(wrong.body) != string(right.body) || right.status != http.StatusBadRequest {
		t.Errorf("replay %d %s", right.status, right.body)
	}
	if out := s.confirm(key, "order-1", "50000", "Idempotency-Key", "k2"); out.status != http.StatusOK {
		t.Errorf("new key %d", out.status)
	}
	wantRefusal(t, s.confirm(key, "order-1", "50000", "Idempotency-Key", strings.Repeat("k", 301)),
		http.StatusBadRequest, "INVALID_IDEMPOTENCY_KEY")
	wantRefusal(t, s.confirm(key, "order-1", "50000", "Idempotency-Key", strings.Repeat("k", 300)),
		http.StatusBadRequest, "ALREADY_PROCESSED_PAYMENT")
	// Server errors are not bound.
	wantRefusal(t, s.cancel(key, "", "Idempotency-Key", "c", "TossPayments-Test-Code", "COMMON_ERROR"), 500, "COMMON_ERROR")
	if out := s.cancel(key, "", "Idempotency-Key", "c"); out.status != http.StatusOK {
		t.Errorf("after a server error %d", out.status)
	}
	if s.get(key, "Idempotency-Key", "c").status != http.StatusOK {
		t.Error("a look-up minds the key")
	}
}

func TestIdempotentRequestProcessing(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.Authenticate(tosssim.Checkout{OrderID: "order-1", Amount: 50_000})
	s.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Delay, Delay: time.Hour})
	var first answer
	var running sync.WaitGroup
	running.Go(func() { first = s.confirm(key, "order-1", "50000", "Idempotency-Key", "k") })
	eventually(t, "the first call", func() bool { return s.Count(tosssim.Confirm) == 1 })
	eventually(t, "the conflict", func() bool {
		out := s.must(http.MethodPost, "/v1/payments/confirm", `{"paymentKey":"none"}`, "Idempotency-Key", "k")
		return out.status == http.StatusConflict && out.code() == "IDEMPOTENT_REQUEST_PROCESSING"
	})
	s.Heal()
	running.Wait()
	if first.status != http.StatusOK {
		t.Errorf("first %d %s", first.status, first.body)
	}
	if again := s.confirm(key, "order-1", "50000", "Idempotency-Key", "k"); string(again.body) != string(first.body) {
		t.Errorf("replay %s", again.body)
	}
}
