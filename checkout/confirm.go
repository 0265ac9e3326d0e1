package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/pgclient"
)

// BodyMax is the most bytes that the body of a request may have, far above any of ours.
const BodyMax = 16 << 10

// confirmBody is what the gateway's sample front ends send. What they add beside the three fields is tolerated.
type confirmBody struct {
	PaymentKey  string          `json:"paymentKey"`
	OrderID     string          `json:"orderId"`
	Amount      amount          `json:"amount"`
	PaymentType json.RawMessage `json:"paymentType"`
	CustomerKey json.RawMessage `json:"customerKey"`
}

// Confirm serves POST /v1/payments/confirm, which a buyer's browser calls without an API key. Pressing twice is one
// payment: the payment key is the idempotency key. An Idempotency-Key header is honoured when it is sent.
func (h *Handler) Confirm(w http.ResponseWriter, r *http.Request) error {
	began := h.now()
	answer, err := h.confirmRequest(r)
	h.metrics.confirmed(answer, err, h.now().Sub(began))
	if err != nil {
		return err
	}
	return answer.write(w)
}

func (h *Handler) confirmRequest(r *http.Request) (reply, error) {
	body, err := web.Decode[confirmBody](r, BodyMax)
	if err != nil {
		return reply{}, err
	}
	ctx := r.Context()
	wish, err := h.wish(ctx, body)
	if err != nil {
		return reply{}, err
	}
	act := func() (reply, error) { return h.confirm(ctx, wish) }
	if r.Header.Get(keyHeader) == "" {
		return act()
	}
	return h.once(r, "confirm "+wish.PaymentKey, body, act)
}

// wish checks a request to approve before anything is claimed: the amount is compared with the order's, which came
// from the merchant's server, and the gateway is not called for any other.
func (h *Handler) wish(ctx context.Context, body confirmBody) (ledger.Intent, error) {
	switch {
	case !pgclient.ValidPaymentKey(body.PaymentKey):
		return ledger.Intent{}, invalid("paymentKey has no valid form")
	case !pgclient.ValidOrderID(body.OrderID):
		return ledger.Intent{}, invalid("orderId has no valid form")
	case body.Amount == "":
		return ledger.Intent{}, ErrAmount
	}
	order, err := ledger.LoadOrder(ctx, h.cfg.DB, body.OrderID)
	if err != nil {
		return ledger.Intent{}, unavailable(err)
	}
	asked, err := body.Amount.money(order.Amount.Currency)
	switch {
	case err != nil:
		return ledger.Intent{}, err
	case asked != order.Amount:
		return ledger.Intent{}, ledger.ErrAmountDiffers
	}
	return ledger.Intent{
		PaymentKey: body.PaymentKey, OrderID: body.OrderID, Amount: asked, MerchantID: h.cfg.MerchantID,
	}, nil
}

// confirm answers from the books when they say more of the payment than that it may be tried; that needs neither a slot
// nor the gateway's good health. Otherwise it attempts the approval. An order that another payment holds is attempted
// once more when the gateway shows that the other came to nothing; no slot is held while it is asked.
func (h *Handler) confirm(ctx context.Context, wish ledger.Intent) (reply, error) {
	known, _, err := ledger.Load(ctx, h.cfg.DB, wish.PaymentKey)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
	case err != nil:
		return reply{}, unavailable(err)
	case known.OrderID != wish.OrderID:
		return reply{}, ledger.ErrOtherOrder
	case known.Status != ledger.StatusReady:
		return h.again(ctx, known)
	}
	answer, holder, err := h.attempt(ctx, wish)
	if errors.Is(err, ledger.ErrOrderTaken) && h.gaveUp(ctx, holder) {
		answer, _, err = h.attempt(ctx, wish)
	}
	return answer, err
}

