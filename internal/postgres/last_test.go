package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
)

// leave leaves one statement to go with COMMIT.
func leave(tx pgx.Tx, committed func(), sql string, args ...any) error {
	var b pgx.Batch
	b.Queue(sql, args...)
	return postgres.WithCommit(tx, &b, committed)
}

// TestWithCommit_OneRoundTrip: what goes with COMMIT costs none of its own, as first statement neither.
func TestWithCommit_OneRoundTrip(t *testing.T) {
	t.Parallel()
	pool, meter := newTable(t)
	read := func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SELECT n FROM numbers WHERE n = $1 FOR UPDATE`, 0)
		return err
	}
	nothing := func(pgx.Tx) error { return nil }
	for _, test := range []struct {
		name  string
		first func(pgx.Tx) error
		want  int64
	}{{"prepared on this connection", read, -1}, {"after a statement", read, 2}, {"also prepared", nothing, -1}, {"alone", nothing, 1}} {
		before, done := meter.RoundTrips(), 0
		err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			if err := test.first(tx); err != nil {
				return err
			}
			return leave(tx, func() { done++ }, `INSERT INTO numbers (n) VALUES ($1)`, len(test.name))
		})
		if got := meter.RoundTrips() - before; err != nil || done != 1 || (test.want > 0 && got != test.want) {
			t.Errorf("%s: got %v, %d round trips and %d commits, want %d round trips", test.name, err, got, done, test.want)
		}
	}
	if got := numbers(t, pool); len(got) != 4 {
		t.Errorf("got %v, want four rows", got)
	}
}

// TestWithCommit_NothingIsHalfDone: whatever fails, statement or COMMIT, nothing stays, and the error says that nothing
// does.
func TestWithCommit_NothingIsHalfDone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		fn    func(ctx context.Context, tx pgx.Tx) error
		check func(error) bool
	}{
		{"a statement fails", func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO numbers (n) VALUES ($1)`, 1)
			return errors.Join(err, leave(tx, nil, `SELECT 1 / $1::integer`, 0))
		}, func(err error) bool {
			var failed *pgconn.PgError
			return errors.As(err, &failed) && failed.Code == "22012"
		}},
		{"a statement cannot be prepared", func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO numbers (n) VALUES ($1)`, 1)
			return errors.Join(err, leave(tx, nil, `INSERT INTO missing (n) VALUES ($1)`, 1))
		}, func(err error) bool {
			var failed *pgconn.PgError
			return errors.As(err, &failed) && failed.Code == "42P01"
		}},
		{"a parameter cannot be sent", func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO numbers (n) VALUES ($1)`, 1)
			return errors.Join(err, leave(tx, nil, `INSERT INTO numbers (n) VALUES ($1)`, "no number"))
		}, func(err error) bool { return err != nil }},
		{"COMMIT is refused", func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SET CONSTRAINTS ALL DEFERRED; INSERT INTO numbers (n) VALUES (1)`)
			return errors.Join(err, leave(tx, nil, `INSERT INTO numbers (n) VALUES ($1)`, 1))
		}, func(err error) bool { return postgres.Violates(err, "numbers_pkey") }},
		{"an earlier statement had failed", func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, `SELECT 1 / $1::integer`, 0)
			return leave(tx, nil, `INSERT INTO numbers (n) VALUES ($1)`, 1)
		}, func(err error) bool { return err != nil }},
		{"something follows", func(ctx context.Context, tx pgx.Tx) error {
			if err := leave(tx, nil, `INSERT INTO numbers (n) VALUES ($1)`, 1); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `INSERT INTO numbers (n) VALUES ($1)`, 2)
			return err
		}, func(err error) bool { return err != nil }},
		{"left twice", func(_ context.Context, tx pgx.Tx) error {
			return errors.Join(leave(tx, nil, `INSERT INTO numbers (n) VALUES ($1)`, 1), leave(tx, nil, `INSERT INTO numbers (n) VALUES ($1)`, 2))
		}, func(err error) bool { return err != nil }},
		{"fn fails", func(_ context.Context, tx pgx.Tx) error {
			return errors.Join(leave(tx, nil, `INSERT INTO numbers (n) VALUES ($1)`, 1), errors.New("refused"))
		}, func(err error) bool { return err != nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pool, _ := newTable(t)
			err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error { return test.fn(t.Context(), tx) })
			if !test.check(err) || errors.Is(err, postgres.ErrCommitUnknown) {
				t.Errorf("got %v", err)
			}
			if got := numbers(t, pool); len(got) != 0 {
				t.Errorf("got %v, want nothing", got)
			}
		})
	}
}

// TestWithCommit_VictimIsRunAgain: a statement that loses to another transaction undoes everything, and all of it is run
// once more.
func TestWithCommit_VictimIsRunAgain(t *testing.T) {
	t.Parallel()
	pool, _ := newTable(t)
	runs, done := 0, 0
	err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		runs++
		if _, err := tx.Exec(t.Context(), `INSERT INTO numbers (n) VALUES ($1)`, runs); err != nil {
			return err
		}
		if runs == 1 {
			return leave(tx, func() { done++ }, `DO $$ BEGIN RAISE serialization_failure; END $$`)
		}
		return leave(tx, func() { done++ }, `INSERT INTO numbers (n) VALUES ($1)`, 9)
	})
	if diff := cmp.Diff([]int{2, 9}, numbers(t, pool)); err != nil || runs != 2 || done != 1 || diff != "" {
		t.Errorf("got %v after %d runs and %d commits (-want +got):\n%s", err, runs, done, diff)
	}
}

// lastConn breaks with the write that has the mark in it: before it arrives, or once the server has done what it says.
type lastConn struct {
	net.Conn

	arrives bool
	cut     atomic.Bool
}

const lastMark = "goes with commit"

func (c *lastConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(lastMark)) {
		c.cut.Store(true)
		if !c.arrives {
			return len(b), nil
		}
	}
	return c.Conn.Write(b)
}

func (c *lastConn) Read(b []byte) (int, error) {
	if c.cut.Load() && !c.arrives {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.Conn.Read(b)
	if c.cut.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// TestWithCommit_LineBreaks: statements and COMMIT may have arrived or not, so it is unknown, and not run again.
func TestWithCommit_LineBreaks(t *testing.T) {
	t.Parallel()
	for _, arrives := range []bool{true, false} {
		url := postgrestest.NewURL(t)
		pool, err := postgres.Open(t.Context(), postgres.Config{
			URL: url, MaxConns: 1,
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
				return &lastConn{Conn: conn, arrives: arrives}, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		if _, err := pool.Exec(t.Context(), `CREATE TABLE numbers (n integer, label text)`); err != nil {
			t.Fatal(err)
		}
		runs, done := 0, 0
		err = postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			runs++
			if _, err := tx.Exec(t.Context(), `INSERT INTO numbers (n) VALUES ($1)`, 1); err != nil {
				return err
			}
			return leave(tx, func() { done++ }, `INSERT INTO numbers (n, label) VALUES (2, $1)`, lastMark)
		})
		if !errors.Is(err, postgres.ErrCommitUnknown) || !postgres.IsUnavailable(err) || runs != 1 || done != 0 {
			t.Errorf("arrives %v: got %v after %d runs and %d commits, want %v after one", arrives, err, runs, done, postgres.ErrCommitUnknown)
		}
		var want []int
		if arrives {
			want = []int{1, 2}
		}
		if diff := cmp.Diff(want, numbers(t, pool), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("arrives %v: rows on a new connection (-want +got):\n%s", arrives, diff)
		}
	}
}

// TestWithCommit_ContextEnds before anything is sent: then nothing was.
func TestWithCommit_ContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	pool, _ := newTable(t)
	err := postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO numbers (n) VALUES ($1)`, 1)
		cancel()
		return errors.Join(err, leave(tx, nil, `INSERT INTO numbers (n) VALUES ($1)`, 2))
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, postgres.ErrCommitUnknown) {
		t.Errorf("got %v, want a commit that was not sent", err)
	}
	if got := numbers(t, pool); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
}

