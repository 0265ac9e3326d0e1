package pgclient

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"daesa/ledger"
)

// NoticeKind is which envelope a webhook body came in.
type NoticeKind string

// The kinds of notices.
const (
	NoticeStatusChanged   NoticeKind = "status_changed"   // carries a payment object
	NoticeDepositCallback NoticeKind = "deposit_callback" // flat, names an order and no payment
	NoticeCancelChanged   NoticeKind = "cancel_changed"   // names one asynchronous cancel, neither payment nor order
	NoticeSigned          NoticeKind = "signed"           // payouts and sellers; the only kind with a signature
	NoticeOther           NoticeKind = "other"            // an event we do not need, or never heard of
)

// NoticeKinds lists every kind.
func NoticeKinds() []NoticeKind {
	return []NoticeKind{NoticeStatusChanged, NoticeDepositCallback, NoticeCancelChanged, NoticeSigned, NoticeOther}
}

// Family sorts the status a notice claims, without believing it.
type Family string

// The families.
const (
	FamilyCancel     Family = "cancel"      // says that money went back
	FamilyKnownOther Family = "known_other" // any other status we know
	FamilyUnknown    Family = "unknown"     // a status never heard of, or none: only asking helps
)

// Families lists every family.
func Families() []Family { return []Family{FamilyCancel, FamilyKnownOther, FamilyUnknown} }

// Notice is a webhook body, read for its shape only. Anybody can post one: apart from the question it gives rise
// to, nothing in it may decide anything.
type Notice struct {
	Kind            NoticeKind
	EventType       string
	PaymentKey      string // "" when none, or not of a valid form
	PaymentKeyValid bool
	OrderID         string
	MerchantID      string
	Family          Family
	Claims          ledger.Evidence // what the status would prove if the gateway itself had said it; "" unless FamilyKnownOther
	Word            string          // the status as written, bounded
	Whole           bool            // the status says that nothing is left
	CancelKeys      []string        // every cancel it names and does not say was given up; nil when one cannot be named
	Total, Balance  *ledger.Money   // nil when absent or not exact
	SecretDigest    []byte          // SHA-256, nil when it shows none

	TransmissionID string
	RetriedCount   int // deliveries before this one, as the sender counts them
	SentAt         time.Time
	CreatedAt      time.Time // zero when absent or unreadable: it decides nothing

	body object
	size int // bytes of the body
}

// Masked is the body as it may be kept, as one JSON object: without secrets and personal data, bounded, and free of what
// the database cannot store. A body that would be too large is {"too_large":true,"bytes":n}.
func (n *Notice) Masked() json.RawMessage { return n.body.masked(n.size) }

// ErrNotice reports a body that is not one JSON object.
var ErrNotice = errors.New("not a JSON object")

// ReadNotice reads a webhook body of any envelope. A readable object always gives a notice; what is wrong inside
// it shows in the fields.
func (c *Client) ReadNotice(header http.Header, body []byte) (Notice, error) {
	o, ok := decodeObject(body)
	if !ok {
		return Notice{}, ErrNotice
	}
	n := Notice{
		Kind: noticeKind(o), EventType: o.text("eventType", 60), CreatedAt: o.time("createdAt"), Family: FamilyUnknown,
		TransmissionID: bounded(sanitized(header.Get("Tosspayments-Webhook-Transmission-Id")), 100),
		RetriedCount:   retriedCount(header.Get("Tosspayments-Webhook-Transmission-Retried-Count")),
		body:           o, size: len(body),
	}
	n.SentAt, _ = parseTime(header.Get("Tosspayments-Webhook-Transmission-Time"))
	switch n.Kind {
	case NoticeStatusChanged:
		data, _ := o.object("data")
		n.readPayment(data)
	case NoticeCancelChanged:
		data, _ := o.object("data")
		n.readCancel(data)
	case NoticeDepositCallback:
		if data, ok := o.object("data"); ok {
			o = data
		}
		n.readDeposit(o)
	case NoticeOther:
		if !knownEvent(n.EventType) {
			c.cfg.Metrics.unknown(unknownEvent)
		}
	case NoticeSigned: // payouts and sellers are not our books
	}
	if n.Family == FamilyUnknown && n.Word != "" {
		c.cfg.Metrics.unknown(unknownStatus)
	}
	return n, nil
}

