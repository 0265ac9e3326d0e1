package admission

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/postgres/postgrestest"
	"daesa/internal/web"
)

func TestMain(m *testing.M) { postgrestest.Run(m) }

// newAdapter returns an adapter that knows the refusals of this package.
func newAdapter(tb testing.TB) *web.Adapter {
	tb.Helper()
	table, err := web.NewProblems([]web.ProblemRow{
		{Err: ErrRateLimited, Status: 429, Code: "rate_limited", Title: "Too many requests"},
		{Err: ErrShed, Status: 503, Code: "overloaded", Title: "Overloaded"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	adapter, err := web.New(web.Config{Problems: table, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	return adapter
}

func newMetrics() *Metrics {
	return NewMetrics(prometheus.NewPedanticRegistry(), "webhook", "webhook_gateway")
}
