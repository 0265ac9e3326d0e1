package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/reconcile"
)

// maker makes one report of the day that shop.day plays.
type maker func(context.Context, *Reporter, func(Report) error) error

func makers(s *shop) map[string]maker {
	return map[string]maker{
		"day": func(ctx context.Context, r *Reporter, write func(Report) error) error {
			return r.Day(ctx, "2026-11-30", write)
		},
		"range": func(ctx context.Context, r *Reporter, write func(Report) error) error {
			return r.Range(ctx, "2026-11-29", "2026-12-01", write)
		},
		"order": func(ctx context.Context, r *Reporter, write func(Report) error) error {
			return r.Order(ctx, "order-0001", write)
		},
		"applied": func(ctx context.Context, r *Reporter, write func(Report) error) error {
			return r.Applied(ctx, write)
		},
		"trial_balance": func(ctx context.Context, r *Reporter, write func(Report) error) error {
			return r.TrialBalance(ctx, s.now, s.now, write)
		},
	}
}

func (s *shop) written(make maker, f Format, l Language) []byte {
	s.t.Helper()
	var out bytes.Buffer
	s.must(make(s.t.Context(), s.Reporter, func(r Report) error { return r.Write(&out, f, l) }))
	return out.Bytes()
}

// TestReports_Golden holds every report in every format against a file that a person can read. A workbook is read back
// cell by cell.
func TestReports_Golden(t *testing.T) {
	t.Parallel()
	s := open(t, postgrestest.New(t))
	s.day()
	for name, make := range makers(s) {
		golden(t, name+".csv", s.written(make, CSV, English))
		golden(t, name+".ko.csv", s.written(make, CSV, Korean))
		golden(t, name+".json", s.written(make, JSON, English))
		golden(t, name+".xlsx.txt", readBack(t, s.written(make, XLSX, English)))
	}
	ledgertest.RequireSound(t, s.db)
}

// TestDay_EqualCancelsExchanged: two cancels of one amount whose payments are exchanged leave every figure as it was. The
// day is not what was audited, and not what was signed.
func TestDay_EqualCancelsExchanged(t *testing.T) {
	t.Parallel()
	s := open(t, postgrestest.New(t))
	for _, n := range []string{"1", "2"} {
		key, order, won := "pay_"+n, "order-"+n, ledger.Won(10_000)
		s.sold(order, key, "상품", won, 0)
		s.pass(time.Minute)
		s.record(s.captured(order, key, won, s.canceled("cx_"+n, key, order, ledger.Won(3_000))))
	}
	s.read()
	s.now = ledger.Day("2026-12-01").Start().Add(20 * time.Minute)
	s.close("2026-11-30")
	if _, err := s.auditor.Sign(t.Context(), reconcile.Signing{Day: "2026-11-30", By: "os:kim"}); err != nil {
		t.Fatal(err)
	}
	facts := func() string {
		t.Helper()
		var told []string
		s.must(s.Day(t.Context(), "2026-11-30", func(r Report) error {
			for _, f := range r.Facts {
				if f.Name == "verdict" || f.Name == "run_agrees" || f.Name == "signed" {
					told = append(told, fmt.Sprint(f.Value))
				}
			}
			return nil
		}))
		return strings.Join(told, "/")
	}
	if got, want := facts(), "reconciled/yes/yes"; got != want {
		t.Errorf("as it was signed: got %s, want %s", got, want)
	}
	s.exec(`ALTER TABLE journal_transactions DISABLE TRIGGER USER`)
	for table, name := range map[string]string{"mirror": "transaction_key", "cancels": "transaction_key", "journal_transactions": "reference"} {
		s.exec(`UPDATE ` + table + ` SET payment_key = 'pay_' || 3 - right(payment_key, 1)::integer, order_id = 'order-' || 3 - right(order_id, 1)::integer
			WHERE ` + name + ` IN ('cx_1', 'cx_2')`)
	}
	s.exec(`ALTER TABLE journal_transactions ENABLE TRIGGER USER`)
	if got, want := facts(), "reconciled/no/changed"; got != want {
		t.Errorf("exchanged: got %s, want %s", got, want)
	}
	day := makers(s)["day"]
	golden(t, "exchanged.csv", s.written(day, CSV, English))
	golden(t, "exchanged.ko.csv", s.written(day, CSV, Korean))

	s.exec(`UPDATE list_covered SET stretches = '{}'`)
	if got, want := facts(), "incomplete/no/not_seen"; got != want {
		t.Errorf("a list that was not read: got %s, want %s", got, want)
	}
	s.close("2026-11-30")
	if got, want := facts(), "incomplete/<nil>/not_seen"; got != want {
		t.Errorf("audited so: got %s, want %s", got, want)
	}
}

