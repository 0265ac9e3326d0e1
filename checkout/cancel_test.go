package checkout

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

const reason = "고객 변심"

func whole() map[string]any { return map[string]any{"reason": reason} }

func part(amount any) map[string]any { return map[string]any{"reason": reason, "amount": amount} }

func TestCancel_PartThenRest(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	_, key := s.paid(50000)
	s.cancel(key, "c1", part("12000")).wants(t, http.StatusOK, "done")
	s.wantBooks(key, ledger.StatusPartiallyCanceled, ledger.OrderPartiallyCanceled)
	s.cancel(key, "c2", whole()).wants(t, http.StatusOK, "done")
	s.wantBooks(key, ledger.StatusCanceled, ledger.OrderCanceled)
	if p, _ := s.books(key); !p.Balance().IsZero() || len(p.Cancels) != 2 {
		t.Errorf("got balance %s and %d cancels, want nothing and 2", p.Balance(), len(p.Cancels))
	}
	again := s.cancel(key, "c1", part("12000"))
	again.wants(t, http.StatusOK, "done")
	if again.header.Get("Idempotent-Replay") != "true" {
		t.Error("a repeated cancel must be answered from the stored reply")
	}
	s.cancel(key, "c1", part("13000")).wants(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
	s.cancel(key, "c3", whole()).wants(t, http.StatusConflict, "not_cancelable")
	if got := s.effects(tosssim.Cancel, key); got != 2 {
		t.Errorf("got %d cancels at the gateway, want 2", got)
	}
	s.call("GET", again.text("status_url"), nil).wants(t, http.StatusOK, "done")
	confirm := s.call("POST", "/v1/payments/confirm", confirmOf(key, s.orderOf(key), 50000))
	confirm.wants(t, http.StatusConflict, "payment_canceled")
}

func (s *shop) orderOf(paymentKey string) string {
	p, _ := s.books(paymentKey)
	return p.OrderID
}

func TestCancel_EqualPartsAreTwoCancels(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	_, key := s.paid(10000)
	s.cancel(key, "first", part(3000)).wants(t, http.StatusOK, "done")
	s.cancel(key, "second", part(3000)).wants(t, http.StatusOK, "done")
	if p, _ := s.books(key); p.Canceled() != ledger.Won(6000) {
		t.Errorf("got %s canceled, want 6000", p.Canceled())
	}
}

func TestCancel_BadRequestsNeverReachTheGateway(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	_, key := s.paid(50000)
	orderID, unpaid := s.order(50000)
	for _, test := range []struct {
		key    string
		body   any
		status int
		code   string
	}{
		{key, part(50001), 409, "cancel_too_much"},
		{key, part(0), 400, "amount_malformed"},
		{key, part(-1), 400, "amount_malformed"},
		{key, part("1.5"), 400, "amount_malformed"},
		{key, map[string]any{"reason": " "}, 400, "invalid_request"},
		{key, map[string]any{"reason": "\x1b\n"}, 400, "invalid_request"},
		{key, map[string]any{"reason": strings.Repeat("가", 201)}, 400, "invalid_request"},
		{key, map[string]any{"amount": 100}, 400, "invalid_request"},
		{key, `{"reason":"x","amont":100}`, 400, "malformed"},
		{key, map[string]any{"reason": "x", "refund_account": map[string]any{"bank": "20"}}, 400, "invalid_request"},
		{unpaid, whole(), 404, "not_found"},
		{"pk%2F..%2F..", whole(), 400, "invalid_request"},
	} {
		answer := s.call("POST", "/v1/payments/"+test.key+"/cancel", test.body, keyHeader, "bad")
		if answer.status != test.status || answer.text("code") != test.code {
			t.Errorf("%v: got %d %v, want %d %s", test.body, answer.status, answer.body, test.status, test.code)
		}
	}
	s.call("POST", "/v1/payments/"+key+"/cancel", whole()).wants(t, 400, "idempotency_key_missing")
	s.call("POST", "/v1/payments/"+key+"/cancel", whole(), "Authorization", "").wants(t, 401, "unauthorized")
	if got := s.sim.Count(tosssim.Cancel); got != 0 {
		t.Errorf("got %d cancel calls, want 0", got)
	}
	s.confirm(unpaid, orderID, 50000).wants(t, 200, "done")
}

// TestCancel_ReasonIsOneLine: the books keep the reason as the gateway is told it, without what neither could keep.
func TestCancel_ReasonIsOneLine(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	_, key := s.paid(10000)
	s.cancel(key, "c1", map[string]any{"reason": " 고객\t변심\r\n(\u0085품절)\x1b "}).wants(t, http.StatusOK, "done")
	var kept, booked string
	must(t, s.db.QueryRow(t.Context(), `SELECT reason FROM cancel_requests`).Scan(&kept))
	must(t, s.db.QueryRow(t.Context(), `SELECT reason FROM cancels`).Scan(&booked))
	if want := "고객 변심  ( 품절)"; kept != want || booked != want {
		t.Errorf("kept %q and booked %q, want %q", kept, booked, want)
	}
}

func TestCancel_TwoAtOnceNeverExceedTheBalance(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	_, key := s.paid(10000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.Delay, Delay: time.Minute})
	first := make(chan said, 1)
	go func() {
		answer, _ := s.try(t.Context(), "POST", "/v1/payments/"+key+"/cancel", part(6000), keyHeader, "a")
		first <- answer
	}()
	eventually(t, "the first cancel is at the gateway", func() bool { return s.sim.Count(tosssim.Cancel) == 1 })
	s.cancel(key, "b", part(6000)).wants(t, http.StatusConflict, "cancel_under_way")
	inFlight := s.cancel(key, "a", part(6000))
	inFlight.wants(t, http.StatusConflict, "request_in_flight")
	if inFlight.header.Get("Retry-After") == "" {
		t.Error("a request in flight needs Retry-After")
	}
	s.sim.Heal()
	(<-first).wants(t, http.StatusOK, "done")
	s.cancel(key, "b", part(6000)).wants(t, http.StatusConflict, "cancel_too_much")
	s.cancel(key, "c", part(4000)).wants(t, http.StatusOK, "done")
	if got := s.sim.Count(tosssim.Cancel); got != 2 {
		t.Errorf("got %d cancel calls, want 2", got)
	}
}

