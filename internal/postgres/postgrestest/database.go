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
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return open(t, postgres.Config{URL: NewURL(t)})
}

// NewMetered is New with a meter of the round trips that the pool makes.
func NewMetered(t testing.TB) (*pgxpool.Pool, *Meter) {
	t.Helper()
	cfg := postgres.Config{URL: NewURL(t)}
	meter := CountRoundTrips(&cfg)
	return open(t, cfg), meter
}

func open(t testing.TB, cfg postgres.Config) *pgxpool.Pool {
	t.Helper()
	cfg.MaxConns = maxConns
	pool, err := postgres.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// NewURL is New for a test that opens its own connections, to which it gives the address.
func NewURL(t testing.TB) string {
	t.Helper()
	return create(t, func(s *shared) string { return s.template })
}

// NewEmptyURL is the address of a database without any migrations applied.
func NewEmptyURL(t testing.TB) string {
	t.Helper()
	return create(t, func(*shared) string { return "template0" })
}

func create(t testing.TB, template func(*shared) string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a database, which -short leaves out")
	}
	ctx := context.WithoutCancel(t.Context()) // what is shared must not end with the first test
	if err := binary.start(ctx); err != nil {
		t.Fatalf("postgrestest: %v", err)
	}

	name := fmt.Sprintf("%s%d_%d", stalePrefix(), os.Getpid(), binary.count.Add(1))
	clone := fmt.Sprintf(`CREATE DATABASE %s TEMPLATE %s STRATEGY file_copy`, name, template(&binary))
	if _, err := binary.admin.Exec(ctx, clone, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("postgrestest: create a database: %v", err)
	}
	address, err := withDatabase(binary.url, name)
	if err != nil {
		t.Fatalf("postgrestest: %v", err)
	}
	t.Cleanup(func() { remove(t, name, address) })
	return address
}

// remove drops the database of a test, or keeps it for the person who looks into the failure.
func remove(t testing.TB, name, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanupTimeout)
	defer cancel()
	if t.Failed() {
		t.Logf("postgrestest: the database is kept until the next run: %s", address)
		if binary.server != nil {
			t.Logf("postgrestest: its server runs as long as tests do; its data are in the folder of its socket")
		}
		return
	}
	if _, err := binary.admin.Exec(ctx, `DROP DATABASE `+name+` WITH (FORCE)`, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Errorf("postgrestest: drop the database: %v", err)
	}
}
