package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
)

// CreditAccount is what a customer was granted, lost again to cancels, and spent (I8).
type CreditAccount struct {
	CustomerID string `db:"customer_id"`
	Granted    int64  `db:"granted"`
	Revoked    int64  `db:"revoked"`
	Spent      int64  `db:"spent"`
	Balance    int64  `db:"balance"`
}

var (
	// ErrCreditsShort reports a spend above the balance. Nothing was spent.
	ErrCreditsShort = errors.New("the balance does not cover the spend")
	// ErrSpendDiffers reports a spend id used again for another customer or amount.
	ErrSpendDiffers = errors.New("the spend id was used for something else")
)

// queueCredits moves the customer's account by what the decision granted and revoked. What was spent already
// becomes a negative balance and a mismatch, never an error that loses the cancel.
func (e *effects) queueCredits(b *pgx.Batch, now time.Time) {
	if e.granted == 0 && e.revoked == 0 {
		return
	}
	spent := Finding{
		Kind: KindCreditsSpent, PaymentKey: e.after.Key, OrderID: e.after.OrderID, Detail: "credits that a cancel revokes were already spent",
	}
	b.Queue(`
		WITH moved AS (
			INSERT INTO credit_accounts AS a (customer_id, granted, revoked, updated_at)
			VALUES (@customer_id, @granted, @revoked, @now)
			ON CONFLICT (customer_id) DO UPDATE
			SET granted = a.granted + excluded.granted, revoked = a.revoked + excluded.revoked, updated_at = excluded.updated_at
			RETURNING a.granted - a.revoked - a.spent AS balance)
		INSERT INTO mismatches AS m (kind, fingerprint, payment_key, order_id, currency, amount, detail, books, opened_at, last_seen_at,
			changed_at)
		SELECT @kind, @fingerprint, @payment_key, @order_id, @currency, @at_risk, @detail,
			jsonb_build_object('customer_id', @customer_id::text, 'balance', moved.balance), @now, @now, @now
		FROM moved
		WHERE moved.balance < 0 AND @revoked::bigint > 0`+seenAgain,
		postgres.Args{
			"customer_id": e.order.CustomerID, "granted": e.granted, "revoked": e.revoked, "now": now,
			"kind": spent.Kind, "fingerprint": spent.Fingerprint(), "payment_key": spent.PaymentKey, "order_id": spent.OrderID,
			"currency": e.after.Amount.Currency, "at_risk": e.after.Canceled().Minor, "detail": spent.Detail,
		})
}

// Spend uses credits of a customer. The id makes it idempotent: the same spend again changes nothing and
// answers the same; the id with another customer or amount gives ErrSpendDiffers, a short balance
// ErrCreditsShort.
func (l *Ledger) Spend(ctx context.Context, tx pgx.Tx, id, customerID string, amount int64) (CreditAccount, error) {
	now := l.now()
	account, err := lockCredits(ctx, tx, customerID)
	if err != nil {
		return CreditAccount{}, fmt.Errorf("spend %s: %w", id, err)
	}
	done, err := spentBefore(ctx, tx, id, customerID, amount)
	if err != nil {
		return CreditAccount{}, fmt.Errorf("spend %s: %w", id, err)
	}
	if done {
		return account, nil
	}
	if amount <= 0 || account.Balance < amount {
		return CreditAccount{}, fmt.Errorf("spend %s: %d of %d: %w", id, amount, account.Balance, ErrCreditsShort)
	}
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO credit_spends (spend_id, customer_id, amount, spent_at) VALUES (@id, @customer_id, @amount, @now)`,
		postgres.Args{"id": id, "customer_id": customerID, "amount": amount, "now": now})
	b.Queue(`UPDATE credit_accounts SET spent = spent + @amount, updated_at = @now WHERE customer_id = @customer_id`,
		postgres.Args{"customer_id": customerID, "amount": amount, "now": now})
	queueJournal(b, journalFact{
		Kind: EntryCreditSpend, Reference: id, CustomerID: customerID, Debit: AccountCustomerCredits,
		Credit: AccountCreditsUsed, Amount: Money{Minor: amount, Currency: Credits}, OccurredAt: now,
	}, now)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return CreditAccount{}, fmt.Errorf("spend %s: %w", id, err)
	}
	account.Spent += amount
	account.Balance -= amount
	return account, nil
}

func lockCredits(ctx context.Context, tx pgx.Tx, customerID string) (CreditAccount, error) {
	return creditAccount(ctx, tx, creditColumns+` FOR UPDATE`, customerID)
}

const creditColumns = `SELECT customer_id, granted, revoked, spent, balance FROM credit_accounts WHERE customer_id = @customer_id`

// LoadCredits reads a customer's account. A customer who was never granted anything gives ErrNotFound.
func LoadCredits(ctx context.Context, db Querier, customerID string) (CreditAccount, error) {
	return creditAccount(ctx, db, creditColumns, customerID)
}

func creditAccount(ctx context.Context, db Querier, sql, customerID string) (CreditAccount, error) {
	rows, err := db.Query(ctx, sql, postgres.Args{"customer_id": customerID})
	if err != nil {
		return CreditAccount{}, fmt.Errorf("read credits of %s: %w", customerID, err)
	}
	account, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[CreditAccount])
	if errors.Is(err, pgx.ErrNoRows) {
		return CreditAccount{}, fmt.Errorf("credits of %s: %w", customerID, ErrNotFound)
	}
	return account, err
}

func spentBefore(ctx context.Context, tx pgx.Tx, id, customerID string, amount int64) (bool, error) {
	type spend struct {
		CustomerID string    `db:"customer_id"`
		Amount     int64     `db:"amount"`
		SpentAt    time.Time `db:"spent_at"`
	}
	rows, err := tx.Query(ctx, `SELECT customer_id, amount, spent_at FROM credit_spends WHERE spend_id = @id`,
		postgres.Args{"id": id})
	if err != nil {
		return false, err
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[spend])
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case found.CustomerID != customerID || found.Amount != amount:
		return false, ErrSpendDiffers
	}
	return true, nil
}
