package pgclient

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"daesa/internal/guard"
)

// documentedCodes are the codes the gateway documents or has been seen to send, by the group each must fall in.
func documentedCodes() map[Group]string {
	return map[Group]string{
		GroupAlready: `ALREADY_PROCESSED_PAYMENT ALREADY_CANCELED_PAYMENT ALREADY_REFUND_PAYMENT NOT_CANCELABLE_AMOUNT
			DUPLICATED_ORDER_ID`,
		GroupAmbiguous: `PROVIDER_ERROR CARD_PROCESSING_ERROR FAILED_PAYMENT_INTERNAL_SYSTEM_PROCESSING
			FAILED_INTERNAL_SYSTEM_PROCESSING UNKNOWN_PAYMENT_ERROR FAILED_REFUND_PROCESS FAILED_METHOD_HANDLING_CANCEL
			FAILED_PARTIAL_REFUND COMMON_ERROR FAILED_DB_PROCESSING`,
		GroupInFlight:      `IDEMPOTENT_REQUEST_PROCESSING FORBIDDEN_CONSECUTIVE_REQUEST`,
		GroupAmountChanged: `NOT_MATCHES_REFUNDABLE_AMOUNT`,
		GroupSessionGone:   `NOT_FOUND_PAYMENT_SESSION EXPIRED_PAYMENT`,
		GroupKey:           `UNAUTHORIZED_KEY INVALID_API_KEY INCORRECT_BASIC_AUTH_FORMAT`,
		GroupOurs: `INVALID_REQUEST FORBIDDEN_REQUEST INVALID_IDEMPOTENCY_KEY NOT_FOUND_TERMINAL_ID NOT_REGISTERED_BUSINESS
			INVALID_UNREGISTERED_SUBMALL INVALID_DATE`,
		GroupRate:     ``, // a status, never a code
		GroupCursor:   `INVALID_TRANSACTION_KEY`,
		GroupNotFound: `NOT_FOUND_PAYMENT NOT_FOUND`,
		GroupRefused: `EXCEED_MAX_CARD_INSTALLMENT_PLAN NOT_ALLOWED_POINT_USE INVALID_REJECT_CARD BELOW_MINIMUM_AMOUNT
			INVALID_CARD_EXPIRATION INVALID_STOPPED_CARD EXCEED_MAX_DAILY_PAYMENT_COUNT
			NOT_SUPPORTED_INSTALLMENT_PLAN_CARD_OR_MERCHANT INVALID_CARD_INSTALLMENT_PLAN
			NOT_SUPPORTED_MONTHLY_INSTALLMENT_PLAN EXCEED_MAX_PAYMENT_AMOUNT INVALID_AUTHORIZE_AUTH
			INVALID_CARD_LOST_OR_STOLEN RESTRICTED_TRANSFER_ACCOUNT INVALID_CARD_NUMBER EXCEED_MAX_ONE_DAY_WITHDRAW_AMOUNT
			EXCEED_MAX_ONE_TIME_WITHDRAW_AMOUNT EXCEED_MAX_AMOUNT INVALID_ACCOUNT_INFO_RE_REGISTER NOT_AVAILABLE_PAYMENT
			UNAPPROVED_ORDER_ID EXCEED_MAX_MONTHLY_PAYMENT_AMOUNT REJECT_ACCOUNT_PAYMENT REJECT_CARD_PAYMENT
			REJECT_CARD_COMPANY REJECT_TOSSPAY_INVALID_ACCOUNT EXCEED_MAX_AUTH_COUNT EXCEED_MAX_ONE_DAY_AMOUNT
			NOT_AVAILABLE_BANK INVALID_PASSWORD FDS_ERROR
			INVALID_REFUND_ACCOUNT_INFO EXCEED_CANCEL_AMOUNT_DISCOUNT_AMOUNT INVALID_REFUND_ACCOUNT_NUMBER INVALID_BANK
			REFUND_REJECTED FORBIDDEN_BANK_REFUND_REQUEST NOT_CANCELABLE_PAYMENT EXCEED_MAX_REFUND_DUE
			NOT_ALLOWED_PARTIAL_REFUND_WAITING_DEPOSIT NOT_ALLOWED_PARTIAL_REFUND NOT_CANCELABLE_PAYMENT_FOR_DORMANT_USER
			EXCEED_CANCEL_LIMIT NOT_MATCHES_CUSTOMER_KEY ALREADY_REMOVED_BILLING_KEY PAY_PROCESS_CANCELED
			PAY_PROCESS_ABORTED`,
	}
}

func TestGroupOf_EveryDocumentedCodeIsKnown(t *testing.T) {
	t.Parallel()
	for want, codes := range documentedCodes() {
		for code := range strings.FieldsSeq(codes) {
			if got, known := groupOf(code); got != want || !known {
				t.Errorf("%s: got %s known %t, want %s", code, got, known, want)
			}
		}
	}
	if got, known := groupOf("TOMORROWS_CODE"); got != GroupAmbiguous || known {
		t.Errorf("an unknown code is %s, known %t", got, known)
	}
}

// TestClassify_IsTotalAndNeverCallsDoubtARefusal draws any status and code.
func TestClassify_IsTotalAndNeverCallsDoubtARefusal(t *testing.T) {
	t.Parallel()
	var codes []string
	for _, some := range documentedCodes() {
		codes = append(codes, strings.Fields(some)...)
	}
	slices.Sort(codes)
	rapid.Check(t, func(t *rapid.T) {
		status := rapid.IntRange(100, 599).Draw(t, "status")
		code := rapid.OneOf(rapid.SampledFrom(codes), rapid.StringMatching(`[A-Z_]{0,30}`)).Draw(t, "code")
		group, reason := classify(status, code)
		if !slices.Contains(Groups(), group) || !slices.Contains(Reasons(), reason) {
			t.Fatalf("%d %s: group %q reason %q", status, code, group, reason)
		}
		failure := &Error{Status: status, Code: code, Group: group, Reason: reason}
		first, second := verdict(failure, false), verdict(failure, true)
		if !slices.Contains(Verdicts(), first) || first == VerdictDone || second == VerdictDone {
			t.Fatalf("%d %s: %s, %s", status, code, first, second)
		}
		if definite(second) || (definite(first) && (status >= 500 || status < 400 || failure.inDoubt())) {
			t.Fatalf("%d %s in doubt ended definite: %s, %s", status, code, first, second)
		}
	})
}

func definite(v Verdict) bool { return v == VerdictRefused || v == VerdictUnprocessed }

func TestErrorOutcomes_EveryReasonHasOne(t *testing.T) {
	t.Parallel()
	failures := []Reason{ReasonTimeout, ReasonConnection, ReasonServerError, ReasonRateLimited, ReasonUnreadable}
	for _, reason := range Reasons() {
		failure := &Error{Reason: reason}
		if got, want := failure.breakerOutcome() == guard.Failed, slices.Contains(failures, reason); got != want {
			t.Errorf("%s counts against the breaker: %t, want %t", reason, got, want)
		}
		if !strings.Contains(failure.Error(), string(reason)) {
			t.Errorf("%q does not say %s", failure.Error(), reason)
		}
	}
	if verdict(&Error{Reason: ReasonTimeout}, false) != VerdictUnknown {
		t.Error("an error of no group is not unknown")
	}
}
