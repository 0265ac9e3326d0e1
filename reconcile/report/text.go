package report

import (
	"fmt"
	"strings"
	"unicode"
)

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
