package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// TestConfirm_LostReplyIsRecovered: the gateway took the money and its answer was lost.
func TestConfirm_LostReplyIsRecovered(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.Card)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.LostReply})
	s.send(s.intend("order-1", key, 10_000))
	s.clock.Advance(time.Minute)
	if swept := s.sweep(); swept.Results[reconcile.ResultSettled] != 1 {
		t.Errorf("got %v", swept.Results)
	}
	if p := s.payment(key); p.Status != ledger.StatusDone {
		t.Errorf("got %s, want done", p.Status)
	}
	if got := s.sim.Totals().Captures; got != 1 {
		t.Errorf("the gateway took money %d times", got)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestConfirm_SentAgainWithinTheSession: the confirm never arrived; sent again with the same key it saves the sale.
func TestConfirm_SentAgainWithinTheSession(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.Card)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Reset})
	p := s.intend("order-1", key, 10_000)
	s.send(p)
	s.clock.Advance(time.Minute)
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusDone {
		t.Errorf("got %s, want done", p.Status)
	}
	keys := map[string]bool{}
	for _, c := range s.sim.Calls() {
		if c.Op == tosssim.Confirm {
			keys[c.IdempotencyKey] = true
		}
	}
	if diff := cmp.Diff(map[string]bool{p.IdempotencyKey(): true}, keys); diff != "" {
		t.Errorf("idempotency keys: %s", diff)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestConfirm_NotSentAgainWhileItsCallerWaits: the call of the customer's own request may still be under way, ten seconds
// after its intent began and with both its attempts to come.
func TestConfirm_NotSentAgainWhileItsCallerWaits(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.Card)
	s.intend("order-1", key, 10_000)
	s.exec(`UPDATE work SET due_at = $1`, s.clock.Now())
	s.clock.Advance(50 * time.Second)
	if swept := s.sweep(); swept.Results[reconcile.ResultWaiting] != 1 || s.sim.Count(tosssim.Confirm) != 0 {
		t.Errorf("got %v and %d confirms, want to wait", swept.Results, s.sim.Count(tosssim.Confirm))
	}
}

// TestConfirm_ExpiredIsFailed: past the session the gateway says expired, which is evidence; open was not.
func TestConfirm_ExpiredIsFailed(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.Card)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Reset, N: -1})
	s.send(s.intend("order-1", key, 10_000))
	s.clock.Advance(9 * time.Minute)
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusUnknown {
		t.Errorf("within the session: got %s, want unknown", p.Status)
	}
	s.clock.Advance(11 * time.Minute)
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusFailed {
		t.Errorf("after the session: got %s, want failed", p.Status)
	}
	if n := s.number(`SELECT count(*) FROM work WHERE closed_at IS NULL`); n != 0 {
		t.Errorf("%d rows of work are left", n)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestConfirm_AnOldAnswerDoesNotSettleListedMoney: the list shows money for a window that had expired; the first look at
// the payment is older than that.
func TestConfirm_AnOldAnswerDoesNotSettleListedMoney(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.Card)
	s.clock.Advance(40 * time.Minute) // the window is over
	s.must(s.sim.Approve(key))
	s.poll()
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale})
	s.sweep()
	if got := s.number(`SELECT count(*) FROM work WHERE kind = 'confirm_unknown' AND closed_at IS NULL`); got != 1 {
		t.Errorf("%d rows of work ask about listed money, want 1", got)
	}
	s.clock.Advance(time.Minute)
	s.sweep()
	if p := s.payment(key); p.Captured().Minor != 10_000 {
		t.Errorf("the books have %s, want 10,000", p.Captured())
	}
	ledgertest.RequireSound(t, s.db)
}

