package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/pgclient"
)

const (
	// sessionOpen is how long the gateway lets an authenticated payment be approved.
	sessionOpen = 10 * time.Minute
	// keyAgeMax is under the 15 days for which the gateway remembers an idempotency key. An older key would be taken
	// for a new request.
	keyAgeMax = 14 * 24 * time.Hour
	// sendLimit bounds a call that moves money, and the writing after it.
	sendLimit = 50 * time.Second
)

// confirmUnknown finds out what became of a confirm: by payment key, then by order, since an order can have been paid
// with another key. A payment that the gateway still holds open within its session is confirmed again with the same
// idempotency key, so that the sale is not lost. "Not found" and "still open" are no evidence.
func (s *Sweeper) confirmUnknown(ctx context.Context, i item) (Result, error) {
	seen, err := s.cfg.Gateway.Recover(ctx, ledger.ChannelRecover, i.PaymentKey)
	if notFound(err) && i.OrderID != "" {
		seen, err = s.cfg.Gateway.RecoverOrder(ctx, ledger.ChannelRecover, i.OrderID)
	}
	switch {
	case notFound(err):
		return s.nowhere(ctx, i)
	case err != nil:
		return s.unread(ctx, []item{i}, err)
	}
	if seen.Evidence == ledger.EvidenceOpen && seen.PaymentKey == i.PaymentKey {
		if payment, ok, err := s.confirmable(ctx, i); err != nil {
			return "", err
		} else if ok {
			return s.confirmAgain(ctx, i, payment)
		}
	}
	return s.recordConfirm(ctx, i, seen)
}

// nowhere notes that the gateway knows neither the payment nor its order. That is no evidence and ends no doubt; but a
// key that was perhaps made up holds its order only for a while.
func (s *Sweeper) nowhere(ctx context.Context, i item) (Result, error) {
	return s.conclude(ctx, i, func(tx pgx.Tx) (conclusion, error) {
		_, err := s.cfg.Ledger.Release(ctx, tx, i.PaymentKey)
		return conclusion{result: ResultWaiting, answer: "the gateway knows neither the payment nor the order"}, err
	})
}

// confirmable reports whether the payment's confirm may be sent again.
func (s *Sweeper) confirmable(ctx context.Context, i item) (ledger.Payment, bool, error) {
	payment, _, err := ledger.Load(ctx, s.cfg.DB, i.PaymentKey)
	if errors.Is(err, ledger.ErrNotFound) {
		return payment, false, nil
	}
	if err != nil {
		return payment, false, err
	}
	now := s.cfg.now()
	inHand := payment.Status == ledger.StatusConfirming && now.Before(payment.IntendedAt.Add(ledger.ConfirmBudget))
	return payment, payment.Status.Undecided() && payment.Attempt > 0 && !inHand &&
		now.Before(payment.IntendedAt.Add(sessionOpen)) && now.Before(payment.KeyFirstUsedAt.Add(keyAgeMax)), nil
}

// confirmAgain sends the very same confirm. That the attempt before it is in doubt is written first: what the call then
// brings is no evidence about that attempt, so a refusal is followed by a question. Once it is sent, our own end no
// longer matters: what it came to is recorded.
func (s *Sweeper) confirmAgain(ctx context.Context, i item, p ledger.Payment) (Result, error) {
	permit, err := s.cfg.Gateway.ReserveConfirm(ctx)
	if err != nil {
		return s.unanswered(ctx, []item{i}, err)
	}
	defer permit.Release()
	ctx, stop := detached(ctx, sendLimit)
	defer stop()
	if ours, err := s.doubt(ctx, i, p); err != nil {
		return "", err
	} else if !ours {
		return s.noted(ctx, i, conclusion{result: ResultWaiting, answer: "the payment moved on before it was sent again"})
	}
	result := s.cfg.Gateway.Confirm(ctx, permit, pgclient.ConfirmRequest{
		PaymentKey: p.Key, OrderID: p.OrderID, Amount: p.Amount, IdempotencyKey: p.IdempotencyKey(),
	})
	s.cfg.Metrics.resent(ledger.WorkConfirmUnknown, result.Verdict)
	switch result.Verdict {
	case pgclient.VerdictDone:
		seen := result.Observation
		seen.Channel = ledger.ChannelRecover
		return s.recordConfirm(ctx, i, seen)
	case pgclient.VerdictRefused, pgclient.VerdictAsk:
		seen, err := s.cfg.Gateway.Recover(ctx, ledger.ChannelRecover, p.Key)
		if err != nil {
			return s.unread(ctx, []item{i}, err)
		}
		return s.recordConfirm(ctx, i, seen)
	case pgclient.VerdictUnknown, pgclient.VerdictUnprocessed:
		// Lost, or turned away now; the attempt before this one is as doubtful as it was.
	}
	return s.unread(ctx, []item{i}, result.Err)
}

// doubt records that nobody knows what came of the payment's attempt, and reports whether that is still so and still
// the same attempt. The row of work stays ours: the record makes it due at once, and it is put out of reach again for
// the length of the call.
func (s *Sweeper) doubt(ctx context.Context, i item, p ledger.Payment) (ours bool, err error) {
	now := s.cfg.now()
	err = postgres.InTx(ctx, s.cfg.DB, func(tx pgx.Tx) error {
		recorded, err := s.cfg.Ledger.Record(ctx, tx, ledger.Observation{
			PaymentKey: p.Key, OrderID: p.OrderID, Channel: ledger.ChannelRecover, Evidence: ledger.EvidenceLost,
			Attempt: p.Attempt, Word: "no_answer", AskedAt: now, SeenAt: now,
		})
		if err != nil {
			return err
		}
		ours = recorded.After.Status == ledger.StatusUnknown && recorded.After.Attempt == p.Attempt
		_, err = tx.Exec(ctx, `UPDATE work SET due_at = @lease WHERE work_id = @work_id AND closed_at IS NULL`,
			pgx.StrictNamedArgs{"lease": now.Add(s.cfg.Lease), "work_id": i.WorkID})
		return err
	})
	return ours, err
}

