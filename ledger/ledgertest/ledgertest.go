// Package ledgertest asserts that the books are sound. Every integration test ends with RequireSound.
package ledgertest

import (
	"context"
	"testing"
	"time"

	"daesa/ledger"

	"github.com/jackc/pgx/v5/pgxpool"
)

// RequireSound fails the test for every invariant of ledger/doc.go that the database breaks.
func RequireSound(t testing.TB, db *pgxpool.Pool) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer stop()
	violations, err := ledger.Check(ctx, db)
	if err != nil {
		t.Fatalf("check invariants: %v", err)
	}
	for _, v := range violations {
		t.Errorf("broken invariant %s", v)
	}
}
