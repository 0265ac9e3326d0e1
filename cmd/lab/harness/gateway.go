package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"daesa/pgclient/tosssim"
)

const secretKey = "test_sk_simulator" //nolint:gosec // opens nothing but the simulator

// Gateway is the simulated gateway in a process of its own, driven by its control API.
type Gateway struct {
	*process
	URL    string
	client *http.Client
}

// gateway starts one. Its notices are recorded and not sent: the load is their sender.
func (p Programs) gateway(ctx context.Context, folder string) (*Gateway, error) {
	child, err := launch(folder, "tosssim", p.tosssim, []string{"-addr", "127.0.0.1:0", "-secret-key", secretKey}, environment())
	if err != nil {
		return nil, err
	}
	g := &Gateway{process: child, client: newClient(time.Minute)}
	err = child.said(ctx, func(line []byte) (found bool) {
		g.URL, found = strings.CutPrefix(strings.TrimSpace(string(line)), "tosssim listens on ")
		return found
	})
	if err != nil {
		return nil, closing(err, child.stop)
	}
	return g, nil
}

// control calls the control API and reads what it answers.
func (g *Gateway) control(ctx context.Context, path string, body, into any) error {
	method, content := http.MethodGet, []byte(nil)
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return fmt.Errorf("tell the gateway to %s: %w", path, err)
		}
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(ctx, method, g.URL+"/__sim/"+path, bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("tell the gateway to %s: %w", path, err)
	}
	response, err := g.client.Do(request)
	if err != nil {
		return fmt.Errorf("tell the gateway to %s: %w", path, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("tell the gateway to %s: %w", path, err)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("tell the gateway to %s: it answers %d %s", path, response.StatusCode, answer)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("read what the gateway says to %s: %w", path, err)
	}
	return nil
}

// Authenticate is a buyer who finished the payment window of an order. It returns the payment key.
func (g *Gateway) Authenticate(ctx context.Context, order string, won int64) (string, error) {
	var opened struct {
		PaymentKey string `json:"paymentKey"`
	}
	err := g.control(ctx, "authenticate", map[string]any{"orderId": order, "orderName": "상품", "amount": won}, &opened)
	return opened.PaymentKey, err
}

// Cancel cancels a payment in the gateway's dashboard; its notice waits to be sent.
func (g *Gateway) Cancel(ctx context.Context, paymentKey string) error {
	return g.control(ctx, "cancel", map[string]any{"paymentKey": paymentKey, "reason": "고객 변심"}, nil)
}

// Fault is how the gateway misbehaves on every call of some operations until it is healed.
type Fault struct {
	Ops   []tosssim.Op
	Kind  tosssim.Kind
	Delay time.Duration
	Code  int

	PaymentKey string // "" = of every payment
}

// Fail makes the gateway misbehave.
func (g *Gateway) Fail(ctx context.Context, f Fault) error {
	for _, op := range f.Ops {
		err := g.control(ctx, "fault", map[string]any{
			"op": op, "kind": f.Kind, "n": -1, "delayMs": f.Delay.Milliseconds(), "code": f.Code, "paymentKey": f.PaymentKey,
		}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// Heal ends every fault, and whatever the gateway holds.
func (g *Gateway) Heal(ctx context.Context) error { return g.control(ctx, "heal", struct{}{}, nil) }

// Counts is how many calls arrived, by operation.
func (g *Gateway) Counts(ctx context.Context) (counts map[tosssim.Op]int, err error) {
	return counts, g.control(ctx, "counts", nil, &counts)
}

// Questions is how many look-ups of each payment arrived, by its key.
func (g *Gateway) Questions(ctx context.Context) (map[string]int, error) {
	var calls []tosssim.Call
	if err := g.control(ctx, "calls", nil, &calls); err != nil {
		return nil, err
	}
	asked := make(map[string]int)
	for _, call := range calls {
		if call.Op == tosssim.Get {
			asked[call.PaymentKey]++
		}
	}
	return asked, nil
}

// Totals is the money that the gateway itself moved.
func (g *Gateway) Totals(ctx context.Context) (totals tosssim.Totals, err error) {
	return totals, g.control(ctx, "totals", nil, &totals)
}

// Held is how many calls the gateway keeps open, those whose callers have left included.
func (g *Gateway) Held(ctx context.Context) (int, error) {
	var held struct {
		Held int `json:"held"`
	}
	return held.Held, g.control(ctx, "held", nil, &held)
}

// Notices are all that the gateway has for us, oldest first.
func (g *Gateway) Notices(ctx context.Context) (notices []tosssim.Notice, err error) {
	return notices, g.control(ctx, "notices", nil, &notices)
}

// newClient is a client of the loopback interface whose requests may take so long.
func newClient(patience time.Duration) *http.Client {
	return &http.Client{
		Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 4096, IdleConnTimeout: time.Minute},
	}
}

// closing adds to an error what closing said.
func closing(err error, closers ...func() error) error {
	for _, end := range closers {
		if also := end(); also != nil {
			err = fmt.Errorf("%w; then: %w", err, also)
		}
	}
	return err
}
