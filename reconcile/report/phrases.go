package report

// sourceNotice is the source of a timeline whose rows give a reason in one word.
const sourceNotice = "notice"

// koreanPhrases are the sentences of our own that reports hold, as finance in Korea says them, with the terms of
// [koreanNames] and [koreanWords]. A sentence that another begins with has its own phrase.
//
//nolint:gochecknoglobals // a dictionary; it has no secret
var koreanPhrases = []phrase{
	// What is wrong with a transaction, by both books.
	{"the cancel is {money1} at the gateway and {money2} here", "취소 금액이 다름: PG {money1}, 장부 {money2}"},
	{"the capture is {money1} at the gateway and {money2} here", "승인 금액이 다름: PG {money1}, 장부 {money2}"},
	{"the {word} is of {sentence1} at the gateway and of {sentence2} here", "{word}의 결제·주문이 다름: PG {sentence1}, 장부 {sentence2}"},
	{"payment {key}, order {quoted},", "결제 {key} 주문 {quoted}"},
	{"the gateway lists a cancel that is not in our books, and nobody is asking about it", "PG 거래목록의 취소가 장부에 없고, 확인 중인 작업도 없음"},
	{"the cancel is still owed after its last chance", "마지막 기회가 지났으나 취소가 아직 장부에 반영되지 않음"},
	{"the cancel is in our books and not in the gateway's list", "장부의 취소가 PG 거래목록에 없음"},
	{"the list had this row and no longer has it", "거래목록에 있던 행이 목록에서 사라짐"},
	{"the order is paid in our books and the gateway's list has no such money", "장부에는 결제된 주문이나 PG 거래목록에 해당 승인이 없음"},
	{"the gateway lists money for an order of ours that our books do not have as taken", "PG 거래목록에 있는 당사 주문의 승인이 장부에 반영되지 않음"},
	{"the gateway lists money for an order that is not in our books", "PG 거래목록에 장부에 없는 주문의 승인이 있음"},
	{
		"the gateway lists money for an order that is not in our books; if it was taken before the books were opened, daesa import takes it over",
		"PG 거래목록에 장부에 없는 주문의 승인이 있음; 장부 개시 전의 승인이면 daesa import로 이관 가능",
	},
	{
		"the gateway holds money for an order that is not in our books; if it was taken before the books were opened, daesa import takes it over",
		"PG에 장부에 없는 주문의 승인이 있음; 장부 개시 전의 승인이면 daesa import로 이관 가능",
	},
	{"the gateway lists a cancel that its own payment object does not show", "PG 거래목록에 있는 취소가 PG 결제 조회에는 없음"},
	{"the gateway does not say what came of our cancel {key}; compare by hand", "취소 요청 {key}의 결과를 PG에서 알 수 없음; 직접 대조 필요"},
	{"the list shows the row of the deposit without money, and the payment object does not", "입금 행의 금액이 거래목록에는 없고 PG 결제 조회에는 있음"},
	{"one page has the row as {word1} of {money1} and as {word2} of {money2}", "거래목록의 한 페이지에 같은 행이 다르게 있음: {word1} {money1}, {word2} {money2}"},
	{
		"first read as {word1} of {money1} for payment {key1}, now {word2} of {money2} for payment {key2}",
		"거래목록의 행이 바뀜: 최초 {word1} {money1}(결제 {key1}), 현재 {word2} {money2}(결제 {key2})",
	},
	{"the gateway's list has a status that is not known: {text}", "PG 거래목록에 모르는 상태가 있음: {text}"},
	{"a row of the gateway's list cannot be held exactly: {sentence}", "PG 거래목록의 행을 정확히 기록할 수 없음: {sentence}"},
	{
		"{day} was signed as {hash1} and says {hash2} now: {n} transactions differ from what was signed",
		"{day} 영업일이 서명 후 변경됨: 서명 당시 명세해시 {hash1}, 현재 {hash2}, 서명 내용과 다른 거래 {n}건",
	},
	{
		"{day} was signed as {hash1} and says {hash2} now: {n} transactions differ from what was signed, of {moneys}",
		"{day} 영업일이 서명 후 변경됨: 서명 당시 명세해시 {hash1}, 현재 {hash2}, 서명 내용과 다른 거래 {n}건({moneys})",
	},
	{"the gateway has not said what became of the confirm", "PG에서 승인 결과가 아직 확인되지 않음"},
	{"the account waits for its deposit past its time and holds the order", "입금 기한이 지난 가상계좌가 입금 대기 상태로 주문을 점유함"},

	// Our books and the journal.
	{
		"this {word} and its transaction in the journal differ: our books have {sentence1}, the journal has {sentence2}",
		"{word}의 장부와 분개가 다름: 장부 {sentence1}, 분개 {sentence2}",
	},
	{
		"this {word1} and its transaction in the journal differ: our books have {sentence1}, the journal has {sentence2}, in entries that no {word2} has",
		"{word1}의 장부와 분개가 다름: 장부 {sentence1}, 분개 {sentence2}, {word2}에 맞지 않는 분개 구성",
	},
	{"nothing", "없음"},
	{"{sum} at {at} of payment {key}", "{sum} 시각 {at} 결제 {key}"},
	{"{sum} at {at} of payment {key1} of order {key2}", "{sum} 시각 {at} 결제 {key1} 주문 {key2}"},
	{"{sum} at {at1} recorded {at2} of payment {key}", "{sum} 시각 {at1} 기록시각 {at2} 결제 {key}"},
	{"{sum} at {at1} recorded {at2} of payment {key1} of order {key2}", "{sum} 시각 {at1} 기록시각 {at2} 결제 {key1} 주문 {key2}"},

	// What an answer of the gateway contradicts.
	{"credits that a cancel revokes were already spent", "취소로 회수할 적립금이 이미 사용됨"},
	{"{word1} while our books say {word2}", "PG 상태({word1})가 장부 상태({word2})와 맞지 않음"},
	{"the answer is about payment {key}", "PG 응답이 다른 결제에 관한 것임: {key}"},
	{"the gateway names order {key}", "PG의 주문번호가 다름: {key}"},
	{"the gateway names merchant {quoted}", "PG의 상점이 다름: {quoted}"},
	{"the gateway's amount is {money}", "PG 금액이 다름: {money}"},
	{"cancels of {money1} would exceed the capture of {money2}", "취소금액이 승인금액을 초과함: 취소 {money1}, 승인 {money2}"},
	{"cancels overflow", "취소 합계가 기록할 수 있는 범위를 넘음"},
	{"cancel {key} is booked here and aborted at the gateway", "취소 {key}: 장부에는 반영, PG에서는 중단됨"},
	{"cancel {quoted} of {money} cannot be booked", "취소 {quoted}({money})를 장부에 반영할 수 없음"},
	{"transaction {key1} is booked for payment {key2} and shown for this one too", "거래 {key1}: 장부에는 결제 {key2}의 거래이나 PG에서 이 결제에도 나타남"},
	{"the gateway shows a status that is not known: {text}", "PG에 모르는 상태가 있음: {text}"},
	{"a payment without virtual account is shown waiting for a deposit", "가상계좌가 아닌 결제가 PG에 입금 대기로 나타남"},
	{"a captured payment is shown as canceled before any money moved", "승인된 결제가 PG에 결제 전 취소로 나타남"},
	{"money was taken for a payment that was void", "취소되어 효력 없는 결제에 승인이 있음"},
	{"another payment already holds the order; this money waits in suspense", "다른 결제가 이미 주문을 점유함; 이 금액은 가수금으로 보류됨"},
	{"the money arrived after the order had expired; the order is paid", "주문 만료 후 결제됨; 주문은 결제 완료로 처리됨"},

	// Money that cannot be read exactly.
	{"not an object", "객체 형식이 아님"},
	{"no transaction key", "거래키 없음"},
	{"the payment key has no valid form", "결제키 형식이 올바르지 않음"},
	{"no time", "시각 없음"},
	{"amount too large", "금액이 너무 큼"},
	{"{field}: {sentence}", "{field}: {sentence}"},
	{"currency {quoted}: amount cannot be held exactly", "통화 {quoted}: 금액을 정확히 기록할 수 없음"},
	{"{quoted} {key}: amount cannot be held exactly", "{quoted} {key}: 금액을 정확히 기록할 수 없음"},
	{"add {money1} to {money2}: amount cannot be held exactly", "{money2} + {money1}: 금액을 정확히 기록할 수 없음"},
	{"cancels is not a list of objects", "취소가 객체 목록이 아님"},
	{"cancel {n} is null", "{n}번째 취소가 비어 있음"},
	{"cancel {n}: {sentence}", "{n}번째 취소: {sentence}"},
	{"the order id is missing", "주문번호 없음"},
	{"balance {money1} of total {money2}", "잔액 {money1}, 총액 {money2}"},
	{"cancel {n} has no transaction key", "{n}번째 취소에 거래키 없음"},
	{"cancel {n} repeats a transaction key", "{n}번째 취소의 거래키가 중복됨"},
	{"cancel {n} is of {money}", "{n}번째 취소의 금액이 {money}임"},
	{"cancels of {money1} do not explain a balance of {money2} of {money3}", "취소 {money1}로 잔액 {money2}(총액 {money3})이 설명되지 않음"},
	{"the answer is about another payment", "응답이 다른 결제에 관한 것임"},
	{"the answer is about another order", "응답이 다른 주문에 관한 것임"},
	{"more rows than asked for", "요청한 것보다 많은 행"},
	{"a full page without a row to continue after", "이어서 조회할 행이 없는 페이지"},

	// Why a day could not be seen whole, and where a pending cancel stands.
	{"the books were opened at {at}, after the day", "장부 개시({at})가 영업일보다 늦음"},
	{"the gateway's list was never read completely from the window's start", "PG 거래목록을 기간 시작부터 완전히 조회한 적이 없음"},
	{
		"the gateway's list was read up to {at} only; the day needs it up to its end and the list's lag",
		"PG 거래목록을 {at}까지만 조회함; 영업일 종료 후 목록지연까지 조회해야 함",
	},
	{"the gateway's list was read up to {at} only", "PG 거래목록을 {at}까지만 조회함"},
	{"the gateway's list was read from {at} on only; the day begins earlier", "PG 거래목록을 {at}부터만 조회함; 영업일은 그 전에 시작함"},
	{"the last read of the gateway's list failed: {text}", "PG 거래목록의 마지막 조회가 실패함: {text}"},
	{"{n} of 7, next {at}", "7회 중 {n}회차, 다음 예상 {at}"},

	// What came of a question to the gateway.
	{"the gateway says {text}", "PG 상태: {text}"},
	{"contradicts the books: {sentence}", "장부와 모순됨: {sentence}"},
	{"the cancel is booked for another payment", "취소가 다른 결제의 장부에 반영되어 있음"},
	{"the gateway has not finished the cancel", "PG가 취소를 처리 중임"},
	{"the listed row is the capture", "거래목록의 행은 승인임"},
	{"the payment does not show the listed cancel", "거래목록의 취소가 결제 조회에 없음"},
	{"the gateway shows no such cancel", "PG에 해당 취소가 없음"},
	{"the books did not take what the gateway says", "PG의 내용을 장부에 반영하지 못함"},
	{"the gateway knows the order under payment {key}", "PG에서 이 주문의 결제는 {key}임"},
	{"the gateway knows no such payment", "PG에 해당 결제가 없음"},
	{"the gateway knows neither the payment nor the order", "PG에 결제도 주문도 없음"},
	{"the order is not in our books", "장부에 없는 주문임"},
	{"no payment with this key appeared", "이 결제키의 결제가 나타나지 않음"},
	{"the payment moved on before it was sent again", "다시 전송하기 전에 결제 상태가 바뀜"},
	{"the call may still be under way", "요청이 아직 전송 중일 수 있음"},
	{"the request is too old to be sent again", "요청이 오래되어 다시 전송할 수 없음"},
	{"never processed", "처리된 적 없음"},
	{"absent: {answer}", "PG에 없음: {answer}"},
	{"unanswered: {text}", "응답 없음: {text}"},
	{"not readable: {text}", "응답을 읽을 수 없음: {text}"},
	{"no answer: {text}", "응답 없음: {text}"},
	{"status {n}", "HTTP 상태 {n}"},
	{"no address configured", "수신 주소 미설정"},

	// The timeline of an order.
	{"expires {at}", "만료 {at}"},
	{"attempt {n}", "{n}회차 시도"},
	{"attempt {n1} of {n2}", "{n2}회 중 {n1}회차 시도"},
	{"{n} attempts", "시도 {n}회"},
	{"{n} times", "{n}회"},
	{"told {n} times", "통보 {n}회"},
	{"key of generation {n}", "{n}세대 멱등키"},
	{"asked by {who}", "요청자 {who}"},
	{"by {who}", "처리자 {who}"},
	{"assigned to {who}", "담당자 {who}"},
	{"to be {word}", "해결 제안: {word}"},
	{"for the {word}", "수신: {word}"},
	{"the store: {store}", "매장 응답: {store}"},
	{"dated {at}", "거래시각 {at}"},
	{"names order {text}", "목록의 주문번호 {text}"},
	{"redelivery {n} of 7", "7회 중 {n}회차 재전송"},
	{"redelivery {n} of 7 failed", "7회 중 {n}회차 재전송 실패"},
	{"first delivery", "최초 전송"},
	{"first delivery failed", "최초 전송 실패"},
	{"sent {at}", "전송 {at}"},
	{"answered {n}", "응답 상태 {n}"},
	{"after {n} ms", "응답까지 {n}ms"},
	{"gateway asked for {n} ms", "PG 조회 {n}ms"},
	{"closed after a crash", "서비스 중단 후 정리됨"},
	{"credits revoked: {n}", "적립회수 {n}"},
	{"transaction {n1} line {n2}", "분개 {n1}번 {n2}행"},
	{"transaction {n}", "분개 {n}번"},
	{"mismatch {n}", "불일치 {n}번"},
	{"work {n}", "미결작업 {n}번"},
	{"job {n}", "작업 {n}번"},
	{"last chance {at}", "마지막 기회 {at}"},
	{"next expected {at}", "다음 재전송 예상 {at}"},
	{"last tried {at}", "마지막 시도 {at}"},
	{"put in the books", "장부에 등록"},
	{"turned away; work {n}", "처리 없이 반려됨; 미결작업 {n}번"},
	{"cancel {key}", "취소 {key}"},
	{"does not hold the order", "주문을 점유하지 않음"},
	{"not before this", "이 시각 이후"},
}

