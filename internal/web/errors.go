package web

import (
	"errors"
	"time"
)

// What this package refuses a request for. The table of problems gives each its status and code.
var (
	// ErrNoRoute means that no route serves the path.
	ErrNoRoute = errors.New("no such path")
	// ErrMethod means that the path is served, but not for this method.
	ErrMethod = errors.New("method not allowed")
	// ErrUnauthorized means that the request carries no API key that we know.
	ErrUnauthorized = errors.New("API key missing or unknown")
	// ErrScope means that the API key is known, and is for something else.
	ErrScope = errors.New("the API key is not for this")
	// ErrOrigin means that a browser sent the request from a page whose origin is not allowed to.
	ErrOrigin = errors.New("origin not allowed")
	// ErrUnsupportedMedia means that the body is of a type or encoding we do not read.
	ErrUnsupportedMedia = errors.New("unsupported media type")
	// ErrBodyTooLarge means that the body is longer than the route allows.
	ErrBodyTooLarge = errors.New("body too large")
	// ErrBodyTimeout means that the body did not arrive in time.
	ErrBodyTimeout = errors.New("body too slow")
	// ErrBodyMalformed means that the body is not what the route reads: broken JSON, an unknown field, a wrong type.
	ErrBodyMalformed = errors.New("malformed body")
	// ErrRequestTimeout is the cause of the context of a request that ran into [Timeout].
	ErrRequestTimeout = errors.New("request deadline exceeded")
)

// WithDetail gives err a detail that the caller may read. It still matches whatever err matches.
func WithDetail(err error, detail string) error {
	return &detailed{err: err, detail: detail}
}

type detailed struct {
	err    error
	detail string
}

func (e *detailed) Error() string         { return e.err.Error() + ": " + e.detail }
func (e *detailed) Unwrap() error         { return e.err }
func (e *detailed) ProblemDetail() string { return e.detail }

// WithRetryAfter gives err the time after which it is worth asking again. It still matches whatever err matches.
func WithRetryAfter(err error, after time.Duration) error {
	return &retryable{err: err, after: after}
}

type retryable struct {
	err   error
	after time.Duration
}

func (e *retryable) Error() string             { return e.err.Error() }
func (e *retryable) Unwrap() error             { return e.err }
func (e *retryable) RetryAfter() time.Duration { return e.after }
