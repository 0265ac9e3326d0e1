package postgrestest

import (
	"context"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
	"daesa/migrations"
)

const templatePrefix = "daesa_template_"

// ensureTemplate returns the name of a database with all migrations applied. Its name carries a digest of them, so a
// changed migration gets a template of its own.
func (s *shared) ensureTemplate(ctx context.Context) (string, error) {
	name := templatePrefix + migrations.Digest()[:16]
	conn, err := s.admin.Acquire(ctx)
	if err != nil {
		return "", fmt.Errorf("connect to the test server: %w", err)
	}
	defer conn.Release()

	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, postgres.LockTemplate); err != nil {
		return "", fmt.Errorf("wait for the template: %w", err)
	}
	defer conn.Exec(ctx, `SELECT pg_advisory_unlock($1)`, postgres.LockTemplate) //nolint:errcheck // ends with the session

	var made bool
	err = conn.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&made)
	if err != nil {
		return "", fmt.Errorf("look for the template: %w", err)
	}
	if made {
		return name, nil
	}
	return name, s.makeTemplate(ctx, conn, name)
}

// makeTemplate builds under another name and renames at the end, so that half a template never counts.
func (s *shared) makeTemplate(ctx context.Context, conn *pgxpool.Conn, name string) error {
	building := name + "_building"
	if err := execAll(
		ctx, conn,
		`DROP DATABASE IF EXISTS `+building+` WITH (FORCE)`,
		`CREATE DATABASE `+building,
	); err != nil {
		return err
	}

	address, err := withDatabase(s.url, building)
	if err != nil {
		return err
	}
	pool, err := postgres.Open(ctx, postgres.Config{URL: address})
	if err != nil {
		return err
	}
	err = migrations.Apply(ctx, pool)
	pool.Close()
	if err != nil {
		return fmt.Errorf("apply the migrations to the template: %w", err)
	}

	if err := execAll(
		ctx, conn,
		`ALTER DATABASE `+building+` RENAME TO `+name,
		`ALTER DATABASE `+name+` WITH ALLOW_CONNECTIONS false`,
	); err != nil {
		return err
	}
	return dropOldTemplates(ctx, conn)
}

// templatesKept is how many sets of migrations have their template at hand: other branches, other working copies.
const templatesKept = 6

func dropOldTemplates(ctx context.Context, conn *pgxpool.Conn) error {
	rows, err := conn.Query(ctx, `
		SELECT datname
		FROM pg_database
		WHERE starts_with(datname, $1)
		ORDER BY oid DESC
		OFFSET $2`, templatePrefix, templatesKept)
	if err != nil {
		return fmt.Errorf("look for old templates: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look for old templates: %w", err)
	}
	for _, name := range names {
		if err := execAll(ctx, conn, `DROP DATABASE IF EXISTS `+name); err != nil && !busy(err) {
			return err
		}
	}
	return nil
}

func execAll(ctx context.Context, conn *pgxpool.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// withDatabase is the same server's address of another database.
func withDatabase(address, database string) (string, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme == "" {
		return "", fmt.Errorf("the address of the test server is not a URL")
	}
	parsed.Path = "/" + database
	return parsed.String(), nil
}
