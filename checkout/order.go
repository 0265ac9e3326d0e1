package checkout

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/pgclient"
)

type orderBody struct {
	OrderID          string          `json:"order_id"`
	Amount           amount          `json:"amount"`
	Currency         ledger.Currency `json:"currency"`
	CustomerID       string          `json:"customer_id"`
	Name             string          `json:"name"`
	Credits          int64           `json:"credits"`
	ExpiresInSeconds int64           `json:"expires_in_seconds"`
}

// orderView is an order as our API shows it.
type orderView struct {
	OrderID    string             `json:"order_id"`
	Status     ledger.OrderStatus `json:"status"`
	Amount     string             `json:"amount"`
	Currency   ledger.Currency    `json:"currency"`
	CustomerID string             `json:"customer_id,omitempty"`
	Name       string             `json:"name"`
	Credits    int64              `json:"credits"`
	CreatedAt  time.Time          `json:"created_at"`
	ExpiresAt  time.Time          `json:"expires_at"`
}

func viewOrder(o ledger.Order) orderView {
	return orderView{
		OrderID: o.ID, Status: o.Status, Amount: o.Amount.Decimal(), Currency: o.Amount.Currency, CustomerID: o.CustomerID,
		Name: o.Name, Credits: o.Credits, CreatedAt: o.CreatedAt.UTC(), ExpiresAt: o.ExpiresAt.UTC(),
	}
}

// expiryMax bounds how long an order may wait for its payment.
const expiryMax = 90 * 24 * time.Hour

// CreateOrder serves POST /v1/orders for the merchant's server. The amount that buyers pay comes from here and from
// nowhere else. The same order again is answered with 200.
func (h *Handler) CreateOrder(w http.ResponseWriter, r *http.Request) error {
	body, err := web.Decode[orderBody](r, BodyMax)
	if err != nil {
		return err
	}
	order, err := h.newOrder(body)
	if err != nil {
		return err
	}
	answer, err := h.once(r, "create_order", body, func() (reply, error) { return h.createOrder(r.Context(), order) })
	if err != nil {
		return err
	}
	return answer.write(w)
}

func (h *Handler) createOrder(ctx context.Context, order ledger.Order) (reply, error) {
	var created ledger.Order
	known := false
	err := postgres.InTx(ctx, h.cfg.DB, func(tx pgx.Tx) error {
		_, err := ledger.LoadOrder(ctx, tx, order.ID)
		if known = err == nil; err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return err
		}
		created, err = h.ledger.CreateOrder(ctx, tx, order)
		return err
	})
	switch {
	case err != nil:
		return reply{}, unavailable(err)
	case known:
		return reply{status: http.StatusOK, body: viewOrder(created)}, nil
	}
	return reply{status: http.StatusCreated, body: viewOrder(created)}, nil
}

func (h *Handler) newOrder(body orderBody) (ledger.Order, error) {
	currency := cmp.Or(body.Currency, ledger.KRW)
	if !currency.Known() {
		return ledger.Order{}, invalid("currency is not one of KRW, USD, JPY")
	}
	due, err := body.Amount.money(currency)
	if err != nil {
		return ledger.Order{}, err
	}
	expiry := time.Duration(body.ExpiresInSeconds) * time.Second
	switch {
	case !pgclient.ValidOrderID(body.OrderID):
		return ledger.Order{}, invalid("order_id must have 6 to 64 letters, digits, '-', '_' or '='")
	case h.cfg.OurOrders != nil && !h.cfg.OurOrders.MatchString(body.OrderID):
		return ledger.Order{}, invalid("order_id does not have the form of this service's orders, DAESA_ORDER_PATTERN")
	case utf8.RuneCountInString(body.CustomerID) > 128:
		return ledger.Order{}, invalid("customer_id may have at most 128 characters")
	case utf8.RuneCountInString(body.Name) > 100:
		return ledger.Order{}, invalid("name may have at most 100 characters")
	case due.Minor > ledger.OrderMax:
		return ledger.Order{}, invalid("amount may be at most 1,000,000,000,000 of the currency's smallest unit")
	case body.Credits < 0 || body.Credits > ledger.OrderMax:
		return ledger.Order{}, invalid("credits must be between 0 and 1,000,000,000,000")
	case body.Credits > 0 && body.CustomerID == "":
		return ledger.Order{}, invalid("credits need a customer_id to go to")
	case body.ExpiresInSeconds < 0 || body.ExpiresInSeconds > int64(expiryMax/time.Second):
		return ledger.Order{}, invalid("expires_in_seconds must be between 1 and 90 days")
	}
	return ledger.Order{
		ID: body.OrderID, Amount: due, CustomerID: body.CustomerID, Name: body.Name, Credits: body.Credits,
		ExpiresAt: h.now().Add(cmp.Or(expiry, h.cfg.OrderExpiry)),
	}, nil
}

// GetOrder serves GET /v1/orders/{order_id}.
func (h *Handler) GetOrder(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "order_id")
	if err != nil {
		return err
	}
	order, err := ledger.LoadOrder(r.Context(), h.cfg.Reads, id)
	if err != nil {
		return unavailable(err)
	}
	return reply{status: http.StatusOK, body: viewOrder(order)}.write(w)
}
