package pgclient

// Group is how an error code must be handled. The HTTP status does not decide it: the gateway reports "already
// processed" and "temporary error" as 400, and refuses cards with 403.
type Group string

// The groups.
const (
	GroupAlready       Group = "already_done"   // done before, here or by somebody else: ask and compare
	GroupAmbiguous     Group = "ambiguous"      // nobody can tell whether money moved
	GroupInFlight      Group = "in_flight"      // the same request is running: same key, later
	GroupRate          Group = "rate"           // too many requests: same key, later
	GroupAmountChanged Group = "amount_changed" // what can be canceled is not what we believed; nothing was canceled
	GroupSessionGone   Group = "session_gone"   // the ten minutes to approve are over; ask once, then it is final
	GroupRefused       Group = "refused"        // the buyer's or merchant's own refusal, final
	GroupKey           Group = "key"            // our secret key was refused: page
	GroupOurs          Group = "ours"           // our request or set-up is wrong: page
	GroupNotFound      Group = "not_found"
	GroupCursor        Group = "cursor"
)

// Groups lists every group.
func Groups() []Group {
	return []Group{
		GroupAlready, GroupAmbiguous, GroupInFlight, GroupRate, GroupAmountChanged, GroupSessionGone,
		GroupRefused, GroupKey, GroupOurs, GroupNotFound, GroupCursor,
	}
}

// groupOf looks a code up. A code never heard of is ambiguous: new codes ship without notice, and guessing that
// one is a refusal would write off money that moved.
func groupOf(code string) (group Group, known bool) {
	switch code {
	case "ALREADY_PROCESSED_PAYMENT", "ALREADY_CANCELED_PAYMENT", "ALREADY_REFUND_PAYMENT", "DUPLICATED_ORDER_ID",
		"NOT_CANCELABLE_AMOUNT": // the latter is also how canceling an already empty payment is refused
		return GroupAlready, true
	case "PROVIDER_ERROR", "CARD_PROCESSING_ERROR", "UNKNOWN_PAYMENT_ERROR", "FAILED_INTERNAL_SYSTEM_PROCESSING",
		"FAILED_PAYMENT_INTERNAL_SYSTEM_PROCESSING", "FAILED_REFUND_PROCESS", "FAILED_METHOD_HANDLING_CANCEL",
		"FAILED_PARTIAL_REFUND", "COMMON_ERROR", "FAILED_DB_PROCESSING":
		return GroupAmbiguous, true
	case "IDEMPOTENT_REQUEST_PROCESSING", "FORBIDDEN_CONSECUTIVE_REQUEST":
		return GroupInFlight, true
	case "NOT_MATCHES_REFUNDABLE_AMOUNT":
		return GroupAmountChanged, true
	case "NOT_FOUND_PAYMENT_SESSION", "EXPIRED_PAYMENT":
		return GroupSessionGone, true
	case "UNAUTHORIZED_KEY", "INVALID_API_KEY", "INCORRECT_BASIC_AUTH_FORMAT":
		return GroupKey, true
	case "FORBIDDEN_REQUEST", "INVALID_REQUEST", "INVALID_IDEMPOTENCY_KEY", "NOT_FOUND_TERMINAL_ID",
		"NOT_REGISTERED_BUSINESS", "INVALID_UNREGISTERED_SUBMALL", "INVALID_DATE":
		return GroupOurs, true
	case "INVALID_TRANSACTION_KEY":
		return GroupCursor, true
	case "NOT_FOUND_PAYMENT", "NOT_FOUND":
		return GroupNotFound, true
	}
	if refusesForGood(code) {
		return GroupRefused, true
	}
	return GroupAmbiguous, false
}

