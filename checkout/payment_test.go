package checkout

import (
	"net/http"
	"testing"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

func TestConfirm_IdempotencyKeyIsHonoured(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID, key := s.order(50000)
	body := confirmOf(key, orderID, 50000)
	s.call("POST", "/v1/payments/confirm", body, keyHeader, "press").wants(t, http.StatusOK, "done")
	again := s.call("POST", "/v1/payments/confirm", body, keyHeader, "press")
	again.wants(t, http.StatusOK, "done")
	if again.header.Get("Idempotent-Replay") != "true" {
		t.Error("the stored reply must say that it is one")
	}
}

func TestConfirm_RefusalIsReplayed(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID, key := s.order(50000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "INVALID_STOPPED_CARD"})
	body := confirmOf(key, orderID, 50000)
	first := s.call("POST", "/v1/payments/confirm", body, keyHeader, "press")
	first.wants(t, http.StatusPaymentRequired, "INVALID_STOPPED_CARD")
	second := s.call("POST", "/v1/payments/confirm", body, keyHeader, "press")
	second.wants(t, http.StatusPaymentRequired, "INVALID_STOPPED_CARD")
	if first.text("message") != second.text("message") {
		t.Errorf("got %q, want the first message %q", second.text("message"), first.text("message"))
	}
}

func TestConfirm_VirtualAccountIssuedThenPaid(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID := s.bareOrder(50000)
	key := s.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 50000, Method: tosssim.VirtualAccount})
	s.confirm(key, orderID, 50000).wants(t, http.StatusOK, "waiting_for_deposit")
	s.wantBooks(key, ledger.StatusWaitingForDeposit, ledger.OrderPending)
	s.confirm(key, orderID, 50000).wants(t, http.StatusOK, "waiting_for_deposit")
	s.wantMetric(`daesa_checkout_confirms_total{result="waiting"}`, 2)
}

func TestPayment_StatusAddress(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	_, key := s.paid(50000)
	_, other := s.paid(1000)
	s.call("GET", s.handler.statusURL(key), nil, "Authorization", "").wants(t, http.StatusOK, "done")
	for _, path := range []string{
		"/v1/payments/" + key, "/v1/payments/" + key + "?token=", "/v1/payments/" + key + "?token=" + s.handler.token(other),
	} {
		s.call("GET", path, nil, "Authorization", "").wants(t, http.StatusUnauthorized, "unauthorized")
	}
	view := s.call("GET", "/v1/payments/"+key, nil)
	view.wants(t, http.StatusOK, "done")
	if view.text("balance") != "50000" || view.body["cancels"] == nil {
		t.Errorf("got %v, want the whole payment", view.body)
	}
}

func TestPayment_ShowsOpenWork(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{paths: quickPaths()})
	orderID, key := s.order(50000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Reset})
	s.confirm(key, orderID, 50000).wants(t, http.StatusAccepted, "unknown")
	view := s.call("GET", "/v1/payments/"+key, nil)
	work, _ := view.body["open_work"].([]any)
	if len(work) != 1 || work[0].(map[string]any)["kind"] != "confirm_unknown" {
		t.Errorf("got open work %v, want the unknown confirm", view.body["open_work"])
	}
}
