// Package ledgertest asserts that the books are sound. Every integration test ends with RequireSound.
package ledgertest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/ledger"
	"daesa/ledger/seal"
)

// RequireSound fails the test for every invariant of ledger/doc.go that the database breaks, and when the journal does not
// prove the states.
func RequireSound(tb testing.TB, db *pgxpool.Pool) {
	tb.Helper()
	ctx, stop := context.WithTimeout(context.WithoutCancel(tb.Context()), 30*time.Second)
	defer stop()
	violations, err := ledger.Check(ctx, db)
	if err != nil {
		tb.Fatalf("check invariants: %v", err)
	}
	for _, v := range violations {
		tb.Errorf("broken invariant %s", v)
	}
	requireProven(ctx, tb, db)
}

// requireProven recomputes the states from the entries. It needs two connections, which the pool under test may not have.
func requireProven(ctx context.Context, tb testing.TB, db *pgxpool.Pool) {
	tb.Helper()
	cfg := db.Config()
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = 2, 0, 0
	own, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		tb.Fatalf("verify the journal: %v", err)
	}
	defer own.Close()
	report, err := seal.Verify(ctx, own, seal.Options{})
	if err != nil {
		tb.Fatalf("verify the journal: %v", err)
	}
	for _, b := range report.Breaks {
		tb.Errorf("the journal does not verify: %s", b)
	}
}
