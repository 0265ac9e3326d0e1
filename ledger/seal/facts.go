package seal

import (
	"bytes"
	"strconv"

	"daesa/ledger"
)

// facts adds up both sides of every comparison while the rows stream by.
type facts struct {
	hash  *hasher
	pairs [pairCount]pair
	name  []byte
}

// entry adds one line of a journal transaction, by what it is about.
func (f *facts) entry(t *ledger.JournalTransaction, l *ledger.JournalLine) {
	switch ledger.Account(l.Account.Bytes) {
	case ledger.AccountReceivable:
		f.receivable(t, l)
	case ledger.AccountSales, ledger.AccountRefunds:
		f.pairs[pairIncome].journal.add(f.payment(t.PaymentKey.Bytes, t.OrderID.Bytes, l.Currency.Bytes), l.Amount)
	case ledger.AccountCustomerCredits:
		f.credits(t, l)
	case ledger.AccountSuspense, ledger.AccountFees, ledger.AccountVAT, ledger.AccountBank,
		ledger.AccountCreditsIssued, ledger.AccountCreditsUsed:
		// The other side of one of the above, or of nothing yet.
	}
}

// payment is the subject of what a payment holds.
func (f *facts) payment(key, order, currency []byte) wide {
	return f.hash.begin().part(key).part(order).part(currency).subject()
}

func (f *facts) receivable(t *ledger.JournalTransaction, l *ledger.JournalLine) {
	payment := f.payment(t.PaymentKey.Bytes, t.OrderID.Bytes, l.Currency.Bytes)
	switch ledger.EntryKind(t.Kind.Bytes) {
	case ledger.EntryCapture:
		f.pairs[pairCaptured].journal.add(payment, l.Amount)
		f.pairs[pairCaptures].journal.add(f.capture(t.Reference.Bytes, t.PaymentKey.Bytes, l.Currency.Bytes, t.OccurredAt, t.RecordedAt), l.Amount)
	case ledger.EntryDepositReversal:
		f.pairs[pairCaptured].journal.add(payment, l.Amount)
		f.pairs[pairReversals].journal.add(f.reversal(t.Reference.Bytes, t.PaymentKey.Bytes, l.Currency.Bytes, t.OccurredAt), -l.Amount)
	case ledger.EntryCancel:
		f.pairs[pairCanceled].journal.add(payment, -l.Amount)
		f.pairs[pairCancels].journal.add(f.cancel(t.Reference.Bytes, t.PaymentKey.Bytes, t.OrderID.Bytes, l.Currency.Bytes, t.OccurredAt, t.RecordedAt), -l.Amount)
	case ledger.EntryCreditGrant, ledger.EntryCreditSpend, ledger.EntryCreditRevoke:
		// No money of a payment: the shape of the transaction is wrong, which is looked at elsewhere.
	}
}

func (f *facts) capture(reference, payment, currency []byte, occurred, recorded int64) wide {
	return f.hash.begin().part(reference).part(payment).part(currency).number(occurred).number(recorded).subject()
}

func (f *facts) reversal(reference, payment, currency []byte, occurred int64) wide {
	return f.hash.begin().part(reference).part(payment).part(currency).number(occurred).subject()
}

func (f *facts) cancel(reference, payment, order, currency []byte, occurred, recorded int64) wide {
	return f.hash.begin().part(reference).part(payment).part(order).part(currency).number(occurred).number(recorded).subject()
}

// reversalReference begins the reference of a revoke that no cancel is behind.
const reversalReference = "reversal:"

