package admission

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// BenchmarkGate lets a request in and out, as the middleware does.
func BenchmarkGate(b *testing.B) {
	gate := newGate(b, GateConfig{Enforce: true})
	handler := gate.Middleware(ClassNotification)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	request := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/webhooks/toss", http.NoBody)
	answer := httptest.NewRecorder()
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			handler.ServeHTTP(answer, request)
		}
	})
	b.Run("at_once", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				handler.ServeHTTP(answer, request)
			}
		})
	})
}

// BenchmarkRateLimit_Alone is an instance that counts by itself: for one source, and for a flood from ever new ones.
func BenchmarkRateLimit_Alone(b *testing.B) {
	for name, sources := range map[string]int{"one_source": 1, "new_sources": 1 << 16} {
		b.Run(name, func(b *testing.B) {
			limit := newRateLimit(b, RateConfig{Rules: webhook(perMinuteMost, perMinuteMost), Enforce: true})
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if wait, ok := limit.Allow(b.Context(), addr(n%sources)); !ok {
					b.Fatal(wait)
				}
			}
		})
	}
}

// BenchmarkRateLimit_Refused is what a flood costs that the database need not be asked about.
func BenchmarkRateLimit_Refused(b *testing.B) {
	shared := newTally()
	limit := newRateLimit(b, RateConfig{
		Rules: webhook(1, 1), Shared: shared, Enforce: true, Now: func() time.Time { return time.Unix(1_750_000_000, 0) },
	})
	limit.Allow(b.Context(), addr(1))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := limit.Allow(b.Context(), addr(1)); ok {
			b.Fatal("let through")
		}
	}
}
