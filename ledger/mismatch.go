package ledger

import (
	"time"

	"github.com/jackc/pgx/v5"
)

// QueueMismatch adds a finding to the batch: it opens a mismatch, or marks the open one with the same
// fingerprint as seen again.
func QueueMismatch(b *pgx.Batch, f Finding, now time.Time) {
	var minor *int64
	if f.AtRisk.Currency != "" {
		minor = &f.AtRisk.Minor
	}
	b.Queue(`
		INSERT INTO mismatches AS m (kind, fingerprint, payment_key, order_id, transaction_key, currency, amount, detail,
			gateway, books, opened_at, last_seen_at)
		VALUES (@kind, @fingerprint, NULLIF(@payment_key, ''), NULLIF(@order_id, ''), NULLIF(@transaction_key, ''),
			NULLIF(@currency, ''), @amount, left(@detail, 500), @gateway, @books, @now, @now)
		ON CONFLICT (fingerprint) WHERE status <> 'resolved'
		DO UPDATE SET last_seen_at = excluded.last_seen_at, times_seen = m.times_seen + 1,
			currency = excluded.currency, amount = excluded.amount,
			detail = excluded.detail, gateway = excluded.gateway, books = excluded.books`,
		pgx.StrictNamedArgs{
			"kind": f.Kind, "fingerprint": f.Fingerprint(), "payment_key": f.PaymentKey, "order_id": f.OrderID,
			"transaction_key": f.TransactionKey, "currency": f.AtRisk.Currency, "amount": minor, "detail": f.Detail,
			"gateway": f.Gateway, "books": f.Books, "now": now,
		})
}
