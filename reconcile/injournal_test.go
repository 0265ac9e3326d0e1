package reconcile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/reconcile"
)

// tampered is somebody with every right in the database, whom no trigger stops.
func (s *shop) tampered(sql string) {
	s.t.Helper()
	s.exec(`SET session_replication_role = replica; ` + sql + `; RESET session_replication_role`)
}

// journalled writes the journal of what a test put into the books by hand.
func (s *shop) journalled() {
	s.t.Helper()
	s.tampered(`
		CREATE TEMP TABLE by_hand AS
		SELECT 'cancel' AS kind, c.transaction_key AS reference, c.payment_key, c.order_id, c.currency, c.amount, c.canceled_at AS at, c.recorded_at
		FROM cancels c WHERE c.amount > 0
		UNION ALL
		SELECT 'capture', c.payment_key || '#' || c.number, c.payment_key, p.order_id, c.currency, c.amount, c.captured_at, c.recorded_at
		FROM captures c JOIN payments p USING (payment_key)
		UNION ALL
		SELECT 'deposit_reversal', c.payment_key || '#' || c.number, c.payment_key, p.order_id, c.currency, c.amount, c.reversed_at, c.reversed_at
		FROM captures c JOIN payments p USING (payment_key) WHERE c.reversed_at IS NOT NULL;
		DELETE FROM by_hand f USING journal_transactions t WHERE t.kind = f.kind AND t.reference = f.reference;
		INSERT INTO journal_transactions (kind, reference, payment_key, order_id, occurred_at, recorded_at)
		SELECT kind, reference, payment_key, order_id, at, recorded_at FROM by_hand;
		INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
		SELECT t.transaction_id, l.line, CASE WHEN l.line = 1 THEN 'gateway_receivable' WHEN t.kind = 'cancel' THEN 'refunds' ELSE 'sales' END, f.currency,
			CASE WHEN (l.line = 1) = (t.kind = 'capture') THEN f.amount ELSE -f.amount END
		FROM by_hand f JOIN journal_transactions t ON t.kind = f.kind AND t.reference = f.reference, generate_series(1, 2) AS l (line);
		DROP TABLE by_hand`)
}

// remembered keeps books, journal and list, and says how to put them back.
func (s *shop) remembered() (restore func()) {
	s.t.Helper()
	var back []string
	for _, table := range []string{"captures", "cancels", "journal_transactions", "journal_entries", "mirror"} {
		s.exec(`CREATE TABLE kept_` + table + ` AS TABLE ` + table)
		back = append(back, `DELETE FROM `+table+`; INSERT INTO `+table+` OVERRIDING SYSTEM VALUE TABLE kept_`+table)
	}
	return func() { s.tampered(strings.Join(back, "; ")) }
}

// closedWithDeposit is a closed day with a canceled payment and a deposit, both keys, and the cancel's.
func closedWithDeposit(t *testing.T) (s *shop, paid, deposited, cancel string) {
	t.Helper()
	s = setup(t)
	paid = s.paid("order-1", 1000)
	s.clock.Advance(time.Minute)
	cancel = s.canceled(paid, 400)
	s.record(s.ask(ledger.ChannelWebhook, paid))
	deposited = s.deposited("order-2", 5000)
	s.overnight(monday)
	return s, paid, deposited, cancel
}

