package seal

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics shows whether the journal is sealed.
type Metrics struct {
	headBroken, keyMissing, until prometheus.Gauge
	refusals                      prometheus.Counter
}

// NewMetrics registers the metrics, every series at zero.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	return &Metrics{
		headBroken: f.NewGauge(prometheus.GaugeOpts{
			Name: "daesa_seal_head_broken",
			Help: "1 when this instance refuses to seal: heads, database and witness contradict each other; see runbook HeadBroken.",
		}),
		keyMissing: f.NewGauge(prometheus.GaugeOpts{
			Name: "daesa_seal_key_missing",
			Help: "1 when no key to seal the journal with is set: nothing proves yet that its history was not changed; see runbook JournalUnsealed.",
		}),
		until: f.NewGauge(prometheus.GaugeOpts{
			Name: "daesa_seal_sealed_until_timestamp_seconds",
			Help: "End of the business day whose head is the newest; 0 means that this instance has seen none.",
		}),
		refusals: f.NewCounter(prometheus.CounterOpts{
			Name: "daesa_seal_cuts_refused_total",
			Help: "Cuts given up because the journal was being written to, or because the clocks of machine and database lie apart; the next tick tries again.",
		}),
	}
}

func (m *Metrics) configured(key bool) { m.keyMissing.Set(zeroOrOne(!key)) }

func (m *Metrics) broken(is bool) { m.headBroken.Set(zeroOrOne(is)) }

func (m *Metrics) sealedUntil(t time.Time) { m.until.Set(float64(t.Unix())) }

func (m *Metrics) refused() { m.refusals.Inc() }

func zeroOrOne(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
