package reconcile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/reconcile"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing them")

// TestAudit_EmptyDayIsReconciled: nothing on either side is 0 = 0, if the list was read.
func TestAudit_EmptyDayIsReconciled(t *testing.T) {
	t.Parallel()
	s := setup(t)
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictIncomplete {
		t.Errorf("never read: got %s", st.Verdict)
	}
	s.poll()
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictReconciled || st.Looked.Runs != 1 {
		t.Errorf("read: got %s %v", st.Verdict, st.Reasons)
	}
	s.clock.Advance(11 * time.Minute)
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictIncomplete {
		t.Errorf("read too long ago: got %s", st.Verdict)
	}
}

// TestAudit_GapIsIncomplete: a stretch that was never read completely ends what the audit can speak for.
func TestAudit_GapIsIncomplete(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.poll()
	s.clock.Advance(3 * time.Hour)
	_, err := s.Mirror.Backfill(t.Context(), s.clock.Now().Add(-time.Hour), s.clock.Now())
	s.must(err)
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictIncomplete || !st.AsOf.Equal(noon()) {
		t.Errorf("got %s as of %s", st.Verdict, st.AsOf)
	}
	s.exec(`INSERT INTO list_runs (reason, window_from, window_to, started_at, result) VALUES ('poll', $1, $2, $2, 'running')`,
		noon().Add(-time.Minute), s.clock.Now())
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictIncomplete {
		t.Errorf("what a crash left running proved something: %s", st.Verdict)
	}
	s.poll()
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictReconciled {
		t.Errorf("after the gap is read: got %s %v", st.Verdict, st.Reasons)
	}
}

// TestAudit_Breaks: each damage to either book is found, once, however often the audit runs, and is over when the books
// agree again.
func TestAudit_Breaks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		kind   ledger.Kind
		damage string
		repair string
	}{
		{"amount", ledger.KindAmountDiffers, `UPDATE mirror SET amount = 999 WHERE kind = 'cancel'`, `UPDATE mirror SET amount = 1000 WHERE kind = 'cancel'`},
		{
			"work vanished", ledger.KindCancelMissingHere,
			`INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
			 SELECT 'lost', payment_key, order_id, kind, word, currency, 10, false, at, day, first_seen_at, last_seen_at, first_run FROM mirror WHERE kind = 'cancel'`,
			`UPDATE mirror SET kind = 'capture', amount = 0 WHERE transaction_key = 'lost'`,
		},
		{
			"not at the gateway", ledger.KindCancelMissingThere,
			`CREATE TABLE kept AS SELECT transaction_key, kind FROM mirror WHERE kind = 'cancel'; UPDATE mirror SET kind = 'none' WHERE kind = 'cancel'`,
			`UPDATE mirror m SET kind = k.kind FROM kept k WHERE k.transaction_key = m.transaction_key`,
		},
		{
			"paid here only", ledger.KindOrderWithoutPayment,
			`UPDATE mirror SET kind = 'none' WHERE kind = 'capture'`, `UPDATE mirror SET kind = 'capture' WHERE kind = 'none'`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 1000)
			s.canceled(key, 0)
			s.record(s.ask(ledger.ChannelWebhook, key))
			s.clock.Advance(20 * time.Minute)
			s.poll()
			if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictReconciled {
				t.Fatalf("before: got %s %+v", st.Verdict, st.Lines)
			}
			s.exec(test.damage)
			for _, scope := range []reconcile.ScopeName{reconcile.ScopeRecent, reconcile.ScopeAll, reconcile.ScopeRecent} {
				st := s.audit(scope)
				if st.Verdict != reconcile.VerdictBreaks || st.Line(reconcile.LineBreaks, ledger.KRW).Count != 1 {
					t.Errorf("%s: got %s %+v", scope, st.Verdict, st.Lines)
				}
				for _, sum := range st.Sums {
					if !sum.Holds() {
						t.Errorf("the identity does not add up: %+v", sum)
					}
				}
			}
			if n := s.number(`SELECT count(*) FROM mismatches`); n != 1 || s.mismatches(test.kind) != 1 {
				t.Errorf("got %d mismatches, %d of kind %s", n, s.mismatches(test.kind), test.kind)
			}
			s.exec(test.repair)
			if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictReconciled || s.mismatches(test.kind) != 0 {
				t.Errorf("repaired: got %s and %d open", st.Verdict, s.mismatches(test.kind))
			}
		})
	}
}

