package app_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/admission"
	"daesa/internal/app"
	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/pgclient/tosssim"
)

// TestAdmissionSettings reads what the command line says of admission.
func TestAdmissionSettings(t *testing.T) {
	t.Parallel()
	plain, err := app.GuardsOf()
	if err != nil {
		t.Fatal(err)
	}
	if plain.RecordOnly || plain.RateLimit != app.DefaultRateLimit || plain.ConfirmRateLimit != app.DefaultConfirmRateLimit || plain.GatewayAddresses != nil {
		t.Errorf("got %+v without a setting", plain)
	}
	set, err := app.GuardsOf("--admission=record", "--webhook-rate-limit=1", "--gateway-rate-limit=2", "--confirm-rate-limit=3",
		"--gateway-addresses=192.0.2.1,198.51.100.0/24", "--trusted-proxies=10.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	if !set.RecordOnly || set.RateLimit != 1 || set.GatewayRateLimit != 2 || set.ConfirmRateLimit != 3 ||
		len(set.GatewayAddresses) != 2 || len(set.TrustedProxies) != 1 {
		t.Errorf("got %+v", set)
	}
}

// counted is the sum of a metric of an instance over all its series.
func (i *instance) counted(name string) int {
	i.t.Helper()
	sum := 0.0
	for series, value := range series(i.t, i.Registry()) {
		if strings.HasPrefix(series, name+"{") {
			sum += value
		}
	}
	return int(sum)
}

// TestRateLimit_OneLimitOfAllInstances sends 1,500 notices within 30 s, evenly over three instances. Together they let
// the burst of 300 and what refills pass, not each of them.
func TestRateLimit_OneLimitOfAllInstances(t *testing.T) {
	t.Parallel()
	const limit, sent, within = 300, 1500, 30 * time.Second
	w := newWorld(t, func(c *app.Config, _ *tosssim.Config) { c.RateLimit, c.Replicas = limit, 3 })
	instances := []*instance{w.app, w.start(), w.start()}
	codes := make(map[int]int)
	for n := range sent {
		codes[instances[n%len(instances)].notify(nil).code]++
		w.clock.Advance(within / sent)
	}
	const refilled = limit / 2
	if passed := codes[http.StatusOK]; passed < limit+refilled-2 || passed > limit+refilled {
		t.Errorf("got %v, want about %d passed", codes, limit+refilled)
	}
	refused, unasked := 0, 0
	for _, i := range instances {
		refused += i.counted("daesa_admission_rate_refused_total")
		unasked += i.counted("daesa_admission_rate_unasked_total")
	}
	if refused != codes[http.StatusTooManyRequests] || refused+codes[http.StatusOK] != sent {
		t.Errorf("got %d refusals counted and %v answered", refused, codes)
	}
	if unasked < refused/2 {
		t.Errorf("the database was asked about %d of %d refusals, want most to be known without asking", refused-unasked, refused)
	}
	if rows := w.number(`SELECT count(*) FROM deliveries`); int(rows) != codes[http.StatusOK] {
		t.Errorf("got %d deliveries in the books, want those that passed: %v", rows, codes)
	}
}

// disguises are the ways in which one socket address claims to be another one with every request.
func disguises() map[string]func(n int) http.Header {
	v4 := func(n int) string { return fmt.Sprintf("198.51.100.%d", n) }
	v6 := func(n int) string { return fmt.Sprintf("2001:db8:%x::%x", n, n) }
	of := func(name string, write func(n int) []string) func(int) http.Header {
		return func(n int) http.Header { return http.Header{name: write(n)} }
	}
	kinds := map[string]func(int) http.Header{
		"a list":          of("X-Forwarded-For", func(n int) []string { return []string{v4(n) + ", " + v4(n+1) + ",10.0.0.1"} }),
		"several headers": of("X-Forwarded-For", func(n int) []string { return []string{v4(n), v4(n + 1)} }),
		"a port":          of("X-Forwarded-For", func(n int) []string { return []string{v4(n) + ":443"} }),
		"IPv6":            of("X-Forwarded-For", func(n int) []string { return []string{v6(n)} }),
		"brackets":        of("X-Forwarded-For", func(n int) []string { return []string{"[" + v6(n) + "]:443"} }),
		"a zone":          of("X-Forwarded-For", func(n int) []string { return []string{v6(n) + "%eth0"} }),
		"mapped":          of("X-Forwarded-For", func(n int) []string { return []string{"::ffff:" + v4(n)} }),
		"garbage":         of("X-Forwarded-For", func(n int) []string { return []string{fmt.Sprintf("unknown-%d, \t,,%s,", n, strings.Repeat("<", n))} }),
		"the proxy's own": of("X-Forwarded-For", func(int) []string { return []string{"127.0.0.1"} }),
		"RFC 7239":        of("Forwarded", func(n int) []string { return []string{fmt.Sprintf(`for="[%s]:1";proto=https`, v6(n))} }),
	}
	for _, name := range []string{"X-Real-Ip", "True-Client-Ip", "X-Client-Ip", "Cf-Connecting-Ip", "X-Cluster-Client-Ip", "Fastly-Client-Ip", "X-Forwarded"} {
		kinds[name] = of(name, func(n int) []string { return []string{v4(n)} })
	}
	return kinds
}

// notifyAs is notify with any headers.
func (i *instance) notifyAs(header http.Header) reply {
	i.t.Helper()
	request := mustRequest(i.t, http.MethodPost, i.URL()+"/webhooks/toss")
	maps.Copy(request.Header, header)
	return i.notifyWith(request)
}

// TestRateLimit_Disguises gives one socket the allowance of one client, in whatever way it claims to be many.
func TestRateLimit_Disguises(t *testing.T) {
	t.Parallel()
	const limit = 10
	w := newWorld(t, func(c *app.Config, _ *tosssim.Config) { c.RateLimit = limit })
	for range limit {
		if got := w.app.notify(nil); got.code != http.StatusOK {
			t.Fatalf("got %s within the limit", got.is())
		}
	}
	sent := 0
	for name, disguise := range disguises() {
		for n := range 5 {
			sent++
			if got := w.app.notifyAs(disguise(n)); got.is() != "429 rate_limited" || got.header.Get("Retry-After") == "" {
				t.Errorf("%s: got %s, want 429 and when to come again", name, got.is())
			}
		}
	}
	if got := w.app.counted("daesa_admission_rate_refused_total"); got != sent {
		t.Errorf("got %d refusals counted, want %d", got, sent)
	}
	if got := w.number(`SELECT count(*) FROM rate_limits`); got != 1 {
		t.Errorf("got %d sources, want the one", got)
	}
}

// TestRateLimit_IPv6BehindProxy: a customer of IPv6 has a whole /64 and is one source, however it and its addresses are
// written.
func TestRateLimit_IPv6BehindProxy(t *testing.T) {
	t.Parallel()
	const limit = 10
	w := newWorld(t, func(c *app.Config, _ *tosssim.Config) {
		c.RateLimit, c.TrustedProxies = limit, []string{"::ffff:127.0.0.0/104"}
	})
	codes := make(map[int]int)
	for n := range 3 * limit {
		for _, form := range []string{"2001:db8:1:2::%x", "[2001:db8:1:2::%x]", "[2001:db8:1:2::%x]:443", "2001:0DB8:0001:0002:0000::%x"} {
			codes[w.app.notify(map[string]string{"X-Forwarded-For": fmt.Sprintf(form, n+1)}).code]++
		}
	}
	if codes[http.StatusOK] != limit {
		t.Errorf("got %v, want %d passed", codes, limit)
	}
	if got := w.app.notify(map[string]string{"X-Forwarded-For": "2001:db8:1:3::1"}); got.code != http.StatusOK {
		t.Errorf("the next customer: got %s, want 200", got.is())
	}
	if got := w.text(`SELECT string_agg(rule || ' ' || source, ', ' ORDER BY source) FROM rate_limits`); got != "webhook 2001:db8:1:2::/64, webhook 2001:db8:1:3::/64" {
		t.Errorf("got the sources %s", got)
	}
}

// TestRateLimit_GatewaysOwnRule: a flood of strangers through the proxy that the gateway's notices come through as well
// does not spend what the gateway has.
func TestRateLimit_GatewaysOwnRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *app.Config, _ *tosssim.Config) {
		c.RateLimit, c.GatewayRateLimit, c.GatewayAddresses = 5, 12, []string{"13.124.18.147", "115.92.221.120/29"}
		c.TrustedProxies = []string{"127.0.0.1"}
	})
	passed := func(from string) (n int) {
		for range 30 {
			if got := w.app.notify(map[string]string{"X-Forwarded-For": from}); got.code == http.StatusOK {
				n++
			}
		}
		return n
	}
	for from, want := range map[string]int{"": 5, "203.0.113.9": 5, "13.124.18.147": 12, "115.92.221.125": 12, "13.124.18.148": 5} {
		if got := passed(from); got != want {
			t.Errorf("got %d of 30 passed from %q, want %d", got, from, want)
		}
	}
	values := series(t, w.app.Registry())
	for rule, want := range map[string]float64{"webhook": 75, "webhook_gateway": 36, "confirm": 0} {
		if got := values["daesa_admission_rate_refused_total{rule="+rule+"}"]; got != want {
			t.Errorf("got %v refused under %s, want %v", got, rule, want)
		}
	}
}