// TestReports_TwiceIsTheSame: the same books give the same bytes, whenever and for whomever.
func TestReports_TwiceIsTheSame(t *testing.T) {
	t.Parallel()
	s := open(t, postgrestest.New(t))
	s.day()
	all := makers(s)
	for _, f := range []Format{CSV, XLSX, JSON} {
		before := make(map[string][]byte)
		for name, make := range all {
			before[name] = s.written(make, f, Korean)
		}
		s.pass(1) // a moment later
		for name, make := range all {
			if name == "trial_balance" {
				continue // it is asked as of a moment
			}
			if !bytes.Equal(before[name], s.written(make, f, Korean)) {
				t.Errorf("%s as %s differs", name, f)
			}
		}
		if !bytes.Equal(before["trial_balance"], s.written(func(ctx context.Context, r *Reporter, write func(Report) error) error {
			return r.TrialBalance(ctx, s.now.Add(-1), s.now.Add(-1), write)
		}, f, Korean)) {
			t.Errorf("trial_balance as %s differs", f)
		}
	}
}

// TestReports_HoldNoPersonalData: names, reasons, accounts and addresses of the story are in no report.
func TestReports_HoldNoPersonalData(t *testing.T) {
	t.Parallel()
	s := open(t, postgrestest.New(t))
	s.day()
	for name, make := range makers(s) {
		got := string(s.written(make, JSON, English))
		for _, mark := range []string{"김철수", "kim-cheolsu", "변심", "cmd|", "192.0.2.7", "***"} {
			if strings.Contains(got, mark) {
				t.Errorf("%s tells %q", name, mark)
			}
		}
	}
}

// TestReports_EveryTableWithMoneySaysItsCurrency, or an amount would mean nothing.
func TestReports_EveryTableWithMoneySaysItsCurrency(t *testing.T) {
	t.Parallel()
	s := open(t, postgrestest.New(t))
	s.day()
	for name, make := range makers(s) {
		s.must(make(t.Context(), s.Reporter, func(r Report) error {
			for _, table := range r.Tables {
				var amounts, currency bool
				for _, c := range table.Columns {
					amounts = amounts || c.Type == TypeMoney
					currency = currency || c.Name == "currency"
					if said := Korean.column(table.Name, c.Name); said == c.Name {
						t.Errorf("%s.%s has no Korean name", table.Name, c.Name)
					}
				}
				if amounts && !currency {
					t.Errorf("%s of %s has amounts of no currency", table.Name, name)
				}
				if Korean.name(table.Name) == table.Name {
					t.Errorf("table %s has no Korean name", table.Name)
				}
			}
			for _, f := range r.Facts {
				if Korean.name(f.Name) == f.Name {
					t.Errorf("fact %s has no Korean name", f.Name)
				}
			}
			return nil
		}))
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs; -update writes it (-want +got):\n%s", path, diff)
	}
}

// readBack is a workbook as its reader sees it: a line a row, each cell shown as it is, and marked where it is a number.
func readBack(t *testing.T, workbook []byte) []byte {
	t.Helper()
	book, err := excelize.OpenReader(bytes.NewReader(workbook))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = book.Close() }()
	var out bytes.Buffer
	for _, sheet := range book.GetSheetList() {
		fmt.Fprintf(&out, "== %s\n", sheet)
		rows, err := book.GetRows(sheet)
		if err != nil {
			t.Fatal(err)
		}
		for y, row := range rows {
			for x, shown := range row {
				place, err := excelize.CoordinatesToCellName(x+1, y+1)
				if err != nil {
					t.Fatal(err)
				}
				kind, err := book.GetCellType(sheet, place)
				if err != nil {
					t.Fatal(err)
				}
				mark := ""
				if kind != excelize.CellTypeInlineString && shown != "" {
					mark = "#"
				}
				fmt.Fprintf(&out, "%s%s\t", mark, shown)
			}
			out.WriteString("\n")
		}
	}
	return out.Bytes()
}

// TestOrder_Unknown: nothing is known of the order.
func TestOrder_Unknown(t *testing.T) {
	t.Parallel()
	s := open(t, postgrestest.New(t))
	err := s.Order(t.Context(), "order-none", func(Report) error { return nil })
	if !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	s.day()
	rows := 0
	s.must(s.Order(t.Context(), "20261130000001", func(r Report) error {
		return r.Tables[1].each(func(Row) error { rows++; return nil })
	}))
	if rows == 0 {
		t.Error("money for an order that is not in the books is not told")
	}
}
