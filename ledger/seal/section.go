package seal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
	"daesa/ledger"
)

var (
	// ErrBusy reports that the journal was being written to for so long that its end could not be seen, or that another
	// instance is at it. Nothing was changed; the next tick tries again.
	ErrBusy = errors.New("the end of the journal could not be seen now")
	// ErrClocks reports a machine whose clock is not the database's. Nothing was cut; the next tick tries again.
	ErrClocks = errors.New("the clocks lie apart")
	// ErrBroken reports heads that do not fit the database or the witness. Nothing is sealed until a person has looked.
	ErrBroken = errors.New("the journal's heads are broken")
)

// lockWait is how long the cut may stand in the queue for the journal. Whoever writes meanwhile waits behind it, so this
// is also the longest that a payment can be held up by it.
const lockWait = "200ms"

// endOfJournal is the newest id, read while nobody is writing. Writers take their ids while they hold the table's lock
// for writing, which they keep to their end; so, once this lock is granted, no smaller id can appear later. Neither the
// times nor the transaction numbers in the rows could say that: commits come in another order, and a restored database
// counts transactions anew.
func endOfJournal(ctx context.Context, db *pgxpool.Pool) (id int64, err error) {
	err = postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '`+lockWait+`'; LOCK TABLE journal_transactions IN SHARE ROW EXCLUSIVE MODE`)
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT COALESCE(max(transaction_id), 0) FROM journal_transactions`).Scan(&id)
	})
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == codeLockNotAvailable {
		return 0, fmt.Errorf("cut the journal: %w", ErrBusy)
	}
	if err != nil {
		return 0, fmt.Errorf("cut the journal: %w", err)
	}
	return id, nil
}

// codeLockNotAvailable is what a lock that did not come in time is refused with.
const codeLockNotAvailable = "55P03"

// cut says how far the journal is cut.
type cut struct {
	Day    ledger.Day `db:"day"`
	UpToID int64      `db:"up_to_id"`
}

// lastCut reads the newest section; false when there is none.
func lastCut(ctx context.Context, db ledger.Querier) (cut, bool, error) {
	rows, err := db.Query(ctx, `
		SELECT to_char(day, 'YYYY-MM-DD') AS day, up_to_id
		FROM journal_sections
		ORDER BY day DESC
		LIMIT 1`)
	if err != nil {
		return cut{}, false, fmt.Errorf("read the newest section: %w", err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[cut])
	if errors.Is(err, pgx.ErrNoRows) {
		return cut{}, false, nil
	}
	if err != nil {
		return cut{}, false, fmt.Errorf("read the newest section: %w", err)
	}
	return c, true, nil
}

// writeSection cuts the section of a day, up to an id that nothing can be added below, and adds up its balances. The
// first section holds everything before it.
func writeSection(ctx context.Context, tx pgx.Tx, day ledger.Day, upTo int64, now time.Time) error {
	b := &pgx.Batch{}
	b.Queue(`SET LOCAL statement_timeout = 0`) // the first section may be years
	b.Queue(`
		WITH before AS (SELECT COALESCE(max(up_to_id), 0) AS id FROM journal_sections)
		INSERT INTO journal_sections (day, from_id, up_to_id, transactions, recorded_first, recorded_last, cut_at)
		SELECT @day::date, before.id, @up_to::bigint, count(t.transaction_id), min(t.recorded_at), max(t.recorded_at), @now
		FROM before
		LEFT JOIN journal_transactions t ON t.transaction_id > before.id AND t.transaction_id <= @up_to
		GROUP BY before.id`,
		pgx.StrictNamedArgs{"day": string(day), "up_to": upTo, "now": now})
	b.Queue(`
		INSERT INTO journal_balances (day, occurred_on, account, currency, debits, credits)
		SELECT s.day, (t.occurred_at AT TIME ZONE 'Asia/Seoul')::date, e.account, e.currency,
			sum(GREATEST(e.amount, 0)), sum(GREATEST(-e.amount, 0))
		FROM journal_sections s
		JOIN journal_transactions t ON t.transaction_id > s.from_id AND t.transaction_id <= s.up_to_id
		CROSS JOIN LATERAL (SELECT account, currency, amount FROM journal_entries WHERE transaction_id = t.transaction_id OFFSET 0) e
		WHERE s.day = @day::date
		GROUP BY s.day, 2, e.account, e.currency`,
		pgx.StrictNamedArgs{"day": string(day)})
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("cut the section of %s: %w", day, err)
	}
	return nil
}
