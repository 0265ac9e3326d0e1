package reconcile_test

import (
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// TestAudit_StandingStormIsNotWrittenAgain: what was found the minute before and stands as it was is not written again,
// what changed or had ended is, and all of it is noted as seen once an hour.
func TestAudit_StandingStormIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	const storm = 3_000
	s := setup(t)
	s.poll()
	s.exec(`INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
		SELECT 'lost-' || i, 'pay-' || i, 'order-' || i, 'cancel', 'CANCELED', 'KRW', 10, false, $1, '2026-11-30', $1, $1, 1
		FROM generate_series(1, $2::integer) AS i`, noon(), storm)
	s.audit(reconcile.ScopeRecent)
	written := func() int { return s.number(`SELECT sum(times_seen) FROM mismatches`) }
	if n := s.mismatches(ledger.KindCancelMissingHere); n != storm || written() != storm {
		t.Fatalf("got %d mismatches, written %d times", n, written())
	}
	rows := `SELECT md5(string_agg(xmin::text, ',' ORDER BY mismatch_id)) FROM mismatches`
	before := s.text(rows)
	s.clock.Advance(time.Minute)
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictBreaks || written() != storm || s.text(rows) != before {
		t.Errorf("a minute later: got %s, written %d times", st.Verdict, written())
	}
	s.exec(`UPDATE mismatches SET status = 'resolved', resolved_at = $1, resolved_as = 'fixed' WHERE transaction_key = 'lost-1'`, s.clock.Now())
	s.exec(`UPDATE mismatches SET amount = 9 WHERE transaction_key = 'lost-2'`)
	s.audit(reconcile.ScopeRecent)
	if n := s.mismatches(ledger.KindCancelMissingHere); n != storm || written() != storm+2 {
		t.Errorf("one closed, one changed: got %d mismatches, written %d times", n, written())
	}
	s.clock.Advance(time.Hour)
	s.audit(reconcile.ScopeRecent)
	if written() != 2*storm+2 {
		t.Errorf("an hour later: written %d times", written())
	}
}

