package pgclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"daesa/ledger"
)

func TestReadPage_KindsComeFromTheStatusAndAmountsLoseTheirSign(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(tripper(nil)))
	page, err := c.readPage(fixture(t, "transactions.json"), "", 5)
	if err != nil || len(page.Rows) != 4 || len(page.Quarantined) != 0 || page.Full || page.Last != page.Rows[3].TransactionKey {
		t.Fatal(page, err)
	}
	for i, want := range []struct {
		kind     TransactionKind
		amount   int64
		negative bool
	}{
		{TransactionCapture, 38500, false},
		{TransactionNone, 0, false},
		{TransactionCancel, 8500, true},
		{TransactionCancel, 30000, false},
	} {
		row := page.Rows[i]
		if row.Kind != want.kind || row.Amount != ledger.Won(want.amount) || row.Negative != want.negative || row.At.IsZero() {
			t.Errorf("row %d: got %+v, want %+v", i, row, want)
		}
	}
}

func TestReadPage_WhatIsNotAListIsNotAnEmptyList(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(tripper(nil)))
	for _, body := range []string{"", "null", "{}", `{"data":[]}`, "<html>", "[", "[]]"} {
		if _, err := c.readPage([]byte(body), "", 10); err == nil || err.Reason != ReasonUnreadable {
			t.Errorf("%q: got %v", body, err)
		}
	}
	if page, err := c.readPage([]byte("[]"), "", 10); err != nil || page.Full || page.Last != "" {
		t.Error(page, err)
	}
}

func TestReadPage_OneBadRowDoesNotHideTheOthers(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(tripper(nil)))
	row := func(changes string) string {
		base := `"transactionKey":"t%d","paymentKey":"pk","orderId":"o","status":"DONE","transactionAt":"2026-03-10T10:15:28+09:00","currency":"KRW","amount":1`
		return "{" + base + "," + changes + "}"
	}
	bad := []string{
		row(`"amount":1.5`), row(`"amount":null`), row(`"currency":"MUSD"`), row(`"transactionKey":null`), row(`"transactionAt":"soon"`),
		row(`"paymentKey":"../x"`), row(`"amount":-9223372036854775808`), "null", "7", "[]", `{"customerName":"홍길동"}`,
	}
	body := "[" + row(`"x":1`) + "," + strings.Join(bad, ",") + "," + row(`"status":"SETTLED"`) + "]"
	for i := 1; strings.Contains(body, "t%d"); i++ {
		body = strings.Replace(body, "t%d", fmt.Sprintf("t%d", i), 1)
	}
	page, err := c.readPage([]byte(body), "", 100)
	if err != nil || len(page.Rows) != 2 || len(page.Quarantined) != len(bad) || page.Rows[1].Kind != TransactionUnrecognized {
		t.Fatalf("%+v %v", page, err)
	}
	for _, row := range page.Quarantined {
		if row.Problem == "" || !json.Valid(row.Raw) || strings.Contains(string(row.Raw), "홍길동") {
			t.Errorf("%+v", row)
		}
	}
	if page.Quarantined[0].Amount != "1.5" || page.Quarantined[0].TransactionKey != "t2" {
		t.Errorf("%+v", page.Quarantined[0])
	}
	if _, err := c.readPage([]byte("[null]"), "", 1); err == nil {
		t.Error("a full page without a key would be asked for again for ever")
	}
	if _, err := c.readPage([]byte("["+row(`"transactionKey":"t9"`)+"]"), "t9", 1); err == nil {
		t.Error("a page that does not move on would be asked for again for ever")
	}
	if _, err := c.readPage([]byte("[null,null]"), "", 1); err == nil {
		t.Error("more rows than asked for")
	}
}

