package reconcile_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// TestDays_WhateverTheMachineTakesForTheTime runs the days of two months in processes with other ideas of the time: no
// zone set, UTC, New York, one that does not exist, and zone data looked for where there are none. That days need no zone
// data at all is TestSeoul_NeedsNoZoneData.
func TestDays_WhateverTheMachineTakesForTheTime(t *testing.T) {
	t.Parallel()
	postgrestest.InZones(t, map[string][]string{
		"no zone":      nil,
		"UTC":          {"TZ=UTC"},
		"New York":     {"TZ=America/New_York"},
		"nowhere":      {"TZ=Nowhere/Land"},
		"no zone data": {"TZ=America/New_York", "ZONEINFO=/nowhere"},
	}, "TestDays_OfTwoMonths")
}

// TestDays_OfTwoMonths: every cancel is on the Korean day on which it happened, the last thousandth of a second included,
// at the ends of months and years; days add up to their months, and what was paid on one day and canceled on another is on
// both.
func TestDays_OfTwoMonths(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *reconcile.Config, _ *tosssim.Config) {
		c.OpeningAt = time.Date(2026, 12, 30, 0, 0, 0, 0, ledger.Seoul())
	})
	seoul := ledger.Seoul()
	want := make(map[ledger.Day]int64)
	months := map[string]int64{"2026-12": 0, "2027-01": 0}
	for n, at := range []time.Time{
		time.Date(2026, 12, 31, 23, 59, 59, 999_000_000, seoul),
		time.Date(2027, 1, 1, 0, 0, 0, 0, seoul),
		time.Date(2027, 1, 1, 0, 42, 0, 0, seoul),
		time.Date(2027, 1, 1, 8, 59, 59, 0, seoul), // the day before in UTC
		time.Date(2027, 1, 1, 9, 0, 0, 0, seoul),
		time.Date(2027, 1, 1, 13, 59, 59, 0, seoul), // the day before in New York
	} {
		s.clock.Set(time.Date(2026, 12, 30, 12, n, 0, 0, seoul))
		won := int64(1000 << n)
		key := s.paid(orderID(n), won)
		s.clock.Set(at)
		s.canceled(key, 0)
		s.record(s.ask(ledger.ChannelWebhook, key))
		day := ledger.Day("2027-01-01")
		if n == 0 {
			day = "2026-12-31"
		}
		want[day] += won
		months[string(day)[:7]] += won
	}
	s.clock.Set(time.Date(2027, 1, 2, 0, 20, 0, 0, seoul))
	s.poll()
	sums := make(map[string]int64)
	for day, won := range want {
		st := s.closeDay(day)
		if got := st.Line(reconcile.LineApplied, ledger.KRW); st.Verdict != reconcile.VerdictReconciled || got.Amount != won {
			t.Errorf("%s: got %s and %d, want %d", day, st.Verdict, got.Amount, won)
		}
		sums[string(day)[:7]] += st.Sums[0].Gateway.Amount
	}
	paid := s.closeDay("2026-12-30")
	if len(paid.Sums) != 0 || paid.Captures[0].Booked != (reconcile.Figure{Count: 6, Amount: 63_000}) || paid.Verdict != reconcile.VerdictReconciled {
		t.Errorf("the day on which all was paid: got %s %+v %+v", paid.Verdict, paid.Sums, paid.Captures)
	}
	if fmt.Sprint(sums) != fmt.Sprint(months) {
		t.Errorf("got %v, want %v", sums, months)
	}
}

// TestList_PaidAndGivenBackOnItsOwnDays: what was paid on one day and canceled on another is a row of each, and so is a
// cancel in the last second of a month. Paid and canceled on the same day, it is two rows of that day that come to nothing.
func TestList_PaidAndGivenBackOnItsOwnDays(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *reconcile.Config, _ *tosssim.Config) {
		c.OpeningAt = time.Date(2026, 12, 31, 0, 0, 0, 0, ledger.Seoul())
	})
	at := func(year int, month time.Month, day, hour, minute, second int) {
		s.clock.Set(time.Date(year, month, day, hour, minute, second, 0, ledger.Seoul()))
	}
	givesBack := func(key string) {
		s.canceled(key, 0)
		s.record(s.ask(ledger.ChannelWebhook, key))
	}
	at(2026, time.December, 31, 12, 0, 0)
	december := s.paid("order-december", 7_000)
	at(2026, time.December, 31, 23, 59, 59)
	givesBack(december)
	at(2027, time.January, 1, 12, 0, 0)
	late := s.paid("order-late", 50_000)
	at(2027, time.January, 4, 10, 0, 0)
	same := s.paid("order-same", 20_000)
	at(2027, time.January, 4, 11, 0, 0)
	givesBack(same)
	at(2027, time.January, 4, 12, 0, 0)
	givesBack(late)
	at(2027, time.January, 5, 0, 20, 0)
	s.poll()
	for day, want := range map[ledger.Day][]string{
		"2026-12-31": {"cancel order-december -7000", "capture order-december 7000"},
		"2027-01-01": {"capture order-late 50000"},
		"2027-01-02": nil,
		"2027-01-04": {"cancel order-same -20000", "cancel order-late -50000", "capture order-same 20000"},
	} {
		var got []string
		st, err := s.Auditor.List(t.Context(), reconcile.Scope{Name: reconcile.ScopeDay, Day: day}, func(r reconcile.Row) error {
			sign, line := int64(1), reconcile.LineCapturesBooked
			if r.Movement == reconcile.MovementCancel {
				sign, line = -1, reconcile.LineApplied
			}
			got = append(got, fmt.Sprintf("%s %s %d", r.Movement, r.OrderID, sign*r.Amount))
			if r.Line != line || ledger.DayOf(r.At) != day {
				t.Errorf("%s: got a row on the line %s, of %s", day, r.Line, r.At)
			}
			return nil
		})
		if err != nil || st.Verdict != reconcile.VerdictReconciled || !slices.Equal(got, want) {
			t.Errorf("%s: got %s, %q and %v, want %q", day, st.Verdict, got, err, want)
		}
	}
	requireApplied(s, december, same, late)
	ledgertest.RequireSound(t, s.db)
}

