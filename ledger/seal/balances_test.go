package seal_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
)

// TestBalances_AreTheSumsOfTheEntries compares the balances at many instants, as known at many others, with the sums of all
// entries: before, while and after sections are cut, with facts that were recorded long after they occurred.
func TestBalances_AreTheSumsOfTheEntries(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.days()
	late := s.now.Add(-50 * time.Hour)
	o := s.shown["pk_4"]
	o.Cancels = append(o.Cancels, ledger.ObservedCancel{
		TransactionKey: "pk_4_late", State: ledger.CancelDone, Amount: ledger.Won(70), CanceledAt: late,
	})
	o.Balance.Minor -= 70
	s.record(o)
	s.requireBalances("a late cancel, not cut yet")
	s.nextDay()
	s.seal()
	s.requireBalances("cut")
	s.nextDay()
	s.seal()
	s.sell(1_000, 2)
	s.requireBalances("an empty section, and one sale more")
}

func (s *shop) requireBalances(what string) {
	s.t.Helper()
	var instants []time.Time
	rows, err := s.db.Query(s.t.Context(), `
		SELECT DISTINCT at + shift
		FROM (SELECT occurred_at AS at FROM journal_transactions UNION SELECT recorded_at FROM journal_transactions
			UNION SELECT (day + 1)::timestamp AT TIME ZONE 'Asia/Seoul' FROM journal_sections) instants,
			unnest(ARRAY[interval '0', interval '-1 microsecond']) AS shift`)
	s.must(err)
	instants, err = pgx.CollectRows(rows, pgx.RowTo[time.Time])
	s.must(err)
	for _, asOf := range instants {
		for _, knownAt := range instants {
			trial, err := ledger.Balances(s.t.Context(), s.db, asOf, knownAt)
			s.must(err)
			var got []string
			for _, l := range trial.Lines {
				got = append(got, fmt.Sprintf("%s %s %s", l.Account, l.Debits, l.Credits))
			}
			rows, err := s.db.Query(s.t.Context(), `
				SELECT account || ' ' || sum(GREATEST(amount, 0)) || ' ' || currency || ' ' || sum(GREATEST(-amount, 0)) || ' ' || currency
				FROM journal_transactions t JOIN journal_entries e USING (transaction_id)
				WHERE t.occurred_at <= $1 AND t.recorded_at <= $2
				GROUP BY account, currency
				ORDER BY currency, array_position($3::text[], account)`, asOf, knownAt, ledger.Accounts())
			s.must(err)
			want, err := pgx.CollectRows(rows, pgx.RowTo[string])
			s.must(err)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				s.t.Fatalf("%s: as of %s, known at %s (-entries +balances):\n%s", what, asOf, knownAt, diff)
			}
			if !trial.Zero() {
				s.t.Errorf("%s: as of %s, known at %s: got %v, want a sum of nothing", what, asOf, knownAt, trial.Totals())
			}
		}
	}
}

// TestQueries_AreIndexBound: what the sealer runs every minute and what a trial balance reads never walks through the
// journal.
func TestQueries_AreIndexBound(t *testing.T) {
	t.Parallel()
	pool, plans := postgrestest.NewExplained(t)
	s := openOn(t, pool)
	s.days()
	_, err := pool.Exec(t.Context(), `
		SET session_replication_role = replica;
		INSERT INTO journal_transactions (kind, reference, occurred_at, recorded_at)
			SELECT 'capture', 'bulk#' || n, '2026-05-02T02:00:00Z'::timestamptz - n * interval '1 minute', '2026-05-03T01:00:00Z' FROM generate_series(1, 20000) n;
		INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
			SELECT transaction_id, l, CASE l WHEN 1 THEN 'gateway_receivable' ELSE 'sales' END, 'KRW', CASE l WHEN 1 THEN 10 ELSE -10 END
			FROM journal_transactions, generate_series(1, 2) l WHERE reference LIKE 'bulk#%';
		SET session_replication_role = DEFAULT;
		ANALYZE`)
	s.must(err)
	s.nextDay()
	s.seal()
	s.sell(500, 0)
	_, err = pool.Exec(t.Context(), `ANALYZE`)
	s.must(err)
	plans.Forget()
	s.nextDay()
	s.seal()
	for _, asOf := range []time.Time{s.now, ledger.EndOf("2026-05-01"), s.now.Add(-30 * time.Hour)} {
		_, err := ledger.Balances(t.Context(), pool, asOf, s.now)
		s.must(err)
	}
	found, err := plans.WholeTables(t.Context(), pool, "journal_transactions", "journal_entries")
	s.must(err)
	for _, plan := range found {
		t.Errorf("it reads a whole table:\n%s", plan)
	}
}
