package app

import (
	"github.com/go-chi/chi/v5"
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
	again := &App{cfg: a.cfg, log: a.log, registry: registry, features: a.features}
	router, _, err := publicRoutes(again)
	return router, err
}

// Operator is who runs a command.
func Operator() (ledger.Actor, error) { return operator() }
