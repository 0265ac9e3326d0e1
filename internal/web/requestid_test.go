package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestWithRequestID(t *testing.T) {
	t.Parallel()
	var seen []string
	handler := WithRequestID(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := RequestID(r.Context())
		if got := w.Header().Get("X-Request-Id"); got != id {
			t.Errorf("got header %q, want %q", got, id)
		}
		seen = append(seen, id)
	}))
	for range 2 {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.Header.Set("X-Request-Id", "mine")
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	if seen[0] == "" || seen[0] == "mine" || seen[0] == seen[1] {
		t.Errorf("got ids %q, want two of our own", seen)
	}
	if got := RequestID(t.Context()); got != "" {
		t.Errorf("got id %q outside of a request", got)
	}
}
