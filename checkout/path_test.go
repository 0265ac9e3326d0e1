package checkout

import (
	"net/http"
	"strings"
	"testing"
)

// TestPath_EscapedIDsAreFound: a caller may escape more of an id than it needs to.
func TestPath_EscapedIDsAreFound(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	s.paid(10000, "customer_id", "kim@example.com/서울 50%25", "credits", 100)
	for _, customer := range []string{
		"kim@example.com%2F%EC%84%9C%EC%9A%B8%2050%2525", "kim%40example%2Ecom%2F%EC%84%9C%EC%9A%B8%2050%2525",
	} {
		s.call("GET", "/v1/customers/"+customer+"/credits", nil).wants(t, http.StatusOK, "")
		spend := map[string]any{"amount": 10}
		s.call("POST", "/v1/customers/"+customer+"/credits/spend", spend, keyHeader, "same").wants(t, http.StatusOK, "")
	}
	if got := s.balance("kim@example.com%2F%EC%84%9C%EC%9A%B8%2050%2525"); got != "90" {
		t.Errorf("got balance %s, want 90: both ways name one customer and one spend", got)
	}
	order, key := s.paid(10000)
	s.call("GET", "/v1/orders/"+strings.Replace(order, "-", "%2D", 1), nil).wants(t, http.StatusOK, "paid")
	s.call("GET", "/v1/payments/%"+hexOf(key[0])+key[1:], nil).wants(t, http.StatusOK, "done")
}

func hexOf(c byte) string {
	const digits = "0123456789ABCDEF"
	return string([]byte{digits[c>>4], digits[c&15]})
}

// TestPath_WhatNoRowHoldsIsTheCallersMistake: bytes that the database refuses are refused before it is asked.
func TestPath_WhatNoRowHoldsIsTheCallersMistake(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	for _, id := range []string{"%00abcdef", "%ffabcdef", "%C3%28", strings.Repeat("a", 256)} {
		for _, path := range []string{"/v1/orders/", "/v1/cancels/", "/v1/payments/"} {
			if answer := s.call("GET", path+id, nil); answer.status != http.StatusBadRequest {
				t.Errorf("GET %s%s: got %d %v, want 400", path, id, answer.status, answer.body)
			}
		}
		s.call("GET", "/v1/customers/"+id+"/credits", nil).wants(t, http.StatusBadRequest, "invalid_request")
		s.call("POST", "/v1/events/"+id+"/resend", nil).wants(t, http.StatusBadRequest, "invalid_request")
		s.call("POST", "/v1/customers/"+id+"/credits/spend", map[string]any{"amount": 1}, keyHeader, "k").wants(t, http.StatusBadRequest, "invalid_request")
		s.cancel(id, "k", whole()).wants(t, http.StatusBadRequest, "invalid_request")
	}
}
