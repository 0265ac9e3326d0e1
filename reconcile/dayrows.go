package reconcile

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// stagedAtOnce is how many transactions of a day are in memory at a time.
const stagedAtOnce = 5_000

// staging takes the transactions of a day to the database as they are read, to be compared there with what the day said
// before.
type staging struct {
	tx   pgx.Tx
	rows []dayRow
}

// newStaging makes the table that they are taken to, empty also where the run begins anew. It is this transaction's own:
// a table that all runs share could be emptied only while nobody reads the schema, and a dump of the database does for
// hours.
func newStaging(ctx context.Context, tx pgx.Tx) (*staging, error) {
	for _, step := range []string{
		`DROP TABLE IF EXISTS pg_temp.day_rows_seen`,
		`CREATE TEMP TABLE day_rows_seen (
			movement        text NOT NULL,
			transaction_key text NOT NULL,
			payment_key     text NOT NULL,
			order_id        text NOT NULL,
			standing        text NOT NULL,
			at              timestamptz NOT NULL,
			listed_currency text,
			listed          bigint,
			booked_currency text,
			booked          bigint
		) ON COMMIT DROP`,
		`CREATE INDEX day_rows_seen_by_key ON day_rows_seen (movement, transaction_key, payment_key)`,
	} {
		if _, err := tx.Exec(ctx, step); err != nil {
			return nil, fmt.Errorf("make room for the day's rows: %w", err)
		}
	}
	return &staging{tx: tx, rows: make([]dayRow, 0, stagedAtOnce)}, nil
}

func (s *staging) add(ctx context.Context, r dayRow) error {
	s.rows = append(s.rows, r)
	if len(s.rows) < stagedAtOnce {
		return nil
	}
	return s.flush(ctx)
}

func (s *staging) flush(ctx context.Context) error {
	if len(s.rows) == 0 {
		return nil
	}
	columns := []string{
		"movement", "transaction_key", "payment_key", "order_id", "standing", "at", "listed_currency", "listed", "booked_currency", "booked",
	}
	_, err := s.tx.CopyFrom(ctx, pgx.Identifier{"day_rows_seen"}, columns, pgx.CopyFromSlice(len(s.rows), func(i int) ([]any, error) {
		r := s.rows[i]
		return []any{
			string(r.Movement), r.TransactionKey, r.PaymentKey, r.OrderID, string(r.Standing), r.At,
			r.ListedCurrency, r.Listed, r.BookedCurrency, r.Booked,
		}, nil
	}))
	if err != nil {
		return fmt.Errorf("take the day's rows to the database: %w", err)
	}
	s.rows = s.rows[:0]
	return nil
}

// settle makes the staged rows those of the day, as of a run. A row that stands as it did is not written again, so that a
// day closed every hour costs what changed. The statistics come first: the table was empty when anybody last looked, and
// a plan for an empty table compares each row with each.
func (s *staging) settle(ctx context.Context, day ledger.Day, run int64) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	if _, err := s.tx.Exec(ctx, `ANALYZE day_rows_seen`); err != nil {
		return fmt.Errorf("settle the rows of %s: %w", day, err)
	}
	// A capture that the list no longer shows is seen as it was listed and as it is missed: it stands as missed, even
	// where both break.
	if _, err := s.tx.Exec(ctx, `
		DELETE FROM day_rows_seen
		WHERE ctid = ANY(ARRAY(SELECT r.place FROM (
			SELECT ctid AS place, row_number() OVER (PARTITION BY movement, transaction_key, payment_key
				ORDER BY standing = 'breaks' DESC, standing = 'accepted_beside' DESC, listed NULLS FIRST, listed_currency, booked, booked_currency, at, order_id, standing) AS worst
			FROM day_rows_seen) AS r WHERE r.worst > 1))`); err != nil {
		return fmt.Errorf("settle the rows of %s: %w", day, err)
	}
	const same = `(n.order_id, n.standing, n.at, n.listed_currency, n.listed, n.booked_currency, n.booked)
		IS NOT DISTINCT FROM (o.order_id, o.standing, o.at, o.listed_currency, o.listed, o.booked_currency, o.booked)`
	for _, step := range []string{
		`UPDATE day_rows o
		SET gone_run = @run
		WHERE o.day = @day::date AND o.gone_run IS NULL AND NOT EXISTS (SELECT 1 FROM day_rows_seen n
			WHERE n.movement = o.movement AND n.transaction_key = o.transaction_key AND n.payment_key = o.payment_key AND ` + same + `)`,
		`INSERT INTO day_rows (day, movement, transaction_key, payment_key, order_id, standing, at, listed_currency, listed,
			booked_currency, booked, first_run)
		SELECT @day::date, n.movement, n.transaction_key, n.payment_key, n.order_id, n.standing, n.at, n.listed_currency, n.listed,
			n.booked_currency, n.booked, @run
		FROM day_rows_seen n
		WHERE NOT EXISTS (SELECT 1 FROM day_rows o WHERE o.day = @day::date AND o.gone_run IS NULL
			AND o.movement = n.movement AND o.transaction_key = n.transaction_key AND o.payment_key = n.payment_key)`,
	} {
		if _, err := s.tx.Exec(ctx, step, pgx.StrictNamedArgs{"day": string(day), "run": run}); err != nil {
			return fmt.Errorf("settle the rows of %s: %w", day, err)
		}
	}
	return nil
}
