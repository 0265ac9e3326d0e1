package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// record writes what the gateway said and the delivery's outcome in one transaction, so that the one is committed if
// and only if the other is.
func (h *Handler) record(ctx context.Context, d delivery, seen ledger.Observation) verdict {
	var v verdict
	err := postgres.InTx(ctx, h.cfg.DB, func(tx pgx.Tx) error {
		_, err := h.cfg.Ledger.RecordLast(ctx, tx, seen, func(b *pgx.Batch, recorded ledger.Recorded) {
			now := h.cfg.Now()
			v = judge(d, seen, recorded)
			v.fruitless = provedNothing(v, recorded.After, seen.AskedAt)
			queueOutcome(b, d, v, now)
			if v.outcome == OutcomeStateMismatch {
				h.queueClaims(b, d, unproven(d, v, seen, recorded), now)
			}
		})
		return err
	})
	if err == nil {
		return v
	}
	return h.conclude(ctx, d, failure(err))
}

// failure tells a database that cannot work now from books that refuse.
func failure(err error) verdict {
	conflict, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case errors.Is(err, postgres.ErrCommitUnknown):
		return verdict{outcome: OutcomeDBFailed, reason: "commit_unknown", cause: err}
	case postgres.IsUnavailable(err):
		return verdict{outcome: OutcomeDBFailed, reason: "unavailable", cause: err}
	case ok && strings.HasPrefix(conflict.Code, "40"):
		return verdict{outcome: OutcomeDBFailed, reason: "contention", cause: err}
	}
	return verdict{outcome: OutcomeApplyFailed, reason: "refused", cause: err}
}

// concludeReserve bounds the write of an outcome after everything else has failed, also when the deadline has passed:
// the gateway waits a second longer than we take.
const concludeReserve = 500 * time.Millisecond

// conclude writes the outcome of a delivery that applied nothing, and leaves claims behind. When even that fails, the
// reaper does both.
func (h *Handler) conclude(ctx context.Context, d delivery, v verdict) verdict {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), concludeReserve)
	defer stop()
	b, now := &pgx.Batch{}, h.cfg.Now()
	queueOutcome(b, d, v, now)
	h.queueClaims(b, d, claimed(d.named), now)
	if err := h.cfg.DB.SendBatch(ctx, b).Close(); err != nil {
		h.logConclusion(ctx, d, v, fmt.Errorf("conclude delivery %d: %w", d.id, err))
	}
	return v
}

// queueOutcome closes the delivery. A delivery whose commit had in fact gone through keeps the outcome that was
// committed; the status always says what was answered.
func queueOutcome(b *pgx.Batch, d delivery, v verdict, now time.Time) {
	b.Queue(`
		UPDATE deliveries
		SET outcome = CASE WHEN outcome = 'received' OR reaped THEN @outcome ELSE outcome END,
			reason = @reason, status = @status, answered_at = @now, query_ms = @query_ms, reaped = false
		WHERE delivery_id = @delivery_id`,
		postgres.Args{
			"outcome": v.outcome, "reason": v.reason, "status": v.httpStatus(), "now": now,
			"query_ms": d.queryTook.Milliseconds(), "delivery_id": d.id,
		})
}
