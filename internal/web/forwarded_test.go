package web

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestWatchForwarded counts what probably is a proxy that nobody has named, warns of each once, and of sixteen at most.
func TestWatchForwarded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		peers     []string
		forwarded []string
		counted   int
		warned    string
	}{
		{"a private peer", []string{"192.168.1.7:1", "192.168.1.7:2"}, []string{"198.51.100.1"}, 2, "192.168.1.7"},
		{"this machine", []string{"[::1]:1"}, []string{"198.51.100.1"}, 1, "::1"},
		{"a machine of the cloud", []string{"100.64.3.4:1"}, []string{"198.51.100.1"}, 1, "100.64.3.4"},
		{"a link", []string{"[fe80::1%eth0]:1"}, []string{"198.51.100.1"}, 1, "fe80::1"},
		{"an empty header", []string{"10.1.0.1:1"}, []string{""}, 1, "10.1.0.1"},
		{"a trusted proxy", []string{"10.0.0.1:1"}, []string{"198.51.100.1"}, 0, ""},
		{"no header", []string{"192.168.1.7:1"}, nil, 0, ""},
		{"a stranger", []string{"203.0.113.9:1", "[2001:db8::1]:1", "@"}, []string{"198.51.100.1"}, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			counted, log := watched(t, test.peers, test.forwarded)
			if warnings := strings.Count(log, "level=WARN"); counted != test.counted || warnings != min(1, test.counted) || !strings.Contains(log, test.warned) {
				t.Errorf("got %d counted and %d warnings of %q, want %d and one of %q", counted, warnings, log, test.counted, test.warned)
			}
			if strings.Contains(log, "198.51.100.1") {
				t.Errorf("what the header says is in the log: %s", log)
			}
		})
	}
	many := make([]string, 40)
	for n := range many {
		many[n] = fmt.Sprintf("192.168.1.%d:1", n)
	}
	if counted, log := watched(t, many, []string{"x"}); counted != len(many) || strings.Count(log, "level=WARN") != peersWarned {
		t.Errorf("got %d counted and %d warnings, want %d and %d", counted, strings.Count(log, "level=WARN"), len(many), peersWarned)
	}
}

// watched sends one request from each peer and returns how many were counted, and what was logged.
func watched(t *testing.T, peers, forwarded []string) (counted int, logged string) {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewPedanticRegistry(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	passed := 0
	handler := WatchForwarded(metrics, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, slog.New(slog.NewTextHandler(&log, nil)))(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ }))
	for _, peer := range peers {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		r.RemoteAddr = peer
		if forwarded != nil {
			r.Header["X-Forwarded-For"] = forwarded
		}
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	if passed != len(peers) {
		t.Errorf("%d of %d requests passed", passed, len(peers))
	}
	return int(testutil.ToFloat64(metrics.untrustedForwarded)), log.String()
}
