package reconcile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// lists makes the list's next answer this one row, as of noon.
func (s *shop) lists(transactionKey, paymentKey, orderID, status, amount string) {
	s.t.Helper()
	s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Body, Body: fmt.Sprintf(
		`[{"transactionKey":%q,"paymentKey":%q,"orderId":%q,"status":%q,"transactionAt":%q,"currency":"KRW","amount":%s}]`,
		transactionKey, paymentKey, orderID, status, noon().Format(time.RFC3339), amount)})
	s.poll()
}

// TestPoll_WordThatBecomesKnown: a row that was first read with a word nobody knew counts as what it is once it is read
// with a known one: in the minute's audit, in the closing run, and nothing is left to resolve.
func TestPoll_WordThatBecomesKnown(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 1000)
	s.clock.Advance(time.Minute)
	s.poll()
	s.clock.Advance(time.Minute)
	s.lists("c1", key, "order-1", "SOMETHING_NEW", "700")
	if n := s.mismatches(ledger.KindUnrecognized); n != 1 {
		t.Fatalf("got %d mismatches about the unknown word", n)
	}
	s.agrees("unknown")
	s.clock.Advance(time.Minute)
	s.lists("c1", key, "order-1", "PARTIAL_CANCELED", "-700")
	if got := s.text(`SELECT kind || ' ' || word || ' ' || amount || ' ' || negative FROM mirror WHERE transaction_key = 'c1'`); got != "cancel PARTIAL_CANCELED 700 true" {
		t.Errorf("the row is kept as %s", got)
	}
	st := s.agrees("known")
	if st.Verdict != reconcile.VerdictPending || len(st.Sums) != 1 || st.Sums[0].Gateway.Amount != 700 {
		t.Errorf("got %s %+v, want the cancel owed", st.Verdict, st.Sums)
	}
	if n := s.number(`SELECT count(*) FROM mismatches WHERE status <> 'resolved'`); n != 0 {
		t.Errorf("%d mismatches are left", n)
	}
	s.clock.Set(noon())
	s.row("c1", key, "order-1", "PARTIAL_CANCELED", "-700")
	s.overnight(monday)
	if st := s.closeDay(monday); st.Sums[0].Gateway.Amount != 700 || st.Sums[0].Pending.Amount != 700 {
		t.Errorf("the closed day says %s %+v", st.Verdict, st.Sums)
	}
	if n := s.mismatches(ledger.KindHistoryChanged); n != 0 {
		t.Errorf("%d histories changed", n)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestPoll_WordThatBecomesKnownOfAClosedDay: the day is closed again with what the row turned out to be, and whoever
// signed it hears of it.
func TestPoll_WordThatBecomesKnownOfAClosedDay(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 1000)
	s.clock.Advance(time.Minute)
	s.lists("c1", key, "order-1", "SOMETHING_NEW", "700")
	s.exec(`UPDATE mismatches SET status = 'resolved', resolved_at = now(), resolved_as = 'accepted', note = 'seen' WHERE kind = 'unrecognized_status'`)
	s.overnight(monday)
	s.closeDay(monday)
	_, err := s.sign(reconcile.Signing{Day: monday, By: "os:kim"})
	s.must(err)
	s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Body, Body: fmt.Sprintf(
		`[{"transactionKey":"c1","paymentKey":%q,"orderId":"order-1","status":"PARTIAL_CANCELED","transactionAt":%q,"currency":"KRW","amount":700}]`,
		key, noon().Format(time.RFC3339))})
	s.clock.Advance(time.Hour)
	s.poll()
	s.agrees("after")
	s.clock.Advance(time.Hour)
	if done, err := s.Auditor.CloseDays(t.Context()); err != nil || len(done) != 1 || done[0].Sums[0].Gateway.Amount != 700 {
		t.Errorf("got %+v and %v, want the day closed again with the cancel", done, err)
	}
	if n := s.mismatches(ledger.KindSignedDayChanged); n != 1 {
		t.Errorf("got %d mismatches about the signed day", n)
	}
}

// TestPoll_WordThatBecomesKnownWithOtherMoney: the row is what its word says, its money stays as first read, and that
// it changed is a contradiction as of any row.
func TestPoll_WordThatBecomesKnownWithOtherMoney(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 1000)
	s.clock.Advance(time.Minute)
	s.lists("c1", key, "order-1", "SOMETHING_NEW", "700")
	for range 2 {
		s.clock.Advance(time.Minute)
		s.lists("c1", key, "order-1", "PARTIAL_CANCELED", "800")
	}
	if got := s.text(`SELECT kind || ' ' || amount FROM mirror WHERE transaction_key = 'c1'`); got != "cancel 700" {
		t.Errorf("the row is kept as %s", got)
	}
	if n := s.mismatches(ledger.KindHistoryChanged); n != 1 || s.number(`SELECT amount FROM mismatches WHERE kind = 'history_changed'`) != 800 {
		t.Errorf("got %d histories changed", n)
	}
	s.agrees("after")
}

// TestPoll_WordThatBecomesKnownOfWhatIsNoCancel: what looks like a cancel and bears the key of a capture is that capture,
// what moves no money is none, and what belongs to another system stays foreign.
func TestPoll_WordThatBecomesKnownOfWhatIsNoCancel(t *testing.T) {
	t.Parallel()
	s := setup(t, sharedID)
	key := s.paid("order-1", 1000)
	capture := s.text(`SELECT transaction_key FROM captures`)
	rows := func(word string) string {
		var all []string
		for _, r := range [][3]string{{capture, key, "order-1"}, {"f1", "pay-f", "other-1"}, {"n1", key, "order-1"}} {
			status, amount := word, "1000"
			if r[0] == "n1" && word == "CANCELED" {
				status, amount = "EXPIRED", "0"
			} else if r[0] == "n1" {
				amount = "0"
			}
			all = append(all, fmt.Sprintf(`{"transactionKey":%q,"paymentKey":%q,"orderId":%q,"status":%q,"transactionAt":%q,"currency":"KRW","amount":%s}`,
				r[0], r[1], r[2], status, noon().Format(time.RFC3339), amount))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	for _, word := range []string{"SOMETHING_NEW", "SOMETHING_ELSE", "CANCELED"} {
		s.clock.Advance(time.Minute)
		s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Body, Body: rows(word)})
		s.poll()
	}
	got := s.text(`SELECT string_agg(kind || CASE WHEN is_foreign THEN ' foreign' ELSE '' END, ', ' ORDER BY kind) FROM mirror`)
	if got != "cancel foreign, capture, none" {
		t.Errorf("the rows are kept as %s", got)
	}
	st := s.agrees("after")
	if n := s.number(`SELECT count(*) FROM mismatches WHERE status <> 'resolved'`); n != 0 || st.Verdict != reconcile.VerdictReconciled {
		t.Errorf("got %d mismatches and %s %+v", n, st.Verdict, st.Lines)
	}
	if n := s.number(`SELECT count(*) FROM work WHERE kind = 'cancel_listed'`); n != 0 {
		t.Errorf("%d cancels are asked about", n)
	}
}
