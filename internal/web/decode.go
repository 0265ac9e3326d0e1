package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
)

// depthMax is how deep a request of our own API may nest; the deepest we define is three.
const depthMax = 32

// Decode reads the body of a request of our own API: exactly one JSON object of at most limit bytes that has no member
// T does not know, no member twice, and no text that a database could not keep. The strictness is for the caller's
// sake: a misspelled optional field would otherwise be an amount that is silently not applied.
//
// Errors match [ErrUnsupportedMedia], [ErrBodyTooLarge], [ErrBodyTimeout] or [ErrBodyMalformed], and name the field.
func Decode[T any](r *http.Request, limit int64) (T, error) {
	var value, none T
	if err := checkContentType(r); err != nil {
		return none, err
	}
	raw, err := ReadBody(r, limit)
	if err != nil {
		return none, err
	}
	if err := CheckObject(raw, ScanOptions{MaxDepth: depthMax}); err != nil {
		return none, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&value); err != nil {
		return none, misfit(err)
	}
	return value, nil
}

// checkContentType accepts JSON in UTF-8, and a request that does not say what it is.
func checkContentType(r *http.Request) error {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return nil
	}
	media, params, err := mime.ParseMediaType(header)
	if err != nil || media != "application/json" {
		return WithDetail(ErrUnsupportedMedia, "Content-Type must be application/json")
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return WithDetail(ErrUnsupportedMedia, "charset must be utf-8")
	}
	return nil
}

// misfit says in the caller's words why a well-formed object is not the one the route reads.
func misfit(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field == "" {
			return malformed("the body has the wrong shape")
		}
		return malformed(fmt.Sprintf("field %s cannot be a JSON %s", clip(wrong.Field), wrong.Value))
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return malformed("unknown field " + clip(strings.Trim(name, `"`)))
	}
	return fmt.Errorf("%w: %w", ErrBodyMalformed, err)
}

// malformed is [ErrBodyMalformed] with a reason.
func malformed(detail string) error {
	return WithDetail(ErrBodyMalformed, detail)
}

// clip quotes a name from outside and bounds its length.
func clip(name string) string {
	const most = 64
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}
