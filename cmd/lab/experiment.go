package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"daesa/cmd/lab/capacity"
	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/overload"
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
	processes  bool // on the real programs, in processes of their own
}

// experiments lists all there are.
func experiments() []experiment {
	return []experiment{
		{
			"silent-pg", "0001-silent-gateway", "the gateway never answers while notices come",
			"Every notice is answered 502 within our own budget, none past 10 s; no connection to the database is held " +
				"meanwhile; one redelivery applies all, and one more applies none and asks nobody.",
			silentGateway, false, false,
		},
		{
			"slow-pg", "0002-slow-gateway", "the gateway answers too late for us",
			"A gateway slower than our question's budget is a silent one: every notice 502, nothing applied until it is fast again.",
			slowGateway, false, false,
		},
		{
			"healthy-pg", "0003-healthy-gateway", "the gateway answers: what is our own share of the time?",
			"Everything is applied at once, and beyond the gateway's own time an answer takes us a few milliseconds.",
			healthyGateway, false, false,
		},
		{
			"redelivery", "0004-redelivery-burst", "a burst of redeliveries against a limit per minute",
			"A token bucket admits its size and what refills during the burst; what it refuses is applied when it comes " +
				"again; a limit sized for the burst refuses none of it.",
			redeliveryBurst, false, false,
		},
		{
			"limit", "0016-limit", "how many cancels a second, and what each costs",
			"The service applies at least 0.6 of the cancels that pgbench does with the very same statements one by one on the " +
				"same server, the question to the gateway included; what leads to nothing costs little more than being let in.",
			underLoad(capacity.Limit), false, false,
		},
		{
			"audit-scale", "0006-audit-scale", "what an audit and a verification cost as the history grows",
			"A run of the audit costs what changed since the last, however long the history; a verification reads the " +
				"books nearly as fast as PostgreSQL hands them out, in constant memory.",
			auditScale, true, false,
		},
		{
			"brownout", "0007-brownout", "the gateway becomes slow while buyers pay and servers look orders up",
			"A cap on approvals under way refuses 1 − cap ÷ (rate × latency) of them and nothing else, and whatever the " +
				"gateway takes, look-ups stay as fast as before.",
			underLoad(overload.Brownout), false, true,
		},
		{
			"webhook-brownout", "0008-webhook-brownout", "the gateway becomes slow while notices come",
			"Payments that wait for the gateway keep no notice waiting: each is stored and answered in time, and a cancel whose " +
				"question fails is refused at once, to come again.",
			underLoad(overload.WebhookBrownout), false, true,
		},
		{
			"timeout-debt", "0009-timeout-debt", "the limit on an approval is shorter than the gateway takes",
			"A shorter limit buys availability with doubt: every payment that was sent must be asked about afterwards.",
			underLoad(overload.TimeoutDebt), false, true,
		},
		{
			"breaker", "0010-breaker", "the gateway times out throughout while buyers pay and servers look orders up",
			"Look-ups stay as fast as before, the first seconds of the outage included, in which no breaker can have opened yet.",
			underLoad(overload.Breaker), false, true,
		},
	}
}

// underLoad is an experiment on the real programs, in processes of their own.
func underLoad(run func(context.Context, *harness.Lab) (report.Result, error)) func(context.Context, *lab) (result, error) {
	return func(ctx context.Context, l *lab) (r result, err error) {
		folder, err := os.MkdirTemp("", "daesa-lab-")
		if err != nil {
			return r, fmt.Errorf("make a folder for what is printed: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		programs, err := l.programs()
		if err != nil {
			return r, err
		}
		return run(ctx, &harness.Lab{Programs: programs, Fresh: l.fresh, Folder: folder, Quick: l.quick, Say: l.say})
	}
}

// buildOnce builds the programs into a folder when they are first asked for.
func buildOnce(ctx context.Context, folder string) func() (harness.Programs, error) {
	return sync.OnceValues(func() (harness.Programs, error) { return harness.Build(ctx, folder) })
}

// say tells whoever waits how far an experiment is.
func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.progress, format+"\n", args...) }

// lab is what every experiment is given.
type lab struct {
	options
	programs func() (harness.Programs, error) // the real ones, built when they are first asked for
	fresh    func(ctx context.Context, database string) (url string, err error)
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

// perform runs one experiment and reports it, unless its figures contradict each other.
func (l *lab) perform(ctx context.Context, e experiment) error {
	if _, err := fmt.Fprintf(l.out, "%s: %s\n", e.name, e.title); err != nil {
		return fmt.Errorf("announce the experiment: %w", err)
	}
	began, load := time.Now(), report.LoadAverage()
	found, err := e.run(ctx, l)
	if err != nil {
		return err
	}
	if len(found.Doubts) > 0 {
		return fmt.Errorf("%w:\n  %s", errImpossible, strings.Join(found.Doubts, "\n  "))
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
