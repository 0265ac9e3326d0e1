package overload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
	"daesa/pgclient/tosssim"
)

// debt is the size of the experiment.
type debt struct {
	latency  time.Duration
	over     time.Duration
	confirms float64 // a second
	reads    float64
	threads  int
	long     time.Duration // longer than the gateway takes
	short    time.Duration // shorter
	still    time.Duration // that the gateway stays slow after the load
	patience time.Duration
	warm     time.Duration
}

func debtOf(quick bool) debt {
	if quick {
		return debt{
			latency: 300 * time.Millisecond, over: 900 * time.Millisecond, confirms: 50, reads: 20, threads: 12,
			long: 2 * time.Second, short: 100 * time.Millisecond, still: 500 * time.Millisecond,
			patience: 3 * time.Second, warm: 200 * time.Millisecond,
		}
	}
	return debt{
		latency: 5 * time.Second, over: 30 * time.Second, confirms: 50, reads: 20, threads: 100,
		long: 6 * time.Second, short: 2 * time.Second, still: 30 * time.Second, patience: 20 * time.Second, warm: 5 * time.Second,
	}
}

// debtRun is one arm.
type debtRun struct {
	harness.Observed

	doubt   int           // payments whose outcome nobody knew when the load ended
	settled int           // of those, in the time that the gateway stayed slow
	took    time.Duration // until the last was known, once the gateway was fast again
	books   harness.Books
}

// TimeoutDebt shortens the limit on an approval until it is below what the gateway takes.
func TimeoutDebt(ctx context.Context, l *harness.Lab) (r report.Result, err error) {
	size := debtOf(l.Quick)
	within := func(arm harness.Arm, name string, limit time.Duration) harness.Arm {
		arm.Name = name
		arm.Settings = append(arm.Settings, "DAESA_PATH_CONFIRM_ATTEMPT="+limit.String())
		return arm
	}
	arms := []harness.Arm{
		within(before(size.threads), fmt.Sprint("before, limit ", size.long), size.long),
		within(before(size.threads), fmt.Sprint("before, limit ", size.short), size.short),
		within(harness.Arm{}, fmt.Sprint("cap and breaker, limit ", size.short), size.short),
		{Name: "as shipped"},
	}
	if l.Quick {
		arms = arms[1:3]
	}
	var runs []debtRun
	for _, arm := range arms {
		run, err := size.run(ctx, l, arm)
		if err != nil {
			return r, err
		}
		runs = append(runs, run)
	}
	size.table(&r, runs)
	size.claims(&r, runs)
	r.Notes = []string{fmt.Sprintf(
		"%.0f confirms and %.0f reads a second for %s, at a gateway that takes %s for everything. Before is our stand-in for their server: the same "+
			"binary with %d requests at once in one line, no cap, no breaker, one attempt. Their first limit was the gateway's own 5 s.",
		size.confirms, size.reads, size.over, size.latency, size.threads)}
	return r, nil
}

func (size debt) run(ctx context.Context, l *harness.Lab, arm harness.Arm) (run debtRun, err error) {
	l.Say("timeout-debt: %s", arm.Name)
	b, err := l.Open(ctx, arm)
	if err != nil {
		return run, err
	}
	defer func() { err = firstOf(err, b.Close()) }() //nolint:contextcheck // it ends also when the context has ended
	load := brownout{confirms: size.confirms, reads: size.reads, patience: size.patience, warm: size.warm}
	if err := load.warmUp(ctx, b); err != nil {
		return run, err
	}
	streams, err := load.streams(ctx, b, size.over)
	if err != nil {
		return run, err
	}
	plan := harness.Plan{
		Name: fmt.Sprint("gateway ", size.latency), Streams: streams, Latency: size.latency,
		Fault: harness.Fault{Ops: []tosssim.Op{tosssim.Confirm, tosssim.Get}, Kind: tosssim.Delay, Delay: size.latency},
		Then:  func(ctx context.Context) error { return size.settle(ctx, b, &run) },
	}
	if run.Observed, err = b.Run(ctx, plan); err != nil {
		return run, err
	}
	run.books, err = b.Books(ctx)
	return run, err
}

