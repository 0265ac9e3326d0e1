package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"daesa/internal/stage"
	"daesa/ledger"
	"daesa/reconcile"
)

// story plays one scene after the other and checks each.
type story struct {
	*demo
	out    io.Writer
	number int
	begin  time.Time
}

func newStory(d *demo, out io.Writer) *story {
	return &story{demo: d, out: out, begin: time.Now()}
}

// scene is one thing that happens, and how it must end.
type scene struct {
	title string
	play  func(context.Context) error
}

func (s *story) scenes() []scene {
	return []scene{
		{"A payment is approved", s.approved},
		{"Canceled in the gateway's dashboard: its notice is applied", s.noticeApplied},
		{"The same notice again is answered without asking the gateway", s.duplicate},
		{"The reply to a confirm is lost; the outcome is asked for", s.lostReply},
		{"Two partial cancels, one ours and one in the dashboard, to zero", s.partials},
		{"The gateway is silent: 502 in about 3 s, and a redelivery applies", s.silent},
		{"A notice overtakes the approval it follows", s.overtaken},
		{"A notice for a payment never seen: 404, adopted when the payment appears", s.adopted},
		{"A forged notice is refused", s.forged},
		{"A notice that never comes: the gateway's list shows the cancel", s.neverComes},
		{"Credits of a canceled order are spent already: a mismatch, for people to work on", s.spent},
	}
}

// tell plays every scene and stops at the first that does not end as it should.
func (s *story) tell(ctx context.Context) error {
	for _, scene := range s.scenes() {
		s.number++
		fmt.Fprintf(s.out, "%2d. %s\n", s.number, scene.title)
		if err := scene.play(ctx); err != nil {
			return fmt.Errorf("scene %d, %s: %w", s.number, scene.title, err)
		}
		if err := s.proveIdentity(ctx); err != nil {
			return fmt.Errorf("scene %d, %s: %w", s.number, scene.title, err)
		}
	}
	violations, err := ledger.Check(ctx, s.App.DB())
	if err != nil {
		return err
	}
	if len(violations) > 0 {
		return fmt.Errorf("%d broken invariants, the first: %s", len(violations), violations[0])
	}
	fmt.Fprintf(s.out, "\nAll invariants hold. The story took %.1f s.\n", time.Since(s.begin).Seconds())
	return nil
}

func (s *story) say(format string, args ...any) { fmt.Fprintf(s.out, "      "+format+"\n", args...) }

// proveIdentity reads the gateway's list and audits everything.
func (s *story) proveIdentity(ctx context.Context) error {
	statement, err := s.audit(ctx)
	if err != nil {
		return err
	}
	if len(statement.Sums) == 0 {
		s.say("identity: nothing is canceled, here or at the gateway")
	}
	for _, sum := range statement.Sums {
		won := func(f reconcile.Figure) string {
			return ledger.Money{Minor: f.Amount, Currency: sum.Currency}.Decimal()
		}
		s.say("identity: gateway cancels %d (%s) = canceled %d (%s) + pending %d (%s) + unexplained %d", sum.Gateway.Count,
			won(sum.Gateway), sum.Canceled.Count, won(sum.Canceled), sum.Pending.Count, won(sum.Pending), sum.Unexplained.Count)
		if !sum.Holds() || sum.Unexplained != (reconcile.Figure{}) {
			return fmt.Errorf("the identity does not hold: verdict %s", statement.Verdict)
		}
	}
	if statement.Verdict != reconcile.VerdictReconciled && statement.Verdict != reconcile.VerdictPending {
		return fmt.Errorf("got the verdict %s %v, want reconciled", statement.Verdict, statement.Reasons)
	}
	return nil
}

// audit audits everything as soon as the list is read completely.
func (s *story) audit(ctx context.Context) (reconcile.Statement, error) {
	return s.Audit(ctx, 20*time.Second, func(v reconcile.Verdict) bool { return v != reconcile.VerdictIncomplete })
}

// sale is an order of the story, with credits that a cancel revokes.
func sale(order string, won int64) stage.Sale {
	return stage.Sale{OrderID: order, Won: won, Customer: "demo-customer", Credits: won / 1000, Name: "데모 상품"}
}

// deliver sends the newest notice of a payment once and checks how it is answered.
func (s *story) deliver(key string, want int) error {
	var id int64
	for _, n := range s.Sim.Notices() {
		if n.PaymentKey == key {
			id = n.ID
		}
	}
	begin := time.Now()
	status, err := s.Sim.Deliver(id)
	if err != nil {
		return fmt.Errorf("deliver: %w", err)
	}
	s.say("notice → %d in %d ms", status, time.Since(begin).Milliseconds())
	if status != want {
		return fmt.Errorf("got %d for the notice, want %d", status, want)
	}
	return nil
}

// becomes waits until an order has a status, which work in the background brings about.
func (s *story) becomes(ctx context.Context, order, want string) error {
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		got, err := s.Shop.Status(ctx, order)
		if err == nil && got == want {
			s.say("order %s is %s", order, got)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("got order %s %q, want %q: %w", order, got, want, ctx.Err())
		case <-tick.C:
		}
	}
}