// TestConfirm_ARefusalAfterACrashProvesNothing: the process died between intent and answer, so nobody knows whether the
// first call arrived. The refusal of the second is no evidence about the first, which may still take the money.
func TestConfirm_ARefusalAfterACrashProvesNothing(t *testing.T) {
	t.Parallel()
	for _, arrived := range []bool{true, false} {
		t.Run(fmt.Sprintf("arrived %t", arrived), func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.order("order-1", 10_000, tosssim.Card)
			s.intend("order-1", key, 10_000)
			s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_PAYMENT"})
			s.clock.Advance(time.Minute)
			s.sweep()
			if p := s.payment(key); p.Status != ledger.StatusUnknown || s.sim.Count(tosssim.Get) != 2 {
				t.Errorf("got %s after %d questions, want unknown and asked again after the refusal", p.Status, s.sim.Count(tosssim.Get))
			}
			want := ledger.StatusFailed
			if arrived {
				s.must(s.sim.Approve(key))
				want = ledger.StatusDone
			}
			s.clock.Advance(40 * time.Minute)
			s.sweep()
			if p := s.payment(key); p.Status != want {
				t.Errorf("got %s, want %s", p.Status, want)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// sending runs something while a confirm is at the gateway.
type sending struct {
	reconcile.Gateway
	meanwhile func()
}

func (g sending) Confirm(ctx context.Context, permit *pgclient.Permit, r pgclient.ConfirmRequest) pgclient.Result {
	g.meanwhile()
	return g.Gateway.Confirm(ctx, permit, r)
}

// TestConfirm_SentAgainIsInDoubtFirst: a second process dies, or a second sweeper comes, while the call sent again is
// under way. The books then already say that the first attempt is in doubt, and nobody takes the row.
func TestConfirm_SentAgainIsInDoubtFirst(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.Card)
	s.intend("order-1", key, 10_000)
	s.clock.Advance(time.Minute)
	other := s.another(func(c *reconcile.Config) {
		c.Gateway = sending{s.client, func() {
			if p := s.payment(key); p.Status != ledger.StatusUnknown {
				t.Errorf("got %s while the call is under way, want unknown", p.Status)
			}
			s.clock.Advance(30 * time.Second)
			if swept := s.sweep(); swept.Asked != 0 {
				t.Errorf("the row was taken %d times while its call was under way", swept.Asked)
			}
		}}
	})
	_, err := other.Sweeper.Sweep(t.Context())
	s.must(err)
	if p := s.payment(key); p.Status != ledger.StatusDone || s.sim.Count(tosssim.Confirm) != 1 {
		t.Errorf("got %s after %d calls, want done after one", p.Status, s.sim.Count(tosssim.Confirm))
	}
	ledgertest.RequireSound(t, s.db)
}

// TestInvariantI6_AskingGoesOn: a gateway that knows nothing, or says nothing, ends no doubt. After an hour it is also
// a mismatch, once; evidence closes both.
func TestInvariantI6_AskingGoesOn(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.Card)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.LostReply})
	s.send(s.intend("order-1", key, 10_000))
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, Code: 404, Body: `{"code":"NOT_FOUND_PAYMENT","message":"-"}`, N: -1})
	for range 30 {
		s.clock.Advance(5 * time.Minute)
		s.sweep()
	}
	if p := s.payment(key); !p.Status.Undecided() {
		t.Errorf("got %s without evidence", p.Status)
	}
	if n := s.mismatches(ledger.KindStaleUnknown); n != 1 {
		t.Errorf("got %d stale unknowns, want 1", n)
	}
	if n := s.number(`SELECT amount FROM mismatches`); n != 10_000 {
		t.Errorf("got %d at risk", n)
	}
	s.sim.Heal()
	s.clock.Advance(24 * time.Hour)
	s.sweep()
	s.clock.Advance(time.Minute)
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusDone || s.mismatches(ledger.KindStaleUnknown) != 0 {
		t.Errorf("got %s and %d open mismatches, want done and none", p.Status, s.mismatches(ledger.KindStaleUnknown))
	}
	if got := s.text(`SELECT resolved_as FROM mismatches`); got != "auto" {
		t.Errorf("got resolved as %s", got)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestConfirm_AnotherKeyPaidTheOrder: the answer by order is about another payment. It is booked under its own key,
// and the first stays in doubt.
func TestConfirm_AnotherKeyPaidTheOrder(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.Card)
	s.intend("order-1", key, 10_000)
	other := s.sim.Authenticate(tosssim.Checkout{OrderID: "order-1", OrderName: "order-1", Amount: 10_000})
	s.must(s.sim.Approve(other))
	s.sim.Fail(tosssim.Fault{
		Op: tosssim.Get, Kind: tosssim.Status, Code: 404, Body: `{"code":"NOT_FOUND_PAYMENT","message":"-"}`, PaymentKey: key, N: -1,
	})
	s.clock.Advance(time.Minute)
	s.sweep()
	if p := s.payment(other); !p.Status.HoldsMoney() {
		t.Errorf("the other payment: got %s, want done", p.Status)
	}
	if p := s.payment(key); !p.Status.Undecided() {
		t.Errorf("the first payment: got %s, want in doubt", p.Status)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestSweep_WithoutWorkIsRepaired: a payment in doubt that nobody asks about must not exist, and gets work.
func TestSweep_WithoutWorkIsRepaired(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.Card)
	s.send(s.intend("order-1", key, 10_000))
	s.exec(`DELETE FROM work`)
	s.clock.Advance(2 * time.Minute)
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusDone {
		t.Errorf("got %s, want done", p.Status)
	}
	if got := s.metric("daesa_reconcile_work_repaired_total", nil); got != 1 {
		t.Errorf("got %v repaired, want 1", got)
	}
}

// stopping answers, and the process ends before the answer can be recorded.
type stopping struct {
	reconcile.Gateway
	stop context.CancelFunc
}

func (g stopping) Recover(ctx context.Context, channel ledger.Channel, key string) (ledger.Observation, error) {
	seen, err := g.Gateway.Recover(ctx, channel, key)
	g.stop()
	return seen, err
}

// TestSweep_CrashLosesNothing: a sweeper dies between its question and its record. The row comes back when the lease
// is over.
func TestSweep_CrashLosesNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.Card)
	s.send(s.intend("order-1", key, 10_000))
	s.clock.Advance(time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	dying := s.another(func(c *reconcile.Config) { c.Gateway = stopping{s.client, stop} })
	if _, err := dying.Sweeper.Sweep(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the crash", err)
	}
	if swept := s.sweep(); swept.Asked != 0 {
		t.Errorf("the row was taken while leased")
	}
	s.clock.Advance(2*time.Minute + time.Second)
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusDone {
		t.Errorf("got %s, want done", p.Status)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestSweep_TwoInstances: two sweepers never ask about the same row.
func TestSweep_TwoInstances(t *testing.T) {
	t.Parallel()
	s := setup(t)
	const orders = 40
	for n := range orders {
		id := orderID(n)
		key := s.order(id, 1000, tosssim.Card)
		s.send(s.intend(id, key, 1000))
	}
	s.clock.Advance(time.Minute)
	other := s.another(func(*reconcile.Config) {})
	done := make(chan error, 2)
	for _, r := range []*reconcile.Reconciler{s.Reconciler, other} {
		go func() {
			_, err := r.Sweeper.Sweep(t.Context())
			done <- err
		}()
	}
	s.must(errors.Join(<-done, <-done))
	if n := s.number(`SELECT count(*) FROM payments WHERE status = 'done'`); n != orders {
		t.Errorf("got %d of %d payments done", n, orders)
	}
	if n := s.sim.Count(tosssim.Get); n != orders {
		t.Errorf("got %d questions for %d rows", n, orders)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestSweep_UnansweredIsHurriedOnRecovery: what the gateway did not answer is asked at once when it is back.
func TestSweep_UnansweredIsHurriedOnRecovery(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 1000, tosssim.Card)
	s.send(s.intend("order-1", key, 1000))
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.TooMany, N: -1})
	s.exec(`UPDATE work SET attempts = 10`)
	s.clock.Advance(time.Minute)
	if swept := s.sweep(); swept.Results[reconcile.ResultUnanswered] != 1 {
		t.Errorf("got %v", swept.Results)
	}
	s.sim.Heal()
	s.clock.Advance(time.Second)
	if swept := s.sweep(); swept.Asked != 0 {
		t.Errorf("asked before it was due")
	}
	s.must(s.Sweeper.Hurry(t.Context()))
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusDone {
		t.Errorf("got %s, want done", p.Status)
	}
}

// TestParked_IsNeverAskedAbout: a stranger's key costs nothing and ends by itself.
func TestParked_IsNeverAskedAbout(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.exec(`INSERT INTO work (kind, payment_key, opened_at, due_at, deadline) VALUES ('parked', 'stranger', $1, $1, $2)`,
		s.clock.Now(), pgclient.LastChance(s.clock.Now()))
	s.clock.Advance(time.Hour)
	if swept := s.sweep(); swept.Asked != 0 {
		t.Errorf("asked %d times", swept.Asked)
	}
	s.clock.Advance(92 * time.Hour)
	s.sweep()
	if got := s.text(`SELECT closed_as FROM work`); got != "expired" || s.sim.Count(tosssim.Get) != 0 {
		t.Errorf("closed as %s after %d questions", got, s.sim.Count(tosssim.Get))
	}
}

// TestParked_BecomesAClaim: the key was parked while its payment's first intent was being committed.
func TestParked_BecomesAClaim(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 1000)
	transaction := s.canceled(key, 0)
	s.exec(`INSERT INTO work (kind, payment_key, transaction_key, opened_at, due_at, deadline) VALUES ('parked', $1, $2, $3, $4, $4)`,
		key, transaction, s.clock.Now(), pgclient.LastChance(s.clock.Now()))
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusCanceled {
		t.Errorf("got %s, want canceled", p.Status)
	}
}

