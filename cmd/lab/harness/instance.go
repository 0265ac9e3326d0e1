package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"daesa/internal/stage"
)

// Instance is `daesa serve` in a process of its own.
type Instance struct {
	*process
	URL        string
	PrivateURL string // metrics
	client     *http.Client
}

// serve starts an instance, and returns when it is ready for requests.
func (p Programs) serve(ctx context.Context, folder, name, databaseURL, gatewayURL string, settings []string) (*Instance, error) {
	program, args := p.command()
	child, err := launch(folder, name, program, args, environment(append([]string{
		"DAESA_DATABASE_URL=" + databaseURL, "TOSS_BASE_URL=" + gatewayURL, "TOSS_SECRET_KEY=" + secretKey,
		"DAESA_LISTEN=127.0.0.1:0", "DAESA_PRIVATE_LISTEN=127.0.0.1:0", "DAESA_PAGES_LISTEN=127.0.0.1:0", "DAESA_API_KEYS=lab=" + stage.APISecret,
	}, settings...)...))
	if err != nil {
		return nil, err
	}
	i := &Instance{process: child, client: newClient(10 * time.Second)}
	if err := errors.Join(child.said(ctx, i.serving), LoopbackOnly(i.URL), i.ready(ctx)); err != nil {
		return nil, closing(err, child.stop)
	}
	return i, nil
}

// serving reads the addresses from the line of the log that says them.
func (i *Instance) serving(line []byte) bool {
	var said struct {
		Msg     string `json:"msg"`
		Public  string `json:"public"`
		Private string `json:"private"`
	}
	if json.Unmarshal(line, &said) != nil || said.Msg != "serving" {
		return false
	}
	i.URL, i.PrivateURL = "http://"+said.Public, "http://"+said.Private
	return true
}

// LoopbackOnly refuses to load anything but this machine.
func LoopbackOnly(address string) error {
	at, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("read the service's address: %w", err)
	}
	if ip, err := netip.ParseAddr(at.Hostname()); err != nil || !ip.IsLoopback() {
		return fmt.Errorf("%s is not on the loopback interface, and the lab loads nothing else", at.Host)
	}
	return nil
}

func (i *Instance) ready(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, startMax)
	defer stop()
	return Until(ctx, i.name+" to be ready", func() (bool, error) {
		_, err := i.private(ctx, "/readyz")
		return err == nil, nil
	})
}

// Metrics reads what the instance exports.
func (i *Instance) Metrics(ctx context.Context) (Metrics, error) {
	text, err := i.private(ctx, "/metrics")
	if err != nil {
		return Metrics{}, err
	}
	return ReadMetrics(text)
}

func (i *Instance) private(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.PrivateURL+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask %s for %s: %w", i.name, path, err)
	}
	response, err := i.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask %s for %s: %w", i.name, path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers %d", response.StatusCode)
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s for %s: %w", i.name, path, err)
	}
	return text, nil
}
