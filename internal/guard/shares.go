package guard

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Shares exports the shares of refused calls, predicted and measured, as they are when they are asked for. All series exist
// from the start, at zero while nothing is watched.
type Shares struct {
	describe *prometheus.Desc
	paths    []string // values of the label; one without a name where there is no label

	mu    sync.Mutex
	loads map[string]*Load
}

// NewShares makes a metric for the loads of paths, told apart by the label path. Without paths it is for one load, watched as
// "", and has no such label.
func NewShares(name, help string, paths ...string) *Shares {
	labels := []string{"path", "source"}
	if len(paths) == 0 {
		paths, labels = []string{""}, labels[1:]
	}
	return &Shares{describe: prometheus.NewDesc(name, help, labels, nil), paths: paths, loads: make(map[string]*Load)}
}

// Watch begins to export the load of a path, in place of an earlier one.
func (s *Shares) Watch(path string, of *Load) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads[path] = of
}

// Describe implements [prometheus.Collector].
func (s *Shares) Describe(to chan<- *prometheus.Desc) { to <- s.describe }

// Collect implements [prometheus.Collector].
func (s *Shares) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range s.paths {
		predicted, measured := 0.0, 0.0
		if of := s.loads[path]; of != nil {
			predicted, measured = of.Shares()
		}
		for source, value := range map[string]float64{"predicted": predicted, "measured": measured} {
			labels := []string{path, source}
			if path == "" {
				labels = labels[1:]
			}
			to <- prometheus.MustNewConstMetric(s.describe, prometheus.GaugeValue, value, labels...) //nolint:promlinter // it cannot read a description that is made once
		}
	}
}
