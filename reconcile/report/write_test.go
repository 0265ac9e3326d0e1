package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"daesa/ledger"
)

// sample is a report with a cell of every type, and every text from outside that is known to do harm.
func sample(t *testing.T) Report {
	t.Helper()
	rows := []Row{
		{Text("order-1"), Word("applied"), word(ledger.KRW), money(-12_000, ledger.KRW), Count(3), Instant(time.Date(2026, 11, 30, 14, 59, 59, 999_999_000, time.UTC)), Day("2026-11-30")},
		{Text("order-2"), Word("breaks"), word(ledger.USD), money(-72_605, ledger.USD), Count(0), Instant(time.Date(2026, 11, 30, 15, 0, 0, 0, time.UTC)), Day("2026-12-01")},
		{nil, nil, nil, nil, nil, nil, nil},
		{Text("order-3"), nil, word(ledger.KRW), money(9_000_000_000_000_001, ledger.KRW), nil, nil, nil},
	}
	for _, h := range hostile(t) {
		rows = append(rows, Row{Text(h.Text), Word("applied"), word(ledger.KRW), money(-12_000, ledger.KRW), Count(1), nil, nil})
	}
	return Report{
		Name:  "day",
		Facts: []Fact{{"day", Day("2026-11-30")}, {"verdict", Word("breaks")}, {"reasons", Text("=1+1")}, {"run_id", Count(7)}, {"head", nil}},
		Tables: []Table{{
			Name: "rows", Rows: list(rows),
			Columns: []Column{
				{"note", TypeText}, {"line", TypeWord}, {"currency", TypeWord}, {"amount", TypeMoney}, {"count", TypeCount}, {"at", TypeInstant}, {"day", TypeDay},
			},
		}, {Name: "changes", Columns: []Column{{"at", TypeInstant}}}},
	}
}

