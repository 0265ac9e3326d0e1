package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// history is generated books and the gateway's list beside them: payments 1 to n, each captured once, every tenth
// canceled in full. All of it follows from the payment's number, so that a history can be made longer: later numbers lie
// further back, and what happened together is stored together, as in books that were written day by day. What it lacks
// beside a real one: credits, partial cancels, virtual accounts; they make no difference to what is looked up.
type history struct {
	db   *pgxpool.Pool
	ends time.Time // midnight in Seoul; the year before it is history
	busy time.Time // its last day, on which the first cancels all fall
	made int
	say  func(format string, args ...any)
}

const (
	historyDays = 364
	// busyCancels all fall on one day, as after a product was taken back.
	busyCancels = 50_000
	// apart is how many seconds lie between two payments: ten million of them fill a year.
	apart = 3
	// madeAtOnce is how many payments one statement writes.
	madeAtOnce = 500_000
)

// tables are what a history fills.
func historyTables() []string {
	return []string{"orders", "payments", "captures", "cancels", "journal_transactions", "journal_entries", "mirror"}
}

// grow makes the history longer, up to payment n. Indexes and references are taken away meanwhile and built again
// after it, as one would load an old system's books; triggers are silent.
func (h *history) grow(ctx context.Context, n int) error {
	conn, err := h.db.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("grow the history: %w", err)
	}
	defer conn.Release()
	for _, setting := range []string{
		`SET session_replication_role = replica`, `SET synchronous_commit = off`, `SET maintenance_work_mem = '1GB'`,
		`SET work_mem = '256MB'`, `SET statement_timeout = 0`, `SET idle_in_transaction_session_timeout = 0`,
	} {
		if _, err := conn.Exec(ctx, setting); err != nil {
			return fmt.Errorf("grow the history: %w", err)
		}
	}
	defer func() { _ = conn.Conn().Close(context.WithoutCancel(ctx)) }() // its settings are for nobody else
	restore, err := takeAway(ctx, conn.Conn())
	if err != nil {
		return err
	}
	for from := h.made; from < n; from += madeAtOnce {
		if err := h.write(ctx, conn.Conn(), min(from+madeAtOnce, n)); err != nil {
			return err
		}
		h.say("%s payments written", thousands(h.made))
	}
	for _, sql := range restore {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	h.say("%d indexes and references built", len(restore))
	for _, sql := range []string{
		`SELECT setval(pg_get_serial_sequence('journal_transactions', 'transaction_id'), (SELECT max(transaction_id) FROM journal_transactions))`,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("grow the history: %w", err)
		}
	}
	return tidy(ctx, conn, historyTables())
}

// tidy gathers the statistics that plans are made from.
func tidy(ctx context.Context, on executor, tables []string) error {
	if _, err := on.Exec(ctx, `VACUUM (ANALYZE) `+strings.Join(tables, ", ")); err != nil {
		return fmt.Errorf("gather statistics: %w", err)
	}
	return nil
}

// executor is a connection or a transaction.
type executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// write makes the payments up to number to.
func (h *history) write(ctx context.Context, on executor, to int) error {
	args := pgx.StrictNamedArgs{"from": h.made + 1, "to": to, "ends": h.ends, "busy": h.busy, "apart": apart, "crowd": busyCancels}
	for _, sql := range historyInserts() {
		if _, err := on.Exec(ctx, sql, args); err != nil {
			return fmt.Errorf("write payments %d to %d: %w", h.made+1, to, err)
		}
	}
	h.made = to
	return nil
}

// sell adds payments as the service would, one canceled cancel for each dirty key: with every index and trigger at work.
func (h *history) sell(ctx context.Context) error {
	return postgres.InTx(ctx, h.db, func(tx pgx.Tx) error { return h.write(ctx, tx, h.made+10*dirtyKeys) })
}

