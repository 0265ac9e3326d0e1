package reconcile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

const (
	kim = ledger.Actor("os:kim")
	lee = ledger.Actor("api:lee")
)

func (s *shop) sign(w reconcile.Signing) (reconcile.Signature, error) {
	s.t.Helper()
	return s.Auditor.Sign(s.t.Context(), w)
}

func (s *shop) signed(by ledger.Actor, digest string) reconcile.Signature {
	s.t.Helper()
	signature, err := s.sign(reconcile.Signing{Day: monday, By: by, Digest: digest})
	s.must(err)
	return signature
}

func (s *shop) signatures() int {
	s.t.Helper()
	return s.number(`SELECT count(*) FROM day_signoffs`)
}

// detail is everything that is known of Monday.
func (s *shop) detail() reconcile.DayDetail {
	s.t.Helper()
	d, err := s.Auditor.Day(s.t.Context(), monday)
	s.must(err)
	return d
}

// closed is a Monday that was closed with a canceled order and one whose cancel is pending.
func closed(t *testing.T) (s *shop, pending string, st reconcile.Statement) {
	t.Helper()
	s = setup(t, patient)
	first, pending := s.paid("order-1", 1000), s.paid("order-2", 2000)
	s.canceled(first, 400)
	s.record(s.ask(ledger.ChannelWebhook, first))
	s.canceled(pending, 300)
	s.overnight(monday)
	return s, pending, s.closeDay(monday)
}

// TestSign_OnlyWhatWasSeen: a signature is given by a person, to the statement that the person saw, of a day that is
// closed and settled. Whatever else is asked for is refused and leaves no signature.
func TestSign_OnlyWhatWasSeen(t *testing.T) {
	t.Parallel()
	other := strings.Repeat("ab", 32)
	tests := []struct {
		name    string
		before  func(s *shop)
		signing reconcile.Signing
		want    error
	}{
		{"the service", nil, reconcile.Signing{Day: monday, By: ledger.System}, reconcile.ErrSigner},
		{"nobody", nil, reconcile.Signing{Day: monday}, reconcile.ErrSigner},
		{"no day", nil, reconcile.Signing{Day: "2026-02-30", By: kim}, ledger.ErrDay},
		{"no digest", nil, reconcile.Signing{Day: monday, By: kim, Digest: "abc"}, reconcile.ErrSignature},
		{"a long note", nil, reconcile.Signing{Day: monday, By: kim, Note: strings.Repeat("가", 501)}, reconcile.ErrSignature},
		{"a note that no database keeps", nil, reconcile.Signing{Day: monday, By: kim, Note: "a\x00b"}, reconcile.ErrSignature},
		{"another statement", nil, reconcile.Signing{Day: monday, By: kim, Digest: other}, reconcile.ErrDayDiffers},
		{"a day never closed", nil, reconcile.Signing{Day: "2026-11-29", By: kim}, reconcile.ErrDayNotClosed},
		{"today", nil, reconcile.Signing{Day: "2026-12-01", By: kim}, reconcile.ErrDayNotClosed},
		{"a day that breaks", func(s *shop) {
			s.exec(`UPDATE mirror SET amount = 5 WHERE kind = 'cancel' AND order_id = 'order-1'`)
			s.closeDay(monday)
		}, reconcile.Signing{Day: monday, By: kim}, reconcile.ErrDayNotClosed},
		{"a day that breaks since it was closed", func(s *shop) {
			s.exec(`UPDATE mirror SET amount = 5 WHERE kind = 'cancel' AND order_id = 'order-1'`)
		}, reconcile.Signing{Day: monday, By: kim}, reconcile.ErrDayNotClosed},
		{"a late row that nobody saw", func(s *shop) {
			s.late(s.keyOf("order-2"), 70)
			s.clock.Advance(time.Hour)
			s.reread()
		}, reconcile.Signing{Day: monday, By: kim}, reconcile.ErrDayDiffers},
		{"a pending cancel that its payment denies", func(s *shop) {
			s.exec(`INSERT INTO mismatches (kind, payment_key, order_id, transaction_key, currency, amount, detail, fingerprint, opened_at, last_seen_at)
				SELECT 'cancel_missing_here', payment_key, order_id, transaction_key, currency, amount, '-', transaction_key, $1, $1
				FROM mirror WHERE kind = 'cancel' AND order_id = 'order-2'`, s.clock.Now())
		}, reconcile.Signing{Day: monday, By: kim}, reconcile.ErrDayNotClosed},
		{"a listed payment of no order that is being asked about again", func(s *shop) {
			now := s.clock.Now()
			s.clock.Set(monday.End().Add(-time.Hour))
			s.row("stray", "pay-stray", "order-1", "DONE", "500")
			s.clock.Set(now)
			s.reread()
			s.find(ledger.Finding{Kind: ledger.KindPaymentWithoutOrder, PaymentKey: "pay-stray", TransactionKey: "stray", AtRisk: ledger.Won(500), Detail: "-"})
			if st := s.closeDay(monday); st.Verdict != reconcile.VerdictPending {
				s.t.Errorf("got %s %v", st.Verdict, st.Reasons)
			}
		}, reconcile.Signing{Day: monday, By: kim}, reconcile.ErrDayNotClosed},
		{
			"a list that was not read", func(s *shop) { s.exec(`UPDATE list_covered SET stretches = '{}'`) },
			reconcile.Signing{Day: monday, By: kim},
			reconcile.ErrDayNotClosed,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, _, _ := closed(t)
			if test.before != nil {
				test.before(s)
			}
			if _, err := s.sign(test.signing); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if n := s.signatures(); n != 0 {
				t.Errorf("got %d signatures", n)
			}
		})
	}
}

