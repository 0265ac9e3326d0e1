package sim_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"daesa/pgclient/tosssim"
)

// common draws one thing that happens in any shop.
func (s *story) common() func() {
	acts := []func(){
		s.buy, s.buy, s.buy, s.ourCancel, s.ourCancel, s.dashboardCancel, s.dashboardCancel, s.twins, s.account, s.account,
		s.again, s.anyNotice, s.otherSystem, s.spend, s.finishAny, s.secondWindow, s.fallBack, s.fallBack,
	}
	return acts[s.rng.IntN(len(acts))]
}

// one draws one of several.
func one[T any](s *story, from ...T) T { return from[s.rng.IntN(len(from))] }

// any is one of the sales so far that may be touched.
func (s *story) any(methods ...tosssim.Method) *sale {
	var all []*sale
	for _, x := range s.sales {
		if !x.spoilt && (len(methods) == 0 || slices.Contains(methods, x.method)) {
			all = append(all, x)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[s.rng.IntN(len(all))]
}

// order makes an order whose buyer has been through the gateway's window.
func (s *story) order(method tosssim.Method) *sale {
	number := len(s.sales)
	x := &sale{
		order: fmt.Sprintf("order-%04d", number), customer: fmt.Sprintf("customer-%04d", number), method: method,
		won: one(s, int64(1_000), 12_345, 50_000, 99_999),
	}
	if method == tosssim.Card || method == tosssim.EasyPay {
		x.credits = x.won / 100
	}
	got := s.post("/v1/orders", "order-"+x.order, map[string]any{
		"order_id": x.order, "amount": x.won, "customer_id": x.customer, "credits": x.credits,
	})
	x.key = s.gateway.Authenticate(tosssim.Checkout{OrderID: x.order, OrderName: "상품", Amount: x.won, Method: method})
	s.sales = append(s.sales, x)
	s.tell("%s of %d won by %s under %s: %s", x.order, x.won, method, x.key, got.is())
	return x
}

func (s *story) buy() {
	x := s.order(one(s, tosssim.Card, tosssim.Card, tosssim.Card, tosssim.Card, tosssim.EasyPay, tosssim.Transfer,
		tosssim.VirtualAccount, tosssim.VirtualAccount, tosssim.ForeignEasyPay))
	switch s.rng.IntN(10) {
	case 0:
		s.tell("the buyer of %s walks away", x.order)
		return
	case 1:
		s.confirm(x)
	}
	s.confirm(x)
}

// sell is a sale that is asked for until it stands, or given up.
func (s *story) sell(method tosssim.Method) *sale {
	x := s.order(method)
	for range 3 {
		if s.confirm(x).is() == "OK done" {
			return x
		}
	}
	return nil
}

func (s *story) confirm(x *sale) answer {
	s.Helper()
	got := s.post("/v1/payments/confirm", "", map[string]any{"paymentKey": x.key, "orderId": x.order, "amount": x.won})
	s.tell("confirm %s of %s: %s", x.key, x.order, got.is())
	return got
}

// again is a buyer or a shop that presses once more.
func (s *story) again() {
	if x := s.any(); x != nil {
		s.confirm(x)
	}
}

func (s *story) ourCancel() {
	if x := s.any(); x != nil {
		s.cancel(x, one(s, int64(0), 0, 300, 500), one(s, true, true, false))
	}
}

// cancel is a cancel of the merchant's own server; 0 is all that is left. A request that is not fresh is the last one
// sent again.
func (s *story) cancel(x *sale, won int64, fresh bool) answer {
	s.Helper()
	if fresh || s.cancels == 0 {
		s.cancels++
	}
	body := map[string]any{"reason": "반품"}
	if won > 0 {
		body["amount"] = won
	}
	if x.method == tosssim.VirtualAccount {
		body["refund_account"] = map[string]string{"bank": "20", "account_number": "1234567890", "holder_name": "홍길동"}
	}
	got := s.post("/v1/payments/"+x.key+"/cancel", fmt.Sprintf("cancel-%d", s.cancels), body)
	s.tell("our cancel %d of %s by %d won: %s", s.cancels, x.key, won, got.is())
	return got
}

func (s *story) dashboardCancel() { s.dashboard(s.any(), one(s, int64(0), 300, 500, 700)) }

// dashboard is a person who cancels at the gateway; 0 is all that is left. It is refused where there is nothing to cancel.
func (s *story) dashboard(x *sale, won int64) (transaction string) {
	s.Helper()
	if x == nil {
		return ""
	}
	transaction, err := s.gateway.CancelInDashboard(x.key, won, "고객 변심")
	if err != nil {
		s.tell("dashboard: %v", err)
		return ""
	}
	s.tell("dashboard cancel of %s by %d won: %s", x.key, won, transaction)
	return transaction
}

// twins is a cancel of ours whose answer is lost, and one of the same amount in the dashboard before anybody knows.
func (s *story) twins() {
	x := s.any(tosssim.Card, tosssim.Transfer)
	if x == nil {
		return
	}
	s.gateway.Fail(tosssim.Fault{
		Op: tosssim.Cancel, Kind: one(s, tosssim.LostReply, tosssim.DoThenStatus, tosssim.Reset), N: 2, PaymentKey: x.key,
	})
	s.cancel(x, 300, true)
	s.dashboard(x, 300)
}

// account is a deposit into a virtual account, if one waits.
func (s *story) account() {
	if x := s.accountThat("WAITING_FOR_DEPOSIT"); x != nil {
		s.tell("a deposit for %s: %v", x.key, s.gateway.Deposit(x.key))
	}
}

// fallBack takes a deposit back as a bank that finds an error does, be it days later. At times nobody is told, and at times
// somebody cancels before anybody knows.
func (s *story) fallBack() {
	x := s.accountThat("DONE")
	if x == nil {
		return
	}
	if s.rng.IntN(2) == 0 {
		unheard := s.plan
		unheard.Lose = 2
		s.gateway.SetDelivery(unheard)
	}
	s.must(s.gateway.RevertDeposit(x.key))
	s.gateway.SetDelivery(s.plan)
	x.fell = s.clock.Now()
	s.tell("the deposit of %s falls back", x.key)
	switch s.rng.IntN(6) {
	case 0:
		s.cancel(x, one(s, int64(0), 0, 300), true)
	case 1:
		s.gateway.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: one(s, tosssim.LostReply, tosssim.Reset), N: 2, PaymentKey: x.key})
		s.cancel(x, one(s, int64(0), 0, 300), true)
	case 2:
		s.dashboard(x, 0)
	}
}

