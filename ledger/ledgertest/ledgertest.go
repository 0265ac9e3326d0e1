// Package ledgertest asserts that the books are sound. Every integration test ends with RequireSound.
package ledgertest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/ledger"
)

// RequireSound fails the test for every invariant of ledger/doc.go that the database breaks.
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
}
