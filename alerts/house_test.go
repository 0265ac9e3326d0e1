package alerts

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"daesa/internal/app"
	"daesa/internal/postgres/postgrestest"
	"daesa/internal/stage"
	"daesa/ledger/seal"
)

// house is a running service with its gateway, watched by a Prometheus and an Alertmanager whose notifications come here.
// An hour of its jobs and alarms is two minutes; what takes time takes as long as ever.
type house struct {
	*testing.T
	*stage.Stage

	db    string
	dir   string // of the configurations
	inbox *inbox
	sold  int
}

// newHouse starts everything, or skips the test where the two programs are not installed; on CI they have to be.
func newHouse(t *testing.T, change func(*app.Config)) *house {
	t.Helper()
	prometheus, alertmanager := program(t, "prometheus"), program(t, "prometheus-alertmanager", "alertmanager")
	h := &house{T: t, db: postgrestest.NewURL(t), dir: t.TempDir(), inbox: newInbox(t)}
	key := filepath.Join(t.TempDir(), "seal.key")
	_, err := seal.GenerateKey(key)
	h.must(err)
	cfg := app.Config{Hurry: hurry, SealKeyFile: key, ListLag: 10 * time.Second}
	if change != nil {
		change(&cfg)
	}
	h.Stage, err = stage.Set(t.Context(), stage.Config{
		DatabaseURL: h.db, Service: cfg, Log: slog.New(slog.DiscardHandler),
	})
	h.must(err)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		if t.Failed() {
			h.inbox.tell(t)
		}
	})
	at := h.run(alertmanager, "alertmanager.yml", hurriedAlertmanager(t, h.inbox.url), "--storage.path", t.TempDir(), "--cluster.listen-address=")
	for _, name := range []string{"rules.yaml", "switch_rules.yaml"} {
		h.must(os.WriteFile(filepath.Join(h.dir, name), []byte(hurriedRules(t, name)), 0o600))
	}
	config := fmt.Sprintf(`
global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s, external_labels: {pages: "https://pages.example.com"}}
scrape_configs: [{job_name: daesa, static_configs: [{targets: [%q]}]}]
alerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}
`, strings.TrimPrefix(h.App.PrivateURL(), "http://"), at)
	watching := h.run(prometheus, "prometheus.yml", config, "--storage.tsdb.path", t.TempDir(), "--rules.alert.resend-delay=2s", "--web.enable-lifecycle")
	// It looks for targets five seconds after its start, and jobs begin when their leader is elected; either is minutes here,
	// and would be told of.
	h.eventually("the service is scraped and has made its first audit", 2*time.Minute, func() bool {
		return h.ask(watching, `daesa_reconcile_audit_verdict{scope="recent", verdict="reconciled"} == 1 and on () daesa_reconcile_mirror_lag_seconds < 30`)
	})
	h.must(os.WriteFile(filepath.Join(h.dir, "prometheus.yml"), []byte(config+"rule_files: [rules.yaml, switch_rules.yaml]\n"), 0o600))
	h.reload(watching)
	h.eventually("alarms are weighed", time.Minute, func() bool { return h.ask(watching, `ALERTS{alertname="DeadMansSwitch"}`) })
	return h
}

// aReply is far longer than any answer takes on this machine.
const aReply = 20 * time.Second

// program finds a program by any of its names.
func program(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: run scripts/setup", names[0])
	}
	t.Skipf("%s is not installed; scripts/setup installs it", names[0])
	return ""
}

