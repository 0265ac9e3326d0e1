package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"daesa/internal/app"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

const (
	secretKey = "test_sk_simulator" //nolint:gosec // opens nothing but the simulator
	// APISecret is the key of the merchant's own servers.
	APISecret = "key-for-the-merchants-own-servers"
)

// Config says what is played on the stage.
type Config struct {
	// DatabaseURL reaches a migrated database.
	DatabaseURL string
	// Service is what differs from a plain instance. Database, gateway and API key are the stage's; addresses are free
	// loopback ports unless they are set.
	Service app.Config
	// Gateway is what differs from a plain simulator.
	Gateway tosssim.Config
	// GatewayListen is where the gateway answers; a free loopback port by default.
	GatewayListen string

	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	const free = "127.0.0.1:0"
	c.GatewayListen = cmp.Or(c.GatewayListen, free)
	c.Service.Listen = cmp.Or(c.Service.Listen, free)
	c.Service.PrivateListen = cmp.Or(c.Service.PrivateListen, free)
	c.Gateway.SecretKey = cmp.Or(c.Gateway.SecretKey, secretKey)
	c.Service.DatabaseURL, c.Service.TossSecretKey = c.DatabaseURL, c.Gateway.SecretKey
	c.Service.APIKeys = append(c.Service.APIKeys, "stage="+APISecret)
	c.Service.Log, c.Gateway.Log = c.Log, c.Log
	return c
}

func (c Config) validate() error {
	if c.DatabaseURL == "" {
		return errors.New("stage: DatabaseURL is required")
	}
	if c.Log == nil {
		return errors.New("stage: Log is required")
	}
	return nil
}

// Stage is a gateway and a service that know each other. Notices are held: the story decides when one comes.
type Stage struct {
	Sim    *tosssim.Sim
	SimURL string
	App    *app.App
	Shop   Shop

	gateway *http.Server
	cancel  context.CancelFunc
	ended   chan error
	sender  chan struct{}
}

// Set starts the gateway and the service. The caller closes the stage.
func Set(ctx context.Context, cfg Config) (_ *Stage, err error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Stage{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := s.startGateway(ctx, cfg); err != nil {
		return nil, err
	}
	return s, s.startService(ctx, cfg)
}

func (s *Stage) startGateway(ctx context.Context, cfg Config) error {
	listener, err := listen(ctx, cfg.GatewayListen)
	if err != nil {
		return fmt.Errorf("open the gateway: %w", err)
	}
	s.Sim = tosssim.New(cfg.Gateway)
	s.Sim.SetDelivery(tosssim.DeliveryPlan{Hold: true})
	s.SimURL = "http://" + listener.Addr().String()
	s.gateway = &http.Server{Handler: s.Sim.Handler(), ReadHeaderTimeout: 5 * time.Second}
	go s.gateway.Serve(listener) //nolint:errcheck // it returns when the stage is closed
	return nil
}

func (s *Stage) startService(ctx context.Context, cfg Config) error {
	cfg.Service.TossURL = s.SimURL
	instance, err := app.New(ctx, cfg.Service)
	if err != nil {
		return fmt.Errorf("start the service: %w", err)
	}
	s.App, s.Shop = instance, NewShop(instance.URL())
	s.Sim.SetWebhookURL(instance.URL() + "/webhooks/toss")
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel, s.ended = cancel, make(chan error, 1)
	go func() { s.ended <- instance.Run(running) }()
	return nil
}

// Release lets the gateway deliver its notices by itself from now on.
func (s *Stage) Release() {
	s.Sim.SetDelivery(tosssim.DeliveryPlan{})
	s.sender = make(chan struct{})
	go func() {
		defer close(s.sender)
		s.Sim.Run(context.Background()) // ends when the simulator is closed
	}()
}

// StopService ends the service. Its gateway goes on, and notices find nobody.
func (s *Stage) StopService() error {
	if s.cancel == nil {
		return nil
	}
	s.Sim.Heal() // or the service would wait for answers that never come
	s.cancel()
	err := <-s.ended
	s.cancel = nil
	s.Shop.Close()
	return err
}

// StartService starts a service in place of one that was stopped, at the same gateway.
func (s *Stage) StartService(ctx context.Context, cfg Config) error {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return err
	}
	return s.startService(ctx, cfg)
}

// auditAgain is how long the stage waits before it reads the list and audits once more.
const auditAgain = 100 * time.Millisecond

// Audit reads the list and audits everything until the verdict is what is waited for, or its time is over: when the service
// itself reads the list, our own read stands back. It returns the last statement.
func (s *Stage) Audit(ctx context.Context, within time.Duration, enough func(reconcile.Verdict) bool) (reconcile.Statement, error) {
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	again := time.NewTicker(auditAgain)
	defer again.Stop()
	for {
		if err := s.App.ReadList(ctx); err != nil {
			return reconcile.Statement{}, fmt.Errorf("read the gateway's list: %w", err)
		}
		statement, err := s.App.AuditAll(ctx)
		if err != nil {
			return reconcile.Statement{}, fmt.Errorf("audit: %w", err)
		}
		if enough(statement.Verdict) {
			return statement, nil
		}
		select {
		case <-ctx.Done():
			return statement, nil
		case <-again.C:
		}
	}
}

// Close ends everything in order: the service first, then its gateway.
func (s *Stage) Close() error {
	err := s.StopService()
	if s.Sim != nil {
		s.Sim.Close()
	}
	if s.sender != nil {
		<-s.sender
	}
	if s.gateway != nil {
		err = errors.Join(err, s.gateway.Close())
	}
	return err
}

// FreeNear returns the address people know, or one with any free port when it is taken.
func FreeNear(ctx context.Context, address string) string {
	listener, err := listen(ctx, address)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = listener.Close() // it was only tried
	return address
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if at, ok := listener.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		_ = listener.Close() // nobody was served
		return nil, fmt.Errorf("%s is not a loopback address", address)
	}
	return listener, nil
}
