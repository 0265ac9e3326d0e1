// Command tosssim runs the simulator of Toss Payments as a process of its own, for a demonstration or for tests written in
// another language. It serves the payment API and, under /__sim/, the control API that package tosssim documents.
//
// It listens on the loopback interface only: whoever reaches it may move its money.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"daesa/pgclient/tosssim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "tosssim:", err)
		os.Exit(1)
	}
}

// run serves until the context ends. It writes the address to out once it listens.
func run(ctx context.Context, args []string, out, diagnostics io.Writer) error {
	flags := flag.NewFlagSet("tosssim", flag.ContinueOnError)
	flags.SetOutput(diagnostics)
	addr := flags.String("addr", "127.0.0.1:9400", "loopback address to listen on; port 0 picks a free one")
	secretKey := flags.String("secret-key", "", "secret key that callers must use (default test_sk_simulator)")
	webhookURL := flags.String("webhook-url", "", "where notices go; empty records them without sending")
	speed := flags.Float64("speed", 1, "how many times faster than real time the simulator's clock runs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *speed <= 0 {
		return errors.New("-speed must be positive")
	}
	listener, err := listen(ctx, *addr)
	if err != nil {
		return err
	}
	clock := tosssim.RealClock()
	if *speed != 1 {
		clock = tosssim.Accelerated(time.Now(), *speed)
	}
	sim := tosssim.New(tosssim.Config{
		SecretKey: *secretKey, WebhookURL: *webhookURL, Clock: clock,
		Log: slog.New(slog.NewTextHandler(diagnostics, nil)),
	})
	if _, err := fmt.Fprintf(out, "tosssim listens on http://%s\n", listener.Addr()); err != nil {
		return errors.Join(fmt.Errorf("print the address: %w", err), listener.Close())
	}
	return serve(ctx, sim, listener)
}

// listen refuses every address that another machine could reach.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	resolved, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("resolve -addr: %w", err)
	}
	if !resolved.IP.IsLoopback() {
		return nil, fmt.Errorf("-addr %s is not a loopback address", addr)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", resolved.String())
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return listener, nil
}

// serve answers requests and sends notices until the context ends, and leaves nothing running.
func serve(ctx context.Context, sim *tosssim.Sim, listener net.Listener) error {
	server := &http.Server{Handler: sim.Handler(), ReadHeaderTimeout: 10 * time.Second}
	var running sync.WaitGroup
	running.Go(func() { sim.Run(ctx) })
	running.Go(func() {
		<-ctx.Done()
		sim.Close() // First, so that held requests end and the server can.
		deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(deadline) // What is still open after that ends with the process.
	})
	err := server.Serve(listener)
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	running.Wait()
	return nil
}
