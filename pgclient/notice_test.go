package pgclient

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"daesa/ledger"
)

func TestReadNotice_EveryEnvelope(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(tripper(nil)))
	header := http.Header{}
	header.Set("tosspayments-webhook-transmission-id", "whtrans_1")
	header.Set("tosspayments-webhook-transmission-retried-count", "3")
	header.Set("tosspayments-webhook-transmission-time", "2026-03-11T12:05:10+09:00")
	for _, test := range []struct {
		file   string
		kind   NoticeKind
		family Family
		key    bool
		order  string
		keys   []string
	}{
		{"notice_done.json", NoticeStatusChanged, FamilyKnownOther, true, "order-7780-card", nil},
		{"notice_partial_canceled.json", NoticeStatusChanged, FamilyCancel, true, "order-7781-easy", []string{"9A00000000000000000000000000E002"}},
		{"notice_expired.json", NoticeStatusChanged, FamilyKnownOther, true, "order-7783-late", nil},
		{"notice_deposit.json", NoticeDepositCallback, FamilyKnownOther, false, "order-7782-bank", nil},
		{"notice_cancel_changed.json", NoticeCancelChanged, FamilyCancel, false, "", []string{"9A00000000000000000000000000F002"}},
		{"notice_payout.json", NoticeSigned, FamilyUnknown, false, "", nil},
		{"notice_billing_deleted.json", NoticeOther, FamilyUnknown, false, "", nil},
	} {
		got, err := c.ReadNotice(header, fixture(t, test.file))
		if err != nil || got.Kind != test.kind || got.Family != test.family || got.PaymentKeyValid != test.key || (got.PaymentKey != "") != test.key ||
			got.OrderID != test.order || !slices.Equal(got.CancelKeys, test.keys) || got.CreatedAt.IsZero() {
			t.Errorf("%s: got %+v %v", test.file, got, err)
		}
	}
	got, _ := c.ReadNotice(header, fixture(t, "notice_partial_canceled.json"))
	total, balance := ledger.Won(33000), ledger.Won(21000)
	want := Notice{
		Kind: NoticeStatusChanged, EventType: "PAYMENT_STATUS_CHANGED", PaymentKey: "tdemo20260310090000Xy1z2", PaymentKeyValid: true,
		OrderID: "order-7781-easy", MerchantID: "tdemoshop", Family: FamilyCancel, Word: "PARTIAL_CANCELED",
		CancelKeys: []string{"9A00000000000000000000000000E002"}, Total: &total, Balance: &balance,
		TransmissionID: "whtrans_1", RetriedCount: 3, SentAt: time.Date(2026, 3, 11, 3, 5, 10, 0, time.UTC),
		CreatedAt: time.Date(2026, 3, 11, 2, 5, 10, 550200000, time.UTC),
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Notice{})); diff != "" {
		t.Error(diff)
	}
}

