package webhook_test

import (
	"fmt"
	"strings"
	"testing"

	"daesa/pgclient/tosssim"
)

// marked is a notice with a mark in every place that holds a secret or says who somebody is.
func marked(paymentKey, status string) fields {
	o := whole(paymentKey, "order-0001", fields{
		"status": status, "secret": "MARK_secret", "customerKey": "MARK_customer",
		"card": fields{"number": "MARK_card", "approveNo": "MARK_approval"},
		"virtualAccount": fields{
			"accountNumber": "MARK_account", "customerName": "MARK_name", "depositorName": "MARK_depositor",
			"refundReceiveAccount": fields{"bank": "20", "accountNumber": "MARK_refund", "holderName": "MARK_holder"},
		},
		"mobilePhone": fields{"customerMobilePhone": "MARK_phone"},
		"cashReceipt": fields{"issueNumber": "MARK_receipt"},
		"metadata":    fields{"note": "MARK_metadata"},
		"cancels":     []fields{cancelOf("tx_c1_"+paymentKey, 50000, fields{"cancelReason": "MARK_reason"})},
	})
	return o
}

// TestReceive_MarksNeverStay: whatever a body carries, and whatever goes wrong with it, nothing personal and no secret
// is kept in a delivery, the work it leaves, a log or an answer.
func TestReceive_MarksNeverStay(t *testing.T) {
	t.Parallel()
	s := open(t, options{paths: quick()})
	key := s.paid(t, "order-0001", 50_000)
	s.cancel(t, key, 0)
	var answers strings.Builder
	say := func(body any) {
		raw, ok := body.(string)
		if !ok {
			raw = string(encoded(t, body))
		}
		fmt.Fprintln(&answers, s.send(t, []byte(raw)).body)
	}
	say(notice(marked(key, "DONE"), nil))
	for _, fault := range []tosssim.Fault{
		{Kind: tosssim.Hang},
		{Kind: tosssim.Reset},
		{Kind: tosssim.Refuse, Body: "UNAUTHORIZED_KEY"},
		{Kind: tosssim.Body, Body: `{"code":"X","message":"MARK_message"}`, Code: 500},
		{Kind: tosssim.Stale, Payment: encoded(t, marked(key, "MARK_status"))},
		{Kind: tosssim.Stale, Payment: encoded(t, marked("pk_MARK", "CANCELED"))},
	} {
		fault.Op, fault.N = tosssim.Get, 1
		s.sim.Fail(fault)
		say(notice(marked(key, "CANCELED"), nil))
		s.sim.Heal()
	}
	say(notice(marked(key, "CANCELED"), nil))
	say(notice(marked("pk_never", "CANCELED"), nil))
	say(notice(marked("pk MARK", "CANCELED"), nil))
	say(string(encoded(t, notice(marked(key, "CANCELED"), nil))) + "MARK_trailing")
	say(`{"secret":"MARK_secret","status":"CANCELED","orderId":"order-0001","transactionKey":"tx"}`)
	say(`{"eventType":"BILLING_DELETED","data":{"billingKey":"MARK_billing","customerKey":"MARK_customer"}}`)
	say(`MARK_not_json`)

	places := map[string]string{"answers": answers.String(), "logs": s.logs.String()}
	for _, table := range []string{"deliveries", "work", "events", "cancels", "payments"} {
		places[table] = strings.Join(text(t, s.db, `SELECT t::text FROM `+table+` AS t`), "\n")
	}
	for place, kept := range places {
		if at := strings.Index(kept, "MARK"); at >= 0 {
			t.Errorf("%s keep a mark: …%s…", place, kept[max(0, at-120):min(len(kept), at+60)])
		}
	}
	if !strings.Contains(places["deliveries"], key) {
		t.Error("deliveries say nothing at all")
	}
	if strings.Contains(places["logs"], "test_sk_") {
		t.Error("logs keep the secret key")
	}
}

// FuzzReceive: whatever is posted, a healthy service answers below 500, keeps one delivery with one outcome, and books
// no cancel that the gateway does not show.
func FuzzReceive(f *testing.F) {
	s := open(f, options{})
	key := s.paid(f, "order-0001", 50_000)
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":"` + key + `","status":"CANCELED"}}`,
		`{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":"` + key + `","status":"CANCELED","cancels":[{"transactionKey":"t"}]}}`,
		`{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":"pk_x","status":"\u0000","orderId":"a\ud800"}}`,
		`{"eventType":"CANCEL_STATUS_CHANGED","data":{"transactionKey":"t","cancelRequestId":"r","cancelStatus":"DONE"}}`,
		`{"orderId":"order-0001","status":"CANCELED","secret":"s","transactionKey":"t"}`,
		`{"entityType":"payout","eventType":"payout.changed"}`, "\xef\xbb\xbf{}", "{\"a\":1e-20000}", "{\"\xff\":\"\xff\"}",
	} {
		f.Add([]byte(seed), "whtrans_1", "0")
	}
	f.Fuzz(func(t *testing.T, body []byte, id, retried string) {
		before := one[int](t, s.db, `SELECT count(*)::integer FROM deliveries`)
		headers := map[string]string{}
		if printable(id) {
			headers["tosspayments-webhook-transmission-id"] = id
		}
		if printable(retried) {
			headers["tosspayments-webhook-transmission-retried-count"] = retried
		}
		got := s.sendWith(t, strings.NewReader(string(body)), headers)
		fruitless := got.status == 502 && got.outcome == "query_failed" // too many made-up notices of one payment
		if (got.status >= 500 && !fruitless) || got.outcome == "" {
			t.Fatalf("got %d %s", got.status, got.body)
		}
		if after := one[int](t, s.db, `SELECT count(*)::integer FROM deliveries WHERE outcome <> 'received'`); after != before+1 {
			t.Errorf("got %d more deliveries, want 1", after-before)
		}
		if n := one[int](t, s.db, `SELECT count(*)::integer FROM cancels`); n != 0 {
			t.Errorf("got %d cancels that nobody made", n)
		}
	})
}

// printable reports whether a header can carry it.
func printable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}
