package reconcile

import (
	"testing"

	"daesa/ledger"
)

func doneCancel(key string, amount, left int64) ledger.ObservedCancel {
	return ledger.ObservedCancel{
		TransactionKey: key, State: ledger.CancelDone, Amount: ledger.Won(amount), Refundable: ledger.Won(left),
	}
}

func inState(c ledger.ObservedCancel, state ledger.CancelState) ledger.ObservedCancel {
	c.State = state
	return c
}

// TestSightOf: a request to cancel 3,000 of the 10,000 left, and what payment objects show of it.
func TestSightOf(t *testing.T) {
	t.Parallel()
	request := ledger.CancelRequest{ID: "req-1", Amount: ledger.Won(3_000), Refundable: ledger.Won(10_000)}
	tests := []struct {
		name    string
		balance int64
		cancels []ledger.ObservedCancel
		found   string
		absent  bool
	}{
		{"nothing happened", 10_000, nil, "", true},
		{"more is left than we knew", 11_000, nil, "", false},
		{"ours", 7_000, []ledger.ObservedCancel{doneCancel("c1", 3_000, 7_000)}, "c1", false},
		{"ours, and another after it", 4_000, []ledger.ObservedCancel{doneCancel("c1", 3_000, 7_000), doneCancel("c2", 3_000, 4_000)}, "c1", false},
		{"ours is under way", 10_000, []ledger.ObservedCancel{inState(doneCancel("c1", 3_000, 7_000), ledger.CancelInProgress)}, "c1", false},
		{"ours was given up", 10_000, []ledger.ObservedCancel{inState(doneCancel("c1", 3_000, 7_000), ledger.CancelAborted)}, "", true},
		{"another came first", 5_000, []ledger.ObservedCancel{doneCancel("c1", 2_000, 8_000), doneCancel("c2", 3_000, 5_000)}, "", true},
		{"another took the rest", 0, []ledger.ObservedCancel{doneCancel("c1", 7_000, 3_000), doneCancel("c2", 3_000, 0)}, "", true},
		{"another is under way", 10_000, []ledger.ObservedCancel{inState(doneCancel("c1", 2_000, 8_000), ledger.CancelInProgress)}, "", true},
		{
			"another is under way that may be counted or not", 7_000,
			[]ledger.ObservedCancel{inState(doneCancel("c1", 2_000, 8_000), ledger.CancelInProgress), doneCancel("c2", 3_000, 5_000)},
			"", false,
		},
		{"nothing tells what was left", 7_000, []ledger.ObservedCancel{doneCancel("c1", 3_000, 0)}, "", false},
		{
			"two fit", 7_000,
			[]ledger.ObservedCancel{doneCancel("c1", 3_000, 7_000), inState(doneCancel("c2", 3_000, 7_000), ledger.CancelInProgress)},
			"", false,
		},
		{"it is another request's", 7_000, []ledger.ObservedCancel{doneCancel("other", 3_000, 7_000)}, "", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			seen := ledger.Observation{
				Evidence: ledger.EvidenceCaptured, Total: ledger.Won(20_000), Balance: ledger.Won(test.balance), Cancels: test.cancels,
			}
			got := sightOf(request, seen, map[string]bool{"other": true})
			if got.mine.TransactionKey != test.found || got.found != (test.found != "") || got.absent != test.absent {
				t.Errorf("got %+v, want found %q, absent %t", got, test.found, test.absent)
			}
		})
	}
}

// TestSightOf_All: a cancel without what was left looks like one after which nothing was; only an empty payment has that.
func TestSightOf_All(t *testing.T) {
	t.Parallel()
	request := ledger.CancelRequest{ID: "req-1", Amount: ledger.Won(10_000), Refundable: ledger.Won(10_000)}
	for balance, found := range map[int64]bool{0: true, 10_000: false} {
		seen := ledger.Observation{
			Evidence: ledger.EvidenceCaptured, Total: ledger.Won(20_000), Balance: ledger.Won(balance),
			Cancels: []ledger.ObservedCancel{doneCancel("c1", 10_000, 0)},
		}
		if got := sightOf(request, seen, nil); got.found != found || got.absent {
			t.Errorf("with %d left: got %+v, want found %t", balance, got, found)
		}
	}
}

// TestAnswerOf_GivenUp: an answer to our request in which every cancel of our amount was given up has ours among them.
func TestAnswerOf_GivenUp(t *testing.T) {
	t.Parallel()
	request := ledger.CancelRequest{ID: "req-1", Amount: ledger.Won(3_000), Refundable: ledger.Won(10_000)}
	gone := inState(doneCancel("c1", 3_000, 10_000), ledger.CancelAborted)
	seen := ledger.Observation{
		Evidence: ledger.EvidenceCaptured, Total: ledger.Won(20_000), Balance: ledger.Won(10_000), Cancels: []ledger.ObservedCancel{gone},
	}
	if mine, ok := answerOf(request, seen, nil); !ok || mine.TransactionKey != "c1" {
		t.Errorf("got %+v %t, want c1", mine, ok)
	}
	seen.Cancels = append(seen.Cancels, doneCancel("c2", 3_000, 5_000))
	if mine, ok := answerOf(request, seen, nil); ok {
		t.Errorf("got %+v where another may be ours, want none", mine)
	}
}
