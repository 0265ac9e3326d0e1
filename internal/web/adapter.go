package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/go-chi/chi/v5"
)

// StatusClientGone is what the log and the metrics show for a request whose client hung up before the answer. It is
// never sent: there is nobody to send it to.
const StatusClientGone = 499

// Handler answers a request or returns why it cannot. A handler that returns an error has written nothing.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Problems says how an error looks from outside.
type Problems interface {
	Lookup(err error) Problem
}

// Config holds what an [Adapter] needs.
type Config struct {
	Problems Problems
	Log      *slog.Logger
}

func (c Config) validate() error {
	if c.Problems == nil {
		return errors.New("web: Problems is required: it says how an error is answered")
	}
	if c.Log == nil {
		return errors.New("web: Log is required: it is where an error is written down")
	}
	return nil
}

// Adapter lets a [Handler] serve HTTP. It is the only writer of error statuses and the only logger of request errors.
type Adapter struct {
	problems Problems
	log      *slog.Logger
}

// New returns an adapter.
func New(cfg Config) (*Adapter, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Adapter{problems: cfg.Problems, log: cfg.Log}, nil
}

// Handle makes h an [http.HandlerFunc].
func (a *Adapter) Handle(h Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		tracked := track(w)
		if err := h(tracked, r); err != nil {
			a.Fail(tracked, r, err)
		}
	}
}

// Fail answers r with the problem that err stands for and logs it, once. When the client is gone, or an answer was
// already begun, it only logs.
func (a *Adapter) Fail(w http.ResponseWriter, r *http.Request, err error) {
	tracked := track(w)
	if clientGone(r, err) {
		tracked.abandon()
		a.logFailure(r, Problem{Status: StatusClientGone, Code: "client_gone"}, err)
		return
	}
	problem := a.problems.Lookup(err)
	a.logFailure(r, problem, err)
	if tracked.begun() {
		return
	}
	problem.answer(tracked, r)
}

// NotFound answers a path that no route serves.
func (a *Adapter) NotFound(w http.ResponseWriter, r *http.Request) {
	a.Fail(w, r, ErrNoRoute)
}

// MethodNotAllowed answers a path whose routes do not serve the method.
func (a *Adapter) MethodNotAllowed(w http.ResponseWriter, r *http.Request) {
	a.Fail(w, r, ErrMethod)
}

// clientGone tells a request given up by its client from one that merely hit a canceled context of our own.
func clientGone(r *http.Request, err error) bool {
	return errors.Is(err, context.Canceled) && errors.Is(r.Context().Err(), context.Canceled)
}

func (a *Adapter) logFailure(r *http.Request, p Problem, err error) {
	level := slog.LevelInfo
	if p.Status >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	a.log.LogAttrs(r.Context(), level, "request failed",
		slog.String("request_id", RequestID(r.Context())),
		slog.String("method", r.Method),
		slog.String("route", routePattern(r.Context())),
		slog.Int("status", p.Status),
		slog.String("code", p.Code),
		slog.Any("error", err),
	)
}

// routePattern is the pattern of the route that serves the request, or nothing when none does (yet).
func routePattern(ctx context.Context) string {
	if route := chi.RouteContext(ctx); route != nil {
		return route.RoutePattern()
	}
	return ""
}
