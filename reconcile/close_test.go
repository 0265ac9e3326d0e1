package reconcile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// TestCloseDays_LateMoneyReopensTheDay: what arrives after its day was closed, in either book, is in the day's
// statement in the end.
func TestCloseDays_LateMoneyReopensTheDay(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		arrive func(s *shop, key string)
		want   reconcile.Verdict
	}{
		{"a row of the list", func(s *shop, _ string) {
			_, err := s.Mirror.Reread(s.t.Context())
			s.must(err)
		}, reconcile.VerdictPending},
		{"a cancel in our books", func(s *shop, key string) { s.record(s.ask(ledger.ChannelWebhook, key)) }, reconcile.VerdictBreaks},
		{"a row is gone", func(s *shop, _ string) {
			s.exec(`UPDATE mirror SET missing_since = $1 WHERE kind = 'capture'`, s.clock.Now())
		}, reconcile.VerdictBreaks},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 1000)
			at := s.clock.Now()
			s.clock.Set(ledger.Day("2026-12-01").Start().Add(20 * time.Minute))
			s.poll()
			if days := s.close(); len(days) != 1 || days[0].Verdict != reconcile.VerdictReconciled {
				t.Fatalf("got %+v", days)
			}
			s.clock.Set(at)
			s.canceled(key, 0)
			s.clock.Set(ledger.Day("2026-12-01").Start().Add(5 * time.Hour))
			test.arrive(s, key)
			s.clock.Advance(2 * time.Minute)
			if days := s.close(); len(days) != 1 || days[0].Day != "2026-11-30" || days[0].Verdict != test.want {
				t.Errorf("got %+v, want the day again, %s", days, test.want)
			}
			s.clock.Advance(20 * time.Minute)
			if days := s.close(); len(days) != 0 {
				t.Errorf("nothing came since and the day is closed again: %+v", days)
			}
		})
	}
}

// TestCloseDays_BeginsWithTheFirstWholeDay: where nobody said when the books open, the first day of which the list was
// read is read from its middle, and proves nothing about the whole.
func TestCloseDays_BeginsWithTheFirstWholeDay(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *reconcile.Config, _ *tosssim.Config) { c.OpeningAt = time.Time{} })
	s.clock.Advance(96 * time.Hour) // Friday noon; the first poll reads from Monday noon
	s.poll()
	s.clock.Advance(24 * time.Hour)
	s.poll()
	days := s.close()
	if len(days) != 4 || days[0].Day != "2026-12-01" || days[0].Verdict != reconcile.VerdictReconciled {
		t.Errorf("got %+v, want Tuesday to Friday", days)
	}
	half, err := s.Auditor.Run(t.Context(), reconcile.Scope{Name: reconcile.ScopeDay, Day: "2026-11-30"})
	s.must(err)
	if half.Verdict != reconcile.VerdictIncomplete || !half.Looked.From.Equal(noon()) {
		t.Errorf("half a day was read from %s on, and the whole is %s", half.Looked.From, half.Verdict)
	}
}

// TestClose_ADayBeforeTheOpening says nothing, and nobody can sign it.
func TestClose_ADayBeforeTheOpening(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.poll()
	before := ledger.DayOf(noon().AddDate(0, 0, -100))
	if st := s.closeDay(before); st.Verdict != reconcile.VerdictIncomplete || len(st.Reasons) != 1 || !strings.Contains(st.Reasons[0], "after the day") {
		t.Errorf("got %s %v", st.Verdict, st.Reasons)
	}
	if _, err := s.sign(reconcile.Signing{Day: before, By: kim}); !errors.Is(err, reconcile.ErrDayNotClosed) {
		t.Errorf("signed: got %v", err)
	}
}