// refusesForGood lists the codes after which nothing has moved and nothing will: of approvals, then of cancels.
func refusesForGood(code string) bool {
	switch code {
	case "REJECT_ACCOUNT_PAYMENT", "REJECT_CARD_PAYMENT", "REJECT_CARD_COMPANY", "REJECT_TOSSPAY_INVALID_ACCOUNT",
		"INVALID_REJECT_CARD", "INVALID_CARD_EXPIRATION", "INVALID_STOPPED_CARD", "INVALID_CARD_INSTALLMENT_PLAN",
		"INVALID_CARD_LOST_OR_STOLEN", "INVALID_CARD_NUMBER", "INVALID_AUTHORIZE_AUTH", "INVALID_PASSWORD",
		"INVALID_ACCOUNT_INFO_RE_REGISTER", "EXCEED_MAX_CARD_INSTALLMENT_PLAN", "EXCEED_MAX_DAILY_PAYMENT_COUNT",
		"EXCEED_MAX_PAYMENT_AMOUNT", "EXCEED_MAX_ONE_DAY_WITHDRAW_AMOUNT", "EXCEED_MAX_ONE_TIME_WITHDRAW_AMOUNT",
		"EXCEED_MAX_AMOUNT", "EXCEED_MAX_MONTHLY_PAYMENT_AMOUNT", "EXCEED_MAX_AUTH_COUNT", "EXCEED_MAX_ONE_DAY_AMOUNT",
		"BELOW_MINIMUM_AMOUNT", "NOT_ALLOWED_POINT_USE", "NOT_SUPPORTED_INSTALLMENT_PLAN_CARD_OR_MERCHANT",
		"NOT_SUPPORTED_MONTHLY_INSTALLMENT_PLAN", "RESTRICTED_TRANSFER_ACCOUNT", "NOT_AVAILABLE_PAYMENT",
		"NOT_AVAILABLE_BANK", "UNAPPROVED_ORDER_ID", "FDS_ERROR",
		"PAY_PROCESS_CANCELED", "PAY_PROCESS_ABORTED", "NOT_MATCHES_CUSTOMER_KEY", "ALREADY_REMOVED_BILLING_KEY":
		return true
	case "INVALID_REFUND_ACCOUNT_INFO", "INVALID_REFUND_ACCOUNT_NUMBER", "INVALID_BANK", "REFUND_REJECTED",
		"FORBIDDEN_BANK_REFUND_REQUEST", "EXCEED_CANCEL_AMOUNT_DISCOUNT_AMOUNT", "EXCEED_CANCEL_LIMIT",
		"EXCEED_MAX_REFUND_DUE", "NOT_CANCELABLE_PAYMENT", "NOT_CANCELABLE_PAYMENT_FOR_DORMANT_USER",
		"NOT_ALLOWED_PARTIAL_REFUND", "NOT_ALLOWED_PARTIAL_REFUND_WAITING_DEPOSIT":
		return true
	}
	return false
}

// classify is total: every status and code has one group and one reason. A 5xx is ambiguous whatever it says
// (the work may have been done before something on the way failed), a 429 is a rate limit whatever it says.
func classify(status int, code string) (Group, Reason) {
	switch {
	case status == 429:
		return GroupRate, ReasonRateLimited
	case code == "" || status < 400:
		return GroupAmbiguous, ReasonUnreadable
	case status >= 500:
		return GroupAmbiguous, ReasonServerError
	}
	group, _ := groupOf(code)
	return group, group.reason()
}

// reason is the reason a group gives where the status left the decision to the code.
func (g Group) reason() Reason {
	switch g {
	case GroupAmbiguous:
		return ReasonAmbiguous
	case GroupInFlight:
		return ReasonInFlight
	case GroupRate:
		return ReasonRateLimited
	case GroupKey:
		return ReasonKeyRefused
	case GroupNotFound:
		return ReasonNotFound
	case GroupCursor:
		return ReasonCursorRefused
	case GroupAlready, GroupAmountChanged, GroupSessionGone, GroupRefused, GroupOurs:
		return ReasonRefused
	}
	return ReasonAmbiguous
}

// verdict says what an approval or a cancel came to. doubt tells that an earlier attempt of the same call may
// have moved money: then no refusal of a later one is proof.
func verdict(err *Error, doubt bool) Verdict {
	if err == nil {
		return VerdictDone
	}
	switch err.Group {
	case GroupRefused, GroupNotFound, GroupAmountChanged:
		if doubt {
			return VerdictAsk
		}
		return VerdictRefused
	case GroupAlready, GroupSessionGone:
		return VerdictAsk
	case GroupKey, GroupOurs, GroupRate, GroupCursor:
		if doubt {
			return VerdictUnknown
		}
		return VerdictUnprocessed
	case GroupInFlight:
		if err.Status == 409 {
			return VerdictUnknown
		}
		return VerdictAsk
	case GroupAmbiguous:
		if err.Reason == ReasonAmbiguous || err.Reason == ReasonInconsistent {
			return VerdictAsk
		}
	}
	return VerdictUnknown
}
