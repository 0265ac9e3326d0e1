package app

import (
	"context"
	"net/http"
	"slices"

	"daesa/checkout"
	"daesa/internal/admission"
	"daesa/internal/people"
	"daesa/internal/postgres"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/reconcile"
	"daesa/reconcile/desk"
	"daesa/reconcile/pages"
	"daesa/webhook"
)

// problems is the index of every error answer: the first row that matches wins, and an error without a row is a
// 500 that says nothing.
func problems() []web.ProblemRow {
	return slices.Concat(dayProblems(), storeProblems(), pageProblems(), []web.ProblemRow{
		// What the caller sent.
		{Err: web.ErrBodyMalformed, Status: http.StatusBadRequest, Code: "body_malformed", Title: "The body is not the JSON object this route reads"},
		{Err: web.ErrBodyTooLarge, Status: http.StatusRequestEntityTooLarge, Code: "body_too_large", Title: "The body is too large"},
		{Err: web.ErrBodyTimeout, Status: http.StatusRequestTimeout, Code: "body_too_slow", Title: "The body did not arrive in time"},
		{Err: web.ErrUnsupportedMedia, Status: http.StatusUnsupportedMediaType, Code: "media_unsupported", Title: "The body's type or encoding is not supported"},
		{Err: checkout.ErrRequest, Status: http.StatusBadRequest, Code: "invalid_request", Title: "A field is not what the route reads"},
		{Err: desk.ErrRequest, Status: http.StatusBadRequest, Code: "invalid_request", Title: "A field is not what the route reads"},
		{Err: checkout.ErrAmount, Status: http.StatusBadRequest, Code: "amount_malformed", Title: "The amount must be an exact decimal number above nothing"},
		{Err: checkout.ErrRefundAccount, Status: http.StatusBadRequest, Code: "refund_account_required", Title: "A paid virtual account needs an account to be refunded to"},
		{Err: checkout.ErrKeyMissing, Status: http.StatusBadRequest, Code: "idempotency_key_missing", Title: "The Idempotency-Key header is missing or malformed"},
		{Err: checkout.ErrKeyReused, Status: http.StatusUnprocessableEntity, Code: "idempotency_key_reused", Title: "The Idempotency-Key was used with another request"},
		{Err: checkout.ErrInFlight, Status: http.StatusConflict, Code: "request_in_flight", Title: "The same request is being worked on"},
		{Err: ledger.ErrAmountDiffers, Status: http.StatusBadRequest, Code: "amount_mismatch", Title: "The amount is not the order's"},

		// What the books say.
		{Err: ledger.ErrNotFound, Status: http.StatusNotFound, Code: "not_found", Title: "Not in the books"},
		{Err: checkout.ErrNoEvent, Status: http.StatusNotFound, Code: "event_not_found", Title: "No such event"},
		{Err: ledger.ErrOrderDiffers, Status: http.StatusConflict, Code: "order_differs", Title: "The order exists with other terms"},
		{Err: ledger.ErrOrderExpired, Status: http.StatusConflict, Code: "order_expired", Title: "The order has expired"},
		{Err: ledger.ErrOrderTaken, Status: http.StatusConflict, Code: "order_taken", Title: "Another payment holds the order"},
		{Err: ledger.ErrOtherOrder, Status: http.StatusConflict, Code: "payment_of_other_order", Title: "The payment belongs to another order"},
		{Err: ledger.ErrLostRace, Status: http.StatusConflict, Code: "confirm_under_way", Title: "Another attempt to confirm is under way"},
		{Err: ledger.ErrCancelUnderWay, Status: http.StatusConflict, Code: "cancel_under_way", Title: "Another cancel of this payment has no answer yet"},
		{Err: ledger.ErrNotCancelable, Status: http.StatusConflict, Code: "not_cancelable", Title: "The payment cannot be canceled"},
		{Err: ledger.ErrCancelTooMuch, Status: http.StatusConflict, Code: "cancel_too_much", Title: "The amount is above what is left"},
		{Err: ledger.ErrCancelPart, Status: http.StatusConflict, Code: "cancel_whole_only", Title: "An unpaid virtual account can only be canceled whole"},
		{Err: ledger.ErrCreditsShort, Status: http.StatusConflict, Code: "credits_short", Title: "The balance does not cover the spend"},
		{Err: ledger.ErrSpendDiffers, Status: http.StatusUnprocessableEntity, Code: "spend_differs", Title: "The spend id was used for something else"},
		{Err: ledger.ErrMoney, Status: http.StatusBadRequest, Code: "amount_malformed", Title: "The amount cannot be held exactly"},
		{Err: ledger.ErrStep, Status: http.StatusConflict, Code: "mismatch_step", Title: "The mismatch does not allow this now"},
		{Err: ledger.ErrSecondPerson, Status: http.StatusForbidden, Code: "second_person", Title: "Who proposed it cannot confirm it"},
		{Err: ledger.ErrMoved, Status: http.StatusConflict, Code: "mismatch_changed", Title: "The mismatch has changed since; look again"},
		{Err: ledger.ErrNote, Status: http.StatusBadRequest, Code: "note", Title: "The note is missing or cannot be kept"},
		{Err: ledger.ErrResolution, Status: http.StatusBadRequest, Code: "resolution", Title: "Resolve as fixed or as accepted"},
		{Err: ledger.ErrUnfixable, Status: http.StatusConflict, Code: "not_fixable", Title: "The gateway's list contradicts itself; it ends by itself, or accept it"},
		{Err: ledger.ErrRequestEnd, Status: http.StatusConflict, Code: "request_end", Title: "The books do not bear this end of the cancel out"},
		{Err: ledger.ErrActor, Status: http.StatusForbidden, Code: "actor_unusable", Title: "The name you are known by cannot stand in a trail"},
		{Err: ledger.ErrNotSealed, Status: http.StatusNotFound, Code: "day_not_sealed", Title: "The day's journal is not sealed"},
		{Err: ledger.ErrDay, Status: http.StatusBadRequest, Code: "day_malformed", Title: "Not a day"},

		// What the gateway said, or could not be asked.
		{Err: checkout.ErrRefused, Status: http.StatusPaymentRequired, Code: "payment_refused", Title: "The gateway refused the payment"},
		{Err: checkout.ErrCanceled, Status: http.StatusConflict, Code: "payment_canceled", Title: "The payment is canceled"},
		{Err: checkout.ErrCancelRefused, Status: http.StatusConflict, Code: "cancel_refused", Title: "The gateway refused the cancel"},
		{Err: checkout.ErrBooksBehind, Status: http.StatusConflict, Code: "refundable_changed", Title: "What is left of the payment has changed; send the cancel again"},
		{Err: checkout.ErrMisconfigured, Status: http.StatusBadGateway, Code: "gateway_setup", Title: "The gateway refused our set-up; nothing moved"},
		{Err: checkout.ErrUnprocessed, Status: http.StatusServiceUnavailable, Code: "gateway_unprocessed", Title: "The gateway did not process the call; nothing moved"},
		{Err: checkout.ErrBusy, Status: http.StatusServiceUnavailable, Code: "gateway_busy", Title: "Too many payments at once; nothing was sent"},
		{Err: checkout.ErrDown, Status: http.StatusServiceUnavailable, Code: "gateway_down", Title: "The gateway does not answer at present; nothing was sent"},

		// What a notice met. The sender reads the status only and comes again for every one of these.
		{Err: webhook.ErrBodyUnparsable, Status: http.StatusBadRequest, Code: "body_unparsable", Title: "The body is not a notice"},
		{Err: webhook.ErrSignatureRejected, Status: http.StatusUnauthorized, Code: "signature_rejected", Title: "The signature or secret is wrong"},
		{Err: webhook.ErrPaymentNotFound, Status: http.StatusNotFound, Code: "payment_not_found", Title: "No such payment yet; deliver again"},
		{Err: webhook.ErrQueryFailed, Status: http.StatusBadGateway, Code: "query_failed", Title: "The gateway could not be asked; deliver again"},
		{Err: webhook.ErrStateMismatch, Status: http.StatusConflict, Code: "state_mismatch", Title: "The gateway does not say so; deliver again"},
		{Err: webhook.ErrApplyFailed, Status: http.StatusInternalServerError, Code: "apply_failed", Title: "The books refused it; deliver again"},
		{Err: webhook.ErrDBFailed, Status: http.StatusServiceUnavailable, Code: "db_failed", Title: "The books could not be written; deliver again"},

		// Who asks, how often, and whether we can.
		{Err: web.ErrNoRoute, Status: http.StatusNotFound, Code: "no_route", Title: "No such path"},
		{Err: web.ErrMethod, Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Title: "The path does not serve this method"},
		{Err: web.ErrUnauthorized, Status: http.StatusUnauthorized, Code: "unauthorized", Title: "An API key is needed"},
		{Err: web.ErrScope, Status: http.StatusForbidden, Code: "scope_missing", Title: "The API key is not for this"},
		{Err: people.ErrKeysUnread, Status: http.StatusServiceUnavailable, Code: "database_unavailable", Title: "The database is not available at present"},
		{Err: web.ErrOrigin, Status: http.StatusForbidden, Code: "origin_forbidden", Title: "This page may not call"},
		{Err: admission.ErrRateLimited, Status: http.StatusTooManyRequests, Code: "rate_limited", Title: "Too many requests from this source"},
		{Err: admission.ErrShed, Status: http.StatusServiceUnavailable, Code: "overloaded", Title: "Too many requests at once"},
		{Err: checkout.ErrUnavailable, Status: http.StatusServiceUnavailable, Code: "database_unavailable", Title: "The database is not available at present"},
		{Err: postgres.ErrCommitUnknown, Status: http.StatusServiceUnavailable, Code: "commit_unknown", Title: "Whether it was written is not known; ask again"},
		{Err: web.ErrRequestTimeout, Status: http.StatusServiceUnavailable, Code: "timeout", Title: "It took too long"},
		{Err: context.DeadlineExceeded, Status: http.StatusServiceUnavailable, Code: "timeout", Title: "It took too long"},
	})
}

