package checkout

import (
	"net/http"
	"testing"

	"daesa/ledger"
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
}

func TestConfirm_Refused(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID, key := s.order(50000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_PAYMENT"})
	answer := s.confirm(key, orderID, 50000)
	answer.wants(t, http.StatusPaymentRequired, "REJECT_CARD_PAYMENT")
	s.wantBooks(key, ledger.StatusFailed, ledger.OrderPending)
	s.confirm(key, orderID, 50000).wants(t, http.StatusPaymentRequired, "REJECT_CARD_PAYMENT")
	second := s.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 50000})
	s.confirm(second, orderID, 50000).wants(t, http.StatusOK, "done")
	s.wantBooks(second, ledger.StatusDone, ledger.OrderPaid)
}
