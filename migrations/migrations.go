// Package migrations brings a database to the schema that this program expects: its own tables, then River's.
//
// Files are named NNNN_what.sql, go forward only, run in one transaction each, and begin with a comment that says why
// and how the change is safe on a table in use. A file that has been released is never edited.
package migrations

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"daesa/internal/postgres"
)

//go:embed *.sql
var files embed.FS

const (
	// RiverSchema is where River keeps its tables.
	RiverSchema = "river"
	// versionTable records which of our files have been applied.
	versionTable = "schema_migrations"
)

// Apply applies what is missing. Several instances may call it at once: they take turns, and all return nil.
//
// A statement may take as long as it needs, but waits only briefly for a lock: a migration that queued behind a long
// transaction would make everybody else queue behind itself.
func Apply(ctx context.Context, pool *pgxpool.Pool) (err error) {
	own, err := ownPool(ctx, pool)
	if err != nil {
		return err
	}
	defer own.Close()

	unlock, err := lock(ctx, own)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()

	if err := applyOurs(ctx, own); err != nil {
		return err
	}
	return applyRiver(ctx, own)
}

// Pending is how many migrations are missing, ours and River's. It changes nothing.
func Pending(ctx context.Context, pool *pgxpool.Pool) (int, error) {
	ours, err := pendingOurs(ctx, pool)
	if err != nil {
		return 0, err
	}
	river, err := pendingRiver(ctx, pool)
	if err != nil {
		return 0, err
	}
	return ours + river, nil
}

// Digest changes whenever a migration does, ours or River's.
func Digest() string {
	digest := sha256.New()
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		panic(err) // only a malformed pattern
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err) // the file is part of the program
		}
		_, _ = fmt.Fprintf(digest, "%s %d\n%s", name, len(text), text)
	}
	if river, err := riverMigrator(nil); err == nil {
		for _, migration := range river.AllVersions() {
			_, _ = fmt.Fprintf(digest, "river %d\n%s", migration.Version, migration.SQLUp)
		}
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// ownPool has sessions without a bound on a statement, which the service's own have.
func ownPool(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Pool, error) {
	cfg := pool.Config()
	cfg.MaxConns = 4 // the lock, a migration, and what the two libraries look up meanwhile
	cfg.MinConns, cfg.MinIdleConns = 0, 0
	cfg.ConnConfig.RuntimeParams["statement_timeout"] = "0"
	cfg.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "0"
	own, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("migrations: open a pool: %w", err)
	}
	return own, nil
}

// lock waits for its turn as long as the context allows. Its session holds nothing else, so it blocks nobody.
func lock(ctx context.Context, pool *pgxpool.Pool) (unlock func() error, err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrations: connect: %w", err)
	}
	_, err = conn.Exec(ctx, `SET lock_timeout = 0; SELECT pg_advisory_lock(`+fmt.Sprint(int64(postgres.LockMigrations))+`)`)
	if err != nil {
		conn.Release()
		return nil, fmt.Errorf("migrations: wait for another instance to migrate: %w", err)
	}
	return func() error {
		// The end of the session gives the lock back, also if the context has ended meanwhile.
		if err := conn.Hijack().Close(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("migrations: give the lock back: %w", err)
		}
		return nil
	}, nil
}

func applyOurs(ctx context.Context, pool *pgxpool.Pool) (err error) {
	db := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := newProvider(db)
	if err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrations: apply ours: %w", err)
	}
	return nil
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	provider, err := goose.NewProvider(
		goose.DialectPostgres, db, files,
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithSlog(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		return nil, fmt.Errorf("migrations: read our files: %w", err)
	}
	return provider, nil
}

func applyRiver(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+RiverSchema); err != nil {
		return fmt.Errorf("migrations: create the schema of River: %w", err)
	}
	migrator, err := riverMigrator(pool)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrations: apply River's: %w", err)
	}
	return nil
}

func riverMigrator(pool *pgxpool.Pool) (*rivermigrate.Migrator[pgx.Tx], error) {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{
		Schema: RiverSchema,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, fmt.Errorf("migrations: read River's migrations: %w", err)
	}
	return migrator, nil
}
