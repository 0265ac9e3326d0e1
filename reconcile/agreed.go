package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// recordedSince holds when the books took something from the gateway about a mismatch's payment after the mismatch was
// seen last. Whatever contradicts the order or the books is refused whole, so that what was taken agreed with both; and
// it was read exactly. The two times may come from clocks of two instances, hence the minute.
const recordedSince = `(EXISTS (SELECT 1 FROM captures c WHERE c.payment_key = m.payment_key AND c.recorded_at > m.last_seen_at + interval '1 minute' OFFSET 0)
	OR EXISTS (SELECT 1 FROM cancels c WHERE c.payment_key = m.payment_key AND c.recorded_at > m.last_seen_at + interval '1 minute' OFFSET 0))`

// notAnswered holds where the difference was last seen in the list, or the books have recorded something of the payment
// since an answer showed it: the list alone does not refute an answer.
const notAnswered = `(NOT COALESCE(m.gateway, '{}') ? 'asked_at' OR ` + recordedSince + `)`

// lastOpened is when a mismatch was opened, or opened again in place: what had ended before says nothing about it.
const lastOpened = `COALESCE((SELECT max(t.at) FROM mismatch_trail t
	WHERE t.mismatch_id = m.mismatch_id AND t.action = 'reopened'), m.opened_at)`

