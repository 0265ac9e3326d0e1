package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errCopiesOnly is for what a [CopyInto] cannot do.
var errCopiesOnly = errors.New("postgres: only rows can be copied into a batch, nothing is sent yet")

// CopyInto is a transaction for a library that copies rows into a table: they are added to the batch as INSERTs, and
// nothing is sent. So they travel with what else the batch holds. Everything but CopyFrom fails.
func CopyInto(b *pgx.Batch) pgx.Tx { return copyInto{batch: b} }

type copyInto struct {
	pgx.Tx // nil: whatever is not below

	batch *pgx.Batch
}

// rowsAtOnce is how many rows one INSERT holds. However many are copied, there are only that many texts to prepare.
const rowsAtOnce = 2

// CopyFrom queues the rows.
func (c copyInto) CopyFrom(_ context.Context, table pgx.Identifier, columns []string, source pgx.CopyFromSource) (int64, error) {
	rows, args := int64(0), []any(nil)
	for source.Next() {
		values, err := source.Values()
		if err != nil {
			return 0, fmt.Errorf("read a row to copy into %s: %w", table.Sanitize(), err)
		}
		rows++
		if args = append(args, values...); len(args) == rowsAtOnce*len(columns) {
			c.batch.Queue(insertRows(table, columns, rowsAtOnce), args...)
			args = nil
		}
	}
	if err := source.Err(); err != nil {
		return 0, fmt.Errorf("read the rows to copy into %s: %w", table.Sanitize(), err)
	}
	if len(args) > 0 {
		c.batch.Queue(insertRows(table, columns, len(args)/len(columns)), args...)
	}
	return rows, nil
}

// insertRows is the statement that inserts so many rows.
func insertRows(table pgx.Identifier, columns []string, rows int) string {
	var sql strings.Builder
	sql.WriteString("INSERT INTO " + table.Sanitize() + " (")
	for i, column := range columns {
		if i > 0 {
			sql.WriteString(", ")
		}
		sql.WriteString(pgx.Identifier{column}.Sanitize())
	}
	sql.WriteString(") VALUES ")
	for n := range rows * len(columns) {
		switch {
		case n == 0:
			sql.WriteString("($1")
		case n%len(columns) == 0:
			fmt.Fprintf(&sql, "), ($%d", n+1)
		default:
			fmt.Fprintf(&sql, ", $%d", n+1)
		}
	}
	sql.WriteString(")")
	return sql.String()
}

// Exec refuses.
func (copyInto) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, errCopiesOnly
}

// Query refuses.
func (copyInto) Query(context.Context, string, ...any) (pgx.Rows, error) {
	return failedRows{err: errCopiesOnly}, errCopiesOnly
}

// QueryRow refuses.
func (copyInto) QueryRow(context.Context, string, ...any) pgx.Row {
	return firstRow{err: errCopiesOnly}
}

// SendBatch refuses.
func (copyInto) SendBatch(_ context.Context, b *pgx.Batch) pgx.BatchResults {
	return pgx.FailedBatchResults(b, errCopiesOnly)
}

// Conn is none.
func (copyInto) Conn() *pgx.Conn { return nil }
