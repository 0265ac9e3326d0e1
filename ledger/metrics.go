package ledger

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts what was recorded.
type Metrics struct {
	records   *prometheus.CounterVec
	cancelLag prometheus.Histogram
}

// NewMetrics registers the ledger's metrics, every series at zero.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		records: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_ledger_records_total",
			Help: "Observations recorded, by channel and what they did to the books. A conflict opened a mismatch.",
		}, []string{"channel", "outcome"}),
		// From the second of a notice, over the 15 minutes that are promised, to the 3 days 19 hours of its redelivery.
		cancelLag: promauto.With(reg).NewHistogram(prometheus.HistogramOpts{
			Name:    "daesa_ledger_cancel_lag_seconds",
			Help:    "From the gateway's time of a cancel until it was in the books, without those that are imported.",
			Buckets: []float64{1, 5, 15, 60, 300, 900, 3600, 14400, 86400, 331200},
		}),
	}
	for _, c := range Channels() {
		for _, o := range Outcomes() {
			m.records.WithLabelValues(string(c), string(o))
		}
	}
	return m
}

func (m *Metrics) recorded(c Channel, r Recorded) {
	m.records.WithLabelValues(string(c), string(r.Outcome)).Inc()
	if c == ChannelImport {
		return
	}
	for _, cancel := range r.Applied {
		m.cancelLag.Observe(max(0, cancel.RecordedAt.Sub(cancel.CanceledAt).Seconds()))
	}
}
