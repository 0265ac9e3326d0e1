package checkout

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"daesa/checkout/store"
	"daesa/ledger"
	"daesa/pgclient"
)

// result is how a request to approve or to cancel was answered.
type result string

const (
	resultApproved    result = "approved"    // done, at the first press or a later one
	resultWaiting     result = "waiting"     // virtual account issued
	resultCanceled    result = "canceled"    // the payment is canceled; of a cancel: done
	resultRefused     result = "refused"     // by the gateway, for good
	resultUnprocessed result = "unprocessed" // turned away by the gateway
	resultBusy        result = "busy"        // our cap; nothing was sent
	resultDown        result = "down"        // our breaker; nothing was sent
	resultDeclined    result = "declined"    // by the store; nothing was sent
	resultStoreLate   result = "store_late"  // nothing was sent
	resultStoreDown   result = "store_down"  // nothing was sent
	resultUnknown     result = "unknown"     // 202: not known yet
	resultConflict    result = "conflict"    // order taken, expired, other amount, in flight, …
	resultFailed      result = "failed"      // our own failure: the database, a bug
)

func results() []result {
	return []result{
		resultApproved, resultWaiting, resultCanceled, resultRefused, resultUnprocessed, resultBusy, resultDown,
		resultDeclined, resultStoreLate, resultStoreDown, resultUnknown, resultConflict, resultFailed,
	}
}

// delivery is what came of one attempt to deliver an event.
type delivery string

const (
	deliveryDone   delivery = "delivered"
	deliveryFailed delivery = "failed" // and tried again
	deliveryDead   delivery = "dead"   // given up
	deliveryUnset  delivery = "unset"  // no address is configured
)

func deliveries() []delivery {
	return []delivery{deliveryDone, deliveryFailed, deliveryDead, deliveryUnset}
}

// Metrics is what checkout counts. Every series exists from the start.
type Metrics struct {
	confirms       *prometheus.CounterVec
	confirmSeconds prometheus.Histogram
	refusedWon     *prometheus.CounterVec
	cancels        *prometheus.CounterVec
	events         *prometheus.CounterVec
	deadEvents     prometheus.Gauge
	ordersExpired  prometheus.Counter
	store          storeMetrics
}

// NewMetrics registers the metrics and creates every series at zero.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	factory := promauto.With(reg)
	m := &Metrics{
		confirms: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_checkout_confirms_total",
			Help: "Requests to approve, by answer. busy, down, declined, store_late and store_down were never sent; unknown is being asked about.",
		}, []string{"result"}),
		confirmSeconds: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "daesa_checkout_confirm_seconds",
			Help:    "Time to answer a request to approve, the gateway included.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2, 3, 5, 10, 15, 31, 45},
		}),
		refusedWon: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_checkout_refused_before_sending_krw_total",
			Help: "Won of approvals that were refused before anything was sent, by our own guard or for the store's sake: sales that buyers had to try again.",
		}, []string{"reason"}),
		cancels: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_checkout_cancels_total", Help: "Requests to cancel, by answer.",
		}, []string{"result"}),
		events: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_checkout_event_deliveries_total",
			Help: "Attempts to deliver events, by what came of them. A dead event is one that somebody was never told.",
		}, []string{"audience", "result"}),
		deadEvents: factory.NewGauge(prometheus.GaugeOpts{
			Name: "daesa_checkout_dead_events",
			Help: "Events given up after days of attempts and not sent again since.",
		}),
		ordersExpired: factory.NewCounter(prometheus.CounterOpts{
			Name: "daesa_checkout_orders_expired_total", Help: "Orders that expired unpaid.",
		}),
		store: newStoreMetrics(factory),
	}
	for _, r := range results() {
		m.confirms.WithLabelValues(string(r))
		m.cancels.WithLabelValues(string(r))
	}
	for _, r := range pgclient.Refusals() {
		m.refusedWon.WithLabelValues(string(r))
	}
	for _, word := range store.Words() {
		if word != store.Accepted {
			m.refusedWon.WithLabelValues(refusedBy(word))
		}
	}
	for _, to := range []ledger.Audience{ledger.AudienceMerchant, ledger.AudienceCustomer} {
		for _, d := range deliveries() {
			m.events.WithLabelValues(string(to), string(d))
		}
	}
	return m
}

func (m *Metrics) confirmed(answer reply, err error, took time.Duration) {
	m.confirms.WithLabelValues(string(resultOf(answer, err))).Inc()
	m.confirmSeconds.Observe(took.Seconds())
}

func (m *Metrics) canceled(answer reply, err error) {
	m.cancels.WithLabelValues(string(resultOf(answer, err))).Inc()
}

// refusedBeforeSending counts the won that our guard turned away.
func (m *Metrics) refusedBeforeSending(err error, amount ledger.Money) {
	var u *pgclient.Unsent
	if errors.As(err, &u) && amount.Currency == ledger.KRW {
		m.refusedWon.WithLabelValues(string(u.Reason)).Add(float64(amount.Minor))
	}
}

func (m *Metrics) delivered(to ledger.Audience, d delivery) {
	m.events.WithLabelValues(string(to), string(d)).Inc()
}

func (m *Metrics) expired(orders int64) { m.ordersExpired.Add(float64(orders)) }

func (m *Metrics) dead(events int64) { m.deadEvents.Set(float64(events)) }

// resultOf names an answer.
func resultOf(answer reply, err error) result {
	switch {
	case err != nil:
		return failureOf(err)
	case !answer.final():
		return resultUnknown
	}
	switch body := answer.body.(type) {
	case confirmed:
		if body.Status == ledger.StatusWaitingForDeposit {
			return resultWaiting
		}
	case requestView:
		return resultCanceled
	}
	return resultApproved
}

func failureOf(err error) result {
	for _, row := range []struct {
		err error
		as  result
	}{
		{ErrBusy, resultBusy},
		{ErrDown, resultDown},
		{ErrStoreDeclined, resultDeclined},
		{ErrStoreLate, resultStoreLate},
		{ErrStoreDown, resultStoreDown},
		{ErrRefused, resultRefused},
		{ErrCancelRefused, resultRefused},
		{ErrUnprocessed, resultUnprocessed},
		{ErrMisconfigured, resultUnprocessed},
		{ErrCanceled, resultCanceled},
		{ErrUnavailable, resultFailed},
	} {
		if errors.Is(err, row.err) {
			return row.as
		}
	}
	for _, conflict := range conflicts() {
		if errors.Is(err, conflict) {
			return resultConflict
		}
	}
	return resultFailed
}
