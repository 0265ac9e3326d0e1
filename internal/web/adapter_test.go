package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var errTeapot = errors.New("teapot")

// testRows is a table as the application has one.
func testRows() []ProblemRow {
	return []ProblemRow{
		{errTeapot, 418, "teapot", "I am a teapot"},
		{ErrNoRoute, 404, "no_such_path", "No such path"},
		{ErrMethod, 405, "method_not_allowed", "Method not allowed"},
		{ErrUnauthorized, 401, "unauthorized", "API key missing or unknown"},
		{ErrScope, 403, "scope_missing", "API key is for something else"},
		{ErrOrigin, 403, "origin_not_allowed", "Origin not allowed"},
		{ErrBodyTooLarge, 413, "body_too_large", "Body too large"},
		{ErrBodyMalformed, 400, "body_malformed", "Malformed body"},
		{ErrBodyTimeout, 408, "body_timeout", "Body too slow"},
		{context.DeadlineExceeded, 503, "timeout", "Took too long"},
	}
}

// newAdapter returns an adapter and what it logs.
func newAdapter(t *testing.T) (*Adapter, *bytes.Buffer) {
	t.Helper()
	table, err := NewProblems(testRows())
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	a, err := New(Config{Problems: table, Log: slog.New(slog.NewJSONHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return a, &log
}

// refusal says everything an error can say about itself.
type refusal struct{}

func (refusal) Error() string                { return "refused: secret reason" }
func (refusal) Is(target error) bool         { return target == errTeapot }
func (refusal) ProblemDetail() string        { return "no tea" }
func (refusal) ProblemCode() string          { return "NO_TEA" }
func (refusal) ProblemStatus() int           { return 422 }
func (refusal) ProblemExtra() map[string]any { return map[string]any{"leaves": 3, "code": "lies"} }
func (refusal) RetryAfter() time.Duration    { return 1001 * time.Millisecond }

func TestAdapter_Handle(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		err    error
		status int
		body   string
		header http.Header
	}{
		{
			"known", fmt.Errorf("pour: %w", errTeapot), 418,
			`{"code":"teapot","instance":"","message":"I am a teapot","status":418,"title":"I am a teapot","type":"about:blank"}`,
			nil,
		},
		{
			"with detail and time", WithRetryAfter(WithDetail(errTeapot, "short"), time.Millisecond), 418,
			`{"code":"teapot","detail":"short","instance":"","message":"short","status":418,"title":"I am a teapot","type":"about:blank"}`,
			http.Header{"Retry-After": {"1"}},
		},
		{
			"says everything", fmt.Errorf("pour: %w", refusal{}), 422,
			`{"code":"NO_TEA","detail":"no tea","instance":"","leaves":3,"message":"no tea","status":422,"title":"I am a teapot","type":"about:blank"}`,
			http.Header{"Retry-After": {"2"}},
		},
		{
			"unknown", WithDetail(errors.New("password is 1234"), "hunter2"), 500,
			`{"code":"internal","instance":"","message":"Internal error","status":500,"title":"Internal error","type":"about:blank"}`,
			nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, log := newAdapter(t)
			w := httptest.NewRecorder()
			a.Handle(func(http.ResponseWriter, *http.Request) error { return tt.err })(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
			if w.Code != tt.status {
				t.Errorf("got status %d, want %d", w.Code, tt.status)
			}
			if diff := cmp.Diff(tt.body, w.Body.String()); diff != "" {
				t.Errorf("body: -want +got:\n%s", diff)
			}
			if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("got content type %q", got)
			}
			if got, want := w.Header().Get("Retry-After"), tt.header.Get("Retry-After"); got != want {
				t.Errorf("got Retry-After %q, want %q", got, want)
			}
			if got := strings.Count(log.String(), "\n"); got != 1 {
				t.Errorf("got %d log lines, want 1:\n%s", got, log)
			}
		})
	}
}

func TestAdapter_ExtraThatCannotBeEncodedIsLeftOut(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	Problem{Status: 409, Code: "c", Title: "t", Extra: map[string]any{"bad": func() {}}}.write(w, "id")
	if !json.Valid(w.Body.Bytes()) || w.Code != 409 {
		t.Errorf("got %d %s, want a problem", w.Code, w.Body)
	}
}

func TestAdapter_SuccessIsNotTouched(t *testing.T) {
	t.Parallel()
	a, log := newAdapter(t)
	w := httptest.NewRecorder()
	a.Handle(func(w http.ResponseWriter, _ *http.Request) error {
		return WriteJSON(w, http.StatusCreated, map[string]int{"a": 1})
	})(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	if w.Code != 201 || w.Body.String() != `{"a":1}` || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("got %d %s %v", w.Code, w.Body, w.Header())
	}
	if log.Len() != 0 {
		t.Errorf("got log %s, want none", log)
	}
}

func TestWriteJSON_UnencodableValueIsAnInternalError(t *testing.T) {
	t.Parallel()
	a, _ := newAdapter(t)
	w := httptest.NewRecorder()
	a.Handle(func(w http.ResponseWriter, _ *http.Request) error {
		return WriteJSON(w, http.StatusOK, func() {})
	})(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	if w.Code != 500 {
		t.Errorf("got status %d, want 500", w.Code)
	}
}

func TestAdapter_ErrorAfterTheAnswerIsOnlyLogged(t *testing.T) {
	t.Parallel()
	a, log := newAdapter(t)
	w := httptest.NewRecorder()
	a.Handle(func(w http.ResponseWriter, _ *http.Request) error {
		_, _ = io.WriteString(w, "done")
		return errTeapot
	})(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	if w.Code != 200 || w.Body.String() != "done" {
		t.Errorf("got %d %s, want the first answer", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "teapot") {
		t.Errorf("got log %s, want the error", log)
	}
}

func TestAdapter_ClientGone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		canceled bool
		want     int
	}{
		{"request canceled", true, StatusClientGone},
		{"another context canceled", false, 500},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, log := newAdapter(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.canceled {
				cancel()
			}
			w := httptest.NewRecorder()
			tracked := track(w)
			a.Handle(func(http.ResponseWriter, *http.Request) error {
				return fmt.Errorf("query: %w", context.Canceled)
			})(tracked, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil).WithContext(ctx))
			if tracked.status != tt.want {
				t.Errorf("got status %d, want %d", tracked.status, tt.want)
			}
			if tt.canceled && w.Body.Len() != 0 {
				t.Errorf("got body %s, want none", w.Body)
			}
			if want := fmt.Sprintf(`"status":%d`, tt.want); !strings.Contains(log.String(), want) {
				t.Errorf("got log %s, want %s", log, want)
			}
		})
	}
}

func TestNewProblems_RefusesRowsThatCannotBeAnswered(t *testing.T) {
	t.Parallel()
	for _, row := range []ProblemRow{{nil, 400, "a", "b"}, {errTeapot, 200, "a", "b"}, {errTeapot, 400, "", "b"}, {errTeapot, 400, "a", ""}} {
		if _, err := NewProblems([]ProblemRow{row}); err == nil {
			t.Errorf("got no error for %v", row)
		}
	}
}

func TestNew_NamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "Problems") {
		t.Errorf("got %v, want a sentence about Problems", err)
	}
	if _, err := New(Config{Problems: &Table{}}); err == nil || !strings.Contains(err.Error(), "Log") {
		t.Errorf("got %v, want a sentence about Log", err)
	}
}
