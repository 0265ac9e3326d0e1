package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"daesa/cmd/lab/harness"
	"daesa/internal/postgres/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.Run(m) }

// TestPerform_Quick runs whole experiments, small, one after the other: they count goroutines of the whole process.
// Every claim must hold; no time is asserted.
func TestPerform_Quick(t *testing.T) {
	t.Parallel()
	for name, budget := range map[string]time.Duration{
		"silent-pg":  500 * time.Millisecond, // each notice waits for that long
		"healthy-pg": 3 * time.Second,        // even a busy machine answers within that
	} {
		o, names, err := readOptions([]string{"-quick", "-out", t.TempDir(), name}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		o.budget = budget
		chosen, err := choose(names)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		fresh := func(context.Context, string) (string, error) {
			return postgrestest.NewURL(t), nil //nolint:contextcheck // its life is the test's
		}
		l := &lab{options: o, out: &out, log: slog.New(slog.DiscardHandler), command: "lab run -quick " + name, fresh: fresh}
		if err := l.perform(t.Context(), chosen[0]); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		for _, kept := range []string{".results.md", ".results.csv"} {
			content, err := os.ReadFile(filepath.Join(o.out, chosen[0].file+kept))
			if err != nil || len(content) == 0 {
				t.Errorf("got %d bytes of results%s: %v", len(content), kept, err)
			}
		}
	}
}

// TestPerform_RefusesAnImpossibleRun: neither table nor results of a run that contradicts itself.
func TestPerform_RefusesAnImpossibleRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := &lab{options: options{out: t.TempDir()}, out: &out}
	e := experiment{name: "impossible", file: "0000-impossible", run: func(context.Context, *lab) (result, error) {
		r := result{Columns: []string{"", "we"}}
		r.Row("p95", "13 ms")
		keepPhase(&r, possible().with(func(p *phase) { p.asked = 0 }))
		return r, nil
	}}
	if err := l.perform(t.Context(), e); !errors.Is(err, errImpossible) {
		t.Errorf("got %v, want %v", err, errImpossible)
	}
	if strings.Contains(out.String(), "13 ms") {
		t.Error("the figures were printed")
	}
	if kept, err := os.ReadDir(l.options.out); err != nil || len(kept) > 0 {
		t.Errorf("got %d files of results, want none (%v)", len(kept), err)
	}
}

// TestPerform_OnACalmMachine: what ran before is given a while to fade; where something else goes on, nothing is measured.
func TestPerform_OnACalmMachine(t *testing.T) {
	t.Parallel()
	cores := float64(runtime.NumCPU())
	for _, test := range []struct {
		name   string
		load   func(waited time.Duration) float64
		busy   bool
		want   error
		waited time.Duration
	}{
		{name: "calm", load: func(time.Duration) float64 { return cores / 2 }},
		{name: "calm after a while", load: func(waited time.Duration) float64 { return cores * max(0.5, 2-waited.Minutes()*1.5) }, waited: 55 * time.Second},
		{name: "busy", load: func(time.Duration) float64 { return cores }, want: errBusy, waited: calmWait + calmLook},
		{name: "busy, and measured all the same", load: func(time.Duration) float64 { return cores }, busy: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, ran := time.Now(), false
				l := &lab{
					options: options{busy: test.busy}, out: io.Discard, progress: io.Discard,
					load: func() (float64, bool) { return test.load(time.Since(began)), true },
				}
				err := l.perform(t.Context(), experiment{name: "x", run: func(context.Context, *lab) (result, error) {
					ran = true
					return result{Columns: []string{""}}, nil
				}})
				if !errors.Is(err, test.want) || ran != (test.want == nil) {
					t.Errorf("got %v, ran %v; want %v", err, ran, test.want)
				}
				if waited := time.Since(began); waited != test.waited {
					t.Errorf("waited %s, want %s", waited, test.waited)
				}
			})
		})
	}
}

// TestPerform_ReportsARefutedClaim: what does not hold is shown and ends in an error.
func TestPerform_ReportsARefutedClaim(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := &lab{out: &out}
	e := experiment{name: "wrong", run: func(context.Context, *lab) (result, error) {
		r := result{Columns: []string{"", "we"}}
		r.Claim(false, "the earth is flat")
		return r, nil
	}}
	if err := l.perform(t.Context(), e); !errors.Is(err, errRefuted) {
		t.Errorf("got %v, want %v", err, errRefuted)
	}
	if !strings.Contains(out.String(), "REFUTED: the earth is flat") {
		t.Errorf("got %q", &out)
	}
}

func TestRun_Usage(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"list"}, &out, io.Discard); err != nil {
		t.Error(err)
	}
	for _, e := range experiments() {
		if !strings.Contains(out.String(), e.name) {
			t.Errorf("the list lacks %s", e.name)
		}
	}
	for _, args := range [][]string{nil, {"dance"}, {"run"}, {"run", "silent-pg", "slow-pg"}, {"run", "loud-pg"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); !errors.Is(err, errUsage) {
			t.Errorf("%v: got %v, want %v", args, err, errUsage)
		}
	}
}

