package pgclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"daesa/ledger"
)

// Result is what an approval or a cancel came to.
type Result struct {
	Verdict     Verdict
	Observation ledger.Observation // set when done
	Err         *Error             // set otherwise
	Attempts    int
}

// ConfirmRequest approves one payment. The idempotency key was stored with the intent and is the same for every
// attempt, now and after a restart; the gateway does not compare bodies, so a key used for another order would
// bring back that order's answer.
type ConfirmRequest struct {
	PaymentKey, OrderID string
	Amount              ledger.Money
	IdempotencyKey      string
}

// RefundAccount is where the money of a paid virtual account goes back to.
type RefundAccount struct {
	Bank          string `json:"bank"`
	AccountNumber string `json:"accountNumber"`
	HolderName    string `json:"holderName"`
}

// CancelRequest cancels part or all of a payment.
type CancelRequest struct {
	PaymentKey, Reason string
	Amount             *ledger.Money  // nil = all that is left
	Refundable         ledger.Money   // what we believe is left; if the gateway disagrees nothing is canceled; nothing = not said, for a void
	RefundAccount      *RefundAccount // for a paid virtual account, else nil
	IdempotencyKey     string
}

// ReserveConfirm claims a slot and the breaker's permission for an approval, before the intent is committed. The
// error is an [*Unsent]; then nothing was sent and nothing has changed.
func (c *Client) ReserveConfirm(ctx context.Context) (*Permit, error) { return c.confirm.claim(ctx) }

// ReserveCancel is ReserveConfirm for a cancel.
func (c *Client) ReserveCancel(ctx context.Context) (*Permit, error) { return c.cancel.claim(ctx) }

func (l *lane) claim(ctx context.Context) (*Permit, error) {
	permit, unsent := l.reserve(ctx, nil)
	if unsent != nil {
		return nil, unsent
	}
	return permit, nil
}

// Confirm approves a payment under the permit, in at most two attempts with one idempotency key. The context
// should be detached from the customer's request: once something was sent, a customer who hangs up must not turn
// a known outcome into an unknown one.
func (c *Client) Confirm(ctx context.Context, permit *Permit, r ConfirmRequest) Result {
	if !ValidPaymentKey(r.PaymentKey) || r.OrderID == "" || !r.Amount.Positive() {
		return unfit("an approval needs a payment key, an order and an amount above nothing")
	}
	body := struct {
		PaymentKey string      `json:"paymentKey"`
		OrderID    string      `json:"orderId"`
		Amount     json.Number `json:"amount"`
	}{r.PaymentKey, r.OrderID, json.Number(r.Amount.Decimal())}
	return c.post(ctx, permit, c.confirm, ledger.ChannelConfirm, r.PaymentKey, "/v1/payments/confirm", r.IdempotencyKey, body)
}

// Cancel cancels under the permit, in at most two attempts with one idempotency key. Like Confirm, it wants a
// context that outlives the caller's patience.
func (c *Client) Cancel(ctx context.Context, permit *Permit, r CancelRequest) Result {
	if !ValidPaymentKey(r.PaymentKey) || r.Reason == "" || (r.Amount != nil && !r.Amount.Positive()) {
		return unfit("a cancel needs a payment key, a reason and, if partial, an amount above nothing")
	}
	body := struct {
		Reason     string         `json:"cancelReason"`
		Amount     *json.Number   `json:"cancelAmount,omitempty"`
		Refundable *json.Number   `json:"refundableAmount,omitempty"`
		Currency   string         `json:"currency,omitempty"`
		Account    *RefundAccount `json:"refundReceiveAccount,omitempty"`
	}{Reason: bounded(sanitized(r.Reason), 200), Account: r.RefundAccount}
	if r.Refundable.Positive() { // an unpaid virtual account has no money whose amount could be agreed on
		refundable := json.Number(r.Refundable.Decimal())
		body.Refundable = &refundable
	}
	if r.Amount != nil {
		amount := json.Number(r.Amount.Decimal())
		body.Amount = &amount
	}
	if r.Refundable.Currency != ledger.KRW {
		body.Currency = string(r.Refundable.Currency)
	}
	path := "/v1/payments/" + url.PathEscape(r.PaymentKey) + "/cancel"
	return c.post(ctx, permit, c.cancel, ledger.ChannelCancel, r.PaymentKey, path, r.IdempotencyKey, body)
}

// unfit is a request we do not send.
func unfit(detail string) Result {
	return Result{
		Verdict: VerdictUnprocessed,
		Err:     &Error{Group: GroupOurs, Reason: ReasonRefused, Detail: detail},
	}
}

// post sends a call that moves money and says what it came to.
func (c *Client) post(ctx context.Context, permit *Permit, l *lane, channel ledger.Channel,
	paymentKey, path, idempotencyKey string, body any,
) Result {
	encoded, err := json.Marshal(body)
	switch {
	case err != nil:
		return unfit("the request cannot be written as JSON")
	case idempotencyKey == "" || len(idempotencyKey) > 300 || !graphic(idempotencyKey):
		return unfit("the idempotency key has no valid form")
	case permit == nil || permit.lane != l || permit.released.Load():
		return unfit("the permit is for another path, or was given back")
	}
	var seen ledger.Observation
	asked := c.cfg.Now()
	sent := permit.send(ctx, call{
		method: http.MethodPost, url: c.base.String() + path, body: encoded, idempotencyKey: idempotencyKey,
		read: func(answer []byte) *Error {
			var failure *Error
			seen, failure = c.readPaymentOf(answer, paymentKey, "")
			return failure
		},
	})
	result := Result{Verdict: verdict(sent.err, sent.doubt), Err: sent.err, Attempts: sent.attempts}
	if sent.attempts == 0 {
		result.Verdict = VerdictUnprocessed
	}
	if sent.err == nil {
		stamp(&seen, channel, asked, c.cfg.Now())
		result.Observation = seen
	}
	return result
}
