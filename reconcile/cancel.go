package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// A listed cancel that the payment object still does not show after this many questions, or this long, is a
// contradiction within the gateway's own books. Asking goes on.
const (
	listedAsksMax = 10
	listedAgeMax  = time.Hour
)

// lastChanceShared is how long before its own last chance a claim shares that of another claim of its payment: the sender's
// last redelivery has been due for five minutes by then, and each claim of many would cost a question of its own.
const lastChanceShared = 10 * time.Minute

// cancelOwed asks about a cancel that the list shows or that the gateway has not finished, or about all cancels of one
// payment that notices claim. At the last chance of a mere claim the answer is final: either the gateway shows the cancel and
// it is booked, or the claim is refuted. A gateway that cannot be asked refutes nothing.
func (s *Sweeper) cancelOwed(ctx context.Context, rows []item) (Result, error) {
	channel, last, first := ledger.ChannelSweep, s.cfg.now(), rows[0]
	if slices.ContainsFunc(rows, func(i item) bool { return i.lastChance(last) }) {
		channel, last = ledger.ChannelLastChance, last.Add(lastChanceShared)
	}
	seen, err := s.cfg.Gateway.Recover(ctx, channel, first.PaymentKey)
	switch {
	case notFound(err):
		c := conclusion{result: ResultWaiting, answer: "the gateway knows no such payment", denied: first.Kind == ledger.WorkCancelClaimed}
		return s.concludeAll(ctx, rows, func(pgx.Tx) ([]conclusion, error) { return slices.Repeat([]conclusion{c}, len(rows)), nil })
	case err != nil:
		return s.unread(ctx, rows, err)
	}
	if first.Kind == ledger.WorkCancelListed {
		seen.Listed = first.TransactionKey
	}
	return s.concludeAll(ctx, rows, func(tx pgx.Tx) ([]conclusion, error) {
		recorded, err := s.cfg.Ledger.Record(ctx, tx, seen)
		if errors.Is(err, ledger.ErrNotFound) {
			if recorded, err = s.adoptForCancel(ctx, tx, first, seen); errors.Is(err, ledger.ErrNotFound) {
				c, err := s.strangeCancel(ctx, tx, first, seen)
				return slices.Repeat([]conclusion{c}, len(rows)), err
			}
		}
		if err != nil {
			return nil, err
		}
		all := make([]conclusion, len(rows))
		for n, i := range rows {
			if all[n], err = s.cancelConclusion(ctx, tx, i, seen, recorded, i.lastChance(last)); err != nil {
				return nil, err
			}
		}
		return all, nil
	})
}

func (s *Sweeper) cancelConclusion(
	ctx context.Context, tx pgx.Tx, i item, seen ledger.Observation, r ledger.Recorded, last bool,
) (conclusion, error) {
	c := conclusion{result: ResultWaiting, answer: "the gateway says " + seen.Word}
	switch {
	case r.Outcome == ledger.OutcomeConflict:
		c.answer = "contradicts the books: " + r.Detail
		return c, nil
	case i.TransactionKey != "" && r.After.HasCancel(i.TransactionKey):
		return c, nil // Record has closed the row
	case i.TransactionKey != "" && slices.Contains(r.Elsewhere, i.TransactionKey):
		c.result, c.close, c.answer = ResultRefuted, ledger.ClosedRefuted, "the cancel is booked for another payment" // a mismatch is open
		return c, nil
	case shows(seen, i.TransactionKey):
		c.answer = "the gateway has not finished the cancel"
		return c, nil
	case i.Kind == ledger.WorkCancelListed && isCapture(i, seen, r.After):
		c.result, c.close, c.answer = ResultSettled, ledger.ClosedSettled, "the listed row is the capture"
		return c, s.learnCapture(ctx, tx, i)
	case i.Kind == ledger.WorkCancelListed:
		c.answer = "the payment does not show the listed cancel"
		return c, s.doubtListed(ctx, tx, i, seen, r.After)
	case i.Kind == ledger.WorkCancelClaimed && last:
		c.result, c.close, c.answer = ResultRefuted, ledger.ClosedRefuted, "the gateway shows no such cancel"
	}
	c.denied = i.Kind == ledger.WorkCancelClaimed
	return c, nil
}

