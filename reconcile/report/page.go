package report

import (
	"strconv"
	"strings"
	"time"

	"daesa/ledger"
)

// What pages show is said in the words of the reports; English words stand there without the underscores that they have in
// files, which programs read.

// Word is one of a closed set.
func (l Language) Word(w string) string { return spaced(l.word(w)) }

// Reason is why a notice ended as it did, as people read it.
func (l Language) Reason(w string) string { return spaced(l.look(koreanReasons, w)) }

// Name names a fact or a table.
func (l Language) Name(field string) string { return spaced(l.name(field)) }

// Column names a column of a table.
func (l Language) Column(table, field string) string { return spaced(l.column(table, field)) }

// Sentence is text that consists of sentences of ours.
func (l Language) Sentence(text string) string { return l.sentences(Sentences{Text: text}) }

// Cell is a value as people read it; an amount has separators and the currency stands beside it.
func (l Language) Cell(c Cell) string {
	switch v := c.(type) {
	case nil:
		return ""
	case Text:
		return string(v)
	case Sentences:
		return l.sentences(v)
	case Word:
		return l.Word(string(v))
	case Money:
		return ledger.Grouped(ledger.Money(v).Decimal())
	case Count:
		return ledger.Grouped(strconv.FormatInt(int64(v), 10))
	case Instant:
		return inSeoul(v).Format(time.DateTime)
	case Day:
		return string(v)
	}
	return ""
}

func spaced(word string) string { return strings.ReplaceAll(word, "_", " ") }