// TestRateLimit_RecordOnly refuses nothing and says what it would have refused.
func TestRateLimit_RecordOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *app.Config, _ *tosssim.Config) { c.RateLimit, c.RecordOnly = 5, true })
	for n := range 12 {
		if got := w.app.notify(nil); got.code != http.StatusOK {
			t.Fatalf("notice %d: got %s, want 200", n, got.is())
		}
	}
	if refused, would := w.app.counted("daesa_admission_rate_refused_total"), w.app.counted("daesa_admission_rate_would_refuse_total"); refused != 0 || would != 7 {
		t.Errorf("got %d refused and %d that would be, want 0 and 7", refused, would)
	}
}

// fallbacks is how often an instance counted alone, by reason.
func (i *instance) fallbacks() map[string]int {
	i.t.Helper()
	by := make(map[string]int)
	for name, value := range series(i.t, i.Registry()) {
		if reason, ok := strings.CutPrefix(name, "daesa_admission_rate_fallbacks_total{reason="); ok && value > 0 {
			by[strings.Split(reason, ",")[0]] += int(value)
		}
	}
	return by
}

// TestRateLimit_WithoutAnswer lets the database leave the questions of the limits unanswered, in each way there is. The
// limit still holds, at the instance's share of it, and nothing else of a notice changes.
func TestRateLimit_WithoutAnswer(t *testing.T) {
	t.Parallel()
	const limit, sent = 30, 60
	for _, test := range []struct {
		name, reason string
		trouble      func(w *world, wire *line)
	}{
		{"gone", "failed", func(_ *world, wire *line) { wire.Arm(0, breakage{Stays: true}) }},
		{"slow", "slow", func(w *world, _ *line) {
			holder, err := w.db.Begin(w.Context()) //nolint:forbidigo // it is held open on purpose
			w.must(err)
			w.Cleanup(func() { _ = holder.Rollback(w.Context()) })
			_, err = holder.Exec(w.Context(), `LOCK TABLE rate_limits IN ACCESS EXCLUSIVE MODE`)
			w.must(err)
		}},
		{"busy", "busy", func(w *world, _ *line) { w.hold(w.app.Limits()) }},
		{"refused", "failed", func(w *world, _ *line) {
			_, err := w.db.Exec(w.Context(), `DROP TABLE rate_limits`)
			w.must(err)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			wire := newLine()
			w := newWorld(t, func(c *app.Config, _ *tosssim.Config) {
				c.RateLimit, c.Replicas, c.DialLimits, c.LimitTimeout = limit, 3, wire.Dial, admission.SharedTimeout
			})
			test.trouble(w, wire)
			codes := make(map[int]int)
			for range sent {
				codes[w.app.notify(nil).code]++
			}
			if codes[http.StatusOK] != limit/3 || codes[http.StatusTooManyRequests] != sent-limit/3 {
				t.Errorf("got %v, want a third of %d passed and the others refused", codes, limit)
			}
			by := w.app.fallbacks()
			total := 0
			for _, n := range by {
				total += n
			}
			if by[test.reason] < 3 || total != sent {
				t.Errorf("got %v counted, want %d in all and at first %s", by, sent, test.reason)
			}
		})
	}
}

