package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// Problem is an answer with a status of 400 or more, in the terms of RFC 9457.
type Problem struct {
	Status int
	// Code is stable and meant for programs; Title is the same for every problem of its code; Detail is about this one.
	Code, Title, Detail string
	// RetryAfter, when positive, is sent in whole seconds, rounded up.
	RetryAfter time.Duration
	// Extra are further members of the body. They never replace the ones above.
	Extra map[string]any
}

// ProblemRow is one line of the table from error to answer.
type ProblemRow struct {
	Err         error
	Status      int
	Code, Title string
}

// Table finds the problem of an error. Its rows are tried in order, by [errors.Is].
//
// An error somewhere in the chain may say more by having one of these methods; the outermost wins:
//
//	ProblemDetail() string           the detail that the caller may read
//	ProblemCode() string             a code shown instead of the row's, such as the gateway's own
//	ProblemStatus() int              a status of 400 or more shown instead of the row's
//	ProblemExtra() map[string]any    further members
//	RetryAfter() time.Duration       when to ask again
//
// An error that no row matches is a 500 that says nothing, whatever methods it has.
type Table struct {
	rows []ProblemRow
}

// NewProblems returns a table of rows. A row that could never be answered is refused.
func NewProblems(rows []ProblemRow) (*Table, error) {
	for i, row := range rows {
		if row.Err == nil || row.Code == "" || row.Title == "" {
			return nil, fmt.Errorf("web: problem row %d needs an error, a code and a title", i)
		}
		if row.Status < http.StatusBadRequest || row.Status > 599 {
			return nil, fmt.Errorf("web: problem row %d (%s) has status %d, want 400 to 599", i, row.Code, row.Status)
		}
	}
	return &Table{rows: rows}, nil
}

// Lookup says how err is answered.
func (t *Table) Lookup(err error) Problem {
	for _, row := range t.rows {
		if errors.Is(err, row.Err) {
			return Problem{Status: row.Status, Code: row.Code, Title: row.Title}.enriched(err)
		}
	}
	return internalProblem()
}

// internalProblem is the answer to what should not happen: it tells a stranger nothing.
func internalProblem() Problem {
	return Problem{Status: http.StatusInternalServerError, Code: "internal", Title: "Internal error"}
}

// enriched adds what the errors in the chain say about themselves.
func (p Problem) enriched(err error) Problem {
	if e, ok := errors.AsType[interface {
		error
		ProblemDetail() string
	}](err); ok {
		p.Detail = e.ProblemDetail()
	}
	if e, ok := errors.AsType[interface {
		error
		ProblemCode() string
	}](err); ok && e.ProblemCode() != "" {
		p.Code = e.ProblemCode()
	}
	if e, ok := errors.AsType[interface {
		error
		ProblemStatus() int
	}](err); ok && e.ProblemStatus() >= http.StatusBadRequest && e.ProblemStatus() <= 599 {
		p.Status = e.ProblemStatus()
	}
	if e, ok := errors.AsType[interface {
		error
		ProblemExtra() map[string]any
	}](err); ok {
		p.Extra = e.ProblemExtra()
	}
	if e, ok := errors.AsType[interface {
		error
		RetryAfter() time.Duration
	}](err); ok {
		p.RetryAfter = e.RetryAfter()
	}
	return p
}

type answerKey struct{}

// AnswerWith has every problem of the requests that pass through written by answer, whoever finds it.
func AnswerWith(answer func(http.ResponseWriter, *http.Request, Problem)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), answerKey{}, answer)))
		})
	}
}

// answer writes the problem as the request wants it: for programs, unless [AnswerWith] says otherwise.
func (p Problem) answer(w http.ResponseWriter, r *http.Request) {
	if answer, ok := r.Context().Value(answerKey{}).(func(http.ResponseWriter, *http.Request, Problem)); ok {
		p.retryHeader(w.Header())
		answer(w, r, p)
		return
	}
	p.write(w, RequestID(r.Context()))
}

// retryHeader says when to ask again.
func (p Problem) retryHeader(header http.Header) {
	if p.RetryAfter > 0 {
		header.Set("Retry-After", strconv.FormatInt(wholeSeconds(p.RetryAfter), 10))
	}
}

// write sends the problem. Beside the members of RFC 9457 it has code and message, which is what the gateway's sample
// front ends read from an error.
func (p Problem) write(w http.ResponseWriter, instance string) {
	body := make(map[string]any, len(p.Extra)+7)
	maps.Copy(body, p.Extra)
	body["type"] = "about:blank"
	body["title"] = p.Title
	body["status"] = p.Status
	body["code"] = p.Code
	body["message"] = p.Title
	body["instance"] = instance
	delete(body, "detail")
	if p.Detail != "" {
		body["detail"] = p.Detail
		body["message"] = p.Detail
	}
	encoded, err := json.Marshal(body)
	if err != nil { // Only Extra can hold what JSON cannot say; the answer goes out without it.
		p.Extra = nil
		p.write(w, instance)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.Itoa(len(encoded)))
	p.retryHeader(header)
	if p.Status == http.StatusRequestEntityTooLarge || p.Status == http.StatusRequestTimeout {
		// Else the server reads on for the rest of the body before it sends this.
		header.Set("Connection", "close")
	}
	if p.Status == http.StatusTooManyRequests {
		// The same, but that most bodies are here already, and their senders keep their connections.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusedBody))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(encoded) // A client that has gone away is no failure of ours.
}

// refusedBody is how long the body of a request that was refused unread may still take: who sends slowly would wait for the
// refusal meanwhile, and hold a connection.
const refusedBody = 50 * time.Millisecond

// wholeSeconds rounds up: a client that comes back too early has come in vain.
func wholeSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}
