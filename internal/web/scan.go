package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ScanOptions say what [CheckObject] lets pass. The zero value is the strictest, but for MaxDepth, which is required.
type ScanOptions struct {
	// MaxDepth is how many objects and arrays may be open at once; the outermost object is the first.
	MaxDepth int
	// AllowDuplicateKeys accepts an object that names a member twice; a decoder then keeps the last.
	AllowDuplicateKeys bool
	// AllowInvalidUTF8 accepts bytes that a decoder would replace by U+FFFD.
	AllowInvalidUTF8 bool
	// AllowUnstorable accepts texts that PostgreSQL does not keep: a NUL, or half of a surrogate pair.
	AllowUnstorable bool
}

// CheckObject reports why raw is not exactly one JSON object within the bounds of opts, as an error that matches
// [ErrBodyMalformed]. The standard decoder alone is not enough: it takes null for an empty struct, keeps the last of
// two equal members, matches names without regard to case (so "amount" and "Amount" count as equal here too), and
// replaces bad bytes silently.
func CheckObject(raw []byte, opts ScanOptions) error {
	if !opts.AllowInvalidUTF8 && !utf8.Valid(raw) {
		return malformed("the body is not valid UTF-8")
	}
	if err := json.Unmarshal(raw, new(json.RawMessage)); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return malformed(fmt.Sprintf("not one JSON value: error at byte %d", syntax.Offset))
		}
		return malformed("not one JSON value")
	}
	if trimmed := bytes.TrimLeft(raw, " \t\r\n"); trimmed[0] != '{' {
		return malformed("the body must be a JSON object")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return (&scan{raw: raw, opts: opts, decoder: decoder}).run()
}

// scan walks the tokens of a value already known to be well formed.
type scan struct {
	raw     []byte
	opts    ScanOptions
	decoder *json.Decoder
	open    []container
}

// container is an object or array that has been opened and not yet closed.
type container struct {
	object  bool
	atName  bool // The next token of this object is a member's name.
	members map[string]struct{}
}

func (s *scan) run() error {
	for {
		start := s.decoder.InputOffset()
		token, err := s.decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return malformed("not one JSON value")
		}
		if err := s.take(token, start); err != nil {
			return err
		}
	}
}

// take moves over one token that begins at or after the byte start.
func (s *scan) take(token json.Token, start int64) error {
	switch token := token.(type) {
	case json.Delim:
		if token == '{' || token == '[' {
			return s.push(token == '{')
		}
		s.open = s.open[:len(s.open)-1]
	case string:
		if err := s.checkText(token, s.raw[start:s.decoder.InputOffset()]); err != nil {
			return err
		}
		if top := &s.open[len(s.open)-1]; top.object && top.atName {
			top.atName = false
			return s.name(top, token)
		}
	}
	if len(s.open) > 0 {
		s.open[len(s.open)-1].atName = true // A value has ended; in an object a name comes next.
	}
	return nil
}

func (s *scan) push(object bool) error {
	if len(s.open) >= s.opts.MaxDepth {
		return malformed(fmt.Sprintf("nested deeper than %d", s.opts.MaxDepth))
	}
	s.open = append(s.open, container{object: object, atName: true, members: map[string]struct{}{}})
	return nil
}

func (s *scan) name(object *container, name string) error {
	if s.opts.AllowDuplicateKeys {
		return nil
	}
	folded := fold(name)
	if _, seen := object.members[folded]; seen {
		return malformed("field " + clip(name) + " appears twice")
	}
	object.members[folded] = struct{}{}
	return nil
}

func (s *scan) checkText(text string, token []byte) error {
	if s.opts.AllowUnstorable {
		return nil
	}
	if strings.ContainsRune(text, 0) {
		return malformed("a text contains NUL")
	}
	if strings.ContainsRune(text, utf8.RuneError) && halfSurrogate(token) {
		return malformed("a text contains half of a surrogate pair")
	}
	return nil
}

// halfSurrogate reports whether a JSON string literal escapes a surrogate without its other half.
func halfSurrogate(token []byte) bool {
	awaitsLow := false
	for i := 0; i < len(token); i++ {
		high, low := false, false
		if token[i] == '\\' && i+1 < len(token) {
			i++
			if token[i] == 'u' && i+4 < len(token) {
				high, low = surrogate(token[i+1 : i+5])
				i += 4
			}
		}
		if low != awaitsLow {
			return true
		}
		awaitsLow = high
	}
	return awaitsLow
}

// surrogate tells the two halves apart by the four hexadecimal digits: D800 to DBFF and DC00 to DFFF.
func surrogate(digits []byte) (high, low bool) {
	if digits[0] != 'd' && digits[0] != 'D' {
		return false, false
	}
	switch digits[1] {
	case '8', '9', 'a', 'A', 'b', 'B':
		return true, false
	case 'c', 'C', 'd', 'D', 'e', 'E', 'f', 'F':
		return false, true
	default:
		return false, false
	}
}

// fold maps names that differ only in case to one: the smallest rune of each orbit, as the decoder compares.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		smallest := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			smallest = min(smallest, next)
		}
		return smallest
	}, name)
}
