package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ServerConfig holds what a [Server] needs. The limits have defaults.
type ServerConfig struct {
	Handler http.Handler

	ReadHeaderTimeout time.Duration
	// ReadTimeout bounds the arrival of a whole request on routes without [Timeout].
	ReadTimeout    time.Duration
	IdleTimeout    time.Duration
	MaxHeaderBytes int

	Log *slog.Logger
}

func (c ServerConfig) withDefaults() ServerConfig {
	c.ReadHeaderTimeout = cmp.Or(c.ReadHeaderTimeout, 5*time.Second)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, time.Minute)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, 2*time.Minute)
	c.MaxHeaderBytes = cmp.Or(c.MaxHeaderBytes, 32<<10)
	return c
}

func (c ServerConfig) validate() error {
	if c.Handler == nil {
		return errors.New("web: Server needs a Handler")
	}
	if c.Log == nil {
		return errors.New("web: Server needs a Log: it is where connection errors are written down")
	}
	if c.ReadHeaderTimeout < 0 || c.ReadTimeout < 0 || c.IdleTimeout < 0 || c.MaxHeaderBytes < 0 {
		return errors.New("web: the limits of Server cannot be negative")
	}
	return nil
}

// Server serves HTTP with bounds on everything a client can make us wait for or keep. There is no WriteTimeout: it
// would cut an answer that is only late, and each route has its own deadline.
type Server struct {
	http *http.Server
}

// NewServer returns a server that does not listen yet.
func NewServer(cfg ServerConfig) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Server{http: &http.Server{
		Handler:           cfg.Handler,
		ReadHeaderTimeout: cfg.ReadHeaderTimeout,
		ReadTimeout:       cfg.ReadTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    cfg.MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
	}}, nil
}

// Serve answers on listener until Shutdown, and then returns nil, perhaps before the last requests are done: wait for
// Shutdown. The contexts of requests come from no context of the caller's, so that a stop signal does not cancel what
// is in flight.
func (s *Server) Serve(listener net.Listener) error {
	if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	}
	return nil
}

// Shutdown stops accepting and waits for the requests in flight. When ctx ends first it cuts them off and says so.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("wait for requests in flight: %w", err), s.http.Close())
}
