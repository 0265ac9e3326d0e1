package checkout

import (
	"net/http"
	"testing"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

// TestConfirm_BooksAnswerWhileTheBreakerIsOpen: how a payment of the books stands does not depend on the gateway.
func TestConfirm_BooksAnswerWhileTheBreakerIsOpen(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{paths: quickPaths()})
	paidOrder, paid := s.paid(10000)
	goneOrder, gone := s.paid(10000)
	s.cancel(gone, "c1", whole()).wants(t, http.StatusOK, "done")
	refusedOrder, refused := s.order(10000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_PAYMENT", N: 1})
	s.confirm(refused, refusedOrder, 10000).wants(t, http.StatusPaymentRequired, "REJECT_CARD_PAYMENT")
	down := false
	for range 20 {
		orderID, key := s.order(5000)
		s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Status, N: 1, Code: 500})
		if answer := s.confirm(key, orderID, 5000); answer.text("code") == "gateway_down" {
			down = true
			break
		}
	}
	if !down {
		t.Fatal("got an open breaker never, want it after a row of failures")
	}
	s.confirm(paid, paidOrder, 10000).wants(t, http.StatusOK, "done")
	s.confirm(gone, goneOrder, 10000).wants(t, http.StatusConflict, "payment_canceled")
	s.confirm(refused, refusedOrder, 10000).wants(t, http.StatusPaymentRequired, "REJECT_CARD_PAYMENT")
	s.confirm(paid, goneOrder, 10000).wants(t, http.StatusConflict, "other_order")
}

// TestConfirm_SessionGoneAndForgotten: once the session is over and the gateway no longer knows the key, the only call
// that was made approved nothing, and the order takes another payment.
func TestConfirm_SessionGoneAndForgotten(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{paths: quickPaths()})
	orderID, key := s.order(10000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "NOT_FOUND_PAYMENT_SESSION", N: 1})
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Refuse, Body: "NOT_FOUND_PAYMENT", N: -1, PaymentKey: key})
	s.confirm(key, orderID, 10000).wants(t, http.StatusPaymentRequired, "NOT_FOUND_PAYMENT_SESSION")
	s.wantBooks(key, ledger.StatusFailed, ledger.OrderPending)
	other := s.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 10000})
	s.confirm(other, orderID, 10000).wants(t, http.StatusOK, "done")
}

// TestConfirm_ForgottenAfterALostCallIsNoEvidence: a key that the gateway does not know proves nothing of a call whose
// answer was lost.
func TestConfirm_ForgottenAfterALostCallIsNoEvidence(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{paths: quickPaths()})
	orderID, key := s.order(10000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "PROVIDER_ERROR", N: 1})
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Refuse, Body: "NOT_FOUND_PAYMENT", N: -1, PaymentKey: key})
	s.confirm(key, orderID, 10000).wants(t, http.StatusAccepted, "unknown")
}

// TestConfirm_MadeUpKeyIsToldToNobody: a key that the gateway has never heard of is nobody's payment. A refused buyer is.
func TestConfirm_MadeUpKeyIsToldToNobody(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID, key := s.order(10000)
	for _, made := range []string{"made-up-1", "made-up-2"} {
		s.confirm(made, orderID, 10000).wants(t, http.StatusPaymentRequired, "NOT_FOUND_PAYMENT")
	}
	if got := s.count(`SELECT count(*) FROM events`); got != 0 {
		t.Errorf("got %d events of made-up keys, want none", got)
	}
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_PAYMENT", N: 1})
	s.confirm(key, orderID, 10000).wants(t, http.StatusPaymentRequired, "REJECT_CARD_PAYMENT")
	if got := s.count(`SELECT count(*) FROM events WHERE kind = 'payment.failed'`); got != 1 {
		t.Errorf("got %d events of a refused buyer, want 1", got)
	}
}

// TestCancel_WithoutACustomerNobodyIsNoticed: an order that names no customer has nobody to send a notice to.
func TestCancel_WithoutACustomerNobodyIsNoticed(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	for _, test := range []struct {
		extra []any
		want  int
	}{{nil, 0}, {[]any{"customer_id", "kim"}, 1}} {
		_, key := s.paid(10000, test.extra...)
		s.cancel(key, "c1", whole()).wants(t, http.StatusOK, "done")
		if got := s.count(`SELECT count(*) FROM events WHERE audience = 'customer'`); got != test.want {
			t.Errorf("customer %v: got %d notices, want %d", test.extra, got, test.want)
		}
	}
}