// TestConfirm_AMadeUpKeyLetsGoOfItsOrder: the gateway has never known the payment. It is asked about for ever, but after
// an hour the buyer can pay with the right key; which payment the gateway names for the order makes no difference.
func TestConfirm_AMadeUpKeyLetsGoOfItsOrder(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"the gateway knows nothing": false, "the gateway knows the buyer's payment": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			s.tx(func(tx pgx.Tx) error {
				_, err := s.books.CreateOrder(t.Context(), tx, ledger.Order{
					ID: "order-1", Amount: ledger.Won(10_000), Name: "order-1", ExpiresAt: s.clock.Now().Add(24 * time.Hour),
				})
				return err
			})
			s.intend("order-1", "made-up-by-a-stranger", 10_000)
			if known {
				s.sim.Authenticate(tosssim.Checkout{OrderID: "order-1", OrderName: "order-1", Amount: 10_000})
			}
			for range 12 {
				s.clock.Advance(5 * time.Minute)
				s.sweep()
				if p := s.payment("made-up-by-a-stranger"); p.Surplus {
					t.Fatalf("the order was let go %s after the attempt", s.clock.Now().Sub(p.IntendedAt))
				}
			}
			s.clock.Advance(time.Hour)
			s.sweep()
			buyer := s.sim.Authenticate(tosssim.Checkout{OrderID: "order-1", OrderName: "order-1", Amount: 10_000})
			s.record(s.send(s.intend("order-1", buyer, 10_000)).Observation)
			if p := s.payment(buyer); p.Status != ledger.StatusDone || p.Surplus {
				t.Errorf("the buyer's payment is %s, surplus %t", p.Status, p.Surplus)
			}
			if p := s.payment("made-up-by-a-stranger"); !p.Status.Undecided() || s.mismatches(ledger.KindStaleUnknown) != 1 {
				t.Errorf("the made-up payment is %s without evidence, %d stale", p.Status, s.mismatches(ledger.KindStaleUnknown))
			}
			asked := s.sim.CountKey(tosssim.Get, "made-up-by-a-stranger")
			s.clock.Advance(48 * time.Hour)
			s.sweep()
			if now := s.sim.CountKey(tosssim.Get, "made-up-by-a-stranger"); now <= asked {
				t.Error("nobody asks about the made-up payment any more")
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}