// recordConfirm records an answer under the key it names. Work about another key than the one answered for stays open:
// that the order was paid with a second payment says nothing about the first, but that the gateway does not know it.
func (s *Sweeper) recordConfirm(ctx context.Context, i item, seen ledger.Observation) (Result, error) {
	return s.conclude(ctx, i, func(tx pgx.Tx) (conclusion, error) {
		c := conclusion{result: ResultWaiting, answer: "the gateway says " + seen.Word}
		if seen.PaymentKey != i.PaymentKey {
			if _, err := s.cfg.Ledger.Release(ctx, tx, i.PaymentKey); err != nil {
				return c, err
			}
			c.answer = "the gateway knows the order under payment " + seen.PaymentKey
		}
		recorded, err := s.cfg.Ledger.Record(ctx, tx, seen)
		if errors.Is(err, ledger.ErrNotFound) {
			return s.strange(ctx, tx, seen)
		}
		if err != nil || seen.PaymentKey != i.PaymentKey {
			return c, err
		}
		listed := false
		if seen.Evidence == ledger.EvidenceDead {
			if listed, err = s.listsMoney(ctx, tx, i.PaymentKey); err != nil {
				return c, err
			}
		}
		return s.confirmConclusion(i, c, recorded, seen, listed), nil
	})
}

// listsMoney reports whether the gateway's list shows money taken under the payment's key.
func (s *Sweeper) listsMoney(ctx context.Context, tx pgx.Tx, paymentKey string) (bool, error) {
	rows, err := tx.Query(ctx, `
		SELECT EXISTS (SELECT 1 FROM mirror g
			WHERE g.payment_key = @payment_key AND g.kind = 'capture' AND g.amount > 0 AND g.missing_since IS NULL)`,
		pgx.StrictNamedArgs{"payment_key": paymentKey})
	if err != nil {
		return false, fmt.Errorf("look into the mirror: %w", err)
	}
	listed, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
	if err != nil {
		return false, fmt.Errorf("look into the mirror: %w", err)
	}
	return listed, nil
}

// confirmConclusion closes the row once the payment is decided. A payment that was decided before, and about which the
// list said otherwise, is asked about until the gateway shows it or the deadline passes: an answer that no money moved
// settles nothing where the list shows the money, for it may be an old one.
func (s *Sweeper) confirmConclusion(i item, c conclusion, r ledger.Recorded, seen ledger.Observation, listed bool) conclusion {
	switch {
	case r.Outcome == ledger.OutcomeConflict:
		c.answer = "contradicts the books: " + r.Detail
	case r.After.Status.Undecided():
	case seen.Evidence == ledger.EvidenceCaptured || seen.Evidence == ledger.EvidenceVoided || (seen.Evidence == ledger.EvidenceDead && !listed):
		c.result, c.close = ResultSettled, ledger.ClosedSettled
	case i.lastChance(s.cfg.now()):
		c.result, c.close = ResultExpired, ledger.ClosedExpired
	}
	return c
}

// strange closes work about a payment of an order that is not in our books, and keeps it as a mismatch when money
// moved.
func (s *Sweeper) strange(ctx context.Context, tx pgx.Tx, seen ledger.Observation) (conclusion, error) {
	c := conclusion{result: ResultRefuted, answer: "the order is not in our books", close: ledger.ClosedRefuted}
	if seen.Evidence != ledger.EvidenceCaptured || s.cfg.foreign(seen.OrderID) {
		return c, nil
	}
	capture, err := nameOfCapture(ctx, tx, seen)
	if err != nil {
		return c, err
	}
	b := &pgx.Batch{}
	ledger.QueueMismatch(b, ledger.Finding{
		Kind: ledger.KindPaymentWithoutOrder, PaymentKey: seen.PaymentKey, OrderID: seen.OrderID, TransactionKey: capture, AtRisk: seen.Total,
		Detail:  "the gateway holds money for an order that is not in our books" + adviceToImport,
		Gateway: shownEvidence(capture, seen.Word, seen.Total, seen.CapturedAt), Books: side{}.evidence(),
	}, s.cfg.now())
	return c, tx.SendBatch(ctx, b).Close()
}

// nameOfCapture is the transaction key of the payment's capture, so that what the sweeper finds and what the list shows
// are one mismatch: as the list has it, or as the answer names it when nothing came after it; "" when neither tells.
func nameOfCapture(ctx context.Context, tx pgx.Tx, seen ledger.Observation) (string, error) {
	rows, err := tx.Query(ctx, `
		SELECT g.transaction_key
		FROM mirror g
		WHERE g.payment_key = @payment_key AND g.kind = 'capture' AND g.amount > 0
		ORDER BY g.at, g.transaction_key
		LIMIT 1`, pgx.StrictNamedArgs{"payment_key": seen.PaymentKey})
	if err != nil {
		return "", fmt.Errorf("look for the capture of payment %s: %w", seen.PaymentKey, err)
	}
	listed, err := pgx.CollectRows(rows, pgx.RowTo[string])
	switch {
	case err != nil:
		return "", fmt.Errorf("look for the capture of payment %s: %w", seen.PaymentKey, err)
	case len(listed) > 0:
		return listed[0], nil
	case len(seen.Cancels) == 0:
		return seen.LastTransactionKey, nil
	}
	return "", nil
}