// TestAudit_AcceptedDifference: what a person accepted has its own line and is no alarm any more.
func TestAudit_AcceptedDifference(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 1000)
	s.canceled(key, 0)
	s.record(s.ask(ledger.ChannelWebhook, key))
	s.clock.Advance(20 * time.Minute)
	s.poll()
	s.exec(`UPDATE mirror SET amount = 900 WHERE kind = 'cancel'`)
	s.audit(reconcile.ScopeRecent)
	s.exec(`UPDATE mismatches SET status = 'resolved', resolved_at = now(), resolved_as = 'accepted', note = 'agreed by phone'`)
	st := s.audit(reconcile.ScopeRecent)
	if st.Verdict != reconcile.VerdictReconciled || st.Sums[0].Accepted != (reconcile.Figure{Count: 0, Amount: -100}) || !st.Sums[0].Holds() {
		t.Errorf("got %s %+v", st.Verdict, st.Sums)
	}
	if n := s.number(`SELECT count(*) FROM mismatches WHERE status <> 'resolved'`); n != 0 {
		t.Error("an accepted difference was opened again")
	}
}

// TestAudit_AcceptanceCoversOneDifference: what a person accepted of a transaction hides nothing else of it.
func TestAudit_AcceptanceCoversOneDifference(t *testing.T) {
	t.Parallel()
	const accepted = `
		INSERT INTO mismatches (kind, fingerprint, status, payment_key, transaction_key, currency, amount, detail, opened_at,
			last_seen_at, resolved_at, resolved_as, note)
		VALUES ($1, 'f', 'resolved', $2, NULLIF($3, ''), 'KRW', $4, 'odd', now(), clock_timestamp(), statement_timestamp(), 'accepted', 'agreed')`
	tests := []struct {
		name   string
		kind   ledger.Kind
		amount int
		ofKey  bool // the acceptance names the cancel
		damage string
	}{
		{"another kind", ledger.KindUnrecognized, 900, true, `UPDATE mirror SET amount = 900 WHERE kind = 'cancel'`},
		{"another amount", ledger.KindAmountDiffers, 950, true, `UPDATE mirror SET amount = 900 WHERE kind = 'cancel'`},
		{"of the cancel, not of the capture", ledger.KindAmountDiffers, 900, true, `UPDATE mirror SET amount = 900 WHERE kind = 'capture'`},
		{"another kind of capture", ledger.KindOrderDiffers, 900, false, `UPDATE mirror SET amount = 900 WHERE kind = 'capture'`},
		{"a change, not a loss", ledger.KindHistoryChanged, 1000, true, `UPDATE mirror SET missing_since = now() WHERE kind = 'cancel'`},
		{"of a cancel, not of the paid order", ledger.KindHistoryChanged, 1000, true, `UPDATE mirror SET kind = 'none' WHERE kind = 'capture'`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 1000)
			cancel := s.canceled(key, 0)
			s.record(s.ask(ledger.ChannelWebhook, key))
			s.clock.Advance(20 * time.Minute)
			s.poll()
			if !test.ofKey {
				cancel = ""
			}
			s.exec(accepted, test.kind, key, cancel, test.amount)
			s.exec(test.damage)
			if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictBreaks {
				t.Errorf("nobody accepted this: got %s", st.Verdict)
			}
		})
	}
}

// TestAudit_CloseDays: which days are closed is read from the audits, so missed ticks are made up for; a day needs the
// list up to its end and the list's lag.
func TestAudit_CloseDays(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 1000)
	s.clock.Advance(time.Minute)
	s.canceled(key, 0)
	s.clock.Advance(time.Minute)
	s.poll()
	s.sweep()
	if days, err := s.Auditor.CloseDays(t.Context()); err != nil || len(days) != 0 {
		t.Errorf("today is not over: got %d and %v", len(days), err)
	}
	s.clock.Set(ledger.Day("2026-12-03").Start().Add(5 * time.Minute))
	if days := s.close(); len(days) != 2 || days[0].Verdict != reconcile.VerdictIncomplete {
		t.Errorf("not read yet: got %+v", days)
	}
	s.clock.Advance(15 * time.Minute)
	s.poll()
	days := s.close()
	if len(days) != 3 || days[0].Day != "2026-11-30" || days[2].Day != "2026-12-02" {
		t.Fatalf("got %+v", days)
	}
	for _, d := range days {
		if d.Verdict != reconcile.VerdictReconciled {
			t.Errorf("%s: got %s %v", d.Day, d.Verdict, d.Reasons)
		}
	}
	if got := days[0].Sums[0].Canceled; got != (reconcile.Figure{Count: 1, Amount: 1000}) {
		t.Errorf("got %+v", got)
	}
	if again := s.close(); len(again) != 0 {
		t.Errorf("closed twice: %+v", again)
	}
	if n := s.number(`SELECT count(*) FROM audit_runs WHERE scope = 'day' AND verdict = 'reconciled' AND statement->'looked'->>'runs' <> '0'`); n != 3 {
		t.Errorf("got %d kept statements", n)
	}
}

