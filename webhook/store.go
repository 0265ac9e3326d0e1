package webhook

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/pgclient"
)

// stored is what became of a delivery when it was stored.
type stored struct {
	DeliveryID int64   `db:"delivery_id"`
	Outcome    Outcome `db:"outcome"`
	PaymentKey string  `db:"payment_key"`
	NotParked  bool    `db:"not_parked"`
}

// storeStatement keeps a delivery and decides everything that needs no question to the gateway, in one statement: one
// round trip, one commit. Notices are cheap to send, so those that lead to nothing have to be cheap to answer.
//
// It finds the payment that the notice is about, by key, by order for the callbacks that name no payment, by open work
// for the one kind that names only a cancel (by its transaction key: our own cancels carry no other name that the gateway
// would repeat); works out the outcome; and makes the work due that a status calls for, or
// parks the claim of a payment never seen.
const storeStatement = `
	WITH subject AS (
		SELECT COALESCE(
			NULLIF(@payment_key::text, ''),
			(SELECT p.payment_key
			 FROM payments p
			 WHERE @by_order::boolean AND p.order_id = @order_id::text
			 ORDER BY sha256(p.secret_digest || @salt::bytea) = @salted::bytea DESC NULLS LAST, p.virtual_account DESC,
				p.status NOT IN ('ready', 'failed') DESC, p.created_at DESC
			 LIMIT 1),
			(SELECT w.payment_key
			 FROM work w
			 WHERE @by_work::boolean AND w.closed_at IS NULL AND w.kind <> 'parked' AND w.transaction_key = ANY(@named::text[])
			 LIMIT 1)) AS payment_key
	), payment AS (
		SELECT p.payment_key, p.order_id, p.status, p.currency, p.amount,
			p.secret_digest IS NOT NULL AND sha256(p.secret_digest || @salt) <> @salted AS wrong_secret,
			p.secret_digest IS NOT NULL AND sha256(p.secret_digest || @salt) = @salted AS right_secret,
			cardinality(@named) > 0 AND NOT EXISTS (
				SELECT 1 FROM unnest(@named) AS named (transaction_key)
				WHERE NOT EXISTS (SELECT 1 FROM cancels c
					WHERE c.payment_key = p.payment_key AND c.transaction_key = named.transaction_key)) AS all_applied
		FROM payments p
		JOIN subject s ON s.payment_key = p.payment_key
	), decision AS (
		SELECT CASE
				WHEN @settled::text <> '' THEN @settled
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
	), delivery AS (
		INSERT INTO deliveries (received_at, transmission_id, retried_count, sent_at, source, event_type, word,
			payment_key, order_id, body, body_hash, body_bytes, outcome, reason, status, answered_at)
		SELECT @now::timestamptz, NULLIF(@transmission_id::text, ''), @retried_count::integer, @sent_at::timestamptz,
			@source::text, @event_type::text, @word::text,
			COALESCE(d.payment_key, NULLIF(@payment_key, '')),
			COALESCE(d.order_id, CASE WHEN @by_order THEN NULLIF(@order_id, '') END),
			CASE WHEN d.payment_key IS NOT NULL THEN @body::jsonb END, @body_hash::bytea, @body_bytes::integer,
			d.outcome, @reason::text,
			CASE d.outcome
				WHEN 'received' THEN NULL
				WHEN 'payment_not_found' THEN 404
				WHEN 'signature_rejected' THEN 401
				WHEN 'body_unparsable' THEN @unparsable_status::integer
				ELSE 200 END,
			CASE WHEN d.outcome <> 'received' THEN @now END
		FROM decision d
		RETURNING delivery_id
	), watched AS (
		INSERT INTO work AS w (kind, payment_key, order_id, currency, amount, opened_at, due_at, deadline, told_at)
		SELECT CASE WHEN d.status IN ('confirming', 'unknown') THEN 'confirm_unknown' ELSE 'deposit_watch' END,
			d.payment_key, d.order_id, d.currency, d.amount, @now, @now, @now + interval '1 hour',
			CASE WHEN d.right_secret THEN @told_at::timestamptz END
		FROM decision d
		WHERE d.outcome = 'status_ignored' AND d.status = ANY(@contradicted::text[])
		ON CONFLICT (payment_key, subject) WHERE closed_at IS NULL
		DO UPDATE SET due_at = LEAST(w.due_at, GREATEST(@now, w.last_asked_at + interval '10 seconds')),
			told_at = GREATEST(w.told_at, excluded.told_at)
	), hurried AS (
		UPDATE work w
		SET due_at = LEAST(w.due_at, GREATEST(@now, w.last_asked_at + interval '10 seconds'))
		FROM decision d
		WHERE @by_work AND d.outcome = 'status_ignored' AND w.closed_at IS NULL AND w.payment_key = d.payment_key
			AND w.transaction_key = ANY(@named)
	), room AS (
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
	)
	SELECT delivery.delivery_id, d.outcome, COALESCE(d.payment_key, '') AS payment_key,
		d.outcome = 'payment_not_found' AND NOT (SELECT r.left FROM room r) AS not_parked
	FROM decision d
	CROSS JOIN delivery`

// parkedMax bounds how many claims of payments never seen are kept: a stranger can make them up.
const parkedMax = 10_000

// store keeps the delivery. Its one round trip also decides everything that needs no question.
func (h *Handler) store(ctx context.Context, d delivery) (stored, error) {
	n := d.notice
	salt, salted := d.saltedSecret()
	clock := d.clock()
	rows, err := h.cfg.DB.Query(ctx, storeStatement, pgx.StrictNamedArgs{
		"payment_key": n.PaymentKey, "order_id": n.OrderID, "named": d.named,
		"by_order": n.Kind == pgclient.NoticeDepositCallback, "by_work": n.Kind == pgclient.NoticeCancelChanged,
		"salt": salt, "salted": salted, "settled": d.settled.outcome, "foreign": d.foreign,
		"no_cancel": n.Family == pgclient.FamilyKnownOther, "contradicted": contradicted(n.Claims),
		"now": d.at, "transmission_id": n.TransmissionID, "retried_count": n.RetriedCount, "sent_at": postgres.NullTime(n.SentAt),
		"source": d.source, "event_type": n.EventType, "word": n.Word, "body": d.masked, "body_hash": d.hash[:],
		"body_bytes": d.size, "reason": d.settled.reason, "unparsable_status": d.settled.httpStatus(),
		"parked_max": parkedMax, "claimed": claimed(d.named[:min(len(d.named), claimsMax)]), "deadline": clock.lastChance,
		"notice_attempt": clock.attempt, "notice_next_at": clock.next, "told_at": postgres.NullTime(d.toldAt()),
	})
	if err != nil {
		return stored{}, fmt.Errorf("store delivery: %w", err)
	}
	s, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[stored])
	if err != nil {
		return stored{}, fmt.Errorf("store delivery: %w", err)
	}
	return s, nil
}
