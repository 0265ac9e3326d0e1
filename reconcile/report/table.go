package report

import (
	"fmt"
	"io"
	"time"

	"daesa/ledger"
)

// Format is how a report is written.
type Format string

// The formats.
const (
	CSV  Format = "csv"
	XLSX Format = "xlsx"
	JSON Format = "json"
)

// Formats lists every format.
func Formats() []Format { return []Format{CSV, XLSX, JSON} }

// Report is what a report holds, whatever the format.
type Report struct {
	Name   string // "day", "range", "order" or "trial_balance"
	Facts  []Fact // what it is, first of all
	Tables []Table
}

// Fact is one thing a report says about itself.
type Fact struct {
	Name  string
	Value Cell
}

// Table is one part of a report: columns and the rows under them.
type Table struct {
	Name    string
	Columns []Column
	Rows    Rows
}

// Rows hands over one row after the other, and ends with the error that a row met.
type Rows func(row func(Row) error) error

// Row has a cell, or nil for nothing, for every column of its table.
type Row []Cell

// Column names what is in a row at one place.
type Column struct {
	Name string
	Type Type
}

// Type is what the cells of a column are.
type Type string

// The types of columns.
const (
	TypeText    Type = "text"    // somebody's words, or an id
	TypeWord    Type = "word"    // one of a closed set of ours
	TypeMoney   Type = "money"   // in the currency that the row's column of that name says
	TypeCount   Type = "count"   // how many
	TypeInstant Type = "instant" // a moment
	TypeDay     Type = "day"     // a Korean business day
)

// Cell is one value: [Text], [Sentences], [Word], [Money], [Count], [Instant] or [Day].
//
//sumtype:decl
type Cell interface{ kind() Type }

type (
	// Text is somebody's words, or an id.
	Text string
	// Word is one of a closed set of ours.
	Word string
	// Money is an amount.
	Money ledger.Money
	// Count is how many.
	Count int64
	// Instant is a moment.
	Instant time.Time
	// Day is a Korean business day.
	Day ledger.Day
)

func (Text) kind() Type    { return TypeText }
func (Word) kind() Type    { return TypeWord }
func (Money) kind() Type   { return TypeMoney }
func (Count) kind() Type   { return TypeCount }
func (Instant) kind() Type { return TypeInstant }
func (Day) kind() Type     { return TypeDay }

// Write writes the report. JSON always has the words of our fields, whatever the language.
func (r Report) Write(w io.Writer, format Format, language Language) error {
	var err error
	switch format {
	case CSV:
		err = writeCSV(w, r, language)
	case XLSX:
		err = writeXLSX(w, r, language)
	case JSON:
		err = writeJSON(w, r)
	default:
		err = fmt.Errorf("no such format: %q", format)
	}
	if err != nil {
		return fmt.Errorf("write the report %s: %w", r.Name, err)
	}
	return nil
}

// each hands over the rows of a table, each held against its columns.
func (t Table) each(row func(Row) error) error {
	if t.Rows == nil {
		return nil
	}
	return t.Rows(func(r Row) error {
		if len(r) != len(t.Columns) {
			return fmt.Errorf("a row of %s has %d cells for %d columns", t.Name, len(r), len(t.Columns))
		}
		for i, c := range r {
			if c != nil && c.kind() != t.Columns[i].Type {
				return fmt.Errorf("%s of %s is %s, want %s", t.Columns[i].Name, t.Name, c.kind(), t.Columns[i].Type)
			}
		}
		return row(r)
	})
}

// list is rows that are all there already.
func list(rows []Row) Rows {
	return func(row func(Row) error) error {
		for _, r := range rows {
			if err := row(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// text is a cell of text, nothing when it is empty.
func text[T ~string](s T) Cell {
	if s == "" {
		return nil
	}
	return Text(s)
}

// word is a cell of one of our words, nothing when it is empty.
func word[T ~string](s T) Cell {
	if s == "" {
		return nil
	}
	return Word(s)
}

// instant is a cell of a moment, nothing for none.
func instant(t time.Time) Cell {
	if t.IsZero() {
		return nil
	}
	return Instant(t)
}

// moment is instant for a moment that may be unknown.
func moment(t *time.Time) Cell {
	if t == nil {
		return nil
	}
	return instant(*t)
}

// money is a cell of an amount in minor units.
func money(minor int64, currency ledger.Currency) Cell {
	return Money{Minor: minor, Currency: currency}
}
