package tosssim_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"daesa/pgclient/tosssim"
)

func TestConfirmApprovesCard(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.Authenticate(tosssim.Checkout{OrderID: "order-1", OrderName: "티셔츠 & 컵", Amount: 50_000})
	before := s.get(key)
	wantFields(t, before.body, map[string]string{"status": `"IN_PROGRESS"`, "approvedAt": "null", "secret": "null"})

	out := s.confirm(key, "order-1", "50000")
	if out.status != http.StatusOK {
		t.Fatalf("confirm: %d %s", out.status, out.body)
	}
	wantFields(t, out.body, map[string]string{
		"status": `"DONE"`, "totalAmount": "50000", "balanceAmount": "50000", "suppliedAmount": "45455", "vat": "4545",
		"cancels": "null", "failure": "null", "approvedAt": `"2026-04-15T10:00:00+09:00"`, "method": `"카드"`,
		"mId": `"tsimshop01"`, "currency": `"KRW"`, "orderName": `"티셔츠 & 컵"`,
	})
	if out.text("secret") == "" || out.text("lastTransactionKey") == "" {
		t.Errorf("secret and lastTransactionKey are missing: %s", out.body)
	}
	if after := s.get(key); string(after.body) != string(out.body) {
		t.Errorf("look-up %s differs from confirm %s", after.body, out.body)
	}
	wantRefusal(t, s.confirm(key, "order-1", "50000"), http.StatusBadRequest, "ALREADY_PROCESSED_PAYMENT")
	if totals := s.Totals(); totals.Captures != 1 || totals.Captured["KRW"] != 50_000 {
		t.Errorf("totals %+v", totals)
	}
	calls := s.Calls()
	effects := slices.DeleteFunc(slices.Clone(calls), func(c tosssim.Call) bool { return !c.Effect })
	if len(effects) != 1 || effects[0].Op != tosssim.Confirm || effects[0].Status != http.StatusOK {
		t.Errorf("effects %+v", effects)
	}
}

func TestConfirmRefuses(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	checkout := tosssim.Checkout{OrderID: "order-1", Amount: 50_000}
	key := s.Authenticate(checkout)
	for name, out := range map[string]answer{
		"another amount":  s.confirm(key, "order-1", "49999"),
		"a fraction":      s.confirm(key, "order-1", "50000.5"),
		"an exponent":     s.confirm(key, "order-1", "5e4"),
		"no number":       s.confirm(key, "order-1", "null"),
		"another order":   s.confirm(key, "order-2", "50000"),
		"a missing field": s.must(http.MethodPost, "/v1/payments/confirm", `{"paymentKey":"`+key+`","amount":50000}`),
		"not JSON":        s.must(http.MethodPost, "/v1/payments/confirm", `paymentKey=1`),
	} {
		if out.status != http.StatusBadRequest || out.code() != "INVALID_REQUEST" {
			t.Errorf("%s: got %d %s", name, out.status, out.body)
		}
	}
	wantRefusal(t, s.confirm("nobody", "order-1", "50000"), http.StatusNotFound, "NOT_FOUND_PAYMENT")
	wantRefusal(t, s.confirm(s.Open(checkout), "order-1", "50000"), http.StatusNotFound, "NOT_FOUND_PAYMENT_SESSION")

	aborted := s.Authenticate(checkout)
	mustDo(t, s.Abort(aborted, "REJECT_CARD_COMPANY"))
	wantRefusal(t, s.confirm(aborted, "order-1", "50000"), http.StatusNotFound, "NOT_FOUND_PAYMENT_SESSION")
	if s.Totals().Captures != 0 {
		t.Error("money moved")
	}
	if out := s.confirm(key, "order-1", `"50000"`); out.status != http.StatusOK {
		t.Errorf("an amount as a string, as the samples send it: %d %s", out.status, out.body)
	}
}

func TestWindowsExpireByTheClock(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	opened := s.Open(tosssim.Checkout{OrderID: "order-1", Amount: 30_000})
	authenticated := s.Authenticate(tosssim.Checkout{OrderID: "order-2", Amount: 30_000})

	s.clock.Advance(10*time.Minute - time.Second)
	wantFields(t, s.get(authenticated).body, map[string]string{"status": `"IN_PROGRESS"`})
	s.clock.Advance(time.Second)
	wantRefusal(t, s.confirm(authenticated, "order-2", "30000"), http.StatusNotFound, "NOT_FOUND_PAYMENT_SESSION")
	wantFields(t, s.get(opened).body, map[string]string{"status": `"READY"`})

	s.clock.Advance(20 * time.Minute)
	out := s.get(opened)
	wantFields(t, out.body, map[string]string{
		"status": `"EXPIRED"`, "method": "null", "approvedAt": "null", "balanceAmount": "30000", "useEscrow": "null",
		"lastTransactionKey": "null", "card": "null",
	})
	if failure, _ := out.object["failure"].(map[string]any); failure["code"] != "EXPIRED_PAYMENT" {
		t.Errorf("failure %v", failure)
	}
	notices := s.Notices()
	if len(notices) != 2 || notices[0].PaymentKey != authenticated || notices[1].PaymentKey != opened {
		t.Errorf("notices %+v", notices)
	}
	if err := s.Expire(opened); !errors.Is(err, tosssim.ErrState) {
		t.Errorf("expire twice: %v", err)
	}
	if err := s.Expire("nobody"); !errors.Is(err, tosssim.ErrNotFound) {
		t.Errorf("expire nobody: %v", err)
	}
	mustDo(t, s.Expire(s.Open(tosssim.Checkout{OrderID: "order-3", Amount: 1})))
}

