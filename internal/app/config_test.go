package app_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/app"
	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/pgclient/tosssim"
)

// TestNew_RefusesSettings stops a configuration that cannot work at start, with one sentence that names what to set.
func TestNew_RefusesSettings(t *testing.T) {
	t.Parallel()
	url := postgrestest.NewURL(t)
	for _, test := range []struct {
		name   string
		change func(*app.Config)
		want   string
	}{
		{"no database", func(c *app.Config) { c.DatabaseURL = "" }, "DAESA_DATABASE_URL"},
		{"no secret key", func(c *app.Config) { c.TossSecretKey = "" }, "TOSS_SECRET_KEY"},
		{"a client key", func(c *app.Config) { c.TossSecretKey = "test_ck_abc" }, "TOSS_SECRET_KEY"},
		{"a widget's client key", func(c *app.Config) { c.TossSecretKey = "live_gck_abc" }, "TOSS_SECRET_KEY"},
		{"no replicas", func(c *app.Config) { c.Replicas = -1 }, "DAESA_REPLICAS"},
		{"no approvals", func(c *app.Config) { c.ConfirmRateLimit = -5 }, "DAESA_CONFIRM_RATE_LIMIT"},
		{"no deliveries", func(c *app.Config) { c.RateLimit = -5 }, "DAESA_WEBHOOK_RATE_LIMIT"},
		{"more deliveries than can be counted", func(c *app.Config) { c.RateLimit = 1 << 40 }, "DAESA_WEBHOOK_RATE_LIMIT"},
		{"no deliveries of the gateway", func(c *app.Config) { c.GatewayRateLimit = -5 }, "DAESA_GATEWAY_RATE_LIMIT"},
		{"an odd address of the gateway", func(c *app.Config) { c.GatewayAddresses = []string{"13.124.18.999"} }, "DAESA_GATEWAY_ADDRESSES"},
		{"metrics in public", func(c *app.Config) { c.Listen, c.PrivateListen = "127.0.0.1:9", "127.0.0.1:9" }, "DAESA_PRIVATE_LISTEN"},
		{"unsigned events", func(c *app.Config) { c.MerchantURL = "https://shop.example/events" }, "DAESA_EVENT_SECRET"},
		{"half a merchant address", func(c *app.Config) {
			c.MerchantURL, c.EventSecret = "shop.example", "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ="
		}, "DAESA_MERCHANT_URL"},
		{"an odd customer address", func(c *app.Config) { c.CustomerURL, c.EventSecret = "ftp://x", "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ=" }, "DAESA_CUSTOMER_URL"},
		{"half a gateway address", func(c *app.Config) { c.TossURL = "api.tosspayments.com" }, "TOSS_BASE_URL"},
		{"a nameless API key", func(c *app.Config) { c.APIKeys = []string{"secret-without-a-name"} }, "DAESA_API_KEYS"},
		{"an API key that can be guessed", func(c *app.Config) { c.APIKeys = []string{"shop=short"} }, "DAESA_API_KEYS"},
		{"an odd proxy", func(c *app.Config) { c.TrustedProxies = []string{"10.0.0.0/99"} }, "DAESA_TRUSTED_PROXIES"},
		{"everybody is a proxy", func(c *app.Config) { c.TrustedProxies = []string{"10.0.0.0/8", "::/0"} }, "DAESA_TRUSTED_PROXIES"},
		{"everybody is a proxy, in IPv4", func(c *app.Config) { c.TrustedProxies = []string{"::ffff:0.0.0.0/96"} }, "DAESA_TRUSTED_PROXIES"},
		{"an odd order pattern", func(c *app.Config) { c.OrderPattern = "order-(" }, "DAESA_ORDER_PATTERN"},
		{"a taken address", func(c *app.Config) { c.Listen = "192.0.2.1:80" }, "DAESA_LISTEN"},
		{"a taken private address", func(c *app.Config) { c.PrivateListen = "192.0.2.1:80" }, "DAESA_PRIVATE_LISTEN"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cfg := app.Config{DatabaseURL: url, TossSecretKey: secretKey, TossURL: "http://127.0.0.1:9", Listen: "127.0.0.1:0", PrivateListen: "127.0.0.1:0"}
			test.change(&cfg)
			service, err := app.New(t.Context(), cfg)
			if err == nil {
				_ = service.Stop()
				t.Fatal("started")
			}
			if text := err.Error(); !strings.Contains(text, test.want) || strings.Contains(text, "\n") || len(text) > 300 {
				t.Errorf("got %q, want one sentence that names %s", text, test.want)
			}
			if strings.Contains(err.Error(), "short") && test.name == "an API key that can be guessed" && strings.Contains(err.Error(), "=short") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}

func TestNew_RefusesUnmigratedDatabase(t *testing.T) {
	t.Parallel()
	_, err := app.New(t.Context(), app.Config{DatabaseURL: postgrestest.NewEmptyURL(t), TossSecretKey: secretKey, Listen: "127.0.0.1:0", PrivateListen: "127.0.0.1:0"})
	if err == nil || !strings.Contains(err.Error(), "daesa migrate") {
		t.Errorf("got %v, want to be told to run daesa migrate", err)
	}
}

// command runs the program with a command line and returns its exit code and what it printed.
func command(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = app.Main(args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestMain_CommandLine(t *testing.T) {
	t.Parallel()
	url := postgrestest.NewURL(t)
	for _, test := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no command", nil, 2, "serve"},
		{"an unknown command", []string{"payout"}, 2, "payout"},
		{"an unknown flag", []string{"audit", "--colour"}, 2, "colour"},
		{"a flag with one dash", []string{"audit", "-database-url", url}, 2, ""},
		{"a flag with two dashes", []string{"audit", "--database-url=" + url}, 2, ""},
		{"a day that is none", []string{"audit", "-database-url", url, "-day", "yesterday"}, 2, "yesterday"},
		{"an odd order pattern", []string{"audit", "-database-url", url, "-order-pattern", "("}, 2, "DAESA_ORDER_PATTERN"},
		{"nothing to audit", []string{"audit"}, 2, "DAESA_DATABASE_URL"},
		{"nothing to migrate", []string{"migrate"}, 1, "DAESA_DATABASE_URL"},
		{"a live key on an embedded database", []string{"serve", "-embedded", "-toss-secret-key", "live_sk_abc"}, 1, "DAESA_DATABASE_URL"},
		{"two databases", []string{"serve", "-embedded", "-database-url", url}, 1, "not both"},
		{"neither enforced nor recorded", []string{"serve", "-admission", "off"}, 2, "record"},
		{"serve without a key", []string{"serve", "-database-url", url}, 1, "TOSS_SECRET_KEY"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := command(test.args...)
			if code != test.code || !strings.Contains(stdout+stderr, test.says) {
				t.Errorf("got %d and %q, want %d and %q", code, stdout+stderr, test.code, test.says)
			}
		})
	}
}

// TestMain_Migrate brings an empty database up twice; before that nothing can be served from it.
func TestMain_Migrate(t *testing.T) {
	t.Parallel()
	url := postgrestest.NewEmptyURL(t)
	if code, _, stderr := command("serve", "-database-url", url, "-toss-secret-key", secretKey, "-listen", "127.0.0.1:0"); code != 1 || !strings.Contains(stderr, "daesa migrate") {
		t.Errorf("got %d and %q, want serve refused", code, stderr)
	}
	for range 2 {
		if code, _, stderr := command("migrate", "-database-url", url); code != 0 {
			t.Fatalf("got %d and %q, want 0", code, stderr)
		}
	}
}

// TestMain_Audit exits with 0 when the books agree, with 1 on a break, and with 2 when that could not be seen.
func TestMain_Audit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openedNow)
	w.clock.Set(time.Now())
	audit := func(want int, says string) {
		t.Helper()
		args := []string{
			"audit", "-database-url", w.url,
			"-opening-at", w.cfg.OpeningAt.Format("2006-01-02T15:04:05Z07:00"),
		}
		if code, stdout, stderr := command(args...); code != want || !strings.Contains(stdout, says) {
			t.Errorf("got %d, want %d:\n%s%s", code, want, stdout, stderr)
		}
		if code, stdout, _ := command(append(args, "-json")...); code != want || !strings.HasPrefix(stdout, "{") {
			t.Errorf("as JSON: got %d, want %d:\n%s", code, want, stdout)
		}
	}
	audit(2, "") // the list was never read
	key := w.sell("order-audit", 50_000)
	w.dashboard(key, 20_000)
	w.wantDelivery(w.newest(key), 200)
	w.readList()
	audit(0, "")
	w.must(w.sim.PutTransaction([]byte(`{"mId":"tsimshop01","transactionKey":"txrd_nobody","paymentKey":"` + key + `","orderId":"order-audit",
		"method":"카드","status":"PARTIAL_CANCELED","transactionAt":"` + w.clock.Now().Format("2006-01-02T15:04:05Z07:00") + `","currency":"KRW","amount":7000}`)))
	w.readList()
	audit(0, "") // owed, and asked about
	w.exec(`DELETE FROM work`)
	before := w.text(`SELECT count(*)::text FROM audit_runs`) + w.text(`SELECT count(*)::text FROM mismatches`)
	audit(1, "")
	if after := w.text(`SELECT count(*)::text FROM audit_runs`) + w.text(`SELECT count(*)::text FROM mismatches`); after != before {
		t.Errorf("the command wrote: runs and mismatches were %s and are %s", before, after)
	}
}

// openedNow opens the books by the clock on the wall, which is what a command goes by.
func openedNow(c *app.Config, _ *tosssim.Config) { c.OpeningAt = time.Now().Add(-time.Hour) }

func (w *world) exec(sql string) {
	w.Helper()
	w.must(postgres.InTx(w.Context(), w.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(w.Context(), sql)
		return err
	}))
}
