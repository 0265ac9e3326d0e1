package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/pgclient"
)

const (
	// crashedAfter is how long a delivery may be without an outcome; several times the deadline of a request.
	crashedAfter = time.Minute
	// reapedMax bounds one statement of the reaper.
	reapedMax = 500
)

// Reap closes the deliveries that a crash left without an outcome, and makes their payments due at once: the gateway
// may have been asked and the answer lost. Their last chance counts from the delivery, as the sender does. It returns how
// many there were. Doing it twice does nothing more.
func (h *Handler) Reap(ctx context.Context) (int, error) {
	total := 0
	for {
		n, err := h.reapSome(ctx)
		total += n
		h.cfg.Metrics.reaped.Add(float64(n))
		if err != nil || n < reapedMax {
			return total, err
		}
	}
}

func (h *Handler) reapSome(ctx context.Context) (int, error) {
	now := h.cfg.Now()
	rows, err := h.cfg.DB.Query(ctx, `
		WITH crashed AS (
			SELECT delivery_id
			FROM deliveries
			WHERE outcome = 'received' AND received_at < @before
			ORDER BY received_at
			LIMIT @most
			FOR UPDATE SKIP LOCKED
		), reaped AS (
			UPDATE deliveries d
			SET outcome = 'db_failed', reason = 'crashed', reaped = true
			FROM crashed c
			WHERE c.delivery_id = d.delivery_id
			RETURNING d.delivery_id, d.payment_key, d.received_at, d.retried_count
		), due AS (
			INSERT INTO work AS w (kind, payment_key, order_id, currency, opened_at, due_at, deadline, notice_failed_at, notice_attempt)
			SELECT 'cancel_claimed', p.payment_key, p.order_id, p.currency, @now, @now,
				first.received_at + @patience::interval, first.received_at, first.attempt
			FROM (SELECT r.payment_key, min(r.received_at) AS received_at, max(LEAST(r.retried_count, 7)) AS attempt
				FROM reaped r GROUP BY r.payment_key) AS first
			JOIN payments p ON p.payment_key = first.payment_key
			ORDER BY p.payment_key
			ON CONFLICT (payment_key, subject) WHERE closed_at IS NULL
			DO UPDATE SET due_at = LEAST(w.due_at, excluded.due_at),
				opened_at = GREATEST(w.opened_at, excluded.opened_at),
				notice_failed_at = COALESCE(w.notice_failed_at, excluded.notice_failed_at)
		)
		SELECT count(*)::integer FROM reaped`,
		pgx.StrictNamedArgs{
			"now": now, "before": now.Add(-crashedAfter), "most": reapedMax, "patience": pgclient.LastChance(now).Sub(now),
		})
	if err != nil {
		return 0, fmt.Errorf("reap deliveries: %w", err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	if err != nil {
		return 0, fmt.Errorf("reap deliveries: %w", err)
	}
	return n, nil
}