// attempt claims a slot, asks the store, commits the intent, sends, and records what came of it, in this order. With
// ErrOrderTaken it names the payment that holds the order.
func (h *Handler) attempt(ctx context.Context, wish ledger.Intent) (answer reply, holder string, err error) {
	permit, err := h.gateway.ReserveConfirm(ctx)
	if err != nil {
		h.metrics.refusedBeforeSending(err, wish.Amount)
		return reply{}, "", unsent(err)
	}
	defer permit.Release()
	accepted, err := h.askStore(ctx, wish)
	if err != nil {
		return reply{}, "", err
	}
	intended, err := h.intend(ctx, wish, accepted)
	if !intended.Started && !errors.Is(err, postgres.ErrCommitUnknown) {
		h.end(ctx, accepted)
	}
	switch {
	case errors.Is(err, postgres.ErrCommitUnknown):
		// Perhaps the intent stands, perhaps not, so nothing is sent. If it stands, so does its work.
		h.log.WarnContext(ctx, "intent may be committed", slog.String("payment_key", wish.PaymentKey), slog.Any("error", err))
		return h.pending(wish.PaymentKey, wish.OrderID, ledger.StatusUnknown), "", nil
	case errors.Is(err, ledger.ErrLostRace):
		return h.pending(wish.PaymentKey, wish.OrderID, ledger.StatusConfirming), "", nil
	case err != nil:
		return reply{}, intended.Holder, unavailable(err)
	case intended.Started:
		answer, err = h.send(ctx, permit, intended.Payment)
		return answer, "", err
	}
	permit.Release()
	answer, err = h.again(ctx, intended.Payment)
	return answer, "", err
}

// intend commits the intent, and with it what the store said. It runs to its end even when the buyer has hung up: a commit
// cut short would hold the order for nothing.
func (h *Handler) intend(ctx context.Context, wish ledger.Intent, accepted acceptance) (intended ledger.Intended, err error) {
	if err := ctx.Err(); err != nil {
		return ledger.Intended{}, err
	}
	ctx, stop := detached(ctx, h.cfg.SettleBudget)
	defer stop()
	err = postgres.InTx(ctx, h.cfg.DB, func(tx pgx.Tx) (err error) {
		intended, err = h.ledger.Intend(ctx, tx, wish)
		if err != nil || !intended.Started {
			return err
		}
		return h.hold(ctx, tx, accepted, intended.Payment)
	})
	intended.Started = intended.Started && err == nil
	return intended, err
}

// send approves the payment under the intent. From here on the buyer's patience no longer matters.
func (h *Handler) send(ctx context.Context, permit *pgclient.Permit, p ledger.Payment) (reply, error) {
	call, stop := detached(ctx, h.cfg.ConfirmBudget)
	defer stop()
	result := h.gateway.Confirm(call, permit, pgclient.ConfirmRequest{
		PaymentKey: p.Key, OrderID: p.OrderID, Amount: p.Amount, IdempotencyKey: p.IdempotencyKey(),
	})
	permit.Release()
	after, err := h.conclude(ctx, p, result)
	if err != nil {
		h.log.ErrorContext(ctx, "outcome of a confirm not recorded; its work will ask",
			slog.String("payment_key", p.Key), slog.String("verdict", string(result.Verdict)), slog.Any("error", err))
		return h.pending(p.Key, p.OrderID, ledger.StatusUnknown), nil
	}
	return h.standing(after, result.Err)
}

// again answers a buyer who presses a second time. An outcome nobody knows is asked for once; an attempt that is
// surely under way is left alone.
func (h *Handler) again(ctx context.Context, p ledger.Payment) (reply, error) {
	if h.worthAsking(p) {
		p = h.ask(ctx, p)
	}
	return h.standing(p, nil)
}

func (h *Handler) worthAsking(p ledger.Payment) bool {
	switch p.Status {
	case ledger.StatusUnknown:
		return true
	case ledger.StatusConfirming:
		return h.now().Sub(p.IntendedAt) >= h.cfg.ConfirmBudget
	case ledger.StatusReady, ledger.StatusFailed, ledger.StatusWaitingForDeposit, ledger.StatusDone,
		ledger.StatusPartiallyCanceled, ledger.StatusCanceled:
	}
	return false
}

// gaveUp asks about the payment that holds an order and reports whether the gateway shows that it came to nothing, so
// that another may try.
func (h *Handler) gaveUp(ctx context.Context, holder string) bool {
	p, _, err := ledger.Load(ctx, h.cfg.DB, holder)
	if err != nil {
		return false
	}
	if h.worthAsking(p) {
		p = h.ask(ctx, p)
	}
	return p.Status == ledger.StatusFailed
}
