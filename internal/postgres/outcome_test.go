package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
)

// TestInTx_FailedStatementCannotBeCommitted: going on after an error must not look like success, wherever it occurred.
func TestInTx_FailedStatementCannotBeCommitted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		fn   func(ctx context.Context, tx pgx.Tx)
	}{
		{"first statement cannot be prepared", func(ctx context.Context, tx pgx.Tx) {
			_, _ = tx.Exec(ctx, `INSERT INTO missing (n) VALUES ($1)`, 1)
		}},
		{"first statement has a syntax error", func(ctx context.Context, tx pgx.Tx) {
			_, _ = tx.Exec(ctx, `INSRT INTO numbers`)
		}},
		{"first statement violates a constraint", func(ctx context.Context, tx pgx.Tx) {
			_, _ = tx.Exec(ctx, `INSERT INTO numbers (n, label) VALUES ($1, 'much too long')`, 1)
		}},
		{"first QueryRow fails", func(ctx context.Context, tx pgx.Tx) {
			var n int
			_ = tx.QueryRow(ctx, `SELECT 1 / $1::integer`, 0).Scan(&n)
		}},
		{"first Query fails", func(ctx context.Context, tx pgx.Tx) {
			rows, err := tx.Query(ctx, `SELECT 1 / $1::integer`, 0)
			if err == nil {
				_, _ = pgx.CollectRows(rows, pgx.RowTo[int])
			}
		}},
		{"first batch fails", func(ctx context.Context, tx pgx.Tx) {
			batch := &pgx.Batch{}
			batch.Queue(`SELECT 1 / $1::integer`, 0)
			_ = tx.SendBatch(ctx, batch).Close()
		}},
		{"later statement fails", func(ctx context.Context, tx pgx.Tx) {
			_, _ = tx.Exec(ctx, `INSERT INTO numbers (n) VALUES ($1)`, 5)
			_, _ = tx.Exec(ctx, `INSERT INTO missing (n) VALUES ($1)`, 1)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pool, _ := newTable(t)
			err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
				test.fn(t.Context(), tx)
				if _, err := tx.Exec(t.Context(), `INSERT INTO numbers (n) VALUES ($1)`, 9); err == nil {
					t.Error("a statement after a failed one succeeded")
				}
				return nil
			})
			if !errors.Is(err, pgx.ErrTxCommitRollback) {
				t.Errorf("got %v, want %v", err, pgx.ErrTxCommitRollback)
			}
			if got := numbers(t, pool); len(got) != 0 {
				t.Errorf("got %v, want nothing", got)
			}
		})
	}
}

func TestInTx_PanicRollsBack(t *testing.T) {
	t.Parallel()
	pool, _ := newTable(t)
	func() {
		defer func() {
			if got := recover(); got != "a bug" {
				t.Errorf("got panic %v, want the one of fn", got)
			}
		}()
		_ = postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `INSERT INTO numbers (n) VALUES ($1)`, 1); err != nil {
				return err
			}
			panic("a bug")
		})
	}()
	if got := numbers(t, pool); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
	if got := pool.Stat().AcquiredConns(); got != 0 {
		t.Errorf("%d connections are still out", got)
	}
}