func (s *shop) close() []reconcile.Statement {
	s.t.Helper()
	days, err := s.Auditor.CloseDays(s.t.Context())
	s.must(err)
	return days
}

// TestAudit_DayWithPendingIsClosedAgain: a day that closed with something pending is looked at again, hourly.
func TestAudit_DayWithPendingIsClosedAgain(t *testing.T) {
	t.Parallel()
	s := setup(t, patient)
	key := s.paid("order-1", 1000)
	s.clock.Advance(time.Minute)
	transaction := s.canceled(key, 0)
	s.clock.Set(ledger.Day("2026-12-01").Start().Add(20 * time.Minute))
	s.poll()
	if days := s.close(); len(days) != 1 || days[0].Verdict != reconcile.VerdictPending || days[0].Orders[0].Pending != 1 {
		t.Fatalf("got %+v", days)
	}
	s.record(s.ask(ledger.ChannelWebhook, key))
	if days := s.close(); len(days) != 0 {
		t.Errorf("looked again at once")
	}
	s.clock.Advance(time.Hour)
	if days := s.close(); len(days) != 1 || days[0].Verdict != reconcile.VerdictReconciled {
		t.Errorf("got %+v, want the day with %s closed", days, transaction)
	}
}

// TestAudit_ErrorIsAVerdict: an audit that cannot read says so, and is not a pass.
func TestAudit_ErrorIsAVerdict(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.poll()
	s.audit(reconcile.ScopeRecent)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	st, err := s.Auditor.Run(ctx, reconcile.Scope{Name: reconcile.ScopeRecent})
	if !errors.Is(err, context.Canceled) || st.Verdict != reconcile.VerdictError {
		t.Errorf("got %s and %v", st.Verdict, err)
	}
	if got := s.metric("daesa_reconcile_audit_verdict", map[string]string{"scope": "recent", "verdict": "error"}); got != 1 {
		t.Errorf("got %v", got)
	}
}

// TestAudit_OneSnapshot: a cancel that is booked while the audit reads is on one side of it only.
func TestAudit_OneSnapshot(t *testing.T) {
	t.Parallel()
	s := setup(t)
	const orders = 12
	keys := make([]string, orders)
	for n := range keys {
		keys[n] = s.paid(orderID(n), 1000)
		s.canceled(keys[n], 0)
	}
	s.clock.Advance(time.Minute)
	s.poll()
	done := make(chan error, 1)
	go func() {
		_, err := s.Sweeper.Sweep(t.Context())
		done <- err
	}()
	for range 30 {
		st := s.audit(reconcile.ScopeRecent)
		if len(st.Sums) != 1 || !st.Sums[0].Holds() || st.Sums[0].Gateway.Count != orders || st.Verdict == reconcile.VerdictBreaks {
			t.Fatalf("got %s %+v", st.Verdict, st.Sums)
		}
	}
	s.must(<-done)
	ledgertest.RequireSound(t, s.db)
}

