package checkout

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"daesa/checkout/store"
	"daesa/ledger"
)

// releaseResult is what came of one attempt to release.
type releaseResult string

const (
	releaseHeard   releaseResult = "heard"
	releaseFailed  releaseResult = "failed" // and tried again
	releaseGivenUp releaseResult = "given_up"
)

func releaseResults() []releaseResult {
	return []releaseResult{releaseHeard, releaseFailed, releaseGivenUp}
}

// storeMetrics is what checkout counts of the store: answers and what they led to, and what it is still owed.
type storeMetrics struct {
	answers     *prometheus.CounterVec
	releases    *prometheus.CounterVec
	checks      *prometheus.CounterVec
	acceptances *prometheus.GaugeVec
	oldest      prometheus.Gauge
}

func newStoreMetrics(factory promauto.Factory) storeMetrics {
	m := storeMetrics{
		answers: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_checkout_store_answers_total",
			Help: "What the store said of orders, and whether the sale went on. Not accepted and gone on is a sale that the policy let pass.",
		}, []string{"word", "policy"}),
		releases: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_checkout_store_releases_total",
			Help: "Attempts to tell the store that an acceptance is void. given_up is one that it never heard of: see runbook StoreChecksOwed.",
		}, []string{"result"}),
		checks: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_checkout_store_checks_total",
			Help: "Orders that the merchant was told to look at by hand, since books and store may not agree.",
		}, []string{"reason"}),
		acceptances: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "daesa_checkout_acceptances", Help: "Questions to the store that are not settled yet, by state.",
		}, []string{"state"}),
		oldest: factory.NewGauge(prometheus.GaugeOpts{
			Name: "daesa_checkout_release_oldest_seconds",
			Help: "For how long the store has been owed the oldest release. It holds what nobody will pay for.",
		}),
	}
	for _, word := range store.Words() {
		for _, policy := range StorePolicies() {
			m.answers.WithLabelValues(string(word), string(policy))
		}
	}
	for _, r := range releaseResults() {
		m.releases.WithLabelValues(string(r))
	}
	for _, r := range checkReasons() {
		m.checks.WithLabelValues(string(r))
	}
	for _, s := range acceptanceStates() {
		if s.open() {
			m.acceptances.WithLabelValues(string(s))
		}
	}
	return m
}

// refusedBy names a store's word as a reason for which a sale was refused.
func refusedBy(word store.Word) string { return "store_" + string(word) }

// heard counts an answer of the store, and the won that it cost.
func (m *Metrics) heard(word store.Word, policy StorePolicy, amount ledger.Money) {
	m.store.answers.WithLabelValues(string(word), string(policy)).Inc()
	if policy == StoreRefuse && amount.Currency == ledger.KRW {
		m.refusedWon.WithLabelValues(refusedBy(word)).Add(float64(amount.Minor))
	}
}

func (m *Metrics) released(r releaseResult) { m.store.releases.WithLabelValues(string(r)).Inc() }

func (m *Metrics) check(r checkReason) { m.store.checks.WithLabelValues(string(r)).Inc() }

// acceptancesOpen exports how many acceptances are open, and for how long the oldest release has been owed.
func (m *Metrics) acceptancesOpen(counts map[acceptanceState]int64, oldest time.Duration) {
	for _, s := range acceptanceStates() {
		if s.open() {
			m.store.acceptances.WithLabelValues(string(s)).Set(float64(counts[s]))
		}
	}
	m.store.oldest.Set(oldest.Seconds())
}