// read notes that the gateway's list was read up to now, as a poll does each minute.
func (h *history) read(ctx context.Context) error {
	args := pgx.StrictNamedArgs{"from": h.ends.AddDate(0, 0, -historyDays-2), "to": time.Now()}
	return postgres.InTx(ctx, h.db, func(tx pgx.Tx) error {
		for _, sql := range []string{`DELETE FROM list_covered`, `DELETE FROM list_runs`} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return fmt.Errorf("forget what was read of the list: %w", err)
			}
		}
		for _, sql := range []string{
			`INSERT INTO list_covered (stretches) VALUES (tstzmultirange(tstzrange(@from, @to)))`,
			`INSERT INTO list_runs (reason, window_from, window_to, started_at, ended_at, result) VALUES ('poll', @from, @to, @to, @to, 'complete')`,
		} {
			if _, err := tx.Exec(ctx, sql, args); err != nil {
				return fmt.Errorf("note that the list was read: %w", err)
			}
		}
		return nil
	})
}

// takeAway drops the references, keys and indexes of the history's tables and returns what builds them again.
func takeAway(ctx context.Context, conn *pgx.Conn) (restore []string, err error) {
	rows, err := conn.Query(ctx, `
		WITH held AS (
			SELECT c.oid, c.conname, c.contype, c.conrelid::regclass::text AS relation, pg_get_constraintdef(c.oid) AS definition, c.conindid
			FROM pg_constraint c
			WHERE c.contype IN ('f', 'p', 'u') AND (c.conrelid = ANY(@tables::text[]::regclass[]) OR c.confrelid = ANY(@tables::text[]::regclass[])))
		SELECT 1 AS turn, CASE contype WHEN 'f' THEN 1 ELSE 2 END AS rank,
			format('ALTER TABLE %s DROP CONSTRAINT %I', relation, conname) AS down,
			format('ALTER TABLE %s ADD CONSTRAINT %I %s%s', relation, conname, definition, CASE contype WHEN 'f' THEN ' NOT VALID' ELSE '' END) AS up
		FROM held
		UNION ALL
		SELECT 2, 3, format('DROP INDEX %s', i.indexrelid::regclass), pg_get_indexdef(i.indexrelid)
		FROM pg_index i
		WHERE i.indrelid = ANY(@tables::text[]::regclass[]) AND NOT EXISTS (SELECT 1 FROM held h WHERE h.conindid = i.indexrelid)
		ORDER BY 2, 4`, pgx.StrictNamedArgs{"tables": historyTables()})
	if err != nil {
		return nil, fmt.Errorf("look for indexes: %w", err)
	}
	type step struct {
		Turn, Rank int
		Down, Up   string
	}
	steps, err := pgx.CollectRows(rows, pgx.RowToStructByPos[step])
	if err != nil {
		return nil, fmt.Errorf("look for indexes: %w", err)
	}
	for _, s := range steps {
		if _, err := conn.Exec(ctx, s.Down); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Down, err)
		}
	}
	for rank := 3; rank >= 1; rank-- { // references last: they need the keys
		for _, s := range steps {
			if s.Rank == rank {
				restore = append(restore, s.Up)
			}
		}
	}
	return restore, nil
}

