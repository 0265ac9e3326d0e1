package checkout

import (
	"fmt"
	"net/http"
	"testing"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

// TestConfirm_LostOutcomes: whatever hides the answer, nobody is told a failure, nobody pays twice, and the second
// press finds out. With one attempt per call, the first press cannot find out by itself.
func TestConfirm_LostOutcomes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fault tosssim.Fault
		after ledger.Status // after the second press
	}{
		{"lost reply", tosssim.Fault{Kind: tosssim.LostReply}, ledger.StatusDone},
		{"done, then silence", tosssim.Fault{Kind: tosssim.DoThenHang}, ledger.StatusDone},
		{"done, then 500", tosssim.Fault{Kind: tosssim.DoThenStatus}, ledger.StatusDone},
		{"done, then half an answer", tosssim.Fault{Kind: tosssim.Garbage}, ledger.StatusDone},
		{"done, then a stalled body", tosssim.Fault{Kind: tosssim.StalledBody}, ledger.StatusDone},
		{"nothing, silence", tosssim.Fault{Kind: tosssim.Hang}, ledger.StatusUnknown},
		{"nothing, reset", tosssim.Fault{Kind: tosssim.Reset}, ledger.StatusUnknown},
		{"nothing, HTML", tosssim.Fault{Kind: tosssim.HTML}, ledger.StatusUnknown},
		{"nothing, an empty list", tosssim.Fault{Kind: tosssim.EmptyArray}, ledger.StatusUnknown},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, shopOptions{paths: quickPaths()})
			orderID, key := s.order(50000)
			test.fault.Op = tosssim.Confirm
			s.sim.Fail(test.fault)
			first := s.confirm(key, orderID, 50000)
			first.wants(t, http.StatusAccepted, "unknown")
			if first.header.Get("Retry-After") == "" {
				t.Error("a reply that is not known yet needs Retry-After")
			}
			s.wantBooks(key, ledger.StatusUnknown, ledger.OrderPending)
			s.sim.Heal()
			want := http.StatusOK
			if test.after == ledger.StatusUnknown {
				want = http.StatusAccepted
			}
			s.confirm(key, orderID, 50000).wants(t, want, string(test.after))
			s.call("GET", first.text("status_url"), nil, "Authorization", "").wants(t, http.StatusOK, string(test.after))
			if got := s.sim.Count(tosssim.Confirm); got != 1 {
				t.Errorf("got %d confirm calls, want 1", got)
			}
		})
	}
}

// TestConfirm_RetryUsesTheSameKey: within one call the second attempt replays the first, and the buyer sees the truth.
func TestConfirm_RetryUsesTheSameKey(t *testing.T) {
	t.Parallel()
	for _, kind := range []tosssim.Kind{tosssim.LostReply, tosssim.DoThenStatus, tosssim.HTML, tosssim.TooMany} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			paths := quickPaths()
			paths.Confirm.Attempts = 2
			s := open(t, shopOptions{paths: paths})
			orderID, key := s.order(50000)
			s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: kind})
			s.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
			keys := map[string]int{}
			for _, c := range s.sim.Calls() {
				if c.Op == tosssim.Confirm {
					keys[c.IdempotencyKey]++
				}
			}
			if len(keys) != 1 || keys["confirm-"+key+"-1"] != 2 {
				t.Errorf("got idempotency keys %v, want one, twice", keys)
			}
			if got := s.effects(tosssim.Confirm, key); got != 1 {
				t.Errorf("got %d approvals, want 1", got)
			}
		})
	}
}

// TestConfirm_AnswersThatAreNoAnswers: 400 by the gateway is not yet a refusal; the gateway is asked what is true.
func TestConfirm_AnswersThatAreNoAnswers(t *testing.T) {
	t.Parallel()
	const done, open400 = true, false
	tests := []struct {
		name, code string
		http       int
		approved   bool
		status     int
		word       string
	}{
		{"already processed", "ALREADY_PROCESSED_PAYMENT", 400, done, 200, "done"},
		{"provider error, done", "PROVIDER_ERROR", 400, done, 200, "done"},
		{"provider error, open", "PROVIDER_ERROR", 400, open400, 202, "unknown"},
		{"code never seen, done", "BRAND_NEW_CODE", 400, done, 200, "done"},
		{"code never seen, open", "BRAND_NEW_CODE", 400, open400, 202, "unknown"},
		{"in flight", "IDEMPOTENT_REQUEST_PROCESSING", 409, open400, 202, "unknown"},
		{"internal error, done", "FAILED_PAYMENT_INTERNAL_SYSTEM_PROCESSING", 500, done, 202, "unknown"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, shopOptions{paths: quickPaths()})
			orderID, key := s.order(50000)
			s.sim.Fail(tosssim.Fault{
				Op: tosssim.Confirm, Kind: tosssim.Status, Code: test.http, Body: fmt.Sprintf(`{"code":%q,"message":"sim"}`, test.code),
			})
			if test.approved {
				must(t, s.sim.Approve(key))
			}
			s.confirm(key, orderID, 50000).wants(t, test.status, test.word)
		})
	}
}