func TestTransactions_AsksInKoreanTimeWithoutAZone(t *testing.T) {
	t.Parallel()
	asked := ""
	c := mustNew(t, testConfig(tripper(func(r *http.Request) (*http.Response, error) {
		asked = r.URL.RequestURI()
		return shows("[]").do(r.Context())
	})))
	from := time.Date(2026, 3, 9, 15, 0, 0, 0, time.UTC)
	if _, err := c.Transactions(t.Context(), from, from.Add(24*time.Hour), "t9", 1000); err != nil {
		t.Fatal(err)
	}
	want := "/v1/transactions?endDate=2026-03-11T00%3A00%3A00&limit=1000&startDate=2026-03-10T00%3A00%3A00&startingAfter=t9"
	if asked != want {
		t.Errorf("got %s, want %s", asked, want)
	}
	for _, limit := range []int{0, 5001} {
		_, err := c.Transactions(t.Context(), from, from.Add(time.Hour), "", limit)
		wantReason(t, err, ReasonRefused)
	}
	_, err := c.Transactions(t.Context(), from, from, "", 10)
	wantReason(t, err, ReasonRefused)
}

func TestTransactions_ACursorOfAnotherWindowIsItsOwnReason(t *testing.T) {
	t.Parallel()
	transport, _ := script(says(400, "INVALID_TRANSACTION_KEY"))
	c := mustNew(t, testConfig(transport))
	_, err := c.Transactions(t.Context(), time.Unix(0, 0), time.Unix(9, 0), "t9", 10)
	wantReason(t, err, ReasonCursorRefused)
}

// TestTransactions_WaitsAsLongAsTheGatewayMayTake: it documents up to 60 s for a page; a refusal by rate is obeyed when
// it asks for little, and left to the caller when it asks for more.
func TestTransactions_WaitsAsLongAsTheGatewayMayTake(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		takes      []time.Duration
		retryAfter string // of the first answer, a 429
		reason     Reason
		wait       time.Duration
	}{
		{name: "60 s", takes: []time.Duration{60 * time.Second}},
		{name: "66 s, then at once", takes: []time.Duration{66 * time.Second, 0}},
		{name: "66 s twice", takes: []time.Duration{66 * time.Second, 66 * time.Second}, reason: ReasonTimeout},
		{name: "429, again after 5 s", takes: []time.Duration{0, 0}, retryAfter: "5"},
		{name: "429, again after a minute", takes: []time.Duration{0}, retryAfter: "60", reason: ReasonRateLimited, wait: time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls, last := 0, time.Now()
				c := mustNew(t, testConfig(tripper(func(r *http.Request) (*http.Response, error) {
					calls++
					if test.retryAfter == "5" && calls == 2 && time.Since(last) < 5*time.Second {
						t.Error("the second call came earlier than asked for")
					}
					last = time.Now()
					select {
					case <-time.After(test.takes[calls-1]):
					case <-r.Context().Done():
						return nil, r.Context().Err()
					}
					if test.retryAfter != "" && calls == 1 {
						response, err := says(429, "TOO_MANY_REQUESTS").do(r.Context())
						if err == nil {
							response.Header.Set("Retry-After", test.retryAfter)
						}
						return response, err
					}
					return shows("[]").do(r.Context())
				})))
				defer c.Close()
				_, err := c.Transactions(t.Context(), time.Unix(0, 0), time.Unix(9, 0), "", 10)
				if test.reason == "" && err != nil {
					t.Fatal(err)
				}
				if test.reason != "" {
					wantReason(t, err, test.reason)
					if failure, _ := errors.AsType[*Error](err); failure.RetryAfter != test.wait {
						t.Errorf("got %s to wait, want %s", failure.RetryAfter, test.wait)
					}
				}
				if calls != len(test.takes) {
					t.Errorf("got %d calls, want %d", calls, len(test.takes))
				}
			})
		})
	}
}

func FuzzReadTransactions(f *testing.F) {
	f.Add(fixture(f, "transactions.json"))
	f.Add([]byte(`[null,{"transactionKey":"a","amount":-1}]`))
	f.Add([]byte("null"))
	c, err := New(testConfig(tripper(nil)))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		page, failure := c.readPage(body, "", 100)
		if failure != nil {
			return
		}
		for _, row := range page.Rows {
			if row.Amount.Minor < 0 || !row.Amount.Currency.Known() || row.TransactionKey == "" || !ValidPaymentKey(row.PaymentKey) || row.At.IsZero() {
				t.Errorf("%+v", row)
			}
		}
		for _, row := range page.Quarantined {
			if row.Problem == "" || !json.Valid(row.Raw) {
				t.Errorf("%+v", row)
			}
		}
	})
}
