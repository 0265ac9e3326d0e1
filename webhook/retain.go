package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	day = 24 * time.Hour
	// keepLeast is above the longest time in which a notice can come again, 3 days 19 hours and a quarter of an hour.
	keepLeast = 7 * day
	// retainedMax bounds one statement, so that no lock is held for long.
	retainedMax = 5_000
)

// Keep is how long is kept what a delivery leaves. Cancels are asked about for a year, by buyers, card companies and
// auditors; everything else is of use only while somebody looks into a failure. What anybody can make up goes first.
type Keep struct {
	Bodies    time.Duration // masked bodies: after the redelivery of three days and some weeks of looking into it
	Strangers time.Duration // deliveries that name nothing of ours, and claims of payments never seen
	Statuses  time.Duration // statuses that are no cancel
	Notices   time.Duration // notices of cancels of our payments: the longest time in which a card can be refunded, and a month
}

func (k Keep) withDefaults() Keep {
	return Keep{
		Bodies: cmp.Or(k.Bodies, 90*day), Strangers: cmp.Or(k.Strangers, 30*day), Statuses: cmp.Or(k.Statuses, 90*day),
		Notices: cmp.Or(k.Notices, 396*day),
	}
}

func (k Keep) validate() error {
	if min(k.Bodies, k.Strangers, k.Statuses, k.Notices) < keepLeast {
		return errors.New("webhook: whatever a delivery leaves must be kept for at least 7 days: notices come again for 4")
	}
	return nil
}

// Retained counts what one run of the retention took away.
type Retained struct {
	Bodies     int64
	Deliveries int64
	Expired    int64 // claims of payments that were never seen in time
	Claims     int64
}

// Retain takes away what need not be kept. A delivery and a claim stay as long as their payment has open work or a
// mismatch that nobody has resolved: they are evidence.
func (h *Handler) Retain(ctx context.Context) (Retained, error) {
	now, keep := h.cfg.Now(), h.cfg.Keep
	var done Retained
	for _, step := range []struct {
		what string
		into *int64
		sql  string
		args pgx.StrictNamedArgs
	}{
		{"expire parked claims", &done.Expired, expireParked, pgx.StrictNamedArgs{"now": now, "most": retainedMax}},
		{"forget bodies", &done.Bodies, forgetBodies, pgx.StrictNamedArgs{"before": now.Add(-keep.Bodies), "most": retainedMax}},
		{"forget parked claims", &done.Claims, forgetParked, pgx.StrictNamedArgs{"before": now.Add(-keep.Strangers), "most": retainedMax}},
		{"forget deliveries", &done.Deliveries, forgetDeliveries, pgx.StrictNamedArgs{
			"strangers": now.Add(-keep.Strangers), "statuses": now.Add(-keep.Statuses), "cancels": now.Add(-keep.Notices),
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
			SELECT d.work_id FROM work d
			WHERE d.kind = 'parked' AND d.closed_at < @before AND ` + notEvidence + `
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

	// notEvidence holds for a row d whose payment has nothing open.
	notEvidence = `(d.payment_key IS NULL
			OR NOT EXISTS (SELECT 1 FROM work w WHERE w.payment_key = d.payment_key AND w.closed_at IS NULL)
				AND NOT EXISTS (SELECT 1 FROM mismatches m WHERE m.payment_key = d.payment_key AND m.status <> 'resolved'))`
)
