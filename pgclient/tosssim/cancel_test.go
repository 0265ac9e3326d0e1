package tosssim_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"daesa/pgclient/tosssim"
)

func TestCancelInParts(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.paid("order-1")
	first := s.cancel(key, `,"cancelAmount":12000,"refundableAmount":50000`)
	wantFields(t, first.body, map[string]string{
		"status": `"PARTIAL_CANCELED"`, "balanceAmount": "38000", "totalAmount": "50000", "vat": "3455",
		"suppliedAmount": "34545",
	})
	wantRefusal(t, s.cancel(key, `,"cancelAmount":38001`), http.StatusForbidden, "NOT_CANCELABLE_AMOUNT")
	wantRefusal(t, s.cancel(key, `,"refundableAmount":50000`), http.StatusBadRequest, "NOT_MATCHES_REFUNDABLE_AMOUNT")

	rest := s.cancel(key, "")
	wantFields(t, rest.body, map[string]string{"status": `"PARTIAL_CANCELED"`, "balanceAmount": "0", "vat": "0"})
	var payment struct {
		LastTransactionKey string
		Cancels            []struct {
			TransactionKey, CancelStatus   string
			CancelAmount, RefundableAmount int64
		}
	}
	mustDo(t, json.Unmarshal(rest.body, &payment))
	if len(payment.Cancels) != 2 || payment.Cancels[1].CancelAmount != 38_000 ||
		payment.Cancels[0].RefundableAmount != 38_000 || payment.Cancels[1].RefundableAmount != 0 ||
		payment.Cancels[1].TransactionKey != payment.LastTransactionKey || payment.Cancels[1].CancelStatus != "DONE" {
		t.Errorf("cancels %+v", payment)
	}
	wantRefusal(t, s.cancel(key, ""), http.StatusForbidden, "NOT_CANCELABLE_AMOUNT")
	if totals := s.Totals(); totals.Cancels != 2 || totals.Canceled["KRW"] != 50_000 {
		t.Errorf("totals %+v", totals)
	}
}

func TestCancelAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.paid("order-1")
	wantFields(t, s.cancel(key, "").body, map[string]string{"status": `"CANCELED"`, "balanceAmount": "0"})
	wantRefusal(t, s.cancel(key, ""), http.StatusBadRequest, "ALREADY_CANCELED_PAYMENT")
	wantRefusal(t, s.confirm(key, "order-1", "50000"), http.StatusBadRequest, "ALREADY_PROCESSED_PAYMENT")
}

func TestCancelRefuses(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.paid("order-1")
	for _, fields := range []string{
		`,"cancelAmount":0`, `,"cancelAmount":-1`, `,"cancelAmount":1.5`, `,"currency":"USD"`, `,"cancelRequestId":"short"`,
		`,"refundableAmount":true`,
	} {
		wantRefusal(t, s.cancel(key, fields), http.StatusBadRequest, "INVALID_REQUEST")
	}
	for _, body := range []string{`{}`, `{"cancelReason":"` + strings.Repeat("가", 201) + `"}`, ``} {
		wantRefusal(t, s.must(http.MethodPost, "/v1/payments/"+key+"/cancel", body), http.StatusBadRequest, "INVALID_REQUEST")
	}
	wantRefusal(t, s.cancel("nobody", ""), http.StatusNotFound, "NOT_FOUND_PAYMENT")
	open := s.Open(tosssim.Checkout{OrderID: "order-2", Amount: 1000})
	wantRefusal(t, s.cancel(open, ""), http.StatusForbidden, "NOT_CANCELABLE_PAYMENT")
	if s.Totals().Cancels != 0 {
		t.Error("money moved")
	}
}

func TestCancelInDashboard(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.paid("order-1")
	first, err := s.CancelInDashboard(key, 10_000, "상담")
	mustDo(t, err)
	second, err := s.CancelInDashboard(key, 0, "상담")
	mustDo(t, err)
	if first == second || s.Totals().Canceled["KRW"] != 50_000 {
		t.Errorf("cancels %s %s, totals %+v", first, second, s.Totals())
	}
	if _, err := s.CancelInDashboard(key, 1, "상담"); !errors.Is(err, tosssim.ErrState) {
		t.Errorf("too much: %v", err)
	}
	if _, err := s.CancelInDashboard("nobody", 1, "상담"); !errors.Is(err, tosssim.ErrNotFound) {
		t.Errorf("nobody: %v", err)
	}
}

func TestForeignCancelIsAsynchronous(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.Authenticate(tosssim.Checkout{
		OrderID: "order-1", Amount: 72_624, Currency: "USD", Method: tosssim.ForeignEasyPay,
	})
	out := s.confirm(key, "order-1", "726.24")
	wantFields(t, out.body, map[string]string{"totalAmount": "726.24", "vat": "0.0", "suppliedAmount": "726.24"})

	begun := s.cancel(key, `,"cancelAmount":41.5,"currency":"USD","cancelRequestId":"request-1"`)
	wantFields(t, begun.body, map[string]string{"status": `"DONE"`, "balanceAmount": "726.24"})
	cancels, _ := begun.object["cancels"].([]any)
	entry, _ := cancels[0].(map[string]any)
	transaction, _ := entry["transactionKey"].(string)
	if entry["cancelStatus"] != "IN_PROGRESS" || entry["cancelRequestId"] != "request-1" {
		t.Fatalf("cancel %v", entry)
	}
	wantRefusal(t, s.cancel(key, ""), http.StatusForbidden, "FORBIDDEN_CONSECUTIVE_REQUEST")
	mustDo(t, s.FinishCancel(transaction, false))
	wantFields(t, s.get(key).body, map[string]string{"status": `"DONE"`, "balanceAmount": "726.24"})

	again, err := s.CancelInDashboard(key, 72_624, "again")
	mustDo(t, err)
	mustDo(t, s.FinishCancel(again, true))
	wantFields(t, s.get(key).body, map[string]string{"status": `"CANCELED"`, "balanceAmount": "0.0"})
	if err := s.FinishCancel(again, true); !errors.Is(err, tosssim.ErrNotFound) {
		t.Errorf("finish twice: %v", err)
	}
	if totals := s.Totals(); totals.Cancels != 1 || totals.Canceled["USD"] != 72_624 {
		t.Errorf("totals %+v", totals)
	}
	var types []string
	for _, n := range s.Notices() {
		types = append(types, n.EventType)
		if n.EventType == "CANCEL_STATUS_CHANGED" && strings.Contains(string(n.Body), key) {
			t.Errorf("the cancel event names its payment: %s", n.Body)
		}
	}
	want := []string{"PAYMENT_STATUS_CHANGED", "CANCEL_STATUS_CHANGED", "CANCEL_STATUS_CHANGED", "PAYMENT_STATUS_CHANGED"}
	if !slices.Equal(types, want) {
		t.Errorf("notices %s", types)
	}
}
