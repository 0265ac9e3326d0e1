package reconcile_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient/tosssim"
)

// TestCancelRequest_OwnCancelIsKnownWhateverTheRepetitionSays: our cancel was done and its answer lost, and the
// repetition is refused for good. Neither a clock that is ahead of the gateway's nor a reason that the gateway has
// rewritten makes the cancel that stands somebody else's.
func TestCancelRequest_OwnCancelIsKnownWhateverTheRepetitionSays(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, change string }{
		{"nothing differs", `SELECT 1`},
		{"our clock is ahead", `UPDATE cancel_requests SET created_at = created_at + interval '3 minutes'`},
		{"the reason was rewritten", `UPDATE cancel_requests SET reason = E'changed\nmind'`},
	}
	for _, test := range tests {
		for _, said := range []tosssim.Fault{
			{Kind: tosssim.Status, Code: http.StatusForbidden, Body: `{"code":"NOT_ALLOWED_PARTIAL_REFUND","message":"x"}`},
			{Kind: tosssim.Status, Code: http.StatusInternalServerError, Body: `{"code":"FAILED_INTERNAL_SYSTEM_PROCESSING","message":"x"}`, N: -1},
		} {
			t.Run(fmt.Sprintf("%s, %d", test.name, said.Code), func(t *testing.T) {
				t.Parallel()
				s := setup(t)
				key := s.paid("order-1", 10_000)
				s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.LostReply})
				part := ledger.Won(3_000)
				s.request("req-1", key, &part)
				s.exec(test.change)
				said.Op = tosssim.Cancel
				s.sim.Fail(said)
				s.clock.Advance(5 * time.Minute)
				s.sweep()
				if r := s.requested("req-1"); r.Status != ledger.CancelRequestDone || !s.payment(key).HasCancel(r.TransactionKey) {
					t.Errorf("got %s (%s) with %q, want done", r.Status, r.Answer, r.TransactionKey)
				}
				ledgertest.RequireSound(t, s.db)
			})
		}
	}
}

// TestCancelRequest_RefusedOnlyAfterTwoLooks: the gateway may show a cancel late. One look that shows nothing of it is
// not enough, and neither are two within a moment.
func TestCancelRequest_RefusedOnlyAfterTwoLooks(t *testing.T) {
	t.Parallel()
	for _, shown := range []bool{false, true} {
		t.Run(fmt.Sprintf("shown late %t", shown), func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 10_000)
			before, _ := s.sim.Payment(key)
			s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.LostReply})
			part := ledger.Won(3_000)
			if shown {
				s.request("req-1", key, &part)
				s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, N: 2, Payment: before})
			} else {
				s.sim.Heal()
				s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.Reset})
				s.request("req-1", key, &part)
			}
			s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.Status, Code: http.StatusBadRequest, Body: `{"code":"PROVIDER_ERROR","message":"x"}`, N: -1})
			s.clock.Advance(time.Minute)
			for _, later := range []time.Duration{0, 4 * time.Minute} {
				s.clock.Advance(later)
				s.exec(`UPDATE work SET due_at = $1 WHERE closed_at IS NULL`, s.clock.Now())
				s.sweep()
				if r := s.requested("req-1"); r.Status != ledger.CancelRequestUnknown {
					t.Fatalf("got %s %s after the first look, want unknown", r.Status, later)
				}
			}
			s.clock.Advance(6 * time.Minute)
			s.sweep()
			want := ledger.CancelRequestRefused
			if shown {
				want = ledger.CancelRequestDone
			}
			if r := s.requested("req-1"); r.Status != want {
				t.Errorf("got %s (%s), want %s", r.Status, r.Answer, want)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestCancelRequest_LookBehindTheBooks: a look that is older than the books shows nothing of a cancel they already have.
func TestCancelRequest_LookBehindTheBooks(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 10_000)
	before, _ := s.sim.Payment(key)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.LostReply})
	part := ledger.Won(3_000)
	s.request("req-1", key, &part)
	s.record(s.ask(ledger.ChannelWebhook, key))
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, N: -1, Payment: before})
	s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.Status, Code: http.StatusBadRequest, Body: `{"code":"PROVIDER_ERROR","message":"x"}`, N: -1})
	for range 4 {
		s.clock.Advance(20 * time.Minute)
		s.sweep()
	}
	if r := s.requested("req-1"); r.Status != ledger.CancelRequestUnknown || s.mismatches(ledger.KindCancelMissingHere) != 1 {
		t.Errorf("got %s and %d mismatches, want unknown and 1", r.Status, s.mismatches(ledger.KindCancelMissingHere))
	}
	s.sim.Heal()
	s.clock.Advance(time.Hour)
	s.sweep()
	s.clock.Advance(2 * time.Minute)
	s.sweep()
	if r := s.requested("req-1"); r.Status != ledger.CancelRequestDone || s.mismatches(ledger.KindCancelMissingHere) != 0 {
		t.Errorf("got %s and %d mismatches, want done and none", r.Status, s.mismatches(ledger.KindCancelMissingHere))
	}
	ledgertest.RequireSound(t, s.db)
}

