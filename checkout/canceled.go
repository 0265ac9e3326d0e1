package checkout

import (
	"context"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/pgclient"
)

// turnedAwayWord begins the answer kept of a cancel that the gateway did not process: the caller may send it again.
const turnedAwayWord = "not processed: "

func wasTurnedAway(r ledger.CancelRequest) bool {
	return r.Status == ledger.CancelRequestRefused && strings.HasPrefix(r.Answer, turnedAwayWord)
}

// concludeCancel records what came of a cancel of ours. Only the answer to the very request ends it: a look-up cannot
// tell our cancel from one of the same amount that somebody made in the gateway's dashboard.
func (h *Handler) concludeCancel(ctx context.Context, request ledger.CancelRequest, result pgclient.Result) error {
	switch result.Verdict {
	case pgclient.VerdictDone:
		return h.settle(ctx, func(ctx context.Context, tx pgx.Tx) error {
			recorded, err := h.ledger.Record(ctx, tx, result.Observation)
			if err != nil {
				return err
			}
			answer := answered(request, result.Observation)
			if !recorded.Bears(request, answer) { // nothing was booked, so nothing has ended
				answer = ledger.CancelAnswer{Status: ledger.CancelRequestUnknown, Word: "not booked yet: " + result.Observation.Word}
			}
			if recorded.Outcome == ledger.OutcomeConflict {
				answer.Word = "contradicts the books: " + recorded.Detail
			}
			return h.ledger.SettleCancelRequest(ctx, tx, request.ID, answer)
		})
	case pgclient.VerdictRefused:
		answer := ledger.CancelAnswer{Status: ledger.CancelRequestRefused, Word: word(result.Err)}
		if result.Err.Group == pgclient.GroupAmountChanged {
			answer.Word = turnedAwayWord + answer.Word
			return h.compareAndSettle(ctx, request, answer)
		}
		return h.settleCancel(ctx, request, answer)
	case pgclient.VerdictUnprocessed:
		return h.settleCancel(ctx, request, ledger.CancelAnswer{
			Status: ledger.CancelRequestRefused, Word: turnedAwayWord + word(result.Err),
		})
	case pgclient.VerdictAsk:
		answer := ledger.CancelAnswer{Status: ledger.CancelRequestUnknown, Word: word(result.Err)}
		if result.Err.Group == pgclient.GroupAlready && result.Attempts == 1 {
			answer.Status = ledger.CancelRequestRefused // refused at once: nothing of ours was canceled
		}
		return h.compareAndSettle(ctx, request, answer)
	case pgclient.VerdictUnknown:
	}
	return h.settleCancel(ctx, request, ledger.CancelAnswer{Status: ledger.CancelRequestUnknown, Word: word(result.Err)})
}

// answered finds our cancel in the gateway's answer to it. An answer that does not name it settles nothing: the
// request's work sends the same request again and reads the answer once more.
func answered(request ledger.CancelRequest, seen ledger.Observation) ledger.CancelAnswer {
	answer := ledger.CancelAnswer{Status: ledger.CancelRequestUnknown, Word: seen.Word}
	if seen.Evidence == ledger.EvidenceVoided {
		answer.Status, answer.TransactionKey = ledger.CancelRequestDone, seen.LastTransactionKey
		return answer
	}
	mine, ok := ours(request, seen)
	if !ok {
		return answer
	}
	answer.TransactionKey = mine.TransactionKey
	switch mine.State {
	case ledger.CancelDone:
		answer.Status = ledger.CancelRequestDone
	case ledger.CancelInProgress, ledger.CancelUnrecognized:
		answer.Status = ledger.CancelRequestInProgress
	case ledger.CancelAborted:
		answer.Status = ledger.CancelRequestRefused
	}
	return answer
}

// ours picks our cancel. What is left falls with every cancel, so the amount and what was left afterwards name one
// alone. Objects that do not tell what was left (which is not to say that nothing was) have our cancel as their last
// transaction.
func ours(request ledger.CancelRequest, seen ledger.Observation) (ledger.ObservedCancel, bool) {
	left := ledger.Money{Minor: request.Refundable.Minor - request.Amount.Minor, Currency: request.Refundable.Currency}
	for _, c := range seen.Cancels {
		if c.Amount == request.Amount && c.Refundable == left && c.State != ledger.CancelAborted {
			return c, true
		}
	}
	for _, c := range seen.Cancels {
		if c.Amount == request.Amount && c.TransactionKey == seen.LastTransactionKey {
			return c, true
		}
	}
	return ledger.ObservedCancel{}, false
}

