package ledger

import (
	"time"

	"github.com/jackc/pgx/v5"
)

// One contradiction is one row for ever, by its fingerprint. The database writes every change of it into the trail; a
// statement of ours counts the revision up and says who and when.

// standsAccepted holds for a row m that a person accepted and that was now found just as it was accepted: it is seen
// again and nothing more. With other money at risk it is another difference. Where the money says nothing about what
// is wrong, the words must be the same too; and where it says only what one side has, the words or the money of the other
// side, which those who find it say in other words. Evidence of long ago may lack it.
const standsAccepted = `(m.resolved_as IS NOT DISTINCT FROM 'accepted'
	AND (m.currency, m.amount) IS NOT DISTINCT FROM (excluded.currency, excluded.amount)
	AND (m.detail = excluded.detail OR m.kind NOT IN
		('history_changed', 'order_differs', 'merchant_differs', 'quarantined', 'unrecognized_status', 'signed_day_changed',
		'journal_differs'))
	AND (m.detail = excluded.detail OR m.kind NOT IN ('amount_differs', 'currency_differs')
		OR (COALESCE(m.books ->> 'amount' = excluded.books ->> 'amount', true)
			AND COALESCE(m.books ->> 'currency' = excluded.books ->> 'currency', true))))`

// opensAgain holds for a row m that was resolved, and is found to be wrong still or once more.
const opensAgain = `(m.status = 'resolved' AND NOT ` + standsAccepted + `)`

// seenAgain ends a statement that inserts findings into mismatches AS m. A proposal falls when the money at risk is
// another than that it was made about, or when a signed day says something else.
const seenAgain = `
		ON CONFLICT (fingerprint) DO UPDATE
		SET last_seen_at = excluded.last_seen_at, times_seen = m.times_seen + 1,
			status = CASE WHEN ` + opensAgain + ` THEN 'open' ELSE m.status END,
			resolved_at = CASE WHEN NOT ` + opensAgain + ` THEN m.resolved_at END,
			resolved_as = CASE WHEN NOT ` + opensAgain + ` THEN m.resolved_as END,
			resolved_by = CASE WHEN NOT ` + opensAgain + ` THEN m.resolved_by END,
			note = CASE WHEN ` + opensAgain + ` THEN '' ELSE m.note END,
			incident_id = CASE WHEN NOT ` + opensAgain + ` THEN m.incident_id END,
			opened_run = CASE WHEN ` + opensAgain + ` THEN excluded.opened_run ELSE m.opened_run END,
			proposal = CASE WHEN (m.currency, m.amount) IS NOT DISTINCT FROM (excluded.currency, excluded.amount)
				AND (m.kind <> 'signed_day_changed' OR m.gateway ->> 'facts' = excluded.gateway ->> 'facts') THEN m.proposal END,
			currency = CASE WHEN ` + standsAccepted + ` THEN m.currency ELSE excluded.currency END,
			amount = CASE WHEN ` + standsAccepted + ` THEN m.amount ELSE excluded.amount END,
			detail = CASE WHEN ` + standsAccepted + ` THEN m.detail ELSE excluded.detail END,
			gateway = CASE WHEN ` + standsAccepted + ` THEN m.gateway ELSE excluded.gateway END,
			books = CASE WHEN ` + standsAccepted + ` THEN m.books ELSE excluded.books END,
			revision = m.revision + 1, changed_at = excluded.last_seen_at, changed_by = 'system', remark = ''`

// QueueMismatch adds a finding to the batch: it opens a mismatch, marks the one with the same fingerprint as seen
// again, or opens it again in place.
func QueueMismatch(b *pgx.Batch, f Finding, now time.Time) {
	b.Queue(`
		INSERT INTO mismatches AS m (kind, fingerprint, payment_key, order_id, transaction_key, currency, amount, detail,
			gateway, books, opened_at, last_seen_at, changed_at)
		VALUES (@kind, @fingerprint, NULLIF(@payment_key, ''), NULLIF(@order_id, ''), NULLIF(@transaction_key, ''),
			NULLIF(@currency, ''), @amount, left(@detail, 500), @gateway, @books, @now, @now, @now)`+seenAgain,
		pgx.StrictNamedArgs{
			"kind": f.Kind, "fingerprint": f.Fingerprint(), "payment_key": f.PaymentKey, "order_id": f.OrderID,
			"transaction_key": f.TransactionKey, "currency": f.AtRisk.Currency, "amount": nullableMinor(f.AtRisk), "detail": f.Detail,
			"gateway": f.Gateway, "books": f.Books, "now": now,
		})
}
