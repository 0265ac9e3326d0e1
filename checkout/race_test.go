package checkout

import (
	"net/http"
	"sync"
	"testing"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

// press sends approvals all at once and returns how often each status was answered.
func (s *shop) press(orderID string, keys []string) map[int]int {
	s.t.Helper()
	var all sync.WaitGroup
	answers := make(chan int, len(keys))
	for _, key := range keys {
		all.Go(func() {
			answer, err := s.try(s.t.Context(), "POST", "/v1/payments/confirm", confirmOf(key, orderID, 50000))
			if err != nil {
				s.t.Error(err)
			}
			answers <- answer.status
		})
	}
	all.Wait()
	close(answers)
	counts := map[int]int{}
	for status := range answers {
		counts[status]++
	}
	return counts
}

// TestConfirm_StormOfOnePayment: many presses at once, and a reply lost on the way, are one approval.
func TestConfirm_StormOfOnePayment(t *testing.T) {
	t.Parallel()
	paths := quickPaths()
	paths.Confirm.Attempts = 2
	s := open(t, shopOptions{paths: paths})
	orderID, key := s.order(50000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.LostReply})
	counts := s.press(orderID, []string{key, key, key, key, key, key, key, key})
	if counts[http.StatusOK] == 0 || counts[http.StatusOK]+counts[http.StatusAccepted] != 8 {
		t.Errorf("got %v, want 200 for the one that sent and 200 or 202 for the rest", counts)
	}
	if got := s.effects(tosssim.Confirm, key); got != 1 {
		t.Errorf("got %d approvals, want 1", got)
	}
	s.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
}

// TestInvariantI11_RacingKeysOfOneOrder: of many payments for one order, one is sent.
func TestInvariantI11_RacingKeysOfOneOrder(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID := s.bareOrder(50000)
	var keys []string
	for range 6 {
		keys = append(keys, s.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 50000}))
	}
	counts := s.press(orderID, keys)
	if counts[http.StatusOK] != 1 || counts[http.StatusConflict] != 5 {
		t.Errorf("got %v, want one approval and five refusals", counts)
	}
	if got := s.sim.Totals().Captures; got != 1 {
		t.Errorf("got %d captures at the gateway, want 1", got)
	}
	if got := s.count(`SELECT count(*) FROM payments`); got != 1 {
		t.Errorf("got %d payments in the books, want 1", got)
	}
	order, err := ledger.LoadOrder(t.Context(), s.db, orderID)
	if err != nil || order.Status != ledger.OrderPaid {
		t.Errorf("got order %s, %v, want paid", order.Status, err)
	}
}

// TestCancel_RacingPartsNeverExceedTheBalance: each is sent alone or refused.
func TestCancel_RacingPartsNeverExceedTheBalance(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	_, key := s.paid(10000)
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		all.Go(func() {
			answer, err := s.try(t.Context(), "POST", "/v1/payments/"+key+"/cancel", part(4000), keyHeader, name)
			if err != nil || (answer.status != http.StatusOK && answer.status != http.StatusConflict) {
				t.Errorf("got %d %v %v, want 200 or 409", answer.status, answer.body, err)
			}
		})
	}
	all.Wait()
	p, _ := s.books(key)
	if got := s.sim.Totals().Canceled["KRW"]; got > 8000 || got == 0 || p.Canceled() != ledger.Won(got) {
		t.Errorf("got %d won canceled at the gateway and %s in the books, want the same, at most 8000", got, p.Canceled())
	}
}
