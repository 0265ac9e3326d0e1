package pgclient

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"daesa/ledger"
)

// The gateway's words for the status of a payment.
const (
	wordReady           = "READY"
	wordInProgress      = "IN_PROGRESS"
	wordWaiting         = "WAITING_FOR_DEPOSIT"
	wordDone            = "DONE"
	wordCanceled        = "CANCELED"
	wordPartialCanceled = "PARTIAL_CANCELED"
	wordAborted         = "ABORTED"
	wordExpired         = "EXPIRED"
)

// readPayment translates a payment object. What it returns does not contradict itself: amounts are exact, the
// balance lies between nothing and the total, and the cancels account for the difference. Anything less is an
// Error, because a number that is wrong in the books is worse than one that is late.
func (c *Client) readPayment(body []byte) (ledger.Observation, *Error) {
	o, ok := decodeObject(body)
	if !ok || o.missing("paymentKey") {
		return ledger.Observation{}, &Error{Group: GroupAmbiguous, Reason: ReasonUnreadable, Detail: "not a payment object"}
	}
	if !slices.Contains(c.cfg.Versions, o.code("version")) {
		c.cfg.Metrics.unknown(unknownVersion)
	}
	seen := ledger.Observation{
		PaymentKey: o.verbatim("paymentKey"), OrderID: o.identifier("orderId", orderIDMax),
		MerchantID: o.identifier("mId", 64), Word: o.text("status", 40), Method: o.text("method", 40),
		LastTransactionKey: o.identifier("lastTransactionKey", transactionKeyMax),
		RequestedAt:        o.time("requestedAt"), SecretDigest: digest(o.verbatim("secret")),
	}
	virtualAccount, account := o.object("virtualAccount")
	seen.VirtualAccount = account || seen.Method == "가상계좌" || seen.Method == "VIRTUAL_ACCOUNT"
	if problem := c.readMoney(o, &seen); problem != "" {
		return ledger.Observation{}, inconsistent(problem)
	}
	seen.Evidence = evidence(seen, !o.missing("approvedAt"))
	if seen.Evidence == ledger.EvidenceCaptured {
		seen.CapturedAt = o.time("approvedAt")
	}
	if seen.Evidence == ledger.EvidenceWaiting {
		readTerm(virtualAccount, &seen)
	}
	if seen.Evidence == ledger.EvidenceUnrecognized {
		c.cfg.Metrics.unknown(unknownStatus)
	}
	if problem := c.contradiction(seen); problem != "" {
		return ledger.Observation{}, inconsistent(problem)
	}
	return seen, nil
}

// readTerm reads until when a waiting account takes its deposit. Past that the gateway's status stays what it was, and
// no event is sent: only the account's own mark tells that no money can come any more.
func readTerm(account object, seen *ledger.Observation) {
	seen.DueAt = account.time("dueDate")
	if account.flag("expired") {
		seen.Evidence = ledger.EvidenceDead
	}
}

func inconsistent(problem string) *Error {
	return &Error{Group: GroupAmbiguous, Reason: ReasonInconsistent, Detail: problem}
}

