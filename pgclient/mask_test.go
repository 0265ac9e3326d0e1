package pgclient

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMask_HidesPeopleAndSecretsAndKeepsTheFacts(t *testing.T) {
	t.Parallel()
	body := `{"eventType":"PAYMENT_STATUS_CHANGED","createdAt":"2026-03-10T10:15:29.1","data":{"paymentKey":"pk_1","orderId":"o1","orderName":"수건",
		"status":"DONE","totalAmount":50000,"secret":"ps_HIDE","card":{"number":"HIDE","amount":50000,"approveNo":"HIDE"},
		"virtualAccount":{"accountNumber":"HIDE","customerName":"HIDE","depositorName":"HIDE","expired":false,"refundReceiveAccount":{"bankCode":"HIDE","holderName":"HIDE"}},
		"mobilePhone":{"customerMobilePhone":"HIDE","settlementStatus":"HIDE"},"customerEmail":"HIDE","customerKey":"HIDE","cashReceipts":[{"issueNumber":7777}],
		"cancels":[{"transactionKey":"t1","cancelReason":"HIDE","cancelAmount":41.50}],"metadata":{"note":"HIDE"},"newBuyerPhoneNumber":["HIDE"],
		"billingKey":"HIDE","individual":{"name":"HIDE"},"shippingAddress":"HIDE","receipt":{"url":"https://a.test/?a=1&b=2"}}}`
	text := string(read(t, body).Masked())
	if strings.Contains(text, "HIDE") || strings.Contains(text, "7777") {
		t.Errorf("shows what must be hidden: %s", text)
	}
	for _, fact := range []string{`"pk_1"`, `"o1"`, `"수건"`, `"DONE"`, `50000`, `"t1"`, `41.50`, `"expired":false`, "a=1&b=2"} {
		if !strings.Contains(text, fact) {
			t.Errorf("lost %s: %s", fact, text)
		}
	}
}

func TestMask_FitsADatabaseAndABound(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"a":"x\u0000y","b\u0000":"\ud800","c":1e999999,"c2":1e-20000,"d":` + strings.Repeat("9", 5000) + `}`,
		`{"a":"` + strings.Repeat("가", 10000) + `"}`,
		`{"a":[` + strings.Repeat(`"`+strings.Repeat("x", 200)+`",`, 2000) + `1]}`,
		`{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		"{\"a\":\"\xb0\xa1\"}",
	} {
		got := read(t, body).Masked()
		if !json.Valid(got) || !utf8.Valid(got) || len(got) > maskedMax ||
			strings.Contains(string(got), `\u0000`) || strings.Contains(string(got), "1e999999,") || strings.Contains(string(got), "1e-20000,") {
			t.Errorf("%.40q: %d bytes: %.100s", body, len(got), got)
		}
	}
}

func read(t *testing.T, body string) *Notice {
	t.Helper()
	n, err := mustNew(t, testConfig(tripper(nil))).ReadNotice(http.Header{}, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return &n
}