// TestSign_TwiceIsOnce: the same person signing the same statement again has signed once, by whatever door and spelling;
// another person signs too.
func TestSign_TwiceIsOnce(t *testing.T) {
	t.Parallel()
	s, _, st := closed(t)
	first, err := s.sign(reconcile.Signing{Day: monday, By: kim, Digest: strings.ToUpper(st.Digest), Note: "대사 확인"})
	s.must(err)
	if first.Digest != st.Digest || first.SignedBy != kim || first.Again || first.Note != "대사 확인" || !first.SignedAt.Equal(s.clock.Now()) {
		t.Errorf("got %+v", first)
	}
	s.clock.Advance(time.Hour)
	for _, by := range []ledger.Actor{kim, "api:KIM"} {
		if again := s.signed(by, ""); !again.Again || again.RunID != first.RunID || !again.SignedAt.Equal(first.SignedAt) {
			t.Errorf("%s again: got %+v, want the first", by, again)
		}
	}
	if second := s.signed(lee, st.Digest); second.Again {
		t.Errorf("another person: got %+v", second)
	}
	d := s.detail()
	if len(d.Signatures) != 2 || d.Signed != reconcile.SignedYes || d.Statement.Digest != st.Digest || !strings.HasPrefix(d.Closed, "daesa closed day v1\nday 2026-11-30\n") {
		t.Errorf("got %+v", d)
	}
	days, err := s.Auditor.Days(t.Context(), "2026-11-01", "2026-12-31")
	s.must(err)
	if len(days) != 1 || days[0].Signed != reconcile.SignedYes || days[0].Signature.SignedBy != lee || days[0].Sums[0].Pending.Amount != 300 {
		t.Errorf("got %+v", days)
	}
	if n := s.signatures(); n != 2 {
		t.Errorf("got %d signatures, want 2", n)
	}
}

// TestSign_IsForGood: no signature is changed or deleted, not even by the tables' owner, and nothing that a closing run
// kept. What it no longer sees it ends, and other audits may go.
func TestSign_IsForGood(t *testing.T) {
	t.Parallel()
	s, pending, _ := closed(t)
	s.signed(kim, "")
	s.record(s.ask(ledger.ChannelWebhook, pending))
	s.closeDay(monday) // ends the row that was pending
	for _, sql := range []string{
		`UPDATE day_signoffs SET note = 'other'`, `DELETE FROM day_signoffs`, `TRUNCATE day_signoffs`, `TRUNCATE day_signoffs CASCADE`,
	} {
		if _, err := s.db.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "for good") {
			t.Errorf("%s: got %v, want it refused", sql, err)
		}
	}
	if _, err := s.db.Exec(t.Context(), `INSERT INTO day_signoffs (day, signed_by, signed_at, run_id, digest, facts)
		SELECT day, 'system', now(), run_id, digest, facts FROM day_signoffs`); err == nil {
		t.Error("the service signed")
	}
	for _, sql := range []string{
		`UPDATE audit_runs SET verdict = 'reconciled'`, `UPDATE audit_runs SET statement = '{}'`, `DELETE FROM audit_runs WHERE scope = 'day'`,
		`TRUNCATE audit_runs CASCADE`, `DELETE FROM day_rows`, `TRUNCATE day_rows`, `UPDATE day_rows SET booked = 399`,
		`UPDATE day_rows SET gone_run = first_run + 1, booked = 399`, `UPDATE day_rows SET gone_run = first_run + 1 WHERE gone_run IS NOT NULL`,
		`UPDATE day_rows SET gone_run = NULL WHERE gone_run IS NOT NULL`, `UPDATE day_rows SET gone_run = gone_run`,
	} {
		if _, err := s.db.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "for good") {
			t.Errorf("%s: got %v, want it refused", sql, err)
		}
	}
	s.exec(`DELETE FROM audit_runs WHERE scope <> 'day'`)
	if s.signatures() != 1 {
		t.Error("the signature is gone")
	}
}

