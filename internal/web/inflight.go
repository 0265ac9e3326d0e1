package web

import "net/http"

// InFlight counts the requests being answered.
func InFlight(metrics *Metrics) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			metrics.inFlight.Inc()
			defer metrics.inFlight.Dec()
			next.ServeHTTP(w, r)
		})
	}
}
