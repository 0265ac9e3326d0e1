package browser_test

import (
	"testing"

	"daesa/internal/people"
	"daesa/internal/stage"
)

// Somebody plays the gateway at its own page, and sees at the pages of the service that the books follow.
func TestGateway_BooksFollow(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.colleague("kim", people.RoleFinance)
	o.sell(stage.Sale{OrderID: "order-played", Won: 90_000})
	gateway, kim := browse(t, o.gateway, "ko"), browse(t, o.app.PagesURL(), "ko")
	gateway.open("/__sim/", 200)
	gateway.says("모의 결제대행사(PG)", "order-played", "결제 완료", "90,000 KRW")
	gateway.follow("지시할 때만", 200)
	gateway.fill("취소", "취소 금액", "30,000")
	gateway.shot("canceling")
	gateway.follow("취소", 200)
	gateway.says("부분 취소", "60,000", "보류 중")

	kim.signIn("kim")
	kim.open("/orders/order-played", 200)
	kim.lacks("30,000") // nobody has told the books
	gateway.follow("마지막 웹훅 다시 보내기", 200)
	gateway.says("전송 완료 200")
	kim.open("/orders/order-played", 200)
	kim.says("30,000")
	gateway.fill("취소", "취소 금액", "60,001")
	gateway.follow("취소", 409)
	gateway.says("그렇게 취소할 수 없는 결제입니다")
	gateway.shot("refused")
	gateway.phone()
	gateway.open("/__sim/", 200)
	gateway.fits(360)
	gateway.shot("phone")
}
