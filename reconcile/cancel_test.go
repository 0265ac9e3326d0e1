package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// TestClaim_Eager: a claim is asked about minutes later, not at the end of the redeliveries.
func TestClaim_Eager(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 10_000)
	s.claim(key, s.canceled(key, 4_000))
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusPartiallyCanceled || p.Balance() != ledger.Won(6_000) {
		t.Errorf("got %s with %s left", p.Status, p.Balance())
	}
	if got := s.text(`SELECT closed_as FROM work WHERE kind = 'cancel_claimed'`); got != "settled" {
		t.Errorf("closed as %s", got)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestClaim_RefutedOnlyAtTheLastChance: a claim that the gateway does not show is asked about until its last chance,
// and only then refuted. A gateway that cannot be asked refutes nothing: then it is a mismatch with the balance at risk.
func TestClaim_RefutedOnlyAtTheLastChance(t *testing.T) {
	t.Parallel()
	for _, named := range []string{"", "no-such-cancel"} {
		t.Run("named "+named, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 10_000)
			s.claim(key, named)
			for range 40 {
				s.clock.Advance(2 * time.Hour)
				s.sweep()
			}
			if n := s.number(`SELECT count(*) FROM work WHERE kind = 'cancel_claimed' AND closed_at IS NULL`); n != 1 {
				t.Fatal("refuted before the last chance")
			}
			s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.TooMany, N: -1})
			s.clock.Advance(16 * time.Hour)
			s.sweep()
			if n := s.number(`SELECT count(*) FROM work WHERE kind = 'cancel_claimed' AND closed_at IS NULL`); n != 1 {
				t.Error("refuted without an answer")
			}
			if n := s.number(`SELECT count(*) FROM mismatches WHERE kind = 'cancel_missing_here' AND amount = 10000`); n != 1 {
				t.Errorf("got %d overdue mismatches, want 1 with the balance at risk", n)
			}
			s.sim.Heal()
			s.clock.Advance(7 * time.Hour)
			s.sweep()
			if got := s.text(`SELECT COALESCE(closed_as, 'open') FROM work WHERE kind = 'cancel_claimed'`); got != "refuted" {
				t.Errorf("got %s, want refuted", got)
			}
			s.clock.Advance(2 * time.Minute)
			s.sweep()
			if n := s.mismatches(ledger.KindCancelMissingHere); n != 0 {
				t.Errorf("%d mismatches are left open", n)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestClaim_AsksExactlyAtTheLastChance: whatever the steps, the last chance itself is never jumped over.
func TestClaim_AsksExactlyAtTheLastChance(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 10_000)
	s.claim(key, "later")
	last := pgclient.LastChance(s.clock.Now())
	for s.clock.Now().Before(last.Add(-time.Minute)) {
		s.sweep()
		due := s.dueAt()
		if due.After(last) {
			t.Fatalf("due %s, past the last chance %s", due, last)
		}
		s.clock.Set(due)
	}
	if s.dueAt() != last.Truncate(time.Microsecond) {
		t.Errorf("got %s, want %s", s.dueAt(), last)
	}
}

// TestCancel_InProgress: a cancel that the gateway finishes later is asked about until it is final, at a growing pace.
func TestCancel_InProgress(t *testing.T) {
	t.Parallel()
	for _, done := range []bool{true, false} {
		t.Run(fmt.Sprintf("done %t", done), func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.order("order-1", 10_000, tosssim.ForeignEasyPay)
			s.record(s.send(s.intend("order-1", key, 10_000)).Observation)
			transaction := s.canceled(key, 0)
			s.record(s.ask(ledger.ChannelWebhook, key))
			for range 5 {
				s.clock.Advance(time.Hour)
				s.sweep()
			}
			if wait := s.dueAt().Sub(s.clock.Now()); wait < 15*time.Minute {
				t.Errorf("after five questions the next is in %s", wait)
			}
			s.must(s.sim.FinishCancel(transaction, done))
			s.clock.Advance(time.Hour)
			s.sweep()
			want, closed := ledger.StatusCanceled, "settled"
			if !done {
				want, closed = ledger.StatusDone, "aborted"
			}
			if p := s.payment(key); p.Status != want {
				t.Errorf("got %s, want %s", p.Status, want)
			}
			if got := s.text(`SELECT closed_as FROM work WHERE kind = 'cancel_in_progress'`); got != closed {
				t.Errorf("closed as %s, want %s", got, closed)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestListed_VoidWithoutAKey: the object of a void names no cancel; the listed key is booked at nothing.
func TestListed_VoidWithoutAKey(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.VirtualAccount)
	s.record(s.send(s.intend("order-1", key, 10_000)).Observation)
	s.clock.Advance(time.Minute)
	s.canceled(key, 0)
	s.clock.Advance(time.Minute)
	s.poll()
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictPending || st.Sums[0].Gateway.Amount != 0 {
		t.Errorf("before: got %s %+v", st.Verdict, st.Sums)
	}
	s.sweep()
	s.clock.Advance(30 * time.Minute)
	s.poll()
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictReconciled || st.Sums[0].Canceled != (reconcile.Figure{Count: 1}) {
		t.Errorf("after: got %s %+v %+v", st.Verdict, st.Sums, st.Lines)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestListed_RowThatIsTheCapture: the list may write the payment's present status into the row of its approval.
func TestListed_RowThatIsTheCapture(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.Card)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.LostReply})
	s.send(s.intend("order-1", key, 10_000))
	s.clock.Advance(time.Minute)
	s.canceled(key, 0)
	s.record(s.ask(ledger.ChannelWebhook, key)) // capture and cancel at once: the capture's key is not shown
	s.must(s.sim.PutTransaction(fmt.Appendf(nil, `{"mId":"tsimshop01","transactionKey":"approval","paymentKey":%q,"orderId":"order-1",
		"method":"카드","status":"CANCELED","transactionAt":%q,"currency":"KRW","amount":10000}`, key, s.clock.Now().Format(time.RFC3339))))
	s.exec(`UPDATE captures SET transaction_key = NULL`)
	s.exec(`INSERT INTO work (kind, payment_key, order_id, transaction_key, currency, amount, opened_at, due_at, deadline)
		VALUES ('cancel_listed', $1, 'order-1', 'approval', 'KRW', 10000, $2, $2, $3)`, key, s.clock.Now(), s.clock.Now().Add(90*time.Hour))
	s.sweep()
	if got := s.text(`SELECT COALESCE(transaction_key, '') FROM captures`); got != "approval" {
		t.Errorf("got capture key %q", got)
	}
	if n := s.number(`SELECT count(*) FROM work WHERE closed_at IS NULL`); n != 0 {
		t.Errorf("%d rows of work are left", n)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestListed_NeverShown: a listed cancel that the payment object does not show becomes a mismatch with both sides'
// evidence; asking goes on.
func TestListed_NeverShown(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 10_000)
	s.row("phantom", key, "order-1", "PARTIAL_CANCELED", "3000")
	s.clock.Advance(time.Minute)
	s.poll()
	for range 8 {
		s.clock.Advance(20 * time.Minute)
		s.sweep()
	}
	if n := s.number(`SELECT count(*) FROM mismatches WHERE kind = 'cancel_missing_here' AND amount = 3000 AND gateway IS NOT NULL AND books IS NOT NULL`); n != 1 {
		t.Errorf("got %d mismatches, want 1", n)
	}
	if n := s.number(`SELECT count(*) FROM work WHERE kind = 'cancel_listed' AND closed_at IS NULL`); n != 1 {
		t.Error("asking has stopped")
	}
	if p := s.payment(key); p.Status != ledger.StatusDone {
		t.Errorf("got %s: the list alone books nothing", p.Status)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestListed_UpgradesAClaim: the list proves what a notice claimed; there is one row of work, not two.
func TestListed_UpgradesAClaim(t *testing.T) {
	t.Parallel()
	s := setup(t, patient)
	key := s.paid("order-1", 10_000)
	s.clock.Advance(time.Minute)
	s.claim(key, s.canceled(key, 0))
	s.clock.Advance(time.Minute)
	s.poll()
	if n := s.number(`SELECT count(*) FROM work WHERE closed_at IS NULL AND kind = 'cancel_listed' AND amount = 10000`); n != 1 {
		t.Errorf("got %d rows of listed work, want 1", n)
	}
	if n := s.number(`SELECT count(*) FROM work WHERE closed_at IS NULL`); n != 1 {
		t.Errorf("got %d rows of open work, want 1", n)
	}
}
