package store

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"daesa/checkout/store/storesim"
	"daesa/ledger"
)

func TestAsk_OverHTTP(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		fault storesim.Fault
		want  Answer
		held  bool // the store has taken the order on
	}{
		{"accepted", storesim.Fault{}, Answer{Word: Accepted, Sent: true}, true},
		{"failing", storesim.Fault{Kind: storesim.Status, Code: 500}, Answer{Word: Unreachable, Sent: true}, false},
		{"overloaded", storesim.Fault{Kind: storesim.Status, Code: 429}, Answer{Word: Unreachable, Sent: true}, false},
		{"no such address", storesim.Fault{Kind: storesim.Status, Code: 404}, Answer{Word: Unreachable, Sent: true}, false},
		{"redirected", storesim.Fault{Kind: storesim.Status, Code: 307}, Answer{Word: Unreachable, Sent: true}, false},
		{"connection broken", storesim.Fault{Kind: storesim.Reset}, Answer{Word: Unreachable, Sent: true}, false},
		{"accepted and lost", storesim.Fault{Kind: storesim.LostReply}, Answer{Word: Unreachable, Sent: true}, true},
		{"accepted and unreadable", storesim.Fault{Kind: storesim.Garbage}, Answer{Word: Unreachable, Sent: true}, true},
		{"silent", storesim.Fault{Kind: storesim.Hang}, Answer{Word: Late, Sent: true}, false},
		{"accepted and silent", storesim.Fault{Kind: storesim.DoThenHang}, Answer{Word: Late, Sent: true}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c, sim := overHTTP(t)
			if test.fault.Kind != "" {
				test.fault.Op = storesim.Ask
				sim.Fail(test.fault)
			}
			got, err := ask(t, c, order("one"))
			if err != nil || got != test.want {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
			if held := len(sim.Held()) == 1; held != test.held {
				t.Errorf("the store holds the order: %t, want %t", held, test.held)
			}
			if err := c.Release(t.Context(), order("one")); err != nil {
				t.Error(err)
			}
			if held := sim.Held(); len(held) != 0 {
				t.Errorf("still held after its release: %v", held)
			}
		})
	}
}

func TestAsk_ADeclineSaysWhy(t *testing.T) {
	t.Parallel()
	c, sim := overHTTP(t)
	sim.Decline("order-one", "품절\u202e\x00 "+strings.Repeat("가", 300))
	got, err := ask(t, c, order("one"))
	if err != nil || got.Word != Declined || !got.Sent {
		t.Fatal(got, err)
	}
	if want := "품절 " + strings.Repeat("가", 197); got.Reason != want {
		t.Errorf("got the reason %q, want %q", got.Reason, want)
	}
}

func TestAsk_NobodyListens(t *testing.T) {
	t.Parallel()
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(nil)
	cfg.URL = "http://" + listener.Addr().String()
	_ = listener.Close()
	c := mustNew(t, cfg)
	got, err := ask(t, c, order("one"))
	if err != nil || got != (Answer{Word: Unreachable}) {
		t.Errorf("got %+v, %v; want unreachable and not sent: there is nothing to be released", got, err)
	}
}

// TestAsk_SentOnce closes the connection under the question, as a server does whose idle connections are old.
func TestAsk_SentOnce(t *testing.T) {
	t.Parallel()
	came := 0
	transport := tripper(func(r *http.Request) (*http.Response, error) {
		came++
		if r.GetBody != nil {
			t.Error("net/http could send the question again by itself")
		}
		_, _ = io.ReadAll(r.Body)
		return nil, io.EOF
	})
	got, err := ask(t, mustNew(t, testConfig(transport)), order("one"))
	if err != nil || got != (Answer{Word: Unreachable, Sent: true}) || came != 1 {
		t.Errorf("got %+v, %v after %d requests", got, err, came)
	}
}

