package checkout

import (
	"fmt"

	"daesa/ledger"
)

// noticeText says to a customer, in Korean and in English, what the facts of an event mean for their money.
func noticeText(kind ledger.EventKind, facts map[string]any) map[string]string {
	order, currency := text(facts, "order_id"), text(facts, "currency")
	amount, balance := text(facts, "amount"), text(facts, "balance")
	switch kind {
	case ledger.EventOrderCanceled:
		return map[string]string{
			"ko": fmt.Sprintf("주문 %s의 결제가 취소되었습니다. 환불 금액은 %s입니다.", order, won(amount, currency)),
			"en": fmt.Sprintf("The payment for order %s has been canceled. %s will be refunded.", order, english(amount, currency)),
		}
	case ledger.EventOrderPartiallyCanceled:
		return map[string]string{
			"ko": fmt.Sprintf("주문 %s의 결제 중 %s 취소되었습니다. 남은 결제 금액은 %s입니다.", order, subject(amount, currency), won(balance, currency)),
			"en": fmt.Sprintf("%s of the payment for order %s has been canceled and will be refunded. %s remains paid.",
				english(amount, currency), order, english(balance, currency)),
		}
	case ledger.EventOrderPaid, ledger.EventOrderReopened, ledger.EventPaymentFailed, ledger.EventPaymentSurplus,
		ledger.EventStoreCheck:
	}
	return map[string]string{
		"ko": fmt.Sprintf("주문 %s의 결제 상태가 변경되었습니다.", order),
		"en": fmt.Sprintf("The payment for order %s has changed.", order),
	}
}

func text(facts map[string]any, name string) string {
	s, _ := facts[name].(string)
	return s
}

// won writes an amount as Koreans do: 50,000원.
func won(amount, currency string) string {
	switch ledger.Currency(currency) {
	case ledger.KRW:
		return ledger.Grouped(amount) + "원"
	case ledger.JPY:
		return ledger.Grouped(amount) + "엔"
	case ledger.USD:
		return ledger.Grouped(amount) + "달러"
	case ledger.Credits:
	}
	return ledger.Grouped(amount) + " " + currency
}

// subject is won with the particle of a subject: 원 and 엔 end in a consonant, 달러 does not.
func subject(amount, currency string) string {
	if ledger.Currency(currency) == ledger.USD {
		return won(amount, currency) + "가"
	}
	return won(amount, currency) + "이"
}

// english writes an amount with its currency first: KRW 50,000.
func english(amount, currency string) string { return currency + " " + ledger.Grouped(amount) }
