package webhook_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/webhook"
)

// TestReceive_OddObjects: whatever the gateway shows for a payment whose cancel is announced, only an exact and whole
// cancel is booked; everything else is refused, leaves work, and never a zero entry, a panic or a guess.
func TestReceive_OddObjects(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		shows   fields // changes to the canceled payment
		status  int
		outcome webhook.Outcome
		booked  int64
	}{
		{"as announced", nil, 200, webhook.OutcomeAppliedFull, 50_000},
		{"cancels null", fields{"cancels": nil}, 502, webhook.OutcomeQueryFailed, 0},
		{"cancels empty", fields{"cancels": []fields{}}, 502, webhook.OutcomeQueryFailed, 0},
		{"cancels of null", fields{"cancels": []any{nil}}, 502, webhook.OutcomeQueryFailed, 0},
		{"cancels no list", fields{"cancels": "none"}, 502, webhook.OutcomeQueryFailed, 0},
		{"cancel of nothing", fields{"status": "PARTIAL_CANCELED", "balanceAmount": 50000, "cancels": []fields{cancelOf("tx_c1", 0, nil)}}, 502, webhook.OutcomeQueryFailed, 0},
		{"cancel below nothing", fields{"status": "PARTIAL_CANCELED", "balanceAmount": 50100, "cancels": []fields{cancelOf("tx_c1", -100, nil)}}, 502, webhook.OutcomeQueryFailed, 0},
		{"cancel above the payment", fields{"cancels": []fields{cancelOf("tx_c1", 50001, nil)}}, 502, webhook.OutcomeQueryFailed, 0},
		{"half a won", fields{"cancels": []fields{cancelOf("tx_c1", 49999.5, nil)}}, 502, webhook.OutcomeQueryFailed, 0},
		{"sum short of the balance", fields{"cancels": []fields{cancelOf("tx_c1", 12000, nil)}}, 502, webhook.OutcomeQueryFailed, 0},
		{"one key twice", fields{"cancels": []fields{cancelOf("tx_c1", 25000, nil), cancelOf("tx_c1", 25000, nil)}}, 502, webhook.OutcomeQueryFailed, 0},
		{"twins with two keys", fields{"cancels": []fields{cancelOf("tx_c1", 25000, nil), cancelOf("tx_c2", 25000, nil)}}, 200, webhook.OutcomeAppliedFull, 50_000},
		{"amounts as text", fields{"cancels": []fields{cancelOf("tx_c1", "50000", nil)}}, 200, webhook.OutcomeAppliedFull, 50_000},
		{"status never heard of", fields{"status": "PARTIAL_REFUND_PENDING"}, 409, webhook.OutcomeStateMismatch, 0},
		{"cancel status never heard of", fields{"status": "DONE", "balanceAmount": 50000, "cancels": []fields{cancelOf("tx_c1", 50000, fields{"cancelStatus": "WAITING"})}}, 409, webhook.OutcomeStateMismatch, 0},
		{"other order", fields{"orderId": "order-other"}, 409, webhook.OutcomeStateMismatch, 0},
		{"other amount", fields{"totalAmount": 60000, "cancels": []fields{cancelOf("tx_c1", 60000, nil)}}, 409, webhook.OutcomeStateMismatch, 0},
		{"other currency", fields{"currency": "USD"}, 409, webhook.OutcomeStateMismatch, 0},
		{"unknown currency", fields{"currency": "MUSD"}, 502, webhook.OutcomeQueryFailed, 0},
		{"other payment", fields{"paymentKey": "pk_other"}, 502, webhook.OutcomeQueryFailed, 0},
		{"new fields", fields{"tomorrow": fields{"deep": []int{1}}}, 200, webhook.OutcomeAppliedFull, 50_000},
		{"NUL in the reason", fields{"cancels": []fields{cancelOf("tx_c1", 50000, fields{"cancelReason": "a\x00b"})}}, 200, webhook.OutcomeAppliedFull, 50_000},
		{"emoji and marks", fields{"orderName": "\U0001f600 \ufeff\u202e \u2014", "cancels": []fields{cancelOf("tx_c1", 50000, fields{"cancelReason": "\U0001f600 \ufeff\u202e"})}}, 200, webhook.OutcomeAppliedFull, 50_000},
		{"canceled without a time", fields{"cancels": []fields{cancelOf("tx_c1", 50000, fields{"canceledAt": nil})}}, 200, webhook.OutcomeAppliedFull, 50_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, options{})
			key := s.paid(t, "order-0001", 50_000)
			body := encoded(t, notice(fields{"paymentKey": key, "orderId": "order-0001", "status": "CANCELED"}, nil))
			shown := encoded(t, whole(key, "order-0001", test.shows))
			s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, Payment: shown, N: 1})
			s.send(t, body).want(t, test.status, test.outcome)
			if got := s.payment(t, key).Canceled(); got != ledger.Won(test.booked) {
				t.Errorf("got %s canceled, want %d", got, test.booked)
			}
			if n := one[int](t, s.db, `SELECT count(*)::integer FROM cancels WHERE amount = 0`); n != 0 {
				t.Errorf("got %d cancels of nothing", n)
			}
			if test.status != 200 && len(s.work(t)) == 0 {
				t.Error("got no work for a refused cancel")
			}
			quarantined := one[int](t, s.db, `SELECT count(*)::integer FROM mismatches WHERE kind = 'quarantined' AND amount = 50000`)
			if (quarantined == 1) != (test.outcome == webhook.OutcomeQueryFailed) {
				t.Errorf("got %d answers quarantined", quarantined)
			}
		})
	}
}