// noticeKind tells the envelopes apart: the signed one has an entity, the deposit callback has no event type.
func noticeKind(o object) NoticeKind {
	eventType := o.code("eventType")
	switch {
	case !o.missing("entityType"):
		return NoticeSigned
	case eventType == "PAYMENT_STATUS_CHANGED":
		return NoticeStatusChanged
	case eventType == "CANCEL_STATUS_CHANGED":
		return NoticeCancelChanged
	case eventType == "DEPOSIT_CALLBACK", eventType == "" && o.verbatim("orderId") != "" && o.verbatim("status") != "":
		return NoticeDepositCallback
	}
	return NoticeOther
}

// knownEvent lists the events that exist and that we do not need.
func knownEvent(eventType string) bool {
	switch eventType {
	case "BILLING_DELETED", "METHOD_UPDATED", "CUSTOMER_STATUS_CHANGED", "ORDER_PAYMENT_STATUS_CHANGED", "PAYOUT_STATUS_CHANGED":
		return true
	}
	return false
}

func (n *Notice) readPayment(o object) {
	if key := o.verbatim("paymentKey"); ValidPaymentKey(key) {
		n.PaymentKey, n.PaymentKeyValid = key, true
	}
	n.OrderID, n.MerchantID = o.identifier("orderId", orderIDMax), o.identifier("mId", 64)
	n.Word = o.text("status", 40)
	n.Family, n.Claims = familyOf(n.Word)
	n.SecretDigest = digest(o.verbatim("secret"))
	currency := ledger.Currency(o.code("currency"))
	n.Total, n.Balance = exactly(o.money("totalAmount", currency)), exactly(o.money("balanceAmount", currency))
	n.Whole = n.Word == wordCanceled
	n.CancelKeys = cancelKeys(o)
}

func exactly(amount ledger.Money, err error) *ledger.Money {
	if err != nil {
		return nil
	}
	return &amount
}

// cancelKeysMax bounds what a stranger can make us look up.
const cancelKeysMax = 1000

// cancelKeys names every cancel, or none: a list with one missing would pass for complete. A cancel that the notice
// itself says was given up is left out: it will never be in any books.
func cancelKeys(o object) []string {
	rows, ok := o.objects("cancels")
	if !ok || len(rows) > cancelKeysMax {
		return nil
	}
	var keys []string
	for _, row := range rows {
		key := row.identifier("transactionKey", transactionKeyMax)
		if key == "" {
			return nil
		}
		if row.code("cancelStatus") != wordAborted {
			keys = append(keys, key)
		}
	}
	return keys
}

// readCancel reads the notice of one asynchronous cancel.
func (n *Notice) readCancel(o object) {
	n.Word = o.text("cancelStatus", 40)
	if key := o.identifier("transactionKey", transactionKeyMax); key != "" {
		n.CancelKeys = []string{key}
	}
	switch n.Word {
	case wordDone:
		n.Family = FamilyCancel
	case wordInProgress, wordAborted:
		n.Family = FamilyKnownOther
	}
}

// readDeposit reads the flat notice of a virtual account. Its transaction key is that of what happened last: a cancel's
// when the status says canceled. Under a status never heard of it may be one, and who asks will see.
func (n *Notice) readDeposit(o object) {
	n.OrderID = o.identifier("orderId", orderIDMax)
	n.Word = o.text("status", 40)
	n.Family, n.Claims = familyOf(n.Word)
	n.Whole = n.Word == wordCanceled
	n.SecretDigest = digest(o.verbatim("secret"))
	if key := o.identifier("transactionKey", transactionKeyMax); key != "" && n.Family != FamilyKnownOther {
		n.CancelKeys = []string{key}
	}
}

// familyOf sorts a status, and says what it claims where that is something other than a cancel.
func familyOf(word string) (Family, ledger.Evidence) {
	switch word {
	case wordCanceled, wordPartialCanceled:
		return FamilyCancel, ""
	case wordReady, wordInProgress:
		return FamilyKnownOther, ledger.EvidenceOpen
	case wordWaiting:
		return FamilyKnownOther, ledger.EvidenceWaiting
	case wordDone:
		return FamilyKnownOther, ledger.EvidenceCaptured
	case wordAborted, wordExpired:
		return FamilyKnownOther, ledger.EvidenceDead
	}
	return FamilyUnknown, ""
}

// retriedCountMax bounds a header that is only shown.
const retriedCountMax = 1000

func retriedCount(text string) int {
	count, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0
	}
	return int(min(count, retriedCountMax))
}
