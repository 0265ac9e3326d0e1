// Package sheet makes text fit for the cells of a CSV file that people open in a spreadsheet, and takes it back from there.
// A CSV file cannot say that a cell is text, so a mark says it.
package sheet

import (
	"regexp"
	"strings"
	"unicode"
)

// ByteOrderMark makes a spreadsheet read the file as UTF-8; without it Korean comes out as noise.
const ByteOrderMark = "\uFEFF"

// mark is put before text that a spreadsheet would not leave alone. People know it from typing: it says "this is text".
const mark = "'"

// Guard makes text fit for a cell. The mark is put
//
//   - before anything that a spreadsheet would run as a formula: = + - @ or their wide forms, also behind spaces, quotes and
//     signs that are not seen, at the start and, for programs that split at something else than a comma, after a tab, a
//     line's end or a semicolon;
//   - before a text that begins with a tab, a line's end, or the mark itself;
//   - before a text that would be read as a number, a date, a time or a truth value, and come out changed.
//
// Taking one mark away in each of these places gives the text back: see [Unguard].
func Guard(text string) string { return guard(text, readAsValue(text)) }

// GuardNumber makes text fit for a cell of a column of numbers: one that is a number stays one.
func GuardNumber(text string) string { return guard(text, false) }

func guard(text string, value bool) string {
	var b strings.Builder
	for i, part := range parts(text) {
		first := i == 0 && (value || (text != "" && strings.ContainsRune("\t\n\r", rune(text[0]))))
		if first || startsFormula(part) || strings.HasPrefix(part, mark) {
			b.WriteString(mark)
		}
		b.WriteString(part)
	}
	return b.String()
}

// Unguard takes the marks away: of what [Guard] or [GuardNumber] gave it gives the text back, to the byte.
func Unguard(cell string) string {
	var b strings.Builder
	for _, part := range parts(cell) {
		b.WriteString(strings.TrimPrefix(part, mark))
	}
	return b.String()
}

// parts cuts text after every sign at which a program may split it, so that each part may come to stand first in a cell.
func parts(text string) []string {
	var all []string
	for {
		at := strings.IndexAny(text, "\t\n\r;")
		if at < 0 {
			return append(all, text)
		}
		all, text = append(all, text[:at+1]), text[at+1:]
	}
}

// startsFormula reports whether the first sign that counts begins a formula.
func startsFormula(s string) bool {
	for _, r := range s {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || strings.ContainsRune("\"'`‘’“”＂＇", r):
		case strings.ContainsRune("=+-@＝＋－＠﹦﹢﹣﹫−", r):
			return true
		default:
			return false
		}
	}
	return false
}

// readAsValue reports whether a spreadsheet would take the text for a value of another kind. It is asked of text only:
// "0012" loses its zeros, "12345678901234567" its last digits, "1E5" becomes 100000 and "1-2" a day in January.
func readAsValue(s string) bool {
	const bound = 40 // no value that is read as one is longer; a long text need not be looked through
	if len(s) > bound {
		return false
	}
	s = strings.ToLower(strings.TrimSpace(s))
	return s == "true" || s == "false" || (strings.ContainsFunc(s, unicode.IsDigit) && valueForm.MatchString(s))
}

// valueForm is what numbers, dates and times are made of: digits with what may stand between and around them, and the
// names of months.
var valueForm = regexp.MustCompile(`^(?:[\p{Nd}\s.,:/()%₩￦$¥€e+_-]|am|pm|년|월|일|시|분|초|오전|오후|원` +
	`|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)+$`)
