package webhook

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	"daesa/ledger"
	"daesa/pgclient"
)

// delivery is one request while it is being answered.
type delivery struct {
	at     time.Time
	source string
	hash   [sha256.Size]byte
	size   int
	masked json.RawMessage // nil when there is nothing fit to be kept, or no payment that it could be kept for
	notice pgclient.Notice
	named  []string // every cancel the notice names, each once, sorted

	settled verdict // decided without the books; the zero value when it is not
	foreign bool    // names an order or a merchant that is not ours

	id         int64
	paymentKey string // of the payment in our books
	queryTook  time.Duration
}

// sort decides what needs no look into the books.
func (h *Handler) sort(d delivery, signature pgclient.SignatureState) delivery {
	n := d.notice
	d.named = slices.Compact(slices.Sorted(slices.Values(n.CancelKeys)))
	d.foreign = h.foreign(n)
	switch n.Kind {
	case pgclient.NoticeSigned:
		d.settled.outcome = OutcomeEventIgnored
		if signature == pgclient.SignatureInvalid {
			d.settled.outcome = OutcomeSignatureRejected
		}
	case pgclient.NoticeOther:
		d.settled.outcome = OutcomeEventIgnored
	case pgclient.NoticeStatusChanged:
		if !n.PaymentKeyValid && n.Family != pgclient.FamilyKnownOther {
			// Nothing to ask about, and a malformed key must never become part of an address.
			d.settled = verdict{outcome: OutcomeBodyUnparsable, reason: "payment_key"}
		}
	case pgclient.NoticeDepositCallback, pgclient.NoticeCancelChanged:
	}
	return d
}

// foreign reports whether the notice says that it is about somebody else's order. It counts only for payments that
// our books do not hold.
func (h *Handler) foreign(n pgclient.Notice) bool {
	if h.cfg.OurOrders != nil && n.OrderID != "" && !h.cfg.OurOrders.MatchString(n.OrderID) {
		return true
	}
	return h.cfg.MerchantID != "" && n.MerchantID != "" && n.MerchantID != h.cfg.MerchantID
}

// contradicted lists the statuses of our books that a status outside the cancel family calls into question. A payment
// in one of them is asked about at once; the notice itself changes nothing.
func contradicted(claims ledger.Evidence) []ledger.Status {
	undecided := []ledger.Status{ledger.StatusConfirming, ledger.StatusUnknown}
	switch claims {
	case ledger.EvidenceCaptured:
		return append(undecided, ledger.StatusWaitingForDeposit, ledger.StatusReady, ledger.StatusFailed)
	case ledger.EvidenceWaiting:
		return append(undecided, ledger.StatusDone, ledger.StatusReady, ledger.StatusFailed)
	case ledger.EvidenceDead:
		return append(undecided, ledger.StatusWaitingForDeposit, ledger.StatusDone, ledger.StatusPartiallyCanceled)
	case ledger.EvidenceOpen:
		return undecided
	case ledger.EvidenceVoided, ledger.EvidenceRefused, ledger.EvidenceUnprocessed, ledger.EvidenceLost,
		ledger.EvidenceUnrecognized:
	}
	return nil
}

// toldAt is when the gateway wrote a notice that the account waits; zero of any other. Where the notice bears the payment's
// secret, it supports what the payment object says: one that was written after a deposit is not from before it.
func (d *delivery) toldAt() time.Time {
	if d.notice.Claims != ledger.EvidenceWaiting || len(d.notice.SecretDigest) == 0 {
		return time.Time{}
	}
	return d.notice.CreatedAt
}

// saltedSecret prepares the comparison of a deposit callback's secret: both sides are hashed once more under a fresh
// salt, so that the time the comparison takes says nothing about the secret.
func (d *delivery) saltedSecret() (salt, salted []byte) {
	salt = make([]byte, 16)
	rand.Read(salt)
	sum := sha256.Sum256(append(slices.Clone(d.notice.SecretDigest), salt...))
	return salt, sum[:]
}
