package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient"
	"daesa/reconcile"
)

// forgedList changes every page of the list.
type forgedList struct {
	reconcile.Gateway
	forge func(*pgclient.Page)
}

func (g forgedList) Transactions(ctx context.Context, from, to time.Time, after string, limit int) (pgclient.Page, error) {
	page, err := g.Gateway.Transactions(ctx, from, to, after, limit)
	g.forge(&page)
	return page, err
}

// rereadForged reads the last days of a list that is not what it was.
func (s *shop) rereadForged(forge func(*pgclient.Page)) {
	s.t.Helper()
	r := s.another(func(c *reconcile.Config) { c.Gateway = forgedList{s.client, forge} })
	_, err := r.Mirror.Reread(s.t.Context())
	s.must(err)
}

// another amount of the row.
func otherAmount(transactionKey string) func(*pgclient.Page) {
	return func(p *pgclient.Page) {
		for i := range p.Rows {
			if p.Rows[i].TransactionKey == transactionKey {
				p.Rows[i].Amount.Minor++
			}
		}
	}
}

// unknownRow is a row with a word that nobody knows.
func unknownRow(paymentKey string, at time.Time) func(*pgclient.Page) {
	return func(p *pgclient.Page) {
		p.Rows = append(p.Rows, pgclient.Transaction{
			TransactionKey: "odd", PaymentKey: paymentKey, OrderID: "order-1", Word: "SOMETHING_NEW",
			Kind: pgclient.TransactionUnrecognized, Amount: ledger.Won(700), At: at,
		})
	}
}

// unreadableRow is a row that cannot be held.
func unreadableRow(row pgclient.QuarantinedRow) func(*pgclient.Page) {
	return func(p *pgclient.Page) { p.Quarantined = append(p.Quarantined, row) }
}

// accept is a person who accepts every mismatch about transactions.
func (s *shop) accept() {
	s.t.Helper()
	s.exec(`UPDATE mismatches SET status = 'resolved', resolved_at = $1, resolved_as = 'accepted', note = 'agreed'
		WHERE status <> 'resolved' AND kind <> 'signed_day_changed'`, s.clock.Now())
}

// closes are the days that are closed now, with what they say.
func (s *shop) closes() map[ledger.Day]reconcile.Statement {
	s.t.Helper()
	done, err := s.Auditor.CloseDays(s.t.Context())
	s.must(err)
	said := make(map[ledger.Day]reconcile.Statement)
	for _, st := range done {
		said[st.Day] = st
	}
	return said
}

// shownBeside reports whether a statement shows one difference beside the sum, as another statement shows it.
func shownBeside(st, as reconcile.Statement) bool {
	line, same := st.Line(reconcile.LineAcceptedBeside, ledger.KRW), as.Line(reconcile.LineAcceptedBeside, ledger.KRW)
	return line.Count == 1 && len(line.Entries) == 1 && line.Entries[0].Kind != "" && line.Entries[0].Note != "" && cmp.Equal(line, same)
}

// contradicted are the ways in which the list contradicts itself about a day whose books agree.
func contradicted(key, capture, cancel string) map[string]func(*pgclient.Page) {
	at := noon().Add(2 * time.Minute)
	unreadable := pgclient.QuarantinedRow{
		PaymentKey: key, OrderID: "order-1", Word: "CANCELED", Amount: "700.5", Currency: "KRW", Problem: "amount: a fraction",
	}
	timed, keyed := unreadable, unreadable
	timed.At = at
	keyed.At, keyed.TransactionKey = at, "odd"
	return map[string]func(*pgclient.Page){
		"a capture of another amount":      otherAmount(capture),
		"a cancel of another amount":       otherAmount(cancel),
		"a word nobody knows":              unknownRow(key, at),
		"an unreadable row":                unreadableRow(keyed),
		"an unreadable row without a key":  unreadableRow(timed),
		"an unreadable row without a time": unreadableRow(unreadable),
		"an unreadable row of no day of ours": func(p *pgclient.Page) {
			odd := keyed
			odd.At = time.Time{}
			p.Quarantined = append(p.Quarantined, odd)
		},
	}
}

