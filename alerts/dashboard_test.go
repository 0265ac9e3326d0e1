package alerts

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the dashboard anew")

const dashboardFile = "../deploy/grafana/daesa.json"

// panel is one graph of the dashboard: what it is called, the unit of its axis, and its lines. Hint is what to look for.
type panel struct {
	title, unit, hint string
	lines             []line
}

// line is an expression and what its series are called.
type line struct{ expr, name string }

// rows are the chapters of the dashboard, in the order in which one looks when woken: the money first.
func rows() []struct {
	title  string
	panels []panel
} {
	p95 := func(bucket, by string) string {
		return "histogram_quantile(0.95, sum by (" + by + ", le) (rate(" + bucket + "[5m])))"
	}
	return []struct {
		title  string
		panels []panel
	}{
		{"Money", []panel{
			{"Cancels that are unexplained", "none", "Zero, always. Anything else: runbook IdentityBroken.", []line{
				{"max by (scope) (daesa_reconcile_identity_unexplained)", "{{scope}}"},
				{"max by (scope) (daesa_reconcile_audit_breaks)", "contradictions, {{scope}}"},
			}},
			{"At risk", "currencyKRW", "In mismatches that nobody has resolved, in incidents, and in payments whose outcome is not known.", []line{
				{`max(daesa_reconcile_mismatches_at_risk_minor{currency="KRW"})`, "mismatches"},
				{`max(daesa_reconcile_incidents_at_risk_minor{currency="KRW"})`, "incidents"},
				{`max(daesa_reconcile_unknown_amount_minor{currency="KRW"})`, "outcome unknown"},
			}},
			{"Pending cancels", "none", "Waiting is in order; late and past the last chance is not.", []line{{"max by (line) (daesa_reconcile_pending_cancels)", "{{line}}"}}},
			{"Refused before anything was sent, won in 5 minutes", "currencyKRW", "What our own guard and the store cost: sales that buyers had to try again.", []line{
				{"sum by (reason) (increase(daesa_checkout_refused_before_sending_krw_total[5m]))", "{{reason}}"},
			}},
			{"Open mismatches", "none", "", []line{{"max by (kind) (daesa_reconcile_mismatches_open) > 0", "{{kind}}"}}},
			{"Age of the audit and of the list", "s", "The audit runs each minute, and the list is read as often.", []line{
				{"time() - max by (scope) (daesa_reconcile_audit_last_run_timestamp_seconds > 0)", "audit {{scope}}"},
				{"max(daesa_reconcile_mirror_lag_seconds)", "list"},
			}},
		}},
		{"Webhooks", []panel{
			{"Notices a minute, by outcome", "none", "", []line{{"sum by (outcome) (rate(daesa_webhook_outcomes_total[5m])) * 60 > 0", "{{outcome}}"}}},
			{"Time of an answer, p95", "s", "The sender waits 10 s; a question takes 3 s at most.", []line{
				{p95("daesa_webhook_seconds_bucket", "over_budget"), "over budget: {{over_budget}}"},
				{p95("daesa_webhook_query_seconds_bucket", "result"), "question: {{result}}"},
			}},
			{"Questions that failed, a minute", "none", "", []line{{"sum by (reason) (rate(daesa_webhook_query_failed_total[5m])) * 60 > 0", "{{reason}}"}}},
			{"Promises: share that was late, 1 hour", "percentunit", "0.1 % of notices and 1 % of cancels may be.", []line{
				{"objective:notices_late:ratio1h", "notices past 10 s"}, {"objective:cancels_late:ratio1h", "cancels past 15 minutes"},
			}},
			{"Refused by rate limits, a minute", "none", "Of the gateway: raise the limit. Of a stranger: leave it.", []line{
				{"sum by (rule) (rate(daesa_admission_rate_refused_total[5m])) * 60", "{{rule}}"},
			}},
		}},
		{"Gateway", []panel{
			{"Calls under way, and how many may be", "none", "", []line{
				{"sum by (path) (daesa_pgclient_in_flight_calls)", "{{path}}"}, {"sum by (path) (daesa_pgclient_cap_calls)", "cap of {{path}}"},
			}},
			{"Time of a call, p95", "s", "", []line{{p95("daesa_pgclient_call_seconds_bucket", "path"), "{{path}}"}}},
			{"Time that calls wait, p95", "s", "Growing while calls stay fast: the cap is too small.", []line{{p95("daesa_pgclient_queue_wait_seconds_bucket", "path"), "{{path}}"}}},
			{"Share that the cap refuses", "percentunit", "Measured, and as 1 − cap ÷ (rate × time) predicts.", []line{
				{"path:daesa_pgclient_cap_refused:ratio5m", "{{path}}"}, {"path:daesa_pgclient_cap_refused:predicted5m", "predicted, {{path}}"},
			}},
			{"Refused by our guard, a minute", "none", "", []line{{"sum by (path, reason) (rate(daesa_pgclient_refusals_total[5m])) * 60 > 0", "{{path}}: {{reason}}"}}},
			{"Breakers", "none", "0 closed, 1 half open, 2 open.", []line{{"max by (breaker) (daesa_pgclient_breaker_state)", "{{breaker}}"}, {"max(daesa_store_breaker_state)", "store"}}},
		}},
		{"Jobs", []panel{
			{"Since the last success", "s", "", []line{{"time() - max by (kind) (daesa_job_last_success_timestamp_seconds > 0)", "{{kind}}"}}},
			{"Failures an hour", "none", "", []line{{"sum by (kind) (increase(daesa_job_failures_total[1h])) > 0", "{{kind}}"}}},
			{"Time of a run, p95", "s", "", []line{{p95("daesa_job_duration_seconds_bucket", "kind"), "{{kind}}"}}},
			{"Answers that are owed", "none", "", []line{
				{"max by (kind) (daesa_reconcile_work_open)", "{{kind}}"}, {"max by (kind) (daesa_reconcile_work_past_deadline) > 0", "past its deadline: {{kind}}"},
			}},
			{"Events that nobody was told of", "none", "", []line{{"max(daesa_checkout_dead_events)", "given up"}}},
		}},
		{"Database", []panel{
			{"Connections in use", "percentunit", "", []line{
				{"max by (instance, pool) (daesa_postgres_pool_acquired_connections / daesa_postgres_pool_max_connections)", "{{instance}}, {{pool}}"},
			}},
			{"Wait for a connection, seconds a second", "s", "", []line{{"sum by (pool) (rate(daesa_postgres_pool_wait_seconds_total[5m]))", "{{pool}}"}}},
		}},
		{"Service", []panel{
			{"Requests a second", "reqps", "", []line{{"sum by (status_class) (rate(daesa_web_request_seconds_count[5m])) > 0", "{{status_class}}"}}},
			{"Time of an answer, p95, by route", "s", "", []line{{p95("daesa_web_request_seconds_bucket", "route") + " > 0", "{{route}}"}}},
			{"In flight, and shed a minute", "none", "Reading is shed first.", []line{
				{"sum by (class) (daesa_admission_gate_in_flight_requests)", "{{class}}"},
				{"sum by (class) (rate(daesa_admission_gate_shed_total[5m])) * 60", "shed: {{class}}"},
			}},
			{"Memory", "bytes", "", []line{{"process_resident_memory_bytes{job=\"daesa\"}", "{{instance}}"}}},
			{"Processor, cores", "none", "", []line{{"rate(process_cpu_seconds_total{job=\"daesa\"}[5m])", "{{instance}}"}}},
			{"Goroutines", "none", "", []line{{"go_goroutines{job=\"daesa\"}", "{{instance}}"}}},
		}},
	}
}

