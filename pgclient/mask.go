package pgclient

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	maskedMax      = 64 << 10 // bytes of masked JSON kept of one body
	maskedTextMax  = 300      // characters of one string
	maskedDepthMax = 16
	maskedMark     = "***"
)

// masked makes a body of so many bytes fit to be kept: secrets and personal data are replaced, strings are bounded and free
// of what the database cannot store, and a body that would still be too large is reduced to its size. Names of fields and
// the gateway's own words stay, so that a person can see what was said.
func (o object) masked(size int) json.RawMessage {
	kept := appendMasked(make([]byte, 0, size), map[string]any(o), false, 0)
	if len(kept) > maskedMax {
		return fmt.Appendf(nil, `{"too_large":true,"bytes":%d}`, size)
	}
	return kept
}

// appendMasked writes a value down as it may be kept; hidden says that it lies below a field that must not be. Names of an
// object are in order, so that the same body is always kept as the same text.
func appendMasked(out []byte, value any, hidden bool, depth int) []byte {
	if depth > maskedDepthMax {
		return appendText(out, maskedMark)
	}
	switch v := value.(type) {
	case map[string]any:
		out = append(out, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendText(out, bounded(sanitized(name), 60)), ':')
			out = appendMasked(out, v[name], hidden || private(name), depth+1)
		}
		return append(out, '}')
	case []any:
		out = append(out, '[')
		for i, inner := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendMasked(out, inner, hidden, depth+1)
		}
		return append(out, ']')
	case string:
		if hidden && v != "" {
			return appendText(out, maskedMark)
		}
		return appendText(out, bounded(sanitized(v), maskedTextMax))
	case json.Number:
		return appendNumber(out, v, hidden)
	case bool:
		return strconv.AppendBool(out, v)
	}
	return append(out, "null"...)
}

// appendText writes a text as a string of JSON. Without control characters there are two that end it or mean another.
func appendText(out []byte, clean string) []byte {
	out = append(out, '"')
	for i := range len(clean) {
		if c := clean[i]; c == '"' || c == '\\' {
			out = append(out, '\\')
		}
		out = append(out, clean[i])
	}
	return append(out, '"')
}

// appendNumber writes numbers that a database can hold as they are, and the rest as text. An exponent, however small the
// number, can ask for more digits than it has: 1e-20000.
func appendNumber(out []byte, n json.Number, hidden bool) []byte {
	switch {
	case hidden:
		return appendText(out, maskedMark)
	case len(n) > 40 || strings.ContainsAny(n.String(), "eE"):
		return appendText(out, bounded(n.String(), 40))
	}
	return append(out, n...)
}

// private reports whether a field, or anything below it, may hold a secret or say who somebody is. Words inside
// the name decide, so that a field of tomorrow such as buyerPhoneNumber is covered today. Free text of people
// (reasons, metadata) counts too.
func private(field string) bool {
	field = strings.ToLower(field)
	if field == "ordername" || field == "method" {
		return false
	}
	for _, word := range []string{
		"secret", "billingkey", "account", "phone", "email", "address", "name", "holder", "birth", "number", "company",
		"individual", "customer", "depositor", "buyer", "cashreceipt", "reason", "metadata", "description", "approveno",
	} {
		if strings.Contains(field, word) {
			return true
		}
	}
	return false
}