func (f *facts) credits(t *ledger.JournalTransaction, l *ledger.JournalLine) {
	customer := f.one(t.CustomerID.Bytes)
	switch ledger.EntryKind(t.Kind.Bytes) {
	case ledger.EntryCreditGrant:
		f.pairs[pairGranted].journal.add(customer, -l.Amount)
		f.pairs[pairPaymentGranted].journal.add(f.one(t.PaymentKey.Bytes), -l.Amount)
	case ledger.EntryCreditRevoke:
		f.pairs[pairRevoked].journal.add(customer, l.Amount)
		f.pairs[pairPaymentRevoked].journal.add(f.one(t.PaymentKey.Bytes), l.Amount)
		if !bytes.HasPrefix(t.Reference.Bytes, []byte(reversalReference)) {
			f.pairs[pairCancelRevoked].journal.add(f.one(t.Reference.Bytes), l.Amount)
		}
	case ledger.EntryCreditSpend:
		f.pairs[pairSpent].journal.add(customer, l.Amount)
		f.pairs[pairSpends].journal.add(f.spend(t.Reference.Bytes, t.CustomerID.Bytes, t.OccurredAt), l.Amount)
	case ledger.EntryCapture, ledger.EntryCancel, ledger.EntryDepositReversal:
		// No credits: the shape of the transaction is wrong, which is looked at elsewhere.
	}
}

func (f *facts) one(subject []byte) wide { return f.hash.begin().part(subject).subject() }

func (f *facts) spend(id, customer []byte, spentAt int64) wide {
	return f.hash.begin().part(id).part(customer).number(spentAt).subject()
}

// balance adds one line to the totals of its section.
func (f *facts) balance(section, occurredOn int64, l *ledger.JournalLine) {
	subject := f.hash.begin().part(l.Account.Bytes).part(l.Currency.Bytes).number(section).number(occurredOn).subject()
	if l.Amount > 0 {
		f.pairs[pairBalanceDebits].journal.add(subject, l.Amount)
		return
	}
	f.pairs[pairBalanceCredits].journal.add(subject, -l.Amount)
}

// book is a table beside the journal: what is read of it, and what each row adds.
type book struct {
	name string
	sql  string
	add  func(f *facts, row [][]byte) (wrong string)
}

// books are the states and credits, each read once, in no order. A row that is wrong by itself says so.
func books() []book {
	return []book{
		{"payments", `SELECT payment_key, order_id, currency, status, captured, canceled, surplus, credits_granted, credits_revoked FROM payments`, addPayment},
		{"captures", `SELECT payment_key, number, currency, amount, captured_at, recorded_at, reversed_at FROM captures`, addCapture},
		{"cancels", `SELECT transaction_key, payment_key, order_id, currency, amount, canceled_at, recorded_at, credits_revoked FROM cancels`, addCancel},
		{"orders", `SELECT order_id, status FROM orders WHERE status NOT IN ('pending', 'expired')`, addOrder},
		{"credit_accounts", `SELECT customer_id, granted, revoked, spent, balance FROM credit_accounts`, addAccount},
		{"credit_spends", `SELECT spend_id, customer_id, amount, spent_at FROM credit_spends`, addSpend},
		{"journal_balances", `SELECT day, occurred_on, account, currency, debits, credits FROM journal_balances`, addBalance},
	}
}

func addPayment(f *facts, row [][]byte) string {
	status, captured, canceled := ledger.Status(row[3]), integer(row[4]), integer(row[5])
	surplus := len(row[6]) == 1 && row[6][0] == 1
	payment := f.payment(row[0], row[1], row[2])
	f.pairs[pairCaptured].books.add(payment, captured)
	f.pairs[pairCanceled].books.add(payment, canceled)
	if !surplus {
		f.pairs[pairIncome].books.add(payment, canceled-captured)
	}
	f.pairs[pairPaymentGranted].books.add(f.one(row[0]), integer(row[7]))
	f.pairs[pairPaymentRevoked].books.add(f.one(row[0]), integer(row[8]))
	if order, ok := orderOf(status); ok && !surplus {
		f.pairs[pairOrders].journal.add(f.order(row[1], order), 1)
	}
	if !follows(status, captured, canceled) {
		return "payment " + string(row[0]) + " is " + string(status) + " with " + strconv.FormatInt(captured, 10) +
			" captured and " + strconv.FormatInt(canceled, 10) + " canceled"
	}
	return ""
}

