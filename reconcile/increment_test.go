package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// full is what a comparison of everything says that remembers nothing.
func (s *shop) full() reconcile.Statement {
	s.t.Helper()
	st, err := reconcile.Examine(s.t.Context(), s.cfg, reconcile.Scope{Name: reconcile.ScopeAll})
	s.must(err)
	return st
}

// sameAs is what two statements must agree in, as text that shows where they do not.
func sameAs(full, running reconcile.Statement) string {
	type captures struct {
		Currency                   ledger.Currency
		Pending, Accepted, Missing reconcile.Figure
	}
	type compared struct {
		Verdict       reconcile.Verdict
		Sums          []reconcile.Sum
		Lines         []reconcile.Line
		Orders        []reconcile.OrderRoll
		Captures      []captures
		Cancels, Work int
	}
	of := func(s reconcile.Statement) compared {
		c := compared{Verdict: s.Verdict, Sums: s.Sums, Lines: s.Lines, Orders: s.Orders, Cancels: s.Looked.Cancels, Work: s.Looked.Work}
		for _, t := range s.Captures {
			if t.Pending.Count+t.Accepted.Count+t.Missing.Count > 0 {
				c.Captures = append(c.Captures, captures{t.Currency, t.Pending, t.Accepted, t.Missing})
			}
		}
		return c
	}
	return cmp.Diff(of(full), of(running))
}

// agrees fails where the audit of a minute says another thing than a comparison of everything.
func (s *shop) agrees(what string) reconcile.Statement {
	s.t.Helper()
	st := s.audit(reconcile.ScopeRecent)
	if diff := sameAs(s.full(), st); diff != "" {
		s.t.Errorf("%s (-full +running):\n%s", what, diff)
	}
	return st
}

// changing is three people who change all tables at once, each in transactions of their own that end whenever they end.
type changing struct {
	*shop
	t     *rapid.T
	ctx   context.Context //nolint:containedctx // of the test
	hands [3]pgx.Tx
}

func (c *changing) exec(hand int, sql string, args ...any) {
	if c.hands[hand] == nil {
		tx, err := c.db.Begin(c.ctx) //nolint:forbidigo // stays open over audits on purpose
		if err != nil {
			c.t.Fatal(err)
		}
		c.hands[hand] = tx
	}
	if _, err := c.hands[hand].Exec(c.ctx, sql, args...); err != nil {
		c.t.Fatalf("%s %v: %v", sql, args, err)
	}
}

// end commits what a hand did, or undoes it.
func (c *changing) end(hand int, commit bool) {
	tx := c.hands[hand]
	if tx == nil {
		return
	}
	c.hands[hand] = nil
	end := tx.Rollback
	if commit {
		end = tx.Commit
	}
	if err := end(c.ctx); err != nil {
		c.t.Fatal(err)
	}
}