func TestCalls_AsTheyAreSent(t *testing.T) {
	t.Parallel()
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		signer, _ := standardwebhooks.NewWebhook(secret)
		if err := signer.Verify(body, r.Header); err != nil {
			t.Error(err)
		}
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Idempotency-Key")+" "+string(body))
		_, _ = io.WriteString(w, `{"accepted":true,"ticket":7}`)
	}))
	defer server.Close()
	cfg := testConfig(nil)
	cfg.URL = server.URL + "/v1/acceptances/"
	c := mustNew(t, cfg)
	a := Acceptance{ID: "acc_1", OrderID: "order-1", Amount: ledger.Money{Minor: 1_050, Currency: ledger.USD}}
	if answer, err := ask(t, c, a); err != nil || answer.Word != Accepted {
		t.Error(answer, err)
	}
	if err := c.Release(t.Context(), a); err != nil {
		t.Error(err)
	}
	want := []string{
		`POST /v1/acceptances acc_1 {"acceptance_id":"acc_1","order_id":"order-1","amount":"10.50","currency":"USD"}`,
		`POST /v1/acceptances/acc_1/release release-acc_1 {"acceptance_id":"acc_1","order_id":"order-1"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadAnswer_WhatDoesNotSayIsNoAnswer(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]result{
		`{"accepted":true}`:                    resultAccepted,
		`{"accepted":false}`:                   resultDeclined,
		`{"accepted":false,"reason":"closed"}`: resultDeclined,
		`{}`:                                   resultUnreadable,
		`{"accepted":null}`:                    resultUnreadable,
		`{"accepted":"true"}`:                  resultUnreadable,
		`true`:                                 resultUnreadable,
		``:                                     resultUnreadable,
		`<html>`:                               resultUnreadable,
	} {
		if got := readAnswer([]byte(body)); got.result != want {
			t.Errorf("%s: got %s, want %s", body, got.result, want)
		}
	}
}

func TestRelease_WhatCountsAsHeard(t *testing.T) {
	t.Parallel()
	for status, heard := range map[int]bool{200: true, 204: true, 404: true, 410: true, 302: false, 400: false, 401: false, 429: false, 500: false, 503: false} {
		c := mustNew(t, testConfig(tripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: http.NoBody}, nil
		})))
		if err := c.Release(t.Context(), order("one")); (err == nil) != heard {
			t.Errorf("%d: got %v, want heard %t", status, err, heard)
		}
	}
}

func TestRelease_OvertakingItsQuestion(t *testing.T) {
	t.Parallel()
	c, sim := overHTTP(t)
	if err := c.Release(t.Context(), order("one")); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(t, c, order("one")); err != nil || got.Word != Declined {
		t.Errorf("got %+v, %v: an id released before it was asked about must not be held", got, err)
	}
	if held := sim.Held(); len(held) != 0 {
		t.Errorf("held: %v", held)
	}
}

func TestNew_RefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"no address":    func(c *Config) { c.URL = "" },
		"half a one":    func(c *Config) { c.URL = "store.example/x" },
		"a query":       func(c *Config) { c.URL += "?a=b" },
		"no secret":     func(c *Config) { c.Secret = "" },
		"not base64":    func(c *Config) { c.Secret = "whsec_?" },
		"no cap":        func(c *Config) { c.Limits.Cap = -1 },
		"no time":       func(c *Config) { c.Limits.Total = -1 },
		"all waiting":   func(c *Config) { c.Limits.Least = -1 },
		"above its all": func(c *Config) { c.Limits.Least = c.Limits.or(declared()).Total + 1 },
		"no replicas":   func(c *Config) { c.Replicas = -1 },
		"no log":        func(c *Config) { c.Log = nil },
	} {
		cfg := testConfig(nil)
		change(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := declared().validate(); err != nil {
		t.Error(err)
	}
}

func TestUnsent_IsLateOrUnreachable(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(nil))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := c.Reserve(ctx)
	var unsent *Unsent
	if !errors.As(err, &unsent) || unsent.Word() != Late {
		t.Errorf("got %v", err)
	}
	for range 10 {
		token, _ := c.breaker.Acquire()
		token.Done(c.tells(resultServerError, 0))
	}
	if _, err = c.Reserve(t.Context()); !errors.As(err, &unsent) || unsent.Word() != Unreachable || unsent.RetryAfter <= 0 {
		t.Errorf("got %v", err)
	}
	if c.slots.Held() != 0 {
		t.Error("a slot is held by nobody")
	}
}
