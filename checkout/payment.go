package checkout

import (
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/web"
	"daesa/ledger"
	"daesa/pgclient"
)

// paymentView is a payment as our API shows it to the merchant's server.
type paymentView struct {
	PaymentKey string          `json:"payment_key"`
	OrderID    string          `json:"order_id"`
	Status     ledger.Status   `json:"status"`
	Amount     string          `json:"amount"`
	Captured   string          `json:"captured"`
	Canceled   string          `json:"canceled"`
	Balance    string          `json:"balance"`
	Currency   ledger.Currency `json:"currency"`
	Method     string          `json:"method,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Surplus    bool            `json:"surplus,omitempty"`
	Attempt    int             `json:"attempt"`
	UpdatedAt  time.Time       `json:"updated_at"`
	Cancels    []cancelView    `json:"cancels"`
	Work       []workView      `json:"open_work,omitempty"`
}

type cancelView struct {
	TransactionKey string         `json:"transaction_key"`
	Amount         string         `json:"amount"`
	Reason         string         `json:"reason"`
	CanceledAt     time.Time      `json:"canceled_at"`
	Channel        ledger.Channel `json:"channel"`
	CreditsRevoked int64          `json:"credits_revoked,omitempty"`
}

// workView is an answer still owed about the payment. The redelivery fields are those of the gateway's own notices.
type workView struct {
	Kind           ledger.WorkKind `json:"kind" db:"kind"`
	TransactionKey *string         `json:"transaction_key,omitempty" db:"transaction_key"`
	OpenedAt       time.Time       `json:"opened_at" db:"opened_at"`
	DueAt          time.Time       `json:"due_at" db:"due_at"`
	LastChance     time.Time       `json:"last_chance" db:"deadline"`
	Attempts       int             `json:"attempts" db:"attempts"`
	LastAnswer     string          `json:"last_answer,omitempty" db:"last_answer"`
	NoticeAttempt  *int            `json:"notice_attempt,omitempty" db:"notice_attempt"`
	NoticeOf       int             `json:"notice_attempts_in_all,omitempty" db:"-"`
	NoticeNextAt   *time.Time      `json:"notice_next_at,omitempty" db:"notice_next_at"`
}

// redeliveries is how often the gateway repeats a notice that was not acknowledged.
const redeliveries = 7

func viewPayment(p ledger.Payment) paymentView {
	view := paymentView{
		PaymentKey: p.Key, OrderID: p.OrderID, Status: p.Status, Amount: p.Amount.Decimal(), Captured: p.Captured().Decimal(),
		Canceled: p.Canceled().Decimal(), Balance: p.Balance().Decimal(), Currency: p.Amount.Currency, Method: p.Method,
		Reason: p.Reason, Surplus: p.Surplus, Attempt: p.Attempt, UpdatedAt: p.UpdatedAt.UTC(), Cancels: []cancelView{},
	}
	for _, c := range p.Cancels {
		view.Cancels = append(view.Cancels, cancelView{
			TransactionKey: c.TransactionKey, Amount: c.Amount.Decimal(), Reason: c.Reason, CanceledAt: c.CanceledAt.UTC(),
			Channel: c.Channel, CreditsRevoked: c.CreditsRevoked,
		})
	}
	return view
}

// GetPayment serves GET /v1/payments/{payment_key}: all of it to a caller with an API key, its status to whoever holds
// the token of its status address, and 401 to anybody else. The route is mounted so that a request with a token needs
// no API key.
func (h *Handler) GetPayment(w http.ResponseWriter, r *http.Request) error {
	key, err := pathID(r, "payment_key")
	if err != nil {
		return err
	}
	known := web.Actor(r.Context()) != ""
	if !known && !h.holdsToken(r, key) {
		return web.ErrUnauthorized
	}
	if !pgclient.ValidPaymentKey(key) {
		return invalid("the payment key has no valid form")
	}
	p, _, err := ledger.Load(r.Context(), h.cfg.Reads, key)
	if err != nil {
		return unavailable(err)
	}
	if !known {
		return h.status(p).write(w)
	}
	view := viewPayment(p)
	if view.Work, err = h.openWork(r, key); err != nil {
		return unavailable(err)
	}
	return reply{status: http.StatusOK, body: view}.write(w)
}

// status is what a buyer may see. The question was answered, so it is 200 whatever the payment's status.
func (h *Handler) status(p ledger.Payment) reply {
	answer := reply{status: http.StatusOK, body: confirmed{
		Status: p.Status, PaymentKey: p.Key, OrderID: p.OrderID, Amount: p.Amount.Decimal(),
		Currency: string(p.Amount.Currency),
	}}
	if p.Status.Undecided() {
		answer.after = askAgain
	}
	return answer
}

func (h *Handler) openWork(r *http.Request, paymentKey string) ([]workView, error) {
	rows, err := h.cfg.Reads.Query(r.Context(), `
		SELECT kind, transaction_key, opened_at, due_at, deadline, attempts, last_answer, notice_attempt, notice_next_at
		FROM work
		WHERE payment_key = @payment_key AND closed_at IS NULL
		ORDER BY work_id`,
		pgx.StrictNamedArgs{"payment_key": paymentKey})
	if err != nil {
		return nil, fmt.Errorf("read open work of payment %s: %w", paymentKey, err)
	}
	work, err := pgx.CollectRows(rows, pgx.RowToStructByName[workView])
	for i := range work {
		if work[i].NoticeAttempt != nil {
			work[i].NoticeOf = redeliveries
		}
	}
	return work, err
}
