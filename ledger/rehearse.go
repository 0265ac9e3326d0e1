package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
)

// RowChange is a row of the books that a transaction adds or changes, in the words of the database.
type RowChange struct {
	Table   string         `json:"table"`
	Key     string         `json:"key"` // of the row, within its table
	Added   bool           `json:"added"`
	Columns []ColumnChange `json:"columns"`
}

// ColumnChange is one column of it, as JSON; Before is empty where the row is new.
type ColumnChange struct {
	Name   string `json:"name"`
	Before string `json:"before,omitempty"`
	After  string `json:"after"`
}

// Rehearse is Record that shows which rows it writes, and that counts nothing: the caller rolls back, or commits and calls
// [Ledger.Performed]. What would only be refused at the commit is refused here already.
func (l *Ledger) Rehearse(ctx context.Context, tx pgx.Tx, o Observation) (Recorded, []RowChange, error) {
	if _, err := lock(ctx, tx, o.PaymentKey); err != nil {
		return Recorded{}, nil, fmt.Errorf("rehearse %s of payment %s: %w", o.Evidence, o.PaymentKey, err)
	}
	before, err := rowsOf(ctx, tx, o.PaymentKey)
	if err != nil {
		return Recorded{}, nil, err
	}
	b, recorded, err := l.record(ctx, tx, o, time.Time{})
	if err != nil {
		return Recorded{}, nil, err
	}
	b.Queue("SET CONSTRAINTS ALL IMMEDIATE")
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return Recorded{}, nil, fmt.Errorf("rehearse %s of payment %s: %w", o.Evidence, o.PaymentKey, err)
	}
	after, err := rowsOf(ctx, tx, o.PaymentKey)
	if err != nil {
		return Recorded{}, nil, err
	}
	return recorded, changes(before, after), nil
}

// Performed counts what was rehearsed and committed.
func (l *Ledger) Performed(o Observation, recorded Recorded) {
	l.metrics.recorded(o.Channel, recorded)
}

// row is a row of a table, its columns as JSON.
type row struct {
	Table   string                     `db:"of"`
	Key     string                     `db:"key"`
	Columns map[string]json.RawMessage `db:"columns"`
}

func (r row) name() string { return r.Table + " " + r.Key }

// rowsOf reads every row about a payment that recording an observation can write. Accounts that money is paid back to and
// digests of secrets are not read.
func rowsOf(ctx context.Context, tx pgx.Tx, paymentKey string) ([]row, error) {
	var all strings.Builder
	all.WriteString(`WITH p AS (SELECT payment_key, order_id FROM payments WHERE payment_key = @payment_key)`)
	for i, t := range []struct{ name, key, of, without string }{
		{"orders", "t.order_id", "t.order_id = (SELECT order_id FROM p)", ""},
		{"payments", "t.payment_key", "t.order_id = (SELECT order_id FROM p)", " - 'secret_digest'"},
		{"captures", "t.payment_key || ' ' || t.number", "t.payment_key = @payment_key", ""},
		{"cancels", "t.transaction_key", "t.payment_key = @payment_key", ""},
		{"cancel_requests", "t.request_id", "t.payment_key = @payment_key", " - 'refund_account'"},
		{"credit_accounts", "t.customer_id", "t.customer_id = (SELECT o.customer_id FROM orders o WHERE o.order_id = (SELECT order_id FROM p))", ""},
		{"journal_transactions", "t.transaction_id::text", "t.payment_key = @payment_key", " - 'written_by'"},
		{"journal_entries", "t.transaction_id || ' ' || t.line", "t.transaction_id IN (SELECT j.transaction_id FROM journal_transactions j WHERE j.payment_key = @payment_key)", ""},
		{"events", "t.event_id", "t.order_id = (SELECT order_id FROM p)", ""},
		{"work", "t.work_id::text", "t.payment_key = @payment_key", ""},
		{"mismatches", "t.mismatch_id::text", "t.payment_key = @payment_key", ""},
	} {
		if i > 0 {
			all.WriteString("\nUNION ALL")
		}
		fmt.Fprintf(&all, "\nSELECT %d AS place, '%s' AS of, %s AS key, to_jsonb(t)%s AS columns FROM %s t WHERE %s", i, t.name, t.key, t.without, t.name, t.of)
	}
	return postgres.Collect[row](ctx, tx, "the rows of payment "+paymentKey,
		"SELECT of, key, columns FROM ("+all.String()+") AS every ORDER BY place, key", pgx.StrictNamedArgs{"payment_key": paymentKey})
}

// changes are the rows of after that before does not have, or has otherwise. Nothing in the books is ever deleted.
func changes(before, after []row) (all []RowChange) {
	known := make(map[string]row, len(before))
	for _, r := range before {
		known[r.name()] = r
	}
	for _, r := range after {
		was, there := known[r.name()]
		c := RowChange{Table: r.Table, Key: r.Key, Added: !there}
		for _, column := range slices.Sorted(maps.Keys(r.Columns)) {
			old, value := string(was.Columns[column]), string(r.Columns[column])
			if old != value && (there || value != "null") {
				c.Columns = append(c.Columns, ColumnChange{column, old, value})
			}
		}
		if len(c.Columns) > 0 {
			all = append(all, c)
		}
	}
	return all
}
