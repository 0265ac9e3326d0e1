package reconcile_test

import (
	"testing"
	"time"

	"daesa/ledger"
	"daesa/reconcile"
)

// unlisted are a payment and a cancel of another one that the gateway's list never shows, on a day that is over.
func (s *shop) unlisted() {
	s.t.Helper()
	key := s.paid("order-1", 1000)
	s.paid("order-2", 3000)
	s.clock.Advance(time.Minute)
	s.canceled(key, 500)
	s.record(s.ask(ledger.ChannelWebhook, key))
	s.overnight(monday)
	s.exec(`DELETE FROM mirror WHERE kind = 'cancel' OR order_id = 'order-2'`)
}

// TestAccepted_WhatOnlyOurBooksHave: a difference that a person accepted is on a line of its own, in the audit of a
// minute, in full and in the closing run, with a row of the day that a signature covers; and it is on no other line.
func TestAccepted_WhatOnlyOurBooksHave(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.unlisted()
	broken := s.agrees("not listed")
	if line := broken.Line(reconcile.LineBreaks, ledger.KRW); broken.Verdict != reconcile.VerdictBreaks || line.Count != 2 {
		t.Fatalf("got %s %+v", broken.Verdict, broken.Lines)
	}
	before := s.closeDay(monday)
	s.accept()
	st := s.agrees("accepted")
	line := st.Line(reconcile.LineAcceptedBeside, ledger.KRW)
	if st.Verdict != reconcile.VerdictReconciled || line.Count != 2 || line.Amount != 3500 || len(line.Entries) != 2 || len(st.Lines) != 1 {
		t.Errorf("got %s %+v", st.Verdict, st.Lines)
	}
	for n, kind := range []ledger.Kind{ledger.KindOrderWithoutPayment, ledger.KindCancelMissingThere} {
		if e := line.Entries[n]; e.Kind != kind || e.Note == "" || e.OrderID == "" {
			t.Errorf("got %+v, want %s", e, kind)
		}
	}
	closed := s.closeDay(monday)
	if closed.Verdict != reconcile.VerdictReconciled || closed.Line(reconcile.LineAcceptedBeside, ledger.KRW).Amount != 3500 || closed.Digest == before.Digest {
		t.Errorf("closed: got %s %+v", closed.Verdict, closed.Lines)
	}
	if got := s.text(`SELECT string_agg(movement || ' ' || booked, ', ' ORDER BY movement) FROM day_rows
		WHERE standing = 'accepted_beside' AND gone_run IS NULL AND listed IS NULL`); got != "cancel 500, capture 3000" {
		t.Errorf("the rows of the day: got %q", got)
	}
	rows, _ := s.rows(monday)
	var sum int64
	for _, r := range rows {
		if r.Line == reconcile.LineAcceptedBeside {
			sum += r.Amount
		}
	}
	if sum != 3500 {
		t.Errorf("the rows of the line add up to %d", sum)
	}
	_, err := s.sign(reconcile.Signing{Day: monday, By: "os:kim"})
	s.must(err)
	s.exec(`UPDATE mismatches SET status = 'open', resolved_at = NULL, resolved_as = NULL, note = '' WHERE kind = 'cancel_missing_there'`)
	s.agrees("taken back")
	s.closeDay(monday)
	if n := s.mismatches(ledger.KindSignedDayChanged); n != 1 {
		t.Errorf("an acceptance was taken back: got %d mismatches about the signed day", n)
	}
}

// TestAccepted_FixedIsFoundAgain: what a person says to be put right and is not breaks as before, and opens again.
func TestAccepted_FixedIsFoundAgain(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.unlisted()
	key := s.paid("order-3", 2000)
	s.clock.Advance(30 * time.Minute)
	s.poll()
	s.exec(`UPDATE mirror SET amount = 1900 WHERE payment_key = $1`, key)
	s.row("txrd_nobody", "nobody", "order-none", "DONE", "70")
	s.clock.Advance(time.Minute)
	s.poll()
	s.clock.Advance(48 * time.Hour)
	s.poll()
	before := s.agrees("broken").Line(reconcile.LineBreaks, ledger.KRW)
	open := func() int { return s.number(`SELECT count(*) FROM mismatches WHERE status = 'open'`) }
	if before.Count != 4 || open() != 4 {
		t.Fatalf("got %+v and %d open", before, open())
	}
	s.exec(`UPDATE mismatches SET status = 'resolved', resolved_as = 'fixed', resolved_by = 'os:kim', resolved_at = $1`, s.clock.Now())
	s.clock.Advance(time.Minute)
	if after := s.audit(reconcile.ScopeRecent); after.Verdict != reconcile.VerdictBreaks || open() != 4 {
		t.Errorf("got %s and %d open", after.Verdict, open())
	}
}
