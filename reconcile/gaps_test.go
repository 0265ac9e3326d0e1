package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// TestTend_OurOwnCancelWithoutAnswer: when our own guard lets nothing through for hours, nobody asks what came of our
// cancel. A person hears of it all the same, once.
func TestTend_OurOwnCancelWithoutAnswer(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 10_000)
	part := ledger.Won(3_000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.LostReply})
	s.request("req-1", key, &part)
	shut := s.another(func(c *reconcile.Config) {
		c.Gateway = guarded{s.client, &pgclient.Error{Reason: pgclient.ReasonBreakerOpen, RetryAfter: 7 * time.Second}}
	})
	s.clock.Advance(time.Hour)
	_, err := shut.Sweeper.Sweep(t.Context())
	s.must(err)
	if n := s.mismatches(ledger.KindCancelMissingHere); n != 0 {
		t.Errorf("got %d mismatches before its last chance", n)
	}
	for range 3 {
		s.clock.Advance(time.Hour)
		_, err := shut.Sweeper.Sweep(t.Context())
		s.must(err)
	}
	if n := s.number(`SELECT count(*) FROM mismatches WHERE transaction_key = 'request:req-1' AND amount = 3000 AND times_seen = 1`); n != 1 {
		t.Errorf("got %d mismatches about our cancel, want 1", n)
	}
	s.clock.Advance(2 * time.Minute)
	s.sweep()
	s.must(s.Sweeper.Tend(t.Context()))
	if r := s.requested("req-1"); r.Status != ledger.CancelRequestDone || s.mismatches(ledger.KindCancelMissingHere) != 0 {
		t.Errorf("got %s and %d mismatches once it could be asked", r.Status, s.mismatches(ledger.KindCancelMissingHere))
	}
}

// TestTend_AnAccountThatNeverEnds: it holds its order, so that a person must hear of it; asking goes on.
func TestTend_AnAccountThatNeverEnds(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.VirtualAccount)
	s.record(s.send(s.intend("order-1", key, 10_000)).Observation)
	shown, _ := s.sim.Payment(key)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, N: -1, Payment: []byte(strings.Replace(string(shown), `"expired":false`, `"expired":null`, 1))})
	s.exec(`UPDATE work SET deadline = $1 WHERE kind = 'deposit_watch'`, s.clock.Now().Add(time.Hour))
	s.clock.Advance(time.Hour)
	s.sweep()
	if n := s.mismatches(ledger.KindStaleUnknown); n != 0 {
		t.Errorf("got %d mismatches within its time", n)
	}
	for range 3 {
		s.clock.Advance(20 * time.Minute)
		s.sweep()
		if n := s.number(`SELECT count(*) FROM mismatches WHERE kind = 'stale_unknown' AND status = 'open' AND amount = 10000 AND revision = 1`); n != 1 {
			t.Errorf("got %d mismatches about an account that never ends, want 1", n)
		}
	}
	s.exec(`UPDATE payments SET status = 'failed'`)
	s.exec(`UPDATE work SET closed_at = now(), closed_as = 'settled'`)
	s.must(s.Sweeper.Tend(t.Context()))
	if n := s.mismatches(ledger.KindStaleUnknown); n != 0 {
		t.Errorf("got %d mismatches once it has ended", n)
	}
}

// TestSweep_OneCancelForTwoPayments: the work about the second ends, and what is wrong stays a mismatch.
func TestSweep_OneCancelForTwoPayments(t *testing.T) {
	t.Parallel()
	s := setup(t)
	first := s.paid("order-0", 10_000)
	tx := s.canceled(first, 3_000)
	s.record(s.ask(ledger.ChannelWebhook, first))
	second := s.paid("order-1", 10_000)
	s.claim(second, tx)
	s.shows(second, `{"transactionKey":"`+tx+`","cancelAmount":3000,"cancelStatus":"DONE","canceledAt":"`+s.clock.Now().Format(time.RFC3339)+`"}`)
	for range 3 {
		s.clock.Advance(time.Hour)
		s.sweep()
	}
	if got := s.text(`SELECT closed_as || ' ' || last_answer FROM work WHERE payment_key = $1 AND transaction_key = $2`, second, tx); got != "refuted the cancel is booked for another payment" {
		t.Errorf("got %s", got)
	}
	if n := s.mismatches(ledger.KindHistoryChanged); n != 1 || s.number(`SELECT count(*) FROM mismatches`) != 1 {
		t.Errorf("got %d mismatches, want 1", n)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestCancelRequest_AnswerThatCannotBeRead: a person is shown an answer whose money cannot be read, to the request itself
// and to the look at its payment; asking goes on.
func TestCancelRequest_AnswerThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		ops  []tosssim.Op
	}{
		{"to the request", []tosssim.Op{tosssim.Cancel}},
		{"to the request and the look", []tosssim.Op{tosssim.Cancel, tosssim.Get}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 10_000)
			part := ledger.Won(3_000)
			s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.LostReply})
			s.request("req-1", key, &part)
			shown, _ := s.sim.Payment(key)
			for _, op := range test.ops {
				s.sim.Fail(tosssim.Fault{
					Op: op, Kind: tosssim.Body, Code: 200, ContentType: "application/json", PaymentKey: key,
					Body: strings.Replace(string(shown), `"currency":"KRW"`, `"currency":"XAU"`, 1),
				})
			}
			s.clock.Advance(time.Minute)
			s.sweep()
			if n := s.number(`SELECT count(*) FROM mismatches WHERE kind = 'quarantined' AND amount = 10000`); n != 1 {
				t.Errorf("got %d quarantined, want 1", n)
			}
			s.clock.Advance(time.Hour)
			s.sweep()
			if r := s.requested("req-1"); r.Status != ledger.CancelRequestDone {
				t.Errorf("got %s once it could be read", r.Status)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}
