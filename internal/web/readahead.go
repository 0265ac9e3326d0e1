package web

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// ReadAhead takes the body of a request in before what comes after it begins: at most limit bytes, within the five seconds that
// any body has. Before a slot is taken it keeps whoever sends slowly from holding one meanwhile.
//
// What comes after reads the body as it was sent, with the error that ended it; so everything about it is judged, answered
// and counted in one place. What is declared to be larger than limit is left unread, for that place to refuse.
func ReadAhead(limit int64) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Body == nil || r.ContentLength > limit {
				next.ServeHTTP(w, r)
				return
			}
			boundBody(w, r, time.Now().Add(bodyMost))
			raw, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
			var rest io.Reader = r.Body
			if err != nil {
				rest = brokenOff{err}
			}
			r = r.WithContext(arrivedNow(r.Context()))
			r.Body = &readBody{Reader: io.MultiReader(bytes.NewReader(raw), rest), Closer: r.Body}
			next.ServeHTTP(w, r)
		})
	}
}

// readBody is a body that is here already.
type readBody struct {
	io.Reader
	io.Closer
}

// brokenOff is where a body ended early.
type brokenOff struct{ err error }

// Read says why.
func (b brokenOff) Read([]byte) (int, error) { return 0, b.err }
