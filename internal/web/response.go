package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// WriteJSON answers with v. When v cannot be encoded, nothing has been written and the error is the handler's to return.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	encoded, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode reply: %w", err)
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(encoded)))
	w.WriteHeader(status)
	_, _ = w.Write(encoded) // A client that has gone away is no failure of ours.
	return nil
}

// response remembers what was answered, for those who come after the handler. One request has one of them.
type response struct {
	http.ResponseWriter

	status int
	bytes  int64
}

// track returns the request's response, wrapping w if nobody has yet.
func track(w http.ResponseWriter) *response {
	if tracked, ok := w.(*response); ok {
		return tracked
	}
	return &response{ResponseWriter: w}
}

// WriteHeader notes the first final status.
func (r *response) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes of the body.
func (r *response) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap lets [http.ResponseController] reach the connection.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// begun reports whether an answer has been started, so that no other can be.
func (r *response) begun() bool { return r.status != 0 }

// abandon notes that the client has gone and will be told nothing.
func (r *response) abandon() {
	if r.status == 0 {
		r.status = StatusClientGone
	}
}
