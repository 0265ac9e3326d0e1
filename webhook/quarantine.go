package webhook

import (
	"context"
	"errors"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/pgclient"
)

// quarantine shows a person an answer whose money cannot be read exactly. It comes after the delivery's own outcome and
// never changes it: should it fail, the claim that the delivery leaves is asked about, and the sweeper does the same.
func (h *Handler) quarantine(ctx context.Context, d delivery, answer error) {
	failure, ok := errors.AsType[*pgclient.Error](answer)
	if !ok || failure.Reason != pgclient.ReasonInconsistent {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), concludeReserve)
	defer stop()
	err := postgres.InTx(ctx, h.cfg.DB, func(tx pgx.Tx) error {
		evidence := map[string]any{"asked_for": "notice", "status": failure.Status}
		return h.cfg.Ledger.Quarantine(ctx, tx, d.paymentKey, failure.Detail, evidence)
	})
	if err != nil {
		h.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "answer not quarantined; the sweeper will see it",
			slog.Int64("delivery_id", d.id), slog.String("payment_key", d.paymentKey), slog.Any("error", err))
	}
}