// requireApplied reads the cumulative applied line in pages of every size: whatever the size, each of the payments' cancels
// is there once, and the last page says that it is the last.
func requireApplied(s *shop, payments ...string) {
	s.t.Helper()
	slices.Sort(payments)
	for limit := 1; limit <= len(payments)+1; limit++ {
		var got, keys []string
		for after, pages := "", 0; pages == 0 || after != ""; pages++ {
			page, err := s.Auditor.Applied(s.t.Context(), after, limit)
			s.must(err)
			if len(page.Applied) == 0 || len(page.Applied) > limit || pages > len(payments) {
				s.t.Fatalf("page %d of %d holds %d", pages, limit, len(page.Applied))
			}
			for _, c := range page.Applied {
				got, keys = append(got, c.PaymentKey), append(keys, c.TransactionKey)
			}
			after = page.Next
		}
		slices.Sort(got)
		if !slices.Equal(got, payments) || !slices.IsSorted(keys) {
			s.t.Errorf("in pages of %d: got %q, want %q", limit, got, payments)
		}
	}
	if _, err := s.Auditor.Applied(s.t.Context(), "a\x00b", 1); !errors.Is(err, reconcile.ErrCursor) {
		s.t.Errorf("after what no key can be: got %v", err)
	}
}

// TestClose_TwinsAreTwo: two cancels of equal amount in the same second on one order are two, however often they are read.
func TestClose_TwinsAreTwo(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.twins()
	s.overnight(monday)
	for range 3 {
		s.requireTwins()
		s.reread()
	}
}

// TestClose_AKeyRepeatedInAnAnswerIsOnce: a row that the list shows twice in one answer is one transaction, beside its
// twin. When the two copies say different things, a person is told.
func TestClose_AKeyRepeatedInAnAnswerIsOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.twins()
	second := ledger.Won(5000)
	r, _ := s.onPages(func(_ int, page *pgclient.Page) error {
		var twice []pgclient.Transaction
		for _, row := range page.Rows {
			twice = append(twice, row, row)
			if row.Kind == pgclient.TransactionCancel {
				twice[len(twice)-1].Amount = second
			}
		}
		page.Rows = twice
		return nil
	})
	p, err := r.Mirror.Poll(t.Context())
	s.must(err)
	if p.Fresh != 3 || s.number(`SELECT count(*) FROM mirror`) != 3 {
		t.Errorf("got %+v, want the capture and two cancels", p)
	}
	s.requireTwins()
	if n := s.number(`SELECT count(*) FROM mismatches`); n != 0 {
		t.Errorf("got %d mismatches", n)
	}
	second = ledger.Won(6000)
	_, err = r.Mirror.Reread(t.Context())
	s.must(err)
	if n := s.mismatches(ledger.KindHistoryChanged); n != 2 {
		t.Errorf("copies that differ: got %d mismatches, want one for each of the two cancels", n)
	}
}

// twins are two cancels of 5,000 won of one order in one second, both booked.
func (s *shop) twins() {
	s.t.Helper()
	key := s.paid("order-twin", 20_000)
	s.canceled(key, 5000)
	s.canceled(key, 5000)
	s.record(s.ask(ledger.ChannelWebhook, key))
}

func (s *shop) requireTwins() {
	s.t.Helper()
	st := s.closeDay(monday)
	if st.Verdict != reconcile.VerdictReconciled || st.Sums[0].Canceled != (reconcile.Figure{Count: 2, Amount: 10_000}) || st.Orders[0].Canceled != 1 {
		s.t.Errorf("got %s %+v %+v", st.Verdict, st.Sums, st.Orders)
	}
}
