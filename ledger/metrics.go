package ledger

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts what was recorded.
type Metrics struct {
	records *prometheus.CounterVec
}

// NewMetrics registers the ledger's metrics, every series at zero.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{records: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "daesa_ledger_records_total",
		Help: "Observations recorded, by channel and what they did to the books. A conflict opened a mismatch.",
	}, []string{"channel", "outcome"})}
	for _, c := range Channels() {
		for _, o := range Outcomes() {
			m.records.WithLabelValues(string(c), string(o))
		}
	}
	return m
}

func (m *Metrics) recorded(c Channel, o Outcome) {
	m.records.WithLabelValues(string(c), string(o)).Inc()
}
