package tosssim_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"daesa/pgclient/tosssim"
)

func (s *shop) control(path, body string) answer {
	s.t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	return s.must(method, "/__sim/"+path, body, "Authorization", "")
}

func TestControlTellsAStory(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	r := newReceiver(t, s)
	ok := func(path, body string) answer {
		t.Helper()
		out := s.control(path, body)
		if out.status != http.StatusOK {
			t.Errorf("%s %s: %d %s", path, body, out.status, out.body)
		}
		return out
	}
	about := func(key, more string) string { return fmt.Sprintf(`{"paymentKey":%q%s}`, key, more) }

	card := ok("authenticate", `{"orderId":"order-1","amount":50000}`).text("paymentKey")
	ok("approve", about(card, ""))
	if ok("cancel", about(card, `,"amount":1000,"reason":"r"`)).text("transactionKey") == "" {
		t.Error("no transaction key")
	}
	account := ok("authenticate", `{"orderId":"order-2","amount":70000,"method":"virtual_account"}`).text("paymentKey")
	ok("approve", about(account, ""))
	ok("deposit", about(account, ""))
	ok("revert", about(account, ""))
	ok("expire", about(ok("open", `{"orderId":"order-3","amount":1}`).text("paymentKey"), ""))
	ok("abort", about(ok("open", `{"orderId":"order-4","amount":1}`).text("paymentKey"), `,"code":"X"`))
	foreign := ok("open", `{"orderId":"order-5","amount":100,"currency":"USD","method":"foreign_easy_pay"}`).text("paymentKey")
	ok("approve", about(foreign, ""))
	begun := ok("cancel", about(foreign, `,"reason":"r"`)).text("transactionKey")
	ok("finish-cancel", `{"transactionKey":"`+begun+`","done":true}`)
	ok("payment", `{"paymentKey":"seeded","orderId":"order-6"}`)
	ok("transaction", `{"transactionKey":"seeded","transactionAt":"2026-04-15T10:00:00+09:00"}`)

	wantFields(t, ok("totals", "").body, map[string]string{"captures": "2", "cancels": "2", "canceled": `{"KRW":1000,"USD":100}`})
	var keys []string
	mustDo(t, json.Unmarshal(ok("payments", "").body, &keys))
	if len(keys) != 6 {
		t.Errorf("keys %v", keys)
	}
	var notices []tosssim.Notice
	mustDo(t, json.Unmarshal(ok("notices", "").body, &notices))
	if status := ok("deliver", fmt.Sprintf(`{"id":%d}`, notices[0].ID)).number("status"); status != "200" {
		t.Errorf("delivered: %s", status)
	}
	if sent := ok("deliver-due", "{}").number("sent"); sent != fmt.Sprint(len(notices)-1) {
		t.Errorf("sent %s of %d", sent, len(notices))
	}
	ok("send", `{"body":{"a":1},"headers":{"X-Forged":"1"}}`)
	ok("send", `{"body":"text"}`)
	got := r.received()[len(notices):]
	if string(got[0].body) != `{"a":1}` || got[0].header.Get("X-Forged") != "1" || string(got[1].body) != "text" {
		t.Errorf("sent %v", got)
	}
	ok("delivery", `{"hold":true}`)
	ok("webhook-url", `{"url":"http://127.0.0.1:1"}`)
	if out := ok("send", `{"body":{}}`); out.text("error") == "" {
		t.Errorf("unreachable: %s", out.body)
	}
}

func TestControlFaultsAndCalls(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	s.control("fault", `{"op":"get","kind":"status","code":503,"n":-1,"delayMs":1}`)
	if got := s.get("k").status; got != 503 {
		t.Errorf("status %d", got)
	}
	s.control("heal", "{}")
	if got := s.get("k").status; got != 404 {
		t.Errorf("healed: %d", got)
	}
	var calls []tosssim.Call
	mustDo(t, json.Unmarshal(s.control("calls", "").body, &calls))
	if len(calls) != 2 || calls[0].Status != 503 || calls[0].Op != tosssim.Get {
		t.Errorf("calls %+v", calls)
	}
	wantFields(t, s.control("counts", "").body, map[string]string{"get": "2", "confirm": "0", "cancel": "0", "list": "0"})
	if held := s.control("held", "").number("held"); held != "0" {
		t.Errorf("held %s", held)
	}
	s.paid("order-1")
	s.control("reset", "{}")
	if len(s.Keys()) != 0 || len(s.Calls()) != 0 || len(s.Notices()) != 0 || s.Totals().Captures != 0 {
		t.Error("something is left after the reset")
	}
}

func TestControlRefuses(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	key := s.paid("order-1")
	for _, try := range []struct {
		path, body string
		status     int
	}{
		{"approve", `{"paymentKey":"nobody"}`, 404},
		{"approve", `{"paymentKey":"` + key + `"}`, 409},
		{"authenticate", `[]`, 400},
		{"authenticate", `{"orderId":"o","amount":1,"method":"barter"}`, 400},
		{"authenticate", `{"orderId":"o","amount":0}`, 400},
		{"fault", `{"op":"get","kind":"explode"}`, 400},
		{"fault", `{"op":"pay","kind":"hang"}`, 400},
		{"deliver", `{"id":99}`, 404},
		{"send", `{"body":{}}`, 400},
		{"nothing", `{}`, 404},
	} {
		if out := s.control(try.path, try.body); out.status != try.status {
			t.Errorf("%s %s: %d %s", try.path, try.body, out.status, out.body)
		}
	}
}
