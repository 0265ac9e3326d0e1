package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// shop is the merchant: its server, which has an API key, and its front end, which has none.
type shop struct {
	url    string
	client *http.Client
}

func newShop(url string) shop {
	return shop{url: url, client: &http.Client{Timeout: 40 * time.Second}}
}

// reply is an answer of the service's, as far as the story looks at it.
type reply struct {
	code   int
	Status string `json:"status"`
	Code   string `json:"code"`
}

func (s shop) order(ctx context.Context, order string, won int64) error {
	got, err := s.call(ctx, http.MethodPost, "/v1/orders", order, map[string]any{
		"order_id": order, "amount": won, "customer_id": "demo-customer", "credits": won / 1000, "name": "데모 상품",
	})
	if err != nil {
		return err
	}
	if got.code != http.StatusOK && got.code != http.StatusCreated {
		return fmt.Errorf("got %d %s for the order, want 201", got.code, got.Code)
	}
	return nil
}

// confirm is what the front end sends after the gateway's redirect: the amount as text.
func (s shop) confirm(ctx context.Context, key, order string, won int64) (reply, error) {
	return s.call(ctx, http.MethodPost, "/v1/payments/confirm", "", map[string]any{
		"paymentKey": key, "orderId": order, "amount": fmt.Sprint(won),
	})
}

func (s shop) cancel(ctx context.Context, key string, won int64) (int, error) {
	got, err := s.call(ctx, http.MethodPost, "/v1/payments/"+key+"/cancel", "cancel-"+key, map[string]any{
		"reason": "반품", "amount": won,
	})
	return got.code, err
}

func (s shop) status(ctx context.Context, order string) (string, error) {
	got, err := s.call(ctx, http.MethodGet, "/v1/orders/"+order, "", nil)
	return got.Status, err
}

func (s shop) call(ctx context.Context, method, path, idempotencyKey string, body any) (reply, error) {
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return reply{}, err
		}
		reader = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, reader)
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+apiSecret)
	if idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", idempotencyKey)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	got := reply{code: response.StatusCode}
	raw, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return reply{}, err
	}
	var fields struct {
		Status json.RawMessage `json:"status"`
		Code   string          `json:"code"`
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return reply{}, fmt.Errorf("read the answer to %s %s: %w", method, path, err)
	}
	_ = json.Unmarshal(fields.Status, &got.Status) // a problem's status is a number
	got.Code = fields.Code
	return got, nil
}

func expect(what string, got reply, code int, status string) error {
	if got.code != code || got.Status != status {
		return fmt.Errorf("got %d %q %s for %s, want %d %q", got.code, got.Status, got.Code, what, code, status)
	}
	return nil
}