// TestContradicted_DayBreaks: a day whose list contradicts itself is not reconciled, in the audit of a minute and in the
// closing run, and nobody signs it. The identity is what it was. Once a person has accepted it, the
// day does not break any more, and shows it beside the sum.
func TestContradicted_DayBreaks(t *testing.T) {
	t.Parallel()
	for name := range contradicted("", "", "") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 1000)
			s.clock.Advance(time.Minute)
			cancel := s.canceled(key, 400)
			s.record(s.ask(ledger.ChannelWebhook, key))
			s.clock.Advance(time.Minute)
			s.poll()
			before := s.agrees("before")
			s.clock.Advance(time.Minute)
			forge := contradicted(key, s.text(`SELECT transaction_key FROM captures`), cancel)[name]
			s.rereadForged(forge)
			st := s.agrees("contradicted")
			if line := st.Line(reconcile.LineBreaks, ledger.KRW); st.Verdict != reconcile.VerdictBreaks || line.Count != 1 ||
				len(line.Entries) != 1 || line.Entries[0].OrderID != "order-1" || line.Entries[0].Note == "" {
				t.Fatalf("got %s %+v", st.Verdict, st.Lines)
			}
			if diff := cmp.Diff(before.Sums, st.Sums); diff != "" {
				t.Errorf("the identity (-before +now):\n%s", diff)
			}
			s.overnight(monday)
			r := s.another(func(c *reconcile.Config) { c.Gateway = forgedList{s.client, forge} })
			_, err := r.Mirror.Backfill(t.Context(), noon().Add(-time.Minute), noon().Add(time.Hour)) // the list goes on saying so
			s.must(err)
			if closed := s.closes()[monday]; closed.Verdict != reconcile.VerdictBreaks || closed.Line(reconcile.LineBreaks, ledger.KRW).Count != 1 {
				t.Errorf("the closing run says %s %+v", closed.Verdict, closed.Lines)
			}
			if _, err := s.sign(reconcile.Signing{Day: monday, By: "os:kim"}); !errors.Is(err, reconcile.ErrDayNotClosed) {
				t.Errorf("signing: got %v", err)
			}
			rows := 0
			listed, err := s.Auditor.List(t.Context(), reconcile.Scope{Name: reconcile.ScopeDay, Day: monday}, func(r reconcile.Row) error {
				if r.Line == reconcile.LineBreaks {
					rows++
				}
				return nil
			})
			if err != nil || rows != 1 || listed.Verdict != reconcile.VerdictBreaks {
				t.Errorf("listed: got %d rows that break, %s and %v", rows, listed.Verdict, err)
			}
			s.accept()
			st = s.agrees("accepted")
			if st.Verdict != reconcile.VerdictReconciled || !cmp.Equal(before.Sums, st.Sums) || !shownBeside(st, st) {
				t.Errorf("accepted: got %s %v %+v", st.Verdict, st.Reasons, st.Lines)
			}
			s.clock.Advance(11 * time.Minute)
			if closed := s.closes()[monday]; closed.Verdict != reconcile.VerdictReconciled || !shownBeside(closed, st) {
				t.Errorf("accepted: the closing run says %q %+v", closed.Verdict, closed.Lines)
			}
			if n := s.number(`SELECT count(*) FROM day_rows WHERE standing = 'accepted_beside' AND gone_run IS NULL`); n != 1 {
				t.Errorf("accepted: got %d rows of the day", n)
			}
			if _, err := s.sign(reconcile.Signing{Day: monday, By: "os:kim"}); err != nil {
				t.Errorf("signing what was accepted: %v", err)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestContradicted_AfterTheSignature: a closed and signed day that the list contradicts later is closed again by itself
// and breaks. What was signed of a transaction is then said otherwise; of a row that nobody can read nothing was signed.
func TestContradicted_AfterTheSignature(t *testing.T) {
	t.Parallel()
	for name, signed := range map[string]reconcile.Signed{
		"a capture of another amount": reconcile.SignedChanged,
		"a word nobody knows":         reconcile.SignedYes,
		"an unreadable row":           reconcile.SignedYes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 1000)
			s.overnight(monday)
			if closed := s.closes()[monday]; closed.Verdict != reconcile.VerdictReconciled {
				t.Fatalf("got %s %v", closed.Verdict, closed.Reasons)
			}
			first, err := s.sign(reconcile.Signing{Day: monday, By: "os:kim"})
			s.must(err)
			s.clock.Advance(time.Hour)
			s.poll()
			s.rereadForged(contradicted(key, s.text(`SELECT transaction_key FROM captures`), "")[name])
			s.agrees("contradicted")
			if closed := s.closes()[monday]; closed.Verdict != reconcile.VerdictBreaks || closed.Digest == first.Digest {
				t.Errorf("the closing run says %q %+v", closed.Verdict, closed.Lines)
			}
			days, err := s.Auditor.Days(t.Context(), monday, monday)
			if err != nil || len(days) != 1 || days[0].Breaks != 1 || days[0].Verdict != reconcile.VerdictBreaks || days[0].Signed != signed {
				t.Errorf("got %+v and %v", days, err)
			}
			if n := s.mismatches(ledger.KindSignedDayChanged); (n == 1) != (signed == reconcile.SignedChanged) {
				t.Errorf("got %d mismatches about the signed day", n)
			}
			s.accept()
			s.clock.Advance(time.Minute)
			s.poll()
			s.audit(reconcile.ScopeRecent)
			s.clock.Advance(11 * time.Minute)
			if closed := s.closes()[monday]; closed.Verdict != reconcile.VerdictReconciled || closed.Digest == first.Digest {
				t.Errorf("accepted: the closing run says %q %+v", closed.Verdict, closed.Lines)
			}
			if days, err := s.Auditor.Days(t.Context(), monday, monday); err != nil || days[0].Signed != reconcile.SignedChanged || s.mismatches(ledger.KindSignedDayChanged) != 1 {
				t.Errorf("accepted: got %+v and %v", days, err)
			}
			if _, err := s.sign(reconcile.Signing{Day: monday, By: "os:lee"}); err != nil {
				t.Errorf("signing what was accepted: %v", err)
			}
			if n := s.mismatches(ledger.KindSignedDayChanged); n != 0 {
				t.Errorf("signed again: got %d mismatches about the signed day", n)
			}
		})
	}
}

