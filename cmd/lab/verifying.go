package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/app"
	"daesa/ledger/seal"
)

// verified is one verification of everything.
type verified struct {
	took     time.Duration
	resident int64 // bytes at most; zero when it ran in this process
}

// verifiedTables are what a verification reads.
func verifiedTables() []string {
	return []string{
		"journal_transactions", "journal_entries", "orders", "payments", "captures", "cancels", "credit_accounts", "credit_spends",
	}
}

// seal makes heads of the journal as it stands, with a key of the run's own.
func (b *scaleBench) seal(ctx context.Context) (err error) {
	if b.keyFile == "" {
		if b.keyFile, err = b.newKey(); err != nil {
			return err
		}
	}
	key, err := seal.ReadKey(b.keyFile)
	if err != nil {
		return err
	}
	aDayLater := time.Now().AddDate(0, 0, b.seals) // than the last
	sealer, err := seal.New(seal.Config{
		DB: b.history.db, Metrics: seal.NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler),
		Now:         func() time.Time { return aDayLater },
		DatabaseNow: func(context.Context) (time.Time, error) { return aDayLater, nil },
		Key:         key, Witness: seal.NewWitness(b.keyFile + ".heads"),
	})
	if err != nil {
		return err
	}
	b.seals++
	return sealer.Run(ctx)
}

func (b *scaleBench) newKey() (string, error) {
	dir, err := os.MkdirTemp("", "daesa-lab-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the key: %w", err)
	}
	b.dir = dir
	path := filepath.Join(dir, "seal.pem")
	_, err = seal.GenerateKey(path)
	return path, err
}

// verifyOnce runs `daesa verify`, as a process of its own so that its memory can be told, unless the run is a quick one.
func (b *scaleBench) verifyOnce(ctx context.Context) (v verified, err error) {
	args := []string{"verify", "--database-url", b.address, "--seal-key-file", b.keyFile}
	var out bytes.Buffer
	began := time.Now()
	if b.quick {
		if code := app.Main(args, &out, &out); code != app.ExitOK { //nolint:contextcheck // a program has its own
			return v, fmt.Errorf("verify ended with %d: %s", code, &out)
		}
		return verified{took: time.Since(began)}, nil
	}
	if b.binary == "" {
		b.binary = filepath.Join(b.dir, "daesa")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.binary, "daesa/cmd/daesa") //nolint:gosec // our own program
		if text, err := build.CombinedOutput(); err != nil {
			return v, fmt.Errorf("build daesa: %w: %s", err, text)
		}
		began = time.Now()
	}
	command := exec.CommandContext(ctx, b.binary, args...) //nolint:gosec // our own program
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		return v, fmt.Errorf("daesa %s: %w", args[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	v.resident, err = mostResident(command.Process.Pid, ended)
	if err != nil {
		return v, fmt.Errorf("daesa %s: %w: %s", args[0], err, &out)
	}
	v.took = time.Since(began)
	return v, nil
}

// mostResident waits for a process and returns the most memory that it held resident, bytes. The high-water mark is read
// while it runs: that which the system tells of a process that has ended counts the one that began it, too.
func mostResident(pid int, ended <-chan error) (most int64, err error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if err == nil && most == 0 {
				err = errors.New("its memory could not be seen")
			}
			return most, err
		case <-tick.C:
			most = max(most, highWater(pid))
		}
	}
}

// highWater is VmHWM of /proc/<pid>/status in bytes; zero when it cannot be read.
func highWater(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kibibytes int64
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kibibytes); err == nil {
			return kibibytes << 10
		}
	}
	return 0
}