// agreements say of each kind when its two sides agree by now. Each is judged by what it was about, never by not having
// been found again: a look that was too short must not close anything. What only a person can judge is not here: money
// for an order that had expired, and what the gateway's answers contradict themselves about.
//
// OFFSET keeps the planner from joining with a whole table: each open mismatch is looked up.
func agreements() []string {
	return append([]string{
		`m.kind = 'stale_unknown' AND EXISTS (SELECT 1 FROM payments p
			WHERE p.payment_key = m.payment_key AND p.undecided_since IS NULL
				AND NOT (p.status = 'waiting_for_deposit' AND EXISTS (SELECT 1 FROM work w
					WHERE w.payment_key = p.payment_key AND w.kind = 'deposit_watch' AND w.closed_at IS NULL AND w.deadline <= @overdue)) OFFSET 0)`,
		`m.kind = 'cancel_missing_here' AND m.transaction_key IS NOT NULL AND EXISTS (SELECT 1 FROM cancels c
			WHERE c.transaction_key = m.transaction_key OFFSET 0)`,
		`m.kind = 'cancel_missing_here' AND m.transaction_key LIKE 'request:%' AND EXISTS (SELECT 1 FROM cancel_requests r
			WHERE r.request_id = substr(m.transaction_key, 9) AND r.status IN ('done', 'refused') OFFSET 0)`,
		// A listed row that turned out to be the approval, and a cancel that the gateway gave up.
		`m.kind = 'cancel_missing_here' AND m.transaction_key IS NOT NULL AND EXISTS (SELECT 1 FROM mirror g
			WHERE g.transaction_key = m.transaction_key AND g.kind = 'capture' OFFSET 0)`,
		`m.kind = 'cancel_missing_here' AND m.transaction_key IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM mirror g WHERE g.transaction_key = m.transaction_key OFFSET 0)
			AND EXISTS (SELECT 1 FROM work w WHERE w.payment_key = m.payment_key AND w.transaction_key = m.transaction_key
				AND w.closed_as IN ('aborted', 'refuted') AND w.closed_at >= ` + lastOpened + ` OFFSET 0)
			AND NOT EXISTS (SELECT 1 FROM work w WHERE w.payment_key = m.payment_key AND w.transaction_key = m.transaction_key
				AND w.closed_at IS NULL OFFSET 0)`,
		`m.kind = 'cancel_missing_here' AND m.transaction_key IS NULL AND EXISTS (SELECT 1 FROM work w
			WHERE w.payment_key = m.payment_key AND w.kind = 'cancel_claimed' AND w.transaction_key IS NULL
				AND w.closed_at >= ` + lastOpened + ` OFFSET 0)
			AND NOT EXISTS (SELECT 1 FROM work w WHERE w.payment_key = m.payment_key AND w.kind = 'cancel_claimed'
				AND w.transaction_key IS NULL AND w.closed_at IS NULL OFFSET 0)`,
		`m.kind = 'cancel_missing_there' AND EXISTS (SELECT 1 FROM mirror g
			WHERE g.transaction_key = m.transaction_key AND g.kind = 'cancel' AND g.missing_since IS NULL OFFSET 0)`,
		// The list shows the capture; or it is in the books no more, or under the key that the gateway gave it meanwhile.
		`m.kind = 'order_without_payment' AND EXISTS (SELECT 1 FROM captures c WHERE c.payment_key = m.payment_key OFFSET 0)
			AND NOT EXISTS (SELECT 1 FROM captures c WHERE c.payment_key = m.payment_key AND c.reversed_at IS NULL
				AND c.transaction_key IS NOT DISTINCT FROM m.transaction_key AND NOT ` + shownCapture + ` OFFSET 0)`,
		// Every capture that the list shows of it is booked, by the join of the audit: a payment may be taken twice.
		`m.kind = 'payment_without_order' AND EXISTS (SELECT 1 FROM captures c WHERE c.payment_key = m.payment_key OFFSET 0)
			AND NOT EXISTS (SELECT 1 FROM mirror g
				WHERE g.payment_key = m.payment_key AND (m.transaction_key IS NULL OR g.transaction_key = m.transaction_key)
					AND g.kind = 'capture' AND NOT g.is_foreign AND g.amount > 0
					AND NOT EXISTS (SELECT 1 FROM captures c WHERE c.payment_key = g.payment_key
						AND (c.transaction_key = g.transaction_key OR c.transaction_key IS NULL)) OFFSET 0)`,
		// Found by an answer before the list named the transaction, which is a mismatch of its own now.
		`m.kind = 'payment_without_order' AND m.transaction_key IS NULL AND EXISTS (SELECT 1 FROM mismatches x
			WHERE x.payment_key = m.payment_key AND x.kind = m.kind AND x.transaction_key IS NOT NULL OFFSET 0)`,
		// The row is another system's by the settings of the service, and nothing of it is in our books.
		`m.kind IN ('payment_without_order', 'cancel_missing_here') AND m.transaction_key IS NOT NULL AND EXISTS (SELECT 1 FROM mirror g
			WHERE g.transaction_key = m.transaction_key AND g.is_foreign
				AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.payment_key = g.payment_key)
				AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.order_id = g.order_id) OFFSET 0)`,
		`m.kind IN ('amount_differs', 'currency_differs') AND m.transaction_key IS NOT NULL AND EXISTS (SELECT 1 FROM cancels c
			JOIN mirror g ON g.transaction_key = c.transaction_key
			WHERE c.transaction_key = m.transaction_key AND c.amount = g.amount AND c.currency = g.currency OFFSET 0) AND ` + notAnswered,
		`m.kind IN ('amount_differs', 'currency_differs') AND m.transaction_key IS NOT NULL AND ` + notAnswered + ` AND EXISTS (SELECT 1 FROM mirror g
			WHERE g.transaction_key = m.transaction_key AND g.kind = 'capture' AND (g.amount, g.currency) = (
				SELECT c.amount, c.currency FROM captures c
				WHERE c.payment_key = g.payment_key AND (c.transaction_key = g.transaction_key OR c.transaction_key IS NULL)
				ORDER BY c.transaction_key NULLS LAST LIMIT 1) OFFSET 0)`,
		// Both books say the same of whose the cancel is; or other things than it was about, which is a mismatch of its own.
		`m.kind = 'order_differs' AND m.transaction_key IS NOT NULL AND EXISTS (SELECT 1 FROM mirror g
			WHERE g.transaction_key = m.transaction_key AND g.kind = 'cancel' AND NOT (
				g.payment_key = m.payment_key AND g.order_id = COALESCE(m.order_id, '') AND EXISTS (SELECT 1 FROM cancels c
					WHERE c.transaction_key = g.transaction_key AND c.amount > 0 AND (c.payment_key <> g.payment_key OR ` + otherOrder("c.order_id", "g.order_id") + `))) OFFSET 0)`,
		`m.kind = 'order_differs' AND m.transaction_key IS NOT NULL AND EXISTS (SELECT 1 FROM mirror g
			WHERE g.transaction_key = m.transaction_key AND g.kind = 'capture' AND NOT (
				g.payment_key = m.payment_key AND g.order_id = COALESCE(m.order_id, '')
				AND EXISTS (SELECT 1 FROM captures c WHERE c.payment_key = g.payment_key OFFSET 0)
				AND EXISTS (SELECT 1 FROM payments p WHERE p.payment_key = g.payment_key AND ` + otherOrder("p.order_id", "g.order_id") + ` OFFSET 0)) OFFSET 0)`,
		// A later answer agreed with order, merchant and money, and the list says nothing else.
		`m.kind IN ('order_differs', 'merchant_differs', 'amount_differs', 'currency_differs') AND m.transaction_key IS NULL AND ` + recordedSince + `
			AND NOT EXISTS (SELECT 1 FROM mirror g JOIN captures c ON c.payment_key = g.payment_key
				WHERE g.payment_key = m.payment_key AND g.kind = 'capture' AND (g.amount, g.currency) <> (c.amount, c.currency) OFFSET 0)`,
		// The second payment was given back whole, or the first one was and this one holds the order.
		`m.kind = 'order_paid_twice' AND EXISTS (SELECT 1 FROM payments p
			WHERE p.payment_key = m.payment_key AND (p.status = 'canceled' OR NOT p.surplus) OFFSET 0)`,
		`m.kind = 'credits_already_spent' AND EXISTS (SELECT 1 FROM orders o JOIN credit_accounts a ON a.customer_id = o.customer_id
			WHERE o.order_id = m.order_id AND a.granted - a.revoked - a.spent >= 0 OFFSET 0)`,
		`m.kind IN ('quarantined', 'unrecognized_status') AND m.transaction_key IS NULL AND ` + recordedSince,
	}, rowAgreements()...)
}

