package web

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// BodyMost is how long a request's body may take to arrive, however long its handler may work: ours are a few kilobytes,
// and who sends them slowly holds a place that others need.
const BodyMost = 5 * time.Second

// Timeout ends the context of a request after d, with [ErrRequestTimeout] as its cause, and the wait for a slow body at
// the same instant, or after five seconds. It does not answer by itself: the handler sees its context end and returns that
// error, so that no answer is made while the handler still works on something else.
func Timeout(d time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeoutCause(r.Context(), d, ErrRequestTimeout)
			defer cancel()
			r = r.WithContext(ctx)
			boundBody(w, r, time.Now().Add(min(d, BodyMost)))
			next.ServeHTTP(w, r)
		})
	}
}

// boundBody gives the reading of the body a deadline, and none after it.
//
// The deadline is lifted as soon as the body is read. Left in place, it would also end the server's watch for a client
// that hangs up, which the server takes for a hang-up: the request would end as canceled by the client. The server's
// own ReadTimeout has the same effect on a slow handler, and is lifted with it.
func boundBody(w http.ResponseWriter, r *http.Request, deadline time.Time) {
	controller := http.NewResponseController(w)
	if r.Body == nil || r.Body == http.NoBody {
		_ = controller.SetReadDeadline(time.Time{}) // A recorder has no connection, and needs no deadline.
		return
	}
	if err := controller.SetReadDeadline(deadline); err != nil {
		return
	}
	r.Body = &boundedBody{ReadCloser: r.Body, lift: sync.OnceFunc(func() {
		_ = controller.SetReadDeadline(time.Time{}) // It could be set, so it can be lifted.
	})}
}

// boundedBody calls lift when there is nothing more to read.
type boundedBody struct {
	io.ReadCloser

	lift func()
}

// Read lifts the deadline at the end of the body.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.lift()
	}
	return n, err
}
