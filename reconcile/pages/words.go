package pages

// koreanTexts are the texts of the pages as people in Korea say them.
//
//nolint:gochecknoglobals,gosec // a dictionary; it has no secret
var koreanTexts = map[string]string{
	// The frame, and coming in.
	"To the content": "본문으로", "Pages": "메뉴", "Overview": "개요", "Mismatches": "불일치", "Change the password": "비밀번호 변경",
	"Sign out": "로그아웃", "All times are Korean (KST). As of %s.": "모든 시각은 한국 시각(KST)입니다. 조회 시각 %s.",
	"Sign in": "로그인", "Name": "이름", "Password": "비밀번호",
	"There is no account yet. On the machine of the service, make the first one:":                                                                            "아직 계정이 없습니다. 서비스가 실행되는 서버에서 첫 계정을 만드십시오.",
	"The name or the password is wrong, or the account is closed at present. After five wrong passwords an account is closed for a minute, then for longer.": "이름이나 비밀번호가 틀렸거나, 지금은 쓸 수 없는 계정입니다. 비밀번호를 다섯 번 틀리면 계정이 1분 동안, 그다음에는 더 오래 잠깁니다.",
	"You were given this password. Choose your own before you go on.":                                                                                        "발급받은 임시 비밀번호입니다. 먼저 새 비밀번호를 정하십시오.",
	"Old password": "현재 비밀번호", "New password, at least 12 characters": "새 비밀번호 (12자 이상)", "New password again": "새 비밀번호 확인",
	"The new password was typed differently the second time.":                                     "새 비밀번호가 서로 다릅니다.",
	"The new password needs 12 to 200 characters, and must be neither your name nor the old one.": "새 비밀번호는 12자에서 200자 사이여야 하며, 이름이나 현재 비밀번호와 달라야 합니다.",
	"The old password is wrong, or too many were tried.":                                          "현재 비밀번호가 틀렸거나, 너무 여러 번 틀렸습니다.",
	"Nothing was changed.": "아무것도 바뀌지 않았습니다.", "To the overview": "개요로",

	// The overview.
	"The books now": "현재 장부", "as of %s": "%s 기준", "No audit was made yet.": "아직 대사를 하지 않았습니다.", "Money at risk": "위험 금액",
	"%s open mismatches": "미해결 불일치 %s건", "No open mismatches.": "미해결 불일치가 없습니다.", "%s of unknown amount": "금액 미상 %s건",
	"Pending": "대기", "next last chance %s": "가장 이른 마지막 기회 %s", "Nothing is owed an answer.": "답을 기다리는 취소가 없습니다.",
	"Notices": "웹훅", "silent for %s": "%s 동안 수신 없음", "last notice": "마지막 수신", "last success": "마지막 성공", "last failure": "마지막 실패",
	"last hour": "최근 한 시간", "none of the newest %s": "최근 %s건 중 없음", "%s applied, %s failed": "반영 %s건, 실패 %s건",
	"No notice has come yet.": "아직 웹훅이 오지 않았습니다.", "What is at risk": "위험 내역", "oldest": "가장 오래된 것",
	"The last 30 days": "최근 30일", "Day": "영업일", "Verdict": "판정", "PG cancels": "PG 취소", "Signed": "서명", "not closed": "마감 전",
	"No day was closed yet. A day is closed after midnight, Korean time.":  "아직 마감된 영업일이 없습니다. 영업일은 한국 시각 자정 뒤에 마감됩니다.",
	"Cancels of each day: canceled orders, pending, accepted, unexplained": "일별 취소: 취소 주문, 대기, 인정된 차이, 미설명",
	"PG cancels = canceled orders + pending":                               "PG 취소 = 취소 주문 + 대기", "Currency": "통화", "Count": "건수", "Amount": "금액", "gateway": "PG",
	"No cancels.": "취소가 없습니다.", "Kind": "종류",

	"not over yet": "진행 중인 영업일", "The day so far": "오늘 현황",

	// A day.
	"No audit of this day was kept yet. This is what both books say now.": "아직 이 영업일의 대사가 없습니다. 지금 두 장부의 내용입니다.",
	"list lag %s": "목록 지연 %s", "%s reads, %s failed, %s rows of the list": "목록 조회 %s회, 실패 %s회, 목록 %s행", "Statement": "대사 명세",
	"Order": "주문", "Transaction": "거래키", "Since": "시작", "Why": "사유",
	"redelivery %d of 7 expected %s, last chance %s": "재전송 %d/7 예상 %s, 마지막 기회 %s",
	"and %s more, which the day's report lists":      "외 %s건은 영업일 보고서에 있습니다",
	"Signatures": "서명", "The day says something else now than what was signed.": "서명한 뒤 이 영업일의 내용이 바뀌었습니다.",
	"Nobody has signed this day.": "아직 서명이 없습니다.", "Note": "비고", "Sign this statement": "이 명세에 서명", "Signed is what stands above: %s": "위 내용에 서명합니다: %s",
	"Audits of the day": "이 영업일의 대사", "Number": "번호", "Begun": "시작시각", "Digest": "명세해시",

	// Mismatches.
	"Status": "상태", "not resolved": "미해결", "all": "전체", "Assignee": "담당자", "Show": "조회", "At risk": "위험 금액", "What is wrong": "내용",
	"proposed": "해결안 있음", "None.": "없습니다.", "Older": "이전", "Mismatch": "불일치", "of unknown amount": "금액 미상", "Payment": "결제키",
	"Seen last": "마지막 확인", "%s times": "%s회", "Resolved": "해결", "Confirmed": "확인", "%s proposes: %s.": "%s 제안: %s.",
	"So much is at risk that a second person confirms how it is resolved.": "위험 금액이 커서 다른 사람의 확인이 있어야 해결됩니다.",
	"The gateway": "PG", "Our books": "우리 장부", "What to do": "처리", "Acknowledge": "확인 중으로", "Assign": "담당 지정", "Add the note": "비고 추가",
	"Propose how it is resolved": "해결안 제안", "Resolve": "해결", "it was put right": "바로잡았습니다",
	"the difference stays; the note says why":       "차이를 인정합니다. 사유를 비고에 적습니다",
	"The cancel never happened, as the note proves": "취소가 일어나지 않았음을 비고로 증명합니다", "It happened under this transaction key": "이 거래키로 취소되었습니다",
	"Propose": "제안", "Confirm as proposed": "제안대로 확인", "Let the proposal fall": "제안 철회", "Reopen": "다시 열기", "What was done": "처리 이력",
	// Accounts.
	"Accounts": "계정", "The password of %s, to be changed at the first sign-in. It is shown this once:": "%s의 임시 비밀번호입니다. 처음 로그인할 때 바꾸어야 하며, 지금 한 번만 보입니다:",
	"Roles": "역할", "Signed in": "로그인", "State": "상태", "Set the roles": "역할 지정", "disabled": "사용 중지", "password to be changed": "임시 비밀번호",
	"locked until %s": "%s까지 잠김", "New password": "새 임시 비밀번호", "Let in again": "다시 사용", "Let in no more": "사용 중지하기", "A new account": "새 계정",
	"Make the account": "계정 만들기", "What people did": "사람이 한 일", "With": "대상", "Detail": "상세", "From": "접속 주소",

	// Deliveries.
	"Deliveries": "웹훅 수신", "Outcome": "결과", "Received": "수신시각", "Redelivery": "재전송", "Notice": "통지", "Answer": "응답", "after": "소요",
	"closed after a crash": "장애 뒤 정리됨", "The newest were looked through; older ones may have this outcome too.": "최근 것만 찾았습니다. 더 오래된 것에도 있을 수 있습니다.",

	"Delivery": "수신", "Sent": "발신시각", "Body": "본문", "%s bytes, SHA-256": "%s바이트, SHA-256", "Nothing is kept of its body.": "본문은 남아 있지 않습니다.",
	"What is kept of the body, without secrets and personal data": "보관 중인 본문 (비밀값과 개인정보 제외)", "Show what is kept of the body": "보관 중인 본문 보기",
	"That you did stands in the trail.": "본 기록이 이력에 남습니다.", "Take it up again": "다시 처리", "Taken up again": "다시 처리했습니다",
	"What taking it up again would do": "다시 처리하면 이렇게 됩니다", "Reason": "사유", "Rows that were written": "기록한 행",
	"Rows that would be written; nothing was": "기록될 행 (아직 아무것도 기록하지 않았습니다)", "Table": "테이블", "Row": "행", "Column": "열", "Before": "전", "After": "후",
	"No row of the books changes.": "장부에서 바뀌는 행이 없습니다.", "Show what that would change": "무엇이 바뀌는지 보기", "Do it": "실행",
	"The gateway is asked about the payment now. Nothing is believed that the notice says.": "지금 PG에 이 결제를 조회합니다. 웹훅의 내용은 그대로 믿지 않습니다.",

	// Asking the gateway.
	"The gateway was asked": "PG에 조회했습니다", "The gateway says": "PG 응답", "Back to order %s": "주문 %s(으)로", "Ask the gateway now": "지금 PG에 조회",
	saidApplied: "새로운 내용이어서 장부에 반영했습니다", saidUnchanged: "장부와 같습니다", saidPending: "그대로입니다. PG가 아직 처리 중입니다",
	saidConflict: "그대로입니다. PG와 장부가 달라 불일치로 남겼습니다",

	// Reports.
	"What had occurred by": "발생 기준시각", "as it was known at": "기록 기준시각", "As a file:": "파일:", "There is more; the file has all of it.": "더 있습니다. 파일에는 모두 있습니다.",
	"Trial balance": "시산표", "Report of the day": "영업일 보고서",

	"Choose": "선택", "With those that are chosen": "선택한 항목", "Resolve, or propose to": "해결 또는 제안", "%s of %s: done": "%s / %s건 처리", "Not done": "처리하지 못함", "Done": "처리함",
	"At": "시각", "Who": "누가", "What": "무엇을",
}

