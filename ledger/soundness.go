package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Violation is one row that breaks an invariant.
type Violation struct {
	Invariant string `db:"invariant"`
	Subject   string `db:"subject"`
	Detail    string `db:"detail"`
}

// String writes the violation as one line.
func (v Violation) String() string { return v.Invariant + " " + v.Subject + ": " + v.Detail }

// Check asserts the invariants over the whole database, I5 (what was sent) and I7 (which needs the gateway's
// list) apart. It reads everything: it is for tests, the demo and the lab, not for a busy day.
func Check(ctx context.Context, db Querier) ([]Violation, error) {
	var all []Violation
	for _, sql := range soundness() {
		rows, err := db.Query(ctx, sql)
		if err != nil {
			return nil, fmt.Errorf("check invariants: %w", err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Violation])
		if err != nil {
			return nil, fmt.Errorf("check invariants: %w", err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// soundness is the invariants as queries that return their violations.
func soundness() []string {
	return []string{soundI1, soundI2, soundI3, soundI4, soundSurplus, soundOrders, soundI6, soundI8, soundI8Spends, soundI9, soundOwed, soundI10, soundI11, soundRequests}
}

const (
	soundI1 = `
		SELECT 'I1' AS invariant, c.transaction_key AS subject, 'cancel and journal differ: ' || c.amount || ' and ' || COALESCE(j.amount::text, 'no entry') AS detail
		FROM cancels c
		LEFT JOIN (SELECT t.reference, -sum(e.amount)::bigint AS amount
			FROM journal_transactions t JOIN journal_entries e USING (transaction_id)
			WHERE t.kind = 'cancel' AND e.account = 'gateway_receivable' GROUP BY t.reference) j ON j.reference = c.transaction_key
		WHERE (c.amount > 0 AND j.amount IS DISTINCT FROM c.amount) OR (c.amount = 0 AND j.amount IS NOT NULL)
		UNION ALL
		SELECT 'I1', t.reference, 'journal has a cancel that the books lack'
		FROM journal_transactions t LEFT JOIN cancels c ON c.transaction_key = t.reference
		WHERE t.kind = 'cancel' AND c.transaction_key IS NULL`

	soundI2 = `
		SELECT 'I2' AS invariant, p.payment_key AS subject, format('captured %s, canceled %s, rows say %s and %s', p.captured, p.canceled, m.captured, m.canceled) AS detail
		FROM payments p
		JOIN LATERAL (SELECT
			(SELECT COALESCE(sum(c.amount), 0) FROM captures c WHERE c.payment_key = p.payment_key AND c.reversed_at IS NULL) AS captured,
			(SELECT COALESCE(sum(c.amount), 0) FROM cancels c WHERE c.payment_key = p.payment_key) AS canceled) m ON true
		WHERE p.captured <> m.captured OR p.canceled <> m.canceled OR m.canceled > m.captured`

	soundI3 = `
		SELECT 'I3' AS invariant, e.transaction_id::text AS subject, 'does not sum to zero in ' || e.currency AS detail
		FROM journal_entries e GROUP BY e.transaction_id, e.currency HAVING sum(e.amount) <> 0
		UNION ALL
		SELECT 'I3', t.transaction_id::text, 'has no entries'
		FROM journal_transactions t
		WHERE NOT EXISTS (SELECT 1 FROM journal_entries e WHERE e.transaction_id = t.transaction_id)`

	soundI4 = `
		SELECT 'I4' AS invariant, p.payment_key AS subject, format('%s with a balance of %s, journal says %s', p.status, p.captured - p.canceled, j.balance) AS detail
		FROM payments p
		JOIN LATERAL (SELECT COALESCE(sum(e.amount), 0)::bigint AS balance
			FROM journal_transactions t JOIN journal_entries e USING (transaction_id)
			WHERE t.payment_key = p.payment_key AND e.account = 'gateway_receivable') j ON true
		WHERE p.captured - p.canceled <> j.balance`

	soundSurplus = `
		SELECT 'I4' AS invariant, p.payment_key AS subject, 'a surplus payment reached ' || e.account AS detail
		FROM payments p JOIN journal_transactions t USING (payment_key) JOIN journal_entries e USING (transaction_id)
		WHERE p.surplus AND e.account IN ('sales', 'refunds')`

	soundOrders = `
		SELECT 'I4' AS invariant, o.order_id AS subject, format('order is %s, its payment is %s', o.status, COALESCE(p.status, 'none')) AS detail
		FROM orders o
		LEFT JOIN payments p ON p.order_id = o.order_id AND NOT p.surplus
			AND p.status IN ('confirming', 'unknown', 'waiting_for_deposit', 'done', 'partially_canceled', 'canceled')
		WHERE o.status NOT IN ('pending', 'expired') AND (p.status IS NULL OR o.status <> CASE p.status
				WHEN 'done' THEN 'paid' ELSE p.status END)
			OR o.status IN ('pending', 'expired') AND p.status IN ('done', 'partially_canceled', 'canceled')`

	soundI6 = `
		SELECT 'I6' AS invariant, p.payment_key AS subject, p.status || ' and nobody asks' AS detail
		FROM payments p
		WHERE p.status IN ('confirming', 'unknown') AND NOT EXISTS (SELECT 1 FROM work w
			WHERE w.payment_key = p.payment_key AND w.kind = 'confirm_unknown' AND w.closed_at IS NULL)
		UNION ALL
		SELECT 'I6', r.request_id, 'our cancel is ' || r.status || ' and nobody asks'
		FROM cancel_requests r
		WHERE r.status IN ('sending', 'unknown') AND NOT EXISTS (SELECT 1 FROM work w
			WHERE w.request_id = r.request_id AND w.closed_at IS NULL)`

	soundI8 = `
		SELECT 'I8' AS invariant, COALESCE(a.customer_id, j.customer_id) AS subject,
			format('account %s, journal %s', a.balance, j.balance) AS detail
		FROM credit_accounts a
		FULL JOIN (SELECT t.customer_id, -sum(e.amount)::bigint AS balance
			FROM journal_transactions t JOIN journal_entries e USING (transaction_id)
			WHERE e.account = 'customer_credits' GROUP BY t.customer_id) j USING (customer_id)
		WHERE a.balance IS DISTINCT FROM j.balance`

	soundI8Spends = `
		SELECT 'I8' AS invariant, a.customer_id AS subject, format('spent %s, rows say %s', a.spent, s.spent) AS detail
		FROM credit_accounts a
		JOIN LATERAL (SELECT COALESCE(sum(amount), 0)::bigint AS spent FROM credit_spends WHERE customer_id = a.customer_id) s ON true
		WHERE a.spent <> s.spent`

	soundI10 = `
		SELECT 'I10' AS invariant, d.delivery_id::text AS subject, 'answered ' || d.status || ' and has no outcome' AS detail
		FROM deliveries d WHERE d.outcome = 'received' AND d.status IS NOT NULL`

	soundI11 = `
		SELECT 'I11' AS invariant, p.order_id AS subject, count(*) || ' live payments' AS detail
		FROM payments p
		WHERE NOT p.surplus AND p.status IN ('confirming', 'unknown', 'waiting_for_deposit', 'done', 'partially_canceled', 'canceled')
		GROUP BY p.order_id HAVING count(*) > 1`
)
