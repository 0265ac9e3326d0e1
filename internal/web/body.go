package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// ReadBody reads the whole body of r, at most limit bytes, and returns it byte for byte: a signature or a hash is taken
// over exactly these. A compressed body is refused rather than inflated, so limit bounds what we hold in memory.
//
// The wait for a slow body ends when [Timeout] says so.
// Errors match [ErrUnsupportedMedia], [ErrBodyTooLarge], [ErrBodyTimeout] or [ErrBodyMalformed].
func ReadBody(r *http.Request, limit int64) ([]byte, error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, WithDetail(ErrUnsupportedMedia, "Content-Encoding is not supported")
	}
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	raw, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, limit))
	if err == nil {
		return raw, nil
	}
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, tooLarge(limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, ErrBodyTimeout
	}
	if gone := r.Context().Err(); gone != nil {
		return nil, fmt.Errorf("read body: %w", gone)
	}
	return nil, malformed("the body ended early")
}

func tooLarge(limit int64) error {
	return WithDetail(ErrBodyTooLarge, fmt.Sprintf("the body may have at most %d bytes", limit))
}
