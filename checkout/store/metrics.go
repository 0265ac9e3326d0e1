package store

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"daesa/internal/guard"
)

// Path names one kind of call to the store.
type Path string

// The paths.
const (
	PathAsk     Path = "ask"
	PathRelease Path = "release"
)

// Paths lists every path.
func Paths() []Path { return []Path{PathAsk, PathRelease} }

// result is what one call came to.
type result string

const (
	resultAccepted    result = "accepted"
	resultDeclined    result = "declined"
	resultReleased    result = "released"
	resultTimeout     result = "timeout"
	resultConnection  result = "connection"
	resultServerError result = "server_error"
	resultRateLimited result = "rate_limited"
	resultRefused     result = "refused" // our address, secret or request
	resultUnreadable  result = "unreadable"
	resultCanceled    result = "canceled" // the caller went away
)

func results() []result {
	return []result{
		resultAccepted, resultDeclined, resultReleased, resultTimeout, resultConnection, resultServerError,
		resultRateLimited, resultRefused, resultUnreadable, resultCanceled,
	}
}

// word is what a result means for a question.
func (r result) word() Word {
	switch r {
	case resultAccepted:
		return Accepted
	case resultDeclined:
		return Declined
	case resultTimeout, resultCanceled:
		return Late
	case resultReleased, resultConnection, resultServerError, resultRateLimited, resultRefused, resultUnreadable:
	}
	return Unreachable
}

// Metrics is what the client counts. Every series exists from the start.
type Metrics struct {
	callSeconds  *prometheus.HistogramVec
	queueSeconds prometheus.Histogram
	wholeSeconds prometheus.Histogram
	inFlight     *prometheus.GaugeVec
	caps         *prometheus.GaugeVec
	refusals     *prometheus.CounterVec
	answers      *prometheus.CounterVec
	breaker      prometheus.Gauge
	shares       *guard.Shares
}

// NewMetrics registers the metrics and creates every series at zero.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	factory := promauto.With(reg)
	m := &Metrics{
		callSeconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "daesa_store_call_seconds",
			Help:    "Time of one call at the store, connection to last byte, without waiting for a slot.",
			Buckets: []float64{.01, .025, .05, .075, .1, .2, .4, .8, 1.6, 5},
		}, []string{"path"}),
		queueSeconds: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "daesa_store_queue_wait_seconds",
			Help:    "Time a question waited for a slot before it was sent or refused. Waiting that grows while calls stay fast means more orders than the store bears.",
			Buckets: []float64{.001, .005, .015, .03, .05, .1, .2, .4, .6, .8, 1.6},
		}),
		wholeSeconds: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "daesa_store_question_seconds",
			Help:    "Time of one question as the buyer waits for it: for a slot, for our books and for the store's word, or until it was refused.",
			Buckets: []float64{.025, .05, .1, .2, .4, .6, .8, 1, 1.6},
		}),
		inFlight: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "daesa_store_in_flight_calls", Help: "Calls at the store now.",
		}, []string{"path"}),
		caps: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "daesa_store_cap_calls", Help: "Slots this instance has; 0 without a store.",
		}, []string{"path"}),
		refusals: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_store_refusals_total", Help: "Questions our own guard did not send: no slot in time, breaker open, the caller gone.",
		}, []string{"path", "reason"}),
		answers: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_store_answers_total", Help: "Calls by what came of them.",
		}, []string{"path", "result"}),
		breaker: factory.NewGauge(prometheus.GaugeOpts{
			Name: "daesa_store_breaker_state", Help: "0 closed, 1 half open, 2 open: the store is not asked.",
		}),
		shares: guard.NewShares(
			"daesa_store_cap_refused_ratio",
			"Part of the last minute's questions that found no slot in time: measured, and as 1 − cap ÷ (rate × time held) predicts.",
		),
	}
	reg.MustRegister(m.shares)
	for _, path := range Paths() {
		p := string(path)
		m.callSeconds.WithLabelValues(p)
		m.inFlight.WithLabelValues(p)
		m.caps.WithLabelValues(p)
		for _, refusal := range guard.Refusals() {
			m.refusals.WithLabelValues(p, string(refusal))
		}
		for _, r := range results() {
			m.answers.WithLabelValues(p, string(r))
		}
	}
	return m
}

// may says how many calls may be at the store at once.
func (m *Metrics) may(path Path, calls int) { m.caps.WithLabelValues(string(path)).Set(float64(calls)) }

func (m *Metrics) waited(d time.Duration) { m.queueSeconds.Observe(d.Seconds()) }

// ended counts a question that began at that time.
func (m *Metrics) ended(began time.Time) { m.wholeSeconds.Observe(time.Since(began).Seconds()) }

func (m *Metrics) answered(path Path, r result, took time.Duration) {
	m.callSeconds.WithLabelValues(string(path)).Observe(took.Seconds())
	m.answers.WithLabelValues(string(path), string(r)).Inc()
}

func (m *Metrics) refused(path Path, refusal guard.Refusal) {
	m.refusals.WithLabelValues(string(path), string(refusal)).Inc()
}

func (m *Metrics) breakerState(state guard.State) { m.breaker.Set(state.Level()) }
