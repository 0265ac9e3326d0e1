package webhook_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"daesa/internal/postgres/postgrestest"
	"daesa/pgclient/tosssim"
	"daesa/webhook"
)

// BenchmarkReceive answers notices that lead to nothing, without the router and the line around the handler: what one
// costs here (cpu-µs/op) and in PostgreSQL (postgres-µs/op).
func BenchmarkReceive(b *testing.B) {
	s := open(b, options{db: postgrestest.New(b)})
	key := s.paidBy(b, "order-0001", 50_000, tosssim.Card)
	paid := s.lastNotice(b)
	_, canceled := s.cancel(b, key, 0)
	s.send(b, canceled).want(b, 200, webhook.OutcomeAppliedFull)
	for _, bench := range []struct {
		name string
		body []byte
	}{
		{"duplicate", canceled},
		{"event", []byte(`{"eventType":"BILLING_DELETED","createdAt":"2026-03-11T12:05:10","data":{"billingKey":"key"}}`)},
		{"status", paid},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			ours, theirs := processor(b), s.postgresProcessor(b)
			for n := 0; b.Loop(); n++ {
				r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/webhooks/toss", bytes.NewReader(bench.body))
				r.Header.Set("Tosspayments-Webhook-Transmission-Id", strconv.Itoa(n))
				if err := s.handler.Receive(httptest.NewRecorder(), r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processor(b)-ours).Microseconds())/float64(b.N), "cpu-µs/op")
			b.ReportMetric(float64((s.postgresProcessor(b)-theirs).Microseconds())/float64(b.N), "postgres-µs/op")
		})
	}
}

// processor is what this process has used.
func processor(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// postgresProcessor is what the sessions of this database have used, to a hundredth of a second.
func (s *shop) postgresProcessor(tb testing.TB) time.Duration {
	tb.Helper()
	var sum time.Duration
	for _, pid := range text(tb, s.db, `SELECT pid::text FROM pg_stat_activity WHERE datname = current_database()`) {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", pid))
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(content), ") ")
		fields := strings.Fields(after)
		for _, field := range fields[11:13] {
			n, _ := strconv.ParseInt(field, 10, 64)
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}
