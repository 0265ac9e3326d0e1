package pgclient

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// sanitized drops what a database cannot store or a log should not show: control characters, NUL among them, and
// the replacement character that half a surrogate pair or bad UTF-8 is decoded to. Emoji, marks of direction and
// every script stay.
func sanitized(s string) string {
	clean := func(r rune) bool { return !unicode.IsControl(r) && r != utf8.RuneError }
	if strings.IndexFunc(s, func(r rune) bool { return !clean(r) }) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if clean(r) {
			return r
		}
		return -1
	}, s)
}

// bounded cuts s to at most n characters.
func bounded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	count := 0
	for i := range s {
		if count == n {
			return s[:i]
		}
		count++
	}
	return s
}