func TestConcurrentConfirmsHaveOneEffect(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.Authenticate(tosssim.Checkout{OrderID: "order-1", Amount: 50_000})
	var racing sync.WaitGroup
	for range 10 {
		racing.Go(func() { s.confirm(key, "order-1", "50000") })
	}
	racing.Wait()
	effects := 0
	for _, call := range s.Calls() {
		if call.Effect {
			effects++
		}
	}
	if effects != 1 || s.Totals().Captures != 1 || s.CountKey(tosssim.Confirm, key) != 10 {
		t.Errorf("%d effects, totals %+v", effects, s.Totals())
	}
}

func TestAbortAfterDoneOnlySendsTheContradiction(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.paid("order-1")
	mustDo(t, s.Abort(key, "ALREADY_PROCESSED_PAYMENT"))
	wantFields(t, s.get(key).body, map[string]string{"status": `"DONE"`})
	var event struct{ Data json.RawMessage }
	mustDo(t, json.Unmarshal(s.Notices()[1].Body, &event))
	wantFields(t, event.Data, map[string]string{"status": `"ABORTED"`, "approvedAt": "null"})
}

func TestApproveWithoutUs(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.Authenticate(tosssim.Checkout{OrderID: "order-1", Amount: 700})
	s.clock.Advance(time.Hour) // The window has expired, and the money moves all the same.
	mustDo(t, s.Approve(key))
	wantFields(t, s.get(key).body, map[string]string{"status": `"DONE"`, "failure": "null"})
	if err := s.Approve(key); !errors.Is(err, tosssim.ErrState) {
		t.Errorf("approve twice: %v", err)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	for method, want := range map[tosssim.Method]string{
		tosssim.Card: "카드", tosssim.EasyPay: "간편결제", tosssim.Transfer: "계좌이체", tosssim.ForeignEasyPay: "간편결제",
		tosssim.VirtualAccount: "가상계좌",
	} {
		key := s.Authenticate(tosssim.Checkout{OrderID: "order-" + string(method), Amount: 1000, Method: method})
		mustDo(t, s.Approve(key))
		if got := s.get(key).text("method"); got != want {
			t.Errorf("%s: method %s, want %s", method, got, want)
		}
	}
}

func TestSeededPaymentKeepsItsBytes(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	raw := `{ "paymentKey":"odd/key", "orderId":"71","status":"SURPRISE", "totalAmount":1.0e3, "new":{"a":[1, 2]} }`
	mustDo(t, s.PutPayment([]byte(raw)))
	if got := s.get("odd%2Fkey"); string(got.body) != raw {
		t.Errorf("look-up %s", got.body)
	}
	if got, ok := s.Payment("odd/key"); !ok || string(got) != raw {
		t.Errorf("Payment %s", got)
	}
	if _, ok := s.Payment("nobody"); ok {
		t.Error("nobody has a payment")
	}
	for _, bad := range []string{`[]`, `{}`, `{"paymentKey":"a"} 1`, `{"paymentKey":`, `{"paymentKey":"a",1}`} {
		if s.PutPayment([]byte(bad)) == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestSeededPaymentGoesOn(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	mustDo(t, s.PutPayment([]byte(`{"paymentKey":"k","orderId":"o","status":"IN_PROGRESS","currency":"KRW",
		"totalAmount":1000,"balanceAmount":1000,"odd":1.50}`)))
	if out := s.confirm("k", "o", "1000"); out.status != http.StatusOK {
		t.Fatalf("confirm: %d %s", out.status, out.body)
	}
	out := s.cancel("k", `,"cancelAmount":400`)
	wantFields(t, out.body, map[string]string{"balanceAmount": "600", "odd": "1.50", "status": `"PARTIAL_CANCELED"`})
	mustDo(t, s.PutPayment([]byte(`{"paymentKey":"k","orderId":"other"}`)))
	wantRefusal(t, s.must(http.MethodGet, "/v1/payments/orders/o", ""), http.StatusNotFound, "NOT_FOUND_PAYMENT")
	if got := s.must(http.MethodGet, "/v1/payments/orders/other", ""); got.status != http.StatusOK {
		t.Errorf("by the new order: %d", got.status)
	}
}
