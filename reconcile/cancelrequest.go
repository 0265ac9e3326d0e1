package reconcile

import (
	"context"
	"fmt"
	"strings"
	"time"

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
	case request.Status == ledger.CancelSending && now.Before(request.CreatedAt.Add(ledger.ConfirmBudget)):
		return s.noted(ctx, i, conclusion{result: ResultWaiting, answer: "the call may still be under way"})
	case !now.Before(request.KeyFirstUsedAt.Add(keyAgeMax)):
		return s.cancelTooOld(ctx, i, request)
	}
	permit, err := s.cfg.Gateway.ReserveCancel(ctx)
	if err != nil {
		return s.unanswered(ctx, []item{i}, err)
	}
	defer permit.Release()
	ctx, stop := detached(ctx, sendLimit)
	defer stop()
	result := s.cfg.Gateway.Cancel(ctx, permit, pgclient.CancelOf(request))
	s.cfg.Metrics.resent(ledger.WorkCancelRequest, result.Verdict)
	switch {
	case result.Verdict == pgclient.VerdictDone:
		return s.cancelAnswered(ctx, i, request, result.Observation)
	case answeredForGood(result):
		return s.cancelLook(ctx, i, request, result.Err, true)
	case result.Err.Status != 0 && result.Verdict == pgclient.VerdictUnknown:
		return s.cancelLook(ctx, i, request, result.Err, false)
	}
	return s.cancelLost(ctx, i, request, result.Err, nil)
}

// answeredForGood reports whether the gateway answered in a way that it repeats for the key: a refusal of whatever kind,
// our own mistakes among them, or words that do not say what is true. Then nothing is under way with the key any more.
func answeredForGood(result pgclient.Result) bool {
	return result.Verdict == pgclient.VerdictRefused || result.Verdict == pgclient.VerdictAsk ||
		(result.Verdict == pgclient.VerdictUnprocessed && result.Err.Group == pgclient.GroupOurs)
}

