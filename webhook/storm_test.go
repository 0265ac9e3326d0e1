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

// TestReceive_FurtherNoticesHurryAClaimOnceAnHour: a claim that has been asked about for long, and is seldom by now, is
// asked about as soon as a new one when another notice makes it, but not twice within an hour because of notices.
func TestReceive_FurtherNoticesHurryAClaimOnceAnHour(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.paid(t, "order-0001", 50_000)
	forged := encoded(t, notice(whole(key, "order-0001", nil), nil))
	s.send(t, forged).want(t, 409, webhook.OutcomeStateMismatch)
	for _, test := range []struct{ asked, want time.Duration }{
		{2 * time.Hour, 5 * time.Minute}, {55 * time.Minute, 5 * time.Minute}, {10 * time.Minute, 50 * time.Minute},
	} {
		if _, err := s.db.Exec(t.Context(), `UPDATE work SET last_asked_at = $1, due_at = $2`,
			s.clock.Now().Add(-test.asked), s.clock.Now().Add(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		s.send(t, forged).want(t, 409, webhook.OutcomeStateMismatch)
		if got := one[time.Time](t, s.db, `SELECT due_at FROM work`).Sub(s.clock.Now()); got != test.want {
			t.Errorf("asked about %s ago: due in %s, want %s", test.asked, got, test.want)
		}
	}
}
