package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Quarantine opens a mismatch for an answer about a payment of ours whose money cannot be read exactly: a currency
// that is not known, a fraction the currency does not have, amounts that contradict each other. Nothing of such an
// answer reaches the books, so nothing else is written; the payment stays as it was and is asked about as before.
// Evidence is what may be shown of the answer. A key that is not in the books leaves nothing behind: a stranger must
// not be able to fill the list.
func (l *Ledger) Quarantine(ctx context.Context, tx pgx.Tx, paymentKey, detail string, evidence map[string]any) error {
	p, _, err := Load(ctx, tx, paymentKey)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("quarantine: %w", err)
	}
	b := &pgx.Batch{}
	QueueMismatch(b, Finding{
		Kind: KindQuarantined, PaymentKey: p.Key, OrderID: p.OrderID, AtRisk: p.Amount, Detail: detail,
		Gateway: evidence, Books: p.summary(),
	}, l.now())
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("quarantine an answer about payment %s: %w", paymentKey, err)
	}
	return nil
}
