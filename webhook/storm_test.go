package webhook_test

import (
	"testing"
	"time"

	"daesa/ledger"
	"daesa/webhook"
)

// TestReceive_StormOfForgedNotices: made-up notices of one payment stop costing questions, and lose nothing: real
// cancels of other payments are applied meanwhile, and that of the same payment by its redelivery.
func TestReceive_StormOfForgedNotices(t *testing.T) {
	t.Parallel()
	const free = 10 // questions about one payment that may prove nothing
	s := open(t, options{})
	attacked, other := s.paid(t, "order-0001", 50_000), s.paid(t, "order-0002", 30_000)
	s.sim.ResetCalls()
	forged := encoded(t, notice(whole(attacked, "order-0001", nil), nil))
	for range free {
		s.send(t, forged).want(t, 409, webhook.OutcomeStateMismatch)
	}
	for range 30 {
		s.send(t, forged).want(t, 502, webhook.OutcomeQueryFailed)
	}
	if got := len(s.sim.Calls()); got != free {
		t.Errorf("got %d questions, want %d", got, free)
	}
	if got := s.counted(t, "daesa_webhook_query_failed_total", "fruitless"); got != 30 {
		t.Errorf("got %d counted as fruitless, want 30", got)
	}
	if got := one[int](t, s.db, `SELECT count(*)::integer FROM deliveries WHERE outcome = 'query_failed' AND reason = 'fruitless' AND status = 502`); got != 30 {
		t.Errorf("got %d deliveries refused as fruitless, want 30", got)
	}

	for range free + 5 { // real cancels cost nothing, however many
		_, told := s.cancel(t, other, 1_000)
		s.send(t, told).want(t, 200, webhook.OutcomeAppliedPartial)
	}
	_, told := s.cancel(t, attacked, 50_000)
	s.send(t, told).want(t, 502, webhook.OutcomeQueryFailed)
	if got := one[int](t, s.db, `SELECT count(*)::integer FROM work WHERE kind = 'cancel_claimed' AND closed_at IS NULL AND payment_key = $1`, attacked); got == 0 {
		t.Error("a refused notice left no claim behind")
	}
	s.clock.Advance(time.Minute)
	s.send(t, told).want(t, 200, webhook.OutcomeAppliedFull)
	s.wantBooks(t, attacked, ledger.StatusCanceled, 50_000, 1)
}
