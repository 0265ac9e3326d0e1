package webhook

// The parts of the statements that keep a delivery; shape.statement puts them together.

// subject finds the key of the payment that a notice is about: the key itself; for a deposit callback by its order, where
// the payment that has the callback's secret comes first; for the notice of one cancel by open work, by its transaction
// key: our own cancels carry no other name that the gateway would repeat.
func (s shape) subject() string {
	switch s.by {
	case subjectPayment:
		return `subject AS (SELECT NULLIF(@payment_key::text, '') AS payment_key)`
	case subjectOrder:
		return `subject AS (
		SELECT p.payment_key
		FROM payments p
		WHERE p.order_id = @order_id::text
		ORDER BY sha256(p.secret_digest || @salt::bytea) = @salted::bytea DESC NULLS LAST, p.virtual_account DESC,
			p.status NOT IN ('ready', 'failed') DESC, p.created_at DESC
		LIMIT 1
	)`
	case subjectWork:
		return `subject AS (
		SELECT w.payment_key
		FROM work w
		WHERE w.closed_at IS NULL AND w.kind <> 'parked' AND w.transaction_key = ANY(@named::text[])
		LIMIT 1
	)`
	}
	return ""
}

// paymentPart is what the decision needs to know of the payment.
const paymentPart = `, payment AS (
		SELECT p.payment_key, p.order_id, p.status, p.currency, p.amount,
			p.secret_digest IS NOT NULL AND sha256(p.secret_digest || @salt::bytea) <> @salted::bytea AS wrong_secret,
			p.secret_digest IS NOT NULL AND sha256(p.secret_digest || @salt::bytea) = @salted::bytea AS right_secret,
			cardinality(@named::text[]) > 0 AND NOT EXISTS (
				SELECT 1 FROM unnest(@named) AS named (transaction_key)
				WHERE NOT EXISTS (SELECT 1 FROM cancels c
					WHERE c.payment_key = p.payment_key AND c.transaction_key = named.transaction_key)) AS all_applied
		FROM payments p
		JOIN subject s ON s.payment_key = p.payment_key
	)`

// decisionPart is the outcome; received is one that needs the gateway.
const decisionPart = `, decision AS (
		SELECT CASE
				WHEN @by_order AND p.wrong_secret THEN 'signature_rejected'
				WHEN p.payment_key IS NULL AND (@foreign::boolean OR @by_work) THEN 'event_ignored'
				WHEN @no_cancel::boolean THEN 'status_ignored'
				WHEN p.payment_key IS NULL THEN 'payment_not_found'
				WHEN p.status = 'canceled' OR p.all_applied THEN 'duplicate_skipped'
				ELSE 'received'
			END AS outcome,
			p.payment_key, p.order_id, p.status, p.currency, p.amount, p.right_secret
		FROM (VALUES (1)) AS always (here)
		LEFT JOIN payment p ON true
	)`

// deliveryPart keeps the delivery. The body of a payment never seen is not kept.
const deliveryPart = `, delivery AS (
		INSERT INTO deliveries (received_at, transmission_id, retried_count, sent_at, source, event_type, word,
			payment_key, order_id, body, body_hash, body_bytes, outcome, reason, status, answered_at)
		SELECT @now::timestamptz, NULLIF(@transmission_id::text, ''), @retried_count::integer, @sent_at::timestamptz,
			@source::text, @event_type::text, @word::text,
			COALESCE(d.payment_key, NULLIF(@payment_key::text, '')),
			COALESCE(d.order_id, CASE WHEN @by_order THEN NULLIF(@order_id::text, '') END),
			CASE WHEN d.payment_key IS NOT NULL THEN @body::jsonb END, @body_hash::bytea, @body_bytes::integer,
			d.outcome, '',
			CASE d.outcome
				WHEN 'received' THEN NULL
				WHEN 'payment_not_found' THEN 404
				WHEN 'signature_rejected' THEN 401
				ELSE 200 END,
			CASE WHEN d.outcome <> 'received' THEN @now END
		FROM decision d
		RETURNING delivery_id
	)`

// watchedPart makes work due where a status contradicts the books, or speaks of what they do not know yet.
const watchedPart = `, watched AS (
		INSERT INTO work AS w (kind, payment_key, order_id, currency, amount, opened_at, due_at, deadline, told_at)
		SELECT CASE WHEN d.status IN ('confirming', 'unknown') THEN 'confirm_unknown' ELSE 'deposit_watch' END,
			d.payment_key, d.order_id, d.currency, d.amount, @now, @now, @now + interval '1 hour',
			CASE WHEN d.right_secret THEN @told_at::timestamptz END
		FROM decision d
		WHERE d.outcome = 'status_ignored' AND d.status = ANY(@contradicted::text[])
		ON CONFLICT (payment_key, subject) WHERE closed_at IS NULL
		DO UPDATE SET due_at = LEAST(w.due_at, GREATEST(@now, w.last_asked_at + interval '10 seconds')),
			told_at = GREATEST(w.told_at, excluded.told_at)
	)`

// hurriedPart makes the work due that waits for the cancel.
const hurriedPart = `, hurried AS (
		UPDATE work w
		SET due_at = LEAST(w.due_at, GREATEST(@now, w.last_asked_at + interval '10 seconds'))
		FROM decision d
		WHERE @by_work AND d.outcome = 'status_ignored' AND w.closed_at IS NULL AND w.payment_key = d.payment_key
			AND w.transaction_key = ANY(@named)
	)`

// parkedPart keeps the claims of a payment never seen, as long as there is room.
const parkedPart = `, room AS (
		SELECT count(*) < @parked_max::integer AS left
		FROM (SELECT 1 FROM work w
			WHERE (SELECT d.outcome FROM decision d) = 'payment_not_found' AND w.kind = 'parked' AND w.closed_at IS NULL
			LIMIT @parked_max) AS open
	), parked AS (
		INSERT INTO work AS w (kind, payment_key, transaction_key, opened_at, due_at, deadline,
			notice_failed_at, notice_attempt, notice_next_at)
		SELECT 'parked', @payment_key, claimed.transaction_key, @now, @deadline::timestamptz, @deadline,
			@now, @notice_attempt::integer, @notice_next_at::timestamptz
		FROM decision d
		CROSS JOIN unnest(@claimed::text[]) AS claimed (transaction_key)
		WHERE d.outcome = 'payment_not_found' AND @payment_key <> '' AND (SELECT r.left FROM room r)
		ON CONFLICT (payment_key, subject) WHERE closed_at IS NULL
		DO UPDATE SET notice_attempt = excluded.notice_attempt, notice_next_at = excluded.notice_next_at
	)`
