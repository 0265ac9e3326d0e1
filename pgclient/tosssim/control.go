package tosssim

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"
)

// routeControl is the control API: what a test does by method calls, for other processes and for curl. See the package
// documentation for the table.
func (s *Sim) routeControl(mux *http.ServeMux) {
	mux.HandleFunc("POST /__sim/open", controlCheckout(s.Open))
	mux.HandleFunc("POST /__sim/authenticate", controlCheckout(s.Authenticate))
	mux.HandleFunc("POST /__sim/approve", control(func(c command) (any, error) { return nil, s.Approve(c.PaymentKey) }))
	mux.HandleFunc("POST /__sim/deposit", control(func(c command) (any, error) { return nil, s.Deposit(c.PaymentKey) }))
	mux.HandleFunc("POST /__sim/revert", control(func(c command) (any, error) { return nil, s.RevertDeposit(c.PaymentKey) }))
	mux.HandleFunc("POST /__sim/expire", control(func(c command) (any, error) { return nil, s.Expire(c.PaymentKey) }))
	mux.HandleFunc("POST /__sim/abort", control(func(c command) (any, error) { return nil, s.Abort(c.PaymentKey, c.Code) }))
	mux.HandleFunc("POST /__sim/cancel", control(func(c command) (any, error) {
		key, err := s.CancelInDashboard(c.PaymentKey, c.Amount, c.Reason)
		return map[string]string{"transactionKey": key}, err
	}))
	mux.HandleFunc("POST /__sim/finish-cancel", control(func(c command) (any, error) {
		return nil, s.FinishCancel(c.TransactionKey, c.Done)
	}))
	mux.HandleFunc("POST /__sim/payment", control(func(raw json.RawMessage) (any, error) { return nil, s.PutPayment(raw) }))
	mux.HandleFunc("POST /__sim/transaction", control(func(raw json.RawMessage) (any, error) { return nil, s.PutTransaction(raw) }))
	mux.HandleFunc("GET /__sim/payments", answer(func() any { return s.Keys() }))
	mux.HandleFunc("GET /__sim/totals", answer(func() any { return s.Totals() }))
	mux.HandleFunc("GET /__sim/calls", answer(func() any { return s.Calls() }))
	mux.HandleFunc("GET /__sim/counts", answer(func() any { return s.Counts() }))
	mux.HandleFunc("GET /__sim/held", answer(func() any { return map[string]int{"held": s.Held()} }))
	mux.HandleFunc("POST /__sim/fault", control(s.controlFault))
	mux.HandleFunc("POST /__sim/heal", control(func(struct{}) (any, error) { s.Heal(); return nil, nil }))
	mux.HandleFunc("POST /__sim/reset", control(func(struct{}) (any, error) { s.Reset(); return nil, nil }))
	s.routeNotices(mux)
	s.routePage(mux)
}

// routeNotices is the part of the control API about webhooks.
func (s *Sim) routeNotices(mux *http.ServeMux) {
	mux.HandleFunc("GET /__sim/notices", answer(func() any { return s.Notices() }))
	mux.HandleFunc("POST /__sim/webhook-url", control(func(c command) (any, error) { s.SetWebhookURL(c.URL); return nil, nil }))
	mux.HandleFunc("POST /__sim/delivery", control(func(p controlPlan) (any, error) { s.SetDelivery(p.plan()); return nil, nil }))
	mux.HandleFunc("POST /__sim/deliver", control(func(c command) (any, error) { return delivered(s.Deliver(c.ID)) }))
	mux.HandleFunc("POST /__sim/deliver-due", func(w http.ResponseWriter, r *http.Request) {
		// What is under way is finished even if the caller leaves.
		writeControl(w, http.StatusOK, map[string]int{"sent": s.DeliverDue(context.WithoutCancel(r.Context()))})
	})
	mux.HandleFunc("POST /__sim/send", control(func(c command) (any, error) {
		body := []byte(c.Body)
		if text, ok := wordOf(c.Body); ok {
			body = []byte(text)
		}
		return delivered(s.Send(body, c.Headers))
	}))
}

