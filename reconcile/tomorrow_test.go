package reconcile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// listed is a row of the list about a cancel of 1,000 won, with what is otherwise.
func (s *shop) listed(transactionKey, paymentKey, orderID string, change map[string]any) []byte {
	s.t.Helper()
	row := map[string]any{
		"mId": "tsimshop01", "transactionKey": transactionKey, "paymentKey": paymentKey, "orderId": orderID, "method": "카드",
		"status": "CANCELED", "transactionAt": s.clock.Now().Format(time.RFC3339), "currency": "KRW", "amount": 1000,
	}
	maps.Copy(row, change)
	written, err := json.Marshal(row)
	s.must(err)
	return written
}

// TestPoll_WordsOfTomorrow: a status that is written otherwise than this version knows it, or not at all, is no cancel and
// no capture, however much it looks like one. A person is told, once, and the books stay as they are.
func TestPoll_WordsOfTomorrow(t *testing.T) {
	t.Parallel()
	for _, status := range []string{
		`"REVERSED"`, `"PARTIAL_REFUND_PENDING"`, `"WAITING"`, `"CANCELLED"`, `"canceled"`, `"Done"`, `" CANCELED"`, `"취소"`, `""`, `null`, `7`, `["CANCELED"]`,
	} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 1000)
			s.clock.Advance(time.Minute)
			s.must(s.sim.PutTransaction(s.listed("odd", key, "order-1", map[string]any{"status": json.RawMessage(status)})))
			s.clock.Advance(time.Minute)
			for range 2 {
				p := s.poll()
				s.sweep()
				if p.Rows != 2 || p.Quarantined != 0 {
					t.Errorf("got %+v", p)
				}
				s.clock.Advance(time.Minute)
			}
			if n := s.number(`SELECT count(*) FROM mismatches`); n != 1 || s.mismatches(ledger.KindUnrecognized) != 1 {
				t.Errorf("got %d mismatches, %d of them about the word", n, s.mismatches(ledger.KindUnrecognized))
			}
			if got := s.text(`SELECT kind FROM mirror WHERE transaction_key = 'odd'`); got != "unrecognized" || s.payment(key).Status != ledger.StatusDone {
				t.Errorf("got kind %s and the payment %s", got, s.payment(key).Status)
			}
			if st := s.audit(reconcile.ScopeAll); len(st.Sums) != 0 || st.Captures[0].Listed.Count != 1 {
				t.Errorf("it is counted: %+v %+v", st.Sums, st.Captures)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestPoll_FieldsOfTomorrow: a row of ours needs its keys, its time and its money, and nothing else. What lacks one of
// them is kept for a person to see, and hides nothing of its page.
func TestPoll_FieldsOfTomorrow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		change      map[string]any
		quarantined bool
	}{
		{"new fields", map[string]any{"settlement": map[string]string{"status": "SOON"}, "tags": []any{1, nil}, "amountV2": "1000.00"}, false},
		{"no method", map[string]any{"method": nil}, false},
		{"no merchant id", map[string]any{"mId": nil}, false},
		{"no order id", map[string]any{"orderId": nil}, false},
		{"text for a flag", map[string]any{"useEscrow": "no"}, false},
		{"no amount", map[string]any{"amount": nil}, true},
		{"text for an amount", map[string]any{"amount": "many"}, true},
		{"no currency", map[string]any{"currency": nil}, true},
		{"a currency never heard of", map[string]any{"currency": "XXX"}, true},
		{"no payment key", map[string]any{"paymentKey": nil}, true},
		{"no time", map[string]any{"transactionAt": nil}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			first, second := s.paid("order-1", 1000), s.paid("order-2", 1000)
			s.clock.Advance(time.Minute)
			rows := fmt.Sprintf("[%s,%s]", s.listed(s.canceled(second, 0), second, "order-2", test.change), s.listed(s.canceled(first, 0), first, "order-1", nil))
			s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Body, Body: rows, N: -1})
			s.clock.Advance(time.Minute)
			p := s.poll()
			s.sweep()
			quarantined := 0
			if test.quarantined {
				quarantined = 1
			}
			if p.Rows != 2 || p.Quarantined != quarantined || s.mismatches(ledger.KindQuarantined) != quarantined {
				t.Errorf("got %+v and %d mismatches, want %d quarantined", p, s.mismatches(ledger.KindQuarantined), quarantined)
			}
			if got := s.payment(first).Status; got != ledger.StatusCanceled {
				t.Errorf("the cancel beside it: got %s", got)
			}
			if canceled := s.payment(second).Status == ledger.StatusCanceled; canceled == test.quarantined {
				t.Errorf("the odd row's cancel is found: %t", canceled)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}
