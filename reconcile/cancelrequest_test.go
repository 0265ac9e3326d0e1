package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
)

// request reserves a cancel of our own and sends it.
func (s *shop) request(id, key string, amount *ledger.Money) ledger.CancelRequest {
	s.t.Helper()
	var r ledger.CancelRequest
	s.tx(func(tx pgx.Tx) error {
		var err error
		r, err = s.books.RequestCancel(s.t.Context(), tx, ledger.CancelOrder{
			RequestID: id, PaymentKey: key, Amount: amount, Reason: "changed mind", RequestedBy: "test",
		})
		return err
	})
	permit, err := s.client.ReserveCancel(s.t.Context())
	s.must(err)
	defer permit.Release()
	out := pgclient.CancelRequest{PaymentKey: key, Reason: r.Reason, Refundable: r.Refundable, IdempotencyKey: r.IdempotencyKey()}
	if amount != nil {
		out.Amount = &r.Amount
	}
	s.client.Cancel(s.t.Context(), permit, out)
	return r
}

func (s *shop) requested(id string) ledger.CancelRequest {
	s.t.Helper()
	r, err := ledger.LoadCancelRequest(s.t.Context(), s.db, id)
	s.must(err)
	return r
}

// TestCancelRequest_LostReply: our cancel was done and its answer lost, while somebody canceled the same amount in the
// dashboard. Sending the same request again settles ours with its own cancel, and books both once.
func TestCancelRequest_LostReply(t *testing.T) {
	t.Parallel()
	for _, dashboard := range []string{"none", "before", "after"} {
		t.Run("dashboard "+dashboard, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 10_000)
			part := ledger.Won(3_000)
			if dashboard == "before" {
				s.canceled(key, 3_000)
				s.record(s.ask(ledger.ChannelWebhook, key))
			}
			s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.LostReply})
			s.request("req-1", key, &part)
			if dashboard == "after" {
				s.canceled(key, 3_000)
			}
			s.clock.Advance(time.Minute)
			s.sweep()
			r := s.requested("req-1")
			if r.Status != ledger.CancelRequestDone || !s.payment(key).HasCancel(r.TransactionKey) {
				t.Errorf("got %s with %q", r.Status, r.TransactionKey)
			}
			s.record(s.ask(ledger.ChannelWebhook, key))
			if got, want := s.payment(key).Canceled().Minor, s.sim.Totals().Canceled["KRW"]; got != want {
				t.Errorf("got %d canceled, the gateway says %d", got, want)
			}
			if got := s.text(`SELECT reason FROM cancels WHERE transaction_key = $1`, r.TransactionKey); got != "changed mind" {
				t.Errorf("settled with the cancel made for %q", got)
			}
			if n := s.number(`SELECT count(*) FROM work WHERE closed_at IS NULL`); n != 0 {
				t.Errorf("%d rows of work are left", n)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestCancelRequest_NeverArrived: nothing happened; sending the same request again does it, once.
func TestCancelRequest_NeverArrived(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 10_000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.Reset})
	s.request("req-1", key, nil)
	s.clock.Advance(time.Minute)
	s.sweep()
	if r := s.requested("req-1"); r.Status != ledger.CancelRequestDone {
		t.Errorf("got %s", r.Status)
	}
	if p := s.payment(key); p.Status != ledger.StatusCanceled || s.sim.Totals().Cancels != 1 {
		t.Errorf("got %s and %d cancels", p.Status, s.sim.Totals().Cancels)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestCancelRequest_Outcomes: what the repeated answer does not say, the payment does.
func TestCancelRequest_Outcomes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		first tosssim.Fault
		then  func(s *shop, key string)
		want  ledger.CancelRequestStatus
	}{
		{
			"refused for good",
			tosssim.Fault{Kind: tosssim.Refuse, Body: "EXCEED_CANCEL_LIMIT"},
			func(*shop, string) {}, ledger.CancelRequestRefused,
		},
		{
			"an ambiguous answer that is bound, and nothing happened",
			tosssim.Fault{Kind: tosssim.Refuse, Body: "PROVIDER_ERROR"},
			func(*shop, string) {}, ledger.CancelRequestRefused,
		},
		{
			name: "another cancel came first", first: tosssim.Fault{Kind: tosssim.Reset},
			then: func(s *shop, key string) { s.canceled(key, 2_000) }, want: ledger.CancelRequestRefused,
		},
		{
			name: "another cancel took its very place", first: tosssim.Fault{Kind: tosssim.Reset},
			then: func(s *shop, key string) { s.canceled(key, 3_000) }, want: ledger.CancelRequestDone,
		},
		{
			"done, and the answer that came was a server's error",
			tosssim.Fault{Kind: tosssim.DoThenStatus, Code: 500},
			func(*shop, string) {}, ledger.CancelRequestDone,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 10_000)
			test.first.Op = tosssim.Cancel
			s.sim.Fail(test.first)
			part := ledger.Won(3_000)
			s.request("req-1", key, &part)
			test.then(s, key)
			s.clock.Advance(time.Minute)
			s.sweep()
			s.clock.Advance(6 * time.Minute)
			s.sweep()
			if r := s.requested("req-1"); r.Status != test.want {
				t.Errorf("got %s (%s), want %s", r.Status, r.Answer, test.want)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestCancelRequest_TooOld: a key that the gateway may have forgotten is never sent again. What the payment shows ends
// the request, and what it does not show a person compares.
func TestCancelRequest_TooOld(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		fault      tosssim.Kind
		then       func(s *shop, key string)
		want       ledger.CancelRequestStatus
		mismatches int
	}{
		{"done", tosssim.LostReply, func(*shop, string) {}, ledger.CancelRequestDone, 0},
		{"never arrived", tosssim.Reset, func(*shop, string) {}, ledger.CancelRequestRefused, 0},
		{"cannot be told", tosssim.LostReply, func(s *shop, key string) {
			s.shows(key, fmt.Sprintf(`{"transactionKey":"c1","cancelAmount":3000,"cancelStatus":"DONE","canceledAt":%q}`, s.clock.Now().Format(time.RFC3339)))
		}, ledger.CancelRequestUnknown, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 10_000)
			s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: test.fault})
			part := ledger.Won(3_000)
			s.request("req-1", key, &part)
			test.then(s, key)
			sent := s.sim.Count(tosssim.Cancel)
			s.clock.Advance(15 * 24 * time.Hour)
			s.sweep()
			s.clock.Advance(6 * time.Minute)
			s.sweep()
			s.must(s.Sweeper.Tend(t.Context()))
			if n := s.sim.Count(tosssim.Cancel); n != sent {
				t.Errorf("sent %d times more", n-sent)
			}
			if r := s.requested("req-1"); r.Status != test.want || s.mismatches(ledger.KindCancelMissingHere) != test.mismatches {
				t.Errorf("got %s and %d mismatches", r.Status, s.mismatches(ledger.KindCancelMissingHere))
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// shows makes the gateway answer every question about the payment of 10,000 won with these cancels, of 3,000 in all.
func (s *shop) shows(key, cancels string) {
	s.t.Helper()
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, N: -1, Payment: s.object(key, cancels)})
}