// settle sees how fast doubts end while the gateway is still slow, and how long the rest takes once it is not.
func (size debt) settle(ctx context.Context, b *harness.Bench, run *debtRun) (err error) {
	if run.doubt, err = b.InDoubt(ctx); err != nil {
		return err
	}
	if _, err := b.Recover(ctx, size.still); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	left, err := b.InDoubt(ctx)
	if err != nil {
		return err
	}
	run.settled = run.doubt - left
	if err := b.Gateway.Heal(ctx); err != nil {
		return err
	}
	run.took, err = b.Recover(ctx, 10*time.Minute)
	return err
}

// unknown is how many buyers were told that nobody knows yet.
func (run debtRun) unknown() int { return run.Of("confirms").Count(harness.Answered(202, "")) }

func (size debt) table(r *report.Result, runs []debtRun) {
	r.Columns = []string{"", "they, 5 s", "they, 2 s"}
	for _, run := range runs {
		r.Columns = append(r.Columns, run.Arm)
		keep(r, run.Observed)
	}
	each := func(name, long, short string, of func(debtRun) string) {
		cells := []string{long, short}
		for _, run := range runs {
			cells = append(cells, of(run))
		}
		r.Row(name, cells...)
	}
	each("confirms p95", "14.26 s", "2.13 s", func(run debtRun) string { return report.Short(run.Of("confirms").Spread().P95) })
	each("answers", "", "", func(run debtRun) string { return run.Of("confirms").Answers() })
	each("unknown", "0", "1,351, all", func(run debtRun) string { return fmt.Sprint(run.unknown()) })
	each("reads p95", "", "", func(run debtRun) string { return report.Short(run.Of("reads").Spread().P95) })
	each("in doubt when the load ends", "", "", func(run debtRun) string { return fmt.Sprint(run.doubt) })
	each(fmt.Sprintf("settled in %s that the gateway stays slow", size.still), "", "", func(run debtRun) string { return fmt.Sprint(run.settled) })
	each("the rest, once it is fast", "asked again", "asked again", func(run debtRun) string { return report.Short(run.took) })
	each("captured in the end: books, gateway", "", "", func(run debtRun) string {
		return fmt.Sprintf("%d, %d", run.Since.Captures.Count, run.Since.GatewayCaptures.Count)
	})
	each("audit", "", "", func(run debtRun) string { return string(run.books.Verdict) })
	for n, name := range resourceColumns() {
		each(name, "", "", func(run debtRun) string { return resources(run.Observed)[n] })
	}
	var curves []curve
	for _, run := range runs {
		curves = append(curves, curve{run.Arm, run.Of("confirms")})
	}
	r.Plots = []report.NamedPlot{p95s("confirms", "confirms", size.over, curves...)}
}

func (size debt) claims(r *report.Result, runs []debtRun) {
	for _, run := range runs {
		r.Claim(run.After.Open == 0 && run.Since.Captures == run.Since.GatewayCaptures, "%s: in the end the books hold what the gateway captured: %s, %s",
			run.Arm, run.Since.Captures, run.Since.GatewayCaptures)
		r.Claim(run.books.Sound(), "%s: the audit says %s %v, and every invariant holds (%d violations)", run.Arm, run.books.Verdict, run.books.Reasons,
			len(run.books.Violations))
	}
	if len(runs) < 4 {
		return // a quick run
	}
	long, short, guarded, shipped := runs[0], runs[1], runs[2], runs[3]
	longP95, shortP95 := long.Of("confirms").Spread().P95, short.Of("confirms").Spread().P95
	r.ClaimTime(shortP95 < longP95/2, "the shorter limit answers sooner: p95 %s instead of %s", report.Short(shortP95), report.Short(longP95))
	silent := short.Of("confirms").Count(harness.Silent)
	r.ClaimTime(short.unknown()+silent == len(short.Of("confirms").Sent), "with it every payment that is sent becomes unknown (%d of %d; %d had no answer)",
		short.unknown(), len(short.Of("confirms").Sent), silent)
	r.ClaimTime(shipped.unknown() == 0, "as shipped none becomes unknown (%d): what there is no room for is refused before it is sent", shipped.unknown())
	r.ClaimTime(guarded.unknown() < short.unknown(), "cap and breaker bound the debt: %d unknown instead of %d", guarded.unknown(), short.unknown())
}