// TestReceive_OddNotices: the body decides at most whether the gateway is asked. What is no notice of a cancel is
// ignored, what cannot be read is refused, and what the body says of amounts or times counts for nothing.
func TestReceive_OddNotices(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	said := func(status any) fields { return fields{"paymentKey": "KEY", "orderId": "ORDER", "status": status} }
	for i, test := range []struct {
		name    string
		body    any // text as it is, or an object
		status  int
		outcome webhook.Outcome
		asked   int
	}{
		{"unknown event", notice(said("CANCELED"), fields{"eventType": "PAYMENT_STATUS_CHANGED_V2"}), 200, webhook.OutcomeEventIgnored, 0},
		{"billing key", notice(fields{"billingKey": "b"}, fields{"eventType": "BILLING_DELETED"}), 200, webhook.OutcomeEventIgnored, 0},
		{"method", notice(fields{"methodKey": "m", "status": "ENABLED"}, fields{"eventType": "METHOD_UPDATED"}), 200, webhook.OutcomeEventIgnored, 0},
		{"nothing", fields{}, 200, webhook.OutcomeEventIgnored, 0},
		{"done", notice(said("DONE"), nil), 200, webhook.OutcomeStatusIgnored, 0},
		{"expired", notice(said("EXPIRED"), nil), 200, webhook.OutcomeStatusIgnored, 0},
		{"aborted", notice(said("ABORTED"), nil), 200, webhook.OutcomeStatusIgnored, 0},
		{"expired, never seen", notice(fields{"paymentKey": "pk_zz", "status": "EXPIRED"}, nil), 200, webhook.OutcomeStatusIgnored, 0},
		{"expired, no key", notice(fields{"status": "EXPIRED"}, nil), 200, webhook.OutcomeStatusIgnored, 0},
		{"canceled, no key", notice(fields{"status": "CANCELED"}, nil), 400, webhook.OutcomeBodyUnparsable, 0},
		{"data null", notice(nil, nil), 400, webhook.OutcomeBodyUnparsable, 0},
		{"data a list", notice([]int{}, nil), 400, webhook.OutcomeBodyUnparsable, 0},
		{"reversed", notice(said("REVERSED"), nil), 200, webhook.OutcomeAppliedFull, 1},
		{"other spelling", notice(said("CANCELLED"), nil), 200, webhook.OutcomeAppliedFull, 1},
		{"lower case", notice(said("canceled"), nil), 200, webhook.OutcomeAppliedFull, 1},
		{"no status", notice(said(nil), nil), 200, webhook.OutcomeAppliedFull, 1},
		{"status a number", notice(said(7), nil), 200, webhook.OutcomeAppliedFull, 1},
		{"old form", notice(said("CANCELED"), nil), 200, webhook.OutcomeAppliedFull, 1},
		{"no time", notice(said("CANCELED"), fields{"createdAt": nil}), 200, webhook.OutcomeAppliedFull, 1},
		{"empty time", notice(said("CANCELED"), fields{"createdAt": ""}), 200, webhook.OutcomeAppliedFull, 1},
		{"whole seconds", notice(said("CANCELED"), fields{"createdAt": "2026-05-01T13:30:00"}), 200, webhook.OutcomeAppliedFull, 1},
		{"nine digits", notice(said("CANCELED"), fields{"createdAt": "2026-05-01T13:30:00.653270123"}), 200, webhook.OutcomeAppliedFull, 1},
		{"zoned", notice(said("CANCELED"), fields{"createdAt": "2026-05-01T13:30:00+0900"}), 200, webhook.OutcomeAppliedFull, 1},
		{"NUL in the body", notice(fields{"paymentKey": "KEY", "status": "CANCELED", "orderName": "a\x00b"}, nil), 200, webhook.OutcomeAppliedFull, 1},
		{"half a surrogate", `{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":"KEY","status":"CANCELED","orderName":"\ud800","x":"\udc00\u0000"}}`, 200, webhook.OutcomeAppliedFull, 1},
		{"huge numbers", `{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":"KEY","status":"CANCELED","totalAmount":1e400,"a":1e-20000,"b":1e20000,"c":-0.0e-9999,"d":123456789012345678901234567890123456789012345678901234567890}}`, 200, webhook.OutcomeAppliedFull, 1},
		{"named twice", `{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":"KEY","status":"DONE","status":"CANCELED"}}`, 200, webhook.OutcomeAppliedFull, 1},
		{"byte order mark", "\ufeff" + `{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":"KEY","status":"CANCELED"}}`, 200, webhook.OutcomeAppliedFull, 1},
		{"empty", ``, 400, webhook.OutcomeBodyUnparsable, 0},
		{"null", `null`, 400, webhook.OutcomeBodyUnparsable, 0},
		{"a list", `[]`, 400, webhook.OutcomeBodyUnparsable, 0},
		{"a text", `"x"`, 400, webhook.OutcomeBodyUnparsable, 0},
		{"two objects", `{"eventType":"BILLING_DELETED"}{"eventType":"BILLING_DELETED"}`, 400, webhook.OutcomeBodyUnparsable, 0},
		{"comma at the end", `{"eventType":"BILLING_DELETED",}`, 400, webhook.OutcomeBodyUnparsable, 0},
		{"form", `eventType=PAYMENT_STATUS_CHANGED&status=CANCELED`, 400, webhook.OutcomeBodyUnparsable, 0},
		{"bad bytes in the key", "{\"eventType\":\"PAYMENT_STATUS_CHANGED\",\"data\":{\"paymentKey\":\"KE\xffY\",\"status\":\"CANCELED\"}}", 400, webhook.OutcomeBodyUnparsable, 0},
		{"deep", strings.Repeat(`{"a":`, 20_000) + `1` + strings.Repeat(`}`, 20_000), 400, webhook.OutcomeBodyUnparsable, 0},
	} {
		orderID := fmt.Sprintf("order-%04d", i)
		key := s.paid(t, orderID, 50_000)
		s.cancel(t, key, 0)
		s.sim.ResetCalls()
		text, ok := test.body.(string)
		if !ok {
			text = string(encoded(t, test.body))
		}
		text = strings.NewReplacer(`"KEY"`, `"`+key+`"`, `"ORDER"`, `"`+orderID+`"`).Replace(text)
		media := map[string]string{"Content-Type": []string{"", "text/plain", "application/json"}[i%3]}
		got := s.sendWith(t, strings.NewReader(text), media)
		if got.status != test.status || got.outcome != string(test.outcome) {
			t.Errorf("%s: got %d %s, want %d %s", test.name, got.status, got.body, test.status, test.outcome)
		}
		if got := len(s.sim.Calls()); got != test.asked {
			t.Errorf("%s: got %d questions, want %d", test.name, got, test.asked)
		}
		if want := test.outcome == webhook.OutcomeAppliedFull; (len(s.payment(t, key).Cancels) == 1) != want {
			t.Errorf("%s: got %d cancels", test.name, len(s.payment(t, key).Cancels))
		}
	}
	if got := one[int](t, s.db, `SELECT count(*)::integer FROM cancels WHERE canceled_at <> $1`, start); got != 0 {
		t.Errorf("got %d cancels at another time than the gateway's own", got)
	}
}

