package browser_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The tests of this package hear what a page complains of: without that they would find nothing.
func TestComplaints_AreHeard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, page, want string }{
		{"policy", `<script>alert(1)</script>`, "Executing inline script violates"},
		{"style", `<p style="color: red">x</p>`, "Applying inline style violates"},
		{"not there", `<img src="/nothing.png" alt="">`, "status of 404"},
		{"script", `<script src="/script.js"></script>`, "console: error"},
		{"exception", `<script src="/throw.js"></script>`, "exception: Uncaught"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Security-Policy", "default-src 'self'")
				switch r.URL.Path {
				case "/":
					w.Header().Set("Content-Type", "text/html; charset=utf-8")
					_, _ = io.WriteString(w, "<!doctype html>"+c.page)
				case "/script.js":
					w.Header().Set("Content-Type", "text/javascript")
					_, _ = io.WriteString(w, `console.error("no")`)
				case "/throw.js":
					w.Header().Set("Content-Type", "text/javascript")
					_, _ = io.WriteString(w, `throw new Error("no")`)
				case "/favicon.ico":
					w.WriteHeader(http.StatusNoContent)
				default:
					http.NotFound(w, r)
				}
			}))
			defer server.Close()
			b := browse(t, server.URL, "en")
			b.open("/", 200)
			b.mu.Lock()
			defer b.mu.Unlock()
			if got := strings.Join(b.complaints, "\n"); !strings.Contains(got, c.want) {
				t.Errorf("%q is not heard: %s", c.want, got)
			}
			b.complaints = nil
		})
	}
}