// TestSigned_TheExpectedCourseIsNoChange: what was signed as pending and is applied later at the amount that was signed
// changes the statement, and nothing that the signature covers.
func TestSigned_TheExpectedCourseIsNoChange(t *testing.T) {
	t.Parallel()
	s, pending, st := closed(t)
	s.signed(kim, "")
	s.record(s.ask(ledger.ChannelSweep, pending))
	s.clock.Advance(2 * time.Hour)
	days := s.close()
	if len(days) != 1 || days[0].Verdict != reconcile.VerdictReconciled || days[0].Digest == st.Digest || days[0].Since.Changed != 1 {
		t.Fatalf("got %+v", days)
	}
	if n := s.mismatches(ledger.KindSignedDayChanged); n != 0 || s.detail().Signed != reconcile.SignedYes {
		t.Errorf("got %d mismatches, and the day is signed: %s", n, s.detail().Signed)
	}
	if again := s.signed(kim, ""); again.Again || again.Digest != days[0].Digest || s.signatures() != 2 {
		t.Errorf("another statement may be signed too: got %+v", again)
	}
}

// TestSigned_AnyOtherChangeIsAMismatch: whatever makes a signed day say something else is one mismatch about the day, with
// both digests and what changed, however often the day is closed; it is over when the day says again what is signed, or
// when what it says now is signed.
func TestSigned_AnyOtherChangeIsAMismatch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(s *shop)
		back   string // what makes the day say again what was signed
		atRisk string
	}{
		{"a late cancel", func(s *shop) {
			s.late(s.keyOf("order-2"), 70)
			s.reread()
		}, `DELETE FROM mirror WHERE amount = 70`, `70 KRW`},
		{"a late capture", func(s *shop) {
			now := s.clock.Now()
			s.clock.Set(monday.End().Add(-time.Minute))
			s.row("txrd_late", "pay-late", "order-late", "DONE", "90")
			s.clock.Set(now)
			s.reread()
		}, `DELETE FROM mirror WHERE amount = 90`, `90 KRW`},
		{
			"a cancel that vanished", func(s *shop) {
				s.exec(`UPDATE mirror SET missing_since = now() WHERE kind = 'cancel' AND amount = 400`)
			},
			`UPDATE mirror SET missing_since = NULL`, `400 KRW`,
		},
		{
			"an amount at the gateway", func(s *shop) { s.exec(`UPDATE mirror SET amount = 450 WHERE kind = 'cancel' AND amount = 400`) },
			`UPDATE mirror SET amount = 400 WHERE amount = 450`, `450 KRW`,
		},
		{"a pending cancel applied at another amount", func(s *shop) {
			s.record(s.ask(ledger.ChannelSweep, s.keyOf("order-2")))
			s.exec(`UPDATE mirror SET amount = 310 WHERE kind = 'cancel' AND amount = 300`)
		}, `UPDATE mirror SET amount = 300 WHERE amount = 310`, `310 KRW`},
		{
			"a pending cancel that nobody asks about", func(s *shop) { s.exec(`UPDATE work SET closed_at = now(), closed_as = 'expired'`) },
			`UPDATE work SET closed_at = NULL, closed_as = NULL`, `300 KRW`,
		},
		{"another payment", func(s *shop) {
			s.exec(`UPDATE mirror SET order_id = 'order-3' WHERE kind = 'cancel' AND amount = 400`)
		}, `UPDATE mirror SET order_id = 'order-1' WHERE kind = 'cancel' AND amount = 400`, `400 KRW`},
		{"a booked cancel", func(s *shop) { s.exec(`UPDATE cancels SET amount = 399`) }, `UPDATE cancels SET amount = 400`, `400 KRW`},
		{
			"a cent for a won", func(s *shop) { s.exec(`UPDATE mirror SET currency = 'USD' WHERE kind = 'cancel' AND amount = 400`) },
			`UPDATE mirror SET currency = 'KRW'`, `400 USD`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, _, st := closed(t)
			s.signed(kim, st.Digest)
			s.clock.Advance(2 * time.Hour)
			test.change(s)
			for range 2 {
				s.clock.Advance(time.Minute)
				s.closeDay(monday)
			}
			if n := s.mismatches(ledger.KindSignedDayChanged); n != 1 {
				t.Fatalf("got %d mismatches, want 1 about the day", n)
			}
			if d := s.detail(); d.Signed != reconcile.SignedChanged {
				t.Errorf("got %s", d.Signed)
			}
			if got := s.text(`SELECT concat_ws(' ', transaction_key, amount, currency,
				concat_ws(',', (books->>'digest' = $1)::text, (gateway->>'digest' <> $1)::text), gateway->>'changed',
				jsonb_array_length(gateway->'first')) FROM mismatches WHERE kind = 'signed_day_changed'`, st.Digest); got != fmt.Sprintf("day:2026-11-30 %s true,true 1 1", test.atRisk) {
				t.Errorf("got %s", got)
			}
			s.exec(test.back)
			s.closeDay(monday)
			if n := s.mismatches(ledger.KindSignedDayChanged); n != 0 || s.detail().Signed != reconcile.SignedYes {
				t.Errorf("the day says again what is signed: got %d mismatches, signed %s", n, s.detail().Signed)
			}
		})
	}
}

