package stage

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/internal/postgres/embedded"
	"daesa/migrations"
)

// DatabaseConfig says where the PostgreSQL of a stage lives.
type DatabaseConfig struct {
	Dir    string // of the data
	BinDir string // of the programs; empty means the usual places
	Log    *slog.Logger
}

// Database is a running PostgreSQL that hands out empty, migrated databases.
type Database struct{ server *embedded.Server }

// StartDatabase starts PostgreSQL. The caller stops it.
func StartDatabase(ctx context.Context, cfg DatabaseConfig) (*Database, error) {
	server, err := embedded.Start(ctx, embedded.Config{Dir: cfg.Dir, BinDir: cfg.BinDir, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	return &Database{server}, nil
}

// Stop stops PostgreSQL. Its data stays.
func (d *Database) Stop() error { return d.server.Stop() }

// Bin is the folder of its programs, pg_dump and pg_restore among them.
func (d *Database) Bin() string { return d.server.Bin }

// Fresh makes the database of that name anew, with all migrations and nothing else in it, and returns its address.
// Whatever it held before is lost.
func (d *Database) Fresh(ctx context.Context, name string) (string, error) {
	address, err := d.Empty(ctx, name)
	if err != nil {
		return "", err
	}
	pool, err := postgres.Open(ctx, postgres.Config{URL: address, MaxConns: 2, ApplicationName: "stage"})
	if err != nil {
		return "", err
	}
	defer pool.Close()
	return address, migrations.Apply(ctx, pool)
}

// Empty makes the database of that name anew, with nothing in it, and returns its address.
func (d *Database) Empty(ctx context.Context, name string) (string, error) {
	if err := d.recreate(ctx, name); err != nil {
		return "", fmt.Errorf("make database %s: %w", name, err)
	}
	address, err := url.Parse(d.server.URL)
	if err != nil {
		return "", fmt.Errorf("read the server's address: %w", err)
	}
	address.Path = "/" + name
	return address.String(), nil
}

// Drop removes a database that Fresh made, with whoever still uses it.
func (d *Database) Drop(ctx context.Context, name string) error {
	return d.administer(ctx, `DROP DATABASE IF EXISTS `+pgx.Identifier{name}.Sanitize()+` WITH (FORCE)`)
}

func (d *Database) recreate(ctx context.Context, name string) error {
	if err := d.Drop(ctx, name); err != nil {
		return err
	}
	return d.administer(ctx, `CREATE DATABASE `+pgx.Identifier{name}.Sanitize())
}

// administer runs one statement outside the databases that are handed out.
func (d *Database) administer(ctx context.Context, sql string) error {
	pool, err := postgres.Open(ctx, postgres.Config{URL: d.server.URL, MaxConns: 1, ApplicationName: "stage"})
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, sql); err != nil {
		return fmt.Errorf("administer the databases: %w", err)
	}
	return nil
}