// journalEdits are the ways in which somebody can make books and journal differ, and the transaction key that each is
// about. No comparison with the gateway's list shows any of them.
func journalEdits(paid, capture, deposited, cancel string) map[string][2]string {
	of := func(kind, reference string) string {
		return `(SELECT transaction_id FROM journal_transactions WHERE kind = '` + kind + `' AND reference = '` + reference + `')`
	}
	gone := func(id string) string {
		return `DELETE FROM journal_entries WHERE transaction_id = ` + id + `; DELETE FROM journal_transactions WHERE transaction_id = ` + id
	}
	madeUp := func(kind, reference string) string {
		return `INSERT INTO journal_transactions (kind, reference, payment_key, order_id, occurred_at, recorded_at)
				SELECT '` + kind + `', '` + reference + `', payment_key, order_id, occurred_at, recorded_at FROM journal_transactions
				WHERE kind = 'cancel' ORDER BY transaction_id LIMIT 1;
			INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
				SELECT t.transaction_id, l.line, CASE l.line WHEN 1 THEN 'suspense' ELSE 'gateway_receivable' END, 'KRW', CASE l.line WHEN 1 THEN 100 ELSE -100 END
				FROM journal_transactions t, generate_series(1, 2) AS l (line) WHERE t.reference = '` + reference + `' AND t.kind = '` + kind + `'`
	}
	canceled, captured := of("cancel", cancel), of("capture", paid+"#1")
	return map[string][2]string{
		"a cancel without its transaction":          {gone(canceled), cancel},
		"a cancel without its entries":              {`DELETE FROM journal_entries WHERE transaction_id = ` + canceled, cancel},
		"a cancel of another amount in the journal": {`UPDATE journal_entries SET amount = sign(amount) * 399 WHERE transaction_id = ` + canceled, cancel},
		"a cancel in another currency":              {`UPDATE journal_entries SET currency = 'JPY' WHERE transaction_id = ` + canceled, cancel},
		"a cancel at another time":                  {`UPDATE journal_transactions SET occurred_at = occurred_at + interval '1 second' WHERE transaction_id = ` + canceled, cancel},
		"a cancel on another day":                   {`UPDATE journal_transactions SET occurred_at = occurred_at - interval '1 day' WHERE transaction_id = ` + canceled, cancel},
		"a cancel recorded at another time":         {`UPDATE journal_transactions SET recorded_at = recorded_at + interval '1 second' WHERE transaction_id = ` + canceled, cancel},
		"a cancel of another payment":               {`UPDATE journal_transactions SET payment_key = '` + deposited + `' WHERE transaction_id = ` + canceled, cancel},
		"a cancel of another order":                 {`UPDATE journal_transactions SET order_id = 'order-2' WHERE transaction_id = ` + canceled, cancel},
		"a cancel under another account":            {`UPDATE journal_entries SET account = 'sales' WHERE transaction_id = ` + canceled + ` AND account = 'refunds'`, cancel},
		"a cancel split in three": {`INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
			SELECT ` + canceled + `, line, account, 'KRW', amount FROM (VALUES (3, 'refunds', 5), (4, 'refunds', -5)) AS l (line, account, amount)`, cancel},
		"a cancel that the books do not have":            {madeUp("cancel", "made-up"), "made-up"},
		"a capture without its transaction":              {gone(captured), capture},
		"a capture of another amount in the journal":     {`UPDATE journal_entries SET amount = sign(amount) * 999 WHERE transaction_id = ` + captured, capture},
		"a capture at another time":                      {`UPDATE captures SET captured_at = captured_at + interval '1 microsecond' WHERE payment_key = '` + paid + `'`, capture},
		"a capture that the books do not have":           {madeUp("capture", paid+"#2"), paid + "#2"},
		"a deposit taken back that the books still have": {madeUp("deposit_reversal", deposited+"#1"), "reversal:" + deposited + "#1"},
		"a deposit that only the books have taken back": {`UPDATE captures SET reversed_at = captured_at + interval '1 hour'
			WHERE payment_key = '` + deposited + `'`, "reversal:" + deposited + "#1"},
	}
}