// historyInserts fill one table each from the payments' numbers. Keys are spread like the gateway's: nothing about
// their order is known. The n-th journal transaction has the number it would have had.
func historyInserts() []string {
	const facts = `
		WITH numbers AS (SELECT i FROM generate_series(@from::bigint, @to::bigint) AS i),
		sold AS (
			SELECT i, 'lab-' || lpad(i::text, 12, '0') AS order_id, 'tlab_' || md5('p' || i) AS payment_key,
				'txc_' || md5('c' || i) AS capture_key, 'txx_' || md5('x' || i) AS cancel_key, 1000 + i * 37 % 99000 AS amount,
				i % 10 = 0 AS canceled,
				@ends::timestamptz - interval '1 second' * (3600 + i * @apart::bigint) AS captured_at
			FROM numbers),
		facts AS (
			SELECT i, order_id, payment_key, capture_key, cancel_key, amount, canceled, captured_at, CASE WHEN i <= @crowd::bigint * 10 THEN GREATEST(@busy::timestamptz + interval '1 second' * (i / 10 * 61 % 86400), captured_at + interval '1 minute')
				ELSE captured_at + interval '1 second' * (60 + i * 31 % 80000) END AS canceled_at,
				i + (i - 1) / 10 AS capture_id, i + i / 10 AS cancel_id
			FROM sold)`
	//nolint:dupword // columns may follow each other
	return []string{
		facts + `
		INSERT INTO orders (order_id, status, currency, amount, customer_id, name, created_at, expires_at)
		SELECT order_id, CASE WHEN canceled THEN 'canceled' ELSE 'paid' END, 'KRW', amount, 'customer-' || i % 100000, '티셔츠',
			captured_at - interval '1 minute', captured_at + interval '29 minutes'
		FROM facts`,
		facts + `
		INSERT INTO payments (payment_key, order_id, status, currency, amount, captured, canceled, attempt, key_first_used_at,
			intended_at, method, created_at, updated_at)
		SELECT payment_key, order_id, CASE WHEN canceled THEN 'canceled' ELSE 'done' END, 'KRW', amount, amount,
			CASE WHEN canceled THEN amount ELSE 0 END, 1, captured_at, captured_at, '카드', captured_at,
			CASE WHEN canceled THEN canceled_at ELSE captured_at END
		FROM facts`,
		facts + `
		INSERT INTO captures (payment_key, number, transaction_key, currency, amount, captured_at, channel, recorded_at)
		SELECT payment_key, 1, capture_key, 'KRW', amount, captured_at, 'confirm', captured_at
		FROM facts`,
		facts + `
		INSERT INTO cancels (transaction_key, payment_key, order_id, currency, amount, reason, canceled_at, channel, recorded_at)
		SELECT cancel_key, payment_key, order_id, 'KRW', amount, '고객 변심', canceled_at, 'webhook', canceled_at
		FROM facts
		WHERE canceled`,
		facts + `
		INSERT INTO journal_transactions (transaction_id, kind, reference, payment_key, order_id, occurred_at, recorded_at)
		OVERRIDING SYSTEM VALUE
		SELECT capture_id, 'capture', payment_key || '#1', payment_key, order_id, captured_at, captured_at
		FROM facts
		UNION ALL
		SELECT cancel_id, 'cancel', cancel_key, payment_key, order_id, canceled_at, canceled_at
		FROM facts
		WHERE canceled
		ORDER BY 1`,
		facts + `
		INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
		SELECT capture_id, line, CASE line WHEN 1 THEN 'gateway_receivable' ELSE 'sales' END, 'KRW', CASE line WHEN 1 THEN amount ELSE -amount END
		FROM facts, generate_series(1, 2) AS line
		UNION ALL
		SELECT cancel_id, line, CASE line WHEN 1 THEN 'refunds' ELSE 'gateway_receivable' END, 'KRW', CASE line WHEN 1 THEN amount ELSE -amount END
		FROM facts, generate_series(1, 2) AS line
		WHERE canceled
		ORDER BY 1, 2`,
		facts + `
		INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day,
			first_seen_at, last_seen_at, first_run, last_run)
		SELECT capture_key, payment_key, order_id, 'capture', 'DONE', 'KRW', amount, false, captured_at,
			(captured_at AT TIME ZONE 'Asia/Seoul')::date, captured_at, captured_at, 1, 1
		FROM facts
		UNION ALL
		SELECT cancel_key, payment_key, order_id, 'cancel', 'CANCELED', 'KRW', amount, true, canceled_at,
			(canceled_at AT TIME ZONE 'Asia/Seoul')::date, canceled_at, canceled_at, 1, 1
		FROM facts
		WHERE canceled`,
	}
}

// thousands writes a number as people read it.
func thousands(n int) string { return ledger.Grouped(strconv.Itoa(n)) }