// TestReceive_Forged: a made-up cancel costs one question and changes nothing; a made-up payment costs none.
func TestReceive_Forged(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.paid(t, "order-0001", 50_000)
	s.sim.ResetCalls()
	forged := encoded(t, notice(whole(key, "order-0001", nil), nil))
	signed := map[string]string{"tosspayments-webhook-signature": "v1:AAAA,v1:BBBB"}
	for _, headers := range []map[string]string{nil, signed} {
		s.sendWith(t, bytes.NewReader(forged), headers).want(t, 409, webhook.OutcomeStateMismatch)
	}
	if got := len(s.sim.Calls()); got != 2 {
		t.Errorf("got %d questions, want one each", got)
	}
	s.wantBooks(t, key, ledger.StatusDone, 0, 0)
	for table, want := range map[string]int{"cancels": 0, "mismatches": 0, "work WHERE closed_at IS NULL": 1} {
		if got := one[int](t, s.db, `SELECT count(*)::integer FROM `+table); got != want {
			t.Errorf("got %d in %s, want %d", got, table, want)
		}
	}
	s.send(t, encoded(t, notice(whole("pk_made_up", "order-0001", nil), nil))).want(t, 404, webhook.OutcomePaymentNotFound)
	if got := len(s.sim.Calls()); got != 2 {
		t.Errorf("got %d questions, want none for a made-up payment", got-2)
	}
	if got := one[bool](t, s.db, `SELECT body IS NULL AND order_id IS NULL FROM deliveries WHERE payment_key = 'pk_made_up'`); !got {
		t.Error("the body of a payment never seen was kept")
	}
}

