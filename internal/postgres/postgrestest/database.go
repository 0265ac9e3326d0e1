package postgrestest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
)

// maxConns is enough for a test that races against itself, and little enough for many tests at once.
const maxConns = 8

// cleanupTimeout bounds the removal of a database after its test.
const cleanupTimeout = 30 * time.Second

// New returns a pool to a fresh database of the test's own. The pool is closed and the database removed at the end of
// the test; if the test failed, the database is kept. With -short the test is skipped.
func New(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	return open(tb, postgres.Config{URL: NewURL(tb)})
}

// NewMetered is New with a meter of the round trips that the pool makes.
func NewMetered(tb testing.TB) (*pgxpool.Pool, *Meter) {
	tb.Helper()
	cfg := postgres.Config{URL: NewURL(tb)}
	meter := CountRoundTrips(&cfg)
	return open(tb, cfg), meter
}

func open(tb testing.TB, cfg postgres.Config) *pgxpool.Pool {
	tb.Helper()
	cfg.MaxConns = maxConns
	pool, err := postgres.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

// NewURL is New for a test that opens its own connections, to which it gives the address.
func NewURL(tb testing.TB) string {
	tb.Helper()
	return create(tb, func(s *shared) string { return s.template })
}

// NewEmptyURL is the address of a database without any migrations applied.
func NewEmptyURL(tb testing.TB) string {
	tb.Helper()
	return create(tb, func(*shared) string { return "template0" })
}

func create(tb testing.TB, template func(*shared) string) string {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs a database, which -short leaves out")
	}
	ctx := context.WithoutCancel(tb.Context()) // what is shared must not end with the first test
	if err := binary.start(ctx); err != nil {
		tb.Fatalf("postgrestest: %v", err)
	}

	name := fmt.Sprintf("%s%d_%d", stalePrefix(), os.Getpid(), binary.count.Add(1))
	clone := fmt.Sprintf(`CREATE DATABASE %s TEMPLATE %s STRATEGY file_copy`, name, template(&binary))
	if _, err := binary.admin.Exec(ctx, clone, pgx.QueryExecModeSimpleProtocol); err != nil {
		tb.Fatalf("postgrestest: create a database: %v", err)
	}
	address, err := withDatabase(binary.url, name)
	if err != nil {
		tb.Fatalf("postgrestest: %v", err)
	}
	tb.Cleanup(func() { remove(tb, name, address) })
	return address
}

// remove drops the database of a test, or keeps it for the person who looks into the failure.
func remove(tb testing.TB, name, address string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), cleanupTimeout)
	defer cancel()
	if tb.Failed() {
		tb.Logf("postgrestest: the database is kept until the next run: %s", address)
		if binary.server != nil {
			tb.Logf("postgrestest: its server runs as long as tests do; its data are in the folder of its socket")
		}
		return
	}
	if _, err := binary.admin.Exec(ctx, `DROP DATABASE `+name+` WITH (FORCE)`, pgx.QueryExecModeSimpleProtocol); err != nil {
		tb.Errorf("postgrestest: drop the database: %v", err)
	}
}
