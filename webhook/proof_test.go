package webhook_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/webhook"
)

// deposited is a virtual account that is paid, with a first part canceled and booked. It returns what the gateway
// showed then.
func (s *shop) deposited(tb testing.TB, orderID string) (key string, old []byte) {
	tb.Helper()
	key = s.paidBy(tb, orderID, 70_000, tosssim.VirtualAccount)
	if err := s.sim.Deposit(key); err != nil {
		tb.Fatal(err)
	}
	s.learn(tb, key, ledger.ChannelSweep)
	s.clock.Advance(time.Hour)
	s.cancel(tb, key, 20_000)
	s.learn(tb, key, ledger.ChannelSweep)
	old, _ = s.sim.Payment(key)
	s.clock.Advance(time.Hour)
	return key, old
}

// stale makes the gateway answer once from before.
func (s *shop) stale(object []byte) {
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, N: 1, Payment: object})
}

// claims lists the cancels that open claims name, "-" for one that names none.
func (s *shop) claims(tb testing.TB) []string {
	tb.Helper()
	return text(tb, s.db, `SELECT COALESCE(transaction_key, '-') FROM work WHERE closed_at IS NULL AND kind = 'cancel_claimed' ORDER BY 1`)
}

// TestReceive_CallbackNamesItsCancel: a callback about a second cancel is not acknowledged on the strength of the
// first, and its claim names the cancel. Once the gateway shows it, it is booked and copies need no question.
func TestReceive_CallbackNamesItsCancel(t *testing.T) {
	t.Parallel()
	for _, amount := range []int64{0, 10_000} {
		s := open(t, options{})
		key, old := s.deposited(t, "order-0001")
		transaction, _ := s.cancel(t, key, amount)
		all := s.callbacks()
		callback := all[len(all)-1]
		s.stale(old)
		s.send(t, callback).want(t, 409, webhook.OutcomeStateMismatch)
		if got := s.claims(t); len(got) != 1 || got[0] != transaction {
			t.Errorf("got claims %v, want one of %s", got, transaction)
		}
		if got := s.send(t, callback); got.status != 200 {
			t.Errorf("got %d %s, want 200", got.status, got.body)
		}
		s.sim.ResetCalls()
		s.send(t, callback).want(t, 200, webhook.OutcomeDuplicateSkipped)
		if got := len(s.sim.Calls()); got != 0 {
			t.Errorf("got %d questions for a copy, want none", got)
		}
		if got := s.claims(t); len(got) != 0 {
			t.Errorf("got claims %v, want none", got)
		}
	}
}

// TestReceive_CallbackWithTheDepositsKey: should a callback carry the key of the deposit, it names no cancel, and is
// judged like any notice that names none.
func TestReceive_CallbackWithTheDepositsKey(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key, old := s.deposited(t, "order-0001")
	s.cancel(t, key, 10_000)
	if _, err := s.db.Exec(t.Context(), `UPDATE captures SET transaction_key = 'tx_deposit'`); err != nil {
		t.Fatal(err)
	}
	all := s.callbacks()
	body := regexp.MustCompile(`"transactionKey":"[^"]*"`).ReplaceAll(all[len(all)-1], []byte(`"transactionKey":"tx_deposit"`))
	s.stale(old)
	s.send(t, body).want(t, 409, webhook.OutcomeStateMismatch)
	if got := s.claims(t); len(got) != 1 || got[0] != "-" {
		t.Errorf("got claims %v, want one that names no cancel", got)
	}
	s.send(t, body).want(t, 200, webhook.OutcomeAppliedPartial)
	if got := s.claims(t); len(got) != 0 {
		t.Errorf("got claims %v, want none", got)
	}
}

