// Command demo runs everything on this machine: a PostgreSQL of its own, a simulated gateway and daesa. It tells the
// story of a few payments as it happens, proves the identity after each, and stays up with its addresses printed.
// With -once it ends after the story: 0 when everything was as it should be.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	once := flag.Bool("once", false, "end after the story")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *once); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run starts the stage, tells the story and, unless once is set, waits for ctx to end.
func run(ctx context.Context, out io.Writer, once bool) (err error) {
	logFile, err := openLog()
	if err != nil {
		return err
	}
	defer func() { _ = logFile.Close() }()
	demo, err := setStage(ctx, slog.New(slog.NewTextHandler(logFile, nil)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, demo.close()) }() //nolint:contextcheck // the end comes when ctx is over
	demo.introduce(out)
	fmt.Fprintf(out, "  log          %s\n\n", logFile.Name())

	story := newStory(demo, out)
	if err := story.tell(ctx); err != nil {
		return err
	}
	if once || ctx.Err() != nil {
		return os.RemoveAll(filepath.Dir(logFile.Name())) // a story that went well needs no log
	}
	demo.Release() //nolint:contextcheck // the sender lives as long as the stage
	orders, err := story.leave(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "\nEverything stays up; the simulator keeps delivering notices. Ctrl-C ends it.")
	demo.introduce(out)
	fmt.Fprintf(out, "\nYour turn: cancel %s at %s/__sim/ in full or in part, let the gateway be silent or lose replies,\nand see at %s how the books follow.\n",
		strings.Join(orders, ", "), demo.SimURL, demo.App.PagesURL())
	<-ctx.Done()
	fmt.Fprintln(out, "stopping")
	return nil
}

// openLog keeps the service's own log out of the story.
func openLog() (*os.File, error) {
	dir, err := os.MkdirTemp("", "daesa-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a place for the log: %w", err)
	}
	f, err := os.Create(filepath.Join(dir, "daesa.log")) //nolint:gosec // the folder was just made for it
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return f, nil
}
