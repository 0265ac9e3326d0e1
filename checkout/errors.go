package checkout

import (
	"context"
	"errors"
	"net/http"
	"time"

	"daesa/internal/postgres"
	"daesa/internal/web"
	"daesa/ledger"
)

// What this package refuses a request for. The table of problems gives each its status and code:
//
//	ErrRequest         400  invalid_request           the detail names the field
//	ErrAmount          400  amount_malformed
//	ErrRefundAccount   400  refund_account_required
//	ErrKeyMissing      400  idempotency_key_missing
//	ErrRefused         402  payment_refused           carries the gateway's own code and words
//	ErrNoEvent         404  event_not_found
//	ErrCanceled        409  payment_canceled
//	ErrCancelRefused   409  cancel_refused            carries the gateway's own code and words
//	ErrBooksBehind     409  refundable_changed        worth sending again
//	ErrInFlight        409  request_in_flight         with Retry-After
//	ErrUnderWay        409  confirm_under_way         with Retry-After
//	ErrStoreDeclined   409  store_declined            the detail is the store's reason; nothing was sent
//	ErrKeyReused       422  idempotency_key_reused
//	ErrMisconfigured   502  gateway_setup             our key or set-up was refused; somebody was paged
//	ErrUnprocessed     503  gateway_unprocessed       turned away there, nothing moved
//	ErrBusy            503  gateway_busy              turned away here, nothing was sent
//	ErrDown            503  gateway_down              the breaker is open, nothing was sent
//	ErrStoreLate       503  store_late                the store did not answer in time, nothing was sent
//	ErrStoreDown       503  store_down                the store cannot be reached, nothing was sent
//	ErrUnavailable     503  database_unavailable
var (
	// ErrRequest means that a field is not what the route reads.
	ErrRequest = errors.New("invalid request")
	// ErrAmount means that an amount is missing, not positive, or not exact in its currency.
	ErrAmount = errors.New("the amount must be an exact decimal number above nothing")
	// ErrRefundAccount means that a paid virtual account cannot be refunded without an account to send the money to.
	ErrRefundAccount = errors.New("a paid virtual account needs refund_account")
	// ErrKeyMissing means that the route needs an Idempotency-Key header of 1 to 255 visible characters.
	ErrKeyMissing = errors.New("the Idempotency-Key header must have 1 to 255 visible ASCII characters")
	// ErrRefused means that the gateway refused the payment for good: the buyer needs a new one.
	ErrRefused = errors.New("the gateway refused the payment")
	// ErrNoEvent means that no event has the id.
	ErrNoEvent = errors.New("no such event")
	// ErrCanceled means that the payment was taken and canceled whole: there is nothing to approve.
	ErrCanceled = errors.New("the payment is canceled")
	// ErrCancelRefused means that the gateway refused the cancel for good; nothing was canceled by it.
	ErrCancelRefused = errors.New("the gateway refused the cancel")
	// ErrBooksBehind means that the gateway's balance was another than ours. Our books have been brought up to date.
	ErrBooksBehind = errors.New("what is left of the payment has changed; look at it and send the cancel again")
	// ErrInFlight means that a request with the same Idempotency-Key is being worked on.
	ErrInFlight = errors.New("a request with this Idempotency-Key is under way")
	// ErrKeyReused means that the Idempotency-Key was used with another request.
	ErrKeyReused = errors.New("the Idempotency-Key was used with another request")
	// ErrMisconfigured means that the gateway refused our key or our set-up. Nothing moved.
	ErrMisconfigured = errors.New("the gateway refused our set-up")
	// ErrUnprocessed means that the gateway turned the call away before it processed it. Nothing moved.
	ErrUnprocessed = errors.New("the gateway did not process the call")
	// ErrBusy means that too many calls are at the gateway. Nothing was sent, the order stays payable.
	ErrBusy = errors.New("too many payments at once")
	// ErrDown means that the gateway does not answer at present. Nothing was sent, the order stays payable.
	ErrDown = errors.New("the gateway does not answer at present")
	// ErrUnderWay means that an earlier press for the same order is waiting for the store. Nothing was sent by this one.
	ErrUnderWay = errors.New("the order is being confirmed by an earlier request")
	// ErrStoreDeclined means that the merchant's store does not take the order on. Nothing was sent, the order stays payable.
	ErrStoreDeclined = errors.New("the store does not take the order on")
	// ErrStoreLate means that the merchant's store had no time for the order. Nothing was sent, the order stays payable.
	ErrStoreLate = errors.New("the store did not answer in time")
	// ErrStoreDown means that the merchant's store cannot be reached. Nothing was sent, the order stays payable.
	ErrStoreDown = errors.New("the store cannot be reached at present")
	// ErrUnavailable means that the database cannot do the work now. Nothing was sent.
	ErrUnavailable = errors.New("the database is not available at present")
)

// refusal is a no that carries more than its sentinel: the gateway's code and words, or how things stand now.
type refusal struct {
	cause   error // the sentinel
	status  int   // 0 = the sentinel's own
	code    string
	message string
	extra   map[string]any
	after   time.Duration
}

func (r *refusal) Error() string {
	text := r.cause.Error()
	if r.code != "" {
		text += " (" + r.code + ")"
	}
	return text
}

func (r *refusal) Unwrap() error                { return r.cause }
func (r *refusal) ProblemStatus() int           { return r.status }
func (r *refusal) ProblemCode() string          { return r.code }
func (r *refusal) ProblemDetail() string        { return r.message }
func (r *refusal) ProblemExtra() map[string]any { return r.extra }
func (r *refusal) RetryAfter() time.Duration    { return r.after }

// retryAfterUnavailable is when a caller may find the database again.
const retryAfterUnavailable = 2 * time.Second

// unavailable marks the errors of a database that cannot answer now.
func unavailable(err error) error {
	if !postgres.IsUnavailable(err) {
		return err
	}
	return web.WithRetryAfter(errors.Join(ErrUnavailable, err), retryAfterUnavailable)
}

// invalid is ErrRequest about one field.
func invalid(detail string) error { return web.WithDetail(ErrRequest, detail) }

// reply is a success, or 202: not known yet.
type reply struct {
	status int
	body   any
	after  time.Duration // Retry-After, when positive
	replay bool          // it is the stored reply of an earlier request
}

// final reports whether the same request will always be answered like this.
func (p reply) final() bool { return p.status == http.StatusOK || p.status == http.StatusCreated }

// conflicts lists what a caller is told about its own request, as opposed to failures of ours.
func conflicts() []error {
	return []error{
		ErrRequest, ErrAmount, ErrRefundAccount, ErrKeyMissing, ErrBooksBehind, ErrInFlight, ErrKeyReused, ErrUnderWay,
		ledger.ErrNotFound, ledger.ErrAmountDiffers, ledger.ErrOrderExpired, ledger.ErrOrderTaken, ledger.ErrOtherOrder,
		ledger.ErrCancelUnderWay, ledger.ErrNotCancelable, ledger.ErrCancelTooMuch, ledger.ErrCancelPart,
		web.ErrBodyMalformed, web.ErrBodyTooLarge, web.ErrUnsupportedMedia, web.ErrBodyTimeout,
		context.Canceled,
	}
}
