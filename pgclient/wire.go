package pgclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"daesa/ledger"
)

// object is a JSON object of the gateway. Field names are matched exactly, unknown fields are left alone, and a
// field of the wrong type is as good as absent: what is then missing is judged where it is needed. Numbers are as written,
// a [json.Number].
type object map[string]any

// missing reports whether the field is absent or null.
func (o object) missing(name string) bool { return o[name] == nil }

// verbatim is the string as sent, unbounded and unclean: for secrets, and for keys that must not be altered.
func (o object) verbatim(name string) string {
	s, _ := o[name].(string)
	return s
}

// text is for people: clean and at most n characters.
func (o object) text(name string, n int) string { return bounded(sanitized(o.verbatim(name)), n) }

// code is a word of the gateway that we compare with ours.
func (o object) code(name string) string { return o.text(name, 100) }

// identifier is a key: what cannot be kept as sent is no key at all.
func (o object) identifier(name string, n int) string {
	s := o.verbatim(name)
	if len(s) > n || sanitized(s) != s {
		return ""
	}
	return s
}

func (o object) object(name string) (object, bool) {
	inner, ok := o[name].(map[string]any)
	return inner, ok
}

// objects is a list of objects, of which some may be null.
func (o object) objects(name string) ([]object, bool) {
	list, ok := o[name].([]any)
	if !ok {
		return nil, false
	}
	rows := make([]object, len(list))
	for i, item := range list {
		if rows[i], ok = item.(map[string]any); !ok && item != nil {
			return nil, false
		}
	}
	return rows, true
}

func (o object) time(name string) time.Time {
	t, _ := parseTime(o.verbatim(name))
	return t
}

// flag is a boolean, false when it is none.
func (o object) flag(name string) bool { return o[name] == true }

// number is a JSON number as written, or a string that holds one. "" when it is neither.
func (o object) number(name string) string {
	switch v := o[name].(type) {
	case string:
		return strings.TrimSpace(v)
	case json.Number:
		return v.String()
	}
	return ""
}

// money reads an amount exactly. An absent amount is an error too: nothing is not zero.
func (o object) money(name string, currency ledger.Currency) (ledger.Money, error) {
	return ledger.ParseMoney(o.number(name), currency)
}

// moneyOrNone is for amounts that older objects lack.
func (o object) moneyOrNone(name string, currency ledger.Currency) (ledger.Money, error) {
	if o.missing(name) {
		return ledger.Money{Currency: currency}, nil
	}
	return o.money(name, currency)
}

// decodeObject reads exactly one JSON object. A byte order mark before it is forgiven.
func decodeObject(body []byte) (object, bool) {
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))))
	decoder.UseNumber()
	var o object
	if decoder.Decode(&o) != nil || o == nil {
		return nil, false
	}
	_, err := decoder.Token()
	return o, errors.Is(err, io.EOF)
}

// zoneless is how the gateway writes times without an offset, and how the list wants them: Korean time, with any
// number of decimals when read.
const zoneless = "2006-01-02T15:04:05"

// parseTime reads every shape of time the gateway has been seen to write: with an offset, colon or not, or without
// one (then it is Korean time, and reading it as UTC would be nine hours off); with no decimals up to nine.
func parseTime(text string) (time.Time, bool) {
	if len(text) > 40 {
		return time.Time{}, false
	}
	for _, layout := range []string{time.RFC3339Nano, zoneless, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07"} {
		if t, err := time.ParseInLocation(layout, text, ledger.Seoul()); err == nil {
			return t.UTC(), t.Year() >= 1
		}
	}
	return time.Time{}, false
}