func TestInTx_CanceledContext(t *testing.T) {
	t.Parallel()
	pool, _ := newTable(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO numbers (n) VALUES ($1)`, 1)
		cancel()
		return err
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, postgres.ErrCommitUnknown) {
		t.Errorf("got %v, want a commit that was not sent", err)
	}
	if got := numbers(t, pool); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
}

func TestInTx_ClosedTransaction(t *testing.T) {
	t.Parallel()
	pool, _ := newTable(t)
	var kept pgx.Tx
	err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		kept = tx
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	_, execErr := kept.Exec(t.Context(), `SELECT 1`)
	_, queryErr := kept.Query(t.Context(), `SELECT 1`) //nolint:rowserrcheck,sqlclosecheck // there are no rows
	for name, err := range map[string]error{
		"Exec":     execErr,
		"Query":    queryErr,
		"QueryRow": kept.QueryRow(t.Context(), `SELECT 1`).Scan(&n),
		"Batch":    kept.SendBatch(t.Context(), &pgx.Batch{}).Close(),
		"Commit":   kept.Commit(t.Context()),
		"Rollback": kept.Rollback(t.Context()),
	} {
		if !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("%s: got %v, want %v", name, err, pgx.ErrTxClosed)
		}
	}
}

// TestInTx_DeadlockIsRetried lets two transactions take two rows in opposite order.
func TestInTx_DeadlockIsRetried(t *testing.T) {
	t.Parallel()
	pool, _ := newTable(t)
	if _, err := pool.Exec(t.Context(), `INSERT INTO numbers (n) VALUES (1), (2)`); err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int64
	var both, done sync.WaitGroup
	both.Add(2)
	take := func(first, second int) {
		defer done.Done()
		met := false
		err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			runs.Add(1)
			if _, err := tx.Exec(t.Context(), `UPDATE numbers SET label = label || 'a' WHERE n = $1`, first); err != nil {
				return err
			}
			if !met {
				met = true
				both.Done()
				both.Wait()
			}
			_, err := tx.Exec(t.Context(), `UPDATE numbers SET label = label || 'b' WHERE n = $1`, second)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	done.Add(2)
	go take(1, 2)
	go take(2, 1)
	done.Wait()
	if got := runs.Load(); got < 3 {
		t.Errorf("got %d runs, want at least one more than two", got)
	}
	var written int
	if err := pool.QueryRow(t.Context(), `SELECT sum(length(label)) FROM numbers`).Scan(&written); err != nil || written != 4 {
		t.Errorf("got %d letters and %v, want each of the 4 updates once", written, err)
	}
}

func TestInTx_VictimIsGivenUpAfterFourRuns(t *testing.T) {
	t.Parallel()
	pool, _ := newTable(t)
	runs := 0
	err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		runs++
		_, err := tx.Exec(t.Context(), `DO $$ BEGIN RAISE serialization_failure; END $$`)
		return err
	})
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "40001" {
		t.Errorf("got %v, want a serialization failure", err)
	}
	if runs != 4 {
		t.Errorf("got %d runs, want 4", runs)
	}
}

func TestInTx_DeferredConstraintAtCommit(t *testing.T) {
	t.Parallel()
	pool, _ := newTable(t)
	err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SET CONSTRAINTS ALL DEFERRED; INSERT INTO numbers (n) VALUES (1), (1)`)
		return err
	})
	if !postgres.Violates(err, "numbers_pkey") || errors.Is(err, postgres.ErrCommitUnknown) {
		t.Errorf("got %v, want a definite violation of numbers_pkey", err)
	}
	if got := numbers(t, pool); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
}

// cutConn is a connection that breaks at the first COMMIT: it still arrives, the answer does not.
type cutConn struct {
	net.Conn
	cut atomic.Bool
}

func (c *cutConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("commit")) {
		c.cut.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.cut.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// TestInTx_LostAnswerToCommit: the transaction was committed, and nobody told us. It is reported as unknown and not
// run again.
func TestInTx_LostAnswerToCommit(t *testing.T) {
	t.Parallel()
	url := postgrestest.NewURL(t)
	pool, err := postgres.Open(t.Context(), postgres.Config{
		URL:      url,
		MaxConns: 1,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return &cutConn{Conn: conn}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), `CREATE TABLE numbers (n integer)`); err != nil {
		t.Fatal(err)
	}

	runs := 0
	err = postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		runs++
		_, err := tx.Exec(t.Context(), `INSERT INTO numbers (n) VALUES ($1)`, 1)
		return err
	})
	if !errors.Is(err, postgres.ErrCommitUnknown) || !postgres.IsUnavailable(err) {
		t.Errorf("got %v, want %v", err, postgres.ErrCommitUnknown)
	}
	if runs != 1 {
		t.Errorf("got %d runs, want 1", runs)
	}
	if diff := cmp.Diff([]int{1}, numbers(t, pool)); diff != "" {
		t.Errorf("rows on a new connection (-want +got):\n%s", diff)
	}
}

func TestInTx_ServerEndsTheSession(t *testing.T) {
	t.Parallel()
	pool, _ := newTable(t)
	err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SELECT pg_terminate_backend(pg_backend_pid())`)
		return err
	})
	if !postgres.IsUnavailable(err) {
		t.Errorf("got %v, want an error that says unavailable", err)
	}
	if got := numbers(t, pool); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
}

func TestInTx_PoolExhausted(t *testing.T) {
	t.Parallel()
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: postgrestest.NewURL(t), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	held, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err = postgres.InTx(ctx, pool, func(pgx.Tx) error {
		t.Error("fn ran without a connection")
		return nil
	})
	if !postgres.IsUnavailable(err) {
		t.Errorf("got %v, want an error that says unavailable", err)
	}
}
