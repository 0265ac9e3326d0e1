package migrations_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/migrations"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing them")

func TestMain(m *testing.M) { postgrestest.Run(m) }

func empty(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: postgrestest.NewEmptyURL(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestApply_TwiceIsOnce(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	missing, err := migrations.Pending(t.Context(), pool)
	if err != nil || missing == 0 {
		t.Fatalf("an empty database: got %d pending and %v, want all", missing, err)
	}
	for run := range 2 {
		if err := migrations.Apply(t.Context(), pool); err != nil {
			t.Fatalf("run %d: %v", run, err)
		}
		if pending, err := migrations.Pending(t.Context(), pool); err != nil || pending != 0 {
			t.Fatalf("run %d: got %d pending and %v, want none", run, pending, err)
		}
	}
}

// TestApply_InstancesRace starts several instances on an empty database at once.
func TestApply_InstancesRace(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	group, ctx := errgroup.WithContext(t.Context())
	for range 4 {
		group.Go(func() error { return migrations.Apply(ctx, pool) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	var twice int
	err := pool.QueryRow(t.Context(), `
		SELECT count(*) - count(DISTINCT version_id)
		FROM schema_migrations`).Scan(&twice)
	if err != nil || twice != 0 {
		t.Errorf("got %d migrations applied twice and %v, want none", twice, err)
	}
}

// TestApply_WaitsNoLongerThanAsked: an instance whose turn does not come gives up with its context.
func TestApply_WaitsNoLongerThanAsked(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := migrations.Apply(ctx, pool); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestDigest_IsStable(t *testing.T) {
	t.Parallel()
	if first, second := migrations.Digest(), migrations.Digest(); first != second || len(first) != 64 {
		t.Errorf("got %q, then %q", first, second)
	}
}

// TestFiles_SayWhy holds every file to its form: numbered, forward only, explained.
func TestFiles_SayWhy(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("got %d files and %v", len(names), err)
	}
	form := regexp.MustCompile(`^\d{4}_[a-z0-9_]+\.sql$`)
	for i, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !form.MatchString(name) {
			t.Errorf("%s: a file is named NNNN_what.sql", name)
		}
		if i > 0 && names[i-1][:4] == name[:4] {
			t.Errorf("%s: %s has the same number", name, names[i-1])
		}
		if !strings.Contains(string(text), "-- +goose Up") || strings.Contains(string(text), "+goose Down") {
			t.Errorf("%s: a migration has an Up part and no Down part", name)
		}
		if comments := regexp.MustCompile(`(?m)^-- [A-Z].*`).FindString(string(text)); comments == "" {
			t.Errorf("%s: a comment at the head says why, and how it is safe on a table in use", name)
		}
	}
}

// TestSchema_Golden shows the whole schema as one text, so that a review sees what a migration adds up to. The dump's
// form belongs to the version of PostgreSQL that is named in its first line; any other version skips.
func TestSchema_Golden(t *testing.T) {
	t.Parallel()
	dump, err := exec.LookPath("pg_dump")
	if err != nil {
		t.Skip("needs pg_dump")
	}
	url := postgrestest.NewURL(t)
	output, err := exec.CommandContext(t.Context(), dump, "--schema-only", "--no-owner", "--no-privileges",
		"--schema=public", "--exclude-table=schema_migrations*", url).Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("pg_dump: %v: %s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	got := normalize(string(output))

	golden := filepath.Join("testdata", "schema.sql")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if head(got) != head(string(want)) {
		t.Skipf("the golden file is of %s, this is %s", head(string(want)), head(got))
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the schema changed; if that is meant, run `go test ./migrations -update` (-want +got):\n%s", diff)
	}
}

// normalize drops what differs between two dumps of the same schema and keeps the major version as the first line.
func normalize(dump string) string {
	major := regexp.MustCompile(`Dumped by pg_dump version (\d+)`).FindStringSubmatch(dump)
	kept := []string{"-- PostgreSQL " + major[1], ""}
	for line := range strings.Lines(dump) {
		line = strings.TrimRight(line, "\r\n")
		noise := line == "--" || strings.HasPrefix(line, "-- Dumped") || strings.HasPrefix(line, "-- PostgreSQL database dump") ||
			strings.HasPrefix(line, `\`) || strings.HasPrefix(line, "SET ") || strings.HasPrefix(line, "SELECT pg_catalog.set_config")
		if noise || line == "" && kept[len(kept)-1] == "" {
			continue
		}
		kept = append(kept, line)
	}
	return strings.TrimRight(strings.Join(kept, "\n"), "\n") + "\n"
}

func head(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}
