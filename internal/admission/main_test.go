package admission

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"daesa/internal/web"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// newAdapter returns an adapter that knows the refusals of this package.
func newAdapter(t *testing.T) *web.Adapter {
	t.Helper()
	table, err := web.NewProblems([]web.ProblemRow{
		{Err: ErrRateLimited, Status: 429, Code: "rate_limited", Title: "Too many requests"},
		{Err: ErrShed, Status: 503, Code: "overloaded", Title: "Overloaded"},
	})
	if err != nil {
		t.Fatal(err)
	}
	adapter, err := web.New(web.Config{Problems: table, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return adapter
}

func newMetrics() *Metrics {
	return NewMetrics(prometheus.NewPedanticRegistry(), "webhook", "other")
}
