package checkout

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
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
	s.call("POST", "/v1/customers/kim/credits/spend", map[string]any{"amount": 1, "spend_id": "s1"}, keyHeader, "s3").wants(t, 422, "spend_differs")
	s.call("POST", "/v1/customers/kim/credits/spend", map[string]any{"amount": 1.5}, keyHeader, "s4").wants(t, 400, "malformed")
	s.cancel(key, "c1", whole()).wants(t, http.StatusOK, "done")
	if got := s.balance("kim"); got != "-8" {
		t.Errorf("got balance %s, want -8: what was spent is owed", got)
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
