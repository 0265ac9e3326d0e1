package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

// rehearse shows what an observation would write, and the tables that the transaction wrote to, and rolls back.
func (b *books) rehearse(o ledger.Observation) (r ledger.Recorded, changes []ledger.RowChange, touched []string) {
	b.t.Helper()
	err := b.try(func(tx pgx.Tx) (err error) {
		before, err := writes(b.t.Context(), tx)
		if err != nil {
			return err
		}
		if r, changes, err = b.ledger.Rehearse(b.t.Context(), tx, o); err != nil {
			return err
		}
		after, err := writes(b.t.Context(), tx)
		if err != nil {
			return err
		}
		for table, n := range after {
			if n != before[table] {
				touched = append(touched, table)
			}
		}
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		b.t.Fatal(err)
	}
	return r, changes, touched
}

// writes counts what was written to each table by a connection since it last told the server's statistics.
func writes(ctx context.Context, tx pgx.Tx) (map[string]int64, error) {
	rows, err := tx.Query(ctx, `SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_user_tables`)
	if err != nil {
		return nil, err
	}
	type written struct {
		Table string
		N     int64
	}
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[written])
	all := make(map[string]int64, len(tables))
	for _, t := range tables {
		all[t.Table] = t.N
	}
	return all, err
}

// everything is every row of every table of the books, as text.
func (b *books) everything() string {
	b.t.Helper()
	var all strings.Builder
	for _, table := range b.list(`SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename`) {
		for _, row := range b.list(fmt.Sprintf(`SELECT t::text FROM %s t ORDER BY t::text`, pgx.Identifier{table}.Sanitize())) {
			fmt.Fprintln(&all, table, row)
		}
	}
	return all.String()
}

// shown writes changes down without what differs from run to run.
func shown(changes []ledger.RowChange) []string {
	var all []string
	for _, c := range changes {
		var columns []string
		for _, column := range c.Columns {
			columns = append(columns, column.Name+"="+column.After)
		}
		all = append(all, fmt.Sprintf("%s %t %s", c.Table, c.Added, strings.Join(columns, " ")))
	}
	return all
}

// notBooks are tables that say what the audit has to look at again, not what is true.
var notBooks = []string{"audit_dirty", "days_to_close", "journal_marks", "mismatch_trail"}

// TestRehearse_WritesNothingAndHidesNothing: whatever the gateway says, a rehearsal leaves every table as it was, shows a
// row of each table that it wrote to, and says what recording it then says.
func TestRehearse_WritesNothingAndHidesNothing(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 7)
	b.open(ledger.Work{Kind: ledger.WorkCancelClaimed, PaymentKey: "pk_1", OrderID: "order_1", TransactionKey: "c1"})
	b.order("order_2", 9_000, 0)
	b.intend("pk_2", "order_2", 9_000)
	other := b.captured("pk_1", "order_1", 50_000)
	other.Total = ledger.Won(49_000)
	for _, test := range []struct {
		name string
		seen ledger.Observation
		want []string // tables
	}{
		{"nothing new", b.captured("pk_1", "order_1", 50_000), nil},
		{"another amount", other, []string{"mismatches"}},
		{"a cancel under way", b.captured("pk_1", "order_1", 50_000, underway("c1", 12_000)), []string{"work"}},
		{"a part", b.captured("pk_1", "order_1", 50_000, done("c1", 12_000)), []string{"cancels", "credit_accounts", "events", "journal_entries", "journal_transactions", "orders", "payments", "work"}},
		{"the rest", b.captured("pk_1", "order_1", 50_000, done("c1", 12_000), done("c2", 38_000)), []string{"cancels", "credit_accounts", "events", "journal_entries", "journal_transactions", "orders", "payments"}},
		{"a capture", b.captured("pk_2", "order_2", 9_000), []string{"captures", "events", "journal_entries", "journal_transactions", "orders", "payments", "work"}},
	} {
		before, told := b.everything(), len(b.heard.all)
		rehearsed, changes, touched := b.rehearse(test.seen)
		if after := b.everything(); after != before {
			t.Errorf("%s: the rehearsal left something:\n%s\nwas\n%s", test.name, after, before)
		}
		b.heard.all = b.heard.all[:told] // its announcements are rolled back with the rest
		var tables []string
		for _, c := range changes {
			tables = append(tables, c.Table)
		}
		slices.Sort(tables)
		if tables = slices.Compact(tables); !slices.Equal(tables, test.want) {
			t.Errorf("%s: shows rows of %v, want of %v", test.name, tables, test.want)
		}
		for _, table := range touched {
			if !slices.Contains(tables, table) && !slices.Contains(notBooks, table) {
				t.Errorf("%s: %s was written to and is not shown", test.name, table)
			}
		}
		_, again, _ := b.rehearse(test.seen)
		b.heard.all = b.heard.all[:told]
		if got, want := len(shown(again)), len(shown(changes)); got != want {
			t.Errorf("%s: a second rehearsal shows %d rows, the first %d", test.name, got, want)
		}
		if recorded := b.record(test.seen); recorded.Outcome != rehearsed.Outcome || recorded.After.Status != rehearsed.After.Status {
			t.Errorf("%s: rehearsed %s %s, recorded %s %s", test.name, rehearsed.Outcome, rehearsed.After.Status, recorded.Outcome, recorded.After.Status)
		}
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestRehearse_ShowsTheRowsThatAreWritten: what is shown and committed is what then stands in the tables.
func TestRehearse_ShowsTheRowsThatAreWritten(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 0)
	seen := b.captured("pk_1", "order_1", 50_000, done("c1", 50_000))
	var changes []ledger.RowChange
	b.do(func(tx pgx.Tx) error {
		recorded, rows, err := b.ledger.Rehearse(b.t.Context(), tx, seen)
		if err == nil {
			b.ledger.Performed(seen, recorded)
		}
		changes = rows
		return err
	})
	for _, want := range []struct{ table, key, column, before, after string }{
		{"orders", "order_1", "status", `"paid"`, `"canceled"`},
		{"payments", "pk_1", "status", `"done"`, `"canceled"`},
		{"cancels", "c1", "amount", "", "50000"},
	} {
		found := slices.ContainsFunc(changes, func(c ledger.RowChange) bool {
			return c.Table == want.table && c.Key == want.key && slices.Contains(c.Columns, ledger.ColumnChange{Name: want.column, Before: want.before, After: want.after})
		})
		if !found {
			t.Errorf("%+v is not shown:\n%s", want, strings.Join(shown(changes), "\n"))
		}
	}
	if got := b.list(`SELECT status FROM payments`); !slices.Equal(got, []string{"canceled"}) {
		t.Errorf("got %v, want what was shown", got)
	}
	ledgertest.RequireSound(t, b.pool)
}
