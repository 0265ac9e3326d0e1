package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
)

// newTable gives a database with one table of numbers.
func newTable(t *testing.T) (*pgxpool.Pool, *postgrestest.Meter) {
	t.Helper()
	pool, meter := postgrestest.NewMetered(t)
	_, err := pool.Exec(t.Context(), `
		CREATE TABLE numbers (
			n integer CONSTRAINT numbers_pkey PRIMARY KEY DEFERRABLE INITIALLY IMMEDIATE,
			label text NOT NULL DEFAULT '' CONSTRAINT numbers_label_short CHECK (length(label) < 10)
		)`)
	if err != nil {
		t.Fatal(err)
	}
	return pool, meter
}

func numbers(t *testing.T, pool *pgxpool.Pool) []int {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT n FROM numbers ORDER BY n`)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestInTx_RoundTrips shows what a transaction costs once its statements are known to the connection: one round trip
// for each statement and one for COMMIT, none for BEGIN, none at all when nothing is sent.
func TestInTx_RoundTrips(t *testing.T) {
	t.Parallel()
	one := pgx.StrictNamedArgs{"n": 1}
	tests := []struct {
		name string
		want int64
		fn   func(ctx context.Context, tx pgx.Tx) error
	}{
		{"nothing", 0, func(context.Context, pgx.Tx) error { return nil }},
		{"Exec without arguments", 2, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE numbers SET label = 'x'; UPDATE numbers SET label = 'y'`)
			return err
		}},
		{"Exec with named arguments", 2, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE numbers SET label = 'x' WHERE n = @n`, one)
			return err
		}},
		{"QueryRow", 2, func(ctx context.Context, tx pgx.Tx) error {
			var n int
			return tx.QueryRow(ctx, `SELECT @n::integer`, one).Scan(&n)
		}},
		{"Query then Exec", 3, func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, `SELECT n FROM numbers WHERE n >= @n`, one)
			if err != nil {
				return err
			}
			if _, err := pgx.CollectRows(rows, pgx.RowTo[int]); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `UPDATE numbers SET label = 'x' WHERE n = $1`, 1)
			return err
		}},
		{"SendBatch", 2, func(ctx context.Context, tx pgx.Tx) error {
			batch := &pgx.Batch{}
			batch.Queue(`UPDATE numbers SET label = 'x' WHERE n = @n`, one)
			batch.Queue(`UPDATE numbers SET label = 'y' WHERE n = @n`, one)
			return tx.SendBatch(ctx, batch).Close()
		}},
		{"option that a batch does not know", 3, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE numbers SET label = 'x' WHERE n = $1`, pgx.QueryExecModeExec, 1)
			return err
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pool, meter := newTable(t)
			for range 2 { // the first time also prepares the statements
				meter.Reset()
				err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error { return test.fn(t.Context(), tx) })
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := meter.RoundTrips(); got != test.want {
				t.Errorf("got %d round trips, want %d", got, test.want)
			}
		})
	}
}