// InKorean is the title of a problem as people in Korea say it.
func InKorean(title string) (korean string, ok bool) {
	korean, ok = koreanProblems[title]
	return korean, ok
}

// koreanProblems are the titles of what can go wrong on a page.
//
//nolint:gochecknoglobals // a dictionary
var koreanProblems = map[string]string{
	"The gateway gave no answer about the payment": "PG가 이 결제에 답하지 않았습니다",
	"Internal error": "내부 오류", "There is no such delivery": "없는 수신입니다",
	"Nothing is kept of what the delivery said":         "이 수신의 내용은 남아 있지 않습니다",
	"Other files are being made; try again in a moment": "다른 파일을 만드는 중입니다. 잠시 뒤에 다시 하십시오",
	"Not a name or a role that an account can have":     "계정의 이름이나 역할로 쓸 수 없습니다", "There is an account of this name": "이미 있는 이름입니다", "There is no such account": "없는 계정입니다",
	"Your roles do not allow this": "권한이 없습니다", "The form is not the one that the page has": "화면의 양식과 다릅니다",
	"A field is not what the route reads": "읽을 수 없는 값이 있습니다", "Not in the books": "장부에 없습니다", "Not a day": "날짜가 아닙니다",
	"The mismatch does not allow this now": "지금은 할 수 없는 처리입니다", "Who proposed it cannot confirm it": "제안한 사람은 확인할 수 없습니다",
	"The mismatch has changed since; look again": "그사이 불일치가 바뀌었습니다. 다시 확인하십시오", "The note is missing or cannot be kept": "비고가 없거나 저장할 수 없습니다",
	"Resolve as fixed or as accepted":                                        "바로잡음 또는 인정으로 해결하십시오",
	"The gateway's list contradicts itself; it ends by itself, or accept it": "PG 목록이 스스로 모순됩니다. 목록이 바로잡히면 저절로 끝나며, 아니면 인정하십시오",
	"The books do not bear this end of the cancel out":                       "장부가 그 취소 결과를 뒷받침하지 않습니다", "The name you are known by cannot stand in a trail": "이력에 남길 수 없는 이름입니다",
	"The day was never closed": "마감된 적이 없는 영업일입니다", "A list of days ends on or after the day it begins": "종료일은 시작일과 같거나 그 뒤여야 합니다", "Only a person can sign a day": "사람만 서명할 수 있습니다",
	"The digest or the note is not what it must be": "명세해시나 비고가 올바르지 않습니다", "No closing run settles the day": "이 영업일을 확정한 마감이 없습니다",
	"Another person must acknowledge what changed since the signature": "서명 뒤의 변경을 다른 사람이 먼저 확인해야 합니다",
	"The day says something else than what was to be signed":           "영업일의 내용이 서명하려던 것과 다릅니다", "Another audit is under way": "다른 대사가 진행 중입니다",
	"The database is not available at present": "지금은 데이터베이스를 쓸 수 없습니다", "No such path": "없는 주소입니다", "The path does not serve this method": "이 주소에서 쓸 수 없는 방식입니다",
	"This page may not call": "다른 사이트에서 보낸 요청입니다", "Too many requests from this source": "요청이 너무 많습니다", "Too many requests at once": "동시 요청이 너무 많습니다",
	"Whether it was written is not known; ask again": "기록되었는지 알 수 없습니다. 다시 확인하십시오", "It took too long": "시간이 너무 오래 걸렸습니다",
}
