package checkout

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
)

func TestConfirm_Approved(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID, key := s.order(50000)
	answer := s.confirm(key, orderID, "50000")
	answer.wants(t, http.StatusOK, "done")
	if got := answer.text("amount"); got != "50000" {
		t.Errorf("got amount %q, want 50000", got)
	}
	s.wantBooks(key, ledger.StatusDone, ledger.OrderPaid)
	s.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
	if got := s.sim.Count(tosssim.Confirm); got != 1 {
		t.Errorf("got %d confirm calls, want 1", got)
	}
	order := s.call("GET", "/v1/orders/"+orderID, nil)
	order.wants(t, http.StatusOK, "paid")
}

func TestConfirm_SampleFrontEndFieldsAreTolerated(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID, key := s.order(1000)
	body := fmt.Sprintf(`{"paymentKey":%q,"orderId":%q,"amount":"1000","paymentType":"NORMAL","customerKey":null}`, key, orderID)
	s.call("POST", "/v1/payments/confirm", body).wants(t, http.StatusOK, "done")
	s.call("POST", "/v1/payments/confirm", strings.Replace(body, "paymentType", "surprise", 1)).wants(t, http.StatusBadRequest, "malformed")
}

// TestConfirm_WonAreWon: the same integer everywhere, whatever its size (no factor of 100 anywhere).
func TestConfirm_WonAreWon(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	for _, won := range []int64{1, 99, 100, 101, 50000} {
		_, key := s.paid(won)
		if won > 1 {
			s.cancel(key, "one-won", map[string]any{"reason": "test", "amount": 1}).wants(t, http.StatusOK, "done")
		}
		view := s.call("GET", "/v1/payments/"+key, nil)
		if got, want := view.text("captured"), fmt.Sprint(won); got != want {
			t.Errorf("got captured %q, want %q", got, want)
		}
		for _, c := range s.sim.Calls() {
			if c.Op == tosssim.Confirm && c.PaymentKey == key && !strings.Contains(string(c.Body), fmt.Sprintf(`"amount":%d}`, won)) {
				t.Errorf("gateway got %s, want amount %d", c.Body, won)
			}
		}
	}
	if got := s.sim.Totals().Canceled["KRW"]; got != 4 {
		t.Errorf("got %d won canceled, want 4", got)
	}
}

func TestConfirm_DollarsAreExact(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID := "order-usd1"
	s.call("POST", "/v1/orders", map[string]any{"order_id": orderID, "amount": "726.24", "currency": "USD"}, keyHeader, "usd").
		wants(t, http.StatusCreated, "pending")
	key := s.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 72624, Currency: "USD", Method: tosssim.ForeignEasyPay})
	s.confirm(key, orderID, "726.24").wants(t, http.StatusOK, "done")
	s.wantBooks(key, ledger.StatusDone, ledger.OrderPaid)
}

func TestConfirm_BadRequestsNeverReachTheGateway(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID, key := s.order(50000)
	_, used := s.paid(50000)
	confirmed := s.sim.Count(tosssim.Confirm)
	type row struct {
		name, key, order, amount string
		status                   int
		code                     string
	}
	tests := []row{
		{"other order's key", used, orderID, "50000", 409, "other_order"},
		{"unknown order", key, "ord-nope", "50000", 404, "not_found"},
		{"order with a slash", key, "../settlements", "50000", 400, "invalid_request"},
	}
	for _, amount := range []string{"0", "-1", "50000.4", "true", "null", `""`, `"50,000"`, `" 50000"`, "[50000]", "{}", `"NaN"`, "1e400", `"1e400"`, `"50000won"`} {
		tests = append(tests, row{"amount " + amount, key, orderID, amount, 400, ""})
	}
	for _, amount := range []string{"49999", "50001", "100", "5000000", "9223372036854775807"} {
		tests = append(tests, row{"amount " + amount, key, orderID, amount, 400, "amount_mismatch"})
	}
	for _, bad := range []string{
		"../settlements", "pk_t1/cancel", "pk_t1?x=1", "pk_t1#f", "pk_t1%2Fcancel", "http://127.0.0.1:9/",
		strings.Repeat("a", 201), "", `pk_t1\nX-Injected: 1`, "pk_t1;rm", "pk t1",
	} {
		tests = append(tests, row{"key " + bad, bad, orderID, "50000", 400, "invalid_request"})
	}
	for _, test := range tests {
		body := fmt.Sprintf(`{"paymentKey":"%s","orderId":"%s","amount":%s}`, test.key, test.order, test.amount)
		answer := s.call("POST", "/v1/payments/confirm", body)
		if answer.status != test.status || (test.code != "" && answer.text("code") != test.code) {
			t.Errorf("%s: got %d %v, want %d %s", test.name, answer.status, answer.body, test.status, test.code)
		}
	}
	s.call("POST", "/v1/payments/confirm", fmt.Sprintf(`{"paymentKey":%q,"orderId":%q}`, key, orderID)).wants(t, 400, "amount_malformed")
	if got := s.sim.Count(tosssim.Confirm); got != confirmed {
		t.Errorf("got %d confirm calls, want %d", got, confirmed)
	}
	if _, _, err := ledger.Load(t.Context(), s.db, key); err == nil {
		t.Error("a refused request must leave no payment behind")
	}
	s.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
}

