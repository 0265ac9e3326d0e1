package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"daesa/pgclient/tosssim"
)

// shop is the merchant's server and its front end, as users of one instance.
type shop struct {
	t      testing.TB
	url    string
	client *http.Client
}

func newShop(tb testing.TB, url string) *shop {
	tb.Helper()
	return &shop{t: tb, url: url, client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 32}, Timeout: 60 * time.Second,
	}}
}

func (s *shop) close() { s.client.CloseIdleConnections() }

// reply is an answer of the service.
type reply struct {
	code   int
	header http.Header
	body   []byte

	Status json.RawMessage `json:"status"`
	Code   string          `json:"code"`
	Cancel string          `json:"cancel_id"`
	URL    string          `json:"status_url"`
}

// is the answer in short: its HTTP status, and the status of what it is about or the code of the problem.
func (r reply) is() string {
	var status string
	if json.Unmarshal(r.Status, &status) != nil {
		status = r.Code
	}
	return fmt.Sprintf("%d %s", r.code, status)
}

// want fails the test unless the answer is that.
func (r reply) want(tb testing.TB, what, short string) reply {
	tb.Helper()
	if got := r.is(); got != short {
		tb.Fatalf("%s: got %s, want %s: %s", what, got, short, r.body)
	}
	return r
}

// call sends one request with the merchant's API key.
func (s *shop) call(method, path, key string, body any) reply {
	s.t.Helper()
	got, err := s.try(s.t.Context(), method, path, key, body)
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

// try is call for a request that may get no answer.
func (s *shop) try(ctx context.Context, method, path, key string, body any) (reply, error) {
	var content io.Reader = http.NoBody
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return reply{}, err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, content)
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+apiSecret)
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	return s.send(request)
}

func (s *shop) send(request *http.Request) (reply, error) {
	response, err := s.client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	got := reply{code: response.StatusCode, header: response.Header}
	if got.body, err = io.ReadAll(response.Body); err != nil {
		return got, err
	}
	_ = json.Unmarshal(got.body, &got) // what is no object has no fields
	return got, nil
}

// order makes an order of that many won.
func (s *shop) order(id string, won int64) {
	s.t.Helper()
	s.orderFor(id, won, "", 0)
}

// orderFor makes an order that grants credits to a customer.
func (s *shop) orderFor(id string, won int64, customer string, credits int64) {
	s.t.Helper()
	got := s.call(http.MethodPost, "/v1/orders", "order-"+id, map[string]any{
		"order_id": id, "amount": won, "name": "상품", "customer_id": customer, "credits": credits,
	})
	if got.code != http.StatusCreated && got.code != http.StatusOK {
		s.t.Fatalf("order %s: got %s", id, got.is())
	}
}

// confirm is what the buyer's browser sends after the gateway's window.
func (s *shop) confirm(key, order string, won int64) reply {
	s.t.Helper()
	return s.call(http.MethodPost, "/v1/payments/confirm", "", confirmation(key, order, won))
}

func confirmation(key, order string, won int64) map[string]any {
	return map[string]any{"paymentKey": key, "orderId": order, "amount": won}
}

// cancel asks for that many won back; 0 asks for all that is left.
func (s *shop) cancel(key, name string, won int64) reply {
	s.t.Helper()
	return s.call(http.MethodPost, "/v1/payments/"+key+"/cancel", name, cancellation(won))
}

func cancellation(won int64) map[string]any {
	body := map[string]any{"reason": "반품"}
	if won > 0 {
		body["amount"] = won
	}
	return body
}

// status is how an order stands.
func (s *shop) status(order string) string {
	s.t.Helper()
	return s.call(http.MethodGet, "/v1/orders/"+order, "", nil).is()
}

// open makes an order whose buyer has been through the gateway's window.
func (w *world) open(order string, won int64) (key string) {
	w.Helper()
	w.app.shop.order(order, won)
	return w.authenticate(order, won, tosssim.Card)
}

func (w *world) authenticate(order string, won int64, method tosssim.Method) (key string) {
	return w.sim.Authenticate(tosssim.Checkout{OrderID: order, OrderName: "상품", Amount: won, Method: method})
}

// sell is open and a confirm without trouble.
func (w *world) sell(order string, won int64) (key string) {
	w.Helper()
	key = w.open(order, won)
	w.app.shop.confirm(key, order, won).want(w, "confirm "+order, "200 done")
	return key
}

// dashboard cancels at the gateway, without us; 0 cancels all that is left.
func (w *world) dashboard(key string, won int64) (transactionKey string) {
	w.Helper()
	transactionKey, err := w.sim.CancelInDashboard(key, won, "고객 변심")
	w.must(err)
	return transactionKey
}

// newest is the newest notice about a payment.
func (w *world) newest(key string) tosssim.Notice {
	w.Helper()
	var newest tosssim.Notice
	for _, n := range w.sim.Notices() {
		if n.PaymentKey == key && n.EventType == "PAYMENT_STATUS_CHANGED" {
			newest = n
		}
	}
	if newest.ID == 0 {
		w.Fatalf("no notice about %s", key)
	}
	return newest
}

// deliver sends one notice once. What is answered 200 must be in the books at that moment (I9).
func (w *world) deliver(n tosssim.Notice) (status int) {
	w.Helper()
	status, err := w.sim.Deliver(n.ID)
	if err != nil {
		return 0
	}
	if status == http.StatusOK {
		w.requireBooked(n)
	}
	return status
}

func (w *world) wantDelivery(n tosssim.Notice, want int) {
	w.Helper()
	if got := w.deliver(n); got != want {
		w.Fatalf("notice %d (%s): got %d, want %d", n.ID, n.EventType, got, want)
	}
}

// requireBooked fails the test unless every finished cancel that the notice names is in the books.
func (w *world) requireBooked(n tosssim.Notice) {
	w.Helper()
	var notice struct {
		Data struct {
			Status  string `json:"status"`
			Cancels []struct {
				TransactionKey string `json:"transactionKey"`
				CancelStatus   string `json:"cancelStatus"`
			} `json:"cancels"`
		} `json:"data"`
	}
	if json.Unmarshal(n.Body, &notice) != nil || (notice.Data.Status != "CANCELED" && notice.Data.Status != "PARTIAL_CANCELED") {
		return
	}
	for _, c := range notice.Data.Cancels {
		if c.CancelStatus == "DONE" && w.number(`SELECT count(*) FROM cancels WHERE transaction_key = $1`, c.TransactionKey) != 1 {
			w.Errorf("a notice was answered 200 and its cancel %s is not in the books", c.TransactionKey)
		}
	}
}
