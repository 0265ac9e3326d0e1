package checkout

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/internal/web"
	"daesa/ledger"
)

type creditsView struct {
	CustomerID string `json:"customer_id"`
	Granted    int64  `json:"granted"`
	Revoked    int64  `json:"revoked"`
	Spent      int64  `json:"spent"`
	Balance    int64  `json:"balance"`
}

func viewCredits(a ledger.CreditAccount) creditsView { return creditsView(a) }

// GetCredits serves GET /v1/customers/{customer_id}/credits. A balance below nothing means that credits were spent
// before the payment that granted them was canceled.
func (h *Handler) GetCredits(w http.ResponseWriter, r *http.Request) error {
	customer, err := pathID(r, "customer_id")
	if err != nil {
		return err
	}
	account, err := ledger.LoadCredits(r.Context(), h.cfg.Reads, customer)
	if err != nil {
		return unavailable(err)
	}
	return reply{status: http.StatusOK, body: viewCredits(account)}.write(w)
}

type spendBody struct {
	SpendID string `json:"spend_id"`
	Amount  int64  `json:"amount"`
}

// SpendCredits serves POST /v1/customers/{customer_id}/credits/spend. A spend_id is the merchant's own name of the spend,
// the same for every caller: under it, it is spent once. Without one the spend is named by the Idempotency-Key, which
// belongs to its caller and the customer: the same key of another caller is another spend.
func (h *Handler) SpendCredits(w http.ResponseWriter, r *http.Request) error {
	body, err := web.Decode[spendBody](r, BodyMax)
	if err != nil {
		return err
	}
	customer, err := pathID(r, "customer_id")
	switch {
	case err != nil:
		return err
	case customer == "" || utf8.RuneCountInString(customer) > 128:
		return invalid("the customer id must have 1 to 128 characters")
	case len(body.SpendID) > 255:
		return invalid("spend_id may have at most 255 bytes")
	case body.Amount <= 0 || body.Amount > ledger.OrderMax:
		return invalid("amount must be between 1 and 1,000,000,000,000")
	}
	id := cmp.Or(body.SpendID, derivedID("spend_", web.Actor(r.Context()), r.Header.Get(keyHeader), customer))
	ctx := r.Context()
	answer, err := h.once(r, "spend "+customer, body, func() (reply, error) { return h.spend(ctx, id, customer, body.Amount) })
	if err != nil {
		return err
	}
	return answer.write(w)
}

func (h *Handler) spend(ctx context.Context, id, customer string, credits int64) (reply, error) {
	var account ledger.CreditAccount
	err := postgres.InTx(ctx, h.cfg.DB, func(tx pgx.Tx) (err error) {
		account, err = h.ledger.Spend(ctx, tx, id, customer, credits)
		return err
	})
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return reply{}, ledger.ErrCreditsShort // a customer never granted anything has nothing to spend
	case err != nil:
		return reply{}, unavailable(err)
	}
	return reply{status: http.StatusOK, body: viewCredits(account)}, nil
}
