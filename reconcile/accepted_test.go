package reconcile_test

import (
	"os"
	"strings"
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

// TestAccepted_CoversTheMoneyOfBothSides: who accepted a difference of a hundred won accepted no difference of nine hundred,
// whichever side it is that changed since, and whether the list or an answer shows it.
func TestAccepted_CoversTheMoneyOfBothSides(t *testing.T) {
	t.Parallel()
	s := setup(t)
	canceled, key := s.paid("order-1", 1000), s.paid("order-2", 1000)
	s.canceled(canceled, 0)
	s.record(s.ask(ledger.ChannelWebhook, canceled))
	s.clock.Advance(20 * time.Minute)
	s.poll()
	accept := func(what string) {
		t.Helper()
		s.exec(`UPDATE mismatches SET status = 'resolved', resolved_at = now(), resolved_as = 'accepted', resolved_by = 'os:kim', note = 'ours'
			WHERE kind IN ('amount_differs', 'currency_differs') AND status <> 'resolved'`)
		if st := s.agrees(what + ", accepted"); st.Verdict != reconcile.VerdictReconciled {
			t.Errorf("%s, accepted: got %s %+v", what, st.Verdict, st.Lines)
		}
	}
	for _, change := range []string{
		`UPDATE cancels SET amount = 900`, `UPDATE cancels SET amount = 100`, `UPDATE mirror SET amount = 1100 WHERE kind = 'cancel'`,
		`UPDATE cancels SET currency = 'JPY'`, `UPDATE cancels SET amount = 101`,
		`UPDATE captures SET amount = 900 WHERE payment_key = '` + key + `'`, `UPDATE captures SET amount = 1 WHERE payment_key = '` + key + `'`,
		`UPDATE mirror SET amount = 1100 WHERE payment_key = '` + key + `'`, `UPDATE captures SET currency = 'JPY' WHERE payment_key = '` + key + `'`,
		`UPDATE captures SET amount = 2 WHERE payment_key = '` + key + `'`,
	} {
		s.exec(change)
		st := s.agrees(change)
		if n := s.mismatches(ledger.KindAmountDiffers) + s.mismatches(ledger.KindCurrencyDiffers); st.Verdict != reconcile.VerdictBreaks || n != 1 {
			t.Errorf("%s: got %s and %d open", change, st.Verdict, n)
		}
		accept(change)
	}
	s.exec(`UPDATE mirror SET amount = 1000; UPDATE captures SET amount = 1000, currency = 'KRW'; UPDATE cancels SET amount = 900, currency = 'KRW'`)
	s.agrees("of the cancel only")
	accept("of the cancel only")
	s.record(s.ask(ledger.ChannelWebhook, canceled))
	if st := s.agrees("an answer says the same"); st.Verdict != reconcile.VerdictReconciled || s.mismatches(ledger.KindAmountDiffers) != 0 {
		t.Errorf("an answer says the same: got %s and %d open", st.Verdict, s.mismatches(ledger.KindAmountDiffers))
	}
}

// TestAccepted_OfBefore: a difference of a capture that was accepted when the evidence had nothing of our side covers what its
// words said, and the day does not break for it.
func TestAccepted_OfBefore(t *testing.T) {
	t.Parallel()
	migration, err := os.ReadFile("../migrations/0034_whose_captures.sql")
	_, learn, found := strings.Cut(string(migration), "minor units\".\n")
	if err != nil || !found {
		t.Fatalf("got %v and no statements that read the words", err)
	}
	s := setup(t)
	s.paid("order-1", 1000)
	s.paid("order-2", 1000)
	s.clock.Advance(20 * time.Minute)
	s.poll()
	s.exec(`UPDATE captures c SET amount = 900, currency = CASE WHEN p.order_id = 'order-2' THEN 'JPY' ELSE 'KRW' END FROM payments p WHERE p.payment_key = c.payment_key`)
	s.agrees("damaged")
	s.exec(`UPDATE mismatches SET status = 'resolved', resolved_at = now(), resolved_as = 'accepted', resolved_by = 'os:kim', note = 'ours', books = NULL,
		detail = CASE WHEN kind = 'amount_differs' THEN 'the capture is 1000 at the gateway and 900 here, minor units'
			ELSE 'the capture is in KRW at the gateway and in JPY here' END`)
	s.exec(learn)
	if st := s.agrees("accepted before"); st.Verdict != reconcile.VerdictReconciled {
		t.Errorf("accepted before: got %s %+v", st.Verdict, st.Lines)
	}
	s.exec(`UPDATE captures SET amount = 800`)
	if st := s.agrees("other money"); st.Verdict != reconcile.VerdictBreaks || s.mismatches(ledger.KindAmountDiffers) != 1 || s.mismatches(ledger.KindCurrencyDiffers) != 0 {
		t.Errorf("other money: got %s and %d open", st.Verdict, s.mismatches(ledger.KindAmountDiffers))
	}
	s.exec(`UPDATE captures SET currency = 'KRW'`)
	if s.agrees("another currency"); s.mismatches(ledger.KindAmountDiffers) != 2 {
		t.Errorf("another currency: got %d open", s.mismatches(ledger.KindAmountDiffers))
	}
}