// change is one change to one of the tables that the comparison reads.
func (c *changing) change() {
	hand := rapid.IntRange(0, 2).Draw(c.t, "hand")
	number := 2*hand + rapid.IntRange(0, 1).Draw(c.t, "payment")
	payment := fmt.Sprint("pay-", number)
	order := fmt.Sprint("order-", hand) // two payments of one order: what one has pending makes the other's order pending
	cancel := fmt.Sprint(payment, "-cancel-", rapid.IntRange(0, 1).Draw(c.t, "cancel"))
	amount := rapid.SampledFrom([]int{0, 500, 1000, 1000, 1000}).Draw(c.t, "amount")
	currency := rapid.SampledFrom([]string{"KRW", "KRW", "KRW", "JPY"}).Draw(c.t, "currency")
	now := c.clock.Now()
	at := now.Add(-time.Duration(rapid.SampledFrom([]int{0, 1, 9, 11, 60, 1500, 10_000}).Draw(c.t, "minutes")) * time.Minute)
	switch rapid.IntRange(0, 23).Draw(c.t, "change") {
	case 0, 1, 2:
		c.exec(hand, `INSERT INTO mirror AS g (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, is_foreign, first_seen_at, last_seen_at, first_run)
			VALUES ($1, $2, $3, 'cancel', 'CANCELED', $4, $5, false, $6, ($6::timestamptz AT TIME ZONE 'Asia/Seoul')::date, $7, $8, $8, 1)
			ON CONFLICT (transaction_key) DO UPDATE SET last_seen_at = excluded.last_seen_at, missing_since = NULL, is_foreign = excluded.is_foreign`,
			cancel, payment, order, currency, amount, at, rapid.IntRange(0, 9).Draw(c.t, "foreign") == 0, now)
	case 3, 4:
		c.exec(hand, `INSERT INTO mirror AS g (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
			VALUES ($1, $2, $3, 'capture', 'DONE', 'KRW', $4, false, $5, ($5::timestamptz AT TIME ZONE 'Asia/Seoul')::date, $6, $6, 1)
			ON CONFLICT (transaction_key) DO UPDATE SET last_seen_at = excluded.last_seen_at, missing_since = NULL`,
			payment+"-capture", payment, order, amount, at, now)
	case 5:
		c.exec(hand, `UPDATE mirror SET amount = $2 WHERE transaction_key = $1`, cancel, amount)
	case 6:
		c.exec(hand, `UPDATE mirror SET missing_since = $2 WHERE payment_key = $1`, payment, now)
	case 7:
		c.exec(hand, `UPDATE mirror SET kind = $2 WHERE transaction_key = $1`, cancel,
			rapid.SampledFrom([]string{"cancel", "none", "unrecognized"}).Draw(c.t, "kind"))
	case 8:
		c.exec(hand, `DELETE FROM mirror WHERE transaction_key = $1`, rapid.SampledFrom([]string{cancel, payment + "-capture"}).Draw(c.t, "row"))
	case 9, 10, 11:
		c.exec(hand, `INSERT INTO cancels (transaction_key, payment_key, order_id, currency, amount, canceled_at, channel, recorded_at)
			VALUES ($1, $2, $3, $4, $5, $6, 'webhook', $7) ON CONFLICT DO NOTHING`, cancel, payment, order, currency, amount, at, now)
	case 12:
		c.exec(hand, `UPDATE cancels SET amount = $2 WHERE transaction_key = $1`, cancel, amount)
	case 13:
		c.exec(hand, `DELETE FROM cancels WHERE transaction_key = $1`, cancel)
	case 14, 21, 22:
		c.exec(hand, `INSERT INTO captures (payment_key, number, transaction_key, currency, amount, captured_at, channel, recorded_at)
			VALUES ($1, 1, $2, 'KRW', $3, $4, 'confirm', $5) ON CONFLICT DO NOTHING`,
			payment, rapid.SampledFrom([]any{nil, payment + "-capture", payment + "-cancel-0"}).Draw(c.t, "key"), max(amount, 1), at, now)
	case 15, 23:
		c.exec(hand, rapid.SampledFrom([]string{
			`DELETE FROM captures WHERE payment_key = $1`, `UPDATE captures SET reversed_at = captured_at WHERE payment_key = $1`,
			`UPDATE captures SET transaction_key = payment_key || '-capture' WHERE payment_key = $1`,
		}).Draw(c.t, "capture"), payment)
	case 16, 17:
		kind := rapid.SampledFrom([]ledger.WorkKind{
			ledger.WorkCancelClaimed, ledger.WorkCancelListed, ledger.WorkCancelInProgress, ledger.WorkConfirmUnknown, ledger.WorkParked,
		}).Draw(c.t, "kind")
		if kind == ledger.WorkConfirmUnknown {
			cancel = ""
		}
		c.exec(hand, `INSERT INTO work AS w (kind, payment_key, order_id, transaction_key, currency, amount, opened_at, due_at, deadline)
			VALUES ($1, $2, $3, NULLIF($4, ''), 'KRW', $5, $6, $6, $7)
			ON CONFLICT (payment_key, subject) WHERE closed_at IS NULL DO UPDATE SET kind = excluded.kind, deadline = excluded.deadline`,
			kind, payment, order, cancel, amount, now, now.Add(time.Duration(rapid.IntRange(-60, 200).Draw(c.t, "deadline"))*time.Minute))
	case 18:
		c.exec(hand, rapid.SampledFrom([]string{
			`UPDATE work SET closed_at = $2, closed_as = 'settled' WHERE payment_key = $1 AND closed_at IS NULL`,
			`UPDATE work SET notice_attempt = 3, notice_next_at = $2::timestamptz + interval '20 minutes' WHERE payment_key = $1 AND closed_at IS NULL`,
			`UPDATE work SET due_at = $2 WHERE payment_key = $1`,
		}).Draw(c.t, "work"), payment, now)
	case 19:
		c.exec(hand, `UPDATE payments SET virtual_account = NOT virtual_account WHERE payment_key = $1`, payment)
	case 20:
		c.end(hand, true)
		c.exec(hand, rapid.SampledFrom([]string{
			`UPDATE mismatches SET status = 'resolved', resolved_at = $2, resolved_as = 'accepted', note = 'agreed' WHERE payment_key = $1 AND status <> 'resolved'`,
			`UPDATE mismatches SET resolved_as = 'fixed', resolved_at = $2 WHERE payment_key = $1 AND resolved_as = 'accepted'`,
			`UPDATE mismatches SET amount = amount + 1, last_seen_at = $2 WHERE payment_key = $1 AND resolved_as = 'accepted'`,
		}).Draw(c.t, "mismatch"), payment, now)
		c.end(hand, true) // an audit marks open mismatches and must not wait for this hand
	}
}

