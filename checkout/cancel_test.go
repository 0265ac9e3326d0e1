package checkout

import (
	"net/http"
	"testing"

	"daesa/ledger"
)

func TestCancel_PartThenRest(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	_, key := s.paid(50000)
	s.cancel(key, "c1", map[string]any{"reason": "고객 변심", "amount": "12000"}).wants(t, http.StatusOK, "done")
	s.wantBooks(key, ledger.StatusPartiallyCanceled, ledger.OrderPartiallyCanceled)
	s.cancel(key, "c2", map[string]any{"reason": "고객 변심"}).wants(t, http.StatusOK, "done")
	s.wantBooks(key, ledger.StatusCanceled, ledger.OrderCanceled)
	if p, _ := s.books(key); !p.Balance().IsZero() || len(p.Cancels) != 2 {
		t.Errorf("got balance %s and %d cancels, want nothing and 2", p.Balance(), len(p.Cancels))
	}
	again := s.cancel(key, "c1", map[string]any{"reason": "고객 변심", "amount": "12000"})
	again.wants(t, http.StatusOK, "done")
	if again.header.Get("Idempotent-Replay") != "true" {
		t.Error("a repeated cancel must be answered from the stored reply")
	}
}
