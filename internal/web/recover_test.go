package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRecover(t *testing.T) {
	t.Parallel()
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	tests := []struct {
		name    string
		handler http.HandlerFunc
		status  int
		logs    int
		repanic bool
	}{
		{"no panic", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, 204, 0, false},
		{"panic", func(http.ResponseWriter, *http.Request) { panic("boom") }, 500, 1, false},
		{"abort", abort, 200, 0, true},
		{"panic after the answer began", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); panic("boom") }, 200, 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, log := newAdapter(t)
			w := httptest.NewRecorder()
			func() {
				defer func() {
					if got, _ := recover().(error); errors.Is(got, http.ErrAbortHandler) != tt.repanic {
						t.Errorf("got panic %v, want an abort: %v", got, tt.repanic)
					}
				}()
				a.Recover(tt.handler).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
			}()
			if w.Code != tt.status {
				t.Errorf("got status %d, want %d", w.Code, tt.status)
			}
			if got := strings.Count(log.String(), "\n"); got != tt.logs {
				t.Errorf("got %d log lines, want %d:\n%s", got, tt.logs, log)
			}
			if tt.logs > 0 && !strings.Contains(log.String(), "recover_test.go") {
				t.Errorf("got log %s, want the stack", log)
			}
			if strings.Contains(w.Body.String(), "boom") {
				t.Errorf("got body %s, want nothing of the panic", w.Body)
			}
		})
	}
}
