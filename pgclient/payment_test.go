package pgclient

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daesa/ledger"
)

func TestReadPayment_EvidenceOfEveryStatus(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(tripper(nil)))
	account := map[string]any{"bankCode": "20"}
	done := list(cancel("c1", 50000, "DONE"))
	for _, test := range []struct {
		name    string
		changes map[string]any
		want    ledger.Evidence
	}{
		{"ready", map[string]any{"status": "READY", "approvedAt": nil, "method": nil}, ledger.EvidenceOpen},
		{"in progress", map[string]any{"status": "IN_PROGRESS", "approvedAt": nil}, ledger.EvidenceOpen},
		{"waiting", map[string]any{"status": "WAITING_FOR_DEPOSIT", "approvedAt": nil, "virtualAccount": account}, ledger.EvidenceWaiting},
		{"waiting past the due date", map[string]any{
			"status": "WAITING_FOR_DEPOSIT", "approvedAt": nil, "virtualAccount": map[string]any{"dueDate": "2026-03-17T23:59:59", "expired": true},
		}, ledger.EvidenceDead},
		{"paid in, and the account is past its due date", map[string]any{"virtualAccount": map[string]any{"expired": true}}, ledger.EvidenceCaptured},
		{"done", nil, ledger.EvidenceCaptured},
		{"done, no version", map[string]any{"version": absent}, ledger.EvidenceCaptured},
		{"done, version of tomorrow", map[string]any{"version": "2031-01-01", "news": []int{1}}, ledger.EvidenceCaptured},
		{"done, amounts as text", map[string]any{"totalAmount": "50000", "balanceAmount": "50000.0"}, ledger.EvidenceCaptured},
		{"done, no cancels field", map[string]any{"cancels": absent}, ledger.EvidenceCaptured},
		{"done, cancels empty", map[string]any{"cancels": list()}, ledger.EvidenceCaptured},
		{"canceled", map[string]any{"status": "CANCELED", "balanceAmount": 0, "cancels": done}, ledger.EvidenceCaptured},
		{"canceled card without time", map[string]any{"status": "CANCELED", "balanceAmount": 0, "cancels": done, "approvedAt": nil}, ledger.EvidenceCaptured},
		{"partly canceled to nothing", map[string]any{"status": "PARTIAL_CANCELED", "balanceAmount": 0, "cancels": done}, ledger.EvidenceCaptured},
		{"canceled before deposit", map[string]any{"status": "CANCELED", "balanceAmount": 0, "approvedAt": nil, "virtualAccount": account}, ledger.EvidenceVoided},
		{"canceled before deposit, by method", map[string]any{"status": "CANCELED", "balanceAmount": 0, "approvedAt": nil, "method": "가상계좌"}, ledger.EvidenceVoided},
		{"canceled before deposit, listed", map[string]any{"status": "CANCELED", "balanceAmount": 0, "approvedAt": nil, "virtualAccount": account, "cancels": list(cancel("c1", 0, "DONE"))}, ledger.EvidenceVoided},
		{"expired", map[string]any{"status": "EXPIRED", "approvedAt": nil, "method": nil, "lastTransactionKey": nil}, ledger.EvidenceDead},
		{"aborted", map[string]any{"status": "ABORTED", "approvedAt": nil}, ledger.EvidenceDead},
		{"status of tomorrow", map[string]any{"status": "PARTIAL_REFUND_PENDING", "balanceAmount": 1}, ledger.EvidenceUnrecognized},
		{"british", map[string]any{"status": "CANCELLED"}, ledger.EvidenceUnrecognized},
		{"lower case", map[string]any{"status": "canceled"}, ledger.EvidenceUnrecognized},
		{"no status", map[string]any{"status": nil}, ledger.EvidenceUnrecognized},
	} {
		got, err := c.readPayment([]byte(payment(test.changes)))
		if err != nil || got.Evidence != test.want {
			t.Errorf("%s: got %s, want %s: %v", test.name, got.Evidence, test.want, err)
		}
		if got.CapturedAt.IsZero() != (got.Evidence != ledger.EvidenceCaptured || test.changes["approvedAt"] == nil && hasKey(test.changes, "approvedAt")) {
			t.Errorf("%s: captured at %s", test.name, got.CapturedAt)
		}
	}
}

