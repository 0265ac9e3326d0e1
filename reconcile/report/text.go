package report

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// mark is put before text that a spreadsheet would not leave alone. People know it from typing: it says "this is text".
const mark = "'"

// clean makes text safe to show: what is no UTF-8 becomes U+FFFD, every end of line a line feed, and signs that cannot
// be seen but act (controls, marks that turn the direction of writing, marks of no width) are spelled out.
func clean(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(s, "\uFFFD"))
	if strings.IndexFunc(s, unseen) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unseen(r) {
			fmt.Fprintf(&b, `\u%04X`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// unseen reports whether a sign acts without being seen.
func unseen(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u200D': // joins emoji
		return false
	case '\u2028', '\u2029', '\uFFFE', '\uFFFF':
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

// guard makes clean text fit for a cell of a CSV file, which cannot say that a cell is text. The mark is put
//
//   - before anything that a spreadsheet would run as a formula: = + - @ or their wide forms, also behind spaces and
//     quotes, at the start and, for programs that split at something else than a comma, after a tab, a line's end or
//     a semicolon;
//   - before a text that begins with a tab, a line's end, or the mark itself;
//   - before a text that would be read as a number, a date, a time or a truth value, and come out changed.
//
// Taking one mark away in each of these places gives the text back: see [unguard].
func guard(s string) string {
	var b strings.Builder
	for i, part := range parts(s) {
		first := i == 0 && (readAsValue(s) || strings.HasPrefix(s, "\t") || strings.HasPrefix(s, "\n"))
		if first || startsFormula(part) || strings.HasPrefix(part, mark) {
			b.WriteString(mark)
		}
		b.WriteString(part)
	}
	return b.String()
}

// unguard takes the marks away.
func unguard(s string) string {
	var b strings.Builder
	for _, part := range parts(s) {
		b.WriteString(strings.TrimPrefix(part, mark))
	}
	return b.String()
}

// parts cuts text after every sign at which a program may split it, so that each part may come to stand first in a cell.
func parts(s string) []string {
	var all []string
	for {
		at := strings.IndexAny(s, "\t\n;")
		if at < 0 {
			return append(all, s)
		}
		all, s = append(all, s[:at+1]), s[at+1:]
	}
}

// startsFormula reports whether the first sign that counts begins a formula.
func startsFormula(s string) bool {
	for _, r := range s {
		switch {
		case unicode.IsSpace(r) || strings.ContainsRune("\"'`‘’“”＂＇", r):
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
