package ledger

import "github.com/jackc/pgx/v5"

// QueueLearnCapture gives a capture that was recorded without its transaction key the key that the gateway's list
// names for it. It changes no money: the amount must be the capture's own, and a key already known elsewhere is left
// alone.
func QueueLearnCapture(b *pgx.Batch, paymentKey, transactionKey string, amount Money) {
	b.Queue(`
		UPDATE captures SET transaction_key = @transaction_key
		WHERE payment_key = @payment_key AND transaction_key IS NULL AND reversed_at IS NULL
			AND currency = @currency AND amount = @amount
			AND NOT EXISTS (SELECT 1 FROM captures k WHERE k.transaction_key = @transaction_key)`,
		pgx.StrictNamedArgs{
			"transaction_key": transactionKey, "payment_key": paymentKey, "currency": amount.Currency, "amount": amount.Minor,
		})
}
