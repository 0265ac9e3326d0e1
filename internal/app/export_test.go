package app

import (
	"github.com/alecthomas/kong"
	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/web"
	"daesa/ledger"
)

// What the tests of the whole service need to see or to drive from within.

// Problems is the index of error answers.
func Problems() []web.ProblemRow { return problems() }

// JobKinds names every job.
func JobKinds() []string { return jobKinds() }

// PublicRoutes builds the public router once more, over a registry of its own.
func PublicRoutes(a *App, registry *prometheus.Registry) (chi.Router, error) {
	again := a.over(registry)
	adapter, gates, err := newGates(again)
	if err != nil {
		return nil, err
	}
	return publicRoutes(again, adapter, gates), nil
}

// PageRoutes builds the router of the pages once more, over a registry of its own.
func PageRoutes(a *App, registry *prometheus.Registry) (chi.Router, error) {
	again := a.over(registry)
	adapter, gates, err := newGates(again)
	if err != nil {
		return nil, err
	}
	pages, sessions, err := newPages(again, adapter)
	if err != nil {
		return nil, err
	}
	return pageRoutes(pages, sessions, adapter, gates), nil
}

// over is the instance as far as its routes need it, over another registry.
func (a *App) over(registry *prometheus.Registry) *App {
	return &App{cfg: a.cfg, log: a.log, registry: registry, features: a.features, reads: a.reads, limits: a.limits}
}

// Limits are the connections of the rate limits.
func (a *App) Limits() *pgxpool.Pool { return a.limits }

// Money are the connections of what moves money.
func (a *App) Money() *pgxpool.Pool { return a.db }

// Operator is who runs a command.
func Operator() (ledger.Actor, error) { return operator() }

// GuardsOf reads the limits of serve's command line into a configuration.
func GuardsOf(args ...string) (Config, error) {
	var c cli
	parser, err := kong.New(&c)
	if err != nil {
		return Config{}, err
	}
	var cfg Config
	if _, err := parser.Parse(append([]string{"serve"}, args...)); err != nil {
		return cfg, err
	}
	c.Serve.admissionSettings.apply(&cfg)
	c.Serve.guardSettings.apply(&cfg)
	return cfg, nil
}