// TestInJournal_DayBreaks: where a row of the books and its transaction in the journal differ, the closing run of the day
// breaks and names the row, the audit of a minute and the listing of the day say the same, and nobody signs the day. Once
// they agree again, the day says what it said, and the mismatch is resolved.
func TestInJournal_DayBreaks(t *testing.T) {
	t.Parallel()
	s, paid, deposited, cancel := closedWithDeposit(t)
	capture := s.text(`SELECT transaction_key FROM captures WHERE payment_key = $1`, paid)
	clean := s.closeDay(monday)
	if clean.Verdict != reconcile.VerdictReconciled {
		t.Fatalf("got %s %v %+v", clean.Verdict, clean.Reasons, clean.Lines)
	}
	restore := s.remembered()
	for name, edit := range journalEdits(paid, capture, deposited, cancel) {
		s.tampered(edit[0])
		s.exec(`INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('everything', '', '')`)
		s.clock.Advance(time.Minute)
		st := s.closeDay(monday)
		var named []string
		for _, e := range st.Line(reconcile.LineBreaks, ledger.KRW).Entries {
			if e.Kind == ledger.KindJournalDiffers {
				named = append(named, e.TransactionKey)
			}
		}
		if st.Verdict != reconcile.VerdictBreaks || len(named) != 1 || named[0] != edit[1] || s.mismatches(ledger.KindJournalDiffers) != 1 {
			t.Errorf("%s: got %s %v %+v", name, st.Verdict, named, st.Lines)
		}
		if minute := s.agrees(name); minute.Verdict != reconcile.VerdictBreaks {
			t.Errorf("%s: the audit of a minute says %s", name, minute.Verdict)
		}
		if _, listed := s.rows(monday); listed.Verdict != reconcile.VerdictBreaks {
			t.Errorf("%s: the listing says %s", name, listed.Verdict)
		}
		if _, err := s.sign(reconcile.Signing{Day: monday, By: "os:kim"}); !errors.Is(err, reconcile.ErrDayNotClosed) {
			t.Errorf("%s: signing: got %v", name, err)
		}
		restore()
		s.exec(`INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('everything', '', '')`)
		s.clock.Advance(time.Minute)
		if st := s.closeDay(monday); st.Verdict != reconcile.VerdictReconciled || st.Digest != clean.Digest || s.number(`SELECT count(*) FROM mismatches WHERE status <> 'resolved'`) != 0 {
			t.Errorf("%s, put right: got %s %v %+v", name, st.Verdict, st.Reasons, st.Lines)
		}
	}
	s.poll()
	if minute := s.agrees("put right"); minute.Verdict != reconcile.VerdictReconciled {
		t.Errorf("put right: got %s %+v", minute.Verdict, minute.Lines)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestInJournal_ASignedDay: a signed day that nobody looks at any more is held against the journal each night, closed again
// and breaks; a person who accepts the difference accepts no other one.
func TestInJournal_ASignedDay(t *testing.T) {
	t.Parallel()
	s, _, _, cancel := closedWithDeposit(t)
	s.closes()
	_, err := s.sign(reconcile.Signing{Day: monday, By: "os:kim"})
	s.must(err)
	s.clock.Advance(48 * time.Hour)
	s.poll()
	s.closes()
	tamper := func(amount string) {
		s.tampered(`UPDATE journal_entries SET amount = sign(amount) * ` + amount + ` WHERE transaction_id =
			(SELECT transaction_id FROM journal_transactions WHERE kind = 'cancel' AND reference = '` + cancel + `')`)
		s.clock.Advance(24 * time.Hour)
		s.poll()
		_, ran, err := s.Auditor.RunNightly(t.Context())
		s.must(err)
		if !ran {
			t.Error("no audit of the night")
		}
		s.audit(reconcile.ScopeRecent)
	}
	tamper("399")
	if closed := s.closes()[monday]; closed.Verdict != reconcile.VerdictBreaks || s.mismatches(ledger.KindJournalDiffers) != 1 {
		t.Errorf("got %q %+v", closed.Verdict, closed.Lines)
	}
	if n := s.mismatches(ledger.KindSignedDayChanged); n != 1 {
		t.Errorf("got %d mismatches about the signed day", n)
	}
	s.accept()
	s.clock.Advance(11 * time.Minute)
	s.audit(reconcile.ScopeRecent)
	if closed := s.closes()[monday]; closed.Verdict != reconcile.VerdictReconciled {
		t.Errorf("accepted: got %q %+v", closed.Verdict, closed.Lines)
	}
	tamper("398")
	if closed := s.closes()[monday]; closed.Verdict != reconcile.VerdictBreaks || s.mismatches(ledger.KindJournalDiffers) != 1 {
		t.Errorf("changed again: got %q %+v", closed.Verdict, closed.Lines)
	}
}

// judgedAnew closes a day again, with everything judged anew, and returns its line of breaks. The audit of a minute and the
// listing of the day must have as many.
func (s *shop) judgedAnew(what string, day ledger.Day) reconcile.Line {
	s.t.Helper()
	s.exec(`INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('everything', '', '')`)
	s.clock.Advance(time.Minute)
	line := s.closeDay(day).Line(reconcile.LineBreaks, ledger.KRW)
	if minute := s.agrees(what).Line(reconcile.LineBreaks, ledger.KRW); minute.Figure != line.Figure {
		s.t.Errorf("%s: the audit of a minute says %+v, the closing run %+v", what, minute, line)
	}
	if _, listed := s.rows(day); listed.Line(reconcile.LineBreaks, ledger.KRW).Figure != line.Figure {
		s.t.Errorf("%s: the listing says %+v, the closing run %+v", what, listed.Lines, line)
	}
	return line
}

// TestInJournal_ACaptureThatNobodyNamed: a capture whose key our books do not know differs from the journal, and the list
// says something else of it too. That is one break with its money once, whatever each of them knows the capture by; and one
// difference beside the sum, once a person has accepted all of it.
func TestInJournal_ACaptureThatNobodyNamed(t *testing.T) {
	t.Parallel()
	s, paid, _, _ := closedWithDeposit(t)
	capture := s.text(`SELECT transaction_key FROM captures WHERE payment_key = $1`, paid)
	restore := s.remembered()
	unnamed := `UPDATE captures SET transaction_key = NULL WHERE payment_key = '` + paid + `'; `
	listed := `mirror WHERE transaction_key = '` + capture + `'`
	tests := []struct {
		name string
		then string
		kind ledger.Kind
	}{
		{"the list does not have it", `DELETE FROM ` + listed, ledger.KindOrderWithoutPayment},
		{
			"the list has it no more", `UPDATE mirror SET missing_since = at WHERE transaction_key = '` + capture + `';
			INSERT INTO mismatches (kind, fingerprint, payment_key, order_id, transaction_key, currency, amount, detail, opened_at, last_seen_at)
			SELECT 'history_changed', 'gone', payment_key, order_id, transaction_key, currency, amount, 'gone', at, at FROM ` + listed,
			ledger.KindOrderWithoutPayment,
		},
		{"the list has another amount", `UPDATE mirror SET amount = 1001 WHERE transaction_key = '` + capture + `'`, ledger.KindAmountDiffers},
		{"our books do not have it", `DELETE FROM captures WHERE payment_key = '` + paid + `'`, ledger.KindPaymentWithoutOrder},
	}
	for _, test := range tests {
		s.tampered(unnamed + `UPDATE journal_entries SET amount = sign(amount) * 999 WHERE transaction_id =
			(SELECT transaction_id FROM journal_transactions WHERE kind = 'capture' AND reference = '` + paid + `#1')`)
		if line := s.judgedAnew(test.name, monday); line.Count != 1 || line.Amount != 1000 || s.mismatches(ledger.KindJournalDiffers) != 1 {
			t.Errorf("%s, before: got %+v", test.name, line)
		}
		s.tampered(test.then)
		line := s.judgedAnew(test.name, monday)
		if line.Count != 1 || len(line.Entries) != 1 || line.Entries[0].Kind != test.kind || s.mismatches(ledger.KindJournalDiffers) != 1 || s.mismatches(test.kind) != 1 {
			t.Errorf("%s: got %+v", test.name, line)
		}
		s.accept()
		s.judgedAnew(test.name+", accepted", monday)
		if beside := s.closeDay(monday).Line(reconcile.LineAcceptedBeside, ledger.KRW); beside.Count != 1 && test.kind == ledger.KindOrderWithoutPayment {
			t.Errorf("%s, accepted: got %+v", test.name, beside)
		}
		restore()
		s.exec(`UPDATE mismatches SET status = 'resolved', resolved_as = 'auto', note = '', resolved_at = $1`, s.clock.Now())
		if line := s.judgedAnew(test.name+", put right", monday); line.Count != 0 {
			t.Errorf("%s, put right: got %+v", test.name, line)
		}
	}
}

// TestInJournal_TwoCapturesOfOneKey: a deposit fell back and came again under the key that it had, and both captures differ
// from the journal. Each is a break and a mismatch of its own, is found once, and ends by itself; so it is where one of them
// was opened when the key alone told them apart.
func TestInJournal_TwoCapturesOfOneKey(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.deposited("order-1", 5000)
	s.tampered(`
		UPDATE captures SET reversed_at = captured_at + interval '1 minute';
		INSERT INTO captures (payment_key, number, transaction_key, currency, amount, captured_at, channel, recorded_at)
		SELECT payment_key, 2, transaction_key, currency, amount, captured_at + interval '2 minutes', channel, recorded_at FROM captures`)
	s.journalled()
	s.overnight(monday)
	if st := s.closeDay(monday); st.Verdict != reconcile.VerdictReconciled {
		t.Fatalf("got %s %v %+v", st.Verdict, st.Reasons, st.Lines)
	}
	journal := func(number, amount string) {
		s.tampered(`UPDATE journal_entries SET amount = sign(amount) * ` + amount + ` WHERE transaction_id =
			(SELECT transaction_id FROM journal_transactions WHERE kind = 'capture' AND reference = '` + key + `#` + number + `')`)
	}
	mismatches := func() int { return s.number(`SELECT count(*) FROM mismatches WHERE kind = 'journal_differs'`) }
	both := func(what string) {
		t.Helper()
		if line := s.judgedAnew(what, monday); line.Count != 2 || line.Amount != 10_000 || mismatches() != 2 || s.mismatches(ledger.KindJournalDiffers) != 2 {
			t.Errorf("%s: got %d mismatches and %+v", what, mismatches(), line)
		}
	}
	journal("1", "4999")
	journal("2", "4998")
	both("found")
	both("found again")
	s.tampered(`UPDATE mismatches SET fingerprint = concat_ws('|', kind, payment_key, order_id, transaction_key) WHERE books ->> 'reference' LIKE '%#2'`)
	both("opened under the key")
	journal("1", "5000")
	line := s.judgedAnew("the first put right", monday)
	if left := s.text(`SELECT string_agg(books ->> 'reference', ' ') FROM mismatches WHERE status <> 'resolved'`); line.Count != 1 || left != key+"#2" {
		t.Errorf("the first put right: got %s and %+v", left, line)
	}
	journal("1", "4999")
	both("the first wrong again")
	s.accept()
	s.judgedAnew("accepted", monday)
	if st := s.closeDay(monday); st.Verdict != reconcile.VerdictReconciled || st.Line(reconcile.LineAcceptedBeside, ledger.KRW).Count != 2 || mismatches() != 2 {
		t.Errorf("accepted: got %s %+v", st.Verdict, st.Lines)
	}
	journal("2", "4997")
	line = s.judgedAnew("the second another", monday)
	if left := s.text(`SELECT string_agg(books ->> 'reference', ' ') FROM mismatches WHERE status <> 'resolved'`); line.Count != 1 || left != key+"#2" || mismatches() != 2 {
		t.Errorf("the second another: got %s and %+v", left, line)
	}
}
