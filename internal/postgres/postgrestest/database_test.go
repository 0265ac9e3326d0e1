package postgrestest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"daesa/migrations"
)

func TestMain(m *testing.M) { Run(m) }

// trial is a test within a test, so that its failure can be looked at.
type trial struct {
	testing.TB

	failed   bool
	logged   strings.Builder
	cleanups []func()
}

func (tr *trial) Failed() bool               { return tr.failed }
func (tr *trial) Cleanup(f func())           { tr.cleanups = append(tr.cleanups, f) }
func (tr *trial) Logf(f string, args ...any) { fmt.Fprintf(&tr.logged, f+"\n", args...) }

// end runs what the trial left to be cleaned up, last first.
func (tr *trial) end() {
	for _, cleanup := range slices.Backward(tr.cleanups) {
		cleanup()
	}
}

func exists(t *testing.T, url string) bool {
	t.Helper()
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	var found bool
	err = binary.admin.QueryRow(t.Context(), `
		SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, cfg.Database).Scan(&found)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestNew_HasAllMigrationsAndNobodyElsesRows(t *testing.T) {
	t.Parallel()
	first, second := New(t), New(t)
	for _, sql := range []string{`CREATE TABLE mine (n integer)`, `INSERT INTO mine VALUES (1)`} {
		if _, err := first.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var leaked bool
	if err := second.QueryRow(t.Context(), `SELECT to_regclass('mine') IS NOT NULL`).Scan(&leaked); err != nil || leaked {
		t.Errorf("got a table of another test: %t, %v", leaked, err)
	}
	if pending, err := migrations.Pending(t.Context(), second); err != nil || pending != 0 {
		t.Errorf("got %d pending migrations and %v, want none", pending, err)
	}
}

func TestNewURL_DatabaseEndsWithTheTest(t *testing.T) {
	t.Parallel()
	good := &trial{TB: t}
	url := NewURL(good)
	if !exists(t, url) {
		t.Fatalf("%s does not exist", url)
	}
	good.end()
	if exists(t, url) {
		t.Errorf("%s is still there after the test", url)
	}
}

func TestNewURL_FailedTestKeepsItsDatabase(t *testing.T) {
	t.Parallel()
	bad := &trial{TB: t, failed: true}
	url := NewURL(bad)
	bad.end()
	if !exists(t, url) {
		t.Errorf("%s is gone", url)
	}
	if !strings.Contains(bad.logged.String(), url) {
		t.Errorf("got log %q, want the address", bad.logged.String())
	}
	bad.failed = false
	bad.end()
}

func TestRemoveStale(t *testing.T) {
	t.Parallel()
	NewURL(t)              // the server is there
	const nobody = 1 << 30 // no process has such a number
	stale := fmt.Sprintf("%s%d_1", stalePrefix(), nobody)
	alive := fmt.Sprintf("%s%d_stays", stalePrefix(), os.Getpid())
	for _, name := range []string{stale, alive} {
		if _, err := binary.admin.Exec(t.Context(), `CREATE DATABASE `+name); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if _, err := binary.admin.Exec(context.WithoutCancel(t.Context()), `DROP DATABASE `+alive); err != nil {
			t.Error(err)
		}
	})

	if err := binary.removeStale(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exists(t, "postgres:///"+stale) {
		t.Error("the database of a process that is gone is still there")
	}
	if !exists(t, "postgres:///"+alive) {
		t.Error("the database of a living process is gone")
	}
}

func TestWithDatabase(t *testing.T) {
	t.Parallel()
	got, err := withDatabase("postgres://user@/postgres?host=%2Fsocket&port=5432", "books")
	if want := "postgres://user@/books?host=%2Fsocket&port=5432"; err != nil || got != want {
		t.Errorf("got %s and %v, want %s", got, err, want)
	}
	if got, err := withDatabase("host=/socket dbname=postgres", "books"); err == nil {
		t.Errorf("got %s, want a refusal of keywords", got)
	}
}
