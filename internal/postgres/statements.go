package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Exec runs one statement, or several when there are no arguments.
func (t *transaction) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.usable(); err != nil {
		return pgconn.CommandTag{}, err
	}
	if t.sent {
		return t.conn.Exec(ctx, sql, args...)
	}
	if len(args) == 0 {
		return t.openSimple(ctx, sql)
	}
	if !batchable(args) {
		if err := t.begin(ctx); err != nil {
			return pgconn.CommandTag{}, err
		}
		return t.conn.Exec(ctx, sql, args...)
	}

	results, err := t.openWith(ctx, func(b *pgx.Batch) { b.Queue(sql, args...) })
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := results.Exec()
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	t.opened(err)
	return tag, err
}

// Query runs a statement that returns rows.
func (t *transaction) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.usable(); err != nil {
		return failedRows{err: err}, err
	}
	if t.sent {
		return t.conn.Query(ctx, sql, args...) //nolint:rowserrcheck // the caller asks
	}
	if !batchable(args) {
		if err := t.begin(ctx); err != nil {
			return failedRows{err: err}, err
		}
		return t.conn.Query(ctx, sql, args...) //nolint:rowserrcheck // the caller asks
	}

	results, err := t.openWith(ctx, func(b *pgx.Batch) { b.Queue(sql, args...) })
	if err != nil {
		return failedRows{err: err}, err
	}
	rows, err := results.Query() //nolint:rowserrcheck // firstRows asks
	first := &firstRows{Rows: rows, results: results, tx: t}
	if err != nil {
		first.Close()
	}
	return first, err
}

// QueryRow runs a statement that returns at most one row; its errors wait for Scan.
func (t *transaction) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if t.sent && t.usable() == nil {
		return t.conn.QueryRow(ctx, sql, args...)
	}
	rows, err := t.Query(ctx, sql, args...) //nolint:rowserrcheck // firstRow asks
	return firstRow{rows: rows, err: err}
}

// SendBatch sends several statements at once.
func (t *transaction) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	if err := t.usable(); err != nil {
		return pgx.FailedBatchResults(batch, err)
	}
	if t.sent {
		return t.conn.SendBatch(ctx, batch)
	}

	results, err := t.openWith(ctx, func(b *pgx.Batch) {
		b.QueuedQueries = append(b.QueuedQueries, batch.QueuedQueries...)
	})
	if err != nil {
		return pgx.FailedBatchResults(batch, err)
	}
	return &firstBatch{BatchResults: results, tx: t}
}

// CopyFrom copies rows into a table by the copy protocol, which BEGIN cannot join.
func (t *transaction) CopyFrom(
	ctx context.Context, table pgx.Identifier, columns []string, source pgx.CopyFromSource,
) (int64, error) {
	if err := t.begin(ctx); err != nil {
		return 0, err
	}
	return t.conn.CopyFrom(ctx, table, columns, source)
}

// Prepare prepares a statement on the connection.
func (t *transaction) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	return t.conn.Prepare(ctx, name, sql)
}

// openWith sends BEGIN and what queue adds in one batch, and reads the answer to BEGIN.
func (t *transaction) openWith(ctx context.Context, queue func(*pgx.Batch)) (pgx.BatchResults, error) {
	batch := &pgx.Batch{}
	batch.BeginTx(t.options)
	queue(batch)

	t.sent = true
	results := t.conn.SendBatch(ctx, batch)
	if _, err := results.Exec(); err != nil {
		_ = results.Close() // the same error again
		t.opened(err)
		return nil, err
	}
	return results, nil
}

// openSimple sends BEGIN and the statements as one text, as the driver sends statements without arguments.
func (t *transaction) openSimple(ctx context.Context, sql string) (pgconn.CommandTag, error) {
	t.sent = true
	tag, err := t.conn.Exec(ctx, t.beginSQL()+";\n"+sql)
	t.opened(err)
	return tag, err
}

// begin sends BEGIN by itself, for what cannot travel with it.
func (t *transaction) begin(ctx context.Context) error {
	if err := t.usable(); err != nil {
		return err
	}
	if t.sent {
		return nil
	}
	t.sent = true
	_, err := t.conn.Exec(ctx, t.beginSQL())
	t.opened(err)
	return err
}

func (t *transaction) beginSQL() string {
	if t.options.BeginQuery != "" {
		return t.options.BeginQuery
	}
	words := []string{"begin"}
	if t.options.IsoLevel != "" {
		words = append(words, "isolation level", string(t.options.IsoLevel))
	}
	if t.options.AccessMode != "" {
		words = append(words, string(t.options.AccessMode))
	}
	if t.options.DeferrableMode != "" {
		words = append(words, string(t.options.DeferrableMode))
	}
	return strings.Join(words, " ")
}

// batchable reports whether the arguments carry no option that a batch does not know. A batch knows query rewriters,
// such as named arguments, and nothing else.
func batchable(args []any) bool {
	for _, arg := range args {
		switch arg.(type) {
		case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID:
			return false
		}
	}
	return true
}