// TestCancelRequest_LastTransaction: an answer whose cancels do not tell what was left has ours as its last transaction.
func TestCancelRequest_LastTransaction(t *testing.T) {
	t.Parallel()
	for _, rest := range []string{``, `,"refundableAmount":5000`} {
		t.Run("rest "+rest, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 10_000)
			s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.Reset})
			part := ledger.Won(3_000)
			s.request("req-1", key, &part)
			object := s.object(key, fmt.Sprintf(`{"transactionKey":"c1","cancelAmount":3000,"cancelStatus":"DONE","canceledAt":%q%s}`, s.clock.Now().Format(time.RFC3339), rest))
			s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.Body, Code: http.StatusOK, Body: string(object), ContentType: "application/json"})
			s.clock.Advance(time.Minute)
			s.sweep()
			if r := s.requested("req-1"); r.Status != ledger.CancelRequestDone || r.TransactionKey != "c1" {
				t.Errorf("got %s (%s) with %q, want done with c1", r.Status, r.Answer, r.TransactionKey)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestCancelRequest_RefusedBehindAnother: a cancel asked for while another was in progress is refused, and its key brings
// back that refusal for days. It ends on its own, and never with the other's cancel although that is of the same amount.
func TestCancelRequest_RefusedBehindAnother(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.ForeignEasyPay)
	s.record(s.send(s.intend("order-1", key, 10_000)).Observation)
	part := ledger.Won(3_000)
	s.request("req-1", key, &part)
	s.clock.Advance(time.Minute)
	s.sweep()
	first := s.requested("req-1")
	if first.Status != ledger.CancelRequestInProgress {
		t.Fatalf("the first got %s, want in progress", first.Status)
	}
	s.request("req-2", key, &part)
	s.clock.Advance(time.Minute)
	s.sweep()
	if r := s.requested("req-2"); r.Status != ledger.CancelRequestUnknown || r.Answer != "FORBIDDEN_CONSECUTIVE_REQUEST" {
		t.Fatalf("after one look: got %s (%s), want unknown", r.Status, r.Answer)
	}
	s.clock.Advance(6 * time.Minute)
	s.sweep()
	if r := s.requested("req-2"); r.Status != ledger.CancelRequestRefused || r.TransactionKey != "" {
		t.Errorf("after two: got %s with %q, want refused", r.Status, r.TransactionKey)
	}
	s.must(s.sim.FinishCancel(first.TransactionKey, true))
	s.clock.Advance(time.Hour)
	s.sweep()
	if r := s.requested("req-1"); r.Status != ledger.CancelRequestDone || s.payment(key).Balance() != ledger.Won(7_000) {
		t.Errorf("the first got %s with %s left", r.Status, s.payment(key).Balance())
	}
	s.request("req-3", key, &part)
	s.clock.Advance(time.Minute)
	s.sweep()
	if r := s.requested("req-3"); r.Status != ledger.CancelRequestInProgress {
		t.Errorf("the next got %s, want in progress", r.Status)
	}
	ledgertest.RequireSound(t, s.db)
}
