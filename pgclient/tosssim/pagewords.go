package tosssim

import (
	"errors"
	"net/http"
	"strings"

	"golang.org/x/text/language"
)

func pageLanguages() []language.Tag { return []language.Tag{language.English, language.Korean} }

// pageLanguage is the language that the browser asks for; English for any other than Korean.
func pageLanguage(r *http.Request) language.Tag {
	wanted, _, err := language.ParseAcceptLanguage(r.Header.Get("Accept-Language"))
	if err != nil {
		return language.English
	}
	_, at, _ := language.NewMatcher(pageLanguages()).Match(wanted...)
	return pageLanguages()[at]
}

// pageText is a text of the page in a language. The English of a plain text is that text; words that are no texts have a
// line in both.
func pageText(tag language.Tag, text string) string {
	words := pageWords()[text]
	if tag == language.Korean && words.korean != "" {
		return words.korean
	}
	if words.english != "" {
		return words.english
	}
	return text
}

// pageProblem says why something was not done.
func pageProblem(tag language.Tag, err error) string {
	for _, known := range []error{ErrNotFound, ErrState, errNoURL, errPageMode, errPageAmount, errPageReason} {
		if !errors.Is(err, known) {
			continue
		}
		text := pageText(tag, known.Error())
		if _, why, told := strings.Cut(err.Error(), known.Error()+": "); told {
			text += ": " + why
		}
		return text
	}
	return err.Error()
}

type pageWord struct{ english, korean string }

func pageWords() map[string]pageWord {
	return map[string]pageWord{
		"Simulated gateway": {"", "모의 결제대행사(PG)"},
		"Play the gateway here, and watch in the pages of daesa how the books follow. No real money moves.": {
			"", "여기에서 결제대행사가 되어 보고, 장부가 어떻게 따라오는지 daesa 화면에서 확인하십시오. 실제 돈은 움직이지 않습니다.",
		},
		"How the gateway answers": {"", "PG 응답 방식"}, "How it sends notices": {"", "웹훅 전송 방식"},
		"Back to normal": {"", "모두 정상으로"}, "Refresh": {"", "새로 고침"}, "as of": {"", "조회 시각"},
		"gateway.normal": {"in time", "정상"}, "gateway.silent": {"not at all", "무응답"}, "gateway.slow": {"late, by 1.5 s", "1.5초 지연"},
		"gateway.lost_reply": {"does it, and the reply is lost", "처리 후 응답 유실"}, "gateway.scripted": {"as a script says", "스크립트대로"},
		"notices.normal": {"once", "한 번"}, "notices.twice": {"twice each", "두 번씩"}, "notices.held": {"only when told", "지시할 때만"},
		"notices.lost": {"never", "보내지 않음"}, "notices.scripted": {"as a script says", "스크립트대로"},
		"What the gateway did": {"", "PG 합계"}, "Currency": {"", "통화"}, "captured": {"", "승인"}, "canceled": {"", "취소"},
		"Payments": {"", "결제"}, "Order": {"", "주문"}, "Status": {"", "상태"}, "Amount": {"", "결제 금액"}, "Canceled": {"", "취소 금액"},
		"Left": {"", "남은 금액"}, "Notices": {"", "웹훅"}, "Cancel": {"", "취소"},
		"To cancel": {"", "취소 금액"}, "all that is left": {"", "남은 금액 전부"}, "Reason": {"", "취소 사유"}, "changed their mind": {"", "고객 변심"},
		"Deliver the newest notice again": {"", "마지막 웹훅 다시 보내기"}, "No payments yet.": {"", "아직 결제가 없습니다."},
		"older payments are not shown": {"", "건의 이전 결제는 표시하지 않습니다"},
		"READY":                        {"window open", "결제창 열림"}, "IN_PROGRESS": {"to be confirmed", "승인 대기"},
		"WAITING_FOR_DEPOSIT": {"waits for the deposit", "입금 대기"}, "DONE": {"paid", "결제 완료"}, "CANCELED": {"canceled", "취소"},
		"PARTIAL_CANCELED": {"partly canceled", "부분 취소"}, "ABORTED": {"failed", "승인 실패"}, "EXPIRED": {"expired", "기한 만료"},
		"notice.done": {"delivered", "전송 완료"}, "notice.held": {"held back", "보류 중"}, "notice.waiting": {"on its way", "전송 대기"},
		"notice.lost": {"never sent, or given up", "전송되지 않음"}, "next": {"", "다음 전송"},
		ErrNotFound.Error():   {"There is no such payment", "없는 결제입니다"},
		ErrState.Error():      {"The payment cannot be canceled like that", "그렇게 취소할 수 없는 결제입니다"},
		errNoURL.Error():      {"There is nowhere to send notices to", "웹훅을 받을 주소가 없습니다"},
		errPageMode.Error():   {"There is no such way to behave", "없는 동작 방식입니다"},
		errPageAmount.Error(): {"The amount is not one of the payment's currency", "금액을 확인하십시오"},
		errPageReason.Error(): {"A cancel needs a reason", "취소 사유를 입력하십시오"},
	}
}
