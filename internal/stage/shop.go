package stage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"daesa/pgclient/tosssim"
)

// Shop is the merchant: its server, which has an API key, and its front end, which has none.
type Shop struct {
	url    string
	client *http.Client
}

// NewShop is a shop that uses the service at url.
func NewShop(url string) Shop {
	return Shop{url: url, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: 40 * time.Second}}
}

// Close ends the connections of a shop that uses the service no more.
func (s Shop) Close() { s.client.CloseIdleConnections() }

// Sale is an order of the shop's.
type Sale struct {
	OrderID  string
	Won      int64
	Customer string
	Credits  int64
	Name     string
}

// Reply is an answer of the service's, as far as a story looks at it.
type Reply struct {
	HTTP   int    `json:"-"`
	Status string `json:"-"` // of the order or payment
	Code   string `json:"code"`
}

// Expect is an error unless the service answered with that code and status.
func (r Reply) Expect(what string, code int, status string) error {
	if r.HTTP != code || r.Status != status {
		return fmt.Errorf("got %d %q %s for %s, want %d %q", r.HTTP, r.Status, r.Code, what, code, status)
	}
	return nil
}

// Order makes an order.
func (s Shop) Order(ctx context.Context, sale Sale) error {
	got, err := s.call(ctx, http.MethodPost, "/v1/orders", sale.OrderID, map[string]any{
		"order_id": sale.OrderID, "amount": sale.Won, "customer_id": sale.Customer, "credits": sale.Credits,
		"name": cmp.Or(sale.Name, "상품"),
	})
	if err != nil {
		return err
	}
	if got.HTTP != http.StatusOK && got.HTTP != http.StatusCreated {
		return fmt.Errorf("got %d %s for order %s, want 201", got.HTTP, got.Code, sale.OrderID)
	}
	return nil
}

// Confirm is what the front end sends after the gateway's redirect: the amount as text.
func (s Shop) Confirm(ctx context.Context, key, order string, won int64) (Reply, error) {
	return s.call(ctx, http.MethodPost, "/v1/payments/confirm", "", map[string]any{
		"paymentKey": key, "orderId": order, "amount": fmt.Sprint(won),
	})
}

// Cancel refunds part of a payment.
func (s Shop) Cancel(ctx context.Context, key string, won int64) (Reply, error) {
	return s.call(ctx, http.MethodPost, "/v1/payments/"+key+"/cancel", "cancel-"+key, map[string]any{
		"reason": "반품", "amount": won,
	})
}

// Status is the status of an order.
func (s Shop) Status(ctx context.Context, order string) (string, error) {
	got, err := s.call(ctx, http.MethodGet, "/v1/orders/"+order, "", nil)
	return got.Status, err
}

// Spend spends credits of a customer's.
func (s Shop) Spend(ctx context.Context, customer, id string, credits int64) (Reply, error) {
	return s.call(ctx, http.MethodPost, "/v1/customers/"+customer+"/credits/spend", id, map[string]any{"spend_id": id, "amount": credits})
}

// Credits is a customer's balance.
func (s Shop) Credits(ctx context.Context, customer string) (int64, error) {
	var account struct {
		Balance int64 `json:"balance"`
	}
	code, err := s.exchange(ctx, http.MethodGet, "/v1/customers/"+customer+"/credits", "", nil, &account)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("got %d for the credits of %s, want 200", code, customer)
	}
	return account.Balance, err
}

func (s Shop) call(ctx context.Context, method, path, idempotencyKey string, body any) (Reply, error) {
	var fields struct {
		Status json.RawMessage `json:"status"`
		Code   string          `json:"code"`
	}
	code, err := s.exchange(ctx, method, path, idempotencyKey, body, &fields)
	if err != nil {
		return Reply{}, err
	}
	got := Reply{HTTP: code, Code: fields.Code}
	_ = json.Unmarshal(fields.Status, &got.Status) // a problem's status is a number
	return got, nil
}

func (s Shop) exchange(ctx context.Context, method, path, idempotencyKey string, body, into any) (int, error) {
	var reader io.Reader = http.NoBody
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, fmt.Errorf("write the request to %s: %w", path, err)
		}
		reader = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, reader)
	if err != nil {
		return 0, fmt.Errorf("make the request to %s: %w", path, err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+APISecret)
	if idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", idempotencyKey)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("ask the service: %w", err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(into); err != nil {
		return 0, fmt.Errorf("read the answer to %s %s: %w", method, path, err)
	}
	return response.StatusCode, nil
}

// Open makes an order and lets its buyer authenticate in the gateway's window. It returns the payment key.
func (s *Stage) Open(ctx context.Context, sale Sale) (string, error) {
	if err := s.Shop.Order(ctx, sale); err != nil {
		return "", err
	}
	return s.Sim.Authenticate(tosssim.Checkout{
		OrderID: sale.OrderID, OrderName: cmp.Or(sale.Name, "상품"), Amount: sale.Won, Method: tosssim.Card,
	}), nil
}

// Sell takes an order through checkout until it is paid. It returns the payment key.
func (s *Stage) Sell(ctx context.Context, sale Sale) (string, error) {
	key, err := s.Open(ctx, sale)
	if err != nil {
		return "", err
	}
	reply, err := s.Shop.Confirm(ctx, key, sale.OrderID, sale.Won)
	if err != nil {
		return "", err
	}
	return key, reply.Expect("confirming "+sale.OrderID, http.StatusOK, "done")
}
