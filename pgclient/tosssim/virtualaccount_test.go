package tosssim_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"daesa/pgclient/tosssim"
)

// issued is a virtual account of 70,000 won that waits for its deposit.
func issued(t *testing.T, s *shop) (key string, confirmed answer) {
	t.Helper()
	key = s.Authenticate(tosssim.Checkout{OrderID: "order-1", Amount: 70_000, Method: tosssim.VirtualAccount})
	return key, s.confirm(key, "order-1", "70000")
}

func TestVirtualAccountLife(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key, confirmed := issued(t, s)
	wantFields(t, confirmed.body, map[string]string{
		"status": `"WAITING_FOR_DEPOSIT"`, "approvedAt": "null", "method": `"가상계좌"`, "card": "null",
	})
	account, _ := confirmed.object["virtualAccount"].(map[string]any)
	if account["dueDate"] != "2026-04-22T10:00:00+09:00" || account["expired"] != false || confirmed.text("secret") == "" {
		t.Errorf("account %v", account)
	}
	if s.Totals().Captures != 0 {
		t.Error("an issued account counts as money")
	}

	mustDo(t, s.Deposit(key))
	wantFields(t, s.get(key).body, map[string]string{"status": `"DONE"`, "approvedAt": `"2026-04-15T10:00:00+09:00"`})
	mustDo(t, s.RevertDeposit(key))
	wantFields(t, s.get(key).body, map[string]string{"status": `"WAITING_FOR_DEPOSIT"`, "approvedAt": "null"})
	if totals := s.Totals(); totals.Captures != 0 || totals.Captured["KRW"] != 0 {
		t.Errorf("totals after the reversal %+v", totals)
	}
	mustDo(t, s.Deposit(key))
	if err := s.Deposit(key); !errors.Is(err, tosssim.ErrState) {
		t.Errorf("deposit twice: %v", err)
	}

	account5 := `,"refundReceiveAccount":{"bank":"20","accountNumber":"1002","holderName":"김"}`
	wantRefusal(t, s.cancel(key, ""), http.StatusBadRequest, "INVALID_REFUND_ACCOUNT_INFO")
	wantRefusal(t, s.cancel(key, `,"refundReceiveAccount":{"bank":"20","accountNumber":"1-2","holderName":"김"}`),
		http.StatusBadRequest, "INVALID_REFUND_ACCOUNT_NUMBER")
	wantRefusal(t, s.cancel(key, `,"refundReceiveAccount":{"accountNumber":"12","holderName":"김"}`),
		http.StatusBadRequest, "INVALID_BANK")
	wantFields(t, s.cancel(key, account5+`,"cancelAmount":20000`).body, map[string]string{"balanceAmount": "50000"})
	if err := s.RevertDeposit(key); !errors.Is(err, tosssim.ErrState) {
		t.Errorf("revert after a cancel: %v", err)
	}
}

func TestVirtualAccountSendsBothNotices(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key, confirmed := issued(t, s)
	mustDo(t, s.Deposit(key))
	notices := s.Notices()
	if len(notices) != 4 {
		t.Fatalf("%d notices", len(notices))
	}
	for i, status := range []string{"WAITING_FOR_DEPOSIT", "DONE"} {
		flat, full := notices[2*i], notices[2*i+1]
		var callback map[string]string
		mustDo(t, json.Unmarshal(flat.Body, &callback))
		if flat.EventType != "DEPOSIT_CALLBACK" || callback["status"] != status || callback["orderId"] != "order-1" ||
			callback["secret"] != confirmed.text("secret") || callback["transactionKey"] == "" || len(callback) != 5 {
			t.Errorf("callback %s", flat.Body)
		}
		var event struct {
			Data struct{ Status, PaymentKey string }
		}
		mustDo(t, json.Unmarshal(full.Body, &event))
		if full.EventType != "PAYMENT_STATUS_CHANGED" || event.Data.Status != status || event.Data.PaymentKey != key {
			t.Errorf("event %s", full.Body)
		}
	}
}

func TestUnpaidVirtualAccountIsCanceledWithoutMoney(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key, _ := issued(t, s)
	wantRefusal(t, s.cancel(key, `,"cancelAmount":1000`), http.StatusForbidden, "NOT_ALLOWED_PARTIAL_REFUND_WAITING_DEPOSIT")
	wantFields(t, s.cancel(key, "").body, map[string]string{"status": `"CANCELED"`, "balanceAmount": "0", "approvedAt": "null"})
	if totals := s.Totals(); totals.Captures != 0 || totals.Cancels != 0 {
		t.Errorf("totals %+v", totals)
	}
}

func TestVirtualAccountPastDueStaysWaiting(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key, _ := issued(t, s)
	before := len(s.Notices())
	s.clock.Advance(8 * 24 * time.Hour)
	out := s.get(key)
	account, _ := out.object["virtualAccount"].(map[string]any)
	if out.text("status") != "WAITING_FOR_DEPOSIT" || account["expired"] != true || len(s.Notices()) != before {
		t.Errorf("past due: %s", out.body)
	}
	if err := s.Deposit(key); !errors.Is(err, tosssim.ErrState) {
		t.Errorf("deposit past due: %v", err)
	}
}

func TestHideSecret(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{HideSecret: true})
	key, confirmed := issued(t, s)
	if confirmed.text("secret") == "" {
		t.Error("the confirm hides the secret")
	}
	wantFields(t, s.get(key).body, map[string]string{"secret": "null"})
}
