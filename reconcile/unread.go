package reconcile

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"daesa/pgclient"
)

// unread notes a question that brought nothing to record: the gateway did not answer, or it answered with money that
// cannot be read exactly. The latter is shown to a person, with what is at risk, while asking goes on.
func (s *Sweeper) unread(ctx context.Context, rows []item, err error) (Result, error) {
	failure, ok := errors.AsType[*pgclient.Error](err)
	if !ok || failure.Reason != pgclient.ReasonInconsistent {
		return s.unanswered(ctx, rows, err)
	}
	c := conclusion{result: ResultUnanswered, answer: "not readable: " + failure.Error()}
	return s.concludeAll(ctx, rows, func(tx pgx.Tx) ([]conclusion, error) {
		return slices.Repeat([]conclusion{c}, len(rows)), s.distrust(ctx, tx, rows[0], failure)
	})
}

// distrust shows an answer whose money cannot be read exactly to a person; every other error is none of its business.
func (s *Sweeper) distrust(ctx context.Context, tx pgx.Tx, i item, err error) error {
	failure, ok := errors.AsType[*pgclient.Error](err)
	if !ok || failure == nil || failure.Reason != pgclient.ReasonInconsistent {
		return nil
	}
	evidence := map[string]any{"asked_for": i.Kind, "status": failure.Status}
	return s.cfg.Ledger.Quarantine(ctx, tx, i.PaymentKey, failure.Detail, evidence)
}

// wordOf is the gateway's code, or what happened where it gave none.
func wordOf(failure *pgclient.Error) string {
	if failure.Code != "" {
		return failure.Code
	}
	return string(failure.Reason)
}
