package app

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/checkout"
	"daesa/ledger"
	"daesa/pgclient"
	"daesa/reconcile"
)

// workbench is what a command needs that asks the gateway and writes the books beside the service: the same domain over
// the same database, nothing that listens or runs by itself. What it announces is delivered by the service.
type workbench struct {
	db        *pgxpool.Pool
	gateway   *pgclient.Client
	ledger    *ledger.Ledger
	reconcile *reconcile.Reconciler
	cfg       Config
	ourOrders *regexp.Regexp
}

// withWorkbench opens a workbench for one command, if it was told the settings of the service. Before the service has ever
// run here, which is when books are opened, the command goes by those it was told.
func withWorkbench(ctx context.Context, cfg Config, fn func(w *workbench) error) error {
	cfg = cfg.withDefaults()
	if cfg.TossSecretKey == "" {
		return errors.New("set TOSS_SECRET_KEY to the secret key of the merchant id (test_sk_… or live_sk_…)")
	}
	if cfg.ListLag < 0 || cfg.ListLag > listLagMost {
		return errors.New("set DAESA_LIST_LAG to what the service has")
	}
	return withPool(ctx, cfg.DatabaseURL, func(db *pgxpool.Pool) error {
		if err := requireMigrated(ctx, db); err != nil {
			return err
		}
		w, err := newWorkbench(cfg, db)
		if err != nil {
			return err
		}
		defer w.gateway.Close()
		if err := w.requireSettings(ctx, db); err != nil {
			return err
		}
		return fn(w)
	})
}

func newWorkbench(cfg Config, db *pgxpool.Pool) (*workbench, error) {
	registry := prometheus.NewRegistry()
	ourOrders, err := cfg.ourOrders()
	if err != nil {
		return nil, err
	}
	gateway, err := pgclient.New(pgclient.Config{
		BaseURL: cfg.TossURL, SecretKey: cfg.TossSecretKey, Paths: cfg.Paths, Breakers: cfg.Breakers,
		Metrics: pgclient.NewMetrics(registry), Log: cfg.Log, Now: cfg.Now,
	})
	if err != nil {
		return nil, err
	}
	notices, err := checkout.NewNotices(cfg.Log)
	if err != nil {
		return nil, err
	}
	books, err := ledger.New(ledger.Config{
		Notify: notices, Metrics: ledger.NewMetrics(registry), Now: cfg.Now, MerchantID: cfg.MerchantID,
	})
	if err != nil {
		return nil, err
	}
	r, err := reconcile.New(reconcile.Config{
		DB: db, Ledger: books, Gateway: gateway, Metrics: reconcile.NewMetrics(registry), Log: cfg.Log, Now: cfg.Now,
		DatabaseNow: cfg.DatabaseNow, OurOrders: ourOrders, OpeningAt: cfg.OpeningAt, ListLag: cfg.ListLag, Beside: true,
	})
	if err != nil {
		return nil, err
	}
	return &workbench{db: db, gateway: gateway, ledger: books, reconcile: r, cfg: cfg, ourOrders: ourOrders}, nil
}

// requireSettings refuses what would write the books by other settings than the service's.
func (w *workbench) requireSettings(ctx context.Context, db ledger.Querier) error {
	return reconcile.RequireSettings(ctx, db, reconcile.Config{
		OurOrders: w.ourOrders, OpeningAt: w.cfg.OpeningAt, ListLag: w.cfg.ListLag,
	}, true)
}

// quietly is a log for commands whose progress is on the terminal: warnings and worse.
func quietly(log *slog.Logger) *slog.Logger { return slog.New(above{log.Handler(), slog.LevelWarn}) }

// above lets records of a level and worse through.
type above struct {
	slog.Handler
	least slog.Level
}

// Enabled reports whether a record of the level is let through.
func (a above) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= a.least && a.Handler.Enabled(ctx, l)
}

// rough is a time left in words that do not pretend to be exact.
func rough(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return d.Round(10 * time.Second).String()
	}
	return d.Round(time.Minute).String()
}
