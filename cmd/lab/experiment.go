package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"time"

	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
)

// experiment is one question put to the whole service.
type experiment struct {
	name       string
	file       string // of its results
	title      string
	hypothesis string
	run        func(context.Context, *lab) (result, error)
	apart      bool // too long for a run of all
}

// say tells whoever waits how far an experiment is.
func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.progress, format+"\n", args...) }

// lab is what every experiment is given.
type lab struct {
	options
	programs func() (harness.Programs, error) // the real ones, built when they are first asked for
	load     func() (load float64, told bool) // of the machine; nil where nobody asks
	fresh    func(ctx context.Context, database string) (url string, err error)
	drop     func(ctx context.Context, database string) error // nil: databases end by themselves
	out      io.Writer
	progress io.Writer
	log      *slog.Logger
	command  string
	setting  report.Setting
}

// result is what an experiment found.
type result = report.Result

// errImpossible is a run whose figures contradict each other.
var errImpossible = errors.New("refused to report an impossible run")

// errRefuted is a run in which a claim did not hold.
var errRefuted = errors.New("the run does not bear out every claim")

// errBusy is a machine that does other work.
var errBusy = errors.New("the machine is busy with something else, and figures taken beside that are not those of the service; -busy measures all the same")

// A machine is calm when fewer than so many processes for each core were ready to run in the last minute. What ran
// before, such as another experiment, is given a while to fade.
const (
	calmBelow = 0.75
	calmWait  = 5 * time.Minute
	calmLook  = 5 * time.Second
)

// calm waits until the machine does nothing else. Where the system does not tell, nobody waits.
func (l *lab) calm(ctx context.Context) error {
	if l.quick || l.busy || l.load == nil {
		return nil
	}
	for until := time.Now().Add(calmWait); ; {
		load, told := l.load()
		if !told || load < calmBelow*float64(runtime.NumCPU()) {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("%w: load average %.2f on %d cores", errBusy, load, runtime.NumCPU())
		}
		l.say("waiting for the machine to calm down: load average %.2f", load)
		if err := harness.Wait(ctx, calmLook); err != nil {
			return err
		}
	}
}

// loadNow is how many processes were ready to run in the last minute, where the system tells.
func loadNow() (load float64, told bool) {
	load, err := strconv.ParseFloat(report.LoadAverage(), 64)
	return load, err == nil
}

// perform runs one experiment and reports it, unless its figures contradict each other.
func (l *lab) perform(ctx context.Context, e experiment) error {
	if _, err := fmt.Fprintf(l.out, "%s: %s\n", e.name, e.title); err != nil {
		return fmt.Errorf("announce the experiment: %w", err)
	}
	if err := l.calm(ctx); err != nil {
		return err
	}
	began, load := time.Now(), report.LoadAverage()
	found, err := e.run(ctx, l)
	if err != nil {
		return err
	}
	if doubts := found.AllDoubts(); len(doubts) > 0 {
		return fmt.Errorf("%w:\n  %s", errImpossible, strings.Join(doubts, "\n  "))
	}
	r := report.Report{
		Result: found, Name: e.name, File: e.file, Command: l.command, At: began, Load: load, Took: time.Since(began),
		Setting: l.setting,
	}
	if err := r.Text(l.out); err != nil {
		return err
	}
	if err := r.Keep(l.options.out); err != nil {
		return err
	}
	if c, refuted := found.Refuted(l.quick); refuted {
		return fmt.Errorf("%w: %s", errRefuted, c.Text)
	}
	return nil
}
