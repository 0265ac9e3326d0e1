package report

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/xuri/excelize/v2"

	"daesa/ledger"
)

const (
	sheetRowsMax = 1_048_576           // of one sheet; more rows go on in another
	exactMax     = 999_999_999_999_999 // spreadsheets keep fifteen digits of a number
	textWidth    = 26
	numberWidth  = 16
	factWidth    = 40
)

// writeXLSX writes one workbook: a sheet of facts, and one for each table, its head frozen. Each cell has its type, so
// that no text is ever a formula or a number.
func writeXLSX(w io.Writer, r Report, language Language) (err error) {
	book := &workbook{file: excelize.NewFile(), language: language, rowsMax: sheetRowsMax}
	defer func() {
		if closeErr := book.file.Close(); err == nil {
			err = closeErr
		}
	}()
	if err := book.style(); err != nil {
		return err
	}
	if err := book.facts(r); err != nil {
		return err
	}
	for _, t := range r.Tables {
		if err := book.table(t); err != nil {
			return err
		}
	}
	if err := book.file.DeleteSheet("Sheet1"); err != nil {
		return err
	}
	return book.write(w)
}

// write puts the workbook together. The library orders the parts of the file by chance; they are sorted here, so that
// the same report is the same bytes.
func (b *workbook) write(w io.Writer) (err error) {
	whole, err := os.CreateTemp("", "daesa-report-*.xlsx")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, whole.Close(), os.Remove(whole.Name())) }()
	if err := b.file.Write(whole); err != nil {
		return err
	}
	size, err := whole.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	parts, err := zip.NewReader(whole, size)
	if err != nil {
		return err
	}
	slices.SortFunc(parts.File, func(a, b *zip.File) int { return cmp.Compare(a.Name, b.Name) })
	out := zip.NewWriter(w)
	for _, part := range parts.File {
		if err := out.Copy(part); err != nil {
			return err
		}
	}
	return out.Close()
}

// workbook is a workbook as it is written, sheet after sheet.
type workbook struct {
	file     *excelize.File
	language Language
	rowsMax  int

	head, whole, cents, time, day int // styles
}

func (b *workbook) style() error {
	for _, s := range []struct {
		into  *int
		style excelize.Style
	}{
		{&b.head, excelize.Style{Font: &excelize.Font{Bold: true}}},
		{&b.whole, excelize.Style{CustomNumFmt: new("#,##0")}},
		{&b.cents, excelize.Style{CustomNumFmt: new("#,##0.00")}},
		{&b.time, excelize.Style{CustomNumFmt: new("yyyy-mm-dd hh:mm:ss")}},
		{&b.day, excelize.Style{CustomNumFmt: new("yyyy-mm-dd")}},
	} {
		id, err := b.file.NewStyle(&s.style)
		if err != nil {
			return err
		}
		*s.into = id
	}
	return nil
}

func (b *workbook) facts(r Report) error {
	sheet, err := b.sheet(b.language.name("facts"))
	if err != nil {
		return err
	}
	if err := sheet.SetColWidth(1, 1, textWidth); err != nil {
		return err
	}
	if err := sheet.SetColWidth(2, 2, factWidth); err != nil {
		return err
	}
	for i, f := range r.told(b.language) {
		name := excelize.Cell{StyleID: b.head, Value: b.language.name(f.Name)}
		value, err := b.cell(f.Value)
		if err != nil {
			return err
		}
		if err := sheet.SetRow("A"+strconv.Itoa(i+1), []any{name, value}); err != nil {
			return err
		}
	}
	return sheet.Flush()
}

func (b *workbook) sheet(name string) (*excelize.StreamWriter, error) {
	if _, err := b.file.NewSheet(name); err != nil {
		return nil, err
	}
	return b.file.NewStreamWriter(name)
}

// table writes a table on a sheet of its own, and on further ones when it is longer than a sheet may be.
func (b *workbook) table(t Table) error {
	name, sheets := b.language.name(t.Name), 1
	sheet, err := b.begin(name, t)
	if err != nil {
		return err
	}
	at := 1
	err = t.each(func(row Row) error {
		if at == b.rowsMax {
			if err := sheet.Flush(); err != nil {
				return err
			}
			sheets++
			if sheet, err = b.begin(fmt.Sprintf("%s %d", name, sheets), t); err != nil {
				return err
			}
			at = 1
		}
		at++
		values := make([]any, len(row))
		for i, c := range row {
			if values[i], err = b.cell(c); err != nil {
				return err
			}
		}
		return sheet.SetRow("A"+strconv.Itoa(at), values)
	})
	if err != nil {
		return err
	}
	return sheet.Flush()
}

// begin starts a sheet with the names of its columns, which stay in sight.
func (b *workbook) begin(name string, t Table) (*excelize.StreamWriter, error) {
	sheet, err := b.sheet(name)
	if err != nil {
		return nil, err
	}
	if err := sheet.SetPanes(&excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"}); err != nil {
		return nil, err
	}
	head := make([]any, len(t.Columns))
	for i, c := range t.Columns {
		head[i] = excelize.Cell{StyleID: b.head, Value: b.language.column(t.Name, c.Name)}
		if err := sheet.SetColWidth(i+1, i+1, width(c.Type)); err != nil {
			return nil, err
		}
	}
	return sheet, sheet.SetRow("A1", head)
}

func width(t Type) float64 { //nolint:forbidigo // the width of a column, no money
	switch t {
	case TypeText:
		return textWidth
	case TypeWord, TypeInstant, TypeMoney:
		return numberWidth + 4
	case TypeCount, TypeDay:
	}
	return numberWidth
}

// cell gives a value its type. A number of more digits than a spreadsheet keeps is text, and stays exact.
func (b *workbook) cell(c Cell) (any, error) {
	switch v := c.(type) {
	case nil:
		return nil, nil
	case Text:
		return clean(string(v)), nil
	case Sentences:
		return clean(b.language.sentences(v)), nil
	case Word:
		return clean(b.language.word(string(v))), nil
	case Money:
		return b.amount(ledger.Money(v))
	case Count:
		return excelize.Cell{StyleID: b.whole, Value: int64(v)}, nil
	case Instant:
		return excelize.Cell{StyleID: b.time, Value: inSeoul(v).Truncate(time.Second)}, nil
	case Day:
		return excelize.Cell{StyleID: b.day, Value: ledger.Day(v).Start()}, nil
	}
	return nil, fmt.Errorf("no such cell: %T", c)
}

func (b *workbook) amount(m ledger.Money) (any, error) {
	written := m.Decimal()
	switch {
	case m.Minor > exactMax || m.Minor < -exactMax:
		return written, nil
	case written == strconv.FormatInt(m.Minor, 10):
		return excelize.Cell{StyleID: b.whole, Value: m.Minor}, nil
	}
	// The nearest number that a spreadsheet has is written with just the digits of the decimal: it has at most fifteen.
	number, err := strconv.ParseFloat(written, 64)
	if err != nil {
		return nil, fmt.Errorf("write %s as a number: %w", written, err)
	}
	return excelize.Cell{StyleID: b.cents, Value: number}, nil
}