// step is one change, the end of a transaction, the passing of time, or an audit.
func (c *changing) step() {
	switch rapid.IntRange(0, 9).Draw(c.t, "step") {
	case 0, 1:
		c.end(rapid.IntRange(0, 2).Draw(c.t, "hand"), rapid.IntRange(0, 4).Draw(c.t, "commits") > 0)
	case 2:
		c.clock.Advance(time.Duration(rapid.SampledFrom([]int{1, 59, 60, 600, 3700}).Draw(c.t, "seconds")) * time.Second)
	case 3:
		if _, err := c.db.Exec(c.ctx, `UPDATE list_covered SET stretches = stretches + tstzmultirange(tstzrange(lower(stretches), $1, '[]'))`, c.clock.Now()); err != nil {
			c.t.Fatal(err)
		}
	case 4:
		c.compare()
	default:
		c.change()
	}
}

// compare audits by what changed and holds it against everything.
func (c *changing) compare() {
	scope := reconcile.Scope{Name: reconcile.ScopeRecent}
	if rapid.IntRange(0, 5).Draw(c.t, "full") == 0 {
		scope.Name = rapid.SampledFrom([]reconcile.ScopeName{reconcile.ScopeDay, reconcile.ScopeAll}).Draw(c.t, "scope")
	}
	if scope.Name == reconcile.ScopeDay {
		scope.Day = ledger.DayOf(c.clock.Now().Add(-time.Duration(rapid.IntRange(0, 3).Draw(c.t, "days")) * 24 * time.Hour))
	}
	st, err := c.Auditor.Run(c.ctx, scope)
	if err != nil {
		c.t.Fatal(err)
	}
	if len(st.Drift) > 0 {
		c.t.Fatalf("%s: %q", scope.Name, st.Drift)
	}
	full, err := reconcile.Examine(c.ctx, c.cfg, scope)
	if err != nil {
		c.t.Fatal(err)
	}
	if diff := sameAs(full, st); diff != "" {
		c.t.Fatalf("%s (-full +running):\n%s", scope.Name, diff)
	}
}

