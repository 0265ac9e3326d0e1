package checkout

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/pgclient"
)

type cancelBody struct {
	Reason        string         `json:"reason"`
	Amount        *amount        `json:"amount"`
	RefundAccount *refundAccount `json:"refund_account"`
}

type refundAccount struct {
	Bank          string `json:"bank"`
	AccountNumber string `json:"account_number"`
	HolderName    string `json:"holder_name"`
}

// cancelWish is a checked request to cancel, for a payment in our books.
type cancelWish struct {
	payment ledger.Payment
	order   ledger.CancelOrder
}

// CancelPayment serves POST /v1/payments/{payment_key}/cancel for the merchant's server. The Idempotency-Key names the
// cancel for good: sent again, it is answered from the cancel's own row and never sent to the gateway twice, unless
// the first time it was turned away unprocessed.
func (h *Handler) CancelPayment(w http.ResponseWriter, r *http.Request) error {
	answer, err := h.cancelRequest(r)
	h.metrics.canceled(answer, err)
	if err != nil {
		return err
	}
	return answer.write(w)
}

func (h *Handler) cancelRequest(r *http.Request) (reply, error) {
	body, err := web.Decode[cancelBody](r, BodyMax)
	if err != nil {
		return reply{}, err
	}
	wish, err := h.cancelWish(r, body)
	if err != nil {
		return reply{}, err
	}
	return h.once(r, "cancel "+wish.payment.Key, body, func() (reply, error) { return h.cancel(r.Context(), wish) })
}

func (h *Handler) cancelWish(r *http.Request, body cancelBody) (cancelWish, error) {
	key, err := pathID(r, "payment_key")
	reason := oneLine(body.Reason)
	switch {
	case err != nil:
		return cancelWish{}, err
	case !pgclient.ValidPaymentKey(key):
		return cancelWish{}, invalid("the payment key has no valid form")
	case reason == "" || utf8.RuneCountInString(reason) > 200:
		return cancelWish{}, invalid("reason must have 1 to 200 characters")
	}
	p, _, err := ledger.Load(r.Context(), h.cfg.DB, key)
	if err != nil {
		return cancelWish{}, unavailable(err)
	}
	wish := cancelWish{payment: p, order: ledger.CancelOrder{
		RequestID: derivedID("can_", web.Actor(r.Context()), r.Header.Get(keyHeader), key), PaymentKey: key, Reason: reason,
		RequestedBy: web.Actor(r.Context()),
	}}
	if body.Amount != nil {
		part, err := body.Amount.money(p.Amount.Currency)
		if err != nil {
			return cancelWish{}, err
		}
		wish.order.Amount = &part
	}
	return wish, wish.refundTo(body.RefundAccount)
}

// oneLine is a reason as it is kept and sent: without line breaks and control characters, which the gateway is not sent, so
// that the books and the gateway name a cancel alike.
func oneLine(reason string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r) || r == utf8.RuneError:
			return -1
		}
		return r
	}, reason))
}

// refundTo takes the account that a paid virtual account is refunded to. The gateway wants it there and nowhere else.
func (w *cancelWish) refundTo(account *refundAccount) error {
	if !w.payment.VirtualAccount || !w.payment.Status.HoldsMoney() {
		if account != nil {
			return invalid("refund_account is only for a paid virtual account")
		}
		return nil
	}
	switch {
	case account == nil:
		return ErrRefundAccount
	case account.Bank == "" || len(account.Bank) > 20:
		return invalid("refund_account.bank is missing or too long")
	case account.AccountNumber == "" || len(account.AccountNumber) > 20 || strings.Trim(account.AccountNumber, "0123456789") != "":
		return invalid("refund_account.account_number must have 1 to 20 digits")
	case account.HolderName == "" || utf8.RuneCountInString(account.HolderName) > 60:
		return invalid("refund_account.holder_name must have 1 to 60 characters")
	}
	w.order.RefundAccount = map[string]string{
		"bank": account.Bank, "accountNumber": account.AccountNumber, "holderName": account.HolderName,
	}
	return nil
}