// TestSigned_ANewSignatureSettlesTheChange: a person who signs what the day says now settles that it said something else.
func TestSigned_ANewSignatureSettlesTheChange(t *testing.T) {
	t.Parallel()
	s, _, st := closed(t)
	s.signed(kim, "")
	s.late(s.keyOf("order-2"), 70)
	s.clock.Advance(2 * time.Hour)
	s.reread()
	now := s.closeDay(monday)
	if n := s.mismatches(ledger.KindSignedDayChanged); n != 1 {
		t.Fatalf("got %d mismatches", n)
	}
	if _, err := s.sign(reconcile.Signing{Day: monday, By: kim, Digest: st.Digest}); !errors.Is(err, reconcile.ErrDayDiffers) {
		t.Errorf("what it said before: got %v", err)
	}
	if again := s.signed(kim, now.Digest); again.Again || s.mismatches(ledger.KindSignedDayChanged) != 0 || s.detail().Signed != reconcile.SignedYes {
		t.Errorf("got %+v, %d mismatches", again, s.mismatches(ledger.KindSignedDayChanged))
	}
	if n := s.signatures(); n != 2 {
		t.Errorf("got %d signatures, want both kept", n)
	}
}

// TestSigned_PendingMoney: money that the list shows and that is being asked about is pending, and its day is looked at
// again each hour. It was signed as owed: booked as listed it is no change, and a mismatch once nobody asks any more.
func TestSigned_PendingMoney(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		end  func(s *shop, key string)
		want reconcile.Verdict
		are  int
	}{
		{"booked", func(s *shop, key string) { s.record(s.ask(ledger.ChannelSweep, key)) }, reconcile.VerdictReconciled, 0},
		{"given up", func(s *shop, _ string) { s.exec(`UPDATE work SET closed_at = now(), closed_as = 'expired'`) }, reconcile.VerdictBreaks, 1},
		{"still asked about", func(*shop, string) {}, reconcile.VerdictPending, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, patient)
			key := s.order("order-1", 1_000_000, tosssim.Card)
			s.send(s.intend("order-1", key, 1_000_000))
			s.overnight(monday)
			if days := s.close(); len(days) != 1 || days[0].Verdict != reconcile.VerdictPending || days[0].Captures[0].Pending.Amount != 1_000_000 {
				t.Fatalf("got %+v", days)
			}
			s.signed(kim, "")
			test.end(s, key)
			s.clock.Advance(61 * time.Minute)
			if days := s.close(); len(days) != 1 || days[0].Verdict != test.want {
				t.Errorf("an hour later: got %+v, want %s", days, test.want)
			}
			if n := s.mismatches(ledger.KindSignedDayChanged); n != test.are {
				t.Errorf("got %d mismatches about the signed day, want %d", n, test.are)
			}
		})
	}
}