// TestIncrement_IsTheFullComparison: whatever changes in whatever order, in transactions that end whenever they end,
// the audit of a minute says exactly what a comparison says that reads everything.
func TestIncrement_IsTheFullComparison(t *testing.T) {
	t.Parallel()
	const stories = 40
	s := setup(t, func(c *reconcile.Config, _ *tosssim.Config) { c.OpeningAt = noon().Add(-48 * time.Hour) })
	s.cfg.OpeningAt = noon().Add(-48 * time.Hour)
	s.exec(`INSERT INTO list_covered (stretches) VALUES (tstzmultirange(tstzrange($1, $2, '[]')))`, noon().Add(-50*time.Hour), noon())
	for i := range 6 {
		s.exec(`INSERT INTO orders (order_id, currency, amount, created_at, expires_at) VALUES ('order-' || ($1::integer / 2), 'KRW', 1000, $2, $2) ON CONFLICT DO NOTHING`, i, noon())
		s.exec(`INSERT INTO payments (payment_key, order_id, status, currency, amount, captured, surplus, created_at, updated_at)
			VALUES ('pay-' || $1::integer, 'order-' || ($1::integer / 2), 'done', 'KRW', 1000, 1000, $1::integer % 2 = 1, $2, $2)`, i, noon())
	}
	told := 0
	rapid.Check(t, func(t *rapid.T) {
		if told++; told > stories {
			return
		}
		c := changing{shop: s, t: t, ctx: s.t.Context()}
		defer func() {
			for hand := range c.hands {
				if c.hands[hand] != nil {
					_ = c.hands[hand].Rollback(c.ctx)
				}
			}
		}()
		for range rapid.IntRange(20, 60).Draw(t, "steps") {
			c.step()
		}
		for hand := range c.hands {
			c.end(hand, true)
		}
		c.compare()
	})
}

// TestIncrement_LateCommit: a change that began before two audits and commits after them is in the third.
func TestIncrement_LateCommit(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 1000)
	s.poll()
	s.audit(reconcile.ScopeRecent)
	late, err := s.db.Begin(t.Context()) //nolint:forbidigo // stays open over audits on purpose
	s.must(err)
	defer func() { _ = late.Rollback(t.Context()) }()
	_, err = late.Exec(t.Context(), `INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
		VALUES ('late', $1, 'order-1', 'cancel', 'CANCELED', 'KRW', 1000, false, $2, '2026-11-30', $2, $2, 1)`, key, noon())
	s.must(err)
	s.paid("order-2", 1000)
	for range 2 {
		s.clock.Advance(time.Second)
		if st := s.agrees("before the commit"); st.Verdict != reconcile.VerdictReconciled {
			t.Errorf("before the commit: got %s %+v", st.Verdict, st.Lines)
		}
		s.paid(fmt.Sprint("order-of-", s.clock.Now().Unix()), 1000) // later numbers, committed and taken before
	}
	s.must(late.Commit(t.Context()))
	if st := s.agrees("after it"); st.Verdict != reconcile.VerdictBreaks || st.Line(reconcile.LineUnexplained, ledger.KRW).Count != 1 {
		t.Errorf("after it: got %s %+v", st.Verdict, st.Lines)
	}
}

// TestIncrement_CrashAnywhere: wherever an audit dies, nothing that changed is forgotten and nothing counts twice.
func TestIncrement_CrashAnywhere(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.exec(`CREATE FUNCTION crash() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'crash'; END $$`)
	s.poll()
	s.audit(reconcile.ScopeRecent)
	for n, at := range []string{
		"DELETE ON audit_dirty", "INSERT OR UPDATE ON audit_judged", "INSERT OR UPDATE ON audit_totals", "INSERT OR UPDATE ON audit_state",
		"INSERT ON audit_runs",
	} {
		key := s.paid(orderID(n), 1000)
		s.canceled(key, 0)
		s.record(s.ask(ledger.ChannelWebhook, key))
		s.exec(`CREATE TRIGGER crash BEFORE ` + at + ` FOR EACH ROW EXECUTE FUNCTION crash()`)
		if _, err := s.Auditor.Run(t.Context(), reconcile.Scope{Name: reconcile.ScopeRecent}); err == nil {
			t.Errorf("%s: no crash", at)
		}
		s.exec(`DROP TRIGGER crash ON ` + at[len(at)-len(tableOf(at)):])
		if st := s.agrees("after a crash at " + at); st.Looked.Cancels != n+1 {
			t.Errorf("%s: got %d cancels, want %d", at, st.Looked.Cancels, n+1)
		}
	}
	if st := s.audit(reconcile.ScopeAll); len(st.Drift) > 0 {
		t.Errorf("got %q", st.Drift)
	}
}