func written(t *testing.T, r Report, f Format, l Language) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := r.Write(&out, f, l); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestCSV_NumbersStayNumbersAndTextStaysText reads the file as a spreadsheet does.
func TestCSV_NumbersStayNumbersAndTextStaysText(t *testing.T) {
	t.Parallel()
	r := sample(t)
	got := written(t, r, CSV, English)
	if !bytes.HasPrefix(got, []byte("\xef\xbb\xbfreport,day\r\n")) {
		t.Errorf("the file begins with %q", got[:20])
	}
	in := csv.NewReader(bytes.NewReader(got))
	in.FieldsPerRecord = -1
	all, err := in.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for i, line := range all {
		if line[0] == "note" {
			at = i + 1
		}
	}
	want := [][]string{
		{"order-1", "applied", "KRW", "-12000", "3", "2026-11-30 23:59:59", "2026-11-30"},
		{"order-2", "breaks", "USD", "-726.05", "0", "2026-12-01 00:00:00", "2026-12-01"},
		{"", "", "", "", "", "", ""},
		{"order-3", "", "KRW", "9000000000000001", "", "", ""},
	}
	for _, h := range hostile(t) {
		want = append(want, []string{h.Guarded, "applied", "KRW", "-12000", "1", "", ""})
	}
	if diff := cmp.Diff(want, all[at:at+len(want)]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestJSON_IsExact: texts come back to the letter, amounts are minor units.
func TestJSON_IsExact(t *testing.T) {
	t.Parallel()
	got := written(t, sample(t), JSON, Korean)
	var back struct {
		Report  string
		Reasons string
		RunID   int `json:"run_id"`
		Tables  []struct {
			Name string
			Rows []struct {
				Note   *string
				Amount *json.Number
				At     *time.Time
			}
		}
	}
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if back.Report != "day" || back.Reasons != "=1+1" || back.RunID != 7 || back.Tables[1].Name != "changes" || len(back.Tables[1].Rows) != 0 {
		t.Errorf("got %+v", back)
	}
	rows := back.Tables[0].Rows
	if *rows[0].Amount != "-12000" || *rows[1].Amount != "-72605" || rows[0].At.Nanosecond() != 999_999_000 || rows[2].Note != nil {
		t.Errorf("got %+v", rows[:3])
	}
	for i, h := range hostile(t) {
		if got := *rows[4+i].Note; got != h.Text {
			t.Errorf("got %q, want %q", got, h.Text)
		}
	}
}

// TestXLSX_CellsHaveTheirType reads the workbook back cell by cell: text is text and never a formula, amounts and times
// are numbers.
func TestXLSX_CellsHaveTheirType(t *testing.T) {
	t.Parallel()
	book, err := excelize.OpenReader(bytes.NewReader(written(t, sample(t), XLSX, English)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = book.Close() }()
	if diff := cmp.Diff([]string{"facts", "rows", "changes"}, book.GetSheetList()); diff != "" {
		t.Errorf("sheets (-want +got):\n%s", diff)
	}
	type cell struct {
		Type         excelize.CellType
		Shown, Value string
	}
	at := func(place string) cell {
		kind, err := book.GetCellType("rows", place)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := book.GetCellValue("rows", place)
		if err != nil {
			t.Fatal(err)
		}
		value, err := book.GetCellValue("rows", place, excelize.Options{RawCellValue: true})
		if err != nil {
			t.Fatal(err)
		}
		if formula, err := book.GetCellFormula("rows", place); err != nil || formula != "" {
			t.Errorf("%s is the formula %q: %v", place, formula, err)
		}
		return cell{kind, shown, value}
	}
	for place, want := range map[string]cell{
		"A1": {excelize.CellTypeInlineString, "note", "note"},
		"A2": {excelize.CellTypeInlineString, "order-1", "order-1"},
		"D2": {excelize.CellTypeUnset, "-12,000", "-12000"},
		"D3": {excelize.CellTypeUnset, "-726.05", "-726.05"},
		"E2": {excelize.CellTypeUnset, "3", "3"},
		"F3": {excelize.CellTypeUnset, "2026-12-01 00:00:00", "46357"},
		"G2": {excelize.CellTypeUnset, "2026-11-30", "46356"},
		"D5": {excelize.CellTypeInlineString, "9000000000000001", "9000000000000001"},
	} {
		if got := at(place); got != want {
			t.Errorf("%s: got %+v, want %+v", place, got, want)
		}
	}
	if got := at("F2").Shown; got != "2026-11-30 23:59:59" {
		t.Errorf("the last instant of a day is shown as %s", got)
	}
	for i, h := range hostile(t) {
		place := "A" + strconv.Itoa(6+i)
		if got := at(place); h.Text != "" && (got.Type != excelize.CellTypeInlineString || got.Value != clean(h.Text)) {
			t.Errorf("%s: got %+v, want %q", place, got, clean(h.Text))
		}
	}
	panes, err := book.GetPanes("rows")
	if err != nil || !panes.Freeze || panes.YSplit != 1 {
		t.Errorf("the head moves: %+v %v", panes, err)
	}
}

// TestXLSX_LongTablesGoOnInAnotherSheet: no row is lost at a sheet's end.
func TestXLSX_LongTablesGoOnInAnotherSheet(t *testing.T) {
	t.Parallel()
	book := &workbook{file: excelize.NewFile(), language: English, rowsMax: 4}
	defer func() { _ = book.file.Close() }()
	var rows []Row
	for n := range 7 {
		rows = append(rows, Row{Count(n)})
	}
	if err := errors.Join(book.style(), book.table(Table{Name: "rows", Columns: []Column{{"count", TypeCount}}, Rows: list(rows)})); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, sheet := range []string{"rows", "rows 2", "rows 3"} {
		all, err := book.file.GetRows(sheet)
		if err != nil || all[0][0] != "count" {
			t.Fatalf("%s: %v %v", sheet, all, err)
		}
		for _, row := range all[1:] {
			got = append(got, row[0])
		}
	}
	if strings.Join(got, " ") != "0 1 2 3 4 5 6" {
		t.Errorf("got %v", got)
	}
}

// TestWrite_TwiceIsTheSame byte for byte, in every format and language.
func TestWrite_TwiceIsTheSame(t *testing.T) {
	t.Parallel()
	for _, f := range []Format{CSV, XLSX, JSON} {
		for _, l := range []Language{English, Korean} {
			for range 3 {
				if !bytes.Equal(written(t, sample(t), f, l), written(t, sample(t), f, l)) {
					t.Errorf("%s in %s differs", f, l)
				}
			}
		}
	}
}

// TestWrite_RefusesWhatDoesNotFit: a row that is not what its table says is a mistake of ours, and none that a reader
// should have to find.
func TestWrite_RefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, rows := range map[string]Rows{
		"type":  list([]Row{{Text("12000")}}),
		"width": list([]Row{{Count(1), Count(2)}}),
		"error": func(func(Row) error) error { return broken },
	} {
		for _, f := range []Format{CSV, XLSX, JSON, "pdf"} {
			r := Report{Name: "day", Tables: []Table{{Name: "rows", Columns: []Column{{"count", TypeCount}}, Rows: rows}}}
			if err := r.Write(io.Discard, f, English); err == nil {
				t.Errorf("%s: %s was written", name, f)
			}
		}
	}
}

// TestWrite_MemoryIsBounded writes a large report while watching the heap.
func TestWrite_MemoryIsBounded(t *testing.T) { //nolint:paralleltest // it watches the memory of the whole process
	if testing.Short() {
		t.Skip("a large report")
	}
	const ceiling = 96 << 20
	rows := 200_000
	if raced {
		rows = 10_000
	}
	for _, f := range []Format{CSV, JSON, XLSX} {
		var most atomic.Uint64
		r := Report{Name: "day", Tables: []Table{{
			Name: "rows",
			Columns: []Column{
				{"at", TypeInstant}, {"order_id", TypeText}, {"payment_key", TypeText}, {"transaction_key", TypeText}, {"currency", TypeWord}, {"amount", TypeMoney},
			},
			Rows: func(row func(Row) error) error {
				at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
				for n := range rows {
					id := strconv.Itoa(n)
					if n%5_000 == 0 {
						most.Store(max(most.Load(), heap()))
					}
					if err := row(Row{
						Instant(at.Add(time.Duration(n) * time.Millisecond)), Text("order-" + id), Text("tgen_20261130" + id), Text("txrd_a01" + id),
						Word("KRW"), money(int64(n), ledger.KRW),
					}); err != nil {
						return err
					}
				}
				return nil
			},
		}}}
		if err := r.Write(io.Discard, f, English); err != nil {
			t.Fatal(err)
		}
		most.Store(max(most.Load(), heap()))
		t.Logf("%s: %d rows, at most %d MiB", f, rows, most.Load()>>20)
		if most.Load() > ceiling {
			t.Errorf("%s: %d rows needed %d MiB, want at most %d", f, rows, most.Load()>>20, ceiling>>20)
		}
	}
}

// heap is what the heap holds, garbage too.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
