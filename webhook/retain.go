package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// How long is kept what a delivery leaves. Cancels are asked about for a year, by buyers, card companies and auditors;
// everything else is of use only while somebody looks into a failure. What anybody can make up goes first.
const (
	day = 24 * time.Hour
	// bodiesKept is for masked bodies: after the redelivery of three days and some weeks of looking into it.
	bodiesKept = 90 * day
	// strangersKept is for deliveries that name nothing of ours.
	strangersKept = 30 * day
	// statusesKept is for statuses that are no cancel.
	statusesKept = 90 * day
	// cancelsKept is for notices of cancels of our payments: the longest time in which a card can be refunded, and a month.
	cancelsKept = 396 * day
	// parkedKept is for claims of payments never seen, after they have expired.
	parkedKept = 30 * day
	// retainedMax bounds one statement, so that no lock is held for long.
	retainedMax = 5_000
)

// Retained counts what one run of the retention took away.
type Retained struct {
	Bodies     int64
	Deliveries int64
	Expired    int64 // claims of payments that were never seen in time
	Claims     int64
}

// Retain takes away what need not be kept. A delivery stays as long as its payment has open work or a mismatch that
// nobody has resolved: it is evidence.
func (h *Handler) Retain(ctx context.Context) (Retained, error) {
	now := h.cfg.Now()
	var done Retained
	for _, step := range []struct {
		what string
		into *int64
		sql  string
		args pgx.StrictNamedArgs
	}{
		{"expire parked claims", &done.Expired, expireParked, pgx.StrictNamedArgs{"now": now, "most": retainedMax}},
		{"forget bodies", &done.Bodies, forgetBodies, pgx.StrictNamedArgs{"before": now.Add(-bodiesKept), "most": retainedMax}},
		{"forget parked claims", &done.Claims, forgetParked, pgx.StrictNamedArgs{"before": now.Add(-parkedKept), "most": retainedMax}},
		{"forget deliveries", &done.Deliveries, forgetDeliveries, pgx.StrictNamedArgs{
			"strangers": now.Add(-strangersKept), "statuses": now.Add(-statusesKept), "cancels": now.Add(-cancelsKept),
			"most": retainedMax,
		}},
	} {
		for {
			tag, err := h.cfg.DB.Exec(ctx, step.sql, step.args)
			if err != nil {
				return done, fmt.Errorf("%s: %w", step.what, err)
			}
			*step.into += tag.RowsAffected()
			if tag.RowsAffected() < retainedMax {
				break
			}
		}
	}
	return done, nil
}

const (
	expireParked = `
		UPDATE work
		SET closed_at = @now, closed_as = 'expired'
		WHERE work_id IN (
			SELECT w.work_id FROM work w
			WHERE w.kind = 'parked' AND w.closed_at IS NULL AND w.deadline <= @now
			LIMIT @most
			FOR UPDATE SKIP LOCKED)`

	forgetParked = `
		DELETE FROM work
		WHERE work_id IN (
			SELECT w.work_id FROM work w
			WHERE w.kind = 'parked' AND w.closed_at < @before
			LIMIT @most)`

	forgetBodies = `
		UPDATE deliveries
		SET body = NULL
		WHERE delivery_id IN (
			SELECT d.delivery_id FROM deliveries d
			WHERE d.body IS NOT NULL AND d.received_at < @before AND ` + notEvidence + `
			ORDER BY d.received_at
			LIMIT @most)`

	forgetDeliveries = `
		DELETE FROM deliveries
		WHERE delivery_id IN (
			SELECT d.delivery_id FROM deliveries d
			WHERE d.outcome <> 'received'
				AND d.received_at < GREATEST(@strangers::timestamptz, @statuses::timestamptz, @cancels::timestamptz) -- a bound for the index: CASE is none
				AND d.received_at < CASE
					WHEN d.outcome IN ('body_unparsable', 'signature_rejected', 'event_ignored', 'payment_not_found') THEN @strangers::timestamptz
					WHEN d.outcome = 'status_ignored' THEN @statuses::timestamptz
					ELSE @cancels::timestamptz END
				AND ` + notEvidence + `
			ORDER BY d.received_at
			LIMIT @most)`

	notEvidence = `(d.payment_key IS NULL
			OR NOT EXISTS (SELECT 1 FROM work w WHERE w.payment_key = d.payment_key AND w.closed_at IS NULL)
				AND NOT EXISTS (SELECT 1 FROM mismatches m WHERE m.payment_key = d.payment_key AND m.status <> 'resolved'))`
)
