package ledger

// soundRequests holds the ends of our own cancels against the books: a cancel that we call done is booked under the key
// that the gateway answered with (a void, which moves nothing, under any key of its payment, also where we asked for a
// deposit that had fallen back), and one that the gateway has only accepted is asked about until it is done or given up.
const soundRequests = `
	SELECT 'I9' AS invariant, r.request_id AS subject, 'our cancel is done and not in the books' AS detail
	FROM cancel_requests r
	WHERE r.status = 'done' AND NOT EXISTS (SELECT 1 FROM cancels c
		WHERE c.payment_key = r.payment_key AND (c.transaction_key = r.transaction_key OR r.amount = 0 OR (r.transaction_key IS NULL AND c.amount = 0)))
	UNION ALL
	SELECT 'I6', r.request_id, 'our cancel is in progress and nobody asks'
	FROM cancel_requests r
	WHERE r.status = 'in_progress' AND NOT EXISTS (SELECT 1 FROM work w
		WHERE w.payment_key = r.payment_key AND w.closed_at IS NULL
			AND (w.transaction_key = r.transaction_key OR w.request_id = r.request_id))`