func tableOf(event string) string {
	var table string
	for i := len(event) - 1; i >= 0 && event[i] != ' '; i-- {
		table = event[i:]
	}
	return table
}

// TestIncrement_TwoAuditors: two instances that audit at once take turns, and each change counts once.
func TestIncrement_TwoAuditors(t *testing.T) {
	t.Parallel()
	s := setup(t)
	other := s.another(func(*reconcile.Config) {})
	s.poll()
	for n := range 5 {
		key := s.paid(orderID(n), 1000)
		s.canceled(key, 0)
		s.record(s.ask(ledger.ChannelWebhook, key))
		done := make(chan error, 2)
		for _, r := range []*reconcile.Reconciler{s.Reconciler, other} {
			go func() {
				_, err := r.Auditor.Run(t.Context(), reconcile.Scope{Name: reconcile.ScopeRecent})
				done <- err
			}()
		}
		for range 2 {
			s.must(<-done)
		}
	}
	if st := s.agrees("afterwards"); st.Looked.Cancels != 5 {
		t.Errorf("got %d cancels", st.Looked.Cancels)
	}
}

// TestIncrement_DriftIsFoundAndRepaired: what somebody changed unseen, or what we remembered wrongly, is named by the
// next full run, counted and set right.
func TestIncrement_DriftIsFoundAndRepaired(t *testing.T) {
	t.Parallel()
	day := reconcile.Scope{Name: reconcile.ScopeDay, Day: "2026-11-30"}
	all := reconcile.Scope{Name: reconcile.ScopeAll}
	tests := []struct {
		name   string
		scope  reconcile.Scope
		damage string
		drift  int
	}{
		{"a sum", all, `UPDATE audit_totals SET amount = amount + 1 WHERE line = 'applied'`, 1},
		{"a sum of the day", day, `UPDATE audit_totals SET amount = amount + 1 WHERE line = 'applied'`, 1},
		{"a key forgotten", all, `DELETE FROM audit_judged WHERE key IN (SELECT key FROM audit_judged WHERE subject = 'cancel' LIMIT 1)`, 1},
		{"a key invented", all, `INSERT INTO audit_judged (subject, key, payment_key, order_id, day, currency, amount) VALUES ('cancel', 'x', 'y', 'z', '2026-11-30', 'KRW', 5)`, 1},
		{"a change unseen", all, `ALTER TABLE mirror DISABLE TRIGGER USER; UPDATE mirror SET amount = 900 WHERE kind = 'cancel'; ALTER TABLE mirror ENABLE TRIGGER USER`, 12},
		{"a capture unseen", all, `ALTER TABLE mirror DISABLE TRIGGER USER; DELETE FROM mirror WHERE kind = 'capture'; ALTER TABLE mirror ENABLE TRIGGER USER`, 3},
		{"marks thrown away", day, `UPDATE mirror SET amount = 900 WHERE kind = 'cancel'; DELETE FROM audit_dirty`, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			for n := range 2 {
				key := s.paid(orderID(n), 1000)
				s.canceled(key, 0)
				s.record(s.ask(ledger.ChannelWebhook, key))
			}
			s.clock.Set(ledger.Day("2026-12-01").Start().Add(20 * time.Minute))
			s.poll()
			s.agrees("before")
			s.exec(test.damage)
			st, err := s.Auditor.Run(t.Context(), test.scope)
			s.must(err)
			if got := s.metric("daesa_reconcile_audit_drift_total", map[string]string{"scope": string(test.scope.Name)}); len(st.Drift) < 1 || got != len(st.Drift) {
				t.Errorf("got %d counted and %q", got, st.Drift)
			}
			s.agrees("repaired")
			if st := s.audit(reconcile.ScopeAll); len(st.Drift) > 0 {
				t.Errorf("again: %q", st.Drift)
			}
		})
	}
}