// cancelAnswered records the gateway's answer to our request and settles the request with the cancel it names.
func (s *Sweeper) cancelAnswered(ctx context.Context, i item, r ledger.CancelRequest, seen ledger.Observation) (Result, error) {
	return s.conclude(ctx, i, func(tx pgx.Tx) (conclusion, error) {
		look, err := s.look(ctx, tx, r, seen)
		if err != nil {
			return conclusion{}, err
		}
		mine, found := answerOf(r, seen, look.others)
		return s.settle(ctx, tx, i, look, sight{mine: mine, found: found}, reply{word: seen.Word, text: "the gateway says " + seen.Word})
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

// cancelLook asks what is true when the repeated answer does not say it. A request of which nothing is to be seen is
// refused only if the answer lets it: while one may still be under way at the gateway, it can still happen.
func (s *Sweeper) cancelLook(ctx context.Context, i item, r ledger.CancelRequest, failure *pgclient.Error, refusable bool) (Result, error) {
	seen, err := s.cfg.Gateway.Recover(ctx, ledger.ChannelSweep, r.PaymentKey)
	if err != nil {
		return s.cancelLost(ctx, i, r, failure, err)
	}
	return s.concludeLook(ctx, i, r, seen, reply{word: wordOf(failure), text: failure.Error(), refusable: refusable, failure: failure})
}

func (s *Sweeper) concludeLook(ctx context.Context, i item, r ledger.CancelRequest, seen ledger.Observation, said reply) (Result, error) {
	return s.conclude(ctx, i, func(tx pgx.Tx) (conclusion, error) {
		if err := s.distrust(ctx, tx, i, said.failure); err != nil {
			return conclusion{}, err
		}
		look, err := s.look(ctx, tx, r, seen)
		if err != nil {
			return conclusion{}, err
		}
		return s.settle(ctx, tx, i, look, sightOf(r, seen, look.others), said)
	})
}

// look is a payment object, recorded, with what the books know besides.
type look struct {
	request  ledger.CancelRequest
	seen     ledger.Observation
	recorded ledger.Recorded
	others   map[string]bool
}

func (s *Sweeper) look(ctx context.Context, tx pgx.Tx, r ledger.CancelRequest, seen ledger.Observation) (look, error) {
	recorded, err := s.cfg.Ledger.Record(ctx, tx, seen)
	if err != nil {
		return look{}, err
	}
	others, err := otherCancels(ctx, tx, r)
	return look{request: r, seen: seen, recorded: recorded, others: others}, err
}

// reply is what the gateway said to the request itself.
type reply struct {
	word, text string
	refusable  bool // it is no more under way with its key
	failure    error
}

const (
	// absentAnswer begins the answer kept of a look that showed nothing of the request.
	absentAnswer = "absent: "
	// lookApart is between the two looks after which a request is refused. A payment is shown late by some of the
	// gateway's copies, and the gateway has been seen to hold a request for 4 minutes after its caller had left.
	lookApart = 5 * time.Minute
)

// settle ends the request if what was seen lets it. A cancel that stands exactly where ours would ends it whatever the
// gateway replied: either it is ours, or ours has become impossible, and the money asked for has gone back once. Nothing
// of it on two looks minutes apart: refused. Everything else stays unknown, and after an hour a person looks too.
func (s *Sweeper) settle(ctx context.Context, tx pgx.Tx, i item, l look, found sight, said reply) (conclusion, error) {
	c := conclusion{result: ResultWaiting, answer: said.text}
	answer := ledger.CancelAnswer{Status: ledger.CancelRequestUnknown, Word: said.word}
	conflict := l.recorded.Outcome == ledger.OutcomeConflict
	absent := found.absent && said.refusable && !conflict && !behind(l.seen, l.recorded.After)
	switch {
	case conflict:
		c.answer = "contradicts the books: " + l.recorded.Detail
	case found.found:
		answer.Status, answer.TransactionKey = requestStatus(found.mine.State), found.mine.TransactionKey
	case absent && i.absentBefore(s.cfg.now()):
		answer.Status = ledger.CancelRequestRefused
	case absent:
		c.answer, c.again = absentAnswer+said.text, lookApart
	}
	if !l.recorded.Bears(l.request, answer) {
		answer = ledger.CancelAnswer{Status: ledger.CancelRequestUnknown, Word: said.word}
		c.answer = "the books did not take what the gateway says"
	}
	if answer.Status == ledger.CancelRequestUnknown && !absent && i.lastChance(s.cfg.now()) {
		err := s.doubtRequest(ctx, tx, i, l.request, map[string]any{
			"word": l.seen.Word, "balance": l.seen.Balance.Decimal(), "cancels": len(l.seen.Cancels), "said": said.word,
		})
		if err != nil {
			return c, err
		}
	}
	return c, s.cfg.Ledger.SettleCancelRequest(ctx, tx, l.request.ID, answer)
}

// absentBefore reports whether the look before this one, and long enough before it, showed nothing of the request.
func (i item) absentBefore(now time.Time) bool {
	return strings.HasPrefix(i.LastAnswer, absentAnswer) && !now.Before(i.AskedBefore.Add(lookApart))
}

// doubtRequest opens a mismatch about a request whose end nothing shows. Asking goes on.
func (s *Sweeper) doubtRequest(ctx context.Context, tx pgx.Tx, i item, r ledger.CancelRequest, gateway map[string]any) error {
	b := &pgx.Batch{}
	ledger.QueueMismatch(b, ledger.Finding{
		Kind: ledger.KindCancelMissingHere, PaymentKey: r.PaymentKey, OrderID: i.OrderID, TransactionKey: ledger.RequestSubject(r.ID),
		AtRisk:  r.Amount,
		Detail:  fmt.Sprintf("the gateway does not say what came of our cancel %s; compare by hand", r.ID),
		Gateway: gateway,
		Books:   map[string]any{"amount": r.Amount.Decimal(), "refundable": r.Refundable.Decimal(), "since": r.CreatedAt.UTC()},
	}, s.cfg.now())
	return tx.SendBatch(ctx, b).Close()
}

// cancelLost notes that the answer is still not known. A request that was never processed keeps its doubt too: the
// attempt before this one may have been.
func (s *Sweeper) cancelLost(ctx context.Context, i item, r ledger.CancelRequest, failure *pgclient.Error, looked error) (Result, error) {
	return s.conclude(ctx, i, func(tx pgx.Tx) (conclusion, error) {
		for _, unread := range []error{failure, looked} {
			if err := s.distrust(ctx, tx, i, unread); err != nil {
				return conclusion{}, err
			}
		}
		if i.lastChance(s.cfg.now()) {
			if err := s.doubtRequest(ctx, tx, i, r, map[string]any{"said": wordOf(failure)}); err != nil {
				return conclusion{}, err
			}
		}
		err := s.cfg.Ledger.SettleCancelRequest(ctx, tx, r.ID, ledger.CancelAnswer{
			Status: ledger.CancelRequestUnknown, Word: wordOf(failure),
		})
		return conclusion{result: ResultUnanswered, answer: "unanswered: " + failure.Error()}, err
	})
}

// cancelTooOld is a request whose key the gateway may have forgotten: sent again it could cancel a second time. So it is
// only looked at; under way it is no more.
func (s *Sweeper) cancelTooOld(ctx context.Context, i item, r ledger.CancelRequest) (Result, error) {
	seen, err := s.cfg.Gateway.Recover(ctx, ledger.ChannelSweep, r.PaymentKey)
	if err != nil {
		return s.unread(ctx, []item{i}, err)
	}
	return s.concludeLook(ctx, i, r, seen, reply{word: "never processed", text: "the request is too old to be sent again", refusable: true})
}
