package migrations

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
)

func pendingOurs(ctx context.Context, pool *pgxpool.Pool) (int, error) {
	applied, err := appliedOurs(ctx, pool)
	if err != nil {
		return 0, err
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return 0, fmt.Errorf("migrations: list our files: %w", err)
	}
	pending := 0
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return 0, fmt.Errorf("migrations: number of %s: %w", name, err)
		}
		if !applied[version] {
			pending++
		}
	}
	return pending, nil
}

// appliedOurs reads the version table itself: goose would create it, and a question must not change the database.
func appliedOurs(ctx context.Context, pool *pgxpool.Pool) (map[int64]bool, error) {
	var exists bool
	err := pool.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, "public."+versionTable).Scan(&exists)
	if err != nil {
		return nil, fmt.Errorf("migrations: look for table %s: %w", versionTable, err)
	}
	applied := map[int64]bool{}
	if !exists {
		return applied, nil
	}
	rows, err := pool.Query(ctx, `SELECT version_id FROM public.`+versionTable+` WHERE is_applied`)
	if err != nil {
		return nil, fmt.Errorf("migrations: read table %s: %w", versionTable, err)
	}
	versions, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("migrations: read table %s: %w", versionTable, err)
	}
	for _, version := range versions {
		applied[version] = true
	}
	return applied, nil
}

func pendingRiver(ctx context.Context, pool *pgxpool.Pool) (int, error) {
	migrator, err := riverMigrator(pool)
	if err != nil {
		return 0, err
	}
	existing, err := migrator.ExistingVersions(ctx)
	if err != nil {
		return 0, fmt.Errorf("migrations: ask River for its versions: %w", err)
	}
	return len(migrator.AllVersions()) - len(existing), nil
}