// TestReceive_KeysThatWander: a payment key never becomes another address.
func TestReceive_KeysThatWander(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	for _, key := range []string{
		"../settlements", "pk_1/cancel", "pk_1?x=1", "pk_1#f", "pk_1%2Fcancel", "http://127.0.0.1:9/", strings.Repeat("a", 300),
		"", "pk_1\nX-Injected: 1", "pk_1;rm", "pk 1", ".", "..", "pk_\u0000", "결제",
	} {
		s.send(t, encoded(t, notice(fields{"paymentKey": key, "status": "CANCELED"}, nil))).want(t, 400, webhook.OutcomeBodyUnparsable)
	}
	if got := s.sim.Calls(); len(got) != 0 {
		t.Errorf("got questions %v, want none", got)
	}
	if strings.Contains(s.logs.String(), "X-Injected") {
		t.Error("the key was logged")
	}
}

// TestReceive_OtherAttempt: notices about a failed payment never touch the order that another payment has paid.
func TestReceive_OtherAttempt(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	first := s.order(t, "order-0001", 50_000, tosssim.Card)
	intended := s.intend(t, "order-0001", first, 50_000)
	s.record(t, ledger.Observation{
		PaymentKey: first, Channel: ledger.ChannelConfirm, Evidence: ledger.EvidenceRefused, Attempt: intended.Payment.Attempt,
		AskedAt: s.clock.Now(), SeenAt: s.clock.Now(),
	})
	if err := s.sim.Abort(first, "REJECT_CARD_PAYMENT"); err != nil {
		t.Fatal(err)
	}
	second := s.sim.Authenticate(tosssim.Checkout{OrderID: "order-0001", Amount: 50_000})
	s.intend(t, "order-0001", second, 50_000)
	s.approve(t, second)
	s.learn(t, second, ledger.ChannelConfirm)
	for _, word := range []string{"ABORTED", "EXPIRED"} {
		s.send(t, encoded(t, notice(object(first, "order-0001", fields{"status": word}), nil))).want(t, 200, webhook.OutcomeStatusIgnored)
	}
	s.send(t, encoded(t, notice(whole(first, "order-0001", nil), nil))).want(t, 409, webhook.OutcomeStateMismatch)
	s.wantBooks(t, second, ledger.StatusDone, 0, 0)
	order, err := ledger.LoadOrder(t.Context(), s.db, "order-0001")
	if err != nil || order.Status != ledger.OrderPaid {
		t.Errorf("got order %s, %v, want it paid", order.Status, err)
	}
}

