package app_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/app"
	"daesa/internal/postgres/postgrestest"
	"daesa/pgclient"
)

// TestGuardSettings: what is not set is as declared; what is set reaches the guard, and what follows from it fits.
func TestGuardSettings(t *testing.T) {
	t.Parallel()
	plain, err := app.GuardsOf()
	if err != nil {
		t.Fatal(err)
	}
	if plain.Paths != (pgclient.Paths{}) || plain.Breakers != (pgclient.Breakers{}) || plain.OneLine != 0 || plain.WebhookDeadline != 0 {
		t.Errorf("got %+v without a setting, want the declared limits", plain)
	}
	set, err := app.GuardsOf("--path-confirm-cap=20", "--path-confirm-attempt=2s", "--path-confirm-attempts=1",
		"--path-query-cap=7", "--path-query-attempt=15s", "--no-breakers", "--one-line=100")
	if err != nil {
		t.Fatal(err)
	}
	if set.OneLine != 100 || set.Breakers != pgclient.NeverOpen() || set.Paths.Confirm.Attempt != 2*time.Second ||
		set.WebhookQueryBudget <= 15*time.Second || set.WebhookDeadline <= set.WebhookQueryBudget {
		t.Errorf("got %+v", set)
	}
	set.DatabaseURL, set.TossSecretKey, set.TossURL = postgrestest.NewURL(t), secretKey, "http://127.0.0.1:9"
	set.Listen, set.PrivateListen = "127.0.0.1:0", "127.0.0.1:0"
	service, err := app.New(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.Stop() })
	if got := gauges(t, service.Registry(), "daesa_pgclient_cap_calls"); got["confirm"] != 20 || got["query"] != 7 || got["cancel"] != 10 {
		t.Errorf("got caps %v, want 20, 7 and the declared 10", got)
	}
}

// gauges reads a gauge by its only label.
func gauges(t *testing.T, registry *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			found[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return found
}
