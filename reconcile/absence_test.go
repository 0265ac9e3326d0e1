package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// TestClose_NothingReadIsNoAgreement: a list that refuses, or answers with nothing in any form, never closes a day on which
// we canceled, and takes no cancel back. An empty list is doubted once; when it insists, every cancel of ours lacks its
// counterpart.
func TestClose_NothingReadIsNoAgreement(t *testing.T) {
	t.Parallel()
	const cancels = 30
	for name, test := range map[string]struct {
		fault   tosssim.Fault
		verdict reconcile.Verdict
		missing int
	}{
		"401":     {tosssim.Fault{Kind: tosssim.Status, Code: 401, Body: `{"code":"UNAUTHORIZED_KEY","message":"-"}`}, reconcile.VerdictIncomplete, 0},
		"empty":   {tosssim.Fault{Kind: tosssim.EmptyArray}, reconcile.VerdictBreaks, cancels},
		"object":  {tosssim.Fault{Kind: tosssim.Body, Body: "{}"}, reconcile.VerdictIncomplete, 0},
		"null":    {tosssim.Fault{Kind: tosssim.Body, Body: "null"}, reconcile.VerdictIncomplete, 0},
		"html":    {tosssim.Fault{Kind: tosssim.HTML, Code: 200}, reconcile.VerdictIncomplete, 0},
		"silence": {tosssim.Fault{Kind: tosssim.Hang}, reconcile.VerdictIncomplete, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			for n := range cancels {
				key := s.paid(orderID(n), 1000)
				s.canceled(key, 0)
				s.record(s.ask(ledger.ChannelWebhook, key))
			}
			s.audit(reconcile.ScopeRecent)
			test.fault.Op, test.fault.N = tosssim.List, -1
			s.sim.Fail(test.fault)
			s.clock.Set(monday.End().Add(20 * time.Minute))
			for range 3 {
				s.clock.Advance(3 * time.Hour)
				_, err := s.Mirror.Poll(t.Context())
				if (err == nil) != (test.verdict == reconcile.VerdictBreaks) {
					t.Fatalf("got %v", err)
				}
				days := s.close()
				if len(days) != 1 || days[0].Verdict != test.verdict {
					t.Fatalf("got %+v, want one day, %s", days, test.verdict)
				}
				if st := s.audit(reconcile.ScopeRecent); st.Verdict != test.verdict {
					t.Errorf("each minute: got %s, want %s", st.Verdict, test.verdict)
				}
			}
			if n := s.mismatches(ledger.KindCancelMissingThere); n != test.missing {
				t.Errorf("got %d cancels missing there, want %d", n, test.missing)
			}
			if n := s.number(`SELECT count(*) FROM audit_runs WHERE verdict IN ('reconciled', 'reconciled_with_pending')`); n != 0 {
				t.Errorf("%d audits passed", n)
			}
			s.must(s.Sweeper.Tend(t.Context()))
			if waits := s.metric("daesa_reconcile_unclosed_day_seconds", nil) > 0; waits != (test.verdict == reconcile.VerdictIncomplete) {
				t.Errorf("the day still waits to be closed: %t", waits)
			}
			if n := s.number(`SELECT count(*) FROM payments WHERE status = 'canceled'`); n != cancels {
				t.Errorf("%d of %d are still canceled", n, cancels)
			}
			s.sim.Heal()
			s.clock.Advance(time.Hour)
			s.poll()
			s.reread()
			if days := s.close(); len(days) != 1 || days[0].Verdict != reconcile.VerdictReconciled || days[0].Sums[0].Canceled.Count != cancels {
				t.Errorf("after the list is back: got %+v", days)
			}
			if n := s.number(`SELECT count(*) FROM mismatches WHERE status <> 'resolved'`); n != 0 {
				t.Errorf("%d mismatches are left", n)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestClose_EmptyDay: a day on which nothing happened in either book is reconciled, and says that it saw nothing.
func TestClose_EmptyDay(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.overnight(monday)
	st := s.closeDay(monday)
	var text strings.Builder
	s.must(st.WriteText(&text))
	if says := "1 reads of the list (0 failed), 0 rows (0 foreign), 0 cancels of ours"; st.Verdict != reconcile.VerdictReconciled || !strings.Contains(text.String(), says) {
		t.Errorf("got %s, want reconciled and %q:\n%s", st.Verdict, says, text.String())
	}
}
