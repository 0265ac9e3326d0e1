package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	SecurityHeaders(PolicyAPI)(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "Content-Security-Policy": PolicyAPI, "Referrer-Policy": "no-referrer",
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}
}

func TestCORS(t *testing.T) {
	t.Parallel()
	const shop = "https://shop.example"
	a, _ := newAdapter(t)
	cors, err := NewCORS(CORSConfig{Adapter: a, Origins: []string{shop}})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, method, origin string
		status               int
		allowed              string
	}{
		{"listed", "POST", shop, 200, shop},
		{"preflight", "OPTIONS", shop, 204, shop},
		{"no browser", "POST", "", 200, ""},
		{"own host", "POST", "https://example.com", 200, ""},
		{"foreign", "POST", "https://evil.example", 403, ""},
		{"foreign preflight", "OPTIONS", "https://evil.example", 403, ""},
		{"listed as a prefix", "POST", shop + ".evil.example", 403, ""},
		{"other scheme", "POST", "http://shop.example", 403, ""},
		{"null", "POST", "null", 403, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), tt.method, "https://example.com/v1/payments/confirm", nil)
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			w := httptest.NewRecorder()
			cors(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
			if w.Code != tt.status {
				t.Errorf("got status %d, want %d", w.Code, tt.status)
			}
			if got := w.Header().Get("Access-Control-Allow-Origin"); got != tt.allowed {
				t.Errorf("got allowed origin %q, want %q", got, tt.allowed)
			}
			if got := w.Header().Get("Vary"); got != "Origin" {
				t.Errorf("got Vary %q, want Origin", got)
			}
		})
	}
}

func TestNewCORS_RefusesPatterns(t *testing.T) {
	t.Parallel()
	a, _ := newAdapter(t)
	for _, origin := range []string{"*", "shop.example", "https://shop.example/", "https://", "null"} {
		if _, err := NewCORS(CORSConfig{Adapter: a, Origins: []string{origin}}); err == nil {
			t.Errorf("got no error for %q", origin)
		}
	}
}

func TestBearer(t *testing.T) {
	t.Parallel()
	a, _ := newAdapter(t)
	var keys Keys
	for name, secret := range map[string]string{"shop": "shop-secret-0123456789", "erp": "erp-secret-0123456789"} {
		key, err := NewKey(name, secret)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	scopes := map[string][]string{"shop": {"sell", "look"}, "erp": {"look"}}
	tests := []struct {
		name, header string
		keys         Keys
		scope        string
		actor        string
		status       int
	}{
		{"first key", "Bearer shop-secret-0123456789", keys, "sell", "shop", 200},
		{"second key, scheme in lower case", "bearer erp-secret-0123456789", keys, "look", "erp", 200},
		{"for something else", "Bearer erp-secret-0123456789", keys, "sell", "", 403},
		{"for a part of a scope's name", "Bearer shop-secret-0123456789", keys, "sel", "", 403},
		{"none", "", keys, "look", "", 401},
		{"unknown", "Bearer no-secret-0123456789", keys, "look", "", 401},
		{"a prefix", "Bearer shop-secret-012345678", keys, "look", "", 401},
		{"other scheme", "Basic shop-secret-0123456789", keys, "look", "", 401},
		{"no keys at all", "Bearer ", nil, "look", "", 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bearer, err := NewBearer(BearerConfig{Adapter: a, Recognize: func(_ context.Context, token string) (Caller, error) {
				name, found := tt.keys.Find(token)
				if !found {
					return Caller{}, ErrUnauthorized
				}
				return Caller{Name: name, May: func(scope string) bool { return slices.Contains(scopes[name], scope) }}, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			actor := ""
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
			r.Header.Set("Authorization", tt.header)
			w := httptest.NewRecorder()
			bearer(tt.scope)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { actor = Actor(r.Context()) })).ServeHTTP(w, r)
			if actor != tt.actor {
				t.Errorf("got actor %q, want %q", actor, tt.actor)
			}
			if w.Code != tt.status || (w.Code != 200) != (w.Header().Get("WWW-Authenticate") != "") {
				t.Errorf("got status %d %v, want %d", w.Code, w.Header(), tt.status)
			}
		})
	}
}

func TestNewKey_RefusesWhatCouldBeGuessed(t *testing.T) {
	t.Parallel()
	if _, err := NewKey("", strings.Repeat("x", 32)); err == nil {
		t.Error("got no error for a key without a name")
	}
	if _, err := NewKey("shop", "short"); err == nil || strings.Contains(err.Error(), `"short"`) {
		t.Errorf("got %v, want an error without the secret", err)
	}
}

func TestClientIP(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	tests := []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"direct", "203.0.113.9:1", nil, "203.0.113.9"},
		{"direct with an invented header", "203.0.113.9:1", []string{"198.51.100.1"}, "203.0.113.9"},
		{"one proxy", "10.0.0.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"invented to the left", "10.0.0.1:1", []string{"1.1.1.1, 198.51.100.1"}, "198.51.100.1"},
		{"two proxies", "10.0.0.1:1", []string{"1.1.1.1, 198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
		{"two headers", "10.0.0.1:1", []string{"1.1.1.1", "198.51.100.1 , 10.0.0.2"}, "198.51.100.1"},
		{"with ports", "10.0.0.1:1", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		{"proxy without header", "10.0.0.1:1", nil, "10.0.0.1"},
		{"all trusted", "10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"garbage", "10.0.0.1:1", []string{"198.51.100.1, <script>, 10.0.0.2"}, "10.0.0.2"},
		{"empty", "10.0.0.1:1", []string{""}, "10.0.0.1"},
		{"IPv6 proxy", "[fd00::1]:1", []string{"2001:db8::1"}, "2001:db8::1"},
		{"mapped peer", "[::ffff:10.0.0.1]:1", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"zone", "[fe80::1%eth0]:1", nil, "fe80::1"},
		{"no peer", "@", []string{"198.51.100.1"}, "invalid IP"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := &http.Request{RemoteAddr: tt.peer, Header: http.Header{"X-Forwarded-For": tt.forwarded}}
			if got := ClientIP(r, trusted).String(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestRateKey(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"203.0.113.9": "203.0.113.9", "::ffff:203.0.113.9": "203.0.113.9",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := RateKey(netip.MustParseAddr(addr)); got != want {
			t.Errorf("got %s for %s, want %s", got, addr, want)
		}
	}
	if got := RateKey(netip.Addr{}); got != "invalid IP" {
		t.Errorf("got %s for no address", got)
	}
}
