package overload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/checkout/store/storesim"
	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
)

const storeSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" //nolint:gosec // opens nothing but the simulator

// kitchen is a simulated store within the lab, on the loopback interface.
type kitchen struct {
	sim    *storesim.Sim
	url    string
	server *http.Server
	served chan error
}

func openKitchen(ctx context.Context, cfg storesim.Config) (*kitchen, error) {
	cfg.Secret = storeSecret
	k := &kitchen{sim: storesim.New(cfg), served: make(chan error, 1)}
	var open net.ListenConfig
	listener, err := open.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	k.url = "http://" + listener.Addr().String()
	k.server = &http.Server{Handler: k.sim.Handler(), ReadHeaderTimeout: time.Minute}
	go func() { k.served <- k.server.Serve(listener) }()
	return k, nil
}

// settings make the service ask this store.
func (k *kitchen) settings() []string {
	return []string{"DAESA_STORE_URL=" + k.url, "DAESA_STORE_SECRET=" + storeSecret}
}

func (k *kitchen) close() error {
	k.sim.Heal()
	err := k.server.Close()
	if served := <-k.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// round is how long the store took for the questions from one of its calls on, and the most that it had at once.
func (k *kitchen) round(from int) (took report.Spread, atOnce, asked int) {
	var times []time.Duration
	for _, call := range k.sim.Calls()[from:] {
		if call.Op == storesim.Ask {
			times = append(times, call.Took)
			asked++
		}
		atOnce = max(atOnce, call.AtOnce)
	}
	return report.SpreadOf(times), atOnce, asked
}

// settled waits until nobody is asked about and every payment that was decided has decided about its acceptance, and
// counts the releases that are owed because their question had no answer.
func (k *kitchen) settled(ctx context.Context, b *harness.Bench) (owed int, err error) {
	ctx, stop := context.WithTimeout(ctx, 5*time.Minute)
	defer stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	type counts struct {
		Open int `db:"open"`
		Owed int `db:"owed"`
	}
	for {
		rows, err := b.DB.Query(ctx, `
			SELECT (count(*) FILTER (WHERE state IN ('asking', 'held') OR (state = 'releasing' AND releases = 0)))::int AS open,
				(count(*) FILTER (WHERE state = 'releasing'))::int AS owed
			FROM acceptances`)
		if err != nil {
			return 0, fmt.Errorf("count acceptances: %w", err)
		}
		c, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[counts])
		if err != nil {
			return 0, fmt.Errorf("count acceptances: %w", err)
		}
		if c.Open == 0 {
			return c.Owed, nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for the store's acceptances: %d are still open: %w", c.Open, ctx.Err())
		case <-tick.C:
		}
	}
}

// waitBounds are those of the service's histogram of waits, as they are exported.
func waitBounds() []string {
	return []string{"0.001", "0.005", "0.015", "0.03", "0.05", "0.1", "0.2", "0.4", "0.6", "0.8", "1.6"}
}

// waitWithin is the bound within which so large a share of the questions waited, as the service's histogram tells.
func waitWithin(m harness.Metrics, share float64) string {
	const name = "daesa_store_queue_wait_seconds_bucket"
	all := m.Of(name, "le", "+Inf")
	n := slices.IndexFunc(waitBounds(), func(bound string) bool { return m.Of(name, "le", bound) >= share*all })
	if n < 0 {
		return "> 1.6 s"
	}
	return "≤ " + waitBounds()[n] + " s"
}