// TestReadPayment_DueDateOfAWaitingAccount: with an offset or, as Korean time, without one; and of waiting accounts only.
func TestReadPayment_DueDateOfAWaitingAccount(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(tripper(nil)))
	night := time.Date(2026, 3, 17, 14, 59, 59, 0, time.UTC)
	for _, test := range []struct {
		name    string
		status  string
		account map[string]any
		want    time.Time
	}{
		{"with an offset", "WAITING_FOR_DEPOSIT", map[string]any{"dueDate": "2026-03-17T23:59:59+09:00"}, night},
		{"without one", "WAITING_FOR_DEPOSIT", map[string]any{"dueDate": "2026-03-17T23:59:59"}, night},
		{"past", "WAITING_FOR_DEPOSIT", map[string]any{"dueDate": "2026-03-17T23:59:59", "expired": true}, night},
		{"none", "WAITING_FOR_DEPOSIT", map[string]any{"dueDate": nil, "expired": "true"}, time.Time{}},
		{"paid in", "DONE", map[string]any{"dueDate": "2026-03-17T23:59:59"}, time.Time{}},
		{"aborted", "ABORTED", map[string]any{"dueDate": "2026-03-17T23:59:59"}, time.Time{}},
	} {
		got, err := c.readPayment([]byte(payment(map[string]any{"status": test.status, "virtualAccount": test.account})))
		if err != nil || !got.DueAt.Equal(test.want) {
			t.Errorf("%s: got %s, want %s: %v", test.name, got.DueAt, test.want, err)
		}
	}
}

func hasKey(m map[string]any, key string) bool { _, ok := m[key]; return ok }

func TestReadPayment_ContradictionsAreNeverObservations(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(tripper(nil)))
	partial := func(balance any, cancels ...any) map[string]any {
		return map[string]any{"status": "PARTIAL_CANCELED", "balanceAmount": balance, "cancels": cancels}
	}
	for name, changes := range map[string]map[string]any{
		"canceled, cancels null":        {"status": "CANCELED", "balanceAmount": 0},
		"canceled, cancels empty":       {"status": "CANCELED", "balanceAmount": 0, "cancels": list()},
		"canceled, cancels [null]":      {"status": "CANCELED", "balanceAmount": 0, "cancels": list(nil)},
		"done, cancels [null]":          {"cancels": list(nil)},
		"cancels an object":             {"cancels": cancel("c1", 1, "DONE")},
		"cancels of numbers":            {"cancels": list(1)},
		"balance below, no cancels":     {"balanceAmount": 49999},
		"running totals":                partial(45000, cancel("c1", 2000, "DONE"), cancel("c2", 5000, "DONE")),
		"cancels above balance":         partial(45000, cancel("c1", 2000, "DONE")),
		"in progress explains too much": partial(48000, cancel("c1", 1000, "IN_PROGRESS")),
		"aborted explains nothing":      partial(48000, cancel("c1", 2000, "ABORTED")),
		"cancel of nothing":             partial(50000, cancel("c1", 0, "DONE")),
		"cancel below nothing":          partial(50100, cancel("c1", -100, "DONE")),
		"key repeated":                  partial(46000, cancel("c1", 2000, "DONE"), cancel("c1", 2000, "DONE")),
		"key empty":                     partial(48000, cancel("", 2000, "DONE")),
		"key with NUL":                  partial(48000, cancel("c\x001", 2000, "DONE")),
		"currency unknown":              {"currency": "MUSD"},
		"currency absent":               {"currency": absent},
		"half a won":                    {"totalAmount": 50000.5},
		"hundredths of a cent":          {"currency": "USD", "totalAmount": "1.001"},
		"total absent":                  {"totalAmount": nil},
		"total too large":               {"totalAmount": "1e30"},
		"total of another type":         {"totalAmount": list()},
		"balance below nothing":         {"balanceAmount": -1},
		"balance above total":           {"balanceAmount": 50001},
		"total below nothing":           {"totalAmount": -5, "balanceAmount": -5},
		"key not plain":                 {"paymentKey": "../x"},
		"order absent":                  {"orderId": nil},
		"sum overflows":                 partial(0, cancel("c1", 9e18, "DONE"), cancel("c2", 9e18, "DONE")),
	} {
		seen, err := c.readPayment([]byte(payment(changes)))
		if err == nil || err.Reason != ReasonInconsistent || err.Detail == "" {
			t.Errorf("%s: got %v %v", name, seen, err)
		}
	}
	for _, body := range []string{"", "null", "{}", "[]", "<html>", `{"code":"X"}`, `{"paymentKey":null}`, payment(nil)[:90]} {
		if _, err := c.readPayment([]byte(body)); err == nil || err.Reason != ReasonUnreadable {
			t.Errorf("%q: got %v", body, err)
		}
	}
}

