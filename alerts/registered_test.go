package alerts

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"

	"daesa/checkout"
	"daesa/internal/app"
	"daesa/internal/plan"
	"daesa/internal/postgres/postgrestest"
	"daesa/pgclient"
)

// catalog is what a program that has only just started exports: label names to values, by sample name.
type catalog map[string]map[string][]string

// started gathers the metrics of the whole program before its first request, so that a series that is only made by its
// first event is missing here.
func started(t *testing.T) (catalog, []*dto.MetricFamily) {
	t.Helper()
	program, err := app.New(t.Context(), app.Config{
		DatabaseURL: postgrestest.NewURL(t), Listen: "127.0.0.1:0", PrivateListen: "127.0.0.1:0",
		TossURL: "http://127.0.0.1:1", TossSecretKey: "test_sk_alerts",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := program.Stop(); err != nil {
			t.Error(err)
		}
	})
	families, err := program.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := make(catalog)
	for _, family := range families {
		samples := []string{family.GetName()}
		if family.GetType() == dto.MetricType_HISTOGRAM {
			samples = []string{family.GetName() + "_bucket", family.GetName() + "_sum", family.GetName() + "_count"}
		}
		labels := make(map[string][]string)
		for _, m := range family.GetMetric() {
			for _, pair := range m.GetLabel() {
				labels[pair.GetName()] = append(labels[pair.GetName()], pair.GetValue())
			}
		}
		for _, sample := range samples {
			names[sample] = maps.Clone(labels)
			if strings.HasSuffix(sample, "_bucket") {
				names[sample]["le"] = nil
			}
		}
	}
	return names, families
}

// selector is a metric named in an expression, with the matchers in its braces.
type selector struct {
	name     string
	matchers []matcher
}

type matcher struct {
	label, operator, value string
}

// selectors finds the metrics in an expression: ours, the runtime's, and series that rules record.
func selectors(expr string) []selector {
	named := regexp.MustCompile(`((?:daesa|go|process)_[a-z0-9_]+|[a-z_]+(?::[a-z0-9_]+)+)(?:\{([^}]*)\})?`)
	matching := regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*["']([^"']*)["']`)
	var found []selector
	for _, m := range named.FindAllStringSubmatch(expr, -1) {
		s := selector{name: m[1]}
		for _, mm := range matching.FindAllStringSubmatch(m[2], -1) {
			s.matchers = append(s.matchers, matcher{mm[1], mm[2], mm[3]})
		}
		found = append(found, s)
	}
	return found
}

// fromPrometheus are the labels that Prometheus adds to what it scrapes.
func fromPrometheus() []string { return []string{"job", "instance"} }

// problem says why a matcher selects nothing in a program that has just started; "" when it selects something.
func (c catalog) problem(name string, m matcher) string {
	if slices.Contains(fromPrometheus(), m.label) || m.label == "le" {
		return ""
	}
	values, ok := c[name][m.label]
	if !ok {
		return "has no label " + m.label
	}
	alternatives := []string{m.value}
	if m.operator == "=~" || m.operator == "!~" {
		alternatives = strings.Split(m.value, "|")
	} else {
		alternatives[0] = regexp.QuoteMeta(m.value)
	}
	for _, alternative := range alternatives {
		if !slices.ContainsFunc(values, regexp.MustCompile("^(?:"+alternative+")$").MatchString) {
			return "has no series with " + m.label + " " + alternative
		}
	}
	return ""
}

// TestRules_NameWhatTheProgramExports checks every metric, label and label value of the expressions, of the queries in
// the annotations, and of the scenarios.
func TestRules_NameWhatTheProgramExports(t *testing.T) {
	t.Parallel()
	names, families := started(t)
	recorded := make(map[string]bool)
	for _, r := range allRules(t) {
		recorded[r.Record] = true
	}
	check := func(where, text string) {
		for _, s := range selectors(text) {
			if strings.Contains(s.name, ":") {
				if !recorded[s.name] {
					t.Errorf("%s: no rule records %s", where, s.name)
				}
				continue
			}
			if _, ok := names[s.name]; !ok {
				t.Errorf("%s: the program does not export %s", where, s.name)
				continue
			}
			for _, m := range s.matchers {
				if problem := names.problem(s.name, m); problem != "" {
					t.Errorf("%s: %s %s", where, s.name, problem)
				}
			}
		}
	}
	for _, r := range allRules(t) {
		check(r.Alert+r.Record, r.Expr)
		check(r.Alert, r.Annotations["description"])
		for _, label := range groupings(r.Expr) {
			if !names.hasLabel(r.Expr, label) {
				t.Errorf("%s%s: no metric in the expression has the label %s", r.Alert, r.Record, label)
			}
		}
	}
	for _, s := range scenarios(t) {
		for _, input := range s.InputSeries {
			check("scenario "+s.Name, input.Series)
		}
	}
	paths := []string{string(pgclient.PathConfirm), string(pgclient.PathQuery), plan.PathStore}
	for _, expr := range plan.Expressions(paths, 7*24*time.Hour) {
		check("plan", regexp.MustCompile(`\[[^]]*\]`).ReplaceAllString(expr, ""))
	}
	checkHelp(t, families)
	checkJobs(t, names)
}

// checkJobs checks that every kind of job that a clock starts is missed when it does not succeed.
func checkJobs(t *testing.T, names catalog) {
	t.Helper()
	const lastSuccess = "daesa_job_last_success_timestamp_seconds"
	watched := []string{checkout.EventArgs{}.Kind()} // started by events, not by a clock: EventsDead watches it
	for _, r := range alertsOnly(t) {
		for _, s := range selectors(r.Expr) {
			for _, m := range s.matchers {
				if s.name == lastSuccess && m.label == "kind" {
					watched = append(watched, strings.Split(m.value, "|")...)
				}
			}
		}
	}
	slices.Sort(watched)
	kinds := slices.Sorted(slices.Values(names[lastSuccess]["kind"]))
	if diff := cmp.Diff(kinds, watched); diff != "" {
		t.Errorf("kinds of jobs (-) and kinds that alerts watch (+) differ:\n%s", diff)
	}
}

// groupings lists the labels that an expression groups or joins by.
func groupings(expr string) []string {
	var labels []string
	for _, m := range regexp.MustCompile(`\b(?:by|on)\s*\(([^)]*)\)`).FindAllStringSubmatch(expr, -1) {
		labels = append(labels, strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	return labels
}

// hasLabel reports whether a metric of the expression carries the label.
func (c catalog) hasLabel(expr, label string) bool {
	if slices.Contains(fromPrometheus(), label) {
		return true
	}
	for _, s := range selectors(expr) {
		if _, ok := c[s.name][label]; ok {
			return true
		}
	}
	return false
}

// checkHelp checks that a metric whose help sends its reader to a runbook names one that exists.
func checkHelp(t *testing.T, families []*dto.MetricFamily) {
	t.Helper()
	for _, family := range families {
		for _, m := range regexp.MustCompile(`runbook (\w+)`).FindAllStringSubmatch(family.GetHelp(), -1) {
			if !slices.ContainsFunc(alertsOnly(t), func(r rule) bool { return r.Alert == m[1] }) {
				t.Errorf("the help of %s names the runbook %s, which does not exist", family.GetName(), m[1])
			}
		}
	}
}
