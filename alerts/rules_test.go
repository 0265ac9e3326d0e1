package alerts

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// rule is one entry of rules.yaml: an alert, or a series recorded for one.
type rule struct {
	Alert       string            `yaml:"alert"`
	Record      string            `yaml:"record"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// scenario is one entry of a file of scenarios: series, and what must and must not fire on them.
type scenario struct {
	Name        string `yaml:"name"`
	Interval    string `yaml:"interval"`
	InputSeries []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	AlertRuleTest []struct {
		EvalTime  string    `yaml:"eval_time"`
		Alertname string    `yaml:"alertname"`
		ExpAlerts yaml.Node `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
	PromqlExprTest []struct {
		Expr       string   `yaml:"expr"`
		EvalTime   string   `yaml:"eval_time"`
		ExpSamples []sample `yaml:"exp_samples"`
	} `yaml:"promql_expr_test"`
}

// sample is one line of an expected answer.
type sample struct {
	Labels string `yaml:"labels"`
	Value  string `yaml:"value"`
}

// everythingFiring is the expression that shows all alerts of a moment, so that what its answer lacks is silent.
const everythingFiring = `count by (alertname, severity) (ALERTS{alertstate="firing"})`

// scenarioFiles are the files of scenarios.
func scenarioFiles() []string {
	return []string{"rules_test.yaml", "rules_day_test.yaml", "rules_store_test.yaml", "rules_objectives_test.yaml"}
}

// load decodes a file of this folder and refuses fields that nobody reads, so that a misspelled one is noticed.
func load(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// allRules lists every rule of rules.yaml.
func allRules(t *testing.T) []rule {
	t.Helper()
	return rulesIn(t, "rules.yaml")
}

// deadMansSwitch is the one alert that fires always, in a file of its own: no scenario of the others is without it.
func deadMansSwitch(t *testing.T) rule {
	t.Helper()
	all := rulesIn(t, "switch_rules.yaml")
	if len(all) != 1 {
		t.Fatalf("switch_rules.yaml has %d rules, want one", len(all))
	}
	return all[0]
}

func rulesIn(t *testing.T, name string) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	load(t, name, &file)
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no rules", name)
	}
	return all
}

// alertsOnly lists the rules that raise an alert.
func alertsOnly(t *testing.T) []rule {
	t.Helper()
	return slices.DeleteFunc(allRules(t), func(r rule) bool { return r.Alert == "" })
}

// scenarios lists every scenario of every file.
func scenarios(t *testing.T) []scenario {
	t.Helper()
	var all []scenario
	for _, name := range scenarioFiles() {
		var file struct {
			RuleFiles          []string   `yaml:"rule_files"`
			EvaluationInterval string     `yaml:"evaluation_interval"`
			Tests              []scenario `yaml:"tests"`
		}
		load(t, name, &file)
		all = append(all, file.Tests...)
	}
	return all
}
