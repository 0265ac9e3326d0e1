package ledger

import (
	"cmp"
	"slices"
	"time"
)

// Channel is the way an observation reached us.
type Channel string

// The channels. Every one of them goes through Record.
const (
	ChannelConfirm    Channel = "confirm"
	ChannelCancel     Channel = "cancel"
	ChannelWebhook    Channel = "webhook"
	ChannelSweep      Channel = "sweep"
	ChannelRecover    Channel = "recover"
	ChannelLastChance Channel = "last_chance"
	ChannelManual     Channel = "manual"
	ChannelImport     Channel = "import"
)

// Channels lists every channel.
func Channels() []Channel {
	return []Channel{
		ChannelConfirm, ChannelCancel, ChannelWebhook, ChannelSweep,
		ChannelRecover, ChannelLastChance, ChannelManual, ChannelImport,
	}
}

// Evidence says what an observation proves. The gateway's own words are translated where they are read, in
// the gateway client, and nowhere else.
type Evidence string

// What an observation can prove.
const (
	// EvidenceOpen: the gateway knows the payment and no money has moved; its session may still be open.
	EvidenceOpen Evidence = "open"
	// EvidenceWaiting: a virtual account was issued and nothing has been paid in, or a deposit fell back.
	EvidenceWaiting Evidence = "waiting"
	// EvidenceCaptured: the money was taken. Cancels, if any, are in the observation.
	EvidenceCaptured Evidence = "captured"
	// EvidenceVoided: canceled before any money moved (an unpaid virtual account).
	EvidenceVoided Evidence = "voided"
	// EvidenceDead: expired or aborted at the gateway, or an account past its due date. No money moved, none can.
	EvidenceDead Evidence = "dead"
	// EvidenceRefused: our confirm was refused for good, by code, and no earlier attempt is in doubt.
	EvidenceRefused Evidence = "refused"
	// EvidenceUnprocessed: our confirm was turned away before it was processed (key, configuration, rate).
	EvidenceUnprocessed Evidence = "unprocessed"
	// EvidenceLost: sent, and nobody knows what came of it.
	EvidenceLost Evidence = "lost"
	// EvidenceUnrecognized: the gateway answered with a status nobody here has seen. It proves nothing.
	EvidenceUnrecognized Evidence = "unrecognized"
)

// Evidences lists every kind of evidence.
func Evidences() []Evidence {
	return []Evidence{
		EvidenceOpen, EvidenceWaiting, EvidenceCaptured, EvidenceVoided, EvidenceDead,
		EvidenceRefused, EvidenceUnprocessed, EvidenceLost, EvidenceUnrecognized,
	}
}

// HasObject reports whether the evidence came with the gateway's payment object, so that amounts, order and
// merchant id in the observation mean something.
func (e Evidence) HasObject() bool {
	switch e {
	case EvidenceOpen, EvidenceWaiting, EvidenceCaptured, EvidenceVoided, EvidenceDead, EvidenceUnrecognized:
		return true
	case EvidenceRefused, EvidenceUnprocessed, EvidenceLost:
		return false
	}
	return false
}

// CancelState is how far the gateway is with one cancel.
type CancelState string

// The states of a cancel at the gateway. Only CancelDone is money.
const (
	CancelDone         CancelState = "done"
	CancelInProgress   CancelState = "in_progress"
	CancelAborted      CancelState = "aborted"
	CancelUnrecognized CancelState = "unrecognized"
)

// Observation is what the gateway said about one payment, when, and through which channel.
//
// Amounts are exact. An object that could not be read exactly never becomes an observation: the gateway
// client returns an error that quarantines it.
type Observation struct {
	PaymentKey string
	OrderID    string
	MerchantID string
	Channel    Channel
	Evidence   Evidence
	AskedAt    time.Time // when the question was sent; an answer is never older than this
	SeenAt     time.Time // when the answer was read
	Word       string    // the gateway's own status or error code, bounded, for people
	Method     string    // the gateway's own name of the method, bounded, for people

	VirtualAccount     bool
	Total              Money
	Balance            Money
	Tax                Tax
	LastTransactionKey string
	RequestedAt        time.Time
	CapturedAt         time.Time // zero unless captured
	DueAt              time.Time // until when an account takes its deposit; zero unless it waits or has waited in vain
	SecretDigest       []byte    // SHA-256 of the payment's secret, empty when none was shown
	Cancels            []ObservedCancel

	// Attempt is the confirm attempt whose outcome this is; zero for answers to questions. The outcome of an
	// attempt that no longer owns the row changes nothing.
	Attempt int

	// Stranger says of EvidenceRefused that the gateway has never heard of the payment key.
	Stranger bool

	// Listed is a cancel's transaction key that the gateway's list named for this payment; set by the sweep
	// so that a void whose object carries no key is still booked under the key the list knows.
	Listed string
}

// ObservedCancel is one element of the gateway's cancels, in the gateway's order.
type ObservedCancel struct {
	TransactionKey string
	RequestID      string // set for asynchronous cancels
	State          CancelState
	Amount         Money
	Refundable     Money // what could still be canceled afterwards
	TaxFree        Money
	TaxExempt      Money
	Reason         string
	CanceledAt     time.Time
}

// oldestFirst orders cancels as they happened: the gateway does not say what the order of its list means. Of one second,
// the one that left more came first; one without a time is taken for the last, as it is booked with the present time.
func oldestFirst(cancels []ObservedCancel) []ObservedCancel {
	return slices.SortedStableFunc(slices.Values(cancels), func(a, b ObservedCancel) int {
		switch {
		case a.CanceledAt.Equal(b.CanceledAt):
			return cmp.Compare(b.Refundable.Minor, a.Refundable.Minor)
		case a.CanceledAt.IsZero():
			return 1
		case b.CanceledAt.IsZero():
			return -1
		}
		return a.CanceledAt.Compare(b.CanceledAt)
	})
}

// Tax is the gateway's own split of the balance. It is kept as told and never computed here.
type Tax struct {
	Supplied Money
	VAT      Money
	Free     Money
	Exempt   Money
}
