package app_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daesa/internal/app"
)

// golden holds text against a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s; -update writes it (-want +got):\n%s", path, diff)
	}
}

// plan runs `daesa plan` and returns its exit code and all that it printed.
func plan(args ...string) (code int, printed string) {
	var out bytes.Buffer
	code = app.Main(append([]string{"plan"}, args...), &out, &out)
	return code, out.String()
}

func TestPlan_FromFlags(t *testing.T) {
	t.Parallel()
	code, got := plan("--confirm-rate=30", "--confirm-p99=1s", "--query-rate=6.7", "--query-p99=478ms", "--store-rate=200", "--store-p99=61ms", "--failing=100", "--fresh=100")
	if code != app.ExitOK {
		t.Errorf("exit code %d", code)
	}
	golden(t, "plan_flags.txt", got)
	code, got = plan("--confirm-rate=50", "--confirm-p99=5s", "--replicas=3", "--budget=100")
	if code != app.ExitOK {
		t.Errorf("exit code %d", code)
	}
	golden(t, "plan_short.txt", got)
}

func TestPlan_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--confirm-rate=30"}, {"--confirm-rate=-1", "--confirm-p99=1s"}, {"--budget=0", "--failing=1"}, {"--over=1s", "--failing=1"}} {
		if code, got := plan(args...); code != app.ExitIncomplete || !strings.HasPrefix(got, "daesa: ") {
			t.Errorf("%v: got %d and %q", args, code, got)
		}
	}
}

// TestPlan_FromPrometheus answers as a Prometheus does for which every question has a number of its own.
func TestPlan_FromPrometheus(t *testing.T) {
	t.Parallel()
	answers := []struct{ asked, value string }{
		{`count(daesa_pgclient_cap_calls`, "2"},
		{`outcome!~`, "100"},
		{`sum(increase(daesa_webhook_outcomes_total[1m]))`, "120"},
		{`refused_before_sending_krw`, "1234567"},
		{`histogram_quantile(0.99, sum by (le) (increase(daesa_pgclient_slot_seconds_bucket{path="query"`, "NaN"},
		{`histogram_quantile`, "5"},
		{`refusals_total`, "0.83"},
		{`rate(daesa_pgclient_queue_wait_seconds_count`, "50"},
		{`sum(daesa_pgclient_cap_calls`, "40"},
	}
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := r.FormValue("query")
		result := []any{}
		if !strings.Contains(asked, "daesa_store_") {
			for _, a := range answers {
				if strings.Contains(asked, a.asked) {
					result = []any{map[string]any{"metric": map[string]string{}, "value": []any{1764460800, a.value}}}
					break
				}
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": result}})
	}))
	t.Cleanup(prometheus.Close)
	code, got := plan("--prometheus="+prometheus.URL, "--over=24h")
	if code != app.ExitOK {
		t.Errorf("exit code %d", code)
	}
	golden(t, "plan_prometheus.txt", got)
	code, got = plan("--prometheus="+prometheus.URL, "--confirm-rate=4", "--json")
	if code != app.ExitOK {
		t.Errorf("exit code %d", code)
	}
	golden(t, "plan_prometheus.json", got)
	prometheus.Close()
	if code, got := plan("--prometheus=" + prometheus.URL); code != app.ExitBreaks || !strings.Contains(got, "ask Prometheus") {
		t.Errorf("without a Prometheus: got %d and %q", code, got)
	}
}