func TestCancel_RefusedForGood(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	_, key := s.paid(50000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.Refuse, Body: "EXCEED_MAX_REFUND_DUE"})
	for range 2 {
		s.cancel(key, "c1", whole()).wants(t, http.StatusConflict, "EXCEED_MAX_REFUND_DUE")
	}
	s.wantBooks(key, ledger.StatusDone, ledger.OrderPaid)
	if got := s.sim.Count(tosssim.Cancel); got != 1 {
		t.Errorf("got %d cancel calls, want 1", got)
	}
	s.cancel(key, "c2", whole()).wants(t, http.StatusOK, "done")
}

// TestCancel_BooksWereBehind: somebody canceled a part in the gateway's dashboard and its notice has not come. Nothing
// is canceled on a wrong belief; our books learn, and the same request goes through when it is sent again.
func TestCancel_BooksWereBehind(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	_, key := s.paid(50000)
	_, err := s.sim.CancelInDashboard(key, 12000, "dashboard")
	must(t, err)
	s.cancel(key, "c1", whole()).wants(t, http.StatusConflict, "refundable_changed")
	if p, _ := s.books(key); p.Balance() != ledger.Won(38000) {
		t.Errorf("got balance %s, want 38000", p.Balance())
	}
	s.cancel(key, "c1", whole()).wants(t, http.StatusOK, "done")
	s.wantBooks(key, ledger.StatusCanceled, ledger.OrderCanceled)
	if got := s.sim.Totals().Canceled["KRW"]; got != 50000 {
		t.Errorf("got %d won canceled at the gateway, want 50000", got)
	}
}

func TestCancel_AlreadyCanceledElsewhere(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	_, key := s.paid(50000)
	_, err := s.sim.CancelInDashboard(key, 0, "dashboard")
	must(t, err)
	s.cancel(key, "c1", whole()).wants(t, http.StatusConflict, "ALREADY_CANCELED_PAYMENT")
	s.wantBooks(key, ledger.StatusCanceled, ledger.OrderCanceled)
}

