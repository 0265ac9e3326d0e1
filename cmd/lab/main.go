// Command lab replays, on the whole service, experiments that another team made with theirs: what becomes of cancel
// notices while the gateway is silent, slow or healthy, and when they come in a burst. It prints their figures beside
// ours.
//
// Everything runs in this process and on the loopback interface: PostgreSQL, a simulated gateway that sends the
// notices, the service. A run is bounded in number and time, and ends by itself. Figures that contradict each other
// are not reported at all. One experiment is of our own asking: what audits and verifications cost as the books grow. It
// takes tens of gigabytes and about an hour at its full size.
//
//	lab list
//	lab run [flags] silent-pg|slow-pg|healthy-pg|redelivery|all
//	lab run [flags] audit-scale
//
// The exit code is 0 when every claim of the experiment held, and 1 when one did not or the run was impossible.
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
	"slices"
	"strings"
	"syscall"

	"daesa/cmd/lab/report"
	"daesa/internal/postgres/embedded"
	"daesa/internal/stage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("say `lab list`, or `lab run` and the name of an experiment")

func run(ctx context.Context, args []string, out, diagnostics io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	switch args[0] {
	case "list":
		return list(out)
	case "run":
		return runNamed(ctx, args[1:], out, diagnostics)
	}
	return errUsage
}

func list(out io.Writer) error {
	for _, e := range experiments() {
		if _, err := fmt.Fprintf(out, "%-16s %s\n", e.name, e.title); err != nil {
			return fmt.Errorf("list the experiments: %w", err)
		}
	}
	return nil
}

func runNamed(ctx context.Context, args []string, out, diagnostics io.Writer) (err error) {
	o, names, err := readOptions(args, diagnostics)
	if err != nil {
		return err
	}
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler) // failing on purpose is loud
	if o.verbose {
		log = slog.New(slog.NewTextHandler(diagnostics, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	dir, err := embedded.DefaultDir(os.Getenv("XDG_STATE_HOME"), "lab")
	if err != nil {
		return err
	}
	database, err := stage.StartDatabase(ctx, stage.DatabaseConfig{Dir: dir, BinDir: os.Getenv("DAESA_POSTGRES_BIN"), Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Stop()) }() //nolint:contextcheck // it stops also when the context has ended
	l := &lab{options: o, fresh: database.Fresh, out: out, log: log, command: "go run ./cmd/lab run " + strings.Join(args, " "), setting: report.Where(ctx)}
	var failures []error
	for _, e := range chosen {
		if err := l.perform(ctx, e); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", e.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failures...)
}

// choose finds experiments by name.
func choose(names []string) ([]experiment, error) {
	if len(names) != 1 {
		return nil, errUsage
	}
	if names[0] == "all" {
		return slices.DeleteFunc(experiments(), func(e experiment) bool { return e.apart }), nil
	}
	for _, e := range experiments() {
		if e.name == names[0] {
			return []experiment{e}, nil
		}
	}
	return nil, fmt.Errorf("there is no experiment %.40q: %w", names[0], errUsage)
}
