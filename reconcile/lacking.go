package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/pgclient"
)

// lack is one listed transaction of ours that our books do not have under its key.
type lack struct {
	TransactionKey string               `db:"transaction_key"`
	Held           bool                 `db:"held"`    // the payment is in our books
	Ordered        bool                 `db:"ordered"` // the order is
	Keyless        bool                 `db:"keyless"` // the payment's capture waits for its key
	Asked          bool                 `db:"asked"`   // work for it is open
	row            pgclient.Transaction // of the page; not a column
}

// lacking opens work for the money of a page that our books lack, and teaches captures their keys. What happened
// before the books were opened, and what belongs to other systems, is left alone.
func (m *Mirror) lacking(ctx context.Context, tx pgx.Tx, b *gathered, rows []pgclient.Transaction, now time.Time) error {
	ours := map[string]pgclient.Transaction{}
	var keys, payments, orders []string
	for _, r := range rows {
		money := r.Kind == pgclient.TransactionCancel || (r.Kind == pgclient.TransactionCapture && r.Amount.Positive())
		if !money || r.At.Before(m.cfg.OpeningAt) {
			continue
		}
		ours[r.TransactionKey] = r
		keys, payments, orders = append(keys, r.TransactionKey), append(payments, r.PaymentKey), append(orders, r.OrderID)
	}
	if len(keys) == 0 {
		return nil
	}
	answer, err := tx.Query(ctx, `
		SELECT r.transaction_key, p.payment_key IS NOT NULL AS held, o.order_id IS NOT NULL AS ordered,
			EXISTS (SELECT 1 FROM captures c
				WHERE c.payment_key = r.payment_key AND c.transaction_key IS NULL AND c.reversed_at IS NULL) AS keyless,
			EXISTS (SELECT 1 FROM work w WHERE w.payment_key = r.payment_key AND w.closed_at IS NULL
				AND ((w.kind = 'cancel_listed' AND w.transaction_key = r.transaction_key)
				  OR (w.kind = 'confirm_unknown' AND g.kind = 'capture' AND w.last_asked_at > g.first_seen_at))) AS asked
		FROM unnest(@keys::text[], @payments::text[], @orders::text[]) AS r (transaction_key, payment_key, order_id)
		JOIN mirror g ON g.transaction_key = r.transaction_key
		LEFT JOIN payments p ON p.payment_key = r.payment_key
		LEFT JOIN orders o ON o.order_id = r.order_id
		WHERE NOT g.is_foreign AND NOT EXISTS (SELECT 1 FROM cancels c WHERE c.transaction_key = r.transaction_key)
			AND NOT EXISTS (SELECT 1 FROM captures c WHERE c.transaction_key = r.transaction_key)`,
		pgx.StrictNamedArgs{"keys": keys, "payments": payments, "orders": orders})
	if err != nil {
		return fmt.Errorf("look for what the books lack: %w", err)
	}
	lacks, err := pgx.CollectRows(answer, pgx.RowToStructByName[lack])
	if err != nil {
		return fmt.Errorf("look for what the books lack: %w", err)
	}
	for _, l := range lacks {
		l.row = ours[l.TransactionKey]
		m.owe(b, l, now)
	}
	return nil
}

// owe turns one lacking transaction into work. Work already being asked keeps its own pace.
func (m *Mirror) owe(b *gathered, l lack, now time.Time) {
	switch {
	case l.row.Kind == pgclient.TransactionCancel && !l.Asked:
		ledger.QueueWork(&b.Batch, m.listedCancel(l.row, now), now)
	case l.row.Kind == pgclient.TransactionCancel:
	case l.Keyless:
		ledger.QueueLearnCapture(&b.Batch, l.row.PaymentKey, l.row.TransactionKey, l.row.Amount)
	case (l.Held || l.Ordered) && !l.Asked:
		ledger.QueueWork(&b.Batch, ledger.Work{
			Kind: ledger.WorkConfirmUnknown, PaymentKey: l.row.PaymentKey, OrderID: l.row.OrderID, AtRisk: l.row.Amount,
			DueAt: now, Deadline: now.Add(day),
		}, now)
	case !l.Held && !l.Ordered:
		b.found(ledger.Finding{
			Kind: ledger.KindPaymentWithoutOrder, PaymentKey: l.row.PaymentKey, OrderID: l.row.OrderID,
			TransactionKey: l.TransactionKey, AtRisk: l.row.Amount,
			Detail:  "the gateway lists money for an order that is not in our books" + adviceToImport,
			Gateway: shownEvidence(l.TransactionKey, l.row.Word, l.row.Amount, l.row.At), Books: side{}.evidence(),
		})
	}
}

// listedCancel is the work of a cancel that the list shows. It outranks a claim, and its deadline is when no notice of
// it can come any more; without eager it is not asked about before that.
func (m *Mirror) listedCancel(r pgclient.Transaction, now time.Time) ledger.Work {
	w := ledger.Work{
		Kind: ledger.WorkCancelListed, PaymentKey: r.PaymentKey, OrderID: r.OrderID, TransactionKey: r.TransactionKey,
		AtRisk: r.Amount, DueAt: now, Deadline: pgclient.LastChance(r.At),
	}
	if !m.cfg.Eager && now.Before(w.Deadline) {
		w.DueAt = w.Deadline
	}
	return w
}
