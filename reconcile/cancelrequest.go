package reconcile

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/pgclient"
)

// cancelRequest settles a cancel of our own whose answer was lost, by sending the same request with the same key: the
// gateway then repeats the answer it gave. A look at the payment alone could not tell our cancel from one of the same
// amount made elsewhere.
func (s *Sweeper) cancelRequest(ctx context.Context, i item) (Result, error) {
	request, err := ledger.LoadCancelRequest(ctx, s.cfg.DB, i.RequestID)
	if err != nil {
		return "", err
	}
	now := s.cfg.now()
	switch {
	case request.Status.Final() || request.Status == ledger.CancelRequestInProgress:
		return s.noted(ctx, i, conclusion{result: ResultSettled, answer: string(request.Status), close: ledger.ClosedSettled})
	case request.Status == ledger.CancelSending && now.Before(request.CreatedAt.Add(confirmBudget)):
		return s.noted(ctx, i, conclusion{result: ResultWaiting, answer: "the call may still be under way"})
	case !now.Before(request.KeyFirstUsedAt.Add(keyAgeMax)):
		return s.cancelTooOld(ctx, i, request)
	}
	permit, err := s.cfg.Gateway.ReserveCancel(ctx)
	if err != nil {
		return s.unanswered(ctx, i, err)
	}
	defer permit.Release()
	ctx, stop := detached(ctx, sendLimit)
	defer stop()
	result := s.cfg.Gateway.Cancel(ctx, permit, sameCancel(request))
	s.cfg.Metrics.resent(ledger.WorkCancelRequest, result.Verdict)
	switch result.Verdict {
	case pgclient.VerdictDone:
		return s.cancelAnswered(ctx, i, request, result.Observation)
	case pgclient.VerdictRefused:
		return s.cancelLook(ctx, i, request, result.Err, result.Err.Group == pgclient.GroupRefused)
	case pgclient.VerdictAsk:
		return s.cancelLook(ctx, i, request, result.Err, false)
	case pgclient.VerdictUnknown, pgclient.VerdictUnprocessed:
	}
	return s.cancelLost(ctx, i, request, result.Err)
}

// sameCancel is the request as it was first sent. All that is left is canceled without naming an amount, which every
// method of payment allows.
func sameCancel(r ledger.CancelRequest) pgclient.CancelRequest {
	same := pgclient.CancelRequest{
		PaymentKey: r.PaymentKey, Reason: r.Reason, Refundable: r.Refundable, IdempotencyKey: r.IdempotencyKey(),
	}
	if r.Amount != r.Refundable {
		same.Amount = &r.Amount
	}
	if r.RefundAccount != nil {
		same.RefundAccount = &pgclient.RefundAccount{
			Bank: r.RefundAccount["bank"], AccountNumber: r.RefundAccount["accountNumber"], HolderName: r.RefundAccount["holderName"],
		}
	}
	return same
}

// cancelAnswered records the gateway's answer to our request and settles the request with the cancel it names.
func (s *Sweeper) cancelAnswered(ctx context.Context, i item, r ledger.CancelRequest, seen ledger.Observation) (Result, error) {
	return s.conclude(ctx, i, func(tx pgx.Tx) (conclusion, error) {
		if _, err := s.cfg.Ledger.Record(ctx, tx, seen); err != nil {
			return conclusion{}, err
		}
		answer := ledger.CancelAnswer{Status: ledger.CancelRequestUnknown, Word: seen.Word}
		if mine, ok := cancelOf(r, seen); ok {
			answer.TransactionKey = mine.TransactionKey
			answer.Status = requestStatus(mine.State)
		} else if seen.Evidence == ledger.EvidenceVoided {
			answer.TransactionKey, answer.Status = seen.LastTransactionKey, ledger.CancelRequestDone
		}
		err := s.cfg.Ledger.SettleCancelRequest(ctx, tx, r.ID, answer)
		return conclusion{result: ResultWaiting, answer: "the gateway says " + seen.Word}, err
	})
}

func requestStatus(state ledger.CancelState) ledger.CancelRequestStatus {
	switch state {
	case ledger.CancelDone:
		return ledger.CancelRequestDone
	case ledger.CancelInProgress:
		return ledger.CancelRequestInProgress
	case ledger.CancelAborted:
		return ledger.CancelRequestRefused
	case ledger.CancelUnrecognized:
	}
	return ledger.CancelRequestUnknown
}

