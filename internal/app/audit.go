package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"daesa/ledger"
	"daesa/reconcile"
)

// run prints the statement. The exit code says whether the books agree: 0, 1 on a break, 2 when that could not be
// seen. It reads the database only; the gateway's list is read by the service.
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
	statement, err := auditOnce(ctx, cfg.withDefaults(), scope)
	if err != nil {
		return ExitIncomplete, err
	}
	if err := c.print(statement, stdout); err != nil {
		return ExitIncomplete, err
	}
	return exitOf(statement.Verdict), nil
}

func auditOnce(ctx context.Context, cfg Config, scope reconcile.Scope) (reconcile.Statement, error) {
	if err := cfg.validate(); err != nil {
		return reconcile.Statement{}, err
	}
	a := &App{cfg: cfg, log: cfg.Log, registry: prometheus.NewRegistry(), recovered: make(chan struct{}, 1)}
	defer a.release()
	if err := a.open(ctx); err != nil {
		return reconcile.Statement{}, err
	}
	return a.Audit(ctx, scope)
}

func (c auditCommand) print(s reconcile.Statement, stdout io.Writer) error {
	if !c.JSON {
		return s.WriteText(stdout)
	}
	encoder := json.NewEncoder(stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(s); err != nil {
		return fmt.Errorf("print the statement: %w", err)
	}
	return nil
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
