package checkout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// ExpireOrdersArgs expires orders whose time is over.
type ExpireOrdersArgs struct{}

// Kind names the job.
func (ExpireOrdersArgs) Kind() string { return "expire_orders" }

// TidyCheckoutArgs deletes what no caller can ask for any more, and finds and counts the dead events.
type TidyCheckoutArgs struct{}

// Kind names the job.
func (TidyCheckoutArgs) Kind() string { return "tidy_checkout" }

const (
	expireBatch = 500
	tidyBatch   = 1000
	// keyLife is for how long the gateway is sent the same request again with the key it was first sent with.
	keyLife = 14 * 24 * time.Hour
	// deadAfter is past the last attempt of a delivery.
	deadAfter = 6 * 24 * time.Hour
)

// JobConfig is what the periodic workers of this package need.
type JobConfig struct {
	DB      *pgxpool.Pool
	Ledger  *ledger.Ledger
	Metrics *Metrics
	Now     func() time.Time

	Keep Keep
}

func (c JobConfig) validate() error {
	if c.DB == nil || c.Ledger == nil || c.Metrics == nil || c.Now == nil {
		return errors.New("checkout: the jobs need DB, Ledger, Metrics and Now")
	}
	return c.Keep.validate()
}

// ExpireOrdersWorker expires orders. It is idempotent: an order expires once, and one that a live payment holds never.
type ExpireOrdersWorker struct {
	river.WorkerDefaults[ExpireOrdersArgs]

	cfg JobConfig
}

// NewExpireOrdersWorker makes an ExpireOrdersWorker.
func NewExpireOrdersWorker(cfg JobConfig) (*ExpireOrdersWorker, error) {
	return &ExpireOrdersWorker{cfg: cfg}, cfg.validate()
}

// Work expires orders in batches, each in a transaction of its own, until none is left.
func (w *ExpireOrdersWorker) Work(ctx context.Context, _ *river.Job[ExpireOrdersArgs]) error {
	for {
		var expired int64
		err := postgres.InTx(ctx, w.cfg.DB, func(tx pgx.Tx) (err error) {
			expired, err = w.cfg.Ledger.ExpireOrders(ctx, tx, expireBatch)
			return err
		})
		if err != nil {
			return err
		}
		w.cfg.Metrics.expired(expired)
		if expired < expireBatch {
			return nil
		}
	}
}

// TidyWorker keeps the table of callers' requests small, and the list and the gauge of dead events true. It is idempotent.
type TidyWorker struct {
	river.WorkerDefaults[TidyCheckoutArgs]

	cfg JobConfig
}

// NewTidyWorker makes a TidyWorker.
func NewTidyWorker(cfg JobConfig) (*TidyWorker, error) {
	cfg.Keep = cfg.Keep.withDefaults()
	return &TidyWorker{cfg: cfg}, cfg.validate()
}

// Work takes away what is old, then buries and counts events.
func (w *TidyWorker) Work(ctx context.Context, _ *river.Job[TidyCheckoutArgs]) error {
	return errors.Join(w.forget(ctx), w.bury(ctx), w.count(ctx))
}

// bury gives up the events whose deliveries are over and that no attempt gave up: the process ended in the middle of
// the last one, or the queue dropped it. Those that nobody has an address for wait for one.
func (w *TidyWorker) bury(ctx context.Context) error {
	_, err := w.cfg.DB.Exec(ctx, `
		UPDATE events SET dead_at = @now
		WHERE dead_at IS NULL AND delivered_at IS NULL AND created_at < @before
			AND COALESCE(resent_at, created_at) < @before AND last_answer <> @unwanted`,
		pgx.StrictNamedArgs{"now": w.cfg.Now(), "before": w.cfg.Now().Add(-deadAfter), "unwanted": noAddress})
	if err != nil {
		return fmt.Errorf("give up events: %w", err)
	}
	return nil
}

func (w *TidyWorker) count(ctx context.Context) error {
	rows, err := w.cfg.DB.Query(ctx, `SELECT count(*) FROM events WHERE dead_at IS NOT NULL AND delivered_at IS NULL`)
	if err != nil {
		return fmt.Errorf("count dead events: %w", err)
	}
	dead, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("count dead events: %w", err)
	}
	w.cfg.Metrics.dead(dead)
	return nil
}
