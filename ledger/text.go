package ledger

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Grouped writes a decimal number for people: a comma after every three digits before the point.
func Grouped(number string) string {
	sign := ""
	if strings.HasPrefix(number, "-") {
		sign, number = "-", number[1:]
	}
	whole, fraction, broken := strings.Cut(number, ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if broken {
		whole += "." + fraction
	}
	return sign + whole
}

// Stamp writes an instant for people: the time in Seoul, to the second.
func Stamp(t time.Time) string { return t.In(Seoul()).Format("2006-01-02 15:04:05 KST") }

// PlainText reports whether a text is one that can be kept, of at most so many characters: the database takes no others.
func PlainText(text string, most int) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0) && utf8.RuneCountInString(text) <= most
}
