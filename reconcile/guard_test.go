package reconcile_test

import (
	"context"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// guarded is a gateway client whose own guard lets no question and no cancel through.
type guarded struct {
	reconcile.Gateway
	refusal error
}

func (g guarded) Recover(context.Context, ledger.Channel, string) (ledger.Observation, error) {
	return ledger.Observation{}, g.refusal
}

func (g guarded) ReserveCancel(context.Context) (*pgclient.Permit, error) {
	return nil, &pgclient.Unsent{Reason: pgclient.RefusalBreaker, RetryAfter: 7 * time.Second}
}

// TestSweep_RefusedByOurOwnGuardIsNotAsked: a question that our own guard refused was not asked. It is not counted, comes
// again as soon as the guard lets it, and never turns a listed cancel into a contradiction of the gateway's.
func TestSweep_RefusedByOurOwnGuardIsNotAsked(t *testing.T) {
	t.Parallel()
	for _, refusal := range []*pgclient.Error{
		{Reason: pgclient.ReasonBreakerOpen, RetryAfter: 7 * time.Second},
		{Reason: pgclient.ReasonCap, RetryAfter: 7 * time.Second},
	} {
		t.Run(string(refusal.Reason), func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 10_000)
			s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.Reset})
			s.request("req-1", key, nil)
			s.clock.Advance(time.Minute)
			s.row("phantom", key, "order-1", "PARTIAL_CANCELED", "3000")
			s.poll()
			s.clock.Advance(time.Minute)
			shut := s.another(func(c *reconcile.Config) { c.Gateway = guarded{s.client, refusal} })
			for range 12 {
				_, err := shut.Sweeper.Sweep(t.Context())
				s.must(err)
				if wait := s.dueAt().Sub(s.clock.Now()); wait != 7*time.Second {
					t.Fatalf("comes again in %s, want 7s", wait)
				}
				s.clock.Advance(7 * time.Second)
			}
			if n := s.number(`SELECT count(*) FROM work WHERE closed_at IS NULL AND attempts = 0`); n != 2 {
				t.Errorf("%d rows of work count no question, want both", n)
			}
			s.sweep()
			if n := s.mismatches(ledger.KindCancelMissingHere); n != 0 {
				t.Errorf("got %d mismatches after one question", n)
			}
			if r := s.requested("req-1"); r.Status != ledger.CancelRequestDone {
				t.Errorf("got %s once the guard let it through", r.Status)
			}
		})
	}
}

// TestSweep_AnsweredQuestionsCount: a gateway that refuses a question was asked.
func TestSweep_AnsweredQuestionsCount(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 10_000)
	s.claim(key, "later")
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.TooMany})
	s.sweep()
	if n := s.number(`SELECT attempts FROM work WHERE closed_at IS NULL`); n != 1 {
		t.Errorf("counts %d questions, want 1", n)
	}
}

func TestSlotsOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ questions, replicas, want int }{
		{0, 1, 8}, {0, 2, 4}, {0, 3, 2}, {0, 8, 1}, {0, 20, 1}, {24, 2, 12}, {1, 1, 1},
	} {
		if got := reconcile.SlotsOf(test.questions, test.replicas); got != test.want {
			t.Errorf("%d over %d replicas: got %d, want %d", test.questions, test.replicas, got, test.want)
		}
	}
}