func TestReadNotice_OddBodies(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(tripper(nil)))
	status := func(data string) string { return `{"eventType":"PAYMENT_STATUS_CHANGED","data":` + data + `}` }
	for _, test := range []struct {
		name, body string
		kind       NoticeKind
		family     Family
		key        string
		keys       []string
	}{
		{"empty object", `{}`, NoticeOther, FamilyUnknown, "", nil},
		{"event of tomorrow", `{"eventType":"PAYMENT_STATUS_CHANGED_V2","data":{"paymentKey":"pk","status":"CANCELED"}}`, NoticeOther, FamilyUnknown, "", nil},
		{"data null", status(`null`), NoticeStatusChanged, FamilyUnknown, "", nil},
		{"data a list", status(`[]`), NoticeStatusChanged, FamilyUnknown, "", nil},
		{"the short form", status(`{"paymentKey":"pk","status":"CANCELED","orderId":"o"}`), NoticeStatusChanged, FamilyCancel, "pk", nil},
		{"status of tomorrow", status(`{"paymentKey":"pk","status":"REVERSED"}`), NoticeStatusChanged, FamilyUnknown, "pk", nil},
		{"british", status(`{"paymentKey":"pk","status":"CANCELLED"}`), NoticeStatusChanged, FamilyUnknown, "pk", nil},
		{"no status", status(`{"paymentKey":"pk"}`), NoticeStatusChanged, FamilyUnknown, "pk", nil},
		{"key that walks", status(`{"paymentKey":"../settlements","status":"CANCELED"}`), NoticeStatusChanged, FamilyCancel, "", nil},
		{"key with NUL", status(`{"paymentKey":"pk\u0000","status":"CANCELED"}`), NoticeStatusChanged, FamilyCancel, "", nil},
		{"key of bad bytes", status("{\"paymentKey\":\"pk\xb0\",\"status\":\"CANCELED\"}"), NoticeStatusChanged, FamilyCancel, "", nil},
		{"key of another type", status(`{"paymentKey":7,"status":"CANCELED"}`), NoticeStatusChanged, FamilyCancel, "", nil},
		{"one cancel without a name", status(`{"paymentKey":"pk","status":"CANCELED","cancels":[{"transactionKey":"a"},{}]}`), NoticeStatusChanged, FamilyCancel, "pk", nil},
		{"cancels [null]", status(`{"paymentKey":"pk","status":"CANCELED","cancels":[null]}`), NoticeStatusChanged, FamilyCancel, "pk", nil},
		{"too many cancels", status(`{"paymentKey":"pk","status":"CANCELED","cancels":[` + strings.Repeat(`{"transactionKey":"a"},`, 1000) + `{"transactionKey":"a"}]}`), NoticeStatusChanged, FamilyCancel, "pk", nil},
		{"deposit without secret", `{"status":"CANCELED","orderId":"o"}`, NoticeDepositCallback, FamilyCancel, "", nil},
		{"deposit in an envelope", `{"eventType":"DEPOSIT_CALLBACK","data":{"status":"PARTIAL_CANCELED","orderId":"o","secret":"s"}}`, NoticeDepositCallback, FamilyCancel, "", nil},
		{"cancel given up beside one that is done", status(`{"paymentKey":"pk","status":"PARTIAL_CANCELED","cancels":[{"transactionKey":"a","cancelStatus":"ABORTED"},{"transactionKey":"b","cancelStatus":"DONE"},{"transactionKey":"c"}]}`), NoticeStatusChanged, FamilyCancel, "pk", []string{"b", "c"}},
		{"deposit canceled", `{"status":"CANCELED","orderId":"o","transactionKey":"t"}`, NoticeDepositCallback, FamilyCancel, "", []string{"t"}},
		{"deposit paid", `{"status":"DONE","orderId":"o","transactionKey":"t"}`, NoticeDepositCallback, FamilyKnownOther, "", nil},
		{"deposit of tomorrow", `{"status":"REVERSED","orderId":"o","transactionKey":"t"}`, NoticeDepositCallback, FamilyUnknown, "", []string{"t"}},
		{"cancel in progress", `{"eventType":"CANCEL_STATUS_CHANGED","data":{"cancelStatus":"IN_PROGRESS","cancelRequestId":"r"}}`, NoticeCancelChanged, FamilyKnownOther, "", nil},
		{"cancel of tomorrow", `{"eventType":"CANCEL_STATUS_CHANGED","data":{"cancelStatus":"WAITING","transactionKey":"a"}}`, NoticeCancelChanged, FamilyUnknown, "", []string{"a"}},
		{"byte order mark", "\xef\xbb\xbf" + status(`{"paymentKey":"pk","status":"DONE"}`), NoticeStatusChanged, FamilyKnownOther, "pk", nil},
	} {
		got, err := c.ReadNotice(http.Header{}, []byte(test.body))
		if err != nil || got.Kind != test.kind || got.Family != test.family || got.PaymentKey != test.key ||
			got.PaymentKeyValid != (test.key != "") || !slices.Equal(got.CancelKeys, test.keys) {
			t.Errorf("%s: got %+v %v", test.name, got, err)
		}
	}
	for _, body := range []string{
		"", "null", "[]", `"text"`, "7", "{}{}", `{"a":1,}`, "paymentKey=pk&status=CANCELED", "<html>", strings.Repeat(`{"a":`, 20000),
	} {
		if _, err := c.ReadNotice(http.Header{}, []byte(body)); !errors.Is(err, ErrNotice) {
			t.Errorf("%.20q: got %v", body, err)
		}
	}
}

