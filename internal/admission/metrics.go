package admission

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are the figures of the gate and of every rate limit.
type Metrics struct {
	classes       map[Class]*classMetrics
	rules         map[string]*ruleMetrics
	sharedSeconds prometheus.Histogram
}

// classMetrics are the figures of one class.
type classMetrics struct {
	inFlight, ceiling prometheus.Gauge
	shed, wouldShed   prometheus.Counter
	wait              prometheus.Observer
}

// ruleMetrics are the figures of one rule.
type ruleMetrics struct {
	refused, wouldRefuse, unasked prometheus.Counter
	fallbacks                     map[Fallback]prometheus.Counter
	tracked                       prometheus.Gauge
}

// NewMetrics registers the figures on reg, with a series for each class and for each rule of those named.
func NewMetrics(reg prometheus.Registerer, rules ...string) *Metrics {
	factory := promauto.With(reg)
	m := &Metrics{
		classes: gateMetrics(factory), rules: make(map[string]*ruleMetrics, len(rules)),
		sharedSeconds: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "daesa_admission_rate_shared_seconds",
			Help: "Time of a question to the database whether a source may send, where it was answered, the wait for a " +
				"connection included. A notice and a confirm wait for it.",
			Buckets: []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .2},
		}),
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: "daesa_admission_rate_" + name, Help: help}, labels)
	}
	refused := counters("refused_total", "Requests refused because their source sends too fast, by rule. A refused notice "+
		"is applied late, with its redelivery: if the gateway is refused, raise the limit.", "rule")
	wouldRefuse := counters("would_refuse_total", "Requests that were let pass in record-only mode and would have been "+
		"refused, by rule.", "rule")
	unasked := counters("unasked_total", "Requests over their limit that were recognized without asking the database, by "+
		"rule. They are among those refused: what keeps a flood from being a flood of statements.", "rule")
	fallbacks := counters("fallbacks_total", "Requests counted against this instance's share of the rule alone, because the "+
		"database did not answer, by reason: see runbook RateLimitAlone.", "rule", "reason")
	tracked := factory.NewGaugeVec(prometheus.GaugeOpts{
		Name: "daesa_admission_rate_tracked_sources",
		Help: "Sources remembered here, by rule. Near its bound, many strangers are sending.",
	}, []string{"rule"})
	for _, rule := range rules {
		r := &ruleMetrics{
			refused: refused.WithLabelValues(rule), wouldRefuse: wouldRefuse.WithLabelValues(rule),
			unasked: unasked.WithLabelValues(rule), tracked: tracked.WithLabelValues(rule),
			fallbacks: make(map[Fallback]prometheus.Counter),
		}
		for _, reason := range Fallbacks() {
			r.fallbacks[reason] = fallbacks.WithLabelValues(rule, string(reason))
		}
		m.rules[rule] = r
	}
	return m
}

func gateMetrics(factory promauto.Factory) map[Class]*classMetrics {
	gauges := func(name, help string) *prometheus.GaugeVec {
		return factory.NewGaugeVec(prometheus.GaugeOpts{Name: "daesa_admission_gate_" + name, Help: help}, []string{"class"})
	}
	counters := func(name, help string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: "daesa_admission_gate_" + name, Help: help}, []string{"class"})
	}
	inFlight := gauges("in_flight_requests", "Admitted requests that are not answered yet, by class.")
	ceiling := gauges("ceiling_requests", "The most requests of a class that may be in flight.")
	shed := counters("shed_total", "Requests refused because no slot was free, by class. Reading is meant to be shed first: "+
		"money being shed means that the service is too small for its load.")
	wouldShed := counters("would_shed_total", "Requests that were let pass in record-only mode and would have been shed, by class.")
	wait := factory.NewHistogramVec(prometheus.HistogramOpts{
		Name: "daesa_admission_gate_wait_seconds",
		Help: "Time from a request's headers to its slot, by class. The gate has no queue, so what is seen here is a machine " +
			"that has more to do than it can: see runbook MoneyShed.",
		Buckets: []float64{.0001, .0005, .001, .005, .025, .1, .5, 1, 2.5},
	}, []string{"class"})
	classes := make(map[Class]*classMetrics, len(Classes()))
	for _, class := range Classes() {
		name := string(class)
		classes[class] = &classMetrics{
			inFlight: inFlight.WithLabelValues(name), ceiling: ceiling.WithLabelValues(name),
			shed: shed.WithLabelValues(name), wouldShed: wouldShed.WithLabelValues(name), wait: wait.WithLabelValues(name),
		}
	}
	return classes
}