// digest is all that is kept of a secret.
func digest(secret string) []byte {
	if secret == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// readMoney reads every amount of the object, or says which one cannot be held exactly.
func (c *Client) readMoney(o object, seen *ledger.Observation) (problem string) {
	currency := ledger.Currency(o.code("currency"))
	for _, field := range []struct {
		name string
		into *ledger.Money
		read func(string, ledger.Currency) (ledger.Money, error)
	}{
		{"totalAmount", &seen.Total, o.money},
		{"balanceAmount", &seen.Balance, o.money},
		{"suppliedAmount", &seen.Tax.Supplied, o.moneyOrNone},
		{"vat", &seen.Tax.VAT, o.moneyOrNone},
		{"taxFreeAmount", &seen.Tax.Free, o.moneyOrNone},
		{"taxExemptionAmount", &seen.Tax.Exempt, o.moneyOrNone},
	} {
		amount, err := field.read(field.name, currency)
		if err != nil {
			return field.name + ": " + err.Error()
		}
		*field.into = amount
	}
	seen.Cancels, problem = c.readCancels(o, currency)
	return problem
}

// transactionKeyMax is well above the 64 characters the gateway documents.
const transactionKeyMax = 200

// readCancels reads the cancels in the gateway's order.
func (c *Client) readCancels(o object, currency ledger.Currency) (cancels []ledger.ObservedCancel, problem string) {
	if o.missing("cancels") {
		return nil, ""
	}
	rows, ok := o.objects("cancels")
	if !ok {
		return nil, "cancels is not a list of objects"
	}
	for i, row := range rows {
		if row == nil {
			return nil, fmt.Sprintf("cancel %d is null", i+1)
		}
		cancel, problem := c.readCancel(row, currency)
		if problem != "" {
			return nil, fmt.Sprintf("cancel %d: %s", i+1, problem)
		}
		cancels = append(cancels, cancel)
	}
	return cancels, ""
}

func (c *Client) readCancel(o object, currency ledger.Currency) (cancel ledger.ObservedCancel, problem string) {
	cancel = ledger.ObservedCancel{
		TransactionKey: o.identifier("transactionKey", transactionKeyMax),
		RequestID:      o.identifier("cancelRequestId", 100), State: c.cancelState(o),
		Reason: o.text("cancelReason", 200), CanceledAt: o.time("canceledAt"),
	}
	var err error
	if cancel.Amount, err = o.money("cancelAmount", currency); err != nil {
		return cancel, "cancelAmount: " + err.Error()
	}
	if cancel.Refundable, err = o.moneyOrNone("refundableAmount", currency); err != nil {
		return cancel, "refundableAmount: " + err.Error()
	}
	if cancel.TaxFree, err = o.moneyOrNone("taxFreeAmount", currency); err != nil {
		return cancel, "taxFreeAmount: " + err.Error()
	}
	if cancel.TaxExempt, err = o.moneyOrNone("taxExemptionAmount", currency); err != nil {
		return cancel, "taxExemptionAmount: " + err.Error()
	}
	return cancel, ""
}

// cancelState reads how far a cancel is. Objects of older versions have no such field: there, every cancel is done.
func (c *Client) cancelState(o object) ledger.CancelState {
	if o.missing("cancelStatus") {
		return ledger.CancelDone
	}
	switch o.code("cancelStatus") {
	case wordDone:
		return ledger.CancelDone
	case wordInProgress:
		return ledger.CancelInProgress
	case wordAborted:
		return ledger.CancelAborted
	}
	c.cfg.Metrics.unknown(unknownCancel)
	return ledger.CancelUnrecognized
}

// evidence translates the status. CANCELED says nothing of money by itself: a virtual account canceled before
// anything was paid in looks the same but for its missing time of approval.
func evidence(seen ledger.Observation, approved bool) ledger.Evidence {
	switch seen.Word {
	case wordReady, wordInProgress:
		return ledger.EvidenceOpen
	case wordWaiting:
		return ledger.EvidenceWaiting
	case wordDone, wordPartialCanceled:
		return ledger.EvidenceCaptured
	case wordExpired, wordAborted:
		return ledger.EvidenceDead
	case wordCanceled:
		untouched := len(seen.Cancels) == 0 && seen.Balance == seen.Total
		if !approved && (seen.VirtualAccount || untouched) {
			return ledger.EvidenceVoided
		}
		return ledger.EvidenceCaptured
	}
	return ledger.EvidenceUnrecognized
}

// contradiction says what in the observation cannot be true together, "" when nothing.
func (c *Client) contradiction(seen ledger.Observation) string {
	switch {
	case !ValidPaymentKey(seen.PaymentKey):
		return "the payment key has no valid form"
	case seen.OrderID == "":
		return "the order id is missing"
	case seen.Total.Minor < 0 || seen.Balance.Minor < 0 || seen.Balance.Minor > seen.Total.Minor:
		return fmt.Sprintf("balance %s of total %s", seen.Balance, seen.Total)
	}
	if problem := cancelsContradict(seen); problem != "" {
		return problem
	}
	if seen.Evidence == ledger.EvidenceCaptured {
		return sumContradicts(seen)
	}
	return ""
}

// cancelsContradict checks each cancel by itself and all of them for a key told twice. A cancel of a payment that
// never had money may be of nothing.
func cancelsContradict(seen ledger.Observation) string {
	keys := make(map[string]bool, len(seen.Cancels))
	for i, cancel := range seen.Cancels {
		switch {
		case cancel.TransactionKey == "":
			return fmt.Sprintf("cancel %d has no transaction key", i+1)
		case keys[cancel.TransactionKey]:
			return fmt.Sprintf("cancel %d repeats a transaction key", i+1)
		case cancel.Amount.Minor < 0, cancel.Amount.IsZero() && seen.Evidence != ledger.EvidenceVoided:
			return fmt.Sprintf("cancel %d is of %s", i+1, cancel.Amount)
		}
		keys[cancel.TransactionKey] = true
	}
	return ""
}

// sumContradicts checks that the cancels explain what is gone from the balance: those that are done are, and those
// still under way may be (the gateway does not document when it takes them off).
func sumContradicts(seen ledger.Observation) string {
	done, open := ledger.Money{Currency: seen.Total.Currency}, ledger.Money{Currency: seen.Total.Currency}
	for _, cancel := range seen.Cancels {
		sum := &open
		switch cancel.State {
		case ledger.CancelDone:
			sum = &done
		case ledger.CancelAborted:
			continue
		case ledger.CancelInProgress, ledger.CancelUnrecognized:
		}
		total, err := sum.Add(cancel.Amount)
		if err != nil {
			return err.Error()
		}
		*sum = total
	}
	gone, most := seen.Total.Minor-seen.Balance.Minor, done.Minor
	if both, err := done.Add(open); err == nil {
		most = both.Minor
	}
	if done.Minor > gone || gone > most {
		return fmt.Sprintf("cancels of %s do not explain a balance of %s of %s", done, seen.Balance, seen.Total)
	}
	return ""
}

// stamp adds when and through what the observation came.
func stamp(seen *ledger.Observation, channel ledger.Channel, asked, answered time.Time) {
	seen.Channel, seen.AskedAt, seen.SeenAt = channel, asked, answered
}
