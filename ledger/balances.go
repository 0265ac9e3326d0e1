package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Balance is what one account held in one currency.
type Balance struct {
	Account Account
	Debits  Money
	Credits Money
}

// Net is debits less credits.
func (b Balance) Net() Money {
	return Money{Minor: b.Debits.Minor - b.Credits.Minor, Currency: b.Debits.Currency}
}

// TrialBalance is every account at one instant, as it was known at another: of the facts that occurred up to and with
// AsOf those that had been recorded up to and with KnownAt. What is recorded later never changes it, so that a report
// can be made again; recorded_at is read before the commit, so this holds once the transactions that were open at
// KnownAt have ended.
type TrialBalance struct {
	AsOf    time.Time
	KnownAt time.Time
	Lines   []Balance // ordered by currency, then in the order of Accounts
}

// Totals is the sum of debits and of credits per currency, ordered by its code. The two are equal, or the journal is
// broken.
func (t TrialBalance) Totals() []Balance {
	var totals []Balance
	for _, l := range t.Lines {
		if n := len(totals); n == 0 || totals[n-1].Debits.Currency != l.Debits.Currency {
			totals = append(totals, Balance{Debits: Money{Currency: l.Debits.Currency}, Credits: Money{Currency: l.Debits.Currency}})
		}
		last := &totals[len(totals)-1]
		last.Debits.Minor += l.Debits.Minor
		last.Credits.Minor += l.Credits.Minor
	}
	return totals
}

// Zero reports whether debits and credits are equal in every currency.
func (t TrialBalance) Zero() bool {
	for _, b := range t.Totals() {
		if b.Net().Minor != 0 {
			return false
		}
	}
	return true
}

// EndOf is the last instant of a business day: the balances at the end of the day are those as of it.
func EndOf(d Day) time.Time { return d.End().Add(-time.Microsecond) }

// Balances is the trial balance as of an instant, as known at another. It reads the totals of the sections that were
// whole by then, and entries only of the day on which asOf falls and of what no section has: its cost follows a day, not
// the history.
func Balances(ctx context.Context, db Querier, asOf, knownAt time.Time) (TrialBalance, error) {
	type row struct {
		Account  Account  `db:"account"`
		Currency Currency `db:"currency"`
		Debits   int64    `db:"debits"`
		Credits  int64    `db:"credits"`
	}
	asOf, knownAt = asOf.Truncate(time.Microsecond), knownAt.Truncate(time.Microsecond)
	// The day whose entries must be looked at one by one; a day that asOf has seen the end of is summed whole.
	open := DayOf(asOf.Add(time.Microsecond))
	rows, err := db.Query(ctx, balancesSQL, pgx.StrictNamedArgs{
		"as_of": asOf, "known_at": knownAt, "open_day": string(open), "open_start": open.Start(),
		"accounts": Accounts(),
	})
	if err != nil {
		return TrialBalance{}, fmt.Errorf("balances as of %s: %w", asOf.Format(time.RFC3339Nano), err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		return TrialBalance{}, fmt.Errorf("balances as of %s: %w", asOf.Format(time.RFC3339Nano), err)
	}
	t := TrialBalance{AsOf: asOf, KnownAt: knownAt}
	for _, r := range found {
		t.Lines = append(t.Lines, Balance{
			Account: r.Account, Debits: Money{Minor: r.Debits, Currency: r.Currency}, Credits: Money{Minor: r.Credits, Currency: r.Currency},
		})
	}
	return t, nil
}

// itsEntries joins a transaction's entries one by one, along their key. How many transactions there are the planner cannot
// know, and it would rather read every entry there is.
const itsEntries = `
		CROSS JOIN LATERAL (SELECT account, currency, amount FROM journal_entries WHERE transaction_id = t.transaction_id OFFSET 0) e`

// balancesSQL adds up four parts that never overlap. Sections follow each other, so those before the first one that holds
// something recorded after known_at are whole; a section whose first record is later holds nothing that was known.
const balancesSQL = `
	WITH cut AS (
		SELECT s.first_partial,
			COALESCE((SELECT max(up_to_id) FROM journal_sections WHERE s.first_partial IS NULL OR day < s.first_partial), 0) AS whole,
			COALESCE((SELECT max(up_to_id) FROM journal_sections WHERE recorded_first <= @known_at), 0) AS partial,
			COALESCE((SELECT max(up_to_id) FROM journal_sections), 0) AS latest
		FROM (SELECT min(day) AS first_partial FROM journal_sections WHERE recorded_last > @known_at) s),
	moved AS (
		SELECT b.account, b.currency, b.debits, b.credits
		FROM cut, journal_balances b
		WHERE (cut.first_partial IS NULL OR b.day < cut.first_partial) AND b.occurred_on < @open_day::date
		UNION ALL
		SELECT e.account, e.currency, GREATEST(e.amount, 0), GREATEST(-e.amount, 0)
		FROM cut, journal_transactions t` + itsEntries + `
		WHERE t.occurred_at >= @open_start AND t.occurred_at <= @as_of AND t.transaction_id <= cut.whole
		UNION ALL
		SELECT e.account, e.currency, GREATEST(e.amount, 0), GREATEST(-e.amount, 0)
		FROM cut, journal_transactions t` + itsEntries + `
		WHERE t.transaction_id > cut.whole AND t.transaction_id <= cut.partial
			AND t.occurred_at <= @as_of AND t.recorded_at <= @known_at
		UNION ALL
		SELECT e.account, e.currency, GREATEST(e.amount, 0), GREATEST(-e.amount, 0)
		FROM cut, journal_transactions t` + itsEntries + `
		WHERE t.transaction_id > cut.latest AND t.occurred_at <= @as_of AND t.recorded_at <= @known_at)
	SELECT account, currency, sum(debits)::bigint AS debits, sum(credits)::bigint AS credits
	FROM moved
	GROUP BY account, currency
	ORDER BY currency, array_position(@accounts::text[], account), account`