// cancelOf finds the request's cancel in the answer to it. What is left falls with every cancel, so the amount and
// what was left afterwards name one alone; a void has no amount and is the only cancel there can be.
func cancelOf(r ledger.CancelRequest, seen ledger.Observation) (ledger.ObservedCancel, bool) {
	if r.Amount.IsZero() {
		if len(seen.Cancels) == 1 {
			return seen.Cancels[0], true
		}
		return ledger.ObservedCancel{}, false
	}
	var found []ledger.ObservedCancel
	for _, c := range seen.Cancels {
		if c.Amount == r.Amount && c.Refundable.Minor == r.Refundable.Minor-r.Amount.Minor {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		return ledger.ObservedCancel{}, false
	}
	return found[0], true
}

// cancelLook asks what is true when the repeated answer does not say it. Nothing new and the balance as it was: our
// cancel did not happen. One new cancel that fits in amount, remainder and reason: it is ours. None that fits, and less
// left than the request named: ours did not happen and never can. Anything else stays unknown, unless the gateway
// refused the request itself for good.
func (s *Sweeper) cancelLook(ctx context.Context, i item, r ledger.CancelRequest, failure *pgclient.Error, definite bool) (Result, error) {
	seen, err := s.cfg.Gateway.Recover(ctx, ledger.ChannelSweep, r.PaymentKey)
	if err != nil {
		return s.cancelLost(ctx, i, r, failure)
	}
	return s.conclude(ctx, i, func(tx pgx.Tx) (conclusion, error) {
		c := conclusion{result: ResultWaiting, answer: failure.Error()}
		recorded, err := s.cfg.Ledger.Record(ctx, tx, seen)
		if err != nil {
			return c, err
		}
		answer := ledger.CancelAnswer{Status: ledger.CancelRequestUnknown, Word: wordOf(failure)}
		mine, found := cancelOf(r, seen)
		switch {
		case found && mine.Reason == r.Reason && !mine.CanceledAt.Before(r.CreatedAt.Truncate(second)):
			answer.Status, answer.TransactionKey = requestStatus(mine.State), mine.TransactionKey
		case definite || untouched(r, seen) || (!found && overtaken(r, seen)):
			answer.Status = ledger.CancelRequestRefused
		}
		if answer.Status == ledger.CancelRequestUnknown && recorded.Outcome == ledger.OutcomeConflict {
			c.answer = "contradicts the books: " + recorded.Detail
		}
		return c, s.cfg.Ledger.SettleCancelRequest(ctx, tx, r.ID, answer)
	})
}

// untouched reports whether the payment is as it was before the request: the balance it named is left. Of a virtual
// account without a deposit that is the account still waiting.
func untouched(r ledger.CancelRequest, seen ledger.Observation) bool {
	if r.Amount.IsZero() {
		return seen.Evidence == ledger.EvidenceWaiting && len(seen.Cancels) == 0
	}
	for _, c := range seen.Cancels {
		if c.State == ledger.CancelInProgress || c.State == ledger.CancelUnrecognized {
			return false
		}
	}
	return seen.Evidence == ledger.EvidenceCaptured && seen.Balance == r.Refundable
}

// overtaken reports whether other cancels came first. The gateway cancels only while exactly the named balance is left,
// and a balance never grows again; so once less is left and no cancel stands where ours would, ours is impossible. That
// needs every cancel to say what was left after it, and none still under way.
func overtaken(r ledger.CancelRequest, seen ledger.Observation) bool {
	if r.Amount.IsZero() || seen.Evidence != ledger.EvidenceCaptured || seen.Balance.Minor >= r.Refundable.Minor {
		return false
	}
	for _, c := range seen.Cancels {
		open := c.State == ledger.CancelInProgress || c.State == ledger.CancelUnrecognized
		fits := c.Amount == r.Amount && c.Refundable.Minor == r.Refundable.Minor-r.Amount.Minor
		if open || fits || c.Refundable.Currency == "" {
			return false
		}
	}
	return true
}

// cancelLost notes that the answer is still not known. A request that was never processed keeps its doubt too: the
// attempt before this one may have been.
func (s *Sweeper) cancelLost(ctx context.Context, i item, r ledger.CancelRequest, failure *pgclient.Error) (Result, error) {
	return s.conclude(ctx, i, func(tx pgx.Tx) (conclusion, error) {
		err := s.cfg.Ledger.SettleCancelRequest(ctx, tx, r.ID, ledger.CancelAnswer{
			Status: ledger.CancelRequestUnknown, Word: wordOf(failure),
		})
		return conclusion{result: ResultUnanswered, answer: "unanswered: " + failure.Error()}, err
	})
}

// cancelTooOld is a request whose key the gateway may have forgotten: sent again it could cancel a second time. It is
// only looked at, and a person decides.
func (s *Sweeper) cancelTooOld(ctx context.Context, i item, r ledger.CancelRequest) (Result, error) {
	seen, err := s.cfg.Gateway.Recover(ctx, ledger.ChannelSweep, r.PaymentKey)
	if err != nil {
		return s.unanswered(ctx, i, err)
	}
	return s.conclude(ctx, i, func(tx pgx.Tx) (conclusion, error) {
		c := conclusion{result: ResultWaiting, answer: "the request is too old to be sent again"}
		recorded, err := s.cfg.Ledger.Record(ctx, tx, seen)
		if err != nil {
			return c, err
		}
		if untouched(r, seen) {
			return c, s.cfg.Ledger.SettleCancelRequest(ctx, tx, r.ID, ledger.CancelAnswer{
				Status: ledger.CancelRequestRefused, Word: "never processed",
			})
		}
		b := &pgx.Batch{}
		ledger.QueueMismatch(b, ledger.Finding{
			Kind: ledger.KindCancelMissingHere, PaymentKey: r.PaymentKey, OrderID: recorded.After.OrderID,
			TransactionKey: "request:" + r.ID, AtRisk: r.Amount,
			Detail:  fmt.Sprintf("the answer to our cancel %s was lost and its key is too old to ask with; compare by hand", r.ID),
			Gateway: map[string]any{"word": seen.Word, "balance": seen.Balance.Decimal(), "cancels": len(seen.Cancels)},
			Books:   map[string]any{"status": recorded.After.Status, "balance": recorded.After.Balance().Decimal()},
		}, s.cfg.now())
		return c, tx.SendBatch(ctx, b).Close()
	})
}
