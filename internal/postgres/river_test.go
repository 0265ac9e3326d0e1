package postgres_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
)

type pingArgs struct {
	Number int `json:"number" river:"unique"`
}

// Kind names the job.
func (pingArgs) Kind() string { return "ping" }

// TestInTx_RiverJobs: a job is there if and only if its transaction committed, also when it is the first statement.
func TestInTx_RiverJobs(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Schema: "river", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	unique := &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}
	many := []river.InsertManyParams{{Args: pingArgs{Number: 3}}, {Args: pingArgs{Number: 4}}}
	refused := errors.New("refused by the domain")

	tests := []struct {
		name   string
		insert func(tx pgx.Tx) error
		jobs   int
	}{
		{"first statement", func(tx pgx.Tx) error {
			_, err := client.InsertTx(t.Context(), tx, pingArgs{Number: 1}, nil)
			return err
		}, 1},
		{"second statement, twice the same", func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `SELECT 1`); err != nil {
				return err
			}
			for range 2 {
				if _, err := client.InsertTx(t.Context(), tx, pingArgs{Number: 2}, unique); err != nil {
					return err
				}
			}
			return nil
		}, 1},
		{"many", func(tx pgx.Tx) error {
			_, err := client.InsertManyTx(t.Context(), tx, many)
			return err
		}, 2},
		{"many by copy", func(tx pgx.Tx) error {
			_, err := client.InsertManyFastTx(t.Context(), tx, many)
			return err
		}, 2},
		{"look-up", func(tx pgx.Tx) error {
			_, err := client.JobListTx(t.Context(), tx, river.NewJobListParams())
			return err
		}, 0},
	}
	count := func() (n int) {
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM river.river_job`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, test := range tests {
		before := count()
		err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			return errors.Join(test.insert(tx), refused)
		})
		if got := count() - before; got != 0 || !errors.Is(err, refused) {
			t.Errorf("%s: got %d jobs after a roll-back with %v, want 0", test.name, got, err)
		}
		if err := postgres.InTx(t.Context(), pool, test.insert); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if got := count() - before; got != test.jobs {
			t.Errorf("%s: got %d jobs after a commit, want %d", test.name, got, test.jobs)
		}
	}
}
