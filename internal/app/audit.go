package app

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/ledger"
	"daesa/reconcile"
)

// run prints the statement. The exit code says whether the books agree: 0, 1 on a break, 2 when that could not be
// seen. It only reads the database; the service keeps the runs, opens mismatches and reads the gateway's list.
func (c auditCommand) run(ctx context.Context, databaseURL string, log *slog.Logger, stdout io.Writer) (int, error) {
	cfg := Config{DatabaseURL: databaseURL, Log: log}
	c.apply(&cfg)
	scope := reconcile.Scope{Name: reconcile.ScopeAll}
	if c.Day != "" {
		day, err := ledger.ParseDay(c.Day)
		if err != nil {
			return ExitIncomplete, err
		}
		scope = reconcile.Scope{Name: reconcile.ScopeDay, Day: day}
	}
	ourOrders, err := cfg.ourOrders()
	if err != nil {
		return ExitIncomplete, err
	}
	var statement reconcile.Statement
	err = withPool(ctx, databaseURL, func(db *pgxpool.Pool) error {
		if err := requireMigrated(ctx, db); err != nil {
			return err
		}
		settings := reconcile.Config{
			DB: db, Now: time.Now, OurOrders: ourOrders, OpeningAt: cfg.OpeningAt, ListLag: cfg.ListLag,
		}
		if err := warnOfOtherSettings(ctx, settings, log); err != nil {
			return err
		}
		statement, err = reconcile.Examine(ctx, settings, scope)
		return err
	})
	if err != nil {
		return ExitIncomplete, err
	}
	if err := c.print(statement, stdout); err != nil {
		return ExitIncomplete, err
	}
	return exitOf(statement.Verdict), nil
}

func (c auditCommand) print(s reconcile.Statement, stdout io.Writer) error {
	if !c.JSON {
		return s.WriteText(stdout)
	}
	return printJSON(stdout, s)
}

// exitOf is the exit code of a verdict.
func exitOf(v reconcile.Verdict) int {
	switch v {
	case reconcile.VerdictReconciled, reconcile.VerdictPending:
		return ExitOK
	case reconcile.VerdictBreaks:
		return ExitBreaks
	case reconcile.VerdictIncomplete, reconcile.VerdictError:
	}
	return ExitIncomplete
}
