package checkout

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"daesa/internal/web"
	"daesa/ledger"
	"daesa/pgclient"
)

// askAgain is when a buyer who was told "not known yet" should ask.
const askAgain = 3 * time.Second

func (p reply) write(w http.ResponseWriter) error {
	w.Header().Set("Cache-Control", "no-store")
	if p.after > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((p.after+time.Second-1)/time.Second), 10))
	}
	if p.replay {
		w.Header().Set("Idempotent-Replay", "true")
	}
	return web.WriteJSON(w, p.status, p.body)
}

// confirmed is the answer to an approval: how the payment stands in our books.
type confirmed struct {
	Status     ledger.Status `json:"status"`
	PaymentKey string        `json:"payment_key"`
	OrderID    string        `json:"order_id"`
	Amount     string        `json:"amount,omitempty"`
	Currency   string        `json:"currency,omitempty"`
	Method     string        `json:"method,omitempty"`
	StatusURL  string        `json:"status_url,omitempty"`
}

// standing answers an approval from the payment's row. gave is what the gateway said in this call, nil when it was
// not called.
func (h *Handler) standing(p ledger.Payment, gave *pgclient.Error) (reply, error) {
	switch p.Status {
	case ledger.StatusDone, ledger.StatusWaitingForDeposit, ledger.StatusPartiallyCanceled:
		return reply{status: http.StatusOK, body: confirmed{
			Status: p.Status, PaymentKey: p.Key, OrderID: p.OrderID, Amount: p.Amount.Decimal(),
			Currency: string(p.Amount.Currency), Method: p.Method,
		}}, nil
	case ledger.StatusCanceled:
		return reply{}, ErrCanceled
	case ledger.StatusFailed:
		return reply{}, refusedPayment(p, gave)
	case ledger.StatusReady:
		return reply{}, turnedAway(gave)
	case ledger.StatusConfirming, ledger.StatusUnknown:
	}
	return h.pending(p.Key, p.OrderID, p.Status), nil
}

// pending is 202: the outcome is not known yet, and where to ask for it.
func (h *Handler) pending(paymentKey, orderID string, status ledger.Status) reply {
	return reply{status: http.StatusAccepted, after: askAgain, body: confirmed{
		Status: status, PaymentKey: paymentKey, OrderID: orderID, StatusURL: h.statusURL(paymentKey),
	}}
}

// refusedPayment passes the gateway's refusal on. One status for every code: a payment refused once is answered the
// same from the row, which keeps the code alone, and 401 or 403 would speak of the caller's own key.
func refusedPayment(p ledger.Payment, gave *pgclient.Error) error {
	r := &refusal{
		cause: ErrRefused, status: http.StatusPaymentRequired, code: p.Reason,
		extra: map[string]any{"payment_key": p.Key, "order_id": p.OrderID},
	}
	if gave != nil && gave.Code != "" {
		r.code, r.message = gave.Code, gave.Message
	}
	return r
}

// turnedAway answers for a payment that is payable as before: the gateway did not process the call.
func turnedAway(gave *pgclient.Error) error {
	r := &refusal{cause: ErrUnprocessed, after: askAgain}
	if gave == nil {
		return r
	}
	r.after = max(askAgain, gave.RetryAfter)
	switch gave.Group {
	case pgclient.GroupKey, pgclient.GroupOurs:
		r.cause, r.after = ErrMisconfigured, 0
	case pgclient.GroupAlready, pgclient.GroupAmbiguous, pgclient.GroupInFlight, pgclient.GroupRate,
		pgclient.GroupAmountChanged, pgclient.GroupSessionGone, pgclient.GroupRefused, pgclient.GroupNotFound,
		pgclient.GroupCursor:
	}
	return r
}

// unsent answers for a call that our own guard refused: nothing was sent and nothing was written.
func unsent(err error) error {
	var u *pgclient.Unsent
	if !errors.As(err, &u) {
		return err
	}
	cause := ErrBusy
	if u.Reason == pgclient.RefusalBreaker {
		cause = ErrDown
	}
	return web.WithRetryAfter(errors.Join(cause, err), max(time.Second, u.RetryAfter))
}

// detached is a context that outlives the caller's patience but not its own limit.
func detached(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}
