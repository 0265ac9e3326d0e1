package reconcile

import (
	"context"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// depositWatch looks again at a deposit that may fall back, whose notice can be lost, and at an account whose time is
// over, of which there is no notice. An account that still waits is asked about for ever: it holds its order.
func (s *Sweeper) depositWatch(ctx context.Context, i item) (Result, error) {
	seen, err := s.cfg.Gateway.Recover(ctx, ledger.ChannelSweep, i.PaymentKey)
	if err != nil {
		payment, _, failure := ledger.Load(ctx, s.cfg.DB, i.PaymentKey)
		if failure != nil {
			return "", failure
		}
		if next, any := payment.NextLook(s.cfg.now()); any {
			i.nextLook = next
		}
		if !i.nextLook.IsZero() || payment.Status == ledger.StatusWaitingForDeposit || s.cfg.now().Before(i.Deadline.Add(day)) {
			return s.unread(ctx, []item{i}, err)
		}
		return s.noted(ctx, i, conclusion{result: ResultExpired, answer: "unanswered: " + err.Error(), close: ledger.ClosedExpired})
	}
	return s.conclude(ctx, i, func(tx pgx.Tx) (conclusion, error) {
		recorded, err := s.cfg.Ledger.Record(ctx, tx, seen)
		return s.watched(i, seen, recorded), err
	})
}

// watched says when the account is looked at next, or that it need not be any more: its deposit has stood for long
// enough, or is none of the gateway's to take back. One that waits is looked at when its time is over, whatever its steps.
func (s *Sweeper) watched(i item, seen ledger.Observation, r ledger.Recorded) conclusion {
	c := conclusion{result: ResultWaiting, answer: "the gateway says " + seen.Word}
	now, status := s.cfg.now(), r.After.Status
	next, looked := r.After.NextLook(now)
	switch {
	case r.Outcome == ledger.OutcomeApplied:
	case r.Outcome == ledger.OutcomeConflict && !i.lastChance(now):
		c.answer = "contradicts the books: " + r.Detail
	case r.Outcome != ledger.OutcomeConflict && looked:
		c.again = next.Sub(now)
	case status == ledger.StatusWaitingForDeposit:
		c.again = nextDue(i.Kind, i.Attempts, now, i.Deadline, s.cfg.Eager).Sub(now)
		if over := seen.TimeOver(); over.After(now) {
			c.again = min(c.again, over.Sub(now))
		}
	case !status.Undecided() || i.lastChance(now):
		c.result, c.close = ResultExpired, ledger.ClosedExpired
	}
	return c
}
