package app

import (
	"context"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"daesa/internal/postgres"
)

// What the jobs do, one call each, for whoever decides the time: simulations and tests over a clock of their own.

// ServeWithoutJobs answers public requests until Stop while no job runs.
func (a *App) ServeWithoutJobs() error {
	var serving errgroup.Group
	serving.Go(func() error { return a.public.Serve(a.publicListener) })
	if a.pages != nil {
		serving.Go(func() error { return a.pages.Serve(a.pagesListener) })
	}
	return serving.Wait()
}

// Tidy closes what a crash left and expires orders, once.
func (a *App) Tidy(ctx context.Context) error {
	if _, err := a.features.webhook.Reap(ctx); err != nil {
		return err
	}
	return postgres.InTx(ctx, a.db, func(tx pgx.Tx) error {
		_, err := a.features.ledger.ExpireOrders(ctx, tx, 1000)
		return err
	})
}

// SettleAcceptances keeps or releases what the store took on and that is due.
func (a *App) SettleAcceptances(ctx context.Context) error { return a.features.settler.Settle(ctx) }

// RereadList reads the last days of the gateway's list again, unless that was done since the last night.
func (a *App) RereadList(ctx context.Context) error {
	_, err := a.features.reconcile.Mirror.RereadNightly(ctx)
	return err
}

// CloseDays audits every closed day that has no settled audit.
func (a *App) CloseDays(ctx context.Context) error {
	_, err := a.features.reconcile.Auditor.CloseDays(ctx)
	return err
}

// Seal cuts and seals every business day that has ended and is not yet.
func (a *App) Seal(ctx context.Context) error { return a.features.sealer.Run(ctx) }
