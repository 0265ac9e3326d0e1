package checkout

import (
	"fmt"
	"net/http"
	"testing"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

// canceledObject is a payment object of 10,000 won that was canceled whole under the transaction key "tx-1".
func canceledObject(paymentKey, orderID, cancelStatus string) string {
	return fmt.Sprintf(`{"version":"2022-11-16","paymentKey":%q,"orderId":%q,"mId":"x","status":"CANCELED","currency":"KRW",
		"totalAmount":10000,"balanceAmount":0,"approvedAt":"2026-01-01T00:00:00+09:00","lastTransactionKey":"tx-1","cancels":[
		{"transactionKey":"tx-1","cancelAmount":10000,"refundableAmount":0,"cancelStatus":%q,"canceledAt":"2026-01-01T00:00:00+09:00"}]}`,
		paymentKey, orderID, cancelStatus)
}

// TestCancel_AnswerThatContradictsTheBooksEndsNothing: what Record refused to book is not told as done, and the
// request is asked about until it is known.
func TestCancel_AnswerThatContradictsTheBooksEndsNothing(t *testing.T) {
	t.Parallel()
	for _, cancelStatus := range []string{"DONE", "IN_PROGRESS"} {
		t.Run(cancelStatus, func(t *testing.T) {
			t.Parallel()
			s := open(t, shopOptions{})
			_, key := s.paid(10000)
			s.sim.Fail(tosssim.Fault{
				Op: tosssim.Cancel, Kind: tosssim.Body, Code: http.StatusOK, ContentType: "application/json",
				Body: canceledObject(key, "order-other", cancelStatus),
			})
			answer := s.cancel(key, "c1", whole())
			answer.wants(t, http.StatusAccepted, "unknown")
			s.wantBooks(key, ledger.StatusDone, ledger.OrderPaid)
			if got := s.count(`SELECT count(*) FROM work WHERE closed_at IS NULL AND kind = 'cancel_request'`); got != 1 {
				t.Errorf("got %d open questions about the cancel, want 1", got)
			}
		})
	}
}

// TestOurs_NotToldIsNotNothing: of two equal cancels whose objects do not say what was left, the last transaction is
// ours, not the first that looks as if it had left nothing.
func TestOurs_NotToldIsNotNothing(t *testing.T) {
	t.Parallel()
	request := ledger.CancelRequest{Amount: ledger.Won(5000), Refundable: ledger.Won(5000)}
	cancel := func(key string) ledger.ObservedCancel {
		return ledger.ObservedCancel{TransactionKey: key, State: ledger.CancelDone, Amount: ledger.Won(5000)}
	}
	seen := ledger.Observation{LastTransactionKey: "second", Cancels: []ledger.ObservedCancel{cancel("first"), cancel("second")}}
	if got, ok := ours(request, seen); !ok || got.TransactionKey != "second" {
		t.Errorf("got %q, %v, want the last transaction", got.TransactionKey, ok)
	}
}
