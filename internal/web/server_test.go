package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"testing"
)

// startSlow starts a server whose handler says that it began and waits for release, and sends it one request.
func startSlow(t *testing.T, release <-chan struct{}) (server *Server, status chan int) {
	t.Helper()
	began := make(chan struct{})
	server, err := NewServer(ServerConfig{Log: slog.New(slog.DiscardHandler), Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			close(began)
			select {
			case <-release:
				w.WriteHeader(http.StatusAccepted)
			case <-r.Context().Done():
			}
		},
	)})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := <-served; err != nil {
			t.Errorf("got %v from Serve, want nil after Shutdown", err)
		}
	})
	status = make(chan int, 1)
	go func() {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		request, _ := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, "http://"+listener.Addr().String(), nil)
		reply, err := client.Do(request)
		if err != nil {
			status <- 0
			return
		}
		reply.Body.Close()
		status <- reply.StatusCode
	}()
	<-began
	return server, status
}

func TestServer_ShutdownFinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server, status := startSlow(t, release)
	stopped := make(chan error, 1)
	go func() { stopped <- server.Shutdown(t.Context()) }()
	close(release)
	if err := <-stopped; err != nil {
		t.Errorf("got %v, want nil", err)
	}
	if got := <-status; got != http.StatusAccepted {
		t.Errorf("got status %d, want 202", got)
	}
}

func TestServer_ShutdownIsBounded(t *testing.T) {
	t.Parallel()
	server, status := startSlow(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it to say that time ran out", err)
	}
	if got := <-status; got != 0 {
		t.Errorf("got status %d, want a cut connection", got)
	}
}

func TestNewServer_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	for _, cfg := range []ServerConfig{{}, {Handler: http.NotFoundHandler()}, {Handler: http.NotFoundHandler(), Log: log, ReadTimeout: -1}} {
		if _, err := NewServer(cfg); err == nil {
			t.Errorf("got no error for %+v", cfg)
		}
	}
}
