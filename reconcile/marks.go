package reconcile

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// dirtyRow is one mark of a change.
type dirtyRow struct {
	ID         int64  `db:"dirty_id"`
	Subject    string `db:"subject"`
	Key        string `db:"key"`
	PaymentKey string `db:"payment_key"`
}

// keys are some of both kinds: transaction keys of cancels, and keys of payments whose captures are meant.
type keys struct{ cancels, payments []string }

func (k keys) equal(other keys) bool {
	return slices.Equal(distinctOf(k.cancels), distinctOf(other.cancels)) && slices.Equal(distinctOf(k.payments), distinctOf(other.payments))
}

// markedKeys are the keys of some marks, each once.
type markedKeys struct {
	keys

	others []string // payments whose captures may be of another order in the list, which no glance shows

	of    []string // payments on which something else may depend
	dates []string // business days of which something is said otherwise, whatever was compared
}

func marked(marks []dirtyRow) markedKeys {
	var m markedKeys
	for _, d := range marks {
		switch d.Subject {
		case string(aboutCancel):
			m.cancels = append(m.cancels, d.Key)
		case "day":
			m.dates = append(m.dates, d.Key)
		case "order":
			m.others, m.payments = append(m.others, d.Key), append(m.payments, d.Key)
		default:
			m.payments = append(m.payments, d.Key)
		}
		m.of = append(m.of, d.PaymentKey)
	}
	m.of = distinctOf(append(m.of, m.payments...))
	m.cancels, m.payments = distinctOf(m.cancels), distinctOf(m.payments)
	return m
}

// dueRow names one key to judge.
type dueRow struct {
	Subject subject `db:"subject"`
	Key     string  `db:"key"`
}

// readKeys reads rows that name keys.
func readKeys(rows pgx.Rows, doing string) (keys, error) {
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[dueRow])
	if err != nil {
		return keys{}, fmt.Errorf("%s: %w", doing, err)
	}
	var k keys
	for _, d := range all {
		if d.Subject == aboutCancel {
			k.cancels = append(k.cancels, d.Key)
		} else {
			k.payments = append(k.payments, d.Key)
		}
	}
	return k, nil
}

// glance is what a first look at a payment shows of its captures.
type glance struct {
	PaymentKey string   `db:"payment_key"`
	Agreed     bool     `db:"agreed"`  // both books have one and the same capture
	Cancels    []string `db:"cancels"` // transaction keys of its cancels in the list
	Days       []string `db:"days"`    // business days of its captures in either book
}

// glanceAt looks at payments whose captures were marked as changed, once in each book. Nearly all of them agree, and so
// plainly that nothing is left to judge: each book has one capture, of the same transaction and the same money, and the
// list still shows it.
func (r *round) glanceAt(ctx context.Context, payments []string) ([]glance, error) {
	rows, err := r.tx.Query(ctx, `
		SELECT p.payment_key, g.cancels, g.days || c.days AS days,
			COALESCE(g.taken = 1 AND g.shown AND c.taken = 1
				AND (g.transaction_key, g.currency, g.amount) = (c.transaction_key, c.currency, c.amount), false) AS agreed
		FROM unnest(@payments::text[]) AS p (payment_key)
		CROSS JOIN LATERAL (
			SELECT count(*) FILTER (WHERE x.kind = 'capture') AS taken,
				bool_and(x.missing_since IS NULL) FILTER (WHERE x.kind = 'capture') AS shown,
				max(x.transaction_key) FILTER (WHERE x.kind = 'capture') AS transaction_key,
				max(x.currency) FILTER (WHERE x.kind = 'capture') AS currency,
				max(x.amount) FILTER (WHERE x.kind = 'capture') AS amount,
				COALESCE(array_agg(x.transaction_key) FILTER (WHERE x.kind = 'cancel'), '{}') AS cancels,
				COALESCE(array_agg(x.day::text) FILTER (WHERE x.kind = 'capture'), '{}') AS days
			FROM mirror x
			WHERE x.payment_key = p.payment_key) g
		CROSS JOIN LATERAL (
			SELECT count(*) AS taken, max(x.transaction_key) AS transaction_key,
				max(x.currency) AS currency, max(x.amount) AS amount,
				COALESCE(array_agg((x.captured_at AT TIME ZONE 'Asia/Seoul')::date::text), '{}') AS days
			FROM captures x
			WHERE x.payment_key = p.payment_key) c`,
		pgx.StrictNamedArgs{"payments": payments})
	if err != nil {
		return nil, fmt.Errorf("look at the payments that changed: %w", err)
	}
	glances, err := pgx.CollectRows(rows, pgx.RowToStructByName[glance])
	if err != nil {
		return nil, fmt.Errorf("look at the payments that changed: %w", err)
	}
	return glances, nil
}

// distinctOf drops empty and repeated keys.
func distinctOf(keys []string) []string {
	keys = slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return k == "" })
	slices.Sort(keys)
	return slices.Compact(keys)
}
