package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
)

// TidyArgs takes away sources whose allowance is whole again.
type TidyArgs struct{}

// Kind names the job.
func (TidyArgs) Kind() string { return "tidy_rate_limits" }

// tidyBatch is how many rows one statement looks at: it is over within a few milliseconds, and whoever waits for a row of
// it waits no longer.
const tidyBatch = 1000

// TidyWorker keeps the table of rate limits as small as the number of those who send now. It is idempotent: a source that
// is not in the table has its whole allowance, as has one that is taken away.
type TidyWorker struct {
	river.WorkerDefaults[TidyArgs]

	cfg TidyConfig
}

// TidyConfig holds what a [TidyWorker] needs.
type TidyConfig struct {
	// DB is the pool of jobs: a statement here takes longer than a limit waits.
	DB *pgxpool.Pool
	// Now is the clock of tests; nil is the database's.
	Now func() time.Time
}

// NewTidyWorker makes a TidyWorker.
func NewTidyWorker(cfg TidyConfig) (*TidyWorker, error) {
	if cfg.DB == nil {
		return nil, errors.New("admission: TidyWorker needs a DB")
	}
	return &TidyWorker{cfg: cfg}, nil
}

// place is where a walk through the table has come to.
type place struct {
	Rule   string `db:"rule"`
	Source string `db:"source"`
}

// Work walks through the table by its key. A second index, by time, would be shorter to walk and would have to be changed
// with every request.
func (w *TidyWorker) Work(ctx context.Context, _ *river.Job[TidyArgs]) error {
	from := place{}
	for {
		ends, err := w.page(ctx, from)
		if err != nil {
			return err
		}
		if len(ends) == 0 {
			return nil
		}
		from = ends[0]
	}
}

// page takes away what may go among the next rows, and returns the last of them; none at the end of the table. A row that
// a request has changed meanwhile stays; full_at is asked twice because not every server compares the place of a row again
// once it has moved.
func (w *TidyWorker) page(ctx context.Context, from place) ([]place, error) {
	var now *time.Time
	if w.cfg.Now != nil {
		at := w.cfg.Now()
		now = &at
	}
	rows, err := w.cfg.DB.Query(ctx, `
		WITH page AS MATERIALIZED (
			SELECT ctid AS place, rule, source, full_at FROM rate_limits
			WHERE (rule, source) > (@rule, @source)
			ORDER BY rule, source
			LIMIT @limit
		), gone AS (
			DELETE FROM rate_limits
			WHERE ctid = ANY (ARRAY(SELECT place FROM page WHERE full_at < COALESCE(@now::timestamptz, now())))
				AND full_at < COALESCE(@now::timestamptz, now())
		)
		SELECT rule, source FROM page
		ORDER BY rule DESC, source DESC
		LIMIT 1`,
		pgx.StrictNamedArgs{"rule": from.Rule, "source": from.Source, "limit": tidyBatch, "now": now})
	if err != nil {
		return nil, fmt.Errorf("take away old rate limits: %w", err)
	}
	ends, err := pgx.CollectRows(rows, pgx.RowToStructByName[place])
	if err != nil {
		return nil, fmt.Errorf("take away old rate limits: %w", err)
	}
	return ends, nil
}