// TestCopyInto queues what a library copies, and nothing else.
func TestCopyInto(t *testing.T) {
	t.Parallel()
	pool, _ := newTable(t)
	var b pgx.Batch
	tx := postgres.CopyInto(&b)
	n, err := tx.CopyFrom(t.Context(), pgx.Identifier{"public", "numbers"}, []string{"n", "label"}, pgx.CopyFromRows([][]any{{1, "a"}, {2, "b"}, {3, "c"}}))
	if err != nil || n != 3 || b.Len() != 2 {
		t.Fatalf("got %d rows in %d statements and %v", n, b.Len(), err)
	}
	if n, err := tx.CopyFrom(t.Context(), pgx.Identifier{"numbers"}, []string{"n"}, pgx.CopyFromRows(nil)); n != 0 || err != nil || b.Len() != 2 {
		t.Errorf("got %d rows of none, %d statements and %v", n, b.Len(), err)
	}
	var one int
	for what, err := range map[string]error{
		"Exec":      second(tx.Exec(t.Context(), `SELECT 1`)),
		"Query":     second(tx.Query(t.Context(), `SELECT 1`)),
		"QueryRow":  tx.QueryRow(t.Context(), `SELECT 1`).Scan(&one),
		"SendBatch": tx.SendBatch(t.Context(), &b).Close(),
		"foreign":   postgres.WithCommit(tx, &b, nil),
	} {
		if err == nil {
			t.Errorf("%s: got no error", what)
		}
	}
	if err := pool.SendBatch(t.Context(), &b).Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 2, 3}, numbers(t, pool)); diff != "" {
		t.Error(diff)
	}
}

func second[T any](_ T, err error) error { return err }