func TestConfirm_Refused(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID, key := s.order(50000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_PAYMENT"})
	answer := s.confirm(key, orderID, 50000)
	answer.wants(t, http.StatusPaymentRequired, "REJECT_CARD_PAYMENT")
	if answer.text("message") == "" {
		t.Error("the gateway's words for the buyer are missing")
	}
	s.wantBooks(key, ledger.StatusFailed, ledger.OrderPending)
	s.confirm(key, orderID, 50000).wants(t, http.StatusPaymentRequired, "REJECT_CARD_PAYMENT")
	second := s.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 50000})
	s.confirm(second, orderID, 50000).wants(t, http.StatusOK, "done")
	s.wantBooks(second, ledger.StatusDone, ledger.OrderPaid)
}

// TestConfirm_DeclinedCardsDoNotOpenTheBreaker also shows that each failed payment leaves its order payable.
func TestConfirm_DeclinedCardsDoNotOpenTheBreaker(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_PAYMENT", N: 15})
	for range 15 {
		orderID, key := s.order(1000)
		s.confirm(key, orderID, 1000).wants(t, http.StatusPaymentRequired, "REJECT_CARD_PAYMENT")
	}
	s.paid(50000)
}

func TestConfirm_ExpiredSessionIsAskedAboutOnceAndFinal(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID, key := s.order(50000)
	must(t, s.sim.Expire(key))
	s.confirm(key, orderID, 50000).wants(t, http.StatusPaymentRequired, "NOT_FOUND_PAYMENT_SESSION")
	s.wantBooks(key, ledger.StatusFailed, ledger.OrderPending)
}

func TestConfirm_ExpiredOrder(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID, key := s.order(50000)
	s.ahead.Store(int64(31 * time.Minute))
	s.confirm(key, orderID, 50000).wants(t, http.StatusConflict, "order_expired")
	if got := s.sim.Count(tosssim.Confirm); got != 0 {
		t.Errorf("got %d confirm calls, want 0", got)
	}
}

func TestConfirm_ObjectThatContradictsTheOrderIsNotBooked(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{paths: quickPaths()})
	orderID, key := s.order(50000)
	cheap := s.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 100})
	must(t, s.sim.Approve(cheap))
	raw, _ := s.sim.Payment(cheap)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Body, Body: strings.ReplaceAll(string(raw), cheap, key)})
	s.confirm(key, orderID, 50000).wants(t, http.StatusAccepted, "unknown")
	s.wantBooks(key, ledger.StatusUnknown, ledger.OrderPending)
}

func TestConfirm_TurnedAwayStaysPayable(t *testing.T) {
	t.Parallel()
	tests := []struct {
		code   string
		http   int
		status int
		word   string
	}{
		{"UNAUTHORIZED_KEY", 401, 502, "gateway_setup"},
		{"FORBIDDEN_REQUEST", 403, 502, "gateway_setup"},
		{"TOO_MANY_REQUESTS", 429, 503, "gateway_unprocessed"},
	}
	for _, test := range tests {
		t.Run(test.code, func(t *testing.T) {
			t.Parallel()
			s := open(t, shopOptions{paths: quickPaths()})
			orderID, key := s.order(50000)
			s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Code: test.http, Body: test.code})
			s.confirm(key, orderID, 50000).wants(t, test.status, test.word)
			s.wantBooks(key, ledger.StatusReady, ledger.OrderPending)
			s.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
			calls := s.sim.Calls()
			if got, want := calls[len(calls)-1].IdempotencyKey, "confirm-"+key+"-2"; got != want {
				t.Errorf("got gateway key %s, want %s: the old one is bound to the refusal", got, want)
			}
		})
	}
}

func TestConfirm_DoubleClickIsOnePayment(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID, key := s.order(50000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Delay, Delay: time.Minute})
	first := make(chan said, 1)
	go func() {
		answer, _ := s.try(t.Context(), "POST", "/v1/payments/confirm", confirmOf(key, orderID, 50000))
		first <- answer
	}()
	eventually(t, "the first press is at the gateway", func() bool { return s.sim.Count(tosssim.Confirm) == 1 })
	s.confirm(key, orderID, 50000).wants(t, http.StatusAccepted, "confirming")
	s.sim.Heal()
	(<-first).wants(t, http.StatusOK, "done")
	if got := s.effects(tosssim.Confirm, key); got != 1 || s.sim.Count(tosssim.Get) != 0 {
		t.Errorf("got %d approvals and %d questions, want 1 and 0", got, s.sim.Count(tosssim.Get))
	}
}