// pageProblems answers who works on the pages.
func pageProblems() []web.ProblemRow {
	return []web.ProblemRow{
		{Err: pages.ErrNotAllowed, Status: http.StatusForbidden, Code: "not_allowed", Title: "Your roles do not allow this"},
		{Err: pages.ErrSending, Status: http.StatusServiceUnavailable, Code: "files_under_way", Title: "Other files are being made; try again in a moment"},
		{Err: pages.ErrNoDelivery, Status: http.StatusNotFound, Code: "delivery_not_found", Title: "There is no such delivery"},
		{Err: webhook.ErrNoDelivery, Status: http.StatusNotFound, Code: "delivery_not_found", Title: "There is no such delivery"},
		{Err: webhook.ErrNothingKept, Status: http.StatusConflict, Code: "nothing_kept", Title: "Nothing is kept of what the delivery said"},
		{Err: webhook.ErrUnasked, Status: http.StatusBadGateway, Code: "gateway_unasked", Title: "The gateway gave no answer about the payment"},
		{Err: reconcile.ErrUnasked, Status: http.StatusBadGateway, Code: "gateway_unasked", Title: "The gateway gave no answer about the payment"},
		{Err: people.ErrName, Status: http.StatusBadRequest, Code: "account_malformed", Title: "Not a name or a role that an account can have"},
		{Err: people.ErrRole, Status: http.StatusBadRequest, Code: "account_malformed", Title: "Not a name or a role that an account can have"},
		{Err: people.ErrAccountTaken, Status: http.StatusConflict, Code: "account_taken", Title: "There is an account of this name"},
		{Err: people.ErrNoAccount, Status: http.StatusNotFound, Code: "account_not_found", Title: "There is no such account"},
		{Err: pages.ErrForm, Status: http.StatusBadRequest, Code: "form_malformed", Title: "The form is not the one that the page has"},
	}
}