func TestReadPayment_CancelsKeepStateAndOrder(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(tripper(nil)))
	old := cancel("c1", 2000, nil)
	delete(old, "cancelStatus")
	got, err := c.readPayment([]byte(payment(map[string]any{
		"status": "PARTIAL_CANCELED", "balanceAmount": 44000, "cancels": list(
			old, cancel("c2", 1000, nil), cancel("c3", 3000, "IN_PROGRESS"), cancel("c4", 9000, "ABORTED"), cancel("c5", 500, "WAITING")),
	})))
	if err != nil {
		t.Fatal(err)
	}
	var states []ledger.CancelState
	for _, cancel := range got.Cancels {
		states = append(states, cancel.State)
	}
	want := []ledger.CancelState{ledger.CancelDone, ledger.CancelDone, ledger.CancelInProgress, ledger.CancelAborted, ledger.CancelUnrecognized}
	if !slices.Equal(states, want) {
		t.Errorf("got %v, want %v", states, want)
	}
}

func TestReadPayment_TextIsCleanAndSecretsAreDigests(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(tripper(nil)))
	odd := cancel("c1", 50000, "DONE")
	odd["cancelReason"] = "a\x00b 😀 \u200f" + string([]rune{0xFFFD})
	got, err := c.readPayment([]byte(payment(map[string]any{
		"status": "CANCELED", "balanceAmount": 0, "cancels": list(odd), "secret": "ps_1",
	})))
	if err != nil || got.Cancels[0].Reason != "ab 😀 \u200f" || len(got.SecretDigest) != 32 {
		t.Errorf("got %q, %d bytes of digest: %v", got.Cancels[0].Reason, len(got.SecretDigest), err)
	}
}

func TestReadPayment_DollarsAreExact(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(tripper(nil)))
	got, err := c.readPayment([]byte(`{"paymentKey":"pk","orderId":"71","currency":"USD","totalAmount":726.24,"balanceAmount":0.0,
		"status":"CANCELED","approvedAt":"2026-04-20T10:00:00+09:00","cancels":[{"transactionKey":"a","cancelAmount":726.24}],"easyPay":""}`))
	if err != nil || got.Total.Minor != 72624 || got.Balance.Minor != 0 || got.Cancels[0].Amount.Minor != 72624 {
		t.Errorf("got %+v %v", got, err)
	}
}

