package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Keep is how long is kept what callers and listeners may still ask for.
type Keep struct {
	// CallerRequests is how long a caller may repeat a request and get its reply: as long as the gateway itself
	// remembers its idempotency keys.
	CallerRequests time.Duration
	// Events is for events that were delivered, and for questions to the store that are settled. Events that were not
	// delivered stay until they are.
	Events time.Duration
}

func (k Keep) withDefaults() Keep {
	return Keep{CallerRequests: cmp.Or(k.CallerRequests, 15*24*time.Hour), Events: cmp.Or(k.Events, 396*24*time.Hour)}
}

func (k Keep) validate() error {
	if k = k.withDefaults(); k.CallerRequests < 24*time.Hour || k.Events < 7*24*time.Hour {
		return errors.New("checkout: replies to callers must be kept for at least a day, and delivered events for 7")
	}
	return nil
}

// forget takes away in batches what nobody can ask for any more. An event stays as long as its payment has a mismatch
// that nobody has resolved. Where a refund goes to is forgotten when the request ends, and at the latest when its key is
// too old to be sent again.
func (w *TidyWorker) forget(ctx context.Context) error {
	now := w.cfg.Now()
	for _, step := range []struct {
		what string
		sql  string
		args pgx.StrictNamedArgs
	}{
		{"requests of callers", `
			DELETE FROM caller_requests
			WHERE ctid = ANY (ARRAY(
				SELECT ctid FROM caller_requests
				WHERE created_at < @before AND (lease_until IS NULL OR lease_until < @now)
				ORDER BY created_at
				LIMIT @limit
				FOR UPDATE SKIP LOCKED))`, pgx.StrictNamedArgs{"before": now.Add(-w.cfg.Keep.CallerRequests), "now": now, "limit": tidyBatch}},
		{"delivered events", `
			DELETE FROM events
			WHERE delivered_at IS NOT NULL AND event_id = ANY (ARRAY(
				SELECT e.event_id FROM events e
				WHERE e.delivered_at < @before AND e.created_at < @before
					AND NOT EXISTS (SELECT 1 FROM mismatches m WHERE m.payment_key = e.payment_key AND m.status <> 'resolved' OFFSET 0)
				ORDER BY e.created_at
				LIMIT @limit))`, pgx.StrictNamedArgs{"before": now.Add(-w.cfg.Keep.Events), "limit": tidyBatch}},
		{"settled questions to the store", `
			DELETE FROM acceptances
			WHERE acceptance_id = ANY (ARRAY(
				SELECT acceptance_id FROM acceptances
				WHERE due_at IS NULL AND ended_at < @before
				ORDER BY ended_at
				LIMIT @limit))`, pgx.StrictNamedArgs{"before": now.Add(-w.cfg.Keep.Events), "limit": tidyBatch}},
		{"accounts of refunds", `
			UPDATE cancel_requests SET refund_account = NULL
			WHERE request_id = ANY (ARRAY(
				SELECT request_id FROM cancel_requests
				WHERE refund_account IS NOT NULL AND key_first_used_at < @before
				ORDER BY key_first_used_at
				LIMIT @limit))`, pgx.StrictNamedArgs{"before": now.Add(-keyLife), "limit": tidyBatch}},
	} {
		for {
			tag, err := w.cfg.DB.Exec(ctx, step.sql, step.args)
			if err != nil {
				return fmt.Errorf("forget old %s: %w", step.what, err)
			}
			if tag.RowsAffected() < tidyBatch {
				break
			}
		}
	}
	return nil
}
