package alerts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daesa/internal/plan"
)

const runbookDir = "../docs/runbooks"

// TestAlerts_TellWhatAPersonNeeds checks that whoever is woken knows how bad it is, what money is at risk, what to do
// next, and where to read on.
func TestAlerts_TellWhatAPersonNeeds(t *testing.T) {
	t.Parallel()
	hangul := regexp.MustCompile(`\p{Hangul}`)
	for _, r := range alertsOnly(t) {
		severity := r.Labels["severity"]
		if severity != "page" && severity != "ticket" {
			t.Errorf("%s: got severity %q, want page or ticket", r.Alert, severity)
		}
		if r.Annotations["summary"] == "" {
			t.Errorf("%s: no summary", r.Alert)
		}
		if !hangul.MatchString(r.Annotations["summary_ko"]) {
			t.Errorf("%s: got summary_ko %q, want a Korean sentence", r.Alert, r.Annotations["summary_ko"])
		}
		description := r.Annotations["description"]
		if !strings.Contains(description, "Next: ") {
			t.Errorf("%s: the description does not say what is safe to do next: %s", r.Alert, description)
		}
		if !saysMoney(description) {
			t.Errorf("%s: the description does not say whether money is at risk: %s", r.Alert, description)
		}
		checkLinks(t, r)
	}
	checkLinks(t, deadMansSwitch(t))
	if r := deadMansSwitch(t); r.Alert != "DeadMansSwitch" || r.Expr != "vector(1)" || r.For != "" {
		t.Errorf("got %+v, want an alert that fires always", r)
	}
}

// checkLinks checks that an alert leads to its runbook, and to a page that there is.
func checkLinks(t *testing.T, r rule) {
	t.Helper()
	if got, want := r.Annotations["runbook"], "docs/runbooks/"+r.Alert+".md"; got != want {
		t.Errorf("%s: got runbook %q, want %q", r.Alert, got, want)
	}
	page, ok := strings.CutPrefix(r.Annotations["page"], "{{ $externalLabels.pages }}")
	path, _, _ := strings.Cut(page, "?")
	if routes := read(t, "../internal/app/testdata/page_routes.txt"); !ok || !strings.Contains("\n"+routes, "\nGET     "+path+" ") {
		t.Errorf("%s: got page %q, want one of the pages", r.Alert, r.Annotations["page"])
	}
}

// saysMoney reports whether a description speaks of the money: what is at risk, or that none is.
func saysMoney(description string) bool {
	for _, words := range []string{"At risk: ", "No money is ", "sales may be lost", "moved no money", " KRW"} {
		if strings.Contains(description, words) {
			return true
		}
	}
	return false
}

// TestRunbooks_OnePerAlert checks that no alert is without a runbook and no runbook without an alert, and that each
// answers the same five questions.
func TestRunbooks_OnePerAlert(t *testing.T) {
	t.Parallel()
	var want []string
	for _, r := range append(alertsOnly(t), deadMansSwitch(t)) {
		want = append(want, r.Alert)
	}
	slices.Sort(want)
	want = slices.Compact(want)

	var got []string
	for _, path := range runbooks(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		got = append(got, name)
		text := read(t, path)
		if !strings.HasPrefix(text, "# "+name+"\n") {
			t.Errorf("%s does not begin with its name", path)
		}
		from := 0
		for _, question := range []string{"**Fires when**", "**Money at risk?**", "**First look**", "**Fix**", "**Afterwards**"} {
			at := strings.Index(text[from:], question)
			if at < 0 {
				t.Errorf("%s: %s is missing or out of order", path, question)
				continue
			}
			from += at
		}
		if !regexp.MustCompile(`(?m)^> .*\p{Hangul}`).MatchString(text) {
			t.Errorf("%s has no Korean summary", path)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alerts (-) and runbooks (+) differ:\n%s", diff)
	}
}

// TestRules_EachFiresAndStaysSilent checks that every alert, at each of its severities, has a scenario in which it
// fires, and one in which it does not although every metric that it reads is there.
func TestRules_EachFiresAndStaysSilent(t *testing.T) {
	t.Parallel()
	rules := alertsOnly(t)
	fires, silent := make(map[string]bool), make(map[string]bool)
	for _, s := range scenarios(t) {
		for _, moment := range s.PromqlExprTest {
			if moment.Expr != everythingFiring {
				continue
			}
			firing := make(map[string]bool)
			for _, sample := range moment.ExpSamples {
				firing[sample.Labels] = true
				fires[sample.Labels] = true
			}
			for _, r := range rules {
				if !firing[r.firing()] && s.feeds(r) {
					silent[r.firing()] = true
				}
			}
		}
	}
	for _, r := range rules {
		if !fires[r.firing()] {
			t.Errorf("%s (%s): no scenario in which it fires", r.Alert, r.Labels["severity"])
		}
		if !silent[r.firing()] {
			t.Errorf("%s (%s): no scenario that has its metrics and in which it is silent", r.Alert, r.Labels["severity"])
		}
		delete(fires, r.firing())
	}
	for labels := range fires {
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.firing() == labels }) {
			t.Errorf("a scenario expects %s, which is no alert", labels)
		}
	}
}

