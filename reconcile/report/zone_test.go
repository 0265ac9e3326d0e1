package report

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

// TestReports_WhateverTheMachineTakesForTheTime makes every report in processes with other ideas of the time, each with a
// database of its own that has them too: the bytes are those of the golden files.
func TestReports_WhateverTheMachineTakesForTheTime(t *testing.T) {
	t.Parallel()
	postgrestest.InZones(t, map[string][]string{"no zone": nil, "UTC": {"TZ=UTC"}, "New York": {"TZ=America/New_York"}},
		"TestReports_Golden", "TestReports_OfAMonth")
}

// TestReports_OfAMonth: a whole month that begins where another ends and ends with the year. What happens in the last
// thousandth of a day is of that day, and so it is with months and years: by Korea's clock, in the reports of days, of the
// month, of an order that lives across the year's end, and of accounts.
func TestReports_OfAMonth(t *testing.T) {
	t.Parallel()
	s := open(t, postgrestest.New(t))
	seoul := ledger.Seoul()
	for n, at := range []time.Time{
		time.Date(2026, 11, 30, 23, 59, 59, 999_000_000, seoul),
		time.Date(2026, 12, 1, 0, 0, 0, 0, seoul),
		time.Date(2026, 12, 1, 8, 59, 59, 0, seoul),   // the day before in UTC
		time.Date(2026, 12, 31, 13, 59, 59, 0, seoul), // the day before in New York
		time.Date(2026, 12, 31, 23, 59, 59, 999_000_000, seoul),
		time.Date(2027, 1, 1, 0, 0, 0, 0, seoul),
	} {
		s.soldAt(at, n)
	}
	// One that is paid in the old year and given back in the new one, and one that is both within a day.
	s.givenBack(time.Date(2027, 1, 1, 0, 0, 0, 0, seoul), 4)
	s.givenBack(time.Date(2026, 12, 31, 14, 0, 0, 0, seoul), 3)

	s.now = time.Date(2027, 1, 2, 0, 20, 0, 0, seoul)
	s.exec(`INSERT INTO list_covered (stretches) VALUES (tstzmultirange(tstzrange($1, $2, '[]')))`, noon().Add(-25*time.Hour), s.now)
	for at := noon(); at.Before(s.now.Add(-12 * time.Hour)); at = at.Add(24 * time.Hour) {
		s.close(ledger.DayOf(at))
	}
	for name, make := range map[string]maker{
		"month": func(ctx context.Context, r *Reporter, write func(Report) error) error {
			return r.Range(ctx, "2026-12-01", "2026-12-31", write)
		},
		"month.days": func(ctx context.Context, r *Reporter, write func(Report) error) error {
			return r.Range(ctx, "2026-11-30", "2027-01-01", write)
		},
		"month.lastday": func(ctx context.Context, r *Reporter, write func(Report) error) error {
			return r.Day(ctx, "2026-12-31", write)
		},
		"month.order": func(ctx context.Context, r *Reporter, write func(Report) error) error {
			return r.Order(ctx, "order-month-4", write)
		},
		"month.balance": func(ctx context.Context, r *Reporter, write func(Report) error) error {
			end := ledger.Day("2026-12-31").End().Add(-time.Microsecond)
			return r.TrialBalance(ctx, end, s.now, write)
		},
	} {
		golden(t, name+".csv", s.written(make, CSV, English))
	}
	ledgertest.RequireSound(t, s.db)
}

// soldAt is an order of a thousand won times a power of two, paid at an instant.
func (s *shop) soldAt(at time.Time, n int) {
	s.t.Helper()
	order, key, won := monthly("order", n), monthly("pay", n), ledger.Won(1000<<n)
	s.now = at.Add(-time.Minute)
	s.tx(func(tx pgx.Tx) error {
		_, err := s.books.CreateOrder(s.t.Context(), tx, ledger.Order{ID: order, Amount: won, Name: "상품", ExpiresAt: at.Add(time.Hour)})
		return err
	})
	s.tx(func(tx pgx.Tx) error {
		_, err := s.books.Intend(s.t.Context(), tx, ledger.Intent{PaymentKey: key, OrderID: order, Amount: won})
		return err
	})
	s.now = at
	seen := s.captured(order, key, won)
	seen.Attempt = 1
	s.record(seen)
	s.listed("tx_"+key, key, order, "capture", "DONE", won)
}

// givenBack is a whole cancel of such an order.
func (s *shop) givenBack(at time.Time, n int) {
	s.t.Helper()
	order, key, won := monthly("order", n), monthly("pay", n), ledger.Won(1000<<n)
	var paid time.Time
	s.must(s.db.QueryRow(s.t.Context(), `SELECT captured_at FROM captures WHERE payment_key = $1`, key).Scan(&paid))
	s.now = at
	seen := s.captured(order, key, won, s.canceled("cx_"+key, key, order, won))
	seen.CapturedAt = paid
	s.record(seen)
}

func monthly(what string, n int) string { return what + "-month-" + string(rune('0'+n)) }
