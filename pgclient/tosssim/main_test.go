package tosssim_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"daesa/pgclient/tosssim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// base is 10:00 in Seoul.
func base() time.Time { return time.Date(2026, 4, 15, 1, 0, 0, 0, time.UTC) }

// shop is a simulator with a manual clock behind a server, and a client that has the right key.
type shop struct {
	*tosssim.Sim
	t      *testing.T
	clock  *tosssim.ManualClock
	url    string
	client *http.Client
}

func newShop(t *testing.T, cfg tosssim.Config) *shop {
	t.Helper()
	clock := tosssim.NewManualClock(base())
	cfg.Clock = clock
	sim := tosssim.New(cfg)
	server := httptest.NewServer(sim.Handler())
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(func() {
		sim.Close()
		server.Close()
		transport.CloseIdleConnections()
	})
	return &shop{
		Sim: sim, t: t, clock: clock, url: server.URL,
		client: &http.Client{Transport: transport, Timeout: 5 * time.Second},
	}
}

// answer is a reply of the gateway.
type answer struct {
	status int
	header http.Header
	body   []byte
	object map[string]any // Numbers are json.Number.
}

func (a answer) code() string {
	code, _ := a.object["code"].(string)
	return code
}

func (a answer) text(name string) string {
	text, _ := a.object[name].(string)
	return text
}

func (a answer) number(name string) string {
	number, _ := a.object[name].(json.Number)
	return number.String()
}

// send makes a call; a header with an empty value is left out.
func (s *shop) send(method, path, body string, headers ...string) (answer, error) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.SetBasicAuth("test_sk_simulator", "")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			request.Header.Del(headers[i])
		}
	}
	response, err := s.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	out := answer{status: response.StatusCode, header: response.Header, body: raw}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	_ = decoder.Decode(&out.object)
	return out, err
}

func (s *shop) must(method, path, body string, headers ...string) answer {
	s.t.Helper()
	out, err := s.send(method, path, body, headers...)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return out
}

func (s *shop) get(key string, headers ...string) answer {
	s.t.Helper()
	return s.must(http.MethodGet, "/v1/payments/"+key, "", headers...)
}

func (s *shop) confirm(key, order, amount string, headers ...string) answer {
	s.t.Helper()
	body := `{"paymentKey":"` + key + `","orderId":"` + order + `","amount":` + amount + `}`
	return s.must(http.MethodPost, "/v1/payments/confirm", body, headers...)
}

func (s *shop) cancel(key, fields string, headers ...string) answer {
	s.t.Helper()
	return s.must(http.MethodPost, "/v1/payments/"+key+"/cancel", `{"cancelReason":"단순 변심"`+fields+`}`, headers...)
}

// paid is a payment of 50,000 won that has been approved.
func (s *shop) paid(order string) string {
	s.t.Helper()
	key := s.Authenticate(tosssim.Checkout{OrderID: order, OrderName: "티셔츠", Amount: 50_000})
	if out := s.confirm(key, order, "50000"); out.status != http.StatusOK {
		s.t.Fatalf("confirm: %d %s", out.status, out.body)
	}
	return key
}

// wantRefusal checks status and code.
func wantRefusal(t *testing.T, got answer, status int, code string) {
	t.Helper()
	if got.status != status || got.code() != code {
		t.Errorf("got %d %s, want %d %s", got.status, got.body, status, code)
	}
	if code != "" && got.text("message") == "" {
		t.Errorf("%s has no message", code)
	}
}

// wantFields checks members of a payment by their JSON.
func wantFields(t *testing.T, body []byte, want map[string]string) {
	t.Helper()
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		t.Fatalf("not an object: %s", body)
	}
	for name, value := range want {
		if got, ok := object[name]; !ok || string(got) != value {
			t.Errorf("%s = %s, want %s", name, got, value)
		}
	}
}

// eventually waits for what another goroutine is about to do.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(5 * time.Second)
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s did not happen", what)
		}
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