func TestCancel_LostOutcomes(t *testing.T) {
	t.Parallel()
	for _, kind := range []tosssim.Kind{tosssim.LostReply, tosssim.DoThenStatus, tosssim.DoThenHang, tosssim.Reset, tosssim.HTML} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := open(t, shopOptions{paths: quickPaths()})
			_, key := s.paid(50000)
			s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: kind, Code: 503})
			answer := s.cancel(key, "c1", whole())
			answer.wants(t, http.StatusAccepted, "unknown")
			s.sim.Heal()
			s.call("GET", answer.text("status_url"), nil).wants(t, http.StatusOK, "unknown")
			// Nothing is sent a second time by us: the request's own work sends it again with its own key.
			s.cancel(key, "c1", whole()).wants(t, http.StatusAccepted, "unknown")
			s.cancel(key, "c2", whole()).wants(t, http.StatusConflict, "cancel_under_way")
			if got := s.sim.Count(tosssim.Cancel); got != 1 {
				t.Errorf("got %d cancel calls, want 1", got)
			}
			view := s.call("GET", "/v1/payments/"+key, nil)
			if work := fmt.Sprint(view.body["open_work"]); !strings.Contains(work, "cancel_request") {
				t.Errorf("got open work %s, want the cancel request", work)
			}
		})
	}
}

func TestCancel_RetryUsesTheSameKey(t *testing.T) {
	t.Parallel()
	for _, kind := range []tosssim.Kind{tosssim.LostReply, tosssim.DoThenStatus, tosssim.HTML} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			paths := quickPaths()
			paths.Cancel.Attempts = 2
			s := open(t, shopOptions{paths: paths})
			_, key := s.paid(50000)
			s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: kind})
			s.cancel(key, "c1", part(12000)).wants(t, http.StatusOK, "done")
			keys := map[string]int{}
			for _, c := range s.sim.Calls() {
				if c.Op == tosssim.Cancel {
					keys[c.IdempotencyKey]++
				}
			}
			if len(keys) != 1 {
				t.Errorf("got idempotency keys %v, want one", keys)
			}
			if got := s.effects(tosssim.Cancel, key); got != 1 {
				t.Errorf("got %d cancels, want 1", got)
			}
		})
	}
}

func TestCancel_TurnedAwayMayBeSentAgain(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{paths: quickPaths()})
	_, key := s.paid(50000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.Refuse, Body: "UNAUTHORIZED_KEY"})
	s.cancel(key, "c1", whole()).wants(t, http.StatusBadGateway, "gateway_setup")
	s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.TooMany})
	s.cancel(key, "c1", whole()).wants(t, http.StatusServiceUnavailable, "gateway_unprocessed")
	s.cancel(key, "c1", whole()).wants(t, http.StatusOK, "done")
	keys := map[string]bool{}
	for _, c := range s.sim.Calls() {
		if c.Op == tosssim.Cancel {
			keys[c.IdempotencyKey] = true
		}
	}
	if len(keys) != 3 {
		t.Errorf("got %d gateway keys, want 3: each earlier one is bound to its refusal", len(keys))
	}
}

func TestCancel_CallerHangsUp(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	_, key := s.paid(50000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.Delay, Delay: time.Minute})
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := s.try(ctx, "POST", "/v1/payments/"+key+"/cancel", whole(), keyHeader, "c1")
		gone <- err
	}()
	eventually(t, "the cancel is at the gateway", func() bool { return s.sim.Count(tosssim.Cancel) == 1 })
	hangUp()
	if err := <-gone; err == nil {
		t.Fatal("the caller should have seen an error")
	}
	s.sim.Heal()
	eventually(t, "the cancel is booked and its reply stored", func() bool {
		p, _ := s.books(key)
		return p.Status == ledger.StatusCanceled && s.count(`SELECT count(*) FROM caller_requests WHERE status = 200 AND scope LIKE 'cancel%'`) == 1
	})
	s.cancel(key, "c1", whole()).wants(t, http.StatusOK, "done")
}

func (s *shop) count(sql string, args ...any) (n int) {
	s.t.Helper()
	must(s.t, s.db.QueryRow(s.t.Context(), sql, args...).Scan(&n))
	return n
}

