package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Collect reads all rows of a query that has few, each into a struct by the names of its columns. What names them in an
// error.
func Collect[T any](
	ctx context.Context, db interface {
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}, what, sql string, args ...any,
) ([]T, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return all, nil
}