// TestReadNotice_WholeIsCanceledAndNothingElse: only the word for a full cancel says that nothing is left.
func TestReadNotice_WholeIsCanceledAndNothingElse(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(tripper(nil)))
	for word, want := range map[string]bool{"CANCELED": true, "PARTIAL_CANCELED": false, "canceled": false, "REVERSED": false, "DONE": false} {
		for _, body := range []string{
			`{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":"pk","status":"` + word + `"}}`,
			`{"orderId":"o","transactionKey":"t","status":"` + word + `"}`,
		} {
			if got, err := c.ReadNotice(http.Header{}, []byte(body)); err != nil || got.Whole != want {
				t.Errorf("%s: got %v, %v, want %v", body, got.Whole, err, want)
			}
		}
	}
}

func TestReadNotice_HeadersAreForShowAndBounded(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(tripper(nil)))
	for count, want := range map[string]int{"": 0, "7": 7, "-1": 0, "999999": 1000, "x": 0, "99999999999999999999": 0} {
		header := http.Header{}
		header.Set("Tosspayments-Webhook-Transmission-Retried-Count", count)
		header.Set("Tosspayments-Webhook-Transmission-Id", strings.Repeat("a", 500)+"\x01")
		got, _ := c.ReadNotice(header, []byte("{}"))
		if got.RetriedCount != want || len(got.TransmissionID) != 100 {
			t.Errorf("%q: got %d, want %d", count, got.RetriedCount, want)
		}
	}
}

func TestVerifySignature(t *testing.T) {
	t.Parallel()
	cfg := testConfig(tripper(nil))
	cfg.SecurityKey = strings.Repeat("0f", 32)
	c := mustNew(t, cfg)
	body := []byte(`{"eventType":"payout.changed"}`)
	const sentAt = "2026-03-21T09:00:03+09:00"
	// HMAC-SHA256 of body + ":" + sentAt, with the key read as bytes and as text.
	const asBytes, asText = "v1:pKSoTqTgPNXB16qYHkqOhcD0Ut44hfsKOdatmLjjvds=", "v1:L1WM00bGTPJR9Yc03pQ7/dcPexBcxQBqy3Ute3x9hB0="
	for _, test := range []struct {
		name, signature string
		body            []byte
		want            SignatureState
	}{
		{"as bytes", asBytes, body, SignatureValid},
		{"as text", asText, body, SignatureValid},
		{"second of two", "v1:AAAA, " + asBytes, body, SignatureValid},
		{"other body", asBytes, append([]byte(" "), body...), SignatureInvalid},
		{"other version", strings.Replace(asBytes, "v1", "v2", 1), body, SignatureInvalid},
		{"not base64", "v1:?", body, SignatureInvalid},
		{"ninth", strings.Repeat("v1:AAAA,", 8) + asBytes, body, SignatureInvalid},
		{"none", "", body, SignatureAbsent},
	} {
		header := http.Header{}
		header.Set("Tosspayments-Webhook-Signature", test.signature)
		header.Set("Tosspayments-Webhook-Transmission-Time", sentAt)
		if got := c.VerifySignature(header, test.body); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
	if got := mustNew(t, testConfig(tripper(nil))).VerifySignature(http.Header{}, body); got != SignatureNotConfigured {
		t.Error(got)
	}
}

func TestLastChance_IsThreeDaysNineteenHoursAndAQuarter(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC)
	if got, want := LastChance(first), first.Add(3*24*time.Hour+19*time.Hour+16*time.Minute); !got.Equal(want) || len(RedeliverySchedule()) != 7 {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzReadNotice(f *testing.F) {
	for _, file := range []string{
		"notice_done.json", "notice_partial_canceled.json", "notice_expired.json", "notice_deposit.json", "notice_cancel_changed.json",
		"notice_payout.json", "notice_billing_deleted.json",
	} {
		f.Add(fixture(f, file))
	}
	f.Add([]byte(`{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":"..","cancels":[{}]}}`))
	c, err := New(testConfig(tripper(nil)))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		notice, err := c.ReadNotice(http.Header{}, body)
		if err != nil {
			return
		}
		if notice.PaymentKeyValid != ValidPaymentKey(notice.PaymentKey) || !slices.Contains(NoticeKinds(), notice.Kind) ||
			!slices.Contains(Families(), notice.Family) || sanitized(notice.Word) != notice.Word {
			t.Errorf("%+v", notice)
		}
		if masked := notice.Masked(); !json.Valid(masked) || !utf8.Valid(masked) || len(masked) > maskedMax {
			t.Errorf("read, but not fit to be kept: %.200s", masked)
		}
	})
}
