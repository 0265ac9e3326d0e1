package ledger

// notices are the deliveries about payments in the books, each with the cancels that its body names. The body is the
// gateway's own and in its words: a payment with its cancels, or one transaction of what happened last. named leaves out
// what the body itself says was given up; done is what it says has happened. A body that names a cancel unreadably names
// none, as for the handler; so does one whose time to be kept is over.
const notices = `
	WITH notices AS (
		SELECT d.delivery_id, d.payment_key, d.received_at, d.outcome, d.reason, one.keys || CASE WHEN whole THEN named.keys ELSE '{}' END AS named,
			one.keys || CASE WHEN whole THEN done.keys ELSE '{}' END AS done
		FROM deliveries d
		JOIN payments p ON p.payment_key = d.payment_key AND p.status <> 'canceled'
		CROSS JOIN LATERAL (SELECT NOT COALESCE(jsonb_path_exists(d.body, '$.data.cancels[*] ? (!exists(@.transactionKey))'), false) AS whole) AS list
		CROSS JOIN LATERAL (SELECT ARRAY(SELECT key #>> '{}'
			FROM jsonb_path_query(jsonb_build_array(d.body, d.body -> 'data'), '$[*] ? (!exists(@.paymentKey)).transactionKey') AS key) AS keys) AS one
		CROSS JOIN LATERAL (SELECT ARRAY(SELECT key #>> '{}'
			FROM jsonb_path_query(d.body, '$.data.cancels[*] ? (!(@.cancelStatus == "ABORTED")).transactionKey') AS key) AS keys) AS named
		CROSS JOIN LATERAL (SELECT ARRAY(SELECT key #>> '{}'
			FROM jsonb_path_query(d.body, '$.data.cancels[*] ? (@.cancelStatus == "DONE").transactionKey') AS key) AS keys) AS done
	)`

// soundI9 holds what was acknowledged against the books: they have a cancel of the payment, and every cancel that the
// notice says is done. With nothing left no cancel can be missing. One that it named without saying so may have been
// given up since, and is not asked for; the key of a deposit is none of a cancel.
const soundI9 = notices + `
	SELECT 'I9' AS invariant, n.delivery_id::text AS subject, n.outcome || ' without a cancel in the books' AS detail
	FROM notices n
	WHERE n.outcome IN ('applied_full', 'applied_partial', 'duplicate_skipped')
		AND NOT EXISTS (SELECT 1 FROM cancels c WHERE c.payment_key = n.payment_key)
	UNION ALL
	SELECT 'I9', n.delivery_id::text, n.outcome || ' without cancel ' || done.transaction_key
	FROM notices n
	CROSS JOIN unnest(n.done) AS done (transaction_key)
	WHERE n.outcome IN ('applied_full', 'applied_partial', 'duplicate_skipped')
		AND NOT EXISTS (SELECT 1 FROM cancels c WHERE c.payment_key = n.payment_key AND c.transaction_key = done.transaction_key)
		AND NOT EXISTS (SELECT 1 FROM captures c WHERE c.payment_key = n.payment_key AND c.transaction_key = done.transaction_key)`

// soundOwed holds what was refused against the work: the cancel of a refused notice is in the books, or somebody asked
// or will ask about it after the notice came, by its name or without one. A cancel that was given up is owed nothing.
const soundOwed = notices + `
	SELECT 'I9' AS invariant, n.delivery_id::text AS subject, n.outcome || ' and nobody asks' AS detail
	FROM notices n
	WHERE n.outcome IN ('query_failed', 'state_mismatch', 'apply_failed', 'db_failed') AND n.reason <> 'given_up'
		AND NOT EXISTS (SELECT 1 FROM cancels c
			WHERE c.payment_key = n.payment_key AND (c.transaction_key = ANY(n.named) OR n.named = '{}'))
		AND NOT EXISTS (SELECT 1 FROM work w
			WHERE w.payment_key = n.payment_key
				AND w.kind IN ('cancel_claimed', 'cancel_listed', 'cancel_in_progress', 'parked')
				AND (w.closed_at IS NULL OR w.closed_at >= n.received_at)
				AND (w.transaction_key IS NULL OR w.transaction_key = ANY(n.named) OR n.named = '{}'))`
