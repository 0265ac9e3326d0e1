package pgclient

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestNew_RefusesNonsenseWithOneSentence(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no key":              {func(c *Config) { c.SecretKey = "" }, "missing"},
		"byte order mark":     {func(c *Config) { c.SecretKey = "\ufeff" + c.SecretKey }, "copied whole"},
		"colon":               {func(c *Config) { c.SecretKey += ":" }, "copied whole"},
		"client key":          {func(c *Config) { c.SecretKey = "test_ck_1" }, "client key"},
		"widget client key":   {func(c *Config) { c.SecretKey = "live_gck_1" }, "client key"},
		"security key":        {func(c *Config) { c.SecurityKey = "0f" }, "64"},
		"address":             {func(c *Config) { c.BaseURL = "api.tosspayments.com" }, "https://"},
		"address with a user": {func(c *Config) { c.BaseURL = "https://a@b" }, "https://"},
		"live key in clear":   {func(c *Config) { c.BaseURL, c.SecretKey = "http://pg.test", "live_sk_1" }, "https"},
		"replicas":            {func(c *Config) { c.Replicas = -1 }, "replicas"},
		"parts over total":    {func(c *Config) { c.Paths.Confirm.Total = 30 * time.Second }, "total"},
		"three attempts":      {func(c *Config) { c.Paths.Cancel.Attempts = 3 }, "attempts"},
		"slow connect":        {func(c *Config) { c.Paths.Query.Connect = 4 * time.Second }, "connecting"},
		"cap":                 {func(c *Config) { c.Paths.List.Cap = -1 }, "cap"},
		"size":                {func(c *Config) { c.Paths.Recover.BodyMax = -1 }, "limits"},
		"back-off":            {func(c *Config) { c.Paths.Confirm.BackoffMin = 2 * time.Second }, "back-off"},
		"breaker":             {func(c *Config) { c.Breakers.Query.MinCalls = 11 }, "query breaker"},
		"no metrics":          {func(c *Config) { c.Metrics = nil }, "metrics"},
	} {
		cfg := testConfig(tripper(nil))
		test.change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "0123456789abcdef") {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
	cfg := testConfig(tripper(nil))
	cfg.SecretKey, cfg.BaseURL = "live_gsk_1", "http://127.0.0.1:1/"
	if c := mustNew(t, cfg); !c.Live() {
		t.Error("a live key passes for a test key")
	}
	if mustNew(t, testConfig(tripper(nil))).Live() {
		t.Error("a test key passes for a live key")
	}
}

func TestDeclaredPaths_FitTheirBudgets(t *testing.T) {
	t.Parallel()
	for _, name := range PathNames() {
		path := declaredPaths().named(name)
		if err := path.validate(name); err != nil {
			t.Error(err)
		}
		if path.share(1) != path.Cap || path.share(1000) != 1 {
			t.Errorf("%s: shares %d and %d", name, path.share(1), path.share(1000))
		}
	}
	if query := declaredPaths().Query; query.Total > 3*time.Second || query.Attempts != 1 {
		t.Error("a notice would wait too long")
	}
}

func TestMetrics_EverySeriesExistsFromTheStart(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	cfg := testConfig(tripper(nil))
	cfg.Metrics = NewMetrics(registry)
	mustNew(t, cfg)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	paths, outcomes := len(PathNames()), len(results())
	want := map[string]int{
		"daesa_pgclient_call_seconds": paths * outcomes, "daesa_pgclient_queue_wait_seconds": paths,
		"daesa_pgclient_in_flight_calls": paths, "daesa_pgclient_cap_calls": paths,
		"daesa_pgclient_refusals_total": paths * len(Refusals()), "daesa_pgclient_answers_total": paths * outcomes,
		"daesa_pgclient_breaker_state": len(BreakerNames()), "daesa_pgclient_key_refused_total": 1,
		"daesa_pgclient_unknown_words_total": len(unknownKinds()), "daesa_pgclient_second_attempts_total": paths,
		"daesa_pgclient_cap_refused_ratio": 2 * paths, "daesa_pgclient_slot_seconds": paths * len(slotUses()),
	}
	for _, family := range families {
		if got := len(family.GetMetric()); got != want[family.GetName()] {
			t.Errorf("%s: %d series, want %d", family.GetName(), got, want[family.GetName()])
		}
		delete(want, family.GetName())
	}
	if len(want) != 0 {
		t.Errorf("missing: %v", want)
	}
}
