package report

// What an order and its payments were is kept nowhere as such. It follows from rows that were written in the same
// transaction as the change, with its instant, and that stay: the journal and the books for money and voids, work for
// attempts and for accounts that wait, the merchant's event for a failure. Each state names the row that shows it. What
// such rows do not show is not told: when an attempt came to be in doubt, for one.

// paymentStates are the states of the payments, each once, from when it was taken. The present one stands there, too,
// where no row shows when it was taken: then since its row last changed.
//
// An attempt is work with the deadline of an intent, and it ended as turned away when there was another, since only what
// is ready may be intended. An account waits when work to watch it was opened and there was no deposit that could fall
// back; after one fell back and the payment failed or was void, work may be about money seen, and shows nothing.
const paymentStates = `
		SELECT 9, s.n, s.at, NULL::timestamptz, 'payment', 'state', s.status, s.currency, s.balance, s.payment_key, NULL,
			concat_ws('; ', s.shown, CASE WHEN s.present THEN NULLIF(s.detail, '') END), NULL
		FROM (
			WITH booked AS (
				SELECT t.payment_key, t.recorded_at AS at, max(t.transaction_id) AS transaction_id, bool_or(t.kind = 'deposit_reversal') AS fell,
					COALESCE(sum(sum(e.amount) FILTER (WHERE t.kind <> 'cancel')) OVER so_far, 0)::bigint AS captured,
					-COALESCE(sum(sum(e.amount) FILTER (WHERE t.kind = 'cancel')) OVER so_far, 0)::bigint AS canceled
				FROM journal_transactions t
				JOIN journal_entries e ON e.transaction_id = t.transaction_id AND e.account = 'gateway_receivable'
				WHERE t.payment_key = ANY(@payments) AND t.kind IN ('capture', 'cancel', 'deposit_reversal')
				GROUP BY t.payment_key, t.recorded_at
				WINDOW so_far AS (PARTITION BY t.payment_key ORDER BY t.recorded_at)
			), voided AS (
				SELECT c.payment_key, min(c.recorded_at) AS at, min(c.transaction_key) AS transaction_key
				FROM cancels c
				WHERE c.payment_key = ANY(@payments) AND c.amount = 0
				GROUP BY c.payment_key
			), failed AS (
				SELECT v.payment_key, v.created_at AS at, v.event_id
				FROM events v
				WHERE v.order_id = @order_id AND v.kind = 'payment.failed'
			), asked AS (
				SELECT w.work_id, w.kind, w.payment_key, w.opened_at, w.deadline, w.closed_at
				FROM work w
				WHERE w.payment_key = ANY(@payments) AND w.closed_at IS NULL AND w.kind IN ('confirm_unknown', 'deposit_watch')
				UNION ALL
				SELECT w.work_id, w.kind, w.payment_key, w.opened_at, w.deadline, w.closed_at
				FROM work w
				WHERE w.payment_key = ANY(@payments) AND w.closed_at IS NOT NULL AND w.kind IN ('confirm_unknown', 'deposit_watch')
			), attempts AS (
				SELECT work_id, payment_key, opened_at, closed_at FROM asked
				WHERE kind = 'confirm_unknown' AND deadline = opened_at + @attempt_age::interval
			), shown AS (
				SELECT p.payment_key, p.created_at AS at, 1 AS n, 'ready' AS status, 0 AS balance, 'put in the books' AS shown
				FROM payments p
				WHERE p.payment_key = ANY(@payments) AND p.attempt = (SELECT count(*) FROM attempts a WHERE a.payment_key = p.payment_key)
				UNION ALL
				SELECT payment_key, opened_at, 2, 'confirming', 0, 'work ' || work_id FROM attempts
				UNION ALL
				SELECT a.payment_key, a.closed_at, 3, 'ready', 0, 'turned away; work ' || a.work_id
				FROM attempts a
				JOIN payments p ON p.payment_key = a.payment_key
				WHERE p.intended_at >= a.closed_at OR (p.status = 'ready' AND a.closed_at IS NOT NULL)
				UNION ALL
				SELECT w.payment_key, w.opened_at, 4, 'waiting_for_deposit', 0, 'work ' || w.work_id
				FROM asked w
				WHERE w.kind = 'deposit_watch'
					AND COALESCE((SELECT b.captured FROM booked b WHERE b.payment_key = w.payment_key AND b.at <= w.opened_at
						ORDER BY b.at DESC LIMIT 1), 0) = 0
					AND NOT EXISTS (SELECT 1 FROM voided x WHERE x.payment_key = w.payment_key AND x.at <= w.opened_at)
					AND NOT EXISTS (SELECT 1 FROM failed f JOIN booked b ON b.payment_key = f.payment_key AND b.at < f.at
						WHERE f.payment_key = w.payment_key AND f.at <= w.opened_at)
				UNION ALL
				SELECT b.payment_key, b.at, 5,
					CASE WHEN b.captured > 0 AND b.canceled = 0 THEN 'done' WHEN b.captured > b.canceled THEN 'partially_canceled'
						WHEN b.captured > 0 THEN 'canceled'
						WHEN EXISTS (SELECT 1 FROM voided x WHERE x.payment_key = b.payment_key AND x.at = b.at) THEN 'canceled'
						ELSE 'waiting_for_deposit' END,
					b.captured - b.canceled, 'transaction ' || b.transaction_id
				FROM booked b
				UNION ALL
				SELECT payment_key, at, 6, 'canceled', 0, 'cancel ' || transaction_key FROM voided
				UNION ALL
				SELECT payment_key, at, 7, 'failed', 0, event_id FROM failed WHERE payment_key = ANY(@payments)
			), taken AS (
				SELECT payment_key, at, n, status, balance, shown
				FROM (
					SELECT s.payment_key, s.at, s.n, s.status, s.balance, s.shown,
						lag(s.status) OVER before AS status_before, lag(s.balance) OVER before AS balance_before,
						s.n = 1 AND EXISTS (SELECT 1 FROM shown o WHERE o.payment_key = s.payment_key AND o.n > 1 AND o.at = s.at) AS at_once
					FROM shown s
					WINDOW before AS (PARTITION BY s.payment_key ORDER BY s.at, s.n)) AS every
				WHERE NOT at_once AND (status, balance) IS DISTINCT FROM (status_before, balance_before)
			), last AS (
				SELECT DISTINCT ON (payment_key) payment_key, at, n, status, balance FROM taken ORDER BY payment_key, at DESC, n DESC
			)
			SELECT t.payment_key, p.currency, t.at, t.n, t.status, t.balance, t.shown,
				(t.at, t.n) = (l.at, l.n) AND (p.status, p.captured - p.canceled) = (t.status, t.balance) AS present,
				` + presentDetail + ` AS detail
			FROM taken t
			JOIN last l ON l.payment_key = t.payment_key
			JOIN payments p ON p.payment_key = t.payment_key
			UNION ALL
			SELECT p.payment_key, p.currency, p.updated_at, 9, p.status, p.captured - p.canceled, NULL, true, ` + presentDetail + `
			FROM payments p
			LEFT JOIN last l ON l.payment_key = p.payment_key
			WHERE p.payment_key = ANY(@payments) AND (p.status, p.captured - p.canceled) IS DISTINCT FROM (l.status, l.balance)
		) AS s`

