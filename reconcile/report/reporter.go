package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
	"daesa/reconcile"
)

// Config is what reports are read from.
type Config struct {
	DB      *pgxpool.Pool
	Auditor *reconcile.Auditor // told the same of the books as the service
	Now     func() time.Time
}

// Reporter makes reports. Each is handed to a function that writes it, because its rows are read from the database as
// they are written, all in one snapshot: the function must not keep the report.
type Reporter struct{ cfg Config }

// New makes a Reporter.
func New(cfg Config) (*Reporter, error) {
	if cfg.DB == nil || cfg.Auditor == nil || cfg.Now == nil {
		return nil, errors.New("report: DB, Auditor and Now are required")
	}
	return &Reporter{cfg: cfg}, nil
}

// queryLimit is how long one statement may take: a day of a million rows is written as fast as its reader takes it.
const queryLimit = "30min"

// errAgain stops a report that would be written twice.
var errAgain = errors.New("the snapshot was lost while the report was written; make it again")

// snapshot runs fn over one state of the books, which it cannot change.
func (r *Reporter) snapshot(ctx context.Context, fn func(tx pgx.Tx) error) error {
	began := false
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return postgres.InTxWith(ctx, r.cfg.DB, options, func(tx pgx.Tx) error {
		if began {
			return errAgain
		}
		began = true
		if _, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', @limit, true)`, pgx.StrictNamedArgs{"limit": queryLimit}); err != nil {
			return fmt.Errorf("give the report its time: %w", err)
		}
		return fn(tx)
	})
}