// TestReadPayment_SampleObjects reads whole objects as the gateway writes them.
func TestReadPayment_SampleObjects(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(tripper(nil)))
	for _, test := range []struct {
		file     string
		evidence ledger.Evidence
		balance  int64
		cancels  int
		account  bool
	}{
		{"payment_card_done.json", ledger.EvidenceCaptured, 38500, 0, false},
		{"payment_virtual_account_waiting.json", ledger.EvidenceWaiting, 120000, 0, true},
		{"payment_virtual_account_void.json", ledger.EvidenceVoided, 0, 0, true},
		{"payment_easypay_partial.json", ledger.EvidenceCaptured, 21000, 1, false},
		{"payment_partial_to_zero.json", ledger.EvidenceCaptured, 0, 2, false},
		{"payment_expired.json", ledger.EvidenceDead, 9900, 0, false},
	} {
		got, err := c.readPayment(fixture(t, test.file))
		if err != nil || got.Evidence != test.evidence || got.Balance != ledger.Won(test.balance) ||
			len(got.Cancels) != test.cancels || got.VirtualAccount != test.account {
			t.Errorf("%s: got %+v %v", test.file, got, err)
		}
	}
}

func TestReadPayment_WholeObservation(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(tripper(nil)))
	got, err := c.readPayment(fixture(t, "payment_easypay_partial.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := ledger.Observation{
		PaymentKey: "tdemo20260310090000Xy1z2", OrderID: "order-7781-easy", MerchantID: "tdemoshop", Evidence: ledger.EvidenceCaptured,
		Word: "PARTIAL_CANCELED", Method: "간편결제", Total: ledger.Won(33000), Balance: ledger.Won(21000),
		Tax:                ledger.Tax{Supplied: ledger.Won(19091), VAT: ledger.Won(1909), Free: ledger.Won(0), Exempt: ledger.Won(0)},
		LastTransactionKey: "9A00000000000000000000000000E002",
		RequestedAt:        time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC), CapturedAt: time.Date(2026, 3, 10, 0, 0, 31, 0, time.UTC),
		Cancels: []ledger.ObservedCancel{{
			TransactionKey: "9A00000000000000000000000000E002", State: ledger.CancelDone, Amount: ledger.Won(12000),
			Refundable: ledger.Won(21000), TaxFree: ledger.Won(0), TaxExempt: ledger.Won(0), Reason: "색상 품절",
			CanceledAt: time.Date(2026, 3, 11, 2, 5, 9, 0, time.UTC),
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzReadPayment(f *testing.F) {
	f.Add([]byte(payment(nil)))
	f.Add([]byte(payment(map[string]any{"status": "CANCELED", "balanceAmount": 0, "cancels": list(cancel("c1", 50000, "DONE"))})))
	for _, file := range []string{"payment_virtual_account_waiting.json", "payment_easypay_partial.json", "payment_expired.json"} {
		f.Add(fixture(f, file))
	}
	f.Add([]byte(`{"paymentKey":"a","cancels":[null]}`))
	c, err := New(testConfig(tripper(nil)))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, failure := c.readPayment(body)
		if failure != nil {
			if failure.Reason != ReasonUnreadable && failure.Reason != ReasonInconsistent {
				t.Error(failure)
			}
			return
		}
		requireSound(t, got)
	})
}

// requireSound checks what every observation promises, by its own arithmetic.
func requireSound(t *testing.T, o ledger.Observation) {
	t.Helper()
	if !ValidPaymentKey(o.PaymentKey) || o.OrderID == "" || !o.Total.Currency.Known() ||
		o.Balance.Minor < 0 || o.Balance.Minor > o.Total.Minor || !slices.Contains(ledger.Evidences(), o.Evidence) || !o.Evidence.HasObject() {
		t.Errorf("unsound: %+v", o)
	}
	sum := ledger.Money{Currency: o.Total.Currency}
	for _, cancel := range o.Cancels {
		if cancel.State != ledger.CancelDone {
			continue
		}
		var err error
		if sum, err = sum.Add(cancel.Amount); err != nil && !errors.Is(err, ledger.ErrMoney) {
			t.Error(err)
		}
	}
	if o.Evidence == ledger.EvidenceCaptured && sum.Minor > o.Total.Minor-o.Balance.Minor {
		t.Errorf("cancels of %s leave %s of %s", sum, o.Balance, o.Total)
	}
}