func TestConfirm_SecondPaymentKeyOfAnOrder(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{paths: quickPaths()})
	orderID, first := s.order(50000)
	second := s.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 50000})
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Reset})
	s.confirm(first, orderID, 50000).wants(t, http.StatusAccepted, "unknown")
	s.confirm(second, orderID, 50000).wants(t, http.StatusConflict, "order_taken")
	must(t, s.sim.Expire(first))
	s.confirm(second, orderID, 50000).wants(t, http.StatusOK, "done")
	s.wantBooks(first, ledger.StatusFailed, ledger.OrderPaid)
	third := s.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 50000})
	s.confirm(third, orderID, 50000).wants(t, http.StatusConflict, "order_taken")
	if got := s.effects(tosssim.Confirm, third); got != 0 {
		t.Errorf("got %d approvals of a third key, want 0", got)
	}
}

func TestConfirm_BuyerHangsUp(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID, key := s.order(50000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Delay, Delay: time.Minute})
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := s.try(ctx, "POST", "/v1/payments/confirm", confirmOf(key, orderID, 50000))
		gone <- err
	}()
	eventually(t, "the approval is at the gateway", func() bool { return s.sim.Count(tosssim.Confirm) == 1 })
	hangUp()
	if err := <-gone; err == nil {
		t.Fatal("the buyer should have seen an error")
	}
	s.sim.Heal()
	eventually(t, "the outcome is booked", func() bool {
		p, _ := s.books(key)
		return p.Status == ledger.StatusDone
	})
	s.wantBooks(key, ledger.StatusDone, ledger.OrderPaid)
}

func TestConfirm_CapRefusesBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{paths: pgclient.Paths{Confirm: pgclient.Path{Cap: 1}}})
	firstOrder, first := s.order(1000)
	orderID, key := s.order(50000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Delay, Delay: time.Minute})
	answer := make(chan said, 1)
	go func() {
		a, _ := s.try(t.Context(), "POST", "/v1/payments/confirm", confirmOf(first, firstOrder, 1000))
		answer <- a
	}()
	eventually(t, "the slot is taken", func() bool { return s.sim.Count(tosssim.Confirm) == 1 })
	refused := s.confirm(key, orderID, 50000)
	refused.wants(t, http.StatusServiceUnavailable, "gateway_busy")
	if refused.header.Get("Retry-After") == "" {
		t.Error("a busy reply needs Retry-After")
	}
	if _, _, err := ledger.Load(t.Context(), s.db, key); err == nil {
		t.Error("a call that was never sent must leave no payment behind")
	}
	s.sim.Heal()
	(<-answer).wants(t, http.StatusOK, "done")
	s.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
	s.wantMetric(`daesa_checkout_refused_before_sending_krw_total{reason="cap"}`, 50000)
	s.wantMetric(`daesa_checkout_confirms_total{result="busy"}`, 1)
	s.wantMetric(`daesa_checkout_confirms_total{result="approved"}`, 2)
}

func TestConfirm_OpenBreakerRefusesBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{paths: quickPaths()})
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Reset, N: 10})
	for range 10 {
		orderID, key := s.order(1000)
		s.confirm(key, orderID, 1000).wants(t, http.StatusAccepted, "unknown")
	}
	orderID, key := s.order(50000)
	s.confirm(key, orderID, 50000).wants(t, http.StatusServiceUnavailable, "gateway_down")
	if _, _, err := ledger.Load(t.Context(), s.db, key); err == nil {
		t.Error("a call that was never sent must leave no payment behind")
	}
}

// TestConfirm_CancelOvertakesTheReply: the payment is canceled at the gateway, and its notice recorded, before the reply
// to the approval is. The older reply brings nothing back, and the buyer is not told of a success.
func TestConfirm_CancelOvertakesTheReply(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		amount int64
		status int
		word   string
		books  ledger.Status
		order  ledger.OrderStatus
	}{
		{0, http.StatusConflict, "payment_canceled", ledger.StatusCanceled, ledger.OrderCanceled},
		{12000, http.StatusOK, "partially_canceled", ledger.StatusPartiallyCanceled, ledger.OrderPartiallyCanceled},
	} {
		t.Run(test.word, func(t *testing.T) {
			t.Parallel()
			var s *shop
			var orderID, key string
			overtake := func() {
				_, err := s.sim.CancelInDashboard(key, test.amount, "dashboard")
				must(t, err)
				s.lookUpNow(key)
			}
			s = open(t, shopOptions{config: func(c *Config) { c.Gateway = &interrupted{Gateway: c.Gateway, after: func() { overtake() }} }})
			orderID, key = s.order(50000)
			s.confirm(key, orderID, 50000).wants(t, test.status, test.word)
			s.wantBooks(key, test.books, test.order)
		})
	}
}