// koreanReasons are the words that say why a notice ended as it did.
//
//nolint:gochecknoglobals // a dictionary
var koreanReasons = map[string]string{
	"timeout": "시간 초과", "connection": "연결 실패", "server_error": "PG 오류", "rate_limited": "호출 한도 초과", "key_refused": "API 키 거절",
	"not_found": "PG에 없음", "breaker_open": "호출 차단 중", "cap": "동시 호출 한도", "canceled": "호출 중단", "unreadable": "읽을 수 없는 응답",
	"inconsistent": "모순된 응답", "cursor_refused": "조회 위치 거절", "in_flight": "PG 처리 중", "ambiguous": "불명확한 응답", "refused": "거절",
	"conflict": "장부와 모순", "given_up": "PG가 포기한 취소", "in_progress": "PG 처리 중", "not_canceled": "취소되지 않음", "other_cancel": "다른 취소",
	"balance": "잔액 다름", "no_such_cancel": "해당 취소 없음", "payment_key": "결제키 오류", "not_an_object": "객체 형식 아님", "store": "저장 실패",
	"commit_unknown": "저장 결과 미확정", "unavailable": "데이터베이스 사용 불가", "contention": "데이터베이스 경합", "crashed": "서비스 중단",
	"too_large": "본문 크기 초과", "too_slow": "수신 시간 초과", "encoded": "지원하지 않는 인코딩", "broken_off": "수신 중단",
	"fruitless": "조회 생략(근거 없는 통지 반복)",
}

// koreanStore are the words of the merchant's store.
//
//nolint:gochecknoglobals // a dictionary
var koreanStore = map[string]string{"accepted": "수락", "declined": "거절", "late": "시간 초과", "unreachable": "연결 불가"}
