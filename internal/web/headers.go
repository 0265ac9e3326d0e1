package web

import "net/http"

// PolicyAPI is the content security policy of an answer that is no page: nothing may be loaded or framed.
const PolicyAPI = "default-src 'none'; frame-ancestors 'none'"

// SecurityHeaders sets what every answer carries: it is not cached, not sniffed, not framed, and says nothing about
// where it came from. The policy is the Content-Security-Policy: [PolicyAPI], or what the pages need.
func SecurityHeaders(policy string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			header := w.Header()
			header.Set("Cache-Control", "no-store")
			header.Set("Content-Security-Policy", policy)
			header.Set("Referrer-Policy", "no-referrer")
			header.Set("X-Content-Type-Options", "nosniff")
			header.Set("X-Frame-Options", "DENY")
			next.ServeHTTP(w, r)
		})
	}
}
