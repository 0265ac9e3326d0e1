package app_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"daesa/pgclient/tosssim"
)

// marked adds personal data and secrets to a payment object, wherever the gateway puts such.
func marked(t *testing.T, raw []byte) json.RawMessage {
	t.Helper()
	var p map[string]any
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	p["customerName"], p["secret"] = "MARK_CUSTOMER", "MARK_SECRET_ps_0000"
	p["card"] = map[string]any{"number": "MARK_CARD_1234", "amount": 50000, "issuerCode": "4V", "approveNo": "MARK_APPROVE"}
	p["virtualAccount"] = map[string]any{
		"accountNumber": "MARK_ACCOUNT", "customerName": "MARK_ACCOUNT_NAME", "depositorName": "MARK_DEPOSITOR",
		"refundReceiveAccount": map[string]any{"accountNumber": "MARK_REFUND_ACCOUNT", "holderName": "MARK_HOLDER"},
	}
	p["metadata"] = map[string]any{"phone": "MARK_PHONE_010-0000-0000"}
	p["mobilePhone"] = map[string]any{"customerMobilePhone": "MARK_MOBILE"}
	p["customerMobilePhone"], p["customerEmail"] = "MARK_MOBILE_2", "MARK_MAIL@example.com"
	p["cashReceipt"] = map[string]any{"registrationNumber": "MARK_RECEIPT"}
	if cancels, ok := p["cancels"].([]any); ok {
		for _, c := range cancels {
			c.(map[string]any)["cancelReason"] = "MARK_REASON 계좌 000-00-000000"
		}
	}
	out, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func noticeOf(data json.RawMessage) []byte {
	return []byte(`{"eventType":"PAYMENT_STATUS_CHANGED","createdAt":"2026-04-15T13:30:00.65327","data":` + string(data) + `}`)
}

// TestMarks plants personal data and secrets in everything that strangers, buyers and the gateway can send, at the most
// talkative log level, and then looks for them in every place that people other than the merchant's finance read.
func TestMarks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hasty)
	var answers []string
	send := func(body []byte, header map[string]string) {
		request := mustRequest(t, http.MethodPost, w.app.URL()+"/webhooks/toss")
		request.Body = http.NoBody
		got, err := w.app.shop.send(withBody(request, body, header))
		w.must(err)
		answers = append(answers, string(got.body))
	}

	key := w.sell("order-marked", 50_000)
	w.dashboard(key, 10_000)
	object, _ := w.sim.Payment(key)
	canceled := marked(t, object)
	w.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Body, Body: string(canceled)})
	send(noticeOf(canceled), nil) // applied
	send(noticeOf(json.RawMessage(strings.Replace(string(canceled), w.payment(key).Cancels[0].TransactionKey, "forged", 1))), nil)
	send(noticeOf(json.RawMessage(strings.Replace(string(canceled), key, "MARKLESS_unknown_key", 1))), nil)
	send(noticeOf(canceled)[:len(canceled)-20], nil) // broken off
	send([]byte(`{"eventType":"MARK_EVENT","data":{"card":{"number":"MARK_CARD"}}}`[:20]), nil)
	send(noticeOf(json.RawMessage(`{"paymentKey":"ghost","status":"CANCELED","orderId":"x\r\nlevel=error msg=\"paid\" \u001b[31m"}`)), nil)
	send(noticeOf(canceled), map[string]string{"Authorization": "Basic MARK_AUTHORIZATION", "User-Agent": "MARK_AGENT", "X-Forwarded-For": "MARK_ADDRESS"})
	send([]byte(`{"createdAt":"2026-04-15T10:01:02","secret":"MARK_SECRET_GUESS","status":"DONE","transactionKey":"k","orderId":"order-marked"}`), nil)

	w.dashboard(key, 500)
	again, _ := w.sim.Payment(key)
	for _, fault := range []tosssim.Fault{
		{Kind: tosssim.Status, Code: 401, Body: `{"code":"UNAUTHORIZED_KEY","message":"MARK_GATEWAY_MESSAGE"}`},
		{Kind: tosssim.HTML},
		{Kind: tosssim.Reset},
		{Kind: tosssim.Body, Body: `{"paymentKey":"MARK`},
		{Kind: tosssim.Body, Body: "MARK_PLAIN", ContentType: "text/plain"},
	} {
		fault.Op = tosssim.Get
		w.sim.Fail(fault)
		send(noticeOf(marked(t, again)), nil)
	}
	body := cancellation(700)
	body["reason"], body["reasons"] = "MARK_REASON_OURS", "MARK_VALUE"
	w.app.shop.call("POST", "/v1/payments/"+key+"/cancel", "cancel-1", body).want(t, "a cancel with a misspelt field", "400 body_malformed")
	w.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.Status, Code: 500, Body: `{"code":"X","message":"MARK_GATEWAY_MESSAGE_2"}`, N: 2})
	w.app.shop.cancel(key, "cancel-2", 700)
	w.app.shop.call("GET", "/v1/orders/MARKLESS?card=MARK_QUERY", "", nil)
	w.quiesce()
	w.requireAgreed()

	figures := make([]string, 0, 500)
	for name := range series(t, w.app.Registry()) {
		figures = append(figures, name)
	}
	places := map[string]string{
		"the log":        w.logs.String(),
		"answers":        strings.Join(answers, "\n"),
		"figures":        strings.Join(figures, "\n"),
		"job arguments":  w.text(`SELECT COALESCE(string_agg(args::text || COALESCE(errors::text, ''), ' '), '') FROM river.river_job`),
		"deliveries":     w.text(`SELECT string_agg(row_to_json(d)::text, ' ') FROM deliveries d`),
		"mismatches":     w.text(`SELECT COALESCE(string_agg(row_to_json(m)::text, ' '), '') FROM mismatches m`),
		"work":           w.text(`SELECT COALESCE(string_agg(row_to_json(k)::text, ' '), '') FROM work k`),
		"audits":         w.text(`SELECT COALESCE(string_agg(statement::text, ' '), '') FROM audit_runs`),
		"reads of lists": w.text(`SELECT COALESCE(string_agg(row_to_json(l)::text, ' '), '') FROM list_runs l`),
	}
	secrets := []string{
		"MARK_", secretKey, apiSecret, base64.StdEncoding.EncodeToString([]byte(secretKey + ":")), "level=error msg=", "\x1b[31m",
	}
	for place, text := range places {
		for _, secret := range secrets {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%q stands in %s: …%s…", secret, place, text[max(0, at-80):min(len(text), at+80)])
			}
		}
	}
}

func withBody(r *http.Request, body []byte, header map[string]string) *http.Request {
	r.Body, r.ContentLength = nopCloser{strings.NewReader(string(body))}, int64(len(body))
	for name, value := range header {
		r.Header.Set(name, value)
	}
	return r
}

type nopCloser struct{ *strings.Reader }

// Close does nothing.
func (nopCloser) Close() error { return nil }
