package checkout

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"daesa/ledger"
)

func (s *shop) balance(customer string) string {
	s.t.Helper()
	account := s.call("GET", "/v1/customers/"+customer+"/credits", nil)
	return fmt.Sprint(account.body["balance"])
}

func TestCredits_GrantedSpentRevoked(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	s.call("GET", "/v1/customers/kim/credits", nil).wants(t, http.StatusNotFound, "not_found")
	_, key := s.paid(10000, "customer_id", "kim", "credits", 10)
	spend := map[string]any{"amount": 8}
	for range 2 {
		s.call("POST", "/v1/customers/kim/credits/spend", spend, keyHeader, "s1").wants(t, http.StatusOK, "")
	}
	if got := s.balance("kim"); got != "2" {
		t.Errorf("got balance %s, want 2", got)
	}
	s.call("POST", "/v1/customers/kim/credits/spend", map[string]any{"amount": 9}, keyHeader, "s1").wants(t, 422, "idempotency_key_reused")
	s.call("POST", "/v1/customers/kim/credits/spend", map[string]any{"amount": 3}, keyHeader, "s2").wants(t, 409, "credits_short")
	s.call("POST", "/v1/customers/kim/credits/spend", map[string]any{"amount": 1, "spend_id": "mine"}, keyHeader, "s3").wants(t, 200, "")
	s.call("POST", "/v1/customers/kim/credits/spend", map[string]any{"amount": 2, "spend_id": "mine"}, keyHeader, "s5").wants(t, 422, "spend_differs")
	s.call("POST", "/v1/customers/kim/credits/spend", map[string]any{"amount": 1.5}, keyHeader, "s4").wants(t, 400, "malformed")
	s.cancel(key, "c1", whole()).wants(t, http.StatusOK, "done")
	if got := s.balance("kim"); got != "-9" {
		t.Errorf("got balance %s, want -9: what was spent is owed", got)
	}
}

func TestCredits_RacingSpendsNeverOverdraw(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	s.paid(10000, "customer_id", "lee", "credits", 10)
	var all sync.WaitGroup
	answers := make(chan int, 8)
	for i := range cap(answers) {
		all.Go(func() {
			answer, err := s.try(t.Context(), "POST", "/v1/customers/lee/credits/spend", map[string]any{"amount": 3}, keyHeader, fmt.Sprint("s", i))
			if err == nil {
				answers <- answer.status
			}
		})
	}
	all.Wait()
	close(answers)
	counts := map[int]int{}
	for status := range answers {
		counts[status]++
	}
	if counts[http.StatusOK] != 3 || counts[http.StatusConflict] != 5 || s.balance("lee") != "1" {
		t.Errorf("got %v and balance %s, want 3 spends, 5 refusals, balance 1", counts, s.balance("lee"))
	}
}

// TestCredits_KeysBelongToTheirCallers: callers that count their keys alike do not lose each other's spends.
func TestCredits_KeysBelongToTheirCallers(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	s.paid(10000, "customer_id", "kim", "credits", 1000)
	s.paid(10000, "customer_id", "lee", "credits", 1000)
	spend := map[string]any{"amount": 100}
	for range 2 {
		s.call("POST", "/v1/customers/kim/credits/spend", spend, keyHeader, "key-1").wants(t, http.StatusOK, "")
		s.call("POST", "/v1/customers/kim/credits/spend", spend, keyHeader, "key-1", "Authorization", "Bearer second-secret-00001").wants(t, http.StatusOK, "")
		s.call("POST", "/v1/customers/lee/credits/spend", spend, keyHeader, "key-1").wants(t, http.StatusOK, "")
	}
	if kim, lee := s.balance("kim"), s.balance("lee"); kim != "800" || lee != "900" {
		t.Errorf("got balances %s and %s, want 800 and 900", kim, lee)
	}
}

// TestCredits_TheMostOfOrdersIsBooked: no order's credits keep another's payment out of the books.
func TestCredits_TheMostOfOrdersIsBooked(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	most := int64(9_000_000_000_000_000_000)
	body := map[string]any{"order_id": "order-most", "amount": 1000, "customer_id": "kim", "credits": most}
	s.call("POST", "/v1/orders", body, keyHeader, "k").wants(t, http.StatusBadRequest, "invalid_request")
	for range 2 {
		_, key := s.paid(ledger.OrderMax, "customer_id", "kim", "credits", int64(ledger.OrderMax))
		s.wantBooks(key, ledger.StatusDone, ledger.OrderPaid)
	}
	if got, want := s.balance("kim"), fmt.Sprint(2*int64(ledger.OrderMax)); got != want {
		t.Errorf("got balance %s, want %s", got, want)
	}
	s.call("POST", "/v1/customers/kim/credits/spend", map[string]any{"amount": most}, keyHeader, "s").wants(t, http.StatusBadRequest, "invalid_request")
}