// TestOptions_AnywhereInTheLine: flags stand before a name, after it, or both.
func TestOptions_AnywhereInTheLine(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-quick", "-out", "kept", "breaker"}, {"breaker", "-quick", "-out", "kept"}, {"-quick", "breaker", "-out=kept"},
	} {
		o, names, err := readOptions(args, io.Discard)
		if err != nil || !o.quick || o.out != "kept" || len(names) != 1 || names[0] != "breaker" {
			t.Errorf("%v: got quick %v, out %q, names %q and %v", args, o.quick, o.out, names, err)
		}
	}
}

func TestOptions_Bounds(t *testing.T) {
	t.Parallel()
	if _, _, err := readOptions([]string{"silent-pg"}, io.Discard); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	for _, args := range [][]string{
		{"-payments", "0"},
		{"-payments", "1001"},
		{"-burst", "5000"},
		{"-over", "1h"},
		{"-over", "0s"},
		{"-patience", "-1s"},
		{"-query-budget", "9s", "-slow", "10s"},
		{"-slow", "1s"},
		{"-healthy", "3s"},
		{"-small-limit", "300"},
	} {
		if _, _, err := readOptions(args, io.Discard); err == nil {
			t.Errorf("%v: got no error", args)
		}
	}
}

// TestPerform_ScaleQuick grows a small history twice. Its costs are of no account; that they add up is.
func TestPerform_ScaleQuick(t *testing.T) {
	t.Parallel()
	o, names, err := readOptions([]string{"-quick", "-out", t.TempDir(), "audit-scale"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := choose(names)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	fresh := func(context.Context, string) (string, error) {
		return postgrestest.NewURL(t), nil //nolint:contextcheck // its life is the test's
	}
	l := &lab{options: o, out: &out, log: slog.New(slog.DiscardHandler), command: "lab run -quick audit-scale", fresh: fresh}
	if err := l.perform(t.Context(), chosen[0]); err != nil && !errors.Is(err, errRefuted) {
		t.Fatalf("%v\n%s", err, &out)
	}
	t.Logf("%s", &out)
	for _, kept := range []string{".results.md", ".results.csv", ".results.keys.svg", ".results.reading.svg"} {
		content, err := os.ReadFile(filepath.Join(o.out, chosen[0].file+kept))
		if err != nil || len(content) == 0 {
			t.Errorf("got %d bytes of results%s: %v", len(content), kept, err)
		}
	}
}

// TestPerform_QuickUnderLoad runs every experiment on the real programs, small. No witness may contradict another, and
// every claim about counts must hold. The programs are built without the race detector: what they do at once is under it
// in the tests of internal/app.
func TestPerform_QuickUnderLoad(t *testing.T) {
	t.Parallel()
	programs := buildOnce(t.Context(), t.TempDir())
	for _, e := range loaded() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			performQuick(t, e, programs)
		})
	}
}

func performQuick(t *testing.T, e experiment, programs func() (harness.Programs, error)) {
	t.Helper()
	o, _, err := readOptions([]string{"-quick", "-out", t.TempDir(), e.name}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	fresh := func(context.Context, string) (string, error) {
		return postgrestest.NewURL(t), nil //nolint:contextcheck // its life is the test's
	}
	began := time.Now()
	l := &lab{programs: programs, options: o, out: &out, progress: &progress, log: slog.New(slog.DiscardHandler), command: "lab run -quick " + e.name, fresh: fresh}
	if err := l.perform(t.Context(), e); err != nil {
		t.Errorf("%v\n%s\n%s", err, &progress, &out)
		return
	}
	if charts, err := filepath.Glob(filepath.Join(o.out, e.file+".results.*.svg")); err != nil || len(charts) == 0 {
		t.Errorf("no chart was drawn (%v)", err)
	}
	t.Logf("%s in %s:\n%s", e.name, time.Since(began).Round(time.Millisecond), &out)
	for _, kept := range []string{".results.md", ".results.csv.gz", ".results.watch.csv"} {
		content, err := os.ReadFile(filepath.Join(o.out, e.file+kept))
		if err != nil || len(content) == 0 {
			t.Errorf("got %d bytes of results%s: %v", len(content), kept, err)
		}
	}
}

// TestPerform_LimitQuick applies a few cancels through the real program and with pgbench. No witness may contradict
// another: pgbench must have written the same rows as the service. Its rates are of no account.
func TestPerform_LimitQuick(t *testing.T) {
	t.Parallel()
	o, names, err := readOptions([]string{"-quick", "-out", t.TempDir(), "limit"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := choose(names)
	if err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	fresh := func(context.Context, string) (string, error) {
		return postgrestest.NewURL(t), nil //nolint:contextcheck // its life is the test's
	}
	l := &lab{
		programs: buildOnce(t.Context(), t.TempDir()), options: o, out: &out, progress: &progress, log: slog.New(slog.DiscardHandler),
		command: "lab run -quick limit", fresh: fresh,
	}
	if err := l.perform(t.Context(), chosen[0]); err != nil {
		t.Fatalf("%v\n%s\n%s", err, &progress, &out)
	}
	t.Logf("%s", &out)
	for _, kept := range []string{".results.md", ".results.csv", ".results.tables.csv", ".results.statements.csv"} {
		content, err := os.ReadFile(filepath.Join(o.out, chosen[0].file+kept))
		if err != nil || len(content) == 0 {
			t.Errorf("got %d bytes of results%s: %v", len(content), kept, err)
		}
	}
}