// firing is how the alert is written in what a scenario expects.
func (r rule) firing() string {
	return fmt.Sprintf(`{alertname=%q, severity=%q}`, r.Alert, r.Labels["severity"])
}

// feeds reports whether the scenario has a series for every metric that the rule reads from the program.
func (s scenario) feeds(r rule) bool {
	for _, read := range selectors(r.Expr) {
		if strings.Contains(read.name, ":") {
			continue
		}
		fed := false
		for _, input := range s.InputSeries {
			fed = fed || strings.HasPrefix(input.Series, read.name+"{")
		}
		if !fed {
			return false
		}
	}
	return true
}

// TestPromtool runs Prometheus's own checks of the rules and the scenarios.
func TestPromtool(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("promtool is missing: run scripts/setup")
		}
		t.Skip("promtool is not installed; scripts/setup installs it")
	}
	for _, arguments := range [][]string{
		{"check", "rules", "rules.yaml", "switch_rules.yaml"},
		{"check", "rules", rulesOf(t, "plan", plan.Expressions([]string{"confirm", plan.PathStore}, 7*24*time.Hour))},
		{"check", "rules", rulesOf(t, "dashboard", dashboardExpressions())},
		{"check", "config", "../deploy/prometheus.yml"},
		{"check", "config", "../deploy/prometheus-compose.yml"},
		append([]string{"test", "rules"}, scenarioFiles()...),
	} {
		out, err := exec.CommandContext(t.Context(), promtool, arguments...).CombinedOutput()
		if err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
	}
}

// rulesOf is a file of rules with expressions that are no rules, to be checked like them.
func rulesOf(t *testing.T, name string, expressions []string) string {
	t.Helper()
	text := "groups:\n- name: " + name + "\n  rules:\n"
	for n, expr := range expressions {
		text += fmt.Sprintf("  - record: %s:%d\n    expr: %q\n", name, n, expr)
	}
	path := filepath.Join(t.TempDir(), name+".yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func runbooks(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(runbookDir, "*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no runbooks in %s (%v)", runbookDir, err)
	}
	return paths
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAlertmanager: the configuration that is shipped is one, and each of its inhibitions names alerts that there are.
func TestAlertmanager(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), program(t, "amtool"), "check-config", "../deploy/alertmanager.yml").CombinedOutput(); err != nil {
		t.Errorf("amtool check-config: %v\n%s", err, out)
	}
	known := []string{deadMansSwitch(t).Alert}
	for _, r := range alertsOnly(t) {
		known = append(known, r.Alert)
	}
	for _, m := range regexp.MustCompile(`alertname !?=~? *"?([\w|]+)`).FindAllStringSubmatch(read(t, "../deploy/alertmanager.yml"), -1) {
		for name := range strings.SplitSeq(m[1], "|") {
			if !slices.Contains(known, name) {
				t.Errorf("alertmanager.yml names %s, which is no alert", name)
			}
		}
	}
}
