package reconcile_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/reconcile"
)

// TestSettings_TheServiceDecides: commands go by the settings of the service. Before it has ever run, those that open the
// books go by what they are told; after an upgrade nobody does until it has started.
func TestSettings_TheServiceDecides(t *testing.T) {
	t.Parallel()
	s := setup(t, sharedID)
	told := func(what string, change func(*reconcile.Config), opens bool, refused ...string) {
		t.Helper()
		cfg := s.cfg
		change(&cfg)
		err := reconcile.RequireSettings(t.Context(), s.db, cfg, opens)
		if (err != nil) != (len(refused) > 0) {
			t.Errorf("%s: got %v, want it refused: %v", what, err, refused)
		}
		for _, part := range refused {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %q, want %q in it", what, err, part)
			}
		}
	}
	same := func(*reconcile.Config) {}
	bare := func(c *reconcile.Config) { c.OurOrders, c.OpeningAt = nil, time.Time{} }

	told("no service ever ran, opens the books", bare, true)
	told("no service ever ran", same, false, "start daesa serve")
	s.exec(`INSERT INTO audit_runs (scope, started_at, ended_at, as_of, verdict, statement) VALUES ('recent', $1, $1, $1, 'reconciled', '{}')`, noon())
	told("a service ran before the upgrade", same, true, "start daesa serve")

	s.must(s.KeepSettings(t.Context()))
	told("the service's own", same, true)
	told("the service's own, and it opens nothing", same, false)
	told("the same instant in another zone, the lag that is none", func(c *reconcile.Config) {
		c.OpeningAt, c.ListLag = c.OpeningAt.UTC(), 10*time.Minute
	}, false)
	told("none of them", bare, true, `order pattern is "^order-" there and none here`, "opening is 2026-11-30T11:00:00+09:00 there and none here",
		"set DAESA_ORDER_PATTERN and DAESA_OPENING_AT")
	told("another pattern", func(c *reconcile.Config) { c.OurOrders = regexp.MustCompile("^demo-") }, true, `"^order-" there and "^demo-" here; set DAESA_ORDER_PATTERN to`)
	told("another lag", func(c *reconcile.Config) { c.ListLag = time.Minute }, true, "list lag is 10m0s there and 1m0s here; set DAESA_LIST_LAG to")
	told("a second earlier", func(c *reconcile.Config) { c.OpeningAt = c.OpeningAt.Add(-time.Second) }, true, "DAESA_OPENING_AT")

	newer := s.another(bare)
	s.must(newer.KeepSettings(t.Context()))
	told("the last that started decides", bare, true)
	told("and not the first", same, true, "none there")
	s.poll()
	told("until the first reads the list", same, true)
	told("and not the last", bare, true, "none here")
}

// TestSettings_NoRowByOthers: whoever reads the past writes no row by other settings than the service's, also where it began
// by the same.
func TestSettings_NoRowByOthers(t *testing.T) {
	t.Parallel()
	s := setup(t, sharedID)
	s.row("other", "pay-other", "other-1", "DONE", "10000")
	s.clock.Advance(time.Minute)
	s.poll()
	stray := s.another(func(c *reconcile.Config) { c.OurOrders, c.Beside = nil, true })
	history := reconcile.History{From: noon().Add(-time.Hour), To: s.clock.Now(), Again: true}
	if _, err := stray.Mirror.ReadHistory(t.Context(), history); err == nil || !strings.Contains(err.Error(), "DAESA_ORDER_PATTERN") {
		t.Errorf("got %v", err)
	}
	if n := s.number(`SELECT count(*) FROM mirror WHERE NOT is_foreign`) + s.number(`SELECT count(*) FROM mismatches`); n != 0 {
		t.Errorf("%d rows and mismatches were written by other settings", n)
	}
	beside := s.another(func(c *reconcile.Config) { c.Beside = true })
	if got, err := beside.Mirror.ReadHistory(t.Context(), history); err != nil || got.Rows != 1 {
		t.Errorf("got %+v and %v", got, err)
	}
}

// TestSettings_ChangedOnPurpose: rows that were taken for ours are another system's once the service is told the form of
// our orders and has read them again. What was open about them ends by itself, and their day can be signed; nothing of
// ours ends that way, and it opens again when they are ours after all.
func TestSettings_ChangedOnPurpose(t *testing.T) {
	t.Parallel()
	s := setup(t)
	own := s.canceled(s.paid("order-1", 1_000), 400)
	s.row("other", "pay-other", "other-1", "DONE", "9000000")
	s.row("other-cancel", "pay-other", "other-1", "CANCELED", "3000")
	s.overnight(monday)
	missing := func(transactionKey string) {
		s.find(ledger.Finding{
			Kind: ledger.KindCancelMissingHere, PaymentKey: s.text(`SELECT payment_key FROM mirror WHERE transaction_key = $1`, transactionKey),
			TransactionKey: transactionKey, AtRisk: ledger.Won(3_000), Detail: "-",
		})
	}
	missing("other-cancel")
	if st := s.closeDay(monday); st.Verdict != reconcile.VerdictBreaks || s.mismatches(ledger.KindPaymentWithoutOrder) != 1 {
		t.Fatalf("got %s %v", st.Verdict, st.Reasons)
	}

	told := s.another(func(c *reconcile.Config) { c.OurOrders = regexp.MustCompile("^order-") })
	s.must(told.KeepSettings(t.Context()))
	_, err := told.Mirror.ReadHistory(t.Context(), reconcile.History{From: monday.Start(), To: monday.End(), Again: true})
	s.must(err)
	s.must(s.Sweeper.Tend(t.Context()))
	if got := s.text(`SELECT string_agg(concat(transaction_key, ' ', status, ' ', resolved_as), ', ' ORDER BY transaction_key) FROM mismatches`); got != "other resolved auto, other-cancel resolved auto" {
		t.Errorf("%s", got)
	}
	if st := s.closeDay(monday); st.Verdict != reconcile.VerdictPending {
		t.Errorf("got %s %v", st.Verdict, st.Reasons)
	}
	s.signed(kim, "")

	missing(own)
	s.exec(`UPDATE mirror SET is_foreign = true WHERE transaction_key = $1`, own) // as no read of the list leaves it
	s.must(s.Sweeper.Tend(t.Context()))
	if s.mismatches(ledger.KindCancelMissingHere) != 1 {
		t.Error("a mismatch about money of ours ended")
	}
	s.reread()
	s.audit(reconcile.ScopeRecent)
	if s.mismatches(ledger.KindPaymentWithoutOrder) != 1 {
		t.Error("the row is ours again and nobody is told")
	}
}