// TestReceive_LatePaid: an old notice that says paid, and a gateway that answers from before the cancel, never bring a
// canceled order back; a cancel that such an answer lacks is not acknowledged.
func TestReceive_LatePaid(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.paid(t, "order-0001", 50_000)
	paid := encoded(t, notice(object(key, "order-0001", nil), nil))
	_, part := s.cancel(t, key, 12_000)
	s.send(t, part).want(t, 200, webhook.OutcomeAppliedPartial)
	_, rest := s.cancel(t, key, 38_000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, N: 1}) // shows the first part only
	s.send(t, rest).want(t, 409, webhook.OutcomeStateMismatch)
	if got := s.work(t); len(got) != 1 {
		t.Errorf("got work %v, want the claim of the second part", got)
	}
	s.send(t, rest).want(t, 200, webhook.OutcomeAppliedFull)
	s.sendWith(t, bytes.NewReader(paid), map[string]string{"tosspayments-webhook-transmission-retried-count": "3"}).
		want(t, 200, webhook.OutcomeStatusIgnored)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, Payment: encoded(t, object(key, "order-0001", nil)), N: 1})
	s.learn(t, key, ledger.ChannelSweep)
	s.wantBooks(t, key, ledger.StatusCanceled, 50_000, 2)
}

// TestReceive_Asynchronous: a cancel that the gateway is still working on is not booked and not acknowledged, but owed;
// when it ends it is booked, or owed no longer.
func TestReceive_Asynchronous(t *testing.T) {
	t.Parallel()
	for _, done := range []bool{true, false} {
		s := open(t, options{})
		key := s.paidBy(t, "order-0001", 50_000, tosssim.ForeignEasyPay)
		transaction, err := s.sim.CancelInDashboard(key, 12_000, "고객 변심")
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := s.sim.Payment(key)
		data := strings.Replace(string(raw), `"status":"DONE"`, `"status":"PARTIAL_CANCELED"`, 1)
		early := fmt.Appendf(nil, `{"eventType":"PAYMENT_STATUS_CHANGED","data":%s}`, data)
		s.send(t, early).want(t, 409, webhook.OutcomeStateMismatch)
		if got := s.work(t); len(got) != 1 || !strings.HasPrefix(got[0], "cancel_in_progress "+transaction) {
			t.Errorf("got work %v, want the cancel in progress", got)
		}
		if err := s.sim.FinishCancel(transaction, done); err != nil {
			t.Fatal(err)
		}
		var changed []byte
		for _, n := range s.sim.Notices() {
			if n.EventType == "CANCEL_STATUS_CHANGED" {
				changed = n.Body
			}
		}
		if done {
			s.send(t, changed).want(t, 200, webhook.OutcomeAppliedPartial)
			s.wantBooks(t, key, ledger.StatusPartiallyCanceled, 12_000, 1)
			s.send(t, changed).want(t, 200, webhook.OutcomeEventIgnored) // nothing is owed any more
			continue
		}
		s.send(t, changed).want(t, 200, webhook.OutcomeStatusIgnored)
		if got := s.work(t); len(got) != 1 || !strings.HasPrefix(got[0], "cancel_in_progress "+transaction+" due 00:00:00") {
			t.Errorf("got work %v, want it due now", got)
		}
		s.send(t, early).want(t, 409, webhook.OutcomeStateMismatch)
		s.wantBooks(t, key, ledger.StatusDone, 0, 0)
		if got := s.work(t); len(got) != 0 {
			t.Errorf("got work %v, want none: the gateway gave the cancel up", got)
		}
	}
}