// TestInTx_FirstStatement commits and rolls back whatever kind of statement comes first.
func TestInTx_FirstStatement(t *testing.T) {
	t.Parallel()
	const insert = `INSERT INTO numbers (n) VALUES (@n) RETURNING n`
	args := pgx.StrictNamedArgs{"n": 7}
	tests := []struct {
		name string
		fn   func(ctx context.Context, tx pgx.Tx) error
	}{
		{"Exec", func(ctx context.Context, tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, insert, args)
			if err == nil && tag.RowsAffected() != 1 {
				err = errors.New("not one row")
			}
			return err
		}},
		{"Exec simple", func(ctx context.Context, tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `INSERT INTO numbers (n) VALUES (7) -- a comment at the end`)
			if err == nil && tag.RowsAffected() != 1 {
				err = errors.New("not one row")
			}
			return err
		}},
		{"Query", func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, insert, args)
			if err != nil {
				return err
			}
			_, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
			return err
		}},
		{"Query with option", func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, insert, pgx.QueryExecModeExec, args)
			if err != nil {
				return err
			}
			_, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
			return err
		}},
		{"QueryRow", func(ctx context.Context, tx pgx.Tx) error {
			var n int
			return tx.QueryRow(ctx, insert, args).Scan(&n)
		}},
		{"SendBatch", func(ctx context.Context, tx pgx.Tx) error {
			batch := &pgx.Batch{}
			seen := 0
			batch.Queue(insert, args).QueryRow(func(row pgx.Row) error { return row.Scan(&seen) })
			if err := tx.SendBatch(ctx, batch).Close(); err != nil {
				return err
			}
			if seen != 7 {
				return errors.New("the callback did not see the row")
			}
			return nil
		}},
		{"CopyFrom", func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.CopyFrom(ctx, pgx.Identifier{"numbers"}, []string{"n"}, pgx.CopyFromRows([][]any{{7}}))
			return err
		}},
		{"Prepare", func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Prepare(ctx, "insert_number", `INSERT INTO numbers (n) VALUES ($1)`); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "insert_number", 7)
			return err
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pool, _ := newTable(t)
			refused := errors.New("refused by the domain")

			err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
				if err := test.fn(t.Context(), tx); err != nil {
					return err
				}
				return refused
			})
			if !errors.Is(err, refused) {
				t.Fatalf("got %v, want %v", err, refused)
			}
			if got := numbers(t, pool); len(got) != 0 {
				t.Fatalf("got %v after a roll-back, want nothing", got)
			}

			err = postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error { return test.fn(t.Context(), tx) })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]int{7}, numbers(t, pool)); diff != "" {
				t.Errorf("rows after the commit (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInTx_OptionsReachTheServer(t *testing.T) {
	t.Parallel()
	pool, _ := newTable(t)
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	settings := func(tx pgx.Tx) (isolation, readOnly string, err error) {
		err = tx.QueryRow(t.Context(), `
			SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')`).
			Scan(&isolation, &readOnly)
		return isolation, readOnly, err
	}
	for name, first := range map[string]string{"batched": "", "simple": `SELECT 1`} {
		err := postgres.InTxWith(t.Context(), pool, options, func(tx pgx.Tx) error {
			if first != "" {
				if _, err := tx.Exec(t.Context(), first); err != nil {
					return err
				}
			}
			isolation, readOnly, err := settings(tx)
			if isolation != "repeatable read" || readOnly != "on" {
				t.Errorf("%s: got %s, read only %s; want repeatable read, on", name, isolation, readOnly)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestInTx_QueryRowWithoutRows(t *testing.T) {
	t.Parallel()
	pool, _ := newTable(t)
	err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		var n int
		if err := tx.QueryRow(t.Context(), `SELECT n FROM numbers WHERE n = $1`, 1).Scan(&n); !errors.Is(err, pgx.ErrNoRows) {
			t.Errorf("got %v, want %v", err, pgx.ErrNoRows)
		}
		_, err := tx.Exec(t.Context(), `INSERT INTO numbers (n) VALUES ($1)`, 1)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1}, numbers(t, pool)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// TestInTx_RowsLeftOpen: rows that were not read to their end keep the connection busy. That is an error, and the
// connection is not given to anybody else.
func TestInTx_RowsLeftOpen(t *testing.T) {
	t.Parallel()
	pool, _ := newTable(t)
	err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Query(t.Context(), `SELECT generate_series(1, $1::integer)`, 100_000) //nolint:rowserrcheck,sqlclosecheck // on purpose
		return err
	})
	if err == nil || errors.Is(err, postgres.ErrCommitUnknown) {
		t.Errorf("got %v, want a definite error", err)
	}
	if got := numbers(t, pool); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
}

// TestInTx_RowsThatDoNotFit: rows that end early, because a value does not fit its destination, leave a usable
// transaction, as with rows of any other statement.
func TestInTx_RowsThatDoNotFit(t *testing.T) {
	t.Parallel()
	pool, _ := newTable(t)
	err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT 'x' || g FROM generate_series(1, $1::integer) AS g`, 100)
		if err != nil {
			return err
		}
		if _, err := pgx.CollectRows(rows, pgx.RowTo[int]); err == nil {
			t.Error("text was read as a number")
		}
		_, err = tx.Exec(t.Context(), `INSERT INTO numbers (n) VALUES ($1)`, 1)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestInTx_RefusesNesting(t *testing.T) {
	t.Parallel()
	pool, _ := newTable(t)
	err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Begin(t.Context())
		return err
	})
	if !errors.Is(err, postgres.ErrNestedTransaction) {
		t.Errorf("got %v, want %v", err, postgres.ErrNestedTransaction)
	}
}
