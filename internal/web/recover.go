package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// Recover answers a panic below it with a 500 and logs its stack, once. When part of an answer is already out, the
// connection is cut instead, so that the client does not take the part for the whole. [http.ErrAbortHandler] passes:
// it is how a handler asks for exactly that.
func (a *Adapter) Recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tracked := track(w)
		ctx := r.Context()
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares the panic value like this too
				panic(cause)
			}
			a.log.LogAttrs(ctx, slog.LevelError, "request panicked",
				slog.String("request_id", RequestID(ctx)),
				slog.String("method", r.Method),
				slog.String("panic", fmt.Sprint(cause)),
				slog.String("stack", string(debug.Stack())),
			)
			if tracked.begun() {
				panic(http.ErrAbortHandler)
			}
			internalProblem().answer(tracked, r)
		}()
		next.ServeHTTP(tracked, r)
	})
}
