package alerts

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// hurry is how much more often everything happens in the end-to-end test: jobs run, alarms are weighed and notifications
// sent, so that an hour of all these is two minutes.
const hurry = 30

// ages are the seconds that expressions compare ages with, which are as much shorter; untouched are numbers that are not such,
// or count what goes by the calendar.
var (
	ages      = []int{300, 600, 900, 1800, 3600, 10800, 14400}
	untouched = []int{500, 21600, 93600, 129600, 1000000}
)

// hurriedRules are the rules of a file with every span of time hurry times shorter.
func hurriedRules(t *testing.T, name string) string {
	t.Helper()
	text := read(t, name)
	for _, span := range []string{`(\[)(\d+[smhd])(\])`, `(?m)(^ +for: )(\d+[smhd])($)`, `(offset )(\d+[smhd])()`} {
		text = regexp.MustCompile(span).ReplaceAllStringFunc(text, func(found string) string {
			parts := regexp.MustCompile(span).FindStringSubmatch(found)
			short := hurriedSpan(t, parts[2])
			if strings.HasSuffix(parts[1], "for: ") {
				short = max(short, patience)
			}
			return parts[1] + written(short) + parts[3]
		})
	}
	return regexp.MustCompile(`([<>]=?) (\d+)\b`).ReplaceAllStringFunc(text, func(found string) string {
		comparison, number, _ := strings.Cut(found, " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(ages, n) {
			n /= hurry
		} else if n >= 100 && !slices.Contains(untouched, n) {
			t.Errorf("%s compares with %d: is it an age?", name, n)
		}
		return fmt.Sprint(comparison, " ", n)
	})
}

// patience is what every alarm waits at least: a machine that is busy misses a scrape or two.
const patience = 10 * time.Second

// written is a span as Prometheus and Alertmanager read it.
func written(span time.Duration) string { return fmt.Sprintf("%dms", span.Milliseconds()) }

// hurriedSpan reads a span of time as Prometheus and Alertmanager write it, and makes it hurry times shorter.
func hurriedSpan(t *testing.T, text string) time.Duration {
	t.Helper()
	unit := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[text[len(text)-1]]
	n, err := strconv.Atoi(text[:len(text)-1])
	if err != nil || unit == 0 {
		t.Fatalf("%q is no span of time that this test knows", text)
	}
	return time.Duration(n) * unit / hurry
}

// hurriedAlertmanager is the configuration that is shipped, with every span shorter, and with the test in place of each
// receiver: its routes, groups and inhibitions are what is tried.
func hurriedAlertmanager(t *testing.T, inbox string) string {
	t.Helper()
	var config map[string]any
	if err := yaml.Unmarshal([]byte(read(t, "../deploy/alertmanager.yml")), &config); err != nil {
		t.Fatal(err)
	}
	hurryIn(t, config)
	receivers, ok := config["receivers"].([]any)
	if !ok {
		t.Fatal("alertmanager.yml has no receivers")
	}
	for n, each := range receivers {
		receiver, ok := each.(map[string]any)
		if !ok {
			t.Fatalf("receiver %d is no mapping", n)
		}
		receivers[n] = map[string]any{
			"name":            receiver["name"],
			"webhook_configs": []any{map[string]any{"url": inbox, "send_resolved": true}},
		}
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// hurryIn makes every span of a configuration shorter, however deep.
func hurryIn(t *testing.T, node any) {
	t.Helper()
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			text, isText := value.(string)
			if isText && (strings.HasPrefix(key, "group_") || strings.HasSuffix(key, "_interval") || strings.HasSuffix(key, "_timeout")) {
				node[key] = written(hurriedSpan(t, text))
			}
			hurryIn(t, value)
		}
	case []any:
		for _, value := range node {
			hurryIn(t, value)
		}
	}
}

// TestHurriedRules_LeaveNoSpan: whatever span the rules come to have, the end-to-end test makes it shorter too.
func TestHurriedRules_LeaveNoSpan(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"rules.yaml", "switch_rules.yaml"} {
		text := hurriedRules(t, name)
		if left := regexp.MustCompile(`\[\d+[smhd]\]|for: \d+[smhd]\b|offset \d+[smhd]\b|\[\d+[smhd]:`).FindString(text); left != "" {
			t.Errorf("%s: %s is as long as before", name, left)
		}
		if name == "rules.yaml" && !strings.Contains(text, "[30000ms]") {
			t.Errorf("%s: no span became 30 s", name)
		}
	}
}