// TestSigned_AMuchChangedDayNeedsAnother: whoever signs, another must have acknowledged just that change. It does not
// matter who signed before, and by which door somebody came in.
func TestSigned_AMuchChangedDayNeedsAnother(t *testing.T) {
	t.Parallel()
	s, _, _ := closed(t)
	s.must(ledger.SetSecondPerson(t.Context(), s.db, ledger.SecondPerson{Above: 69}, s.clock.Now()))
	s.signed(kim, "")
	change := func(order string, amount int64) string {
		s.late(s.keyOf(order), amount)
		s.clock.Advance(2 * time.Hour)
		s.reread()
		return s.closeDay(monday).Digest
	}
	refused := func(digest, why string, signers ...ledger.Actor) {
		t.Helper()
		before := s.signatures()
		for _, by := range signers {
			if _, err := s.sign(reconcile.Signing{Day: monday, By: by, Digest: digest}); !errors.Is(err, reconcile.ErrNotAcknowledged) {
				t.Errorf("%s: %s signs: got %v", why, by, err)
			}
		}
		if s.mismatches(ledger.KindSignedDayChanged) != 1 || s.signatures() != before {
			t.Errorf("%s: a refused signature settled it", why)
		}
	}

	digest := change("order-2", 70)
	refused(digest, "nobody looked", kim, "api:Kim", lee)
	s.step(ledger.StepAcknowledge, kim)
	refused(digest, "only the signer looked", kim, "api:Kim")
	digest = change("order-2", 1)
	refused(digest, "another change than was acknowledged", lee)
	s.step(ledger.StepNote, kim)
	s.signed(lee, digest)
	if got := s.text(`SELECT resolved_as || ' ' || resolved_by FROM mismatches WHERE kind = 'signed_day_changed'`); got != "fixed "+string(lee) {
		t.Errorf("resolved: got %q", got)
	}
	s.must(ledger.SetSecondPerson(t.Context(), s.db, ledger.SecondPerson{Above: 10}, s.clock.Now()))
	digest = change("order-2", 10)
	s.signed(lee, digest)
	if n := s.mismatches(ledger.KindSignedDayChanged); n != 0 {
		t.Errorf("no more changed than one person may settle: got %d mismatches", n)
	}

	digest = change("order-2", 11)
	s.step(ledger.StepAcknowledge, kim)
	s.exec(`UPDATE mismatches SET gateway = gateway || '{"facts": "of another change"}' WHERE kind = 'signed_day_changed'`)
	s.closeDay(monday)
	refused(digest, "another change of the same sum was acknowledged", lee)
	s.exec(`UPDATE mismatches SET status = 'open' WHERE kind = 'signed_day_changed'`)
	s.exec(`UPDATE mismatches SET status = 'acknowledged' WHERE kind = 'signed_day_changed'`)
	refused(digest, "only the database says that somebody looked", lee)
	s.step(ledger.StepResolve, kim)
	s.step(ledger.StepConfirm, lee)
	s.signed("os:park", digest)
}

// step has somebody do something about the change of the signed day, and returns what the mismatch is then.
func (s *shop) step(step ledger.Step, by ledger.Actor) (m ledger.Mismatch) {
	s.t.Helper()
	s.tx(func(tx pgx.Tx) error {
		two, err := ledger.LoadSecondPerson(s.t.Context(), tx)
		if err != nil {
			return err
		}
		id := int64(s.number(`SELECT mismatch_id FROM mismatches WHERE kind = 'signed_day_changed'`))
		m, err = ledger.ChangeMismatch(s.t.Context(), tx, id, ledger.Change{Step: step, By: by, As: ledger.ResolvedAccepted, Note: "seen"}, two, s.clock.Now())
		return err
	})
	return m
}

