package store

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"daesa/checkout/store/storesim"
	"daesa/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func testConfig(transport http.RoundTripper) Config {
	return Config{
		URL: "https://store.example/acceptances/", Secret: secret, Transport: transport,
		Metrics: NewMetrics(prometheus.NewPedanticRegistry()), Log: slog.New(slog.DiscardHandler), Now: time.Now,
	}
}

func mustNew(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// overHTTP is a client and a simulated store on a real socket.
func overHTTP(t *testing.T) (*Client, *storesim.Sim) {
	t.Helper()
	sim := storesim.New(storesim.Config{Secret: secret, Base: -1})
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(sim.Heal)
	cfg := testConfig(nil)
	cfg.URL = server.URL
	return mustNew(t, cfg), sim
}

// tripper answers without a socket, so that it can be used where time is fake.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// inProcess sends to the handler without a socket. A caller that goes gets its context's error, while the handler goes on.
func inProcess(handler http.Handler) tripper {
	return func(r *http.Request) (*http.Response, error) {
		answered := make(chan *http.Response, 1)
		go func() { //nolint:contextcheck // it has the request's
			defer close(answered)
			defer func() { _ = recover() }() // a connection broken on purpose
			inbound := r.Clone(r.Context())
			inbound.URL.Path = r.URL.Path[len("/acceptances"):]
			if inbound.URL.Path == "" {
				inbound.URL.Path = "/"
			}
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, inbound)
			answered <- recorder.Result()
		}()
		select {
		case response, ok := <-answered:
			if !ok {
				return nil, http.ErrServerClosed
			}
			return response, nil
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

func order(id string) Acceptance {
	return Acceptance{ID: "acc_" + id, OrderID: "order-" + id, Amount: ledger.Won(50_000)}
}

// ask reserves and asks.
func ask(t *testing.T, c *Client, a Acceptance) (Answer, error) {
	t.Helper()
	permit, err := c.Reserve(t.Context())
	if err != nil {
		return Answer{}, err
	}
	defer permit.Release()
	return c.Ask(t.Context(), permit, a), nil
}
