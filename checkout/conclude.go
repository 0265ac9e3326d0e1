package checkout

import (
	"context"
	"errors"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/pgclient"
)

// conclude records what came of an approval and returns the payment as it then stands.
func (h *Handler) conclude(ctx context.Context, p ledger.Payment, result pgclient.Result) (ledger.Payment, error) {
	switch result.Verdict {
	case pgclient.VerdictDone:
		// Should the answer prove nothing, or contradict the order, nobody knows what came of it.
		return h.record(ctx, result.Observation, h.outcome(p, ledger.EvidenceLost, result.Err))
	case pgclient.VerdictRefused:
		return h.record(ctx, h.outcome(p, ledger.EvidenceRefused, result.Err))
	case pgclient.VerdictUnprocessed:
		return h.record(ctx, h.outcome(p, ledger.EvidenceUnprocessed, result.Err))
	case pgclient.VerdictAsk:
		lost := h.outcome(p, ledger.EvidenceLost, result.Err)
		seen, err := h.lookUp(ctx, p.Key)
		switch {
		case err == nil:
			return h.record(ctx, seen, lost)
		case result.Attempts == 1 && result.Err.Group == pgclient.GroupSessionGone && notFound(err):
			// The gateway forgot the payment with its session: the one call that was made approved nothing.
			return h.record(ctx, h.outcome(p, ledger.EvidenceRefused, result.Err))
		}
		return h.record(ctx, lost)
	case pgclient.VerdictUnknown:
	}
	return h.record(ctx, h.outcome(p, ledger.EvidenceLost, result.Err))
}

// outcome is the observation of a call of ours that brought no payment object.
func (h *Handler) outcome(p ledger.Payment, evidence ledger.Evidence, gave *pgclient.Error) ledger.Observation {
	now := h.now()
	o := ledger.Observation{
		PaymentKey: p.Key, OrderID: p.OrderID, Channel: ledger.ChannelConfirm, Evidence: evidence, AskedAt: now, SeenAt: now,
		Attempt: p.Attempt,
	}
	if gave != nil {
		o.Word, o.Stranger = gave.Code, gave.Group == pgclient.GroupNotFound
		if o.Word == "" {
			o.Word = string(gave.Reason)
		}
	}
	return o
}

// ask puts one question about an undecided payment to the gateway and records the answer. Without an answer the
// payment is returned as it was: its work goes on asking.
func (h *Handler) ask(ctx context.Context, p ledger.Payment) ledger.Payment {
	seen, err := h.lookUp(ctx, p.Key)
	if err != nil {
		return p
	}
	after, err := h.record(ctx, seen)
	if err != nil {
		h.log.WarnContext(ctx, "answer not recorded", slog.String("payment_key", p.Key), slog.Any("error", err))
		return p
	}
	return after
}

// lookUp asks the gateway about a payment, beside recovery and never in its place. No answer is no evidence of anything,
// "not found" by itself included.
func (h *Handler) lookUp(ctx context.Context, paymentKey string) (ledger.Observation, error) {
	ctx, stop := detached(ctx, h.cfg.AskBudget)
	defer stop()
	return h.gateway.LookUp(ctx, ledger.ChannelRecover, paymentKey)
}

// notFound reports whether the gateway answered that it does not know the payment.
func notFound(err error) bool {
	answered, ok := errors.AsType[*pgclient.Error](err)
	return ok && answered.Group == pgclient.GroupNotFound
}

// record writes observations of one payment, each only as long as the ones before left its outcome undecided. It does
// not end with the caller, and tries once more when the database fails: an observation recorded twice is recorded once.
func (h *Handler) record(ctx context.Context, observations ...ledger.Observation) (after ledger.Payment, err error) {
	err = h.settle(ctx, func(ctx context.Context, tx pgx.Tx) error {
		for _, o := range observations {
			recorded, err := h.ledger.Record(ctx, tx, o)
			if err != nil {
				return err
			}
			after = recorded.After
			if !after.Status.Undecided() {
				return nil
			}
		}
		return nil
	})
	return after, err
}

// settle runs fn in a transaction that does not end with the caller, and once more when the database fails.
func (h *Handler) settle(ctx context.Context, fn func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, stop := detached(ctx, h.cfg.SettleBudget)
	defer stop()
	try := func() error {
		return postgres.InTx(ctx, h.cfg.DB, func(tx pgx.Tx) error { return fn(ctx, tx) })
	}
	first := try()
	if first == nil || !postgres.IsUnavailable(first) || ctx.Err() != nil {
		return first
	}
	if second := try(); second != nil {
		return errors.Join(first, second)
	}
	return nil
}
