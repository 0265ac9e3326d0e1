package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
)

// AccessLog writes one line and one observation per request. It names the route's pattern, never the path, the query
// string, a header or a body: those hold payment keys and people's data.
//
// It belongs around the finished router, whose routes [Routes] can then list for [NewMetrics]; inside a router it works
// as well.
func AccessLog(log *slog.Logger, metrics *Metrics) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begin := time.Now()
			tracked := track(w)
			r = withRoute(r)
			ctx := r.Context()
			returned := false
			defer func() {
				status := finalStatus(ctx, tracked, returned)
				took := time.Since(begin)
				pattern := routePattern(ctx)
				metrics.observe(pattern, r.Method, status, took)
				log.LogAttrs(ctx, slog.LevelInfo, "request",
					slog.String("request_id", RequestID(ctx)),
					slog.String("method", r.Method),
					slog.String("route", pattern),
					slog.Int("status", status),
					slog.Int64("ms", took.Milliseconds()),
					slog.Int64("bytes", tracked.bytes),
				)
			}()
			next.ServeHTTP(tracked, r)
			returned = true
		})
	}
}

// withRoute gives the request a place where the router notes the route it finds. Without it the note would be made in
// a context that only the router's own handlers see.
func withRoute(r *http.Request) *http.Request {
	if chi.RouteContext(r.Context()) != nil {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, chi.NewRouteContext()))
}

// finalStatus is what the client was told. A handler that did not return has panicked: what it left unanswered, the
// recoverer above answers with 500.
func finalStatus(ctx context.Context, answer *response, returned bool) int {
	switch {
	case answer.begun():
		return answer.status
	case !returned:
		return http.StatusInternalServerError
	case ctx.Err() == context.Canceled:
		return StatusClientGone
	default:
		return http.StatusOK
	}
}