// TestAudit_StatementOutlivesItsFindings: a statement is kept even where what it found cannot be.
func TestAudit_StatementOutlivesItsFindings(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.poll()
	s.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$`)
	s.exec(`CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON mismatches FOR EACH ROW EXECUTE FUNCTION refuse()`)
	s.exec(`INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
		VALUES ('lost-2', 'pay-2', 'order-2', 'cancel', 'CANCELED', 'KRW', 10, false, $1, '2026-11-30', $1, $1, 1)`, noon())
	if _, err := s.Auditor.Run(t.Context(), reconcile.Scope{Name: reconcile.ScopeRecent}); err == nil {
		t.Error("no error")
	}
	if got := s.text(`SELECT string_agg(verdict, ' ') FROM audit_runs`); got != "breaks" {
		t.Errorf("got %q", got)
	}
}

// TestAudit_StretchOfThePast: without an opening, a stretch of the past that was read by itself is not where the list
// begins.
func TestAudit_StretchOfThePast(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *reconcile.Config, _ *tosssim.Config) { c.OpeningAt = time.Time{} })
	s.poll()
	s.exec(`UPDATE list_covered SET stretches = stretches + tstzmultirange(tstzrange($1, $2, '[]'))`,
		noon().Add(-20*24*time.Hour), noon().Add(-19*24*time.Hour))
	if st := s.agrees("beside the past"); st.Verdict != reconcile.VerdictReconciled || !st.AsOf.Equal(noon()) {
		t.Errorf("got %s as of %s: %v", st.Verdict, st.AsOf, st.Reasons)
	}
}

// TestAudit_ListReadAhead: a list read by a clock that was ahead proves nothing of what is still to come.
func TestAudit_ListReadAhead(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.poll()
	s.exec(`UPDATE list_covered SET stretches = stretches + tstzmultirange(tstzrange($1, $2, '[]'))`, noon(), noon().Add(time.Hour))
	s.paid("order-1", 1000)
	if st := s.agrees("ahead"); st.Verdict != reconcile.VerdictReconciled || !st.AsOf.Equal(noon()) {
		t.Errorf("got %s as of %s %+v", st.Verdict, st.AsOf, st.Lines)
	}
}

// TestIncrement_ClockALittleBehind: an instance whose clock is a little behind judges by the last run's, and finds no
// error of ours where there is none.
func TestIncrement_ClockALittleBehind(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.paid("order-1", 1000)
	s.exec(`INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
		VALUES ('late', 'pay-1', '', 'cancel', 'CANCELED', 'KRW', 10, false, $1, '2026-11-30', $1, $1, 1)`, noon())
	s.exec(`INSERT INTO work (kind, payment_key, transaction_key, currency, amount, opened_at, due_at, deadline)
		VALUES ('cancel_listed', 'pay-1', 'late', 'KRW', 10, $1, $1, $2)`, noon(), noon().Add(time.Hour))
	s.poll()
	if st := s.audit(reconcile.ScopeRecent); st.Line(reconcile.LineInFlight, ledger.KRW).Count != 1 {
		t.Errorf("before: got %+v", st.Lines)
	}
	s.exec(`INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
		VALUES ('other', 'pay-2', '', 'cancel', 'CANCELED', 'KRW', 10, false, $1, '2026-11-30', $1, $1, 1)`, noon()) // of no order
	s.exec(`INSERT INTO work (kind, payment_key, transaction_key, currency, amount, opened_at, due_at, deadline)
		VALUES ('cancel_in_progress', 'pay-2', 'other', 'KRW', 10, $1, $1, $2)`, noon(), noon().Add(time.Hour))
	s.clock.Set(noon().Add(70 * time.Second))
	s.poll()
	s.audit(reconcile.ScopeRecent)
	s.clock.Set(noon().Add(50 * time.Second))
	for _, scope := range []reconcile.ScopeName{reconcile.ScopeAll, reconcile.ScopeRecent, reconcile.ScopeAll} {
		if st := s.audit(scope); len(st.Drift) > 0 || st.Line(reconcile.LineSweeping, ledger.KRW).Count != 1 || !st.StartedAt.Equal(s.clock.Now()) {
			t.Errorf("%s: got %q %+v at %s", scope, st.Drift, st.Lines, st.StartedAt)
		}
	}
	if got := s.text(`SELECT (rebuilt_at = $1)::text FROM audit_state`, noon()); got != "true" {
		t.Error("everything was compared anew")
	}
}

// TestIncrement_BehindWhatItWas: a clock set back by more than two machines differ, and a list that reaches less far,
// make other things of keys that did not change.
func TestIncrement_BehindWhatItWas(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		read time.Duration // how far the list was read, from noon on
		back func(s *shop)
	}{
		{"clock", 10 * time.Second, func(s *shop) { s.clock.Set(noon().Add(30 * time.Second)) }},
		{"list", 20 * time.Minute, func(s *shop) {
			s.exec(`UPDATE list_covered SET stretches = tstzmultirange(tstzrange($1, $2, '[]'))`, noon().Add(-2*time.Hour), noon().Add(time.Minute))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 1000)
			s.exec(`INSERT INTO cancels (transaction_key, payment_key, order_id, currency, amount, canceled_at, channel, recorded_at)
				VALUES ('alone', $1, 'order-1', 'KRW', 10, $2, 'webhook', $2)`, key, noon())
			s.exec(`INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
				VALUES ('late', $1, 'order-1', 'cancel', 'CANCELED', 'KRW', 10, false, $2, '2026-11-30', $2, $2, 1)`, key, noon())
			s.exec(`INSERT INTO work (kind, payment_key, transaction_key, currency, amount, opened_at, due_at, deadline)
				VALUES ('cancel_listed', $1, 'late', 'KRW', 10, $2, $2, $3)`, key, noon(), noon().Add(time.Hour))
			s.clock.Set(noon().Add(20 * time.Minute))
			s.exec(`INSERT INTO list_covered (stretches) VALUES (tstzmultirange(tstzrange($1, $2, '[]')))`, noon().Add(-2*time.Hour), noon().Add(test.read))
			s.agrees("before")
			test.back(s)
			s.agrees(test.name)
		})
	}
}