// derivedID names what is asked for by who asks, under what key, for what: the same request has the same id, and no two
// callers share one because they count their keys alike.
func derivedID(prefix, actor, key, subject string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{actor, key, subject}, "\x00")))
	return prefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// cancel answers from the row of an earlier request, or claims a slot, commits the request, sends it, and records what
// came of it.
func (h *Handler) cancel(ctx context.Context, wish cancelWish) (reply, error) {
	earlier, err := h.earlier(ctx, &wish.order)
	switch {
	case err == nil:
		return h.canceling(ctx, earlier.ID, nil)
	case !errors.Is(err, ledger.ErrNotFound):
		return reply{}, unavailable(err)
	}
	permit, err := h.gateway.ReserveCancel(ctx)
	if err != nil {
		return reply{}, unsent(err)
	}
	defer permit.Release()
	request, err := h.requestCancel(ctx, wish.order)
	switch {
	case errors.Is(err, postgres.ErrCommitUnknown):
		h.log.WarnContext(ctx, "cancel request may be committed",
			slog.String("payment_key", wish.payment.Key), slog.String("request_id", wish.order.RequestID), slog.Any("error", err))
		return pendingCancel(ledger.CancelRequest{
			ID: wish.order.RequestID, PaymentKey: wish.payment.Key, Status: ledger.CancelRequestUnknown,
		}), nil
	case err != nil:
		return reply{}, unavailable(err)
	}
	return h.sendCancel(ctx, permit, request)
}

// resendsMax bounds how often one Idempotency-Key may be turned away unprocessed and sent again.
const resendsMax = 9

// earlier finds the row of the same request, or the id under which it may be sent: a request that was turned away
// unprocessed keeps its row, and its repetition gets an id, and so a gateway key, of its own.
func (h *Handler) earlier(ctx context.Context, o *ledger.CancelOrder) (ledger.CancelRequest, error) {
	base := o.RequestID
	for n := 1; ; n++ {
		if n > 1 {
			o.RequestID = fmt.Sprintf("%s-%d", base, n)
		}
		request, err := ledger.LoadCancelRequest(ctx, h.cfg.DB, o.RequestID)
		if err != nil || n == resendsMax || !wasTurnedAway(request) {
			return request, err
		}
	}
}

func (h *Handler) requestCancel(ctx context.Context, o ledger.CancelOrder) (request ledger.CancelRequest, err error) {
	if err := ctx.Err(); err != nil {
		return ledger.CancelRequest{}, err
	}
	ctx, stop := detached(ctx, h.cfg.SettleBudget)
	defer stop()
	err = postgres.InTx(ctx, h.cfg.DB, func(tx pgx.Tx) (err error) {
		request, err = h.ledger.RequestCancel(ctx, tx, o)
		return err
	})
	return request, err
}

func (h *Handler) sendCancel(ctx context.Context, permit *pgclient.Permit, request ledger.CancelRequest) (reply, error) {
	call, stop := detached(ctx, h.cfg.ConfirmBudget)
	defer stop()
	result := h.gateway.Cancel(call, permit, pgclient.CancelOf(request))
	permit.Release()
	if err := h.concludeCancel(ctx, request, result); err != nil {
		h.log.ErrorContext(ctx, "outcome of a cancel not recorded; its work will ask",
			slog.String("payment_key", request.PaymentKey), slog.String("request_id", request.ID),
			slog.String("verdict", string(result.Verdict)), slog.Any("error", err))
		return pendingCancel(request), nil
	}
	return h.canceling(context.WithoutCancel(ctx), request.ID, result.Err)
}

// GetCancel serves GET /v1/cancels/{request_id}.
func (h *Handler) GetCancel(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "request_id")
	if err != nil {
		return err
	}
	request, err := ledger.LoadCancelRequest(r.Context(), h.cfg.Reads, id)
	if err != nil {
		return unavailable(err)
	}
	view, err := h.viewCancel(r.Context(), request)
	if err != nil {
		return err
	}
	return reply{status: http.StatusOK, body: view}.write(w)
}

func cancelURL(id string) string { return "/v1/cancels/" + url.PathEscape(id) }
