package web

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"
)

type requestKey struct{}

// request is what is known of a request before anything has looked at it.
type request struct {
	id      string
	began   time.Time // its headers were read
	arrived time.Time // nothing more of it is awaited before a slot
}

// WithRequestID gives each request an id of our own making and names it in X-Request-Id. It stands outermost, so it also
// notes when the request arrived. An id that comes from outside
// is not looked at: anybody could make two requests look like one in the log.
func WithRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()
		w.Header().Set("X-Request-Id", id)
		now := time.Now()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, request{id: id, began: now, arrived: now})))
	})
}

// RequestID is the id of the request that ctx belongs to, or nothing outside of one.
func RequestID(ctx context.Context) string {
	of, _ := ctx.Value(requestKey{}).(request)
	return of.id
}

// Arrived is when the headers of the request that ctx belongs to were read, or its body where that is read ahead; there is
// none outside of a request.
func Arrived(ctx context.Context) (at time.Time, ok bool) {
	of, ok := ctx.Value(requestKey{}).(request)
	return of.arrived, ok
}

// Began is when the headers of the request that ctx belongs to were read: from then on its sender waits, also while its body
// arrives. Outside of a request it is now.
func Began(ctx context.Context) time.Time {
	if of, ok := ctx.Value(requestKey{}).(request); ok {
		return of.began
	}
	return time.Now()
}

// Waited is how long the sender has waited since then.
func Waited(ctx context.Context) time.Duration { return max(0, time.Since(Began(ctx))) }

// arrivedNow is the context of a request of which more has arrived than its headers.
func arrivedNow(ctx context.Context) context.Context {
	of, ok := ctx.Value(requestKey{}).(request)
	if !ok {
		return ctx
	}
	of.arrived = time.Now()
	return context.WithValue(ctx, requestKey{}, of)
}