// word is the gateway's code, or why there is none.
func word(e *pgclient.Error) string {
	if e.Code != "" {
		return e.Code
	}
	return string(e.Reason)
}

func (h *Handler) settleCancel(ctx context.Context, request ledger.CancelRequest, answer ledger.CancelAnswer) error {
	return h.settle(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return h.ledger.SettleCancelRequest(ctx, tx, request.ID, answer)
	})
}

// compareAndSettle also asks what is true of the payment, because the refusal says that our books were behind.
func (h *Handler) compareAndSettle(ctx context.Context, request ledger.CancelRequest, answer ledger.CancelAnswer) error {
	seen, unanswered := h.lookUp(ctx, request.PaymentKey)
	return h.settle(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if unanswered == nil {
			if _, err := h.ledger.Record(ctx, tx, seen); err != nil {
				return err
			}
		}
		return h.ledger.SettleCancelRequest(ctx, tx, request.ID, answer)
	})
}

// requestView is a cancel of ours as our API shows it, with the payment as it stands.
type requestView struct {
	CancelID       string                     `json:"cancel_id"`
	Status         ledger.CancelRequestStatus `json:"status"`
	PaymentKey     string                     `json:"payment_key"`
	Amount         string                     `json:"amount,omitempty"`
	Currency       ledger.Currency            `json:"currency,omitempty"`
	Reason         string                     `json:"reason,omitempty"`
	TransactionKey string                     `json:"transaction_key,omitempty"`
	Answer         string                     `json:"answer,omitempty"`
	StatusURL      string                     `json:"status_url"`
	Payment        *paymentView               `json:"payment,omitempty"`
}

func viewRequest(r ledger.CancelRequest) requestView {
	return requestView{
		CancelID: r.ID, Status: r.Status, PaymentKey: r.PaymentKey, Amount: r.Amount.Decimal(), Currency: r.Amount.Currency,
		Reason: r.Reason, TransactionKey: r.TransactionKey, Answer: r.Answer, StatusURL: cancelURL(r.ID),
	}
}

func (h *Handler) viewCancel(ctx context.Context, request ledger.CancelRequest) (requestView, error) {
	view := viewRequest(request)
	p, _, err := ledger.Load(ctx, h.cfg.DB, request.PaymentKey)
	if err != nil {
		return view, unavailable(err)
	}
	payment := viewPayment(p)
	view.Payment = &payment
	return view, nil
}

func pendingCancel(request ledger.CancelRequest) reply {
	return reply{status: http.StatusAccepted, body: viewRequest(request), after: askAgain}
}

// canceling answers from the request's row. gave is what the gateway said in this call, nil when it was not called.
func (h *Handler) canceling(ctx context.Context, requestID string, gave *pgclient.Error) (reply, error) {
	request, err := ledger.LoadCancelRequest(ctx, h.cfg.DB, requestID)
	if err != nil {
		return reply{}, unavailable(err)
	}
	view, err := h.viewCancel(ctx, request)
	if err != nil {
		return reply{}, err
	}
	switch request.Status {
	case ledger.CancelRequestDone:
		return reply{status: http.StatusOK, body: view}, nil
	case ledger.CancelRequestRefused:
		return reply{}, refusedCancel(request, view, gave)
	case ledger.CancelSending, ledger.CancelRequestUnknown, ledger.CancelRequestInProgress:
	}
	return reply{status: http.StatusAccepted, body: view, after: askAgain}, nil
}

// refusedCancel passes the gateway's refusal on, with the payment as it stands now.
func refusedCancel(request ledger.CancelRequest, view requestView, gave *pgclient.Error) error {
	r := &refusal{
		cause: ErrCancelRefused, status: http.StatusConflict, code: request.Answer,
		extra: map[string]any{"cancel": view},
	}
	if gave != nil {
		r.code, r.message = word(gave), gave.Message
	}
	switch {
	case !wasTurnedAway(request):
		return r
	case gave != nil && gave.Group == pgclient.GroupAmountChanged:
		return &refusal{cause: ErrBooksBehind, message: ErrBooksBehind.Error(), extra: r.extra}
	}
	return turnedAway(gave)
}
