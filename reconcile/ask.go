package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// ErrUnasked means that the gateway could not be asked, or knows no such payment. Nothing was written.
var ErrUnasked = errors.New("the gateway gave no answer about the payment")

// Asked is what came of a question that a person had asked.
type Asked struct {
	Word    string         // the gateway's own
	Outcome ledger.Outcome // what the books made of it
	Detail  string         // of a contradiction
	Status  ledger.Status  // of the payment, as the books have it now
}

// Ask asks the gateway about a payment of ours now, whatever is due, and records what it says like every other answer. Work
// that waits for it is settled by that. It has the slots of recovery, and their breaker. [ledger.ErrNotFound], ErrUnasked.
func (s *Sweeper) Ask(ctx context.Context, paymentKey string) (Asked, error) {
	if _, _, err := ledger.Load(ctx, s.cfg.DB, paymentKey); err != nil {
		return Asked{}, err
	}
	seen, err := s.cfg.Gateway.Recover(ctx, ledger.ChannelManual, paymentKey)
	if err != nil {
		return Asked{}, fmt.Errorf("%w: %w", ErrUnasked, err)
	}
	var recorded ledger.Recorded
	err = postgres.InTx(ctx, s.cfg.DB, func(tx pgx.Tx) (err error) {
		recorded, err = s.cfg.Ledger.Record(ctx, tx, seen)
		return err
	})
	return Asked{Word: seen.Word, Outcome: recorded.Outcome, Detail: recorded.Detail, Status: recorded.After.Status}, err
}
