package app_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/admission"
	"daesa/internal/app"
	"daesa/ledger"
	"daesa/pgclient"
	"daesa/reconcile"
	"daesa/webhook"
)

// series gathers the value of every series of ours, by name and labels.
func series(tb testing.TB, registry *prometheus.Registry) map[string]float64 {
	tb.Helper()
	families, err := registry.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	values := make(map[string]float64)
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "daesa_") {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			name := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			values[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// TestMetrics_FromTheStart requires that every series exists right after start, so that the first failure is a change
// from 0 to 1 and not from nothing: every counter at zero, every closed set complete, a series for each kind of job.
func TestMetrics_FromTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	values := series(t, w.app.Registry())
	for name, value := range values {
		if strings.Contains(name, "_total{") && value != 0 && !strings.HasPrefix(name, "daesa_postgres_pool_") {
			t.Errorf("%s is %v before anything happened", name, value)
		}
	}
	for _, want := range closedSets() {
		if _, ok := values[want]; !ok {
			t.Errorf("%s does not exist at start", want)
		}
	}
}

// TestMetrics_NothingAppears plays stories of all kinds and requires that they brought no series that was not there at
// the start.
func TestMetrics_NothingAppears(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hasty)
	before := series(t, w.app.Registry())
	key := w.sell("order-metrics", 50_000)
	w.app.shop.cancel(key, "cancel-1", 10_000)
	w.app.shop.cancel(key, "cancel-2", 99_000)
	w.dashboard(key, 0)
	w.deliver(w.newest(key))
	w.deliver(w.newest(key))
	for _, body := range []string{`{`, `[]`, `{"eventType":"x"}`, `{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":"strange","status":"CANCELED"}}`} {
		if _, err := w.sim.Send([]byte(body), nil); err != nil {
			t.Fatal(err)
		}
	}
	w.app.shop.call("GET", "/v1/orders/none", "", nil)
	w.app.shop.call("GET", "/nowhere/"+key, "", nil)
	w.app.shop.call("BREW", "/v1/orders", "", nil)
	w.quiesce()
	w.requireAgreed()
	for _, name := range slices.Sorted(maps.Keys(series(t, w.app.Registry()))) {
		if _, ok := before[name]; !ok {
			t.Errorf("%s appeared", name)
		}
	}
}

// closedSets names series whose absence would silence an alert.
func closedSets() []string {
	var names []string
	add := func(metric, label, value string) {
		names = append(names, fmt.Sprintf("%s{%s=%s}", metric, label, value))
	}
	for _, o := range webhook.Outcomes() {
		add("daesa_webhook_outcomes_total", "outcome", string(o))
	}
	for _, p := range pgclient.PathNames() {
		add("daesa_pgclient_in_flight_calls", "path", string(p))
		add("daesa_pgclient_cap_calls", "path", string(p))
	}
	for _, b := range pgclient.BreakerNames() {
		add("daesa_pgclient_breaker_state", "breaker", string(b))
	}
	for _, c := range admission.Classes() {
		add("daesa_admission_gate_shed_total", "class", string(c))
	}
	for _, kind := range app.JobKinds() {
		add("daesa_job_last_success_timestamp_seconds", "kind", kind)
		add("daesa_job_failures_total", "kind", kind)
		add("daesa_job_duration_seconds", "kind", kind)
	}
	for _, kind := range ledger.Kinds() {
		add("daesa_reconcile_mismatches_open", "kind", string(kind))
	}
	for _, line := range reconcile.PendingLines() {
		add("daesa_reconcile_pending_cancels", "line", string(line))
	}
	for n := range reconcile.RedeliveriesInAll + 1 {
		add("daesa_reconcile_pending_attempts", "attempt", strconv.Itoa(n))
	}
	return names
}