// TestSigned_BothDoorsWeighAllCurrencies: that a signed day changed is settled by resolving the mismatch about it, or by
// signing again. Whether one person may do that alone is the same at both doors, whatever currencies changed: a cent is
// not a won, and little of each may be much together.
func TestSigned_BothDoorsWeighAllCurrencies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		cents  int64 // of a capture, and of its cancel
		atRisk string
		alone  bool
	}{
		{"fewer cents than won, and more money", 449_950, "18898000 KRW", false},
		{"too much together", 5_000, "1100000 KRW", false},
		{"not too much together", 2_000, "980000 KRW", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			changed := func() (*shop, reconcile.Statement) {
				s := setup(t, patient)
				key := s.paid("order-1", 2_000_000)
				s.overnight(monday)
				s.closeDay(monday)
				s.signed(kim, "")
				s.late(key, 900_000)
				s.clock.Set(monday.End().Add(-time.Minute))
				s.dollars("order-2", test.cents)
				s.clock.Set(monday.End().Add(3 * time.Hour))
				s.reread()
				return s, s.closeDay(monday)
			}

			s, now := changed()
			got := s.text(`SELECT amount || ' ' || currency FROM mismatches WHERE kind = 'signed_day_changed'`)
			if got != test.atRisk {
				t.Errorf("at risk: got %s, want %s", got, test.atRisk)
			}
			switch _, err := s.sign(reconcile.Signing{Day: monday, By: kim, Digest: now.Digest}); {
			case test.alone && err != nil:
				t.Errorf("signed again by the same person: got %v", err)
			case !test.alone && !errors.Is(err, reconcile.ErrNotAcknowledged):
				t.Errorf("signed again by the same person: got %v, want it refused", err)
			}

			s, _ = changed()
			m := s.step(ledger.StepResolve, kim)
			if resolved := m.Status == ledger.MismatchResolved; resolved != test.alone || (m.Proposal == nil) != test.alone {
				t.Errorf("resolved by one person: got %t, want %t", resolved, test.alone)
			}
		})
	}
}

// TestSigned_ChangesAtAnyAge: whatever changes on a signed day is found by the audit of the minute and the closing run
// after it, months later too, and the day is not looked at again for nothing.
func TestSigned_ChangesAtAnyAge(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, change string }{
		{"a row read late", `INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day,
				first_seen_at, last_seen_at, first_run)
			SELECT 'late', payment_key, order_id, 'cancel', 'CANCELED', 'KRW', 70, false, at + interval '1 second', day, $1, $1, 1
			FROM mirror WHERE kind = 'capture' AND order_id = 'order-2'`},
		{"a capture that is of another system", `UPDATE mirror SET is_foreign = true, last_seen_at = $1 WHERE kind = 'capture' AND order_id = 'order-2'`},
		{"an acceptance taken back", `UPDATE mismatches SET status = 'open', resolved_as = NULL, resolved_at = NULL, resolved_by = NULL, note = '', last_seen_at = $1
			WHERE resolved_as = 'accepted'`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, pending, _ := closed(t)
			s.record(s.ask(ledger.ChannelSweep, pending))
			s.exec(`UPDATE mirror SET amount = 450 WHERE kind = 'cancel' AND amount = 400`)
			s.exec(`INSERT INTO mismatches (kind, fingerprint, status, payment_key, transaction_key, currency, amount, detail, opened_at,
					last_seen_at, resolved_at, resolved_as, resolved_by, note)
				SELECT 'amount_differs', 'f', 'resolved', payment_key, transaction_key, 'KRW', 450, 'the cancel is 450 KRW at the gateway and 400 KRW here', at, last_seen_at, first_seen_at,
					'accepted', 'os:kim', 'agreed'
				FROM mirror WHERE amount = 450`)
			s.closeDay(monday)
			s.signed(kim, "")
			s.clock.Advance(60 * 24 * time.Hour)
			s.exec(`UPDATE list_covered SET stretches = tstzmultirange(tstzrange('2026-11-01', '2027-06-01'))`)
			s.close()
			s.exec(test.change, s.clock.Now())
			s.clock.Advance(time.Minute)
			s.audit(reconcile.ScopeRecent)
			days := s.close()
			if len(days) != 1 || days[0].Day != monday || s.mismatches(ledger.KindSignedDayChanged) != 1 {
				t.Fatalf("got %+v and %d mismatches", days, s.mismatches(ledger.KindSignedDayChanged))
			}
			s.clock.Advance(time.Hour)
			s.audit(reconcile.ScopeRecent)
			for _, d := range s.close() {
				if d.Day == monday {
					t.Error("closed again for nothing")
				}
			}
		})
	}
}