// hold takes every connection of a pool for the rest of the test.
func (w *world) hold(pool *pgxpool.Pool) {
	w.Helper()
	for range pool.Stat().MaxConns() {
		conn, err := pool.Acquire(w.Context())
		w.must(err)
		w.Cleanup(conn.Release)
	}
}

// TestRateLimit_ConnectionsOfItsOwn: when everything else waits for a connection, the limits still know who is over.
func TestRateLimit_ConnectionsOfItsOwn(t *testing.T) {
	t.Parallel()
	const limit = 5
	w := newWorld(t, func(c *app.Config, _ *tosssim.Config) { c.RateLimit = limit })
	for range limit {
		w.app.notify(nil)
	}
	other := w.start() // it has not heard of anybody
	w.hold(other.DB())
	if got := other.notify(nil); got.is() != "429 rate_limited" {
		t.Errorf("got %s, want 429", got.is())
	}
	if by := other.fallbacks(); len(by) != 0 || other.counted("daesa_admission_rate_unasked_total") != 0 {
		t.Errorf("got %v counted alone, want the database to have been asked", by)
	}
}

// TestRateLimit_RoundTrips: the question of the limit is one round trip on connections of its own, and adds none to what
// a notice costs on those of the books.
func TestRateLimit_RoundTrips(t *testing.T) {
	t.Parallel()
	var books, limits postgres.Config
	meters := map[string]*postgrestest.Meter{"books": postgrestest.CountRoundTrips(&books), "limits": postgrestest.CountRoundTrips(&limits)}
	w := newWorld(t, func(c *app.Config, _ *tosssim.Config) {
		c.Dial, c.DialLimits, c.DatabaseMax = books.Dial, limits.Dial, 4
	})
	cancel := func(order string) tosssim.Notice {
		key := w.sell(order, 50_000)
		w.dashboard(key, 0)
		return w.newest(key)
	}
	warm := cancel("order-warm")
	for range 2 {
		w.wantDelivery(warm, http.StatusOK)
	}
	notice := cancel("order-0001")
	for _, test := range []struct {
		name string
		most int64
	}{{"applied", 3}, {"duplicate", 1}} {
		for _, meter := range meters {
			meter.Reset()
		}
		w.wantDelivery(notice, http.StatusOK)
		if got := meters["books"].RoundTrips(); got > test.most || got == 0 {
			t.Errorf("%s: got %d round trips to the books, want at most %d", test.name, got, test.most)
		}
		if got := meters["limits"].RoundTrips(); got != 1 {
			t.Errorf("%s: got %d round trips for the limit, want 1", test.name, got)
		}
	}
}
