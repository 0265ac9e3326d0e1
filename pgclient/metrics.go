package pgclient

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"daesa/internal/guard"
)

// resultOK is the result label of a call that gave what was asked for.
const resultOK = "ok"

// Metrics is what the gateway client counts. Every series exists from the start.
type Metrics struct {
	callSeconds  *prometheus.HistogramVec
	slotSeconds  *prometheus.HistogramVec
	queueSeconds *prometheus.HistogramVec
	inFlight     *prometheus.GaugeVec
	caps         *prometheus.GaugeVec
	refusals     *prometheus.CounterVec
	answers      *prometheus.CounterVec
	breakers     *prometheus.GaugeVec
	keyRefused   prometheus.Counter
	unknownWords *prometheus.CounterVec
	secondTries  *prometheus.CounterVec
	shares       *guard.Shares
}

// unknownKind is what kind of word the gateway used that nobody here has seen.
type unknownKind string

const (
	unknownStatus  unknownKind = "status"
	unknownCancel  unknownKind = "cancel_status"
	unknownEvent   unknownKind = "event_type"
	unknownCode    unknownKind = "code"
	unknownVersion unknownKind = "version"
)

func unknownKinds() []unknownKind {
	return []unknownKind{unknownStatus, unknownCancel, unknownEvent, unknownCode, unknownVersion}
}

// NewMetrics registers the metrics and creates every series at zero.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	factory := promauto.With(reg)
	m := &Metrics{
		callSeconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "daesa_pgclient_call_seconds",
			Help:    "Time of one attempt at the gateway, connection to last byte, without waiting for a slot.",
			Buckets: []float64{.025, .05, .1, .25, .5, 1, 2, 3, 5, 8, 10, 15, 30, 65},
		}, []string{"path", "result"}),
		slotSeconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "daesa_pgclient_slot_seconds",
			Help: "Time that a slot was held: every attempt of the call, the waits between them, and what its caller does before " +
				"it is sent, as the question to a store. A cap bears cap ÷ this time a second.",
			Buckets: []float64{.025, .05, .1, .25, .5, 1, 2, 3, 5, 8, 10, 15, 30, 65},
		}, []string{"path", "use"}),
		queueSeconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "daesa_pgclient_queue_wait_seconds",
			Help:    "Time a call waited for the breaker and a slot before it was sent or refused. Waiting that grows while calls stay fast means the cap is too small.",
			Buckets: []float64{.001, .005, .025, .1, .25, .5, 1, 2},
		}, []string{"path"}),
		inFlight: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "daesa_pgclient_in_flight_calls", Help: "Slots held now.",
		}, []string{"path"}),
		caps: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "daesa_pgclient_cap_calls", Help: "Slots this instance has.",
		}, []string{"path"}),
		refusals: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_pgclient_refusals_total",
			Help: "Calls our own guard turned away: before anything was sent, or a second attempt the breaker refused.",
		}, []string{"path", "reason"}),
		answers: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_pgclient_answers_total", Help: "Attempts by what came of them.",
		}, []string{"path", "result"}),
		breakers: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "daesa_pgclient_breaker_state", Help: "0 closed, 1 half open, 2 open.",
		}, []string{"breaker"}),
		keyRefused: factory.NewCounter(prometheus.CounterOpts{
			Name: "daesa_pgclient_key_refused_total",
			Help: "Answers that refused our secret key. Any increase stops every sale: see runbook GatewayKeyRefused.",
		}),
		unknownWords: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_pgclient_unknown_words_total",
			Help: "Words of the gateway that this version does not know. They prove nothing and move no money.",
		}, []string{"kind"}),
		secondTries: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_pgclient_second_attempts_total", Help: "Calls that needed a second attempt.",
		}, []string{"path"}),
		shares: guard.NewShares(
			"daesa_pgclient_cap_refused_ratio",
			"Part of the last minute's calls that found no slot: measured, and as 1 − cap ÷ (rate × time held) predicts. Where they part, calls arrive in bursts.",
			pathTexts()...,
		),
	}
	reg.MustRegister(m.shares)
	m.initialize()
	return m
}

func (m *Metrics) initialize() {
	for _, p := range pathTexts() {
		m.queueSeconds.WithLabelValues(p)
		for _, use := range slotUses() {
			m.slotSeconds.WithLabelValues(p, string(use))
		}
		m.inFlight.WithLabelValues(p)
		m.caps.WithLabelValues(p)
		m.secondTries.WithLabelValues(p)
		for _, refusal := range Refusals() {
			m.refusals.WithLabelValues(p, string(refusal))
		}
		for _, result := range results() {
			m.callSeconds.WithLabelValues(p, result)
			m.answers.WithLabelValues(p, result)
		}
	}
	for _, name := range BreakerNames() {
		m.breakers.WithLabelValues(string(name))
	}
	for _, kind := range unknownKinds() {
		m.unknownWords.WithLabelValues(string(kind))
	}
}

// slotUse is what came of a slot.
type slotUse string

const (
	slotUnsent   slotUse = "unsent"   // nothing was sent after all
	slotAnswered slotUse = "answered" // by a gateway that is well: a refusal is an answer
	slotFailed   slotUse = "failed"
)

func slotUses() []slotUse { return []slotUse{slotUnsent, slotAnswered, slotFailed} }

// results are the values of the result label: what an attempt can come to.
func results() []string {
	values := []string{resultOK}
	for _, reason := range Reasons() {
		switch reason {
		case ReasonBreakerOpen, ReasonCap: // these were never sent: refusals, not answers
		case ReasonTimeout, ReasonConnection, ReasonServerError, ReasonRateLimited, ReasonKeyRefused, ReasonNotFound,
			ReasonCanceled, ReasonUnreadable, ReasonInconsistent, ReasonCursorRefused, ReasonInFlight, ReasonAmbiguous,
			ReasonRefused:
			values = append(values, string(reason))
		}
	}
	return values
}

func (m *Metrics) answered(path PathName, took time.Duration, err *Error) {
	result := resultOK
	if err != nil {
		result = string(err.Reason)
	}
	m.callSeconds.WithLabelValues(string(path), result).Observe(took.Seconds())
	m.answers.WithLabelValues(string(path), result).Inc()
	if err != nil && err.Reason == ReasonKeyRefused {
		m.keyRefused.Inc()
	}
}

func (m *Metrics) refused(path PathName, refusal Refusal) {
	m.refusals.WithLabelValues(string(path), string(refusal)).Inc()
}

func (m *Metrics) unknown(kind unknownKind) { m.unknownWords.WithLabelValues(string(kind)).Inc() }

func (m *Metrics) breakerState(name BreakerName, state guard.State) {
	m.breakers.WithLabelValues(string(name)).Set(state.Level())
}

// pathTexts are the values of the path label.
func pathTexts() []string {
	var texts []string
	for _, path := range PathNames() {
		texts = append(texts, string(path))
	}
	return texts
}