// orderOf is the status of the order of a payment that holds money, or gave it all back.
func orderOf(s ledger.Status) (ledger.OrderStatus, bool) {
	switch s {
	case ledger.StatusDone:
		return ledger.OrderPaid, true
	case ledger.StatusPartiallyCanceled:
		return ledger.OrderPartiallyCanceled, true
	case ledger.StatusCanceled:
		return ledger.OrderCanceled, true
	case ledger.StatusReady, ledger.StatusConfirming, ledger.StatusUnknown, ledger.StatusFailed, ledger.StatusWaitingForDeposit:
	}
	return "", false
}

// follows reports whether a status fits the money.
func follows(s ledger.Status, captured, canceled int64) bool {
	switch s {
	case ledger.StatusDone:
		return captured > 0 && canceled == 0
	case ledger.StatusPartiallyCanceled:
		return canceled > 0 && canceled < captured
	case ledger.StatusCanceled:
		return canceled == captured
	case ledger.StatusReady, ledger.StatusConfirming, ledger.StatusUnknown, ledger.StatusFailed, ledger.StatusWaitingForDeposit:
		return captured == 0 && canceled == 0
	}
	return false
}

func (f *facts) order(id []byte, status ledger.OrderStatus) wide {
	return f.hash.begin().part(id).part([]byte(status)).subject()
}

func addOrder(f *facts, row [][]byte) string {
	f.pairs[pairOrders].books.add(f.order(row[0], ledger.OrderStatus(row[1])), 1)
	return ""
}

func addCapture(f *facts, row [][]byte) string {
	f.name = append(append(f.name[:0], row[0]...), '#')
	f.name = strconv.AppendInt(f.name, integer(row[1]), 10)
	f.pairs[pairCaptures].books.add(f.capture(f.name, row[0], row[2], instant(row[4]), instant(row[5])), integer(row[3]))
	if row[6] != nil {
		f.pairs[pairReversals].books.add(f.reversal(f.name, row[0], row[2], instant(row[6])), integer(row[3]))
	}
	return ""
}

func addCancel(f *facts, row [][]byte) string {
	f.pairs[pairCancels].books.add(f.cancel(row[0], row[1], row[2], row[3], instant(row[5]), instant(row[6])), integer(row[4]))
	f.pairs[pairCancelRevoked].books.add(f.one(row[0]), integer(row[7]))
	return ""
}

func addAccount(f *facts, row [][]byte) string {
	customer, granted, revoked, spent := f.one(row[0]), integer(row[1]), integer(row[2]), integer(row[3])
	f.pairs[pairGranted].books.add(customer, granted)
	f.pairs[pairRevoked].books.add(customer, revoked)
	f.pairs[pairSpent].books.add(customer, spent)
	if balance := integer(row[4]); balance != granted-revoked-spent {
		return "the credits of customer " + string(row[0]) + " are " + strconv.FormatInt(balance, 10) + ", and " +
			strconv.FormatInt(granted-revoked-spent, 10) + " by what was granted, revoked and spent"
	}
	return ""
}

func addSpend(f *facts, row [][]byte) string {
	f.pairs[pairSpends].books.add(f.spend(row[0], row[1], instant(row[3])), integer(row[2]))
	return ""
}

// datesEpoch is where the database counts days from, in days since 1970.
const datesEpoch = 10_957

func addBalance(f *facts, row [][]byte) string {
	subject := f.hash.begin().part(row[2]).part(row[3]).number(integer(row[0]) + datesEpoch).number(integer(row[1]) + datesEpoch).subject()
	f.pairs[pairBalanceDebits].books.add(subject, integer(row[4]))
	f.pairs[pairBalanceCredits].books.add(subject, integer(row[5]))
	return ""
}
