package ledger_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
)

// words turns a closed set into its texts, in order.
func words[T ~string](all []T) []string {
	texts := make([]string, 0, len(all))
	for _, v := range all {
		texts = append(texts, string(v))
	}
	slices.Sort(texts)
	return texts
}

// TestEnums_AreTheSameInGoAndInTheDatabase reads each CHECK from the database as it is.
func TestEnums_AreTheSameInGoAndInTheDatabase(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	quoted := regexp.MustCompile(`'([^']+)'::text`)
	for constraint, want := range map[string][]string{
		"payments_status_known":        words(ledger.Statuses()),
		"orders_status_known":          words(ledger.OrderStatuses()),
		"work_kind_known":              words(ledger.WorkKinds()),
		"work_closing_known":           words(ledger.Closings()),
		"mismatches_kind_known":        words(ledger.Kinds()),
		"mismatches_status_known":      words(ledger.MismatchStatuses()),
		"mismatches_resolution_known":  words(ledger.Resolutions()),
		"mismatch_trail_action_known":  words(ledger.TrailActions()),
		"events_kind_known":            words(ledger.EventKinds()),
		"events_audience_known":        words([]ledger.Audience{ledger.AudienceMerchant, ledger.AudienceCustomer}),
		"journal_kind_known":           words(ledger.EntryKinds()),
		"journal_account_known":        words(ledger.Accounts()),
		"journal_currency_known":       words([]ledger.Currency{ledger.KRW, ledger.USD, ledger.JPY, ledger.Credits}),
		"payments_currency_known":      words([]ledger.Currency{ledger.KRW, ledger.USD, ledger.JPY}),
		"orders_currency_known":        words([]ledger.Currency{ledger.KRW, ledger.USD, ledger.JPY}),
		"cancel_requests_status_known": words(ledger.CancelRequestStatuses()),
	} {
		rows, err := pool.Query(t.Context(), `SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = @name`,
			pgx.StrictNamedArgs{"name": constraint})
		if err != nil {
			t.Fatal(err)
		}
		definition, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", constraint, err)
		}
		var got []string
		for _, match := range quoted.FindAllStringSubmatch(definition, -1) {
			got = append(got, match[1])
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-Go +database):\n%s", constraint, diff)
		}
	}
}

// TestEnums_LiveStatusesAreThoseOfTheIndex: the index that allows one live payment per order names the same
// statuses as Status.Live.
func TestEnums_LiveStatusesAreThoseOfTheIndex(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	var definition string
	if err := pool.QueryRow(t.Context(), `SELECT pg_get_indexdef('payments_one_live_per_order'::regclass)`).Scan(&definition); err != nil {
		t.Fatal(err)
	}
	for _, s := range ledger.Statuses() {
		if got := regexp.MustCompile(`'` + string(s) + `'::text`).MatchString(definition); got != s.Live() {
			t.Errorf("%s: got %t in the index, want %t", s, got, s.Live())
		}
	}
}
