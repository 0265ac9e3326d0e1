package pgclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

const (
	maskedMax      = 64 << 10 // bytes of masked JSON kept of one body
	maskedTextMax  = 300      // characters of one string
	maskedDepthMax = 16
	maskedMark     = "***"
)

// Mask makes a body fit to be kept: secrets and personal data are replaced, strings are bounded and free of what
// the database cannot store, and a body that would still be too large is reduced to its size. Names of fields and
// the gateway's own words stay, so that a person can see what was said.
func Mask(body []byte) (json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))))
	decoder.UseNumber()
	var fields map[string]any
	if decoder.Decode(&fields) != nil || fields == nil {
		return nil, ErrNotice
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, ErrNotice
	}
	masked, err := encode(mask(fields, false, 0))
	if err != nil {
		return nil, err
	}
	if len(masked) > maskedMax {
		return encode(map[string]any{"too_large": true, "bytes": len(body)})
	}
	return masked, nil
}

// encode writes JSON as is: "&" stays "&".
func encode(value any) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// mask rebuilds a value; hidden says that it lies below a field that must not be kept.
func mask(value any, hidden bool, depth int) any {
	if depth > maskedDepthMax {
		return maskedMark
	}
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, inner := range v {
			out[bounded(sanitized(name), 60)] = mask(inner, hidden || private(name), depth+1)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = mask(inner, hidden, depth+1)
		}
		return out
	case string:
		if hidden && v != "" {
			return maskedMark
		}
		return bounded(sanitized(v), maskedTextMax)
	case json.Number:
		return maskNumber(v, hidden)
	}
	return value // true, false and null say nothing about a person
}

// maskNumber keeps numbers that a database can hold as they are, and the rest as text. An exponent, however small the
// number, can ask for more digits than it has: 1e-20000.
func maskNumber(n json.Number, hidden bool) any {
	if hidden {
		return maskedMark
	}
	if len(n) > 40 || strings.ContainsAny(n.String(), "eE") {
		return bounded(n.String(), 40)
	}
	return n
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
