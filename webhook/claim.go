package webhook

import (
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/pgclient"
)

const (
	// eagerAfter is when the sweeper first asks for a cancel whose notice failed, if it may ask at all before the
	// sender gives up: after the second redelivery, which brings most of them.
	eagerAfter = 5 * time.Minute
	// claimsMax bounds the open claims of one payment that name a cancel: whoever knows a payment key can make up cancels.
	claimsMax = 20
	// claimedAgain is how often a claim may be asked about because further notices make it.
	claimedAgain = time.Hour
)

// clock is where the sender is in its redelivery.
type clock struct {
	attempt    int        // of 7, as the sender counts
	next       *time.Time // nil when it will not come again by itself
	lastChance time.Time
}

func (d *delivery) clock() clock {
	schedule := pgclient.RedeliverySchedule()
	c := clock{attempt: min(d.notice.RetriedCount, len(schedule)), lastChance: pgclient.LastChance(d.at)}
	if c.attempt < len(schedule) {
		next := d.at.Add(schedule[c.attempt])
		c.next = &next
	}
	return c
}

// claimed is the cancels to open claims for; a nil element stands for one that the notice did not name.
func claimed(keys []string) []*string {
	if len(keys) == 0 {
		return []*string{nil}
	}
	all := make([]*string, len(keys))
	for i := range keys {
		all[i] = &keys[i]
	}
	return all
}

// queueClaims leaves work behind for a cancel notice that was not acknowledged, so that the cancel is found even if
// every redelivery fails. A claim that is open already keeps its deadline and learns where the sender is; it is asked about
// when one made now would be, but not because of notices twice within claimedAgain, for whoever knows a payment key can
// make them. What finds no room among the named claims becomes the one that names no cancel, which always has room:
// made-up cancels must not keep a real one from being asked about. The rows are locked in the order in which the sweeper
// locks them. What was parked before the payment was known becomes a
// claim, due as any other: a parked row waits for its end and is never asked about.
func (h *Handler) queueClaims(b *pgx.Batch, d delivery, claims []*string, now time.Time) {
	if len(claims) == 0 {
		return
	}
	clock := d.clock()
	due := clock.lastChance
	if h.cfg.Eager {
		due = now.Add(eagerAfter)
	}
	b.Queue(`
		WITH open AS (
			SELECT w.transaction_key
			FROM work w
			WHERE w.payment_key = @payment_key AND w.closed_at IS NULL AND w.transaction_key IS NOT NULL
		), owed AS (
			SELECT claimed.transaction_key, o.transaction_key IS NOT NULL AS known,
				row_number() OVER (ORDER BY o.transaction_key IS NULL, claimed.transaction_key) AS place
			FROM unnest(@claims::text[]) AS claimed (transaction_key)
			LEFT JOIN open o ON o.transaction_key = claimed.transaction_key
			WHERE NOT EXISTS (SELECT 1 FROM cancels c WHERE c.transaction_key = claimed.transaction_key)
		), placed AS (
			SELECT DISTINCT CASE WHEN o.known OR o.place - k.known + k.open <= @claims_max::integer THEN o.transaction_key END AS transaction_key
			FROM owed o
			CROSS JOIN (SELECT (SELECT count(*) FROM owed WHERE known) AS known, (SELECT count(*) FROM open) AS open) AS k
		)
		INSERT INTO work AS w (kind, payment_key, order_id, transaction_key, currency, opened_at, due_at, deadline,
			notice_failed_at, notice_attempt, notice_next_at)
		SELECT 'cancel_claimed', p.payment_key, p.order_id, placed.transaction_key, p.currency, @now, @due_at::timestamptz,
			@deadline::timestamptz, @now, @notice_attempt::integer, @notice_next_at::timestamptz
		FROM payments p
		CROSS JOIN placed
		WHERE p.payment_key = @payment_key
		ORDER BY placed.transaction_key
		ON CONFLICT (payment_key, subject) WHERE closed_at IS NULL
		DO UPDATE SET kind = CASE WHEN w.kind = 'parked' THEN excluded.kind ELSE w.kind END,
			due_at = CASE w.kind
				WHEN 'parked' THEN LEAST(w.due_at, excluded.due_at)
				WHEN 'cancel_claimed' THEN LEAST(w.due_at, GREATEST(excluded.due_at, w.last_asked_at + @claimed_again::interval))
				ELSE w.due_at END,
			order_id = COALESCE(w.order_id, excluded.order_id), currency = COALESCE(w.currency, excluded.currency),
			opened_at = CASE WHEN w.transaction_key IS NULL THEN GREATEST(w.opened_at, excluded.opened_at) ELSE w.opened_at END,
			notice_failed_at = COALESCE(w.notice_failed_at, excluded.notice_failed_at),
			notice_attempt = excluded.notice_attempt, notice_next_at = excluded.notice_next_at`,
		postgres.Args{
			"now": now, "due_at": due, "deadline": clock.lastChance, "notice_attempt": clock.attempt,
			"notice_next_at": clock.next, "claims": claims, "payment_key": d.paymentKey, "claims_max": claimsMax,
			"claimed_again": claimedAgain,
		})
}
