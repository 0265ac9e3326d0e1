package admission

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are the figures of the gate and of every rate limit.
type Metrics struct {
	inFlight    *prometheus.GaugeVec
	ceiling     *prometheus.GaugeVec
	shed        *prometheus.CounterVec
	rateRefused *prometheus.CounterVec
	rateSources *prometheus.GaugeVec

	rules map[string]struct{}
}

// NewMetrics registers the figures on reg, with a series for each class and for each rule of those named.
func NewMetrics(reg prometheus.Registerer, rules ...string) *Metrics {
	factory := promauto.With(reg)
	m := &Metrics{
		inFlight: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "daesa_admission_gate_in_flight_requests",
			Help: "Admitted requests that are not answered yet, by class.",
		}, []string{"class"}),
		ceiling: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "daesa_admission_gate_ceiling_requests",
			Help: "The most requests of a class that may be in flight.",
		}, []string{"class"}),
		shed: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_admission_gate_shed_total",
			Help: "Requests refused because no slot was free, by class; in record-only mode those that would have been. " +
				"Reading is meant to be shed first: money being shed means that the service is too small for its load.",
		}, []string{"class"}),
		rateRefused: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_admission_rate_refused_total",
			Help: "Requests refused because their source sends too fast, by rule. A refused notice is applied late, with " +
				"its redelivery: if the gateway is refused, raise the limit.",
		}, []string{"rule"}),
		rateSources: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "daesa_admission_rate_tracked_sources",
			Help: "Sources whose buckets are remembered, by rule. Near its bound, many strangers are sending.",
		}, []string{"rule"}),
		rules: make(map[string]struct{}, len(rules)),
	}
	for _, class := range Classes() {
		m.inFlight.WithLabelValues(string(class))
		m.ceiling.WithLabelValues(string(class))
		m.shed.WithLabelValues(string(class))
	}
	for _, rule := range rules {
		m.rules[rule] = struct{}{}
		m.rateRefused.WithLabelValues(rule)
		m.rateSources.WithLabelValues(rule)
	}
	return m
}

func (m *Metrics) hasRule(name string) bool {
	_, ok := m.rules[name]
	return ok
}
