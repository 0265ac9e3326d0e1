package seal

import (
	"math/bits"

	"daesa/ledger"
)

// checkShape says what is wrong with a transaction by itself; "" when nothing is.
func checkShape(t *ledger.JournalTransaction) string {
	if len(t.Lines) < 2 {
		return "it has fewer than two entries"
	}
	if currency := unbalanced(t.Lines); currency != nil {
		return "its entries do not sum to zero in " + string(currency)
	}
	return checkAccounts(t)
}

// unbalanced is a currency in which the lines do not sum to zero; nil when there is none.
func unbalanced(lines []ledger.JournalLine) []byte {
	for i := range lines {
		var high, low uint64 // no amounts of a stranger wrap this around
		for k := range lines {
			if string(lines[k].Currency.Bytes) != string(lines[i].Currency.Bytes) {
				continue
			}
			var carry uint64
			low, carry = bits.Add64(low, uint64(lines[k].Amount), 0)       //nolint:gosec // two's complement
			high, _ = bits.Add64(high, uint64(lines[k].Amount>>63), carry) //nolint:gosec // the sign goes on
		}
		if high != 0 || low != 0 {
			return lines[i].Currency.Bytes
		}
		if i == 0 && len(lines) == 2 && string(lines[0].Currency.Bytes) == string(lines[1].Currency.Bytes) {
			return nil
		}
	}
	return nil
}

// checkAccounts holds the accounts of a transaction against its kind.
func checkAccounts(t *ledger.JournalTransaction) string {
	for i := range t.Lines {
		l := &t.Lines[i]
		if !allowed(ledger.EntryKind(t.Kind.Bytes), ledger.Account(l.Account.Bytes), l.Amount > 0) {
			side := "credits "
			if l.Amount > 0 {
				side = "debits "
			}
			return "a " + string(t.Kind.Bytes) + " never " + side + string(l.Account.Bytes)
		}
	}
	return ""
}

// allowed reports whether a kind of transaction debits or credits an account.
func allowed(kind ledger.EntryKind, account ledger.Account, debit bool) bool {
	switch kind {
	case ledger.EntryCapture:
		return debit && account == ledger.AccountReceivable || !debit && income(account, ledger.AccountSales)
	case ledger.EntryCancel:
		return debit && income(account, ledger.AccountRefunds) || !debit && account == ledger.AccountReceivable
	case ledger.EntryDepositReversal:
		return debit && income(account, ledger.AccountSales) || !debit && account == ledger.AccountReceivable
	case ledger.EntryCreditGrant:
		return debit && account == ledger.AccountCreditsIssued || !debit && account == ledger.AccountCustomerCredits
	case ledger.EntryCreditSpend:
		return debit && account == ledger.AccountCustomerCredits || !debit && account == ledger.AccountCreditsUsed
	case ledger.EntryCreditRevoke:
		return debit && account == ledger.AccountCustomerCredits || !debit && account == ledger.AccountCreditsIssued
	}
	return false
}

// income is the account of a payment that holds its order, or suspense for one that does not.
func income(account, own ledger.Account) bool {
	return account == own || account == ledger.AccountSuspense
}