// run writes a configuration, starts a program with it on a free port, and waits until it is ready. It ends with the test.
func (h *house) run(path, name, config string, arguments ...string) (address string) {
	h.Helper()
	file := filepath.Join(h.dir, name)
	h.must(os.WriteFile(file, []byte(config), 0o600))
	address = freeAddress(h.T)
	running, stop := context.WithCancel(context.Background())
	command := exec.CommandContext(running, path, append([]string{"--config.file", file, "--web.listen-address", address, "--log.level=warn"}, arguments...)...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	var said strings.Builder
	command.Stdout, command.Stderr = &said, &said
	h.must(command.Start())
	h.Cleanup(func() {
		stop()
		_ = command.Wait() // it was told to end
		if h.Failed() {
			h.Logf("%s said:\n%s", name, said.String())
		}
	})
	h.eventually(name+" is ready", time.Minute, func() bool {
		request, err := http.NewRequestWithContext(h.Context(), http.MethodGet, "http://"+address+"/-/ready", http.NoBody)
		h.must(err)
		answer, err := (&http.Client{Timeout: aReply}).Do(request)
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return address
}

// ask reports whether Prometheus finds anything.
func (h *house) ask(prometheus, query string) bool {
	h.Helper()
	said := h.request(http.MethodGet, "http://"+prometheus+"/api/v1/query?query="+url.QueryEscape(query))
	return strings.Contains(said, `"status":"success"`) && !strings.Contains(said, `"result":[]`)
}

// reload has Prometheus read its configuration again.
func (h *house) reload(prometheus string) {
	h.Helper()
	if said := h.request(http.MethodPost, "http://"+prometheus+"/-/reload"); said != "" {
		h.Fatal(said)
	}
}

func (h *house) request(method, address string) string {
	h.Helper()
	request, err := http.NewRequestWithContext(h.Context(), method, address, http.NoBody)
	h.must(err)
	answer, err := (&http.Client{Timeout: aReply}).Do(request)
	h.must(err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	h.must(err)
	return string(body)
}

// freeAddress is a loopback address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// eventually waits until something holds.
func (h *house) eventually(what string, within time.Duration, holds func() bool) {
	h.Helper()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(within); time.Now().Before(end); <-look.C {
		if holds() {
			return
		}
	}
	h.Fatalf("not within %s: %s; notified of %v", within, what, h.inbox.firing())
}

// each does something once a second until it is over.
func (h *house) each(over time.Duration, do func(n int)) {
	h.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := range int(over / time.Second) {
		do(n)
		<-tick.C
	}
}

// sell sells one order.
func (h *house) sell() (paymentKey string) {
	h.Helper()
	h.sold++
	key, err := h.Sell(h.Context(), stage.Sale{OrderID: fmt.Sprint("order-", h.sold), Won: 10_000})
	h.must(err)
	return key
}

// refund cancels a payment at the gateway, without us.
func (h *house) refund(key string) {
	h.Helper()
	_, err := h.Sim.CancelInDashboard(key, 0, "고객 변심")
	h.must(err)
}

// hears waits until a receiver is notified of an alert.
func (h *house) hears(receiver, alert string, within time.Duration) {
	h.Helper()
	h.eventually(receiver+" hears "+alert, within, func() bool { return h.inbox.has(receiver + " " + alert) })
}

// ends waits until everything that was told of has ended, and each receiver has been told so.
func (h *house) ends(within time.Duration) {
	h.Helper()
	h.eventually("everything has ended", within, func() bool { return len(h.inbox.open()) == 0 })
}

// heard checks that these notifications came, in any order, each in one group, and no other.
func (h *house) heard(want ...string) {
	h.Helper()
	slices.Sort(want)
	if got := h.inbox.firing(); !slices.Equal(got, want) {
		h.Errorf("notified of %v, want %v", got, want)
	}
	for about, groups := range h.inbox.groups() {
		if len(groups) != 1 {
			h.Errorf("%s came in %d groups %v, want one", about, len(groups), groups)
		}
	}
}

// notification is what Alertmanager sends a webhook.
type notification struct {
	Receiver string `json:"receiver"`
	Status   string `json:"status"`
	GroupKey string `json:"groupKey"`
	Alerts   []struct {
		Status      string            `json:"status"`
		StartsAt    time.Time         `json:"startsAt"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"alerts"`
}

func (n notification) about() string { return n.Receiver + " " + n.Alerts[0].Labels["alertname"] }

const theSwitch = "switch DeadMansSwitch"

// inbox is every receiver.
type inbox struct {
	url string

	mu  sync.Mutex
	all []notification
}

func newInbox(t *testing.T) *inbox {
	t.Helper()
	i := &inbox{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var n notification
		if err == nil {
			err = json.Unmarshal(body, &n)
		}
		if err != nil || len(n.Alerts) == 0 {
			t.Errorf("a notification that cannot be read: %s, %v", body, err)
			return
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		i.all = append(i.all, n)
	}))
	t.Cleanup(server.Close)
	i.url = server.URL
	return i
}

// received are the notifications so far.
func (i *inbox) received() []notification {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.all)
}

// firing lists what receivers were told of, each once; the dead man's switch apart.
func (i *inbox) firing() []string {
	var all []string
	for _, n := range i.received() {
		if n.Status == "firing" && n.about() != theSwitch {
			all = append(all, n.about())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// has reports whether a receiver was told of something.
func (i *inbox) has(about string) bool { return slices.Contains(i.firing(), about) }

// open lists those of which no end was told yet.
func (i *inbox) open() []string {
	last := make(map[string]string)
	for _, n := range i.received() {
		last[n.about()] = n.Status
	}
	var all []string
	for about, status := range last {
		if status == "firing" && about != theSwitch {
			all = append(all, about)
		}
	}
	return all
}

// groups are the groups that each came in.
func (i *inbox) groups() map[string][]string {
	all := make(map[string][]string)
	for _, n := range i.received() {
		if !slices.Contains(all[n.about()], n.GroupKey) {
			all[n.about()] = append(all[n.about()], n.GroupKey)
		}
	}
	return all
}

// tell writes down what came, for who reads of a failure.
func (i *inbox) tell(t *testing.T) {
	t.Helper()
	for _, n := range i.received() {
		if n.about() != theSwitch {
			t.Logf("%s %s since %s: %v, %s", n.about(), n.Status, n.Alerts[0].StartsAt, n.Alerts[0].Labels, n.Alerts[0].Annotations["description"])
		}
	}
}

// count is how many notifications came about something.
func (i *inbox) count(about string) int {
	n := 0
	for _, each := range i.received() {
		if each.about() == about {
			n++
		}
	}
	return n
}
