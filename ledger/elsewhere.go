package ledger

import (
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// A transaction key is one transaction of one payment. When the gateway shows one for a second payment, no book can
// hold both: the second is left out and reported, and everything else that the observation says is recorded.

// transactionKeys are the keys that the observation would put into the books.
func (o Observation) transactionKeys() []string {
	var keys []string
	for _, c := range o.Cancels {
		keys = append(keys, c.TransactionKey)
	}
	keys = append(keys, o.LastTransactionKey, o.Listed)
	return slices.DeleteFunc(keys, func(key string) bool { return key == "" })
}

// queueElsewhere asks which of the keys the books hold for another payment.
func queueElsewhere(b *pgx.Batch, paymentKey string, keys []string) {
	b.Queue(`
		SELECT c.transaction_key, c.payment_key FROM cancels c
		WHERE c.transaction_key = ANY(@keys) AND c.payment_key <> @payment_key
		UNION ALL
		SELECT c.transaction_key, c.payment_key FROM captures c
		WHERE c.transaction_key = ANY(@keys) AND c.payment_key <> @payment_key`,
		pgx.StrictNamedArgs{"keys": keys, "payment_key": paymentKey})
}

type elsewhere struct {
	TransactionKey string `db:"transaction_key"`
	PaymentKey     string `db:"payment_key"`
}

// withoutElsewhere leaves out of the observation what the books hold for another payment, and reports it.
func (o Observation) withoutElsewhere(held []elsewhere) (Observation, []Finding) {
	if len(held) == 0 {
		return o, nil
	}
	seen := o.summary()
	owner := make(map[string]string, len(held))
	for _, h := range held {
		owner[h.TransactionKey] = h.PaymentKey
	}
	amount := o.Total // of the capture, or of a void, which has none
	if o.Evidence == EvidenceVoided {
		amount.Minor = 0
	}
	atRisk := make(map[string]Money)
	for _, key := range []string{o.LastTransactionKey, o.Listed} {
		if owner[key] != "" {
			atRisk[key] = amount
		}
	}
	o.Cancels = slices.DeleteFunc(slices.Clone(o.Cancels), func(c ObservedCancel) bool {
		if owner[c.TransactionKey] == "" {
			return false
		}
		atRisk[c.TransactionKey] = c.Amount
		return true
	})
	if owner[o.LastTransactionKey] != "" {
		o.LastTransactionKey = ""
	}
	if owner[o.Listed] != "" {
		o.Listed = ""
	}
	var findings []Finding
	for _, h := range held {
		if risk, shown := atRisk[h.TransactionKey]; shown {
			delete(atRisk, h.TransactionKey)
			findings = append(findings, Finding{
				Kind: KindHistoryChanged, TransactionKey: h.TransactionKey, AtRisk: risk, Gateway: seen,
				Detail: fmt.Sprintf("transaction %s is booked for payment %s and shown for this one too", h.TransactionKey, h.PaymentKey),
			})
		}
	}
	return o, findings
}