// accountThat is a virtual account that stands so at the gateway.
func (s *story) accountThat(status string) *sale {
	var all []*sale
	for _, x := range s.sales {
		if !x.spoilt && x.method == tosssim.VirtualAccount && s.object(x.key).Status == status {
			all = append(all, x)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[s.rng.IntN(len(all))]
}

// anyNotice delivers any notice there ever was: early, again, out of order.
func (s *story) anyNotice() {
	notices := s.gateway.Notices()
	if len(notices) == 0 {
		return
	}
	n := notices[s.rng.IntN(len(notices))]
	status, _ := s.gateway.Deliver(n.ID)
	s.tell("notice %d about %s once more: %d", n.ID, n.PaymentKey, status)
}

// otherSystem is a till that shares the merchant id.
func (s *story) otherSystem() {
	s.foreign++
	key := s.gateway.Authenticate(tosssim.Checkout{OrderID: fmt.Sprintf("pos-%04d", s.foreign), Amount: 4_500})
	s.must(s.gateway.Approve(key))
	if s.rng.IntN(2) == 0 {
		_, err := s.gateway.CancelInDashboard(key, one(s, int64(0), 500), "")
		s.must(err)
	}
	s.tell("another system sells under %s", key)
}

func (s *story) spend() {
	x := s.any(tosssim.Card, tosssim.EasyPay)
	if x == nil || x.credits == 0 {
		return
	}
	s.use(x, x.credits/2)
}

func (s *story) use(x *sale, credits int64) {
	s.Helper()
	s.spends++
	got := s.post("/v1/customers/"+x.customer+"/credits/spend", fmt.Sprintf("spend-%d", s.spends), map[string]any{
		"spend_id": fmt.Sprintf("spend-%d", s.spends), "amount": credits,
	})
	if got.code < 300 && got.code > 0 {
		x.spent += credits
	}
	s.tell("%s spends %d credits: %s", x.customer, credits, got.is())
}

// finishAny ends one cancel that the gateway works on.
func (s *story) finishAny() {
	if open := s.underWay(); len(open) > 0 {
		s.finish(open[s.rng.IntN(len(open))])
	}
}

func (s *story) finishAll() {
	for _, key := range s.underWay() {
		s.finish(key)
	}
}

func (s *story) finish(transaction string) {
	done := s.rng.IntN(3) > 0
	s.must(s.gateway.FinishCancel(transaction, done))
	s.tell("the gateway ends cancel %s: done %v", transaction, done)
}

// underWay is the cancels that the gateway has not finished, oldest payment first.
func (s *story) underWay() []string {
	var keys []string
	for _, key := range s.gateway.Keys() {
		for _, c := range s.object(key).Cancels {
			if c.Status == "IN_PROGRESS" {
				keys = append(keys, c.Key)
			}
		}
	}
	return keys
}

// secondWindow is a buyer who opened the window twice for one order, and confirms with the second key too.
func (s *story) secondWindow() {
	if first := s.any(tosssim.Card); first != nil {
		s.confirm(s.window(first))
	}
}

// window is a second window for the order of a sale.
func (s *story) window(first *sale) *sale {
	x := &sale{order: first.order, won: first.won, method: tosssim.Card}
	x.key = s.gateway.Authenticate(tosssim.Checkout{OrderID: x.order, OrderName: "상품", Amount: x.won})
	s.sales = append(s.sales, x)
	s.tell("a second window for %s: %s", x.order, x.key)
	return x
}

// object is a payment as the gateway has it.
type object struct {
	Key      string `json:"paymentKey"`
	Order    string `json:"orderId"`
	Status   string `json:"status"`
	Total    int64  `json:"totalAmount"`
	Balance  int64  `json:"balanceAmount"`
	Approved string `json:"approvedAt"`
	Cancels  []struct {
		Key    string `json:"transactionKey"`
		Amount int64  `json:"cancelAmount"`
		Status string `json:"cancelStatus"`
	} `json:"cancels"`
}

func (s *story) object(key string) object {
	s.Helper()
	var o object
	raw, _ := s.gateway.Payment(key)
	s.must(json.Unmarshal(raw, &o))
	return o
}

// before is what happened before the books were opened: it belongs to the system before this one, whatever it says.
func (s *story) before() {
	for _, old := range []struct{ transaction, word, amount string }{
		{"old-capture", "DONE", "7000"},
		{"old-cancel", "PARTIAL_CANCELED", "600"},
		{"old-change", "PARTIAL_CANCELED", "500"},
		{"old-word", "PARTIAL_REVERSED", "400"},
		{"old-fraction", "PARTIAL_CANCELED", "300.5"},
	} {
		s.must(s.gateway.PutTransaction(s.row(old.transaction, "tsims20260101000000old01", "order-before", old.word, old.amount,
			s.opening.Add(-time.Second))))
	}
}

// row is a row of the list that the gateway never made.
func (s *story) row(transaction, payment, order, word, amount string, at time.Time) []byte {
	return fmt.Appendf(nil, `{"mId":%q,"transactionKey":%q,"paymentKey":%q,"orderId":%q,"method":"카드","customerKey":null,"useEscrow":false,`+
		`"receiptUrl":"","status":%q,"transactionAt":%q,"currency":"KRW","amount":%s}`,
		merchantID, transaction, payment, order, word, at.In(seoul()).Format("2006-01-02T15:04:05-07:00"), amount)
}
