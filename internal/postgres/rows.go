package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// firstRows are the rows of the statement that travelled with BEGIN. As soon as they end, in whatever way, the batch
// they came in ends too, so that the connection is free for the next statement, as with any other rows.
type firstRows struct {
	pgx.Rows

	results pgx.BatchResults
	tx      *transaction
	closed  bool
	err     error
}

// Next moves to the next row and closes the rows after the last one.
func (r *firstRows) Next() bool {
	if r.Rows.Next() { //nolint:forbidigo // these rows are what pgx.CollectRows walks over
		return true
	}
	r.Close()
	return false
}

// Scan reads the row; a value that does not fit ends the rows.
func (r *firstRows) Scan(dest ...any) error {
	err := r.Rows.Scan(dest...) //nolint:forbidigo // these rows are what pgx.CollectRows walks over
	if err != nil {
		r.Close()
	}
	return err
}

// Values reads the row without a destination.
func (r *firstRows) Values() ([]any, error) {
	values, err := r.Rows.Values()
	if err != nil {
		r.Close()
	}
	return values, err
}

// Close ends the rows and their batch. It may be called again.
func (r *firstRows) Close() {
	if r.closed {
		return
	}
	r.closed = true
	r.Rows.Close()
	r.err = r.results.Close()
	r.tx.opened(r.Err())
}

// Err is what went wrong, to be asked once the rows have ended.
func (r *firstRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.err
}

// firstRow is the one row of the statement that travelled with BEGIN.
type firstRow struct {
	rows pgx.Rows
	err  error
}

// Scan reads the row and closes it. Without a row it returns pgx.ErrNoRows.
func (r firstRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	for _, d := range dest {
		if _, borrowed := d.(*pgtype.DriverBytes); borrowed {
			return errors.New("postgres: cannot scan into *pgtype.DriverBytes from QueryRow")
		}
	}
	if !r.rows.Next() { //nolint:forbidigo // this is QueryRow itself
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	scanErr := r.rows.Scan(dest...) //nolint:forbidigo // this is QueryRow itself
	r.rows.Close()
	if err := r.rows.Err(); err != nil {
		return err
	}
	return scanErr
}

// firstBatch are the results of a batch that travelled with BEGIN.
type firstBatch struct {
	pgx.BatchResults

	tx     *transaction
	closed bool
	err    error
}

// Close ends the batch. It may be called again.
func (b *firstBatch) Close() error {
	if !b.closed {
		b.closed = true
		b.err = b.BatchResults.Close()
		b.tx.opened(b.err)
	}
	return b.err
}

// Tx returns nil: the batch of the caller did not begin a transaction.
func (b *firstBatch) Tx() pgx.Tx {
	return nil
}

// failedRows are the rows of a statement that was never sent.
type failedRows struct {
	err error
}

var _ pgx.Rows = failedRows{}

func (r failedRows) Close()                                       {}
func (r failedRows) Err() error                                   { return r.err }
func (r failedRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (r failedRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (r failedRows) Next() bool                                   { return false }
func (r failedRows) Values() ([]any, error)                       { return nil, r.err }
func (r failedRows) RawValues() [][]byte                          { return nil }
func (r failedRows) Conn() *pgx.Conn                              { return nil }
func (r failedRows) TypeMap() *pgtype.Map                         { return nil }

func (r failedRows) Scan(...any) error {
	return fmt.Errorf("scan a row that was never read: %w", r.err)
}