// TestStatement_Text is what a person reads.
func TestStatement_Text(t *testing.T) {
	t.Parallel()
	s := setup(t)
	applied, pending, broken := s.paid("order-1", 50_000), s.paid("order-2", 30_000), s.paid("order-3", 20_000)
	s.clock.Advance(time.Minute)
	s.canceled(applied, 0)
	s.record(s.ask(ledger.ChannelWebhook, applied))
	s.canceled(pending, 12_000)
	s.canceled(broken, 5_000)
	s.record(s.ask(ledger.ChannelWebhook, broken))
	s.clock.Advance(20 * time.Minute)
	s.poll()
	s.exec(`UPDATE mirror SET amount = 5500 WHERE kind = 'cancel' AND order_id = 'order-3'`)
	s.clock.Advance(2 * time.Minute)
	st := s.audit(reconcile.ScopeRecent)
	var text bytes.Buffer
	s.must(st.WriteText(&text))
	golden(t, "statement.txt", text.Bytes())
	var stored reconcile.Statement
	s.must(json.Unmarshal([]byte(s.text(`SELECT statement::text FROM audit_runs`)), &stored))
	if stored.Verdict != reconcile.VerdictBreaks || len(stored.Lines) != len(st.Lines) || stored.Sums[0] != st.Sums[0] {
		t.Errorf("the stored statement differs: %+v", stored)
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// TestEnums_AgreeWithTheSchema: what the code can write, the database takes.
func TestEnums_AgreeWithTheSchema(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, v := range reconcile.Verdicts() {
		s.exec(`INSERT INTO audit_runs (scope, started_at, ended_at, as_of, verdict, statement) VALUES ('recent', now(), clock_timestamp(), statement_timestamp(), $1, '{}')`, v)
	}
	for _, scope := range reconcile.ScopeNames() {
		s.exec(`INSERT INTO audit_runs (scope, day, started_at, ended_at, as_of, verdict, statement)
			SELECT $1::text, CASE WHEN $1::text = 'day' THEN current_date END, now(), clock_timestamp(), statement_timestamp(), 'error', '{}'`, scope)
	}
	for _, reason := range reconcile.Reasons() {
		s.exec(`INSERT INTO list_runs (reason, window_from, window_to, started_at, result) VALUES ($1, now(), clock_timestamp(), statement_timestamp(), 'running')`, reason)
	}
}

// TestMetrics_AllFromZero: every series is there before anything happened, and shows what is owed afterwards.
func TestMetrics_AllFromZero(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	reconcile.NewMetrics(reg)
	families, err := reg.Gather()
	if err != nil || len(families) < 19 {
		t.Errorf("got %d families and %v", len(families), err)
	}
	s := setup(t)
	key := s.order("order-1", 1234, "")
	s.intend("order-1", key, 1234)
	s.clock.Advance(10 * time.Second)
	s.must(s.Sweeper.Tend(t.Context()))
	for name, want := range map[string]int{
		"daesa_reconcile_unknown_payments": 1, "daesa_reconcile_unknown_oldest_age_seconds": 10,
	} {
		if got := s.metric(name, nil); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if got := s.metric("daesa_reconcile_unknown_amount_minor", map[string]string{"currency": "KRW"}); got != 1234 {
		t.Errorf("got %v won in doubt", got)
	}
	if got := s.metric("daesa_reconcile_work_open", map[string]string{"kind": "confirm_unknown"}); got != 1 {
		t.Errorf("got %v rows of work", got)
	}
}

// TestConfig_SaysWhatIsMissing: one sentence per mistake, at start.
func TestConfig_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for name, change := range map[string]func(*reconcile.Config){
		"DB":       func(c *reconcile.Config) { c.DB = nil },
		"Ledger":   func(c *reconcile.Config) { c.Ledger = nil },
		"Gateway":  func(c *reconcile.Config) { c.Gateway = nil },
		"Metrics":  func(c *reconcile.Config) { c.Metrics = nil },
		"Log":      func(c *reconcile.Config) { c.Log = nil },
		"Now":      func(c *reconcile.Config) { c.Now = nil },
		"ListLag":  func(c *reconcile.Config) { c.ListLag = time.Hour },
		"PageSize": func(c *reconcile.Config) { c.PageSize = 10_000 },
		"Slots":    func(c *reconcile.Config) { c.Slots = -1 },
		"Lease":    func(c *reconcile.Config) { c.Lease = time.Second },
	} {
		cfg := s.cfg
		change(&cfg)
		if _, err := reconcile.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestDays_WhatIsNoDayYet: a list of days that would end before it begins is refused rather than empty.
func TestDays_WhatIsNoDayYet(t *testing.T) {
	t.Parallel()
	s := setup(t)
	today := ledger.DayOf(s.clock.Now())
	if _, err := s.Auditor.Days(t.Context(), today.Next(), today); !errors.Is(err, reconcile.ErrDays) {
		t.Errorf("got %v", err)
	}
	if days, err := s.Auditor.Days(t.Context(), today.Next(), today.Next()); err != nil || len(days) != 0 {
		t.Errorf("days that have not come: got %v and %v", days, err)
	}
}
