package webhook

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"daesa/pgclient"
)

// senderPatience is how long the gateway waits for the answer.
const senderPatience = 10 * time.Second

// Metrics counts deliveries and times what they are made of.
type Metrics struct {
	outcomes    *prometheus.CounterVec
	queryFailed *prometheus.CounterVec
	whole       *prometheus.HistogramVec
	query       *prometheus.HistogramVec
	budgetLeft  prometheus.Histogram
	reaped      prometheus.Counter
	notParked   prometheus.Counter
}

// NewMetrics registers the metrics of notices, every series at zero.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := promauto.With(reg)
	seconds := []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2, 3, 3.5, 4, 5, 7, 9, 10, 15}
	m := &Metrics{
		outcomes: in.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_webhook_outcomes_total",
			Help: "Deliveries by outcome. Any apply_failed or db_failed leaves a refunded customer with a paid order until the next redelivery.",
		}, []string{"outcome"}),
		queryFailed: in.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_webhook_query_failed_total",
			Help: "Questions to the gateway that gave no answer, by reason. fruitless: not asked, because such notices had proven nothing too often.",
		}, []string{"reason"}),
		whole: in.NewHistogramVec(prometheus.HistogramOpts{
			Name: "daesa_webhook_seconds", Buckets: seconds,
			Help: "From the request seen to the answer. over_budget is yes when the sender had already given up.",
		}, []string{"over_budget"}),
		query: in.NewHistogramVec(prometheus.HistogramOpts{
			Name: "daesa_webhook_query_seconds", Buckets: seconds,
			Help: "The question to the gateway.",
		}, []string{"result"}),
		budgetLeft: in.NewHistogram(prometheus.HistogramOpts{
			Name: "daesa_webhook_budget_left_seconds", Buckets: []float64{0, .25, .5, 1, 2, 3, 4, 5, 6, 7, 8, 8.5, 9},
			Help: "What was left of the request's own deadline at the answer.",
		}),
		reaped: in.NewCounter(prometheus.CounterOpts{
			Name: "daesa_webhook_reaped_total",
			Help: "Deliveries that a crash left without an outcome. Their payments are asked about at once.",
		}),
		notParked: in.NewCounter(prometheus.CounterOpts{
			Name: "daesa_webhook_not_parked_total",
			Help: "Cancels of payments never seen that were not parked because too many are. Somebody is making them up.",
		}),
	}
	for _, o := range Outcomes() {
		m.outcomes.WithLabelValues(string(o))
	}
	for _, r := range pgclient.Reasons() {
		m.queryFailed.WithLabelValues(string(r))
	}
	m.queryFailed.WithLabelValues(reasonFruitless)
	for _, label := range []string{"yes", "no"} {
		m.whole.WithLabelValues(label)
	}
	for _, label := range []string{"answered", "failed"} {
		m.query.WithLabelValues(label)
	}
	return m
}

func (m *Metrics) answered(o Outcome, took, left time.Duration) {
	m.outcomes.WithLabelValues(string(o)).Inc()
	over := "no"
	if took > senderPatience {
		over = "yes"
	}
	m.whole.WithLabelValues(over).Observe(took.Seconds())
	m.budgetLeft.Observe(left.Seconds())
}

func (m *Metrics) asked(reason pgclient.Reason, took time.Duration) {
	if reason == "" {
		m.query.WithLabelValues("answered").Observe(took.Seconds())
		return
	}
	m.query.WithLabelValues("failed").Observe(took.Seconds())
	m.queryFailed.WithLabelValues(string(reason)).Inc()
}