func (s *shop) object(key, cancels string) []byte {
	return fmt.Appendf(nil, `{"version":"2022-11-16","paymentKey":%q,"orderId":"order-1","mId":"tsimshop01","status":"PARTIAL_CANCELED",
		"method":"카드","currency":"KRW","totalAmount":10000,"balanceAmount":7000,"requestedAt":%q,"approvedAt":%q,
		"lastTransactionKey":"c1","cancels":[%s]}`, key, noon().Format(time.RFC3339), noon().Format(time.RFC3339), cancels)
}

// TestCancelRequest_Void: the lost answer to the cancel of an unpaid virtual account.
func TestCancelRequest_Void(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.VirtualAccount)
	s.record(s.send(s.intend("order-1", key, 10_000)).Observation)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.LostReply})
	s.request("req-1", key, nil)
	s.clock.Advance(time.Minute)
	s.sweep()
	if r := s.requested("req-1"); r.Status != ledger.CancelRequestDone || s.payment(key).Status != ledger.StatusCanceled {
		t.Errorf("got %s and %s", r.Status, s.payment(key).Status)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestCancelRequest_InProgress: the gateway takes the cancel and finishes it later.
func TestCancelRequest_InProgress(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.ForeignEasyPay)
	s.record(s.send(s.intend("order-1", key, 10_000)).Observation)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.LostReply})
	s.request("req-1", key, nil)
	s.clock.Advance(time.Minute)
	s.sweep()
	r := s.requested("req-1")
	if r.Status != ledger.CancelRequestInProgress {
		t.Fatalf("got %s", r.Status)
	}
	s.must(s.sim.FinishCancel(r.TransactionKey, true))
	s.clock.Advance(2 * time.Minute)
	s.sweep()
	if r := s.requested("req-1"); r.Status != ledger.CancelRequestDone || s.payment(key).Status != ledger.StatusCanceled {
		t.Errorf("got %s and %s", r.Status, s.payment(key).Status)
	}
	ledgertest.RequireSound(t, s.db)
}
