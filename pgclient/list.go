package pgclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"daesa/ledger"
)

// TransactionKind is what a row of the list says of money.
type TransactionKind string

// The kinds of rows.
const (
	TransactionCapture      TransactionKind = "capture"
	TransactionCancel       TransactionKind = "cancel"
	TransactionNone         TransactionKind = "none" // no money: a virtual account issued, a payment that died
	TransactionUnrecognized TransactionKind = "unrecognized"
)

// TransactionKinds lists every kind.
func TransactionKinds() []TransactionKind {
	return []TransactionKind{TransactionCapture, TransactionCancel, TransactionNone, TransactionUnrecognized}
}

// Transaction is one row of the gateway's list: one capture, one cancel, or an event without money.
type Transaction struct {
	TransactionKey, PaymentKey, OrderID, MerchantID string
	Method, Word                                    string // the gateway's own words, bounded
	Kind                                            TransactionKind
	Amount                                          ledger.Money // never negative
	Negative                                        bool         // whether the gateway wrote it with a minus: it does not say which way it writes cancels
	At                                              time.Time
}

// QuarantinedRow is a row that cannot be held exactly, with what can be said of it.
type QuarantinedRow struct {
	TransactionKey, PaymentKey, OrderID string
	Word, Amount, Currency              string // as written, bounded
	At                                  time.Time
	Problem                             string
	Raw                                 json.RawMessage // masked
}

// Page is one answer of the list.
type Page struct {
	Rows        []Transaction
	Quarantined []QuarantinedRow
	Full        bool   // as many rows as asked for: ask again after Last
	Last        string // the last row's transaction key
}

// listLimitMax is the most rows the gateway gives at once.
const listLimitMax = 5000

// Transactions reads one page of the list of the window [from, to], continuing after a row of the same window. The
// error is an [*Error]; an answer that is not a list, "null" and "{}" included, is one too: it must never pass for
// an empty window.
func (c *Client) Transactions(ctx context.Context, from, to time.Time, after string, limit int) (Page, error) {
	if limit < 1 || limit > listLimitMax || !from.Before(to) {
		return Page{}, &Error{Group: GroupOurs, Reason: ReasonRefused, Detail: "the list needs a window and 1 to 5,000 rows"}
	}
	query := url.Values{
		"startDate": {from.In(ledger.Seoul()).Format(zoneless)},
		"endDate":   {to.In(ledger.Seoul()).Format(zoneless)},
		"limit":     {strconv.Itoa(limit)},
	}
	if after != "" {
		query.Set("startingAfter", after)
	}
	permit, unsent := c.list.reserve(ctx, nil)
	if unsent != nil {
		return Page{}, unsent.lookupError()
	}
	defer permit.Release()
	var page Page
	sent := permit.send(ctx, call{
		method: http.MethodGet, url: c.base.String() + "/v1/transactions?" + query.Encode(),
		read: func(answer []byte) *Error {
			var failure *Error
			page, failure = c.readPage(answer, after, limit)
			return failure
		},
	})
	if sent.err != nil {
		return Page{}, sent.err
	}
	return page, nil
}

// readPage reads a bare JSON array of rows.
func (c *Client) readPage(answer []byte, after string, limit int) (Page, *Error) {
	var raws []json.RawMessage
	if json.Unmarshal(answer, &raws) != nil || raws == nil {
		return Page{}, &Error{Group: GroupAmbiguous, Reason: ReasonUnreadable, Detail: "not a list of transactions"}
	}
	if len(raws) > limit {
		return Page{}, inconsistent("more rows than asked for")
	}
	page := Page{Full: len(raws) == limit}
	for _, raw := range raws {
		o, _ := decodeObject(raw)
		row, problem := c.readRow(o)
		if problem != "" {
			page.Quarantined = append(page.Quarantined, quarantined(o, raw, problem))
		} else {
			page.Rows = append(page.Rows, row)
		}
		if key := o.identifier("transactionKey", transactionKeyMax); key != "" {
			page.Last = key
		}
	}
	if page.Full && (page.Last == "" || page.Last == after) {
		return Page{}, inconsistent("a full page without a row to continue after")
	}
	return page, nil
}

// readRow reads one row, or says why it cannot be held.
func (c *Client) readRow(o object) (row Transaction, problem string) {
	if o == nil {
		return row, "not an object"
	}
	row = Transaction{
		TransactionKey: o.identifier("transactionKey", transactionKeyMax), PaymentKey: o.verbatim("paymentKey"),
		OrderID: o.identifier("orderId", orderIDMax), MerchantID: o.identifier("mId", 64),
		Method: o.text("method", 40), Word: o.text("status", 40), At: o.time("transactionAt"),
	}
	row.Kind = transactionKind(row.Word)
	if row.Kind == TransactionUnrecognized {
		c.cfg.Metrics.unknown(unknownStatus)
	}
	amount, err := o.money("amount", ledger.Currency(o.code("currency")))
	switch {
	case row.TransactionKey == "":
		return row, "no transaction key"
	case !ValidPaymentKey(row.PaymentKey):
		return row, "the payment key has no valid form"
	case row.At.IsZero():
		return row, "no time"
	case err != nil:
		return row, "amount: " + err.Error()
	case amount.Minor == -amount.Minor && !amount.IsZero(): // the one number without an opposite
		return row, "amount too large"
	}
	if amount.Minor < 0 {
		amount.Minor, row.Negative = -amount.Minor, true
	}
	row.Amount = amount
	return row, ""
}

// transactionKind takes the direction of money from the status, never from the sign.
func transactionKind(word string) TransactionKind {
	switch word {
	case wordDone:
		return TransactionCapture
	case wordCanceled, wordPartialCanceled:
		return TransactionCancel
	case wordReady, wordInProgress, wordWaiting, wordAborted, wordExpired:
		return TransactionNone
	}
	return TransactionUnrecognized
}

func quarantined(o object, raw []byte, problem string) QuarantinedRow {
	masked := json.RawMessage("null") // not an object: the problem says so, and nothing in it can be masked by name
	if o != nil {
		masked = o.masked(len(raw))
	}
	return QuarantinedRow{
		TransactionKey: o.identifier("transactionKey", transactionKeyMax), PaymentKey: o.text("paymentKey", paymentKeyMax),
		OrderID: o.text("orderId", orderIDMax), Word: o.text("status", 40),
		Amount: bounded(sanitized(o.number("amount")), 40), Currency: o.text("currency", 10),
		At: o.time("transactionAt"), Problem: problem, Raw: masked,
	}
}