func TestCancel_UnpaidVirtualAccount(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID := s.bareOrder(50000)
	key := s.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 50000, Method: tosssim.VirtualAccount})
	s.confirm(key, orderID, 50000).wants(t, http.StatusOK, "waiting_for_deposit")
	s.cancel(key, "part", part(1000)).wants(t, http.StatusConflict, "cancel_part")
	s.cancel(key, "void", whole()).wants(t, http.StatusOK, "done")
	s.wantBooks(key, ledger.StatusCanceled, ledger.OrderCanceled)
}

func TestCancel_PaidVirtualAccountNeedsAnAccount(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID := s.bareOrder(50000)
	key := s.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 50000, Method: tosssim.VirtualAccount})
	s.confirm(key, orderID, 50000).wants(t, http.StatusOK, "waiting_for_deposit")
	must(t, s.sim.Deposit(key))
	s.lookUpNow(key)
	s.wantBooks(key, ledger.StatusDone, ledger.OrderPaid)
	s.cancel(key, "c1", whole()).wants(t, http.StatusBadRequest, "refund_account_required")
	body := whole()
	body["refund_account"] = map[string]any{"bank": "20", "account_number": "12345678901234", "holder_name": "홍길동"}
	s.cancel(key, "c1", body).wants(t, http.StatusOK, "done")
	s.wantBooks(key, ledger.StatusCanceled, ledger.OrderCanceled)
	if got := s.count(`SELECT count(*) FROM cancel_requests WHERE refund_account IS NOT NULL`); got != 0 {
		t.Error("a bank account must not be kept after its cancel has ended")
	}
}

// lookUpNow records what the gateway says of a payment, as the sweep of open work does.
func (s *shop) lookUpNow(paymentKey string) {
	s.t.Helper()
	seen, err := s.handler.lookUp(s.t.Context(), paymentKey)
	must(s.t, err)
	_, err = s.handler.record(s.t.Context(), seen)
	must(s.t, err)
}

func TestCancel_InProgressIsNotDone(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	orderID := "order-async"
	s.call("POST", "/v1/orders", map[string]any{"order_id": orderID, "amount": "100.50", "currency": "USD"}, keyHeader, "usd").
		wants(t, http.StatusCreated, "pending")
	key := s.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 10050, Currency: "USD", Method: tosssim.ForeignEasyPay})
	s.confirm(key, orderID, "100.50").wants(t, http.StatusOK, "done")
	answer := s.cancel(key, "c1", whole())
	answer.wants(t, http.StatusAccepted, "in_progress")
	s.wantBooks(key, ledger.StatusDone, ledger.OrderPaid)
	must(t, s.sim.FinishCancel(answer.text("transaction_key"), true))
	s.lookUpNow(key)
	s.wantBooks(key, ledger.StatusCanceled, ledger.OrderCanceled)
	s.cancel(key, "c1", whole()).wants(t, http.StatusOK, "done")
}

// TestCancel_WholeLeavesWhatIsInProgressAlone: the rest beside a cancel in progress is named by its amount.
func TestCancel_WholeLeavesWhatIsInProgressAlone(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{paths: quickPaths()})
	orderID := "order-async"
	s.call("POST", "/v1/orders", map[string]any{"order_id": orderID, "amount": "100.50", "currency": "USD"}, keyHeader, "usd").
		wants(t, http.StatusCreated, "pending")
	key := s.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 10050, Currency: "USD", Method: tosssim.ForeignEasyPay})
	s.confirm(key, orderID, "100.50").wants(t, http.StatusOK, "done")
	s.cancel(key, "c1", part("40.00")).wants(t, http.StatusAccepted, "in_progress")
	s.cancel(key, "c2", whole()).wants(t, http.StatusAccepted, "unknown") // the gateway does one at a time
	var asked []string
	for _, c := range s.sim.Calls() {
		if c.Op == tosssim.Cancel {
			asked = append(asked, string(c.Body))
		}
	}
	if len(asked) != 2 || !strings.Contains(asked[1], `"cancelAmount":60.50`) {
		t.Errorf("got %s, want the second to name 60.50", asked)
	}
}
