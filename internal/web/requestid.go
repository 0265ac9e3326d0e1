package web

import (
	"context"
	"crypto/rand"
	"net/http"
)

type requestIDKey struct{}

// WithRequestID gives each request an id of our own making and names it in X-Request-Id. An id that comes from outside
// is not looked at: anybody could make two requests look like one in the log.
func WithRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()
		w.Header().Set("X-Request-Id", id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id)))
	})
}

// RequestID is the id of the request that ctx belongs to, or nothing outside of one.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}
