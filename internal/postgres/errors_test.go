package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
)

func TestViolates(t *testing.T) {
	t.Parallel()
	refused := &pgconn.PgError{Code: "23505", ConstraintName: "payments_pkey"}
	tests := []struct {
		name       string
		err        error
		constraint string
		want       bool
	}{
		{"the constraint", refused, "payments_pkey", true},
		{"wrapped", fmt.Errorf("insert: %w", refused), "payments_pkey", true},
		{"another constraint", refused, "orders_pkey", false},
		{"no violation", &pgconn.PgError{Code: "42P01", ConstraintName: "payments_pkey"}, "payments_pkey", false},
		{"no database error", errors.New("payments_pkey"), "payments_pkey", false},
		{"nil", nil, "payments_pkey", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := postgres.Violates(test.err, test.constraint); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestIsUnavailable(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"nil", nil, false},
		{"connection failure", &pgconn.PgError{Code: "08006"}, true},
		{"too many connections", &pgconn.PgError{Code: "53300"}, true},
		{"disk full", &pgconn.PgError{Code: "53100"}, true},
		{"shutting down", &pgconn.PgError{Code: "57P01"}, true},
		{"starting up", &pgconn.PgError{Code: "57P03"}, true},
		{"statement timeout", &pgconn.PgError{Code: "57014"}, true},
		{"lock timeout", &pgconn.PgError{Code: "55P03"}, true},
		{"read-only after a failover", &pgconn.PgError{Code: "25006"}, true},
		{"deadline", fmt.Errorf("query: %w", context.DeadlineExceeded), true},
		{"connection reset", &net.OpError{Op: "read", Err: errors.New("reset")}, true},
		{"closed connection", fmt.Errorf("query: %w", pgconn.ErrConnClosed), true},
		{"caller went away", context.Canceled, false},
		{"violation", &pgconn.PgError{Code: "23505"}, false},
		{"syntax error", &pgconn.PgError{Code: "42601"}, false},
		{"deadlock", &pgconn.PgError{Code: "40P01"}, false},
		{"no rows", pgx.ErrNoRows, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := postgres.IsUnavailable(test.err); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestOpen_SettingsReachTheServer(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	for setting, want := range map[string]string{
		"application_name":                    "daesa",
		"timezone":                            "UTC",
		"statement_timeout":                   "1min",
		"lock_timeout":                        "5s",
		"idle_in_transaction_session_timeout": "30s",
	} {
		var got string
		if err := pool.QueryRow(t.Context(), `SELECT current_setting($1)`, setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s: got %q and %v, want %q", setting, got, err, want)
		}
	}
}

func TestOpen_URLWins(t *testing.T) {
	t.Parallel()
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: postgrestest.NewURL(t) + "&lock_timeout=7000"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	var got string
	if err := pool.QueryRow(t.Context(), `SHOW lock_timeout`).Scan(&got); err != nil || got != "7s" {
		t.Errorf("got %q and %v, want 7s", got, err)
	}
}

// TestOpen_ErrorsKeepThePassword: whatever is wrong with a URL, the error that ends up in a log does not tell the
// password.
func TestOpen_ErrorsKeepThePassword(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String() // nobody listens there any more
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)

	const password = "hunter2"
	for name, url := range map[string]string{
		"nobody listens":      "postgres://daesa:" + password + "@" + address + "/books",
		"keywords":            "host=127.0.0.1 port=" + port + " user=daesa password=" + password + " dbname=books",
		"unknown sslmode":     "postgres://daesa:" + password + "@127.0.0.1/books?sslmode=perhaps",
		"bad port":            "postgres://daesa:" + password + "@127.0.0.1:port/books",
		"not percent-encoded": "postgres://daesa:%" + password + "@127.0.0.1/books",
		"broken keywords":     "host=127.0.0.1 password='" + password,
		"slash in password":   "postgres://daesa:x/" + password + "@127.0.0.1/books",
	} {
		pool, err := postgres.Open(t.Context(), postgres.Config{URL: url})
		if err == nil {
			pool.Close()
			t.Errorf("%s: got a pool, want an error", name)
			continue
		}
		if strings.Contains(err.Error(), password) {
			t.Errorf("%s: the error tells the password: %v", name, err)
		}
	}
	_, err = postgres.Open(t.Context(), postgres.Config{URL: "postgres://daesa:" + password + "@" + address + "/books"})
	if err == nil || !strings.Contains(err.Error(), port) || !strings.Contains(err.Error(), "books") || !postgres.IsUnavailable(err) {
		t.Errorf("got %v, want an error that names database and port", err)
	}
}

func TestOpen_Config(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]postgres.Config{
		"no URL":           {},
		"negative pool":    {URL: "postgres://127.0.0.1/books", MaxConns: -1},
		"negative timeout": {URL: "postgres://127.0.0.1/books", LockTimeout: -1},
	} {
		if _, err := postgres.Open(t.Context(), cfg); err == nil || !strings.HasPrefix(err.Error(), "postgres: ") {
			t.Errorf("%s: got %v, want a sentence", name, err)
		}
	}
}

func TestMeter_CountsTurns(t *testing.T) {
	t.Parallel()
	pool, meter := postgrestest.NewMetered(t)
	if meter.RoundTrips() == 0 {
		t.Error("opening a connection was not counted")
	}
	for want := range int64(4) {
		meter.Reset()
		for i := range want {
			if _, err := pool.Exec(t.Context(), `SELECT `+strconv.FormatInt(i, 10)); err != nil {
				t.Fatal(err)
			}
		}
		if got := meter.RoundTrips(); got != want {
			t.Errorf("got %d round trips for %d statements", got, want)
		}
	}
}