// TestIncrement_RebuildsWhenTheBasisChanges: another opening, another lag, a clock set back or an emptied table count
// everything anew, and that is no error.
func TestIncrement_RebuildsWhenTheBasisChanges(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(s *shop)
	}{
		{"opening", func(s *shop) { s.cfg.OpeningAt = noon().Add(30 * time.Second) }},
		{"lag", func(s *shop) { s.cfg.ListLag = time.Minute }},
		{"clock", func(s *shop) { s.clock.Set(noon().Add(2 * time.Minute)) }},
		{"mirror emptied", func(s *shop) { s.exec(`TRUNCATE mirror`) }},
		{"list forgotten", func(s *shop) { s.exec(`UPDATE list_covered SET stretches = '{}'`) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			for n := range 2 {
				key := s.paid(orderID(n), 1000)
				s.canceled(key, 0)
				s.record(s.ask(ledger.ChannelWebhook, key))
				s.clock.Advance(time.Minute)
			}
			s.clock.Advance(time.Hour)
			s.poll()
			s.agrees("before")
			test.change(s)
			s.Reconciler = s.another(func(*reconcile.Config) {})
			s.agrees(test.name)
			if st := s.audit(reconcile.ScopeAll); len(st.Drift) > 0 {
				t.Errorf("got %q", st.Drift)
			}
		})
	}
}

// TestIncrement_ListsABoundedNumber: however many are open, a minute lists the oldest of each line and counts the rest.
func TestIncrement_ListsABoundedNumber(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.poll()
	s.exec(`INSERT INTO work (kind, payment_key, transaction_key, currency, amount, opened_at, due_at, deadline)
		SELECT 'cancel_claimed', 'pay-' || i, 'claimed-' || i, 'KRW', 10, $1::timestamptz + i * interval '1 ms', $1, $1 FROM generate_series(1, 250) AS i`, noon())
	line := s.audit(reconcile.ScopeRecent).Line(reconcile.LineUnproven, ledger.KRW)
	if line.Count != 250 || line.Amount != 2500 || len(line.Entries) != 200 || line.More != 50 || line.Entries[199].TransactionKey != "claimed-200" {
		t.Errorf("got %d of %d, %d listed, %d more", line.Count, line.Amount, len(line.Entries), line.More)
	}
}

// TestIncrement_WhatStaysDueIsAnError: an audit that cannot get on says of what, and does not go on for ever.
func TestIncrement_WhatStaysDueIsAnError(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.exec(`INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
		VALUES ('owed', 'pay-1', 'order-1', 'cancel', 'CANCELED', 'KRW', 1000, false, $1, '2026-11-30', $1, $1, 1)`, noon())
	s.exec(`INSERT INTO work (kind, payment_key, transaction_key, currency, amount, opened_at, due_at, deadline)
		VALUES ('cancel_claimed', 'pay-1', 'owed', 'KRW', 1000, $1, $1, $1::timestamptz + interval '4 days')`, noon())
	s.audit(reconcile.ScopeRecent)
	s.exec(`CREATE FUNCTION stuck() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.recheck_at := '2000-01-01'; RETURN NEW; END $$`)
	s.exec(`CREATE TRIGGER stuck BEFORE INSERT OR UPDATE ON audit_judged FOR EACH ROW EXECUTE FUNCTION stuck()`)
	s.exec(`UPDATE audit_judged SET recheck_at = NULL`)
	st, err := s.Auditor.Run(t.Context(), reconcile.Scope{Name: reconcile.ScopeRecent})
	if err == nil || !strings.Contains(err.Error(), "owed") || st.Verdict != reconcile.VerdictError {
		t.Errorf("got %s, %v; want an error that names what stays due", st.Verdict, err)
	}
}