// shows reports whether the payment object has the cancel, finished or not; without a key, any unfinished one.
func shows(seen ledger.Observation, transactionKey string) bool {
	for _, c := range seen.Cancels {
		if c.TransactionKey == transactionKey || (transactionKey == "" && c.State != ledger.CancelDone && c.State != ledger.CancelAborted) {
			return true
		}
	}
	return false
}

// isCapture reports whether a row that the list shows as canceled is in fact the approval: the list may write the
// payment's present status into it. Then its amount is the payment's, no cancel carries its key, and our capture still
// lacks one.
func isCapture(i item, seen ledger.Observation, p ledger.Payment) bool {
	if seen.Evidence != ledger.EvidenceCaptured || i.atRisk() != seen.Total {
		return false
	}
	for _, c := range p.Captures {
		if c.ReversedAt.IsZero() && (c.TransactionKey == "" || c.TransactionKey == i.TransactionKey) {
			return true
		}
	}
	return false
}

// learnCapture gives the capture its key and corrects the mirror's reading of the row.
func (s *Sweeper) learnCapture(ctx context.Context, tx pgx.Tx, i item) error {
	b := &pgx.Batch{}
	ledger.QueueLearnCapture(b, i.PaymentKey, i.TransactionKey, i.atRisk())
	b.Queue(`UPDATE mirror SET kind = 'capture' WHERE transaction_key = @transaction_key`,
		pgx.StrictNamedArgs{"transaction_key": i.TransactionKey})
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("learn the capture of payment %s: %w", i.PaymentKey, err)
	}
	return nil
}

// doubtListed opens a mismatch once the list and the payment object have contradicted each other for long.
func (s *Sweeper) doubtListed(ctx context.Context, tx pgx.Tx, i item, seen ledger.Observation, p ledger.Payment) error {
	now := s.cfg.now()
	if i.Attempts < listedAsksMax && now.Sub(i.OpenedAt) < listedAgeMax {
		return nil
	}
	b := &pgx.Batch{}
	ledger.QueueMismatch(b, ledger.Finding{
		Kind: ledger.KindCancelMissingHere, PaymentKey: i.PaymentKey, OrderID: i.OrderID, TransactionKey: i.TransactionKey,
		AtRisk: i.atRisk(), Detail: "the gateway lists a cancel that its own payment object does not show",
		Gateway: map[string]any{
			"word": seen.Word, "total": seen.Total.Decimal(), "balance": seen.Balance.Decimal(),
			"cancels": len(seen.Cancels), "listed": i.TransactionKey, "asked": i.Attempts,
		},
		Books: map[string]any{"status": p.Status, "canceled": p.Canceled().Decimal(), "captured": p.Captured().Decimal()},
	}, now)
	return tx.SendBatch(ctx, b).Close()
}

// adoptForCancel takes the payment of a listed cancel over from the system before us; ErrNotFound when it is not of it.
func (s *Sweeper) adoptForCancel(ctx context.Context, tx pgx.Tx, i item, seen ledger.Observation) (ledger.Recorded, error) {
	if i.Kind != ledger.WorkCancelListed {
		return ledger.Recorded{}, ledger.ErrNotFound
	}
	recorded, done, err := s.takeOver(ctx, tx, seen)
	if err == nil && !done {
		err = ledger.ErrNotFound
	}
	return recorded, err
}

// strangeCancel is a cancel of a payment whose order is not in our books.
func (s *Sweeper) strangeCancel(ctx context.Context, tx pgx.Tx, i item, seen ledger.Observation) (conclusion, error) {
	if i.Kind != ledger.WorkCancelListed || s.cfg.foreign(seen.OrderID) {
		return conclusion{result: ResultRefuted, answer: "the order is not in our books", close: ledger.ClosedRefuted}, nil
	}
	c, err := s.strange(ctx, tx, seen)
	c.result, c.close = ResultWaiting, "" // the list has it, so it stays owed
	return c, err
}
