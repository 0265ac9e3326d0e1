package ledger

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
)

// Account names one side of a journal entry.
type Account string

// The accounts. Debits are positive. The gateway owes us what it captured until it settles; a surplus payment's
// money waits in suspense. Fees, the tax on them and the bank are for settlements, which nothing books yet. Credits are
// counted in their own unit.
const (
	AccountReceivable      Account = "gateway_receivable"
	AccountSales           Account = "sales"
	AccountRefunds         Account = "refunds"
	AccountSuspense        Account = "suspense"
	AccountFees            Account = "fees"
	AccountVAT             Account = "vat"
	AccountBank            Account = "bank"
	AccountCreditsIssued   Account = "credits_issued"
	AccountCustomerCredits Account = "customer_credits"
	AccountCreditsUsed     Account = "credits_used"
)

// Accounts lists every account.
func Accounts() []Account {
	return []Account{
		AccountReceivable, AccountSales, AccountRefunds, AccountSuspense, AccountFees, AccountVAT, AccountBank,
		AccountCreditsIssued, AccountCustomerCredits, AccountCreditsUsed,
	}
}

// EntryKind is the kind of fact a journal transaction records.
type EntryKind string

// The kinds of journal transactions.
const (
	EntryCapture         EntryKind = "capture"
	EntryCancel          EntryKind = "cancel"
	EntryDepositReversal EntryKind = "deposit_reversal"
	EntryCreditGrant     EntryKind = "credit_grant"
	EntryCreditSpend     EntryKind = "credit_spend"
	EntryCreditRevoke    EntryKind = "credit_revoke"
)

// EntryKinds lists every kind of journal transaction.
func EntryKinds() []EntryKind {
	return []EntryKind{
		EntryCapture, EntryCancel, EntryDepositReversal, EntryCreditGrant, EntryCreditSpend, EntryCreditRevoke,
	}
}

// journalFact is one journal transaction: amount moves from credit to debit.
type journalFact struct {
	Kind       EntryKind
	Reference  string
	PaymentKey string
	OrderID    string
	CustomerID string
	Debit      Account
	Credit     Account
	Amount     Money
	OccurredAt time.Time
}

// captureReference names a capture in the journal by its number: its transaction key may be learned later.
func captureReference(paymentKey string, number int) string {
	return fmt.Sprintf("%s#%d", paymentKey, number)
}

// queueJournal adds one balanced journal transaction to the batch. The unique key (kind, reference) makes a
// second writing of the same fact an error, never a second entry (I1, I3).
func queueJournal(b *pgx.Batch, f journalFact, now time.Time) {
	b.Queue(`
		WITH written AS (
			INSERT INTO journal_transactions (kind, reference, payment_key, order_id, customer_id, occurred_at, recorded_at)
			VALUES (@kind, @reference, NULLIF(@payment_key, ''), NULLIF(@order_id, ''), NULLIF(@customer_id, ''), @occurred_at, @now)
			RETURNING transaction_id)
		INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
		SELECT w.transaction_id, e.line, e.account, @currency, e.amount
		FROM written w, unnest(@lines::integer[], @accounts::text[], @amounts::bigint[]) AS e (line, account, amount)`,
		postgres.Args{
			"kind": f.Kind, "reference": f.Reference, "payment_key": f.PaymentKey, "order_id": f.OrderID,
			"customer_id": f.CustomerID, "occurred_at": f.OccurredAt, "now": now, "currency": f.Amount.Currency,
			"lines": []int{1, 2}, "accounts": []Account{f.Debit, f.Credit},
			"amounts": []int64{f.Amount.Minor, -f.Amount.Minor},
		})
}
