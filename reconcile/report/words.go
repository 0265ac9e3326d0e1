package report

// Language is whose words name columns, tables and what is in a closed set.
type Language string

// The languages. English has the words of our fields, the same as in JSON and in the documents.
const (
	English Language = "en"
	Korean  Language = "ko"
)

// column names a column of a table. What is the same word in English may be two in another language.
func (l Language) column(table, name string) string {
	if said := l.say(table + "." + name); said != table+"."+name {
		return said
	}
	return l.say(name)
}

// say is one of our words in the language. A word that has no other name stays as it is.
func (l Language) say(word string) string {
	if l == Korean {
		if said, ok := korean[word]; ok {
			return said
		}
	}
	return word
}

// The notes tell the reader of a file without types what its cells mean.
const (
	noteZone = "KST (UTC+9)"
	noteMark = "an apostrophe at the start of a text, or within one after a semicolon or a line's end, was put there to keep it text"
)

// told are the facts as people read them: the report's name first, and the zone of every time last.
func (r Report) told(language Language) []Fact {
	told := append([]Fact{{"report", Text(language.column("report", r.Name))}}, r.Facts...)
	return append(told, Fact{"time_zone", Text(noteZone)})
}

// korean are our words as finance in Korea says them.
//
//nolint:gochecknoglobals,gosec // a dictionary; it has no secret
var korean = map[string]string{
	// Reports, tables and what they say of themselves.
	"report.day": "영업일 대사 명세", "report.range": "기간 대사 명세", "report.order": "주문 이력", "report.trial_balance": "시산표",
	"report": "보고서", "facts": "개요", "day": "영업일", "order": "주문",
	"identity": "대사식", "lines": "내역", "captures": "승인", "orders": "주문별", "changes": "변경", "rows": "거래",
	"days": "일별", "totals": "합계", "payments": "결제", "timeline": "이력", "accounts": "계정", "reasons": "사유",
	"from": "시작", "to": "끝", "verdict": "판정", "as_of": "기준시각", "known_at": "기록기준시각", "run_id": "대사번호",
	"list_lag": "목록지연", "reads": "목록조회", "failed_reads": "실패한조회", "list_rows": "목록행", "foreign_rows": "타시스템행",
	"book_cancels": "장부취소", "open_work": "미결작업", "head": "봉인해시", "head_sequence": "봉인번호", "head_key": "봉인키",
	"head_day": "봉인영업일", "balanced": "차대일치", "days_total": "일수", "days_reconciled": "일치일수", "days_signed": "서명일수",
	"time_zone": "시간대", "text_mark": "글자표시", noteMark: "글자 앞이나 글자 안의 쌍반점·줄바꿈 뒤에 있는 작은따옴표는 글자로 남기려고 붙인 것입니다",

	// Columns.
	"line": "구분", "currency": "통화", "count": "건수", "rows.gateway_amount": "PG금액", "rows.booked_amount": "장부금액", "amount": "금액", "order_id": "주문번호", "payment_key": "결제키",
	"transaction_key": "거래키", "at": "시각", "source": "출처", "what": "내용", "result": "결과", "detail": "상세", "kind": "종류",
	"note": "비고", "name": "주문명", "status": "상태", "credits": "적립", "created_at": "생성시각", "expires_at": "만료시각",
	"updated_at": "변경시각", "surplus": "초과결제", "method": "결제수단", "captured": "승인금액", "canceled": "취소금액",
	"balance": "잔액", "attempt": "시도", "reason": "사유코드", "credits_granted": "적립부여", "credits_revoked": "적립회수",
	"undecided_since": "미확정시작", "account": "계정", "debits": "차변", "accounts.credits": "대변", "totals.credits": "대변", "movement": "구분(승인·취소)",
	"booked_currency": "장부통화", "channel": "인지경로", "sealed": "봉인", "run_verdict": "대사판정", "run_agrees": "대사와일치", "gateway": "PG", "signed_by": "서명자", "signed_at": "서명시각",
	"gateway_count": "PG취소건수", "gateway_amount": "PG취소금액", "canceled_count": "취소주문건수", "canceled_amount": "취소주문금액",
	"pending_count": "대기건수", "pending_amount": "대기금액", "accepted_count": "인정차이건수", "accepted_amount": "인정차이금액",
	"unexplained_count": "미설명건수", "unexplained_amount": "미설명금액", "breaks_count": "불일치건수", "breaks_amount": "불일치금액",
	"listed_count": "PG승인건수", "listed_amount": "PG승인금액", "booked_count": "장부승인건수", "booked_amount": "장부승인금액",
	"missing_count": "누락건수", "missing_amount": "누락금액", "orders_gateway": "PG취소주문", "orders_canceled": "취소완료주문",
	"orders_pending": "대기주문", "orders_other": "기타주문", "redelivery": "재전송회차", "next_expected": "다음재전송예상",
	"last_chance": "마지막기회",

	// Verdicts and lines.
	"reconciled": "일치", "reconciled_with_pending": "일치(대기 있음)", "incomplete": "확인불가", "breaks": "불일치", "error": "오류",
	"not_audited": "대사 전", "applied": "반영", "in_flight": "처리 중", "awaiting_redelivery": "재전송 대기",
	"sweeping": "조회 중", "in_progress": "PG 처리 중", "accepted": "인정된 차이", "unexplained": "미설명", "not_yet_listed": "목록 대기",
	"unproven": "미확인 통지", "yes": "예", "no": "아니오",

	// Accounts.
	"gateway_receivable": "PG 미수금", "sales": "매출", "refunds": "환불", "suspense": "가수금", "credits_issued": "적립금 발행",
	"customer_credits": "고객 적립금", "credits_used": "적립금 사용",

	// What happens to an order.
	"payment": "결제", "cancel_request": "취소요청", "list": "거래목록", "notice": "웹훅", "books": "장부", "journal": "분개",
	"work": "미결작업", "mismatch": "불일치", "event": "알림", "job": "작업", "created": "생성", "known": "인지", "intent": "승인의도",
	"sent": "전송", "undecided": "미확정", "state": "상태", "asked": "요청", "capture": "승인", "cancel": "취소",
	"deposit_reversal": "입금취소", "listed": "목록등재", "missing": "목록에서 사라짐", "opened": "시작", "notice_failed": "웹훅실패",
	"gateway_asked": "PG조회", "announced": "알림생성", "delivered": "전달", "sent_again": "재전송", "given_up": "포기",
	"credit_grant": "적립부여", "credit_spend": "적립사용", "credit_revoke": "적립회수",
}