// presentDetail is what a payment's row says of the state that it is in.
const presentDetail = `concat_ws('; ', NULLIF(p.reason, ''), CASE WHEN p.surplus THEN 'does not hold the order' END)`

// orderStates are the states of the order after its first: what was earned by it and refunded, which leaves out surplus
// money, a void of the account that held it, and that it expired, which is kept without its instant: not before its
// time was over, and not while a payment is shown to have held it.
//
//nolint:dupword // several columns without anything
const orderStates = `
		SELECT 9, 10 + s.n, s.at, NULL::timestamptz, 'order', 'state', s.status, s.currency, s.balance, s.payment_key, NULL, s.shown, NULL
		FROM (
			WITH booked AS (
				SELECT t.recorded_at AS at, max(t.transaction_id) AS transaction_id, max(t.payment_key) AS payment_key, max(e.currency) AS currency,
					-COALESCE(sum(sum(e.amount) FILTER (WHERE e.account = 'sales')) OVER so_far, 0)::bigint AS sold,
					COALESCE(sum(sum(e.amount) FILTER (WHERE e.account = 'refunds')) OVER so_far, 0)::bigint AS refunded
				FROM journal_transactions t
				JOIN journal_entries e ON e.transaction_id = t.transaction_id AND e.account IN ('sales', 'refunds')
				WHERE t.payment_key = ANY(@payments) AND t.order_id = @order_id
				GROUP BY t.recorded_at
				WINDOW so_far AS (ORDER BY t.recorded_at)
			), voided AS (
				SELECT c.recorded_at AS at, c.payment_key, c.currency, c.transaction_key
				FROM cancels c
				JOIN payments p ON p.payment_key = c.payment_key AND p.order_id = @order_id AND NOT p.surplus
				WHERE c.payment_key = ANY(@payments) AND c.amount = 0
				ORDER BY c.recorded_at, c.transaction_key
				LIMIT 1
			)
			SELECT 1 AS n, b.at,
				CASE WHEN b.sold > 0 AND b.refunded = 0 THEN 'paid' WHEN b.sold > b.refunded THEN 'partially_canceled'
					WHEN b.sold > 0 OR b.at = (SELECT v.at FROM voided v) THEN 'canceled' ELSE 'pending' END AS status,
				b.currency, b.sold - b.refunded AS balance, b.payment_key, 'transaction ' || b.transaction_id AS shown
			FROM booked b
			UNION ALL
			SELECT 1, v.at, 'canceled', v.currency, 0, v.payment_key, 'cancel ' || v.transaction_key
			FROM voided v
			WHERE NOT EXISTS (SELECT 1 FROM booked b WHERE b.at = v.at)
			UNION ALL
			SELECT 2,
				GREATEST(o.expires_at, CASE WHEN o.status = 'expired' THEN GREATEST((SELECT max(b.at) FROM booked b),
					(SELECT max(v.created_at) FROM events v WHERE v.order_id = @order_id AND v.kind = 'payment.failed')) END),
				'expired', o.currency, NULL, NULL,
				concat_ws('; ', 'not before this', 'mismatch ' || m.mismatch_id)
			FROM orders o
			LEFT JOIN LATERAL (
				SELECT x.mismatch_id FROM mismatches x
				WHERE x.order_id = o.order_id AND x.kind = 'paid_after_expiry'
				ORDER BY x.mismatch_id
				LIMIT 1) m ON true
			WHERE o.order_id = @order_id AND (o.status = 'expired' OR m.mismatch_id IS NOT NULL)
		) AS s`

// storeHappened is what was asked of the merchant's store before the payment, and what became of it.
const storeHappened = `
		SELECT 1, s.n, s.at, NULL::timestamptz, 'store', s.what, s.result, a.currency, a.amount, a.payment_key, NULL,
			concat_ws('; ', a.acceptance_id, s.detail), NULL
		FROM acceptances a
		CROSS JOIN LATERAL (VALUES
			(1::bigint, a.asked_at, 'asked', NULL, concat_ws('; ', 'attempt ' || a.attempt, CASE WHEN a.word <> '' THEN 'the store: ' || a.word END)),
			(2, a.owed_at, 'release_owed', NULL, NULL),
			(3, a.ended_at, 'state', a.state, CASE WHEN a.releases > 0 THEN 'told ' || a.releases || ' times' END),
			(4, a.told_at, 'merchant_told', NULL, NULL)
		) AS s (n, at, what, result, detail)
		WHERE a.order_id = @order_id`