// TestReceive_UnnamedNeedsItsOwnCancel: a notice that names no cancel is acknowledged when our books hold one that it
// can be about: nothing is left, no more is left than it says, or a cancel as young as the notice. Anything else would
// take an older cancel for the new one.
func TestReceive_UnnamedNeedsItsOwnCancel(t *testing.T) {
	t.Parallel()
	const fresh, older, newer = "2026-04-15T11:00:01.5", "2026-04-15T10:00:01.5", "2026-04-15T11:00:30"
	for _, test := range []struct {
		name      string
		data      string // members beside the payment key
		createdAt string
		stale     bool // the gateway answers from before the second cancel
		status    int
		reason    string
	}{
		{"canceled, old answer", `"status":"CANCELED"`, fresh, true, 409, "balance"},
		{"canceled, part is left", `"status":"CANCELED"`, older, false, 409, "balance"},
		{"part, old answer", `"status":"PARTIAL_CANCELED"`, fresh, true, 409, "no_such_cancel"},
		{"part, old answer, untimed", `"status":"PARTIAL_CANCELED"`, "", true, 409, "no_such_cancel"},
		{"part, old answer, about the first", `"status":"PARTIAL_CANCELED"`, older, true, 200, ""},
		{"part", `"status":"PARTIAL_CANCELED"`, fresh, false, 200, ""},
		{"part, untimed", `"status":"PARTIAL_CANCELED"`, "", false, 200, ""},
		{"part, younger than any cancel", `"status":"PARTIAL_CANCELED"`, newer, false, 409, "no_such_cancel"},
		{"less is left, old answer", `"status":"PARTIAL_CANCELED","currency":"KRW","balanceAmount":40000`, older, true, 409, "balance"},
		{"less is left", `"status":"PARTIAL_CANCELED","currency":"KRW","balanceAmount":40000`, newer, false, 200, ""},
		{"more is left", `"status":"PARTIAL_CANCELED","currency":"KRW","balanceAmount":50000`, newer, false, 200, ""},
		{"unknown status, old answer", `"status":"REVERSED"`, fresh, true, 409, "no_such_cancel"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, options{})
			key := s.paid(t, "order-0001", 70_000)
			s.cancel(t, key, 20_000)
			s.learn(t, key, ledger.ChannelSweep)
			old, _ := s.sim.Payment(key)
			s.clock.Advance(time.Hour)
			s.cancel(t, key, 10_000)
			s.clock.Advance(2 * time.Second)
			if test.stale {
				s.stale(old)
			}
			body := fmt.Appendf(nil, `{"createdAt":%q,"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":%q,%s}}`, test.createdAt, key, test.data)
			got := s.send(t, body)
			reason := one[string](t, s.db, `SELECT reason FROM deliveries`)
			if got.status != test.status || reason != test.reason {
				t.Errorf("got %d %s (%s), want %d (%s)", got.status, got.outcome, reason, test.status, test.reason)
			}
			if claims := s.claims(t); (len(claims) == 1) != (test.status == 409) {
				t.Errorf("got claims %v for %d", claims, got.status)
			}
		})
	}
}

// TestReceive_UnnamedNothingLeft: with nothing left there is no cancel that could be missing.
func TestReceive_UnnamedNothingLeft(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.paid(t, "order-0001", 70_000)
	s.cancel(t, key, 20_000)
	s.learn(t, key, ledger.ChannelSweep)
	s.cancel(t, key, 0)
	s.send(t, encoded(t, notice(fields{"paymentKey": key, "status": "CANCELED"}, fields{"createdAt": "2026-06-01T10:00:00"}))).
		want(t, 200, webhook.OutcomeAppliedFull)
}

// TestReceive_GivenUpBesideDone: a cancel that the gateway gave up is owed nothing, and does not keep the finished one
// beside it from being acknowledged, whoever says so: the notice or only the gateway.
func TestReceive_GivenUpBesideDone(t *testing.T) {
	t.Parallel()
	for _, told := range []string{"ABORTED", "IN_PROGRESS"} {
		s := open(t, options{})
		key := s.paid(t, "order-0001", 50_000)
		parts := func(first string) fields {
			return fields{"status": "PARTIAL_CANCELED", "balanceAmount": 40000, "cancels": []fields{
				cancelOf("tx_a", 5000, fields{"cancelStatus": first}), cancelOf("tx_b", 10000, nil),
			}}
		}
		body := encoded(t, notice(whole(key, "order-0001", parts(told)), nil))
		shown := encoded(t, whole(key, "order-0001", parts("ABORTED")))
		for _, want := range []webhook.Outcome{webhook.OutcomeAppliedPartial, webhook.OutcomeDuplicateSkipped} {
			s.stale(shown)
			s.send(t, body).want(t, 200, want)
		}
		s.wantBooks(t, key, ledger.StatusPartiallyCanceled, 10_000, 1)
		if got := s.work(t); len(got) != 0 {
			t.Errorf("got work %v, want none", got)
		}
	}
}

