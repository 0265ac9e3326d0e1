package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// TestWhose_ACancelOfAnotherOrderBreaks: a cancel that both books have with the same money, but of two payments or of two
// orders, breaks its day as one mismatch with the evidence of both, until they say the same or a person accepts just that.
func TestWhose_ACancelOfAnotherOrderBreaks(t *testing.T) {
	t.Parallel()
	s := setup(t)
	first, second := s.paid("order-1", 1000), s.paid("order-2", 1000)
	s.clock.Advance(time.Minute)
	key := s.canceled(first, 400)
	s.record(s.ask(ledger.ChannelWebhook, first))
	s.clock.Advance(20 * time.Minute)
	s.poll()
	says := func(name string, verdict reconcile.Verdict, open int) {
		t.Helper()
		if st := s.agrees(name); st.Verdict != verdict || s.mismatches(ledger.KindOrderDiffers) != open || !st.Sums[0].Holds() {
			t.Errorf("%s: got %s and %d open, want %s and %d: %+v", name, st.Verdict, s.mismatches(ledger.KindOrderDiffers), verdict, open, st.Lines)
		}
	}
	listed := func(payment, order string) {
		s.exec(`UPDATE mirror SET payment_key = $1, order_id = $2 WHERE transaction_key = $3`, payment, order, key)
	}
	says("as it happened", reconcile.VerdictReconciled, 0)
	listed(second, "order-2")
	says("of another payment", reconcile.VerdictBreaks, 1)
	got := s.text(`SELECT concat_ws(' ', payment_key, order_id, transaction_key, amount, gateway ->> 'order_id', books ->> 'payment_key', books ->> 'order_id')
		FROM mismatches WHERE kind = 'order_differs'`)
	if want := strings.Join([]string{second, "order-2", key, "400", "order-2", first, "order-1"}, " "); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	listed(first, "order-1")
	says("put right", reconcile.VerdictReconciled, 0)
	listed(first, "")
	says("of an order that the list does not name", reconcile.VerdictReconciled, 0)
	listed(first, "order-1")

	s.exec(`UPDATE cancels SET payment_key = $1, order_id = 'order-2'`, second)
	says("booked for another payment", reconcile.VerdictBreaks, 1)
	s.exec(`UPDATE cancels SET payment_key = $1`, first)
	says("booked for another order", reconcile.VerdictBreaks, 1)
	accept := `UPDATE mismatches SET status = 'resolved', resolved_at = now(), resolved_as = 'accepted', resolved_by = 'os:kim', note = 'ours'
		WHERE kind = 'order_differs' AND status <> 'resolved'`
	s.exec(accept)
	says("accepted", reconcile.VerdictReconciled, 0)
	if beside := s.audit(reconcile.ScopeRecent).Line(reconcile.LineAcceptedBeside, ledger.KRW); beside.Count != 1 || beside.Amount != 400 {
		t.Errorf("accepted: got %+v beside the sum", beside)
	}
	s.exec(`UPDATE cancels SET payment_key = $1`, second)
	says("another difference than was accepted", reconcile.VerdictBreaks, 1)
	s.exec(`UPDATE cancels SET payment_key = $1, order_id = 'order-1'`, first)
	says("put right again", reconcile.VerdictReconciled, 0)

	s.overnight(monday)
	listed(second, "order-2")
	if st := s.closeDay(monday); st.Verdict != reconcile.VerdictBreaks || s.mismatches(ledger.KindOrderDiffers) != 1 {
		t.Errorf("closing: got %s", st.Verdict)
	}
}

// TestWhose_ACaptureOfAnotherOrderBreaks: so does a capture, whichever of the two rows came first or was changed.
func TestWhose_ACaptureOfAnotherOrderBreaks(t *testing.T) {
	t.Parallel()
	s := setup(t)
	first := s.paid("order-1", 1000)
	s.order("order-2", 1000, tosssim.Card)
	s.order("order-3", 1000, tosssim.Card)
	s.clock.Advance(20 * time.Minute)
	s.poll()
	says := func(name string, verdict reconcile.Verdict, open int) {
		t.Helper()
		if st := s.agrees(name); st.Verdict != verdict || s.mismatches(ledger.KindOrderDiffers) != open {
			t.Errorf("%s: got %s and %d open, want %s and %d: %+v", name, st.Verdict, s.mismatches(ledger.KindOrderDiffers), verdict, open, st.Lines)
		}
	}
	says("as it happened", reconcile.VerdictReconciled, 0)
	s.exec(`UPDATE mirror SET order_id = 'order-2'`)
	says("listed for another order", reconcile.VerdictBreaks, 1)
	got := s.text(`SELECT concat_ws(' ', payment_key, order_id, amount, gateway ->> 'order_id', books ->> 'order_id') FROM mismatches`)
	if want := first + " order-2 1000 order-2 order-1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.exec(`UPDATE payments SET order_id = 'order-2'`)
	says("both for another order", reconcile.VerdictReconciled, 0)
	s.exec(`UPDATE mirror SET order_id = ''`)
	says("of an order that the list does not name", reconcile.VerdictReconciled, 0)
	s.exec(`UPDATE mirror SET order_id = 'order-1'`)
	says("booked for another order", reconcile.VerdictBreaks, 1)
	s.exec(`UPDATE mismatches SET status = 'resolved', resolved_at = now(), resolved_as = 'accepted', resolved_by = 'os:kim', note = 'ours'
		WHERE status <> 'resolved'`)
	says("accepted", reconcile.VerdictReconciled, 0)
	if beside := s.audit(reconcile.ScopeRecent).Line(reconcile.LineAcceptedBeside, ledger.KRW); beside.Count != 1 || beside.Amount != 1000 {
		t.Errorf("accepted: got %+v beside the sum", beside)
	}
	s.exec(`UPDATE payments SET order_id = 'order-3'`)
	says("another difference than was accepted", reconcile.VerdictBreaks, 1)
	s.exec(`UPDATE payments SET order_id = 'order-1'`)
	says("put right", reconcile.VerdictReconciled, 0)

	s.row("K9", "pay-9", "order-2", "DONE", "700")
	s.clock.Advance(time.Minute)
	s.poll()
	s.exec(`INSERT INTO payments (payment_key, order_id, status, currency, amount, captured, created_at, updated_at)
		SELECT 'pay-9', 'order-3', 'done', 'KRW', 700, 700, at, at FROM mirror WHERE transaction_key = 'K9'`)
	s.exec(`INSERT INTO captures (payment_key, number, transaction_key, currency, amount, captured_at, channel, recorded_at)
		SELECT 'pay-9', 1, 'K9', 'KRW', 700, at, 'confirm', at FROM mirror WHERE transaction_key = 'K9'`)
	says("listed first, then booked for another order", reconcile.VerdictBreaks, 1)
	if st := s.audit(reconcile.ScopeAll); len(st.Drift) > 0 {
		t.Errorf("got %q", st.Drift)
	}
	s.overnight(monday)
	if st := s.closeDay(monday); st.Verdict != reconcile.VerdictBreaks {
		t.Errorf("closing: got %s", st.Verdict)
	}
}
