package pgclient

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/guard"
)

// loads exports the shares of every path as they are when they are asked for.
type loads struct {
	describe *prometheus.Desc

	mu     sync.Mutex
	byPath map[PathName]*guard.Load
}

func newLoads() *loads {
	return &loads{
		describe: prometheus.NewDesc("daesa_pgclient_cap_refused_ratio",
			"Part of the last minute's calls that found no slot: measured, and as 1 − cap ÷ (rate × time held) predicts. Where they part, calls arrive in bursts.",
			[]string{"path", "source"}, nil),
		byPath: make(map[PathName]*guard.Load),
	}
}

// watch begins to export the load of a path, in place of an earlier one.
func (l *loads) watch(path PathName, of *guard.Load) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byPath[path] = of
}

// Describe implements [prometheus.Collector].
func (l *loads) Describe(to chan<- *prometheus.Desc) { to <- l.describe }

// Collect implements [prometheus.Collector].
func (l *loads) Collect(to chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, path := range PathNames() {
		predicted, measured := 0.0, 0.0
		if of := l.byPath[path]; of != nil {
			predicted, measured = of.Shares()
		}
		for source, value := range map[string]float64{"predicted": predicted, "measured": measured} {
			to <- prometheus.MustNewConstMetric(l.describe, prometheus.GaugeValue, value, string(path), source) //nolint:promlinter // it cannot read a description that is made once
		}
	}
}
