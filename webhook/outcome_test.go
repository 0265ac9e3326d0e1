package webhook_test

import (
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/pgclient"
	"daesa/webhook"
)

// TestOutcomes_Agree: the outcomes of the code, of the table and of the metric are the same twelve, and every counter
// is there before anything has happened.
func TestOutcomes_Agree(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	var want []string
	for _, o := range webhook.Outcomes() {
		want = append(want, string(o))
		if got := s.counted(t, "daesa_webhook_outcomes_total", string(o)); got != 0 {
			t.Errorf("got %d for %s, want 0", got, o)
		}
	}
	if len(want) != 12 {
		t.Errorf("got %d outcomes, want 12", len(want))
	}
	check := one[string](t, s.db, `SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'deliveries_outcome_known'`)
	var got []string
	for _, match := range regexp.MustCompile(`'([a-z_]+)'`).FindAllStringSubmatch(check, -1) {
		if match[1] != "received" {
			got = append(got, match[1])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the table knows %v, the code %v", got, want)
	}
	for _, reason := range pgclient.Reasons() {
		s.counted(t, "daesa_webhook_query_failed_total", string(reason))
	}
	for metric, labels := range map[string][][]string{
		"daesa_webhook_seconds": {{"yes"}, {"no"}}, "daesa_webhook_query_seconds": {{"answered"}, {"failed"}},
		"daesa_webhook_budget_left_seconds": {nil}, "daesa_webhook_reaped_total": {nil}, "daesa_webhook_not_parked_total": {nil},
	} {
		for _, label := range labels {
			s.counted(t, metric, label...)
		}
	}
}

// TestRefusal_Problems: every refusal finds its row, and its answer names the outcome.
func TestRefusal_Problems(t *testing.T) {
	t.Parallel()
	problems, err := web.NewProblems(refusals())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		outcome webhook.Outcome
		is      error
	}{
		{webhook.OutcomeBodyUnparsable, webhook.ErrBodyUnparsable},
		{webhook.OutcomeSignatureRejected, webhook.ErrSignatureRejected},
		{webhook.OutcomePaymentNotFound, webhook.ErrPaymentNotFound},
		{webhook.OutcomeQueryFailed, webhook.ErrQueryFailed},
		{webhook.OutcomeStateMismatch, webhook.ErrStateMismatch},
		{webhook.OutcomeApplyFailed, webhook.ErrApplyFailed},
		{webhook.OutcomeDBFailed, webhook.ErrDBFailed},
	} {
		var refusal error = &webhook.Refusal{Outcome: test.outcome, Reason: "why"}
		if !errors.Is(refusal, test.is) || !strings.Contains(refusal.Error(), "why") {
			t.Errorf("%s: got %v, want it to be %v", test.outcome, refusal, test.is)
		}
		if got := problems.Lookup(refusal); got.Code != string(test.outcome) || got.Extra["outcome"] != test.outcome || got.Status == http.StatusOK {
			t.Errorf("%s: got problem %+v", test.outcome, got)
		}
	}
}

// TestNew_Refuses: a configuration that cannot work is refused with what to set.
func TestNew_Refuses(t *testing.T) {
	t.Parallel()
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: postgrestest.NewURL(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	good := webhook.Config{
		DB: pool, Ledger: &ledger.Ledger{}, Gateway: &pgclient.Client{}, Metrics: webhook.NewMetrics(prometheus.NewPedanticRegistry()),
		Log: slog.New(slog.DiscardHandler), Now: time.Now,
	}
	if _, err := webhook.New(good); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*webhook.Config){
		"DB": func(c *webhook.Config) { c.DB = nil }, "Ledger": func(c *webhook.Config) { c.Ledger = nil },
		"Gateway": func(c *webhook.Config) { c.Gateway = nil }, "Metrics": func(c *webhook.Config) { c.Metrics = nil },
		"Log": func(c *webhook.Config) { c.Log = nil }, "Now": func(c *webhook.Config) { c.Now = nil },
		"Deadline":        func(c *webhook.Config) { c.Deadline = 3 * time.Second },
		"not be negative": func(c *webhook.Config) { c.BodyBudget = -1 },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := webhook.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
}