// rowAgreements are those of the kinds that say of one transaction that what the gateway says of it contradicts itself.
func rowAgreements() []string {
	return []string{
		`m.kind = 'history_changed' AND m.detail IN ('` + detailVanished + `', '` + detailTakenBack + `')
			AND EXISTS (SELECT 1 FROM captures c WHERE c.transaction_key = m.transaction_key OFFSET 0)
			AND NOT EXISTS (SELECT 1 FROM captures c WHERE c.transaction_key = m.transaction_key AND c.reversed_at IS NULL OFFSET 0)`,
		`m.kind = 'history_changed' AND m.detail = '` + detailTakenBack + `' AND EXISTS (SELECT 1 FROM mirror g
			WHERE g.transaction_key = m.transaction_key AND g.waiting_since IS NULL AND g.missing_since IS NULL OFFSET 0)`,
		`m.kind = 'history_changed' AND m.detail = '` + detailVanished + `' AND EXISTS (SELECT 1 FROM mirror g
			WHERE g.transaction_key = m.transaction_key AND g.missing_since IS NULL OFFSET 0)`,
		// The row was read as it was first, by a read that began since, came to its end and showed it in no other way. What a
		// person accepted stays as it was accepted: its day may be signed.
		`m.kind = 'history_changed' AND m.status <> 'resolved' AND (m.detail LIKE '` + detailChanged + `%' OR m.detail LIKE '` + detailTwice + `%')
			AND EXISTS (SELECT 1 FROM mirror g JOIN list_runs r ON r.run_id = g.last_run
				WHERE g.transaction_key = m.transaction_key AND g.missing_since IS NULL AND g.waiting_since IS NULL AND NOT g.is_foreign
					AND g.last_seen_at >= r.started_at AND r.result = 'complete' AND r.started_at > m.last_seen_at OFFSET 0)`,
		// The row was read exactly since, or its word has become known.
		`m.kind IN ('quarantined', 'unrecognized_status') AND m.transaction_key IS NOT NULL AND EXISTS (SELECT 1 FROM mirror g
			WHERE g.transaction_key = m.transaction_key AND g.kind <> 'unrecognized' AND g.last_seen_at > m.last_seen_at OFFSET 0)`,
		// The row and its transaction in the journal are of one fact again, or both are gone.
		`m.kind = 'journal_differs' AND NOT EXISTS (SELECT 1 FROM ` + ofReference("(m.books ->> 'entry')", "(m.books ->> 'reference')") + `
			WHERE NOT ` + journalled + ` OFFSET 0)`,
	}
}

// resolveAgreed closes mismatches that the facts have overtaken, and the incidents that end with them.
func resolveAgreed(ctx context.Context, tx pgx.Tx, now time.Time) error {
	b := &pgx.Batch{}
	for n, agreed := range agreements() {
		args := pgx.StrictNamedArgs{"now": now}
		if n == 0 {
			args["overdue"] = now.Add(-overdueGrace)
		}
		b.Queue(`
			UPDATE mismatches m
			SET status = 'resolved', resolved_at = @now, resolved_as = 'auto', resolved_by = 'system', proposal = NULL,
				revision = m.revision + 1, changed_at = @now, changed_by = 'system', remark = ''
			WHERE m.status <> 'resolved' AND `+agreed, args)
	}
	ledger.QueueEndIncidents(b, now)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("resolve mismatches: %w", err)
	}
	return nil
}
