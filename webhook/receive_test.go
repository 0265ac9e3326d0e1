package webhook_test

import (
	"testing"

	"daesa/ledger"
	"daesa/webhook"
)

// TestReceive_AppliesOnce: a cancel is recorded with its outcome, and a copy is answered without asking.
func TestReceive_AppliesOnce(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.paid(t, "order-0001", 50_000)
	_, notice := s.cancel(t, key, 0)
	s.sim.ResetCalls()
	s.send(t, notice).want(t, 200, webhook.OutcomeAppliedFull)
	s.send(t, notice).want(t, 200, webhook.OutcomeDuplicateSkipped)
	s.wantBooks(t, key, ledger.StatusCanceled, 50_000, 1)
	if got := len(s.sim.Calls()); got != 1 {
		t.Errorf("got %d questions, want 1", got)
	}
}
