package pgclient

import (
	"context"
	"net/http"
	"net/url"

	"daesa/internal/guard"
	"daesa/ledger"
)

// Query asks about a payment while somebody waits for the answer to a notice: one attempt of at most 3 s. The
// error is an [*Error].
func (c *Client) Query(ctx context.Context, channel ledger.Channel, paymentKey string) (ledger.Observation, error) {
	return c.byKey(ctx, c.query, nil, channel, paymentKey)
}

// Recover asks about a payment when nobody waits: 10 s, and a short wait for a slot. An answer shows that the
// gateway is back, so it also closes the breaker of Query before its time.
func (c *Client) Recover(ctx context.Context, channel ledger.Channel, paymentKey string) (ledger.Observation, error) {
	return c.byKey(ctx, c.recovery, nil, channel, paymentKey)
}

// LookUp is Recover for somebody who waits for the answer, as a buyer does who presses again: anybody can do that, and
// nobody is lost who has to do it once more. Such questions have three quarters of the slots, however many come, and leave
// the others to what has nobody else to ask for it.
func (c *Client) LookUp(ctx context.Context, channel ledger.Channel, paymentKey string) (ledger.Observation, error) {
	return c.byKey(ctx, c.recovery, c.lookUps, channel, paymentKey)
}

// RecoverOrder is Recover by order number. The answer may carry another payment key than the one we know: an order
// can be paid with a second payment.
func (c *Client) RecoverOrder(ctx context.Context, channel ledger.Channel, orderID string) (ledger.Observation, error) {
	if orderID == "" || len(orderID) > orderIDMax || !graphic(orderID) || orderID == "." || orderID == ".." {
		return ledger.Observation{}, &Error{Group: GroupOurs, Reason: ReasonRefused, Detail: "the order id has no valid form"}
	}
	return c.ask(ctx, c.recovery, nil, channel, "/v1/payments/orders/"+url.PathEscape(orderID), "", orderID)
}

func (c *Client) byKey(ctx context.Context, l *lane, share *guard.Bulkhead, channel ledger.Channel, key string) (ledger.Observation, error) {
	if !ValidPaymentKey(key) {
		return ledger.Observation{}, &Error{Group: GroupOurs, Reason: ReasonRefused, Detail: "the payment key has no valid form"}
	}
	return c.ask(ctx, l, share, channel, "/v1/payments/"+url.PathEscape(key), key, "")
}

// ask sends a question about one payment and checks that the answer is about it. It holds a slot of the share, or any of
// the lane's where there is none.
func (c *Client) ask(ctx context.Context, l *lane, share *guard.Bulkhead, channel ledger.Channel, path, key, order string) (ledger.Observation, error) {
	permit, unsent := l.reserve(ctx, share)
	if unsent != nil {
		return ledger.Observation{}, unsent.lookupError()
	}
	defer permit.Release()
	var seen ledger.Observation
	asked := c.cfg.Now()
	sent := permit.send(ctx, call{
		method: http.MethodGet, url: c.base.String() + path,
		read: func(answer []byte) *Error {
			var failure *Error
			seen, failure = c.readPaymentOf(answer, key, order)
			return failure
		},
	})
	if sent.err != nil {
		return ledger.Observation{}, sent.err
	}
	if l == c.recovery {
		c.queries.Close()
	}
	stamp(&seen, channel, asked, c.cfg.Now())
	return seen, nil
}

// readPaymentOf reads a payment and checks that it is the one asked about, by key or by order, "" = any.
func (c *Client) readPaymentOf(answer []byte, key, order string) (ledger.Observation, *Error) {
	seen, failure := c.readPayment(answer)
	switch {
	case failure != nil:
		return ledger.Observation{}, failure
	case key != "" && seen.PaymentKey != key:
		return ledger.Observation{}, inconsistent("the answer is about another payment")
	case order != "" && seen.OrderID != order:
		return ledger.Observation{}, inconsistent("the answer is about another order")
	}
	return seen, nil
}