// TestIncrement_RereadsMarkNothing: a list that says what it said before gives the next audit nothing to do.
func TestIncrement_RereadsMarkNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for n := range 3 {
		key := s.paid(orderID(n), 1000)
		s.canceled(key, 0)
		s.record(s.ask(ledger.ChannelWebhook, key))
	}
	s.clock.Advance(time.Minute)
	s.poll()
	s.audit(reconcile.ScopeRecent)
	s.poll()
	if st := s.audit(reconcile.ScopeRecent); st.Looked.Judged != 0 || st.Looked.Runs != 2 {
		t.Errorf("got %+v", st.Looked)
	}
}

// TestAuditNightly_OncePerNight: the audits themselves say whether tonight's is done.
func TestAuditNightly_OncePerNight(t *testing.T) {
	t.Parallel()
	s := setup(t)
	run := func() bool {
		_, ran, err := s.Auditor.RunNightly(t.Context())
		s.must(err)
		return ran
	}
	for _, step := range []struct {
		after time.Duration
		poll  bool
		want  bool
	}{
		{0, false, true}, // incomplete
		{time.Minute, false, false},
		{time.Hour, true, true},
		{time.Hour, false, false},
		{24 * time.Hour, true, true},
	} {
		s.clock.Advance(step.after)
		if step.poll {
			s.poll()
		}
		if got := run(); got != step.want {
			t.Errorf("%s later: got %v, want %v", step.after, got, step.want)
		}
	}
}

// TestIncrement_DayOfTheMirrorsRow: a cancel that only our books have counts on its own day, and moves to the day of the
// list's row when that arrives.
func TestIncrement_DayOfTheMirrorsRow(t *testing.T) {
	t.Parallel()
	s := setup(t)
	midnight := ledger.Day("2026-12-01").Start()
	key := s.paid("order-1", 1000)
	s.clock.Set(midnight.Add(-time.Millisecond))
	s.canceled(key, 0)
	s.record(s.ask(ledger.ChannelWebhook, key))
	s.audit(reconcile.ScopeRecent)
	lines := func() string {
		return s.text(`SELECT string_agg(concat_ws(' ', day, line, count, amount), ', ' ORDER BY day, line) FROM audit_totals WHERE count <> 0`)
	}
	if got, want := lines(), "2026-11-30 booked 1 1000, 2026-11-30 not_yet_listed 1 1000"; got != want {
		t.Errorf("before: got %s, want %s", got, want)
	}
	s.poll()
	s.exec(`INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
		SELECT transaction_key, payment_key, order_id, 'cancel', 'CANCELED', 'KRW', 1000, false, $1, '2026-12-01', $1, $1, 1 FROM cancels
		ON CONFLICT (transaction_key) DO UPDATE SET at = excluded.at, day = excluded.day`, midnight)
	s.agrees("listed")
	want := "2026-12-01 applied 1 1000, 2026-12-01 booked 1 1000, 2026-12-01 gateway 1 1000, 2026-12-01 order_canceled 1"
	if got := s.text(`SELECT string_agg(concat_ws(' ', day, line, count, NULLIF(amount, 0)), ', ' ORDER BY day, line) FROM audit_totals WHERE count <> 0`); got != want {
		t.Errorf("listed: got %s, want %s", got, want)
	}
}

// TestIncrement_OrderThatAppears: no trigger tells that an order was made for money listed without one; the words of the
// break follow within the hour.
func TestIncrement_OrderThatAppears(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.row("late", "pay-late", "order-late", "DONE", "5000")
	s.clock.Advance(time.Minute)
	s.poll()
	if st := s.agrees("without an order"); st.Verdict != reconcile.VerdictBreaks {
		t.Errorf("got %s", st.Verdict)
	}
	s.order("order-late", 5000, tosssim.Card)
	s.clock.Advance(time.Hour)
	s.poll()
	s.agrees("an hour later")
}