// storeProblems answers for the merchant's store: what it said, or that it said nothing.
func storeProblems() []web.ProblemRow {
	return []web.ProblemRow{
		{Err: checkout.ErrUnderWay, Status: http.StatusConflict, Code: "confirm_under_way", Title: "The order is being confirmed by an earlier request"},
		{Err: checkout.ErrStoreDeclined, Status: http.StatusConflict, Code: "store_declined", Title: "The store does not take the order on; nothing was sent"},
		{Err: checkout.ErrStoreLate, Status: http.StatusServiceUnavailable, Code: "store_late", Title: "The store did not answer in time; nothing was sent"},
		{Err: checkout.ErrStoreDown, Status: http.StatusServiceUnavailable, Code: "store_down", Title: "The store cannot be reached at present; nothing was sent"},
	}
}

// dayProblems answers who asks about business days, and signs them.
func dayProblems() []web.ProblemRow {
	return []web.ProblemRow{
		{Err: reconcile.ErrNoClosing, Status: http.StatusNotFound, Code: "day_never_closed", Title: "The day was never closed"},
		{Err: reconcile.ErrDays, Status: http.StatusBadRequest, Code: "days_malformed", Title: "A list of days ends on or after the day it begins"},
		{Err: reconcile.ErrCursor, Status: http.StatusBadRequest, Code: "cursor_malformed", Title: "Not where an earlier page ended"},
		{Err: reconcile.ErrSigner, Status: http.StatusForbidden, Code: "signer_no_person", Title: "Only a person can sign a day"},
		{Err: reconcile.ErrSignature, Status: http.StatusBadRequest, Code: "signature_malformed", Title: "The digest or the note is not what it must be"},
		{Err: reconcile.ErrDayNotClosed, Status: http.StatusConflict, Code: "day_not_closed", Title: "No closing run settles the day"},
		{Err: reconcile.ErrNotAcknowledged, Status: http.StatusForbidden, Code: "change_not_acknowledged", Title: "Another person must acknowledge what changed since the signature"},
		{Err: reconcile.ErrDayDiffers, Status: http.StatusConflict, Code: "day_differs", Title: "The day says something else than what was to be signed"},
		{Err: reconcile.ErrClosingBusy, Status: http.StatusConflict, Code: "closing_under_way", Title: "Another audit is under way"},
		{Err: reconcile.ErrUnavailable, Status: http.StatusServiceUnavailable, Code: "database_unavailable", Title: "The database is not available at present"},
	}
}
