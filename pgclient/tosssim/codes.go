package tosssim

import (
	"net/http"
	"strings"
)

// statusOf is the HTTP status that goes with an error code. The gateway answers most refusals with 400; the rest are
// listed. A code nobody has documented counts as 400.
func statusOf(code string) int {
	switch code {
	case "UNAUTHORIZED_KEY":
		return http.StatusUnauthorized
	case "REJECT_ACCOUNT_PAYMENT", "REJECT_CARD_PAYMENT", "REJECT_CARD_COMPANY", "FORBIDDEN_REQUEST",
		"REJECT_TOSSPAY_INVALID_ACCOUNT", "EXCEED_MAX_AUTH_COUNT", "EXCEED_MAX_ONE_DAY_AMOUNT", "NOT_AVAILABLE_BANK",
		"INVALID_PASSWORD", "INCORRECT_BASIC_AUTH_FORMAT", "FDS_ERROR", "NOT_CANCELABLE_AMOUNT",
		"FORBIDDEN_CONSECUTIVE_REQUEST", "NOT_CANCELABLE_PAYMENT", "EXCEED_MAX_REFUND_DUE",
		"NOT_ALLOWED_PARTIAL_REFUND_WAITING_DEPOSIT", "NOT_ALLOWED_PARTIAL_REFUND",
		"NOT_CANCELABLE_PAYMENT_FOR_DORMANT_USER", "EXCEED_CANCEL_LIMIT":
		return http.StatusForbidden
	case "NOT_FOUND", "NOT_FOUND_PAYMENT", "NOT_FOUND_PAYMENT_SESSION":
		return http.StatusNotFound
	case "METHOD_NOT_ALLOWED":
		return http.StatusMethodNotAllowed
	case "IDEMPOTENT_REQUEST_PROCESSING":
		return http.StatusConflict
	case "TOO_MANY_REQUESTS":
		return http.StatusTooManyRequests
	case "FAILED_PAYMENT_INTERNAL_SYSTEM_PROCESSING", "FAILED_INTERNAL_SYSTEM_PROCESSING", "UNKNOWN_PAYMENT_ERROR",
		"FAILED_REFUND_PROCESS", "FAILED_METHOD_HANDLING_CANCEL", "FAILED_PARTIAL_REFUND", "COMMON_ERROR",
		"FAILED_DB_PROCESSING":
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// messageOf is the text a buyer would see. Only codes the simulator itself decides on have their own.
func messageOf(code string, english bool) string {
	if english {
		return strings.ToLower(strings.ReplaceAll(code, "_", " "))
	}
	switch code {
	case "UNAUTHORIZED_KEY":
		return "인증되지 않은 시크릿 키 혹은 클라이언트 키 입니다."
	case "INCORRECT_BASIC_AUTH_FORMAT":
		return "잘못된 요청입니다. ':' 를 포함해 인코딩해주세요."
	case "ALREADY_PROCESSED_PAYMENT":
		return "이미 처리된 결제 입니다."
	case "ALREADY_CANCELED_PAYMENT":
		return "이미 취소된 결제 입니다."
	case "NOT_CANCELABLE_AMOUNT":
		return "취소 할 수 없는 금액 입니다."
	case "NOT_CANCELABLE_PAYMENT":
		return "취소 할 수 없는 결제 입니다."
	case "NOT_MATCHES_REFUNDABLE_AMOUNT":
		return "잔액 결과가 일치하지 않습니다."
	case "NOT_FOUND_PAYMENT":
		return "존재하지 않는 결제 정보 입니다."
	case "NOT_FOUND_PAYMENT_SESSION":
		return "결제 시간이 만료되어 결제 진행 데이터가 존재하지 않습니다."
	case "EXPIRED_PAYMENT":
		return "결제가 만료되었습니다. 다시 시도해주세요."
	case "INVALID_TRANSACTION_KEY":
		return "잘못된 페이징 키 입니다."
	case "INVALID_DATE":
		return "날짜 데이터가 잘못 되었습니다."
	case "IDEMPOTENT_REQUEST_PROCESSING":
		return "이전 멱등 요청이 처리중입니다."
	}
	return "요청을 처리할 수 없습니다. (" + code + ")"
}

// english reports whether the caller asked for translated words; Korean is what the gateway speaks by default.
func english(acceptLanguage string) bool {
	return strings.HasPrefix(strings.ToLower(acceptLanguage), "en")
}

// translated gives the English form of the enum-like words in a payment or a row of the list.
func translated(doc document) document {
	doc = translateMember(doc, "method")
	for parent, names := range map[string][]string{
		"card": {"cardType", "ownerType"}, "virtualAccount": {"accountType"}, "easyPay": {"provider"},
	} {
		child := doc.child(parent)
		if child == nil {
			continue
		}
		for _, name := range names {
			child = translateMember(child, name)
		}
		doc = doc.with(parent, child)
	}
	return doc
}

func translateMember(doc document, name string) document {
	words := map[string]string{
		"카드": "CARD", "가상계좌": "VIRTUAL_ACCOUNT", "간편결제": "EASY_PAY", "계좌이체": "TRANSFER", "휴대폰": "MOBILE_PHONE",
		"신용": "CREDIT", "체크": "CHECK", "기프트": "GIFT", "미확인": "UNKNOWN", "개인": "PERSONAL", "법인": "CORPORATE",
		"일반": "NORMAL", "고정": "FIXED", "토스페이": "TOSSPAY",
	}
	if word, ok := words[doc.text(name)]; ok {
		return doc.with(name, word)
	}
	return doc
}
