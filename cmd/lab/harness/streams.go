package harness

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"daesa/internal/stage"
	"daesa/pgclient/tosssim"
)

// Confirms are buyers who come back from the payment window, one of the payments each.
func Confirms(rate float64, patience time.Duration, payments []Payment) Stream {
	return Stream{
		Name: "confirms", Method: http.MethodPost, Route: "/v1/payments/confirm", Rate: rate, Requests: len(payments), Patience: patience,
		Make: func(n int) Request {
			p := payments[n]
			body, _ := json.Marshal(map[string]any{"paymentKey": p.Key, "orderId": p.Order, "amount": p.Won}) // strings and a number
			return Request{Path: "/v1/payments/confirm", Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
		},
	}
}

// Reads are look-ups of the merchant's servers, of one order after the other.
func Reads(rate float64, patience time.Duration, count int, orders []Payment) Stream {
	return Stream{
		Name: "reads", Method: http.MethodGet, Route: "/v1/orders/{order_id}", Rate: rate, Requests: count, Patience: patience,
		Make: func(n int) Request {
			return Request{
				Path: "/v1/orders/" + orders[n%len(orders)].Order, Header: http.Header{"Authorization": {"Bearer " + stage.APISecret}},
			}
		},
	}
}

// Listings are lists of what the merchant has not been told yet: two hundred events each, once there are so many.
func Listings(rate float64, patience time.Duration, count int) Stream {
	return Stream{
		Name: "reads", Method: http.MethodGet, Route: "/v1/events", Rate: rate, Requests: count, Patience: patience,
		Make: func(int) Request {
			return Request{Path: "/v1/events?state=pending", Header: http.Header{"Authorization": {"Bearer " + stage.APISecret}}}
		},
	}
}

// senderPatience is how long the sender of notices waits for the answer.
const senderPatience = 10 * time.Second

// Notices are deliveries of notices, one each, by the gateway's sender. Retried is how often they were sent before.
func Notices(rate float64, notices []tosssim.Notice, retried int) Stream {
	return Stream{
		Name: "notices", Method: http.MethodPost, Route: "/webhooks/toss", Rate: rate, Requests: len(notices), Patience: senderPatience,
		Make: func(n int) Request {
			header := http.Header{}
			header.Set("Content-Type", "application/json")
			header.Set("Tosspayments-Webhook-Transmission-Id", notices[n].TransmissionID)
			header.Set("Tosspayments-Webhook-Transmission-Retried-Count", strconv.Itoa(retried))
			header.Set("Tosspayments-Webhook-Transmission-Time", time.Now().Format(time.RFC3339))
			return Request{Path: "/webhooks/toss", Header: header, Body: notices[n].Body}
		},
	}
}