// command is the body of most control calls; each uses what it needs.
type command struct {
	PaymentKey     string            `json:"paymentKey"`
	TransactionKey string            `json:"transactionKey"`
	Amount         int64             `json:"amount"`
	Reason         string            `json:"reason"`
	Code           string            `json:"code"`
	Done           bool              `json:"done"`
	ID             int64             `json:"id"`
	URL            string            `json:"url"`
	Body           json.RawMessage   `json:"body"` // JSON, or a string with any text.
	Headers        map[string]string `json:"headers"`
}

// controlFault is a Fault in JSON.
type controlFault struct {
	Op          Op                `json:"op"`
	Kind        Kind              `json:"kind"`
	N           int               `json:"n"`
	DelayMs     int64             `json:"delayMs"`
	Code        int               `json:"code"`
	Body        string            `json:"body"`
	ContentType string            `json:"contentType"`
	Headers     map[string]string `json:"headers"`
	Payment     json.RawMessage   `json:"payment"`
	PaymentKey  string            `json:"paymentKey"`
}

func (s *Sim) controlFault(c controlFault) (any, error) {
	fault := Fault{
		Op: c.Op, Kind: c.Kind, N: c.N, Delay: time.Duration(c.DelayMs) * time.Millisecond, Code: c.Code, Body: c.Body,
		ContentType: c.ContentType, Headers: c.Headers, Payment: c.Payment, PaymentKey: c.PaymentKey,
	}
	if err := fault.validate(); err != nil {
		return nil, err
	}
	s.Fail(fault)
	return nil, nil
}

// controlPlan is a DeliveryPlan in JSON.
type controlPlan struct {
	Hold       bool   `json:"hold"`
	HoldTimeMs int64  `json:"holdTimeMs"`
	Lose       int    `json:"lose"`
	Duplicate  int    `json:"duplicate"`
	Shuffle    uint64 `json:"shuffle"`
	FreshIDs   bool   `json:"freshIds"`
	Parallel   int    `json:"parallel"`
}

func (p controlPlan) plan() DeliveryPlan {
	return DeliveryPlan{
		Hold: p.Hold, HoldTime: time.Duration(p.HoldTimeMs) * time.Millisecond, Lose: p.Lose, Duplicate: p.Duplicate,
		Shuffle: p.Shuffle, FreshIDs: p.FreshIDs, Parallel: p.Parallel,
	}
}

// controlCheckout is stricter than the methods: who types JSON by hand mistypes.
func controlCheckout(begin func(Checkout) string) http.HandlerFunc {
	return control(func(c Checkout) (any, error) {
		known := []Method{"", Card, VirtualAccount, EasyPay, Transfer, ForeignEasyPay}
		if c.OrderID == "" || c.Amount <= 0 || !slices.Contains(known, c.Method) {
			return nil, errors.New("a checkout needs an orderId, a positive amount and a known method")
		}
		return map[string]string{"paymentKey": begin(c)}, nil
	})
}

func delivered(status int, err error) (any, error) {
	if errors.Is(err, ErrNotFound) || errors.Is(err, errNoURL) {
		return nil, err
	}
	out := map[string]any{"status": status, "error": nil}
	if err != nil {
		out["error"] = err.Error()
	}
	return out, nil
}

// control decodes the body, which may be absent, and answers what act returns; an error of it is the caller's.
func control[T any](act func(T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in T
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestBodyMax))
		if err == nil && len(body) > 0 {
			err = json.Unmarshal(body, &in)
		}
		var out any
		if err == nil {
			out, err = act(in)
		}
		switch {
		case errors.Is(err, ErrNotFound):
			writeControl(w, http.StatusNotFound, map[string]string{"error": err.Error()})
		case errors.Is(err, ErrState):
			writeControl(w, http.StatusConflict, map[string]string{"error": err.Error()})
		case err != nil:
			writeControl(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		case out == nil:
			writeControl(w, http.StatusOK, struct{}{})
		default:
			writeControl(w, http.StatusOK, out)
		}
	}
}

func answer(read func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { writeControl(w, http.StatusOK, read()) }
}

func writeControl(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	write(w, append(encode(body), '\n'))
}
