package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/app"
	"daesa/internal/postgres"
	"daesa/internal/postgres/embedded"
	"daesa/migrations"
	"daesa/pgclient/tosssim"
)

const (
	secretKey = "test_sk_simulator"
	apiSecret = "demo-key-for-the-merchants-server"
)

// stage is what the story is played on: database, gateway, service.
type stage struct {
	postgres *embedded.Server
	sim      *tosssim.Sim
	simURL   string
	simHTTP  *http.Server
	app      *app.App
	cancel   context.CancelFunc
	ended    chan error
	sender   chan struct{}
}

// setStage starts everything. The database is made anew each time: a story begins with empty books.
func setStage(ctx context.Context, log *slog.Logger) (_ *stage, err error) {
	s := &stage{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := s.startDatabase(ctx, log); err != nil {
		return nil, err
	}
	if err := s.startGateway(log); err != nil {
		return nil, err
	}
	return s, s.startService(ctx, log)
}

func (s *stage) startDatabase(ctx context.Context, log *slog.Logger) error {
	dir, err := embedded.DefaultDir(os.Getenv("XDG_STATE_HOME"), "demo")
	if err != nil {
		return err
	}
	s.postgres, err = embedded.Start(ctx, embedded.Config{Dir: dir, Database: "demo", BinDir: os.Getenv("DAESA_POSTGRES_BIN"), Log: log})
	if err != nil {
		return err
	}
	pool, err := postgres.Open(ctx, postgres.Config{URL: s.postgres.URL, MaxConns: 4})
	if err != nil {
		return err
	}
	defer pool.Close()
	for _, sql := range []string{`DROP SCHEMA IF EXISTS river CASCADE`, `DROP SCHEMA public CASCADE`, `CREATE SCHEMA public`} {
		if _, err := pool.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("empty the demo's database: %w", err)
		}
	}
	return migrations.Apply(ctx, pool)
}

func (s *stage) startGateway(log *slog.Logger) error {
	listener, err := listenNear("127.0.0.1:9400")
	if err != nil {
		return err
	}
	s.sim = tosssim.New(tosssim.Config{SecretKey: secretKey, Log: log})
	s.sim.SetDelivery(tosssim.DeliveryPlan{Hold: true}) // the story decides when a notice comes
	s.simURL = "http://" + listener.Addr().String()
	s.simHTTP = &http.Server{Handler: s.sim.Handler(), ReadHeaderTimeout: 5 * time.Second}
	go s.simHTTP.Serve(listener) //nolint:errcheck // it returns when the stage is closed
	return nil
}

func (s *stage) startService(ctx context.Context, log *slog.Logger) error {
	public, private := freeNear("127.0.0.1:8080"), freeNear("127.0.0.1:9090")
	instance, err := app.New(ctx, app.Config{
		DatabaseURL: s.postgres.URL, Listen: public, PrivateListen: private, TossURL: s.simURL, TossSecretKey: secretKey,
		APIKeys: []string{"demo=" + apiSecret}, CORSOrigins: []string{"http://localhost:4000"}, Log: log,
	})
	if err != nil {
		return err
	}
	s.app = instance
	s.sim.SetWebhookURL(instance.URL() + "/webhooks/toss")
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel, s.ended = cancel, make(chan error, 1)
	go func() { s.ended <- instance.Run(running) }()
	return nil
}

// release lets the simulator deliver by itself from now on.
func (s *stage) release() {
	s.sim.SetDelivery(tosssim.DeliveryPlan{})
	s.sender = make(chan struct{})
	go func() {
		defer close(s.sender)
		s.sim.Run(context.Background()) // ends when the simulator is closed
	}()
}

// close ends everything in order: the service first, then its gateway, then its database.
func (s *stage) close() error {
	var err error
	if s.cancel != nil {
		s.cancel()
		if s.sim != nil {
			s.sim.Heal()
		}
		err = errors.Join(err, <-s.ended)
	}
	if s.sim != nil {
		s.sim.Close()
	}
	if s.sender != nil {
		<-s.sender
	}
	if s.simHTTP != nil {
		err = errors.Join(err, s.simHTTP.Close())
	}
	if s.postgres != nil {
		err = errors.Join(err, s.postgres.Stop())
	}
	return err
}

func (s *stage) introduce(out io.Writer) {
	fmt.Fprintf(out, "  service      %s   (API key: %s)\n", s.app.URL(), apiSecret)
	fmt.Fprintf(out, "  metrics      %s/metrics\n", s.app.PrivateURL())
	fmt.Fprintf(out, "  gateway      %s   (simulated; control under /__sim/)\n", s.simURL)
	fmt.Fprintf(out, "  database     %s\n", s.postgres.URL)
}

// listenNear listens on the address people know, or on any free port when it is taken.
func listenNear(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	return listener, nil
}

// freeNear is listenNear for somebody else's listener.
func freeNear(address string) string {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "127.0.0.1:0"
	}
	listener.Close()
	return address
}
