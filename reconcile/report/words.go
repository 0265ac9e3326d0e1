package report

// Language is whose words name columns, tables and what is in a closed set.
type Language string

// The languages. English has the words of our fields, the same as in JSON and in the documents.
const (
	English Language = "en"
	Korean  Language = "ko"
)

// name is the name of a report, a fact or a table.
func (l Language) name(field string) string { return l.look(koreanNames, field) }

// column names a column of a table. What is one word in English may be two in another language.
func (l Language) column(table, field string) string {
	if said := l.name(table + "." + field); said != table+"."+field {
		return said
	}
	return l.name(field)
}

// word is one of a closed set in the language.
func (l Language) word(w string) string { return l.look(koreanWords, w) }

// look finds a word in a dictionary. What has no other name stays as it is.
func (l Language) look(dictionary map[string]string, word string) string {
	if l == Korean {
		if said, ok := dictionary[word]; ok {
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

// koreanNames are the names of reports, facts, tables and columns as finance in Korea says them.
//
//nolint:gochecknoglobals,gosec // a dictionary; it has no secret
var koreanNames = map[string]string{
	"report": "보고서", "report.day": "영업일 대사 명세", "report.range": "기간 대사 명세", "report.order": "주문 이력",
	"report.applied":       "취소 반영 명세",
	"report.trial_balance": "시산표",

	// Tables.
	"facts": "개요", "identity": "대사식", "lines": "구분별", "captures": "승인", "orders": "주문별", "rows": "거래", "days": "일별",
	"totals": "합계", "payments": "결제", "timeline": "이력", "accounts": "계정별", "changes": "변경", "signatures": "서명",

	// Facts.
	"day": "영업일", "from": "시작일", "to": "종료일", "verdict": "판정", "reasons": "사유", "as_of": "기준시각", "known_at": "기록기준시각",
	"list_lag": "목록지연", "reads": "목록조회", "failed_reads": "실패한조회", "list_rows": "목록행", "foreign_rows": "타시스템행",
	"book_cancels": "장부취소", "open_work": "미결작업", "run_id": "대사번호", "run_verdict": "대사판정", "run_agrees": "대사와일치",
	"sealed": "봉인", "sealed_by": "봉인한해시", "head": "봉인해시", "head_day": "봉인영업일", "head_sequence": "봉인번호", "head_key": "봉인키",
	"since_run_id": "이전대사번호", "new": "새거래", "gone": "사라진거래", "changed": "바뀐거래",
	"days_total": "일수", "days_reconciled": "일치일수", "days_signed": "서명일수", "balanced": "차대일치", "time_zone": "시간대",
	"text_mark": "글자표시", "digest": "명세해시", "signed_by": "서명자", "signed_at": "서명시각", "signed": "서명",

	// Columns.
	"line": "구분", "currency": "통화", "count": "건수", "amount": "금액", "order_id": "주문번호", "payment_key": "결제키",
	"transaction_key": "거래키", "at": "시각", "movement": "승인·취소", "channel": "인지경로", "kind": "종류", "note": "비고",
	"rows.gateway_amount": "PG금액", "rows.booked_amount": "장부금액", "booked_currency": "장부통화",
	"rows.attempt": "재전송회차", "next_expected": "다음재전송예상", "last_chance": "마지막기회",
	"standing_before": "이전구분", "listed_before": "이전PG금액", "booked_before": "이전장부금액", "standing_after": "이후구분",
	"listed_after": "이후PG금액", "booked_after": "이후장부금액",
	"gateway_count": "PG취소건수", "gateway_amount": "PG취소금액", "canceled_count": "취소주문건수", "canceled_amount": "취소주문금액",
	"pending_count": "대기건수", "pending_amount": "대기금액", "accepted_count": "인정차이건수", "accepted_amount": "인정차이금액",
	"unexplained_count": "미설명건수", "unexplained_amount": "미설명금액", "breaks_count": "불일치건수", "breaks_amount": "불일치금액",
	"listed_count": "PG승인건수", "listed_amount": "PG승인금액", "booked_count": "장부승인건수", "booked_amount": "장부승인금액",
	"captures_pending_count": "승인대기건수", "captures_pending_amount": "승인대기금액",
	"captures_accepted_count": "승인인정차이건수", "captures_accepted_amount": "승인인정차이금액",
	"captures_missing_count": "승인누락건수", "captures_missing_amount": "승인누락금액",
	"accepted_beside_count": "합계밖인정차이건수", "accepted_beside_amount": "합계밖인정차이금액",
	"missing_count": "누락건수", "missing_amount": "누락금액", "taken_back_count": "입금철회건수", "taken_back_amount": "입금철회금액", "orders_gateway": "PG취소주문", "orders_canceled": "취소완료주문",
	"orders_pending": "대기주문", "orders_other": "기타주문", "name": "주문명", "status": "상태", "credits": "적립",
	"created_at": "생성시각", "expires_at": "만료시각", "updated_at": "변경시각", "surplus": "초과결제", "method": "결제수단",
	"captured": "승인금액", "canceled": "취소금액", "balance": "잔액", "attempt": "시도", "reason": "사유코드",
	"credits_granted": "적립부여", "credits_revoked": "적립회수", "undecided_since": "미확정시작", "source": "출처", "what": "내용",
	"result": "결과", "detail": "상세", "account": "계정", "debits": "차변", "accounts.credits": "대변", "totals.credits": "대변",
}

// koreanWords are the words of our closed sets, in the cells.
//
//nolint:gochecknoglobals,gosec // a dictionary; it has no secret
var koreanWords = map[string]string{
	noteMark: "글자 앞이나 글자 안의 쌍반점·줄바꿈 뒤에 있는 작은따옴표는 글자로 남기려고 붙인 것입니다",
	"yes":    "예", "no": "아니오", notAudited: "대사 전", "changed": "서명 후 변경", signedNotSeen: "확인 불가",
	"at_signing": "서명 시 봉인", "since": "서명 후 봉인", "not_yet": "미봉인", "unrecorded": "기록 없음",

	// Verdicts and lines.
	"reconciled": "일치", "reconciled_with_pending": "일치(대기 있음)", "incomplete": "확인불가", "breaks": "불일치", "error": "오류",
	"applied": "반영", "in_flight": "처리 중", "awaiting_redelivery": "재전송 대기", "sweeping": "조회 중", "in_progress": "PG 처리 중",
	"accepted": "인정된 차이", "accepted_beside": "합계 밖 인정된 차이", "unexplained": "미설명", "not_yet_listed": "목록 대기", "unproven": "미확인 통지",
	"captures_booked": "승인 반영", "captures_pending": "승인 대기", "captures_accepted": "승인 인정된 차이", "captures_missing": "승인 누락",

	// Accounts and entries.
	"gateway_receivable": "PG 미수금", "sales": "매출", "refunds": "환불", "suspense": "가수금", "credits_issued": "적립금 발행",
	"customer_credits": "고객 적립금", "credits_used": "적립금 사용", "fees": "수수료", "vat": "부가세", "bank": "은행", "capture": "승인", "cancel": "취소", "deposit_reversal": "입금 취소",
	"credit_grant": "적립 부여", "credit_spend": "적립 사용", "credit_revoke": "적립 회수",

	// Orders, payments and cancels of ours.
	"pending": "대기", "paid": "결제 완료", "partially_canceled": "부분 취소", "canceled": "취소", "expired": "만료", "ready": "결제 준비",
	"confirming": "승인 요청 중", "unknown": "결과 미확정", "failed": "실패", "waiting_for_deposit": "입금 대기", "done": "완료",
	"sending": "전송 중", "refused": "거절",

	// What became of a question to the store.
	"store": "매장", "release_owed": "해제 대기", "merchant_told": "상점에 안내", "kept": "유지", "released": "해제", "declined": "매장 거절",
	"void": "효력 없음",

	// What happens to an order, and where it is known from.
	"order": "주문", "payment": "결제", "cancel_request": "취소 요청", "gateway": "PG", "list": "거래목록", "notice": "웹훅", "books": "장부",
	"journal": "분개", "work": "미결작업", "mismatch": "불일치", "event": "알림", "job": "작업", "created": "생성", "known": "인지",
	"intent": "승인 의도", "sent": "전송", "undecided": "미확정", "state": "상태", "asked": "요청", "listed": "목록 등재",
	"missing": "목록에서 사라짐", "opened": "시작", "notice_failed": "웹훅 실패", "gateway_asked": "PG 조회", "announced": "알림 생성",
	"delivered": "전달", "sent_again": "다시 전송", "given_up": "포기", "settled": "해결", "refuted": "사실 아님", "aborted": "PG 중단",
	"confirm": "승인 응답", "webhook": "웹훅", "sweep": "조회", "recover": "복구 조회", "last_chance": "마지막 조회", "manual": "수동", "import": "이관",
	"confirm_unknown": "승인 결과 확인", "cancel_claimed": "통지된 취소 확인", "cancel_listed": "목록의 취소 확인",
	"cancel_in_progress": "처리 중 취소 확인", "deposit_watch": "입금 감시", "parked": "모르는 결제의 통지",

	"viewer": "조회", "finance": "재무", "approver": "승인자", "operator": "운영",
	"key_made": "API 키 생성", "key_rotated": "API 키 교체", "key_revoked": "API 키 폐기",
	"account_made": "계정 생성", "roles_set": "역할 지정", "password_given": "임시 비밀번호 발급", "password_chosen": "비밀번호 변경", "account_disabled": "계정 중지",
	"account_enabled": "계정 재사용", "signed_in": "로그인", "sign_in_refused": "로그인 거부", "signed_out": "로그아웃", "notice_seen": "웹훅 본문 열람", "delivery_rehearsed": "다시 처리 미리보기", "delivery_replayed": "다시 처리",
	"report_taken": "보고서 내려받기",

	"none": "거래 없음", "unrecognized": "모르는 상태",

	// What the merchant and the customer are told, and the jobs that tell them.
	"order.paid": "주문 결제 완료", "order.partially_canceled": "주문 부분 취소", "order.canceled": "주문 취소", "order.reopened": "주문 입금 취소",
	"payment.failed": "결제 실패", "payment.surplus": "초과 결제", "order.store_check": "매장 확인 요청", "merchant": "상점", "customer": "고객",
	"deliver_event": "알림 전달", "available": "대기", "scheduled": "예약", "running": "실행 중", "retryable": "재시도 대기", "completed": "완료",
	"cancelled": "중단", "discarded": "포기",

	// What happens to a payment, as the gateway shows it.
	"intended": "승인 의도", "unprocessed": "미처리", "lost": "응답 없음", "open": "진행 중", "dead": "만료·중단", "waiting": "입금 대기", "reverted": "입금 취소",
	"captured": "승인", "fully_canceled": "전액 취소", "voided": "결제 전 취소",

	// What became of a notice.
	"applied_full": "전액 반영", "applied_partial": "부분 반영", "duplicate_skipped": "중복 생략", "payment_not_found": "결제 없음",
	"query_failed": "조회 실패", "state_mismatch": "상태 불일치", "apply_failed": "반영 실패", "db_failed": "저장 실패",
	"event_ignored": "무관한 통지", "status_ignored": "취소 아님", "signature_rejected": "서명 거절", "body_unparsable": "해석 불가",

	// What is wrong, and what was done about it.
	"seen_changed": "내용 변경", "acknowledged": "확인", "assigned": "담당 지정", "resolution_proposed": "해결 제안",
	"resolution_withdrawn": "제안 철회", "resolved": "종결", "reopened": "다시 열림", "noted": "메모", "joined_incident": "장애에 포함",
	"auto": "자동 종결", "fixed": "정정",
	"cancel_missing_here": "장부에 없는 취소", "cancel_missing_there": "PG에 없는 취소", "amount_differs": "금액 다름",
	"currency_differs": "통화 다름", "order_differs": "주문 다름", "merchant_differs": "상점 다름", "payment_without_order": "주문 없는 결제",
	"order_without_payment": "결제 없는 주문", "order_paid_twice": "이중 결제", "paid_after_expiry": "만료 후 결제",
	"stale_unknown": "오래된 미확정", "credits_already_spent": "이미 쓴 적립금", "history_changed": "바뀐 과거", "quarantined": "읽을 수 없는 금액",
	"unrecognized_status": "모르는 상태", "signed_day_changed": "서명 후 변경", "journal_differs": "분개와 다름",
}
