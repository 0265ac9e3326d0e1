package report

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"daesa/internal/sheet"
	"daesa/ledger"
)

// writeCSV writes one file: the facts, a name and a value a line, then each table under its name, an empty line
// between. Lines end as RFC 4180 has it.
func writeCSV(w io.Writer, r Report, language Language) error {
	if _, err := io.WriteString(w, sheet.ByteOrderMark); err != nil {
		return err
	}
	out := csv.NewWriter(w)
	out.UseCRLF = true
	for _, f := range append(r.told(language), Fact{"text_mark", Word(noteMark)}) {
		if err := out.Write([]string{sheet.Guard(language.name(f.Name)), csvCell(f.Value, language)}); err != nil {
			return err
		}
	}
	for _, t := range r.Tables {
		if err := writeCSVTable(out, t, language); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func writeCSVTable(out *csv.Writer, t Table, language Language) error {
	line := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		line[i] = language.column(t.Name, c.Name)
	}
	for _, head := range [][]string{{""}, {language.name(t.Name)}, line} {
		if err := out.Write(head); err != nil {
			return err
		}
	}
	return t.each(func(row Row) error {
		for i, c := range row {
			line[i] = csvCell(c, language)
		}
		return out.Write(line)
	})
}

// csvCell writes a value. Only text is guarded: a number or a time is what it is.
func csvCell(c Cell, language Language) string {
	switch v := c.(type) {
	case nil:
		return ""
	case Text:
		return sheet.Guard(clean(string(v)))
	case Sentences:
		return sheet.Guard(clean(language.sentences(v)))
	case Word:
		return sheet.Guard(clean(language.word(string(v))))
	case Money:
		return ledger.Money(v).Decimal()
	case Count:
		return strconv.FormatInt(int64(v), 10)
	case Instant:
		return inSeoul(v).Format(time.DateTime)
	case Day:
		return string(v)
	}
	return ""
}

// inSeoul is a moment as people in Korea write it, to the second: a finer time is shown wrongly by spreadsheets, and
// the order of the rows says what came first.
func inSeoul(v Instant) time.Time { return time.Time(v).In(ledger.Seoul()) }