// TestCloseDays_OldDays: days of long ago are closed once the list was read for them, some at a time, and then no more.
func TestCloseDays_OldDays(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *reconcile.Config, _ *tosssim.Config) { c.OpeningAt = noon().Add(-44 * 24 * time.Hour) })
	s.poll()
	s.exec(`UPDATE list_covered SET stretches = stretches - '{[2026-10-19 01:00:00+00, 2026-10-19 02:00:00+00)}'`)
	for n, want := range []int{35 + 7, 2, 0} {
		days := s.close()
		if len(days) != want || (n == 0 && days[35].Day != "2026-10-17") {
			t.Errorf("tick %d: got %d days from %+v, want %d", n, len(days), days, want)
		}
		for _, d := range days {
			if whole := d.Verdict == reconcile.VerdictReconciled; whole == (d.Day == "2026-10-19") {
				t.Errorf("%s is %s", d.Day, d.Verdict)
			}
		}
		s.clock.Advance(11 * time.Minute)
	}
	if n := s.number(`SELECT count(*) FROM days_to_close`); n != 1 {
		t.Errorf("got %d days noted, want the one that cannot be seen whole", n)
	}
	s.poll() // fills the gap
	noted := func(when string) {
		t.Helper()
		if got := s.text(`SELECT string_agg(day::text, ' ') FROM days_to_close`); got != "2026-10-19" {
			t.Errorf("noted %s: got %s", when, got)
		}
	}
	noted("by the read")
	s.exec(`DELETE FROM days_to_close`)
	_, _, err := s.Auditor.RunNightly(t.Context())
	s.must(err)
	noted("at night")
	for n, want := range []int{1, 0} {
		if days := s.close(); len(days) != want || (want == 1 && (days[0].Day != "2026-10-19" || days[0].Verdict != reconcile.VerdictReconciled)) {
			t.Errorf("the gap is filled, tick %d: got %d days, %+v", n, len(days), days)
		}
		s.clock.Advance(11 * time.Minute)
	}
}

// TestTend_UnclosedDay: how long a day waits for a closing run that sees it whole is shown, from its end or from our first
// audit on, so that old books are no alarm on the day on which they are opened.
func TestTend_UnclosedDay(t *testing.T) {
	t.Parallel()
	const unclosed = "daesa_reconcile_unclosed_day_seconds"
	s := setup(t, func(c *reconcile.Config, _ *tosssim.Config) { c.OpeningAt = noon().Add(-10 * 24 * time.Hour) })
	shows := func(what string, want time.Duration) {
		t.Helper()
		s.must(s.Sweeper.Tend(t.Context()))
		if got := s.metric(unclosed, nil); got != int(want.Seconds()) {
			t.Errorf("%s: got %d s, want %d", what, got, int(want.Seconds()))
		}
	}
	shows("before the first audit", 0)
	s.audit(reconcile.ScopeRecent)
	shows("just installed, with ten days behind it", 0)
	s.clock.Advance(2 * time.Hour)
	shows("after two hours", 2*time.Hour)
	s.close()
	shows("after runs that saw no list", 2*time.Hour)
	_, err := s.Mirror.Backfill(t.Context(), s.cfg.OpeningAt, s.clock.Now())
	s.must(err)
	s.clock.Advance(11 * time.Minute)
	s.poll()
	s.close()
	shows("all closed", 0)
	s.clock.Set(monday.End().Add(7 * time.Hour))
	shows("seven hours after the end of a day", 7*time.Hour)
	s.poll()
	s.close()
	shows("closed", 0)
}

// TestClose_ACaptureThatBreaksTwice: money that both books have differently and that the list then shows no more breaks
// in both ways. The day stands with it once, as missed, and is closed as often as anybody likes.
func TestClose_ACaptureThatBreaksTwice(t *testing.T) {
	t.Parallel()
	for _, before := range []int{0, 1} {
		s := setup(t)
		s.paid("order-1", 1000)
		s.overnight(monday)
		s.exec(`UPDATE captures SET amount = 900`)
		for range before {
			s.closeDay(monday)
		}
		s.exec(`UPDATE mirror SET missing_since = $1`, s.clock.Now())
		for range 2 {
			s.clock.Advance(time.Minute)
			if st := s.closeDay(monday); st.Verdict != reconcile.VerdictBreaks || st.Line(reconcile.LineBreaks, ledger.KRW).Count != 2 {
				t.Errorf("got %s %v %+v", st.Verdict, st.Reasons, st.Lines)
			}
		}
		if got := s.text(`SELECT string_agg(concat_ws(' ', standing, COALESCE(listed::text, 'not'), booked), ', ') FROM day_rows WHERE gone_run IS NULL`); got != "breaks not 900" {
			t.Errorf("closed %d times before: the day stands as %s", before, got)
		}
	}
}

// TestClose_DuringADump: a dump holds what it reads for hours, and days are closed and signed meanwhile.
func TestClose_DuringADump(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.paid("order-1", 1000)
	s.overnight(monday)
	s.closeDay(monday)
	s.tx(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `
			DO $$ DECLARE r record; BEGIN
				FOR r IN SELECT c.oid::regclass AS name FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
				LOOP EXECUTE format('LOCK TABLE %s IN ACCESS SHARE MODE', r.name); END LOOP;
			END $$`)
		s.must(err)
		s.closeDay(monday)
		s.signed(kim, "")
		return nil
	})
}
