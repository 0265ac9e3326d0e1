package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// deposited is an order whose buyer has paid into its virtual account, and the books know.
func (s *shop) deposited(id string, won int64) (paymentKey string) {
	s.t.Helper()
	key := s.order(id, won, tosssim.VirtualAccount)
	s.record(s.send(s.intend(id, key, won)).Observation)
	s.clock.Advance(time.Minute)
	s.must(s.sim.Deposit(key))
	s.record(s.ask(ledger.ChannelWebhook, key))
	return key
}

// pass lets so much time go by, minute by minute, with the list read, the work asked about and the audit made.
func (s *shop) pass(d time.Duration) reconcile.Statement {
	s.t.Helper()
	end := s.clock.Now().Add(d)
	for s.clock.Now().Before(end) {
		s.clock.Advance(time.Minute)
		s.poll()
		s.sweep()
	}
	return s.audit(reconcile.ScopeRecent)
}

// looks is how often the gateway was asked about the payment.
func (s *shop) looks() int { return s.sim.Count(tosssim.Get) }

// TestDeposit_FallsBack: the deposit is looked at again after minutes and hours; one that falls back is taken back
// after a second look. The account then waits again, and is asked about until its time is over.
func TestDeposit_FallsBack(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.deposited("order-1", 10_000)
	s.clock.Advance(4 * time.Minute)
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusDone {
		t.Errorf("got %s, want done", p.Status)
	}
	s.must(s.sim.RevertDeposit(key))
	s.poll()
	s.clock.Advance(time.Minute)
	s.sweep()
	s.clock.Advance(40 * time.Second)
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusWaitingForDeposit {
		t.Errorf("got %s, want the deposit taken back", p.Status)
	}
	s.clock.Advance(25 * time.Hour)
	s.sweep()
	if n := s.number(`SELECT count(*) FROM work WHERE kind = 'deposit_watch' AND closed_at IS NULL`); n != 1 {
		t.Errorf("got %d open watches over an account that waits, want 1", n)
	}
	s.clock.Advance(8 * 24 * time.Hour)
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusFailed {
		t.Errorf("got %s after the account's time, want failed", p.Status)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestDeposit_FallsBackDaysLater: every notice is lost. Whatever the list shows of it makes somebody ask; where it shows
// nothing, or is not read, somebody asks all the same, if rarely.
func TestDeposit_FallsBackDaysLater(t *testing.T) {
	t.Parallel()
	for way, most := range map[tosssim.FallenRow]time.Duration{
		tosssim.FallenRowOwn: 3 * time.Minute, tosssim.FallenRowInPlace: 5 * time.Minute, tosssim.FallenRowGone: 5 * time.Minute,
		tosssim.FallenRowNone: 25 * time.Hour,
	} {
		t.Run(string(way), func(t *testing.T) {
			t.Parallel()
			s := setup(t, func(_ *reconcile.Config, c *tosssim.Config) { c.FallenRow = way })
			key := s.deposited("order-1", 10_000)
			s.pass(20 * time.Minute)
			s.clock.Advance(27 * time.Hour)
			if st := s.pass(time.Minute); st.Verdict != reconcile.VerdictReconciled {
				t.Fatalf("got %s %v before it falls back", st.Verdict, st.Reasons)
			}
			s.must(s.sim.RevertDeposit(key))
			_, err := s.Mirror.Reread(t.Context())
			s.must(err)
			for waited := time.Duration(0); s.payment(key).Status == ledger.StatusDone; waited += time.Minute {
				if waited > most {
					t.Fatalf("after %s the books still keep the deposit; work %s", waited, s.text(`SELECT string_agg(last_answer || ' ' || due_at, ', ') FROM work`))
				}
				st := s.pass(time.Minute)
				asked := len(st.Captures) == 1 && st.Captures[0].TakenBack == reconcile.Figure{Count: 1, Amount: 10_000}
				if asked {
					s.closeDay(monday)
					if got := s.text(`SELECT convert_from(closed, 'UTF8') FROM audit_runs WHERE scope = 'day' ORDER BY run_id DESC LIMIT 1`); !strings.Contains(got, "KRW captures_taken_back 1 10000\n") {
						t.Errorf("the closed day does not say why it is pending:\n%s", got)
					}
				}
				if want := map[bool]reconcile.Verdict{false: reconcile.VerdictReconciled, true: reconcile.VerdictPending}[asked]; st.Verdict != want ||
					asked != (s.number(`SELECT count(*) FROM mirror WHERE missing_since IS NOT NULL`) == 1 && s.payment(key).Status == ledger.StatusDone) {
					t.Fatalf("after %s: got %s with %+v", waited, st.Verdict, st.Line(reconcile.LineBreaks, ledger.KRW).Entries)
				}
			}
			if st := s.audit(reconcile.ScopeAll); st.Verdict != reconcile.VerdictReconciled || len(st.Drift) > 0 {
				t.Errorf("got %s %v afterwards", st.Verdict, st.Drift)
			}
			if n := s.number(`SELECT count(*) FROM mismatches`); n != 0 {
				t.Errorf("got %d mismatches, want none: the payment explains the list", n)
			}
			s.must(s.sim.Deposit(key))
			s.record(s.ask(ledger.ChannelWebhook, key))
			if st := s.pass(20 * time.Minute); st.Verdict != reconcile.VerdictReconciled || s.payment(key).Status != ledger.StatusDone {
				t.Errorf("got %s and %s when it came again", st.Verdict, s.payment(key).Status)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestDeposit_TheListAloneTakesNothingBack: it shows the deposit without money, or no more, and the payment object goes on
// showing it. That is a contradiction of the gateway's; it ends when the list has the row again.
func TestDeposit_TheListAloneTakesNothingBack(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]string{
		"in place": `UPDATE mirror SET waiting_since = $1 WHERE kind = 'capture'`, "gone": `UPDATE mirror SET missing_since = $1 WHERE kind = 'capture'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.deposited("order-1", 10_000)
			s.pass(20 * time.Minute)
			s.exec(forge, s.clock.Now())
			for range 12 {
				s.clock.Advance(9 * time.Minute)
				s.sweep()
			}
			if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictIncomplete || s.mismatches(ledger.KindHistoryChanged) != 0 {
				t.Errorf("got %s and %d mismatches within the patience", st.Verdict, s.mismatches(ledger.KindHistoryChanged))
			}
			s.clock.Advance(20 * time.Minute)
			s.sweep()
			if n := s.mismatches(ledger.KindHistoryChanged); n != 1 || s.payment(key).Status != ledger.StatusDone {
				t.Errorf("got %d mismatches and the payment %s, want one and done", n, s.payment(key).Status)
			}
			_, err := s.Mirror.Reread(t.Context())
			s.must(err)
			if st := s.pass(time.Minute); st.Verdict != reconcile.VerdictReconciled || s.mismatches(ledger.KindHistoryChanged) != 0 {
				t.Errorf("got %s and %d mismatches when the list has it again", st.Verdict, s.mismatches(ledger.KindHistoryChanged))
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestDeposit_StandsAfterItsWatch: a deposit that has not fallen back within a month is not asked about any more, and was
// asked about ten times.
func TestDeposit_StandsAfterItsWatch(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.deposited("order-1", 10_000)
	before := s.looks()
	for range 31 * 24 {
		s.clock.Advance(time.Hour)
		s.sweep()
	}
	if got := s.text(`SELECT string_agg(closed_as, ', ' ORDER BY work_id) FROM work WHERE kind = 'deposit_watch'`); got != "settled, expired" {
		t.Errorf("the watches over the account and its deposit closed as %s", got)
	}
	if n := s.looks() - before; n != 8 { // within the first hour once: the clock here goes by the hour
		t.Errorf("asked %d times, want 8", n)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestDeposit_OldAnswersTakeNothingBack: a copy of the gateway's that is behind answers as if nothing had been paid in, more
// than once and for most of an hour.
func TestDeposit_OldAnswersTakeNothingBack(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.VirtualAccount)
	s.record(s.send(s.intend("order-1", key, 10_000)).Observation)
	waiting, _ := s.sim.Payment(key)
	s.clock.Advance(time.Minute)
	s.must(s.sim.Deposit(key))
	s.record(s.ask(ledger.ChannelWebhook, key))
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, Payment: waiting, N: -1})
	before := s.looks()
	s.pass(50 * time.Minute)
	if p := s.payment(key); p.Status != ledger.StatusDone || p.WaitingSeenAt.IsZero() {
		t.Errorf("got %s, doubted since %s; want done and doubted", p.Status, p.WaitingSeenAt)
	}
	if n := s.looks() - before; n < 5 {
		t.Errorf("asked %d times only", n)
	}
	s.sim.Heal()
	if st := s.pass(20 * time.Minute); st.Verdict != reconcile.VerdictReconciled || !s.payment(key).WaitingSeenAt.IsZero() {
		t.Errorf("got %s, doubted since %s, after the gateway is itself again", st.Verdict, s.payment(key).WaitingSeenAt)
	}
	if n := s.number(`SELECT count(*) FROM journal_transactions WHERE kind = 'deposit_reversal'`); n != 0 {
		t.Errorf("got %d deposits taken back, want none", n)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestDeposit_TakenBackInError: the gateway answered wrongly for longer than anybody can wait. The next answers that are
// right book the money again, and both books agree all the while.
func TestDeposit_TakenBackInError(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.VirtualAccount)
	s.record(s.send(s.intend("order-1", key, 10_000)).Observation)
	waiting, _ := s.sim.Payment(key)
	s.clock.Advance(time.Minute)
	s.must(s.sim.Deposit(key))
	s.record(s.ask(ledger.ChannelWebhook, key))
	paid := s.clock.Now()
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, Payment: waiting, N: -1})
	s.pass(75 * time.Minute)
	if p := s.payment(key); p.Status != ledger.StatusWaitingForDeposit {
		t.Fatalf("got %s after wrong answers for more than an hour", p.Status)
	}
	s.sim.Heal()
	st := s.pass(30 * time.Minute)
	p := s.payment(key)
	if p.Status != ledger.StatusDone || len(p.Captures) != 2 || p.Captures[1].TransactionKey != p.Captures[0].TransactionKey {
		t.Fatalf("got %s with %+v, want the deposit booked again", p.Status, p.Captures)
	}
	if st.Verdict != reconcile.VerdictReconciled || s.number(`SELECT count(*) FROM mismatches`) != 0 {
		t.Errorf("got %s and %d mismatches", st.Verdict, s.number(`SELECT count(*) FROM mismatches`))
	}
	all := s.audit(reconcile.ScopeAll)
	if c := all.Captures[0]; all.Verdict != reconcile.VerdictReconciled || len(all.Drift) > 0 || c.Listed != c.Booked || c.Booked.Amount != 10_000 {
		t.Errorf("got %s, %v and %+v of everything", all.Verdict, all.Drift, c)
	}
	for at := paid; at.Before(s.clock.Now()); at = at.Add(10 * time.Minute) {
		trial, err := ledger.Balances(t.Context(), s.db, at, s.clock.Now())
		s.must(err)
		for _, b := range trial.Lines {
			if b.Account == ledger.AccountReceivable && b.Net() != ledger.Won(10_000) {
				t.Errorf("as of %s the gateway owed %s, want what it held all the time", at, b.Net())
			}
		}
	}
	ledgertest.RequireSound(t, s.db)
}

// TestDeposit_NeverComes: the gateway sends no notice when an account's time is over. It is asked then, and the order is
// free for another payment.
func TestDeposit_NeverComes(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.tx(func(tx pgx.Tx) error {
		_, err := s.books.CreateOrder(t.Context(), tx, ledger.Order{
			ID: "order-1", Amount: ledger.Won(10_000), Name: "order-1", ExpiresAt: s.clock.Now().Add(30 * 24 * time.Hour),
		})
		return err
	})
	buy := func(method tosssim.Method) (key string) {
		key = s.sim.Authenticate(tosssim.Checkout{OrderID: "order-1", OrderName: "order-1", Amount: 10_000, Method: method})
		s.record(s.send(s.intend("order-1", key, 10_000)).Observation)
		return key
	}
	account := buy(tosssim.VirtualAccount)
	s.clock.Advance(7*24*time.Hour - time.Minute)
	if swept := s.sweep(); swept.Asked != 0 || s.payment(account).Status != ledger.StatusWaitingForDeposit {
		t.Errorf("asked %d times before the account's time was over", swept.Asked)
	}
	s.clock.Advance(10 * time.Minute)
	s.sweep()
	if p := s.payment(account); p.Status != ledger.StatusFailed || p.Reason != "DEPOSIT_OVERDUE" {
		t.Errorf("got %s (%s), want failed", p.Status, p.Reason)
	}
	if n := s.number(`SELECT count(*) FROM work WHERE closed_at IS NULL`); n != 0 {
		t.Errorf("%d rows of work are left", n)
	}
	if p := s.payment(buy(tosssim.Card)); p.Status != ledger.StatusDone || p.Surplus {
		t.Errorf("got %s, surplus %t; want the order paid by card", p.Status, p.Surplus)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestDeposit_AnAccountThatWaitsIsAskedAboutForEver: it holds its order, so a gateway that cannot be asked, or does not
// say that the account's time is over, ends nothing.
func TestDeposit_AnAccountThatWaitsIsAskedAboutForEver(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 10_000, tosssim.VirtualAccount)
	s.record(s.send(s.intend("order-1", key, 10_000)).Observation)
	waiting, _ := s.sim.Payment(key)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, Payment: waiting, N: 20})
	for range 20 {
		s.clock.Advance(24 * time.Hour)
		s.sweep()
	}
	s.sim.Heal()
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.TooMany, N: -1})
	for range 5 {
		s.clock.Advance(24 * time.Hour)
		s.sweep()
	}
	if p := s.payment(key); p.Status != ledger.StatusWaitingForDeposit {
		t.Errorf("got %s without an answer", p.Status)
	}
	s.sim.Heal()
	s.clock.Advance(25 * time.Hour)
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusFailed {
		t.Errorf("got %s, want failed", p.Status)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestDeposit_AWitnessOutlivesAnOldAnswer: something says that the deposit fell back, and the question about it is answered
// by a copy of the gateway's that is behind. The witness is still there, so somebody asks again within minutes.
func TestDeposit_AWitnessOutlivesAnOldAnswer(t *testing.T) {
	t.Parallel()
	for _, way := range tosssim.FallenRows() {
		t.Run(string(way), func(t *testing.T) {
			t.Parallel()
			s := setup(t, func(_ *reconcile.Config, c *tosssim.Config) { c.FallenRow = way })
			key := s.deposited("order-1", 10_000)
			s.pass(20 * time.Minute)
			s.clock.Advance(27 * time.Hour)
			s.pass(time.Minute)
			paid, _ := s.sim.Payment(key)
			s.must(s.sim.RevertDeposit(key))
			s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, Payment: paid})
			before := s.looks()
			if way == tosssim.FallenRowNone { // a notice that proved itself
				s.exec(`UPDATE work SET told_at = $1, due_at = $1 WHERE kind = 'deposit_watch' AND closed_at IS NULL`, s.clock.Now())
			}
			_, err := s.Mirror.Reread(t.Context())
			s.must(err)
			s.pass(10 * time.Minute)
			if p := s.payment(key); p.Status != ledger.StatusWaitingForDeposit || s.looks() == before {
				t.Errorf("got %s after %d looks, the first of which was behind; want the deposit taken back", p.Status, s.looks()-before)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}