// dashboardExpressions are those of every line.
func dashboardExpressions() (all []string) {
	for _, row := range rows() {
		for _, p := range row.panels {
			for _, l := range p.lines {
				all = append(all, l.expr)
			}
		}
	}
	return all
}

// dashboard writes the rows down as Grafana reads them.
func dashboard(t *testing.T) []byte {
	t.Helper()
	const width, height = 8, 8 // of a panel: three beside each other
	source := map[string]any{"type": "prometheus", "uid": "${source}"}
	var panels []any
	y := 0
	for _, row := range rows() {
		panels = append(panels, map[string]any{
			"id": len(panels) + 1, "type": "row", "title": row.title, "collapsed": false, "panels": []any{},
			"gridPos": map[string]int{"x": 0, "y": y, "w": 24, "h": 1},
		})
		y++
		for n, p := range row.panels {
			var targets []any
			for i, l := range p.lines {
				targets = append(targets, map[string]any{"refId": string(rune('A' + i)), "expr": l.expr, "legendFormat": l.name, "datasource": source})
			}
			panels = append(panels, map[string]any{
				"id": len(panels) + 1, "type": "timeseries", "title": p.title, "description": p.hint, "datasource": source, "targets": targets,
				"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.unit, "min": 0}, "overrides": []any{}},
				"gridPos":     map[string]int{"x": n % 3 * width, "y": y + n/3*height, "w": width, "h": height},
			})
		}
		y += (len(row.panels) + 2) / 3 * height
	}
	all := map[string]any{
		"uid": "daesa", "title": "daesa", "tags": []string{"daesa"}, "timezone": "Asia/Seoul", "schemaVersion": 39, "editable": false, "refresh": "30s",
		"time": map[string]string{"from": "now-6h", "to": "now"}, "panels": panels,
		"templating": map[string]any{"list": []any{map[string]any{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}}},
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(all); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// TestDashboard: the file is what is written here, and every graph has something to show: each metric and label is one that
// the program exports or a rule records.
func TestDashboard(t *testing.T) {
	t.Parallel()
	want := dashboard(t)
	if *update {
		if err := os.WriteFile(dashboardFile, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(want), read(t, dashboardFile)); diff != "" {
		t.Errorf("the file (+) is not what is written here (-); go test ./alerts -run Dashboard -update:\n%s", diff)
	}
	names, _ := started(t)
	recorded := make(map[string]bool)
	for _, r := range allRules(t) {
		recorded[r.Record] = true
	}
	for _, row := range rows() {
		for _, p := range row.panels {
			for _, l := range p.lines {
				for _, s := range selectors(l.expr) {
					_, exported := names[s.name]
					if !exported && !recorded[s.name] {
						t.Errorf("%s, %s: nobody exports or records %s", row.title, p.title, s.name)
					}
					for _, m := range s.matchers {
						if problem := names.problem(s.name, m); exported && problem != "" {
							t.Errorf("%s, %s: %s %s", row.title, p.title, s.name, problem)
						}
					}
				}
				for _, label := range groupings(l.expr) {
					if label != "le" && !names.hasLabel(l.expr, label) {
						t.Errorf("%s, %s: no metric has the label %s", row.title, p.title, label)
					}
				}
			}
		}
	}
}
