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
		if payment.Status == ledger.StatusWaitingForDeposit || s.cfg.now().Before(i.Deadline.Add(day)) {
			return s.unread(ctx, i, err)
		}
		return s.noted(ctx, i, conclusion{result: ResultExpired, answer: "unanswered: " + err.Error(), close: ledger.ClosedExpired})
	}
	return s.conclude(ctx, i, func(tx pgx.Tx) (conclusion, error) {
		c := conclusion{result: ResultWaiting, answer: "the gateway says " + seen.Word}
		recorded, err := s.cfg.Ledger.Record(ctx, tx, seen)
		waits := recorded.After.Status == ledger.StatusWaitingForDeposit || !recorded.After.WaitingSeenAt.IsZero()
		if err == nil && i.lastChance(s.cfg.now()) && !waits && recorded.Outcome != ledger.OutcomeApplied {
			c.result, c.close = ResultExpired, ledger.ClosedExpired
		}
		return c, err
	})
}
