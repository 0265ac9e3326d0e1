// Command lab replays experiments that other teams made with their services on the whole of this one, and prints their
// figures beside ours: what becomes of payments, notices and look-ups while the gateway is slow, silent or back again,
// and when more comes than anybody can bear. One experiment is of our own asking: what audits and verifications cost as
// the books grow. It takes tens of gigabytes and about an hour at its full size.
//
// Everything runs on this machine and on the loopback interface. The older experiments run the service within this
// process; those with load start the real programs as processes of their own (package harness). A run is bounded in
// number and time, and ends by itself. Figures that contradict each other are not reported at all.
//
//	lab list
//	lab run [-quick] [-out folder] NAME
//	lab run [-quick] [-out folder] all
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
	folder, err := os.MkdirTemp("", "daesa-lab-")
	if err != nil {
		return fmt.Errorf("make a folder for the programs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	l := &lab{programs: buildOnce(ctx, folder), load: loadNow, options: o, fresh: database.Fresh, drop: database.Drop, out: out, progress: diagnostics, log: log, command: "go run ./cmd/lab run " + strings.Join(args, " "), setting: report.Where(ctx)}
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
