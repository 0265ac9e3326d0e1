package reconcile_test

import (
	"testing"
	"time"

	"daesa/ledger"
	"daesa/reconcile"
)

// TestTaken_EachCaptureIsAContradictionOfItsOwn: what a person accepts of one capture of a payment says nothing of the
// next, and two that are not booked are two mismatches with all of the money.
func TestTaken_EachCaptureIsAContradictionOfItsOwn(t *testing.T) {
	t.Parallel()
	s := setup(t)
	money := func() int {
		return s.number(`SELECT COALESCE(sum(amount), 0) FROM mismatches WHERE kind = 'payment_without_order' AND status <> 'resolved'`)
	}
	s.row("K1", "pay-1", "order-1", "DONE", "10000")
	s.clock.Advance(time.Minute)
	s.poll()
	s.agrees("the first")
	if n := s.mismatches(ledger.KindPaymentWithoutOrder); n != 1 || money() != 10_000 {
		t.Errorf("the list and the audit: got %d mismatches of %d, want one of 10000", n, money())
	}
	s.exec(`UPDATE mismatches SET status = 'resolved', resolved_at = $1, resolved_as = 'accepted', note = 'agreed'`, s.clock.Now())
	if st := s.agrees("accepted"); st.Verdict != reconcile.VerdictReconciled {
		t.Errorf("accepted: got %s %+v", st.Verdict, st.Lines)
	}
	for n, key := range []string{"K2", "K3"} {
		s.row(key, "pay-1", "order-1", "DONE", "10000")
		s.clock.Advance(time.Minute)
		s.poll()
		st := s.agrees(key)
		if st.Verdict != reconcile.VerdictBreaks || s.mismatches(ledger.KindPaymentWithoutOrder) != n+1 || money() != 10_000*(n+1) {
			t.Errorf("%s: got %s and %d mismatches of %d", key, st.Verdict, s.mismatches(ledger.KindPaymentWithoutOrder), money())
		}
	}
	if st := s.audit(reconcile.ScopeAll); len(st.Drift) > 0 {
		t.Errorf("got %q", st.Drift)
	}
}

// TestTaken_AmountThatDiffersEndsByItself: a capture that the list has otherwise is one mismatch, and over once it has
// the same.
func TestTaken_AmountThatDiffersEndsByItself(t *testing.T) {
	t.Parallel()
	for _, keyless := range []bool{false, true} {
		s := setup(t)
		s.paid("order-1", 1000)
		s.clock.Advance(time.Minute)
		s.poll()
		if keyless {
			s.exec(`UPDATE captures SET transaction_key = NULL`)
		}
		s.exec(`UPDATE mirror SET amount = 900`)
		if st := s.agrees("damaged"); st.Verdict != reconcile.VerdictBreaks || s.mismatches(ledger.KindAmountDiffers) != 1 {
			t.Errorf("keyless %t: got %s", keyless, st.Verdict)
		}
		s.must(s.Sweeper.Tend(t.Context()))
		if s.mismatches(ledger.KindAmountDiffers) != 1 {
			t.Errorf("keyless %t: it ended with nothing proven", keyless)
		}
		s.exec(`UPDATE mirror SET amount = 1000`)
		s.agrees("repaired")
		if got := s.text(`SELECT status || ' ' || COALESCE(resolved_as, '-') FROM mismatches`); got != "resolved auto" {
			t.Errorf("keyless %t: got %s", keyless, got)
		}
	}
}

// TestTaken_ADepositBookedAgainIsTheOneThatIsListed: a deposit was taken back here and booked again, as of the instant at which
// it had been taken back, and the gateway does not name it because a part was given back since. The one row that the list has
// shows it.
func TestTaken_ADepositBookedAgainIsTheOneThatIsListed(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.deposited("order-1", 50_000)
	s.clock.Advance(time.Minute)
	s.poll()
	back := s.clock.Now()
	s.exec(`UPDATE captures SET reversed_at = $1 WHERE reversed_at IS NULL`, back)
	s.exec(`INSERT INTO captures (payment_key, number, currency, amount, captured_at, channel, recorded_at)
		VALUES ($1, 2, 'KRW', 50000, $2, 'sweep', $2)`, key, back)
	s.clock.Advance(20 * time.Minute)
	s.poll()
	if n := s.number(`SELECT count(*) FROM list_runs WHERE result = 'failed'`); n != 0 {
		t.Errorf("%d reads were doubted for a row that they show", n)
	}
	if st := s.agrees("booked again"); st.Verdict != reconcile.VerdictReconciled || s.mismatches(ledger.KindOrderWithoutPayment) != 0 {
		t.Errorf("got %s %+v", st.Verdict, st.Lines)
	}
}

// TestTaken_OneListedDepositProvesNoOther: a deposit fell back and came again, and the list shows the first one only. The
// second is in our books and nowhere else. What a person accepts of it says nothing of a third.
func TestTaken_OneListedDepositProvesNoOther(t *testing.T) {
	t.Parallel()
	for name, learned := range map[string]string{"named": `SELECT 1`, "not named": `UPDATE captures SET transaction_key = NULL WHERE reversed_at IS NULL`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.deposited("order-1", 50_000)
			s.clock.Advance(time.Minute)
			s.poll()
			again := func() {
				s.exec(`UPDATE captures SET reversed_at = $1 WHERE reversed_at IS NULL`, s.clock.Now())
				s.clock.Advance(time.Minute)
				s.exec(`INSERT INTO captures (payment_key, number, transaction_key, currency, amount, captured_at, channel, recorded_at)
					SELECT $1, count(*) + 1, 'again-' || count(*), 'KRW', 50000, $2, 'sweep', $2 FROM captures`, key, s.clock.Now())
				s.exec(learned)
				s.clock.Advance(20 * time.Minute)
				s.poll()
			}
			again()
			st := s.agrees("the second")
			if line := st.Line(reconcile.LineBreaks, ledger.KRW); st.Verdict != reconcile.VerdictBreaks || line.Amount != 50_000 {
				t.Fatalf("the second: got %s %+v", st.Verdict, st.Lines)
			}
			s.must(s.Sweeper.Tend(t.Context()))
			if n := s.mismatches(ledger.KindOrderWithoutPayment); n != 1 {
				t.Errorf("the second: got %d mismatches, want one that lasts", n)
			}
			s.accept()
			if st := s.agrees("accepted"); st.Verdict != reconcile.VerdictReconciled {
				t.Errorf("accepted: got %s %+v", st.Verdict, st.Lines)
			}
			if name == "not named" {
				return // the next one could be the same
			}
			again()
			if st := s.agrees("the third"); st.Verdict != reconcile.VerdictBreaks || s.mismatches(ledger.KindOrderWithoutPayment) != 1 {
				t.Errorf("the third: got %s and %d mismatches", st.Verdict, s.mismatches(ledger.KindOrderWithoutPayment))
			}
		})
	}
}
