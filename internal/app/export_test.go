package app

import (
	"context"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/postgres"
	"daesa/internal/web"
)

// What the tests of the whole service need to see or to drive from within.

// Problems is the index of error answers.
func Problems() []web.ProblemRow { return problems() }

// JobKinds names every job.
func JobKinds() []string { return jobKinds() }

// ServeWithoutJobs answers requests until Stop while no job runs: the test decides when work is done.
func (a *App) ServeWithoutJobs() error { return a.public.Serve(a.publicListener) }

// Tidy runs the jobs that close what a crash left and expire orders, once.
func (a *App) Tidy(ctx context.Context) error {
	if _, err := a.features.webhook.Reap(ctx); err != nil {
		return err
	}
	return postgres.InTx(ctx, a.db, func(tx pgx.Tx) error {
		_, err := a.features.ledger.ExpireOrders(ctx, tx, 1000)
		return err
	})
}

// PublicRoutes builds the public router once more, over a registry of its own.
func PublicRoutes(a *App, registry *prometheus.Registry) (chi.Router, error) {
	again := &App{cfg: a.cfg, log: a.log, registry: registry, features: a.features}
	router, _, err := publicRoutes(again)
	return router, err
}
