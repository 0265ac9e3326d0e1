package web

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"time"
)

const (
	// smallBody is what is taken in of any body. Who sends so much at the least costs as much memory with the connection alone.
	smallBody = 16 << 10
	// largeAtOnce is how many bodies on one route may be taken in beyond that at once.
	largeAtOnce = 64
)

// ReadAhead takes the body of a request in before what comes after it begins: at most limit bytes, within the given time.
// Before a slot is taken it keeps whoever sends slowly from holding one meanwhile.
//
// Nobody is refused here, so memory is bounded by what is read: 16 KiB of each body, and more of it only in one of 64 places,
// for which a large body waits within its own time. Large ones that are slow hold up nobody but large ones.
//
// What comes after reads the body as it was sent, with the error that ended it; so everything about it is judged, answered
// and counted in one place. What is declared to be larger than limit is left unread, for that place to refuse.
func ReadAhead(limit int64, within time.Duration) func(http.Handler) http.Handler {
	large := make(chan struct{}, largeAtOnce)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Body == nil || r.ContentLength > limit {
				next.ServeHTTP(w, r)
				return
			}
			deadline := time.Now().Add(within)
			boundBody(w, r, deadline)
			raw, err := takeIn(r, limit, deadline, large)
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

// takeIn reads up to one byte more than limit until the deadline, and what is beyond a small body in a place for large ones.
func takeIn(r *http.Request, limit int64, deadline time.Time, large chan struct{}) ([]byte, error) {
	var raw bytes.Buffer
	n, err := raw.ReadFrom(io.LimitReader(r.Body, min(limit+1, smallBody)))
	if err != nil || n < smallBody {
		return raw.Bytes(), err
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case large <- struct{}{}:
		defer func() { <-large }()
	case <-timer.C:
		return raw.Bytes(), os.ErrDeadlineExceeded
	case <-r.Context().Done():
		return raw.Bytes(), r.Context().Err()
	}
	_, err = raw.ReadFrom(io.LimitReader(r.Body, limit+1-n))
	return raw.Bytes(), err
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