// TestReceive_GivenUp: a notice about nothing but a cancel that the gateway gave up is refused and leaves no claim,
// also beside an older cancel.
func TestReceive_GivenUp(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.paid(t, "order-0001", 50_000)
	body := encoded(t, notice(fields{"paymentKey": key, "status": "PARTIAL_CANCELED", "cancels": []fields{{"transactionKey": "tx_a"}}}, nil))
	for _, cancels := range [][]fields{
		{cancelOf("tx_a", 5000, fields{"cancelStatus": "ABORTED"})},
		{cancelOf("tx_a", 5000, fields{"cancelStatus": "ABORTED"}), cancelOf("tx_b", 10000, nil)},
	} {
		o := object(key, "order-0001", fields{"cancels": cancels})
		if len(cancels) == 2 {
			o["status"], o["balanceAmount"] = "PARTIAL_CANCELED", 40000
		}
		s.stale(encoded(t, o))
		s.send(t, body).want(t, 409, webhook.OutcomeStateMismatch)
		if got := s.work(t); len(got) != 0 {
			t.Errorf("got work %v, want none", got)
		}
	}
}

// TestReceive_ClaimsFull: made-up cancels fill the room for named claims, never the one for a cancel without a name: a
// failed notice always leaves work.
func TestReceive_ClaimsFull(t *testing.T) {
	t.Parallel()
	s := open(t, options{paths: quick()})
	key := s.paid(t, "order-0001", 50_000)
	var made []fields
	for i := range 25 {
		made = append(made, fields{"transactionKey": fmt.Sprintf("fake_%02d", i)})
	}
	s.send(t, encoded(t, notice(fields{"paymentKey": key, "status": "CANCELED", "cancels": made[:20]}, nil))).want(t, 409, webhook.OutcomeStateMismatch)
	if got := s.claims(t); len(got) != 20 || got[0] == "-" {
		t.Errorf("got claims %v, want the twenty named ones", got)
	}
	_, body := s.cancel(t, key, 10_000)
	s.clock.Advance(time.Hour)
	failed := s.clock.Now()
	for range 2 {
		s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, N: 1})
		s.send(t, body).want(t, 502, webhook.OutcomeQueryFailed)
		s.clock.Advance(time.Minute)
	}
	if got := s.claims(t); len(got) != 21 || got[0] != "-" {
		t.Errorf("got claims %v, want one more that names no cancel", got)
	}
	if got := one[time.Time](t, s.db, `SELECT notice_failed_at FROM work WHERE transaction_key IS NULL AND kind = 'cancel_claimed'`); !got.Equal(failed) {
		t.Errorf("got a first failure at %s, want %s", got, failed)
	}
	s.send(t, encoded(t, notice(fields{"paymentKey": key, "status": "CANCELED", "cancels": made}, nil))).want(t, 409, webhook.OutcomeStateMismatch)
	if got := s.claims(t); len(got) != 21 {
		t.Errorf("got claims %v, want no more than before", got)
	}
	s.wantBooks(t, key, ledger.StatusPartiallyCanceled, 10_000, 1)
}

// TestReceive_MoreCancelsThanClaims: a failed notice that names more cancels than there is room for also leaves a claim
// without a name.
func TestReceive_MoreCancelsThanClaims(t *testing.T) {
	t.Parallel()
	s := open(t, options{paths: quick()})
	key := s.paid(t, "order-0001", 50_000)
	var made []fields
	for i := range 25 {
		made = append(made, fields{"transactionKey": fmt.Sprintf("tx_%02d", i)})
	}
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, N: 1})
	s.send(t, encoded(t, notice(fields{"paymentKey": key, "status": "CANCELED", "cancels": made}, nil))).want(t, 502, webhook.OutcomeQueryFailed)
	if got := s.claims(t); len(got) != 21 || got[0] != "-" {
		t.Errorf("got claims %v, want twenty and one that names no cancel", got)
	}
}

// TestReceive_ClaimOutlivesAnOldAnswer: a claim that names no cancel is not settled by an answer that shows only what
// was booked before the notice failed.
func TestReceive_ClaimOutlivesAnOldAnswer(t *testing.T) {
	t.Parallel()
	s := open(t, options{paths: quick()})
	key, old := s.deposited(t, "order-0001")
	s.cancel(t, key, 10_000)
	body := encoded(t, notice(fields{"paymentKey": key, "status": "PARTIAL_CANCELED"}, nil))
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, N: 1})
	s.send(t, body).want(t, 502, webhook.OutcomeQueryFailed)
	s.clock.Advance(time.Minute)
	s.stale(old)
	s.learn(t, key, ledger.ChannelSweep)
	if got := s.claims(t); len(got) != 1 {
		t.Fatalf("got claims %v, want the one that is still owed", got)
	}
	s.learn(t, key, ledger.ChannelSweep)
	if got := s.claims(t); len(got) != 0 {
		t.Errorf("got claims %v, want none: the cancel is booked", got)
	}
}
