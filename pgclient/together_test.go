package pgclient

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/admission"
	"daesa/internal/guard"
	"daesa/internal/web"
)

// guarded is what stands around one call of a lane, without the call: its slot, the breaker's permission, both limits,
// and what is counted.
func guarded(b *testing.B, l *lane) {
	b.Helper()
	permit, unsent := l.reserve(b.Context(), nil)
	if unsent != nil {
		b.Fatal(unsent)
	}
	defer permit.Release()
	ctx, stop := context.WithTimeout(b.Context(), l.limits.call())
	defer stop()
	permission, err := permit.permission()
	if err != nil {
		b.Fatal(err)
	}
	_, end := context.WithTimeout(ctx, l.limits.Attempt)
	defer end()
	permission.Done(guard.Succeeded)
	l.metrics.answered(l.name, time.Millisecond, nil)
}

// BenchmarkGuardWithAdmission is what the guard costs one call, and admission the request that makes it.
func BenchmarkGuardWithAdmission(b *testing.B) {
	client := mustNew(b, testConfig(tripper(nil)))
	table, err := web.NewProblems(nil)
	if err != nil {
		b.Fatal(err)
	}
	adapter, err := web.New(web.Config{Problems: table, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	metrics := admission.NewMetrics(prometheus.NewPedanticRegistry(), "confirm")
	gate, err := admission.NewGate(admission.GateConfig{Adapter: adapter, Metrics: metrics, Enforce: true})
	if err != nil {
		b.Fatal(err)
	}
	limit, err := admission.NewRateLimit(admission.RateConfig{
		Adapter: adapter, Metrics: metrics, Rules: []admission.Rule{{Name: "confirm", PerMinute: 6_000_000, Burst: 6_000_000}},
	})
	if err != nil {
		b.Fatal(err)
	}
	from := netip.MustParseAddr("203.0.113.9")
	b.ReportAllocs()
	for b.Loop() {
		done, ok := gate.Admit(admission.ClassMoney)
		if !ok {
			b.Fatal("shed")
		}
		if _, ok := limit.Allow(b.Context(), from); !ok {
			b.Fatal("refused")
		}
		guarded(b, client.confirm)
		done()
	}
}