// TestContradicted_AnOldDay: a day that is closed by itself no more is closed again when something about it opens, and
// when it ends.
func TestContradicted_AnOldDay(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 1000)
	s.overnight(monday)
	s.closes()
	s.clock.Advance(60 * 24 * time.Hour)
	r := s.another(func(c *reconcile.Config) {
		c.Gateway = forgedList{s.client, unreadableRow(pgclient.QuarantinedRow{TransactionKey: "odd", PaymentKey: key, At: noon(), Problem: "-"})}
	})
	_, err := r.Mirror.Backfill(t.Context(), noon().Add(-time.Minute), noon().Add(time.Minute))
	s.must(err)
	s.audit(reconcile.ScopeRecent)
	if closed := s.closes()[monday]; closed.Verdict != reconcile.VerdictBreaks {
		t.Errorf("got %q %+v", closed.Verdict, closed.Lines)
	}
	s.exec(`UPDATE mismatches SET status = 'resolved', resolved_at = $1, resolved_as = 'fixed'`, s.clock.Now())
	s.clock.Advance(11 * time.Minute)
	s.audit(reconcile.ScopeRecent)
	if closed := s.closes()[monday]; closed.Verdict != reconcile.VerdictReconciled {
		t.Errorf("resolved: got %q %+v", closed.Verdict, closed.Lines)
	}
}

// TestContradicted_IsNoneOfOurs: what belongs to another system, or to the time before the books were opened, breaks
// nothing.
func TestContradicted_IsNoneOfOurs(t *testing.T) {
	t.Parallel()
	s := setup(t, sharedID)
	s.row("f1", "pay-f", "other-1", "CANCELED", "5000")
	s.clock.Set(noon().Add(-3 * time.Hour))
	s.row("old", "pay-o", "order-old", "CANCELED", "5000")
	s.clock.Set(noon().Add(time.Minute))
	_, err := s.Mirror.Backfill(t.Context(), noon().Add(-24*time.Hour), noon())
	s.must(err)
	s.poll()
	s.rereadForged(func(p *pgclient.Page) {
		otherAmount("f1")(p)
		otherAmount("old")(p)
	})
	if st := s.agrees("after"); st.Verdict != reconcile.VerdictReconciled || len(st.Lines) != 0 {
		t.Errorf("got %s %+v", st.Verdict, st.Lines)
	}
	if n := s.number(`SELECT count(*) FROM mismatches`); n != 0 {
		t.Errorf("got %d mismatches", n)
	}
}

// TestContradicted_OneBreakForOneTransaction: a transaction that the comparison shows to break is listed once. Whoever
// accepts that difference alone still sees what else is open about it.
func TestContradicted_OneBreakForOneTransaction(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.paid("order-1", 1000)
	s.clock.Advance(time.Minute)
	s.poll()
	s.clock.Advance(12 * time.Minute)
	s.rereadForged(func(p *pgclient.Page) { p.Rows = nil })
	kinds := func(what string) string {
		st := s.agrees(what)
		var all string
		for _, e := range st.Line(reconcile.LineBreaks, ledger.KRW).Entries {
			all += string(e.Kind) + " "
		}
		return all
	}
	if got := kinds("gone"); got != "order_without_payment " {
		t.Errorf("gone: got %q", got)
	}
	s.exec(`UPDATE mismatches SET status = 'resolved', resolved_at = $1, resolved_as = 'accepted', note = 'agreed'
		WHERE kind = 'order_without_payment'`, s.clock.Now())
	if got := kinds("accepted"); got != "history_changed " {
		t.Errorf("accepted: got %q", got)
	}
	s.poll()
	if got := kinds("back again"); got != "" || s.mismatches(ledger.KindHistoryChanged) != 0 {
		t.Errorf("back again: got %q", got)
	}
}
