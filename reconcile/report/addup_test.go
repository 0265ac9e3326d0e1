package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
)

// TestDay_RowsAddUpToTheLines: in every format, the rows of each line of a day add up to its count and amount, and every line
// has its rows.
func TestDay_RowsAddUpToTheLines(t *testing.T) {
	t.Parallel()
	s := open(t, postgrestest.New(t))
	s.day()
	// A capture that a person accepted, as the day beside it has none.
	s.exec(`INSERT INTO mismatches (kind, fingerprint, status, payment_key, transaction_key, currency, amount, detail, opened_at,
			last_seen_at, resolved_at, resolved_as, note)
		SELECT 'amount_differs', 'f', 'resolved', payment_key, transaction_key, currency, amount + 1, 'odd', at, last_seen_at, first_seen_at, 'accepted', 'agreed'
		FROM mirror WHERE transaction_key = 'tx_pay_0004'`)
	s.exec(`UPDATE mirror SET amount = amount + 1 WHERE transaction_key = 'tx_pay_0004'`)
	day := makers(s)["day"]
	for format, tables := range map[Format]func(*testing.T, []byte) map[string][][]string{CSV: csvTables, XLSX: xlsxTables, JSON: jsonTables} {
		got := tables(t, s.written(day, format, English))
		rows, lines := sums(t, got["rows"]), sums(t, got["lines"])
		if diff := cmp.Diff(lines, rows); diff != "" {
			t.Errorf("%s: the rows do not add up to the lines (-lines +rows):\n%s", format, diff)
		}
		for _, line := range []string{
			"applied KRW", "applied USD", "awaiting_redelivery KRW", "unexplained KRW", "breaks KRW", "captures_booked KRW", "captures_booked USD",
			"captures_pending KRW", "captures_accepted KRW", "captures_missing KRW",
		} {
			if _, there := rows[line]; !there {
				t.Errorf("%s: nothing is on the line %s: the test tries too little", format, line)
			}
		}
	}
}

// sums adds the count and the amount of a table up, by line and currency.
func sums(t *testing.T, table [][]string) map[string][2]int64 {
	t.Helper()
	at := func(row []string, name string) string { return row[slices.Index(table[0], name)] }
	all := make(map[string][2]int64)
	for _, row := range table[1:] {
		var count int64
		if _, err := fmt.Sscan(at(row, "count"), &count); err != nil {
			t.Fatal(err)
		}
		amount, err := ledger.ParseMoney(strings.ReplaceAll(at(row, "amount"), ",", ""), ledger.Currency(at(row, "currency")))
		if err != nil {
			t.Fatal(err)
		}
		key := at(row, "line") + " " + at(row, "currency")
		all[key] = [2]int64{all[key][0] + count, all[key][1] + amount.Minor}
	}
	return all
}

// csvTables are the tables of a file, each with its head, by their names.
func csvTables(t *testing.T, file []byte) map[string][][]string {
	t.Helper()
	in := csv.NewReader(bytes.NewReader(file))
	in.FieldsPerRecord = -1
	records, err := in.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	tables := make(map[string][][]string)
	for n := 1; n < len(records); n++ {
		if len(records[n]) != 1 { // the name of a table stands alone
			continue
		}
		name := records[n][0]
		for n++; n < len(records) && len(records[n]) > 1; n++ {
			tables[name] = append(tables[name], records[n])
		}
		n--
	}
	return tables
}

func xlsxTables(t *testing.T, file []byte) map[string][][]string {
	t.Helper()
	book, err := excelize.OpenReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = book.Close() }()
	tables := make(map[string][][]string)
	for _, name := range book.GetSheetList() {
		if tables[name], err = book.GetRows(name); err != nil {
			t.Fatal(err)
		}
	}
	return tables
}

// jsonTables writes the amounts, which are in minor units, as the other formats have them.
func jsonTables(t *testing.T, file []byte) map[string][][]string {
	t.Helper()
	var report struct {
		Tables []struct {
			Name string
			Rows []struct {
				Line     string
				Currency ledger.Currency
				Count    int
				Amount   int64
			}
		}
	}
	if err := json.Unmarshal(file, &report); err != nil {
		t.Fatal(err)
	}
	tables := make(map[string][][]string)
	for _, table := range report.Tables {
		tables[table.Name] = [][]string{{"line", "currency", "count", "amount"}}
		for _, r := range table.Rows {
			amount := ledger.Money{Minor: r.Amount, Currency: r.Currency}
			tables[table.Name] = append(tables[table.Name], []string{r.Line, string(r.Currency), strconv.Itoa(r.Count), amount.Decimal()})
		}
	}
	return tables
}
