package overload

import (
	"context"
	"fmt"
	"time"

	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
	"daesa/pgclient/tosssim"
)

// outage is the size of the experiment.
type outage struct {
	over     time.Duration
	calm     time.Duration // of the healthy run that it is compared with
	confirms float64       // a second
	reads    float64
	threads  int
	limit    time.Duration // of an approval in the stand-in
	patience time.Duration
	warm     time.Duration
	settings []string // of the service as shipped, in a quick run
}

func outageOf(quick bool) outage {
	if quick {
		return outage{
			over: 1500 * time.Millisecond, calm: time.Second, confirms: 35, reads: 20, threads: 12, limit: 400 * time.Millisecond,
			patience: 3 * time.Second, warm: 200 * time.Millisecond, settings: []string{"DAESA_PATH_CONFIRM_ATTEMPT=400ms"},
		}
	}
	return outage{
		over: 180 * time.Second, calm: 30 * time.Second, confirms: 35, reads: 10, threads: 200, limit: 6 * time.Second,
		patience: 20 * time.Second, warm: 5 * time.Second,
	}
}

// outageRun is one arm.
type outageRun struct {
	healthy, out harness.Observed
	took         time.Duration // until nothing was in doubt, once the gateway was back
	books        harness.Books
}

// Breaker lets the gateway time out throughout, while buyers pay and servers look orders up.
func Breaker(ctx context.Context, l *harness.Lab) (r report.Result, err error) {
	size := outageOf(l.Quick)
	bare := before(size.threads)
	bare.Settings = append(bare.Settings, "DAESA_PATH_CONFIRM_ATTEMPT="+size.limit.String())
	alone := harness.Arm{Name: "breaker alone", Settings: []string{
		fmt.Sprint("DAESA_ONE_LINE=", size.threads), "DAESA_PATH_CONFIRM_CAP=100000", "DAESA_PATH_CONFIRM_ATTEMPTS=1",
		"DAESA_PATH_CONFIRM_ATTEMPT=" + size.limit.String(),
	}}
	arms := []harness.Arm{bare, alone, {Name: "as shipped", Settings: size.settings}}
	if l.Quick {
		arms = arms[2:]
	}
	var runs []outageRun
	for _, arm := range arms {
		run, err := size.run(ctx, l, arm)
		if err != nil {
			return r, err
		}
		runs = append(runs, run)
	}
	size.table(&r, runs)
	size.claims(&r, runs)
	size.plot(&r, runs)
	r.Notes = []string{fmt.Sprintf(
		"%.0f confirms and %.0f reads a second for %s, at a gateway that answers nothing; healthy is the same load for %s before it. Before is our "+
			"stand-in for their server: the same binary with %d requests at once in one line, no cap, no breaker, one attempt of %s. "+
			"Breaker alone is that with our breaker. A client hangs up after %s, and counts with the time that it waited.",
		size.confirms, size.reads, size.over, size.calm, size.threads, size.limit, size.patience)}
	return r, nil
}

func (size outage) run(ctx context.Context, l *harness.Lab, arm harness.Arm) (run outageRun, err error) {
	l.Say("breaker: %s", arm.Name)
	b, err := l.Open(ctx, arm)
	if err != nil {
		return run, err
	}
	defer func() { err = firstOf(err, b.Close()) }() //nolint:contextcheck // it ends also when the context has ended
	load := brownout{confirms: size.confirms, reads: size.reads, patience: size.patience, warm: size.warm}
	if err := load.warmUp(ctx, b); err != nil {
		return run, err
	}
	streams, err := load.streams(ctx, b, size.calm)
	if err != nil {
		return run, err
	}
	if run.healthy, err = b.Run(ctx, harness.Plan{Name: "healthy", Streams: streams}); err != nil {
		return run, err
	}
	if streams, err = load.streams(ctx, b, size.over); err != nil {
		return run, err
	}
	run.out, err = b.Run(ctx, harness.Plan{
		Name: "gateway silent", Streams: streams, Fault: harness.Fault{Ops: []tosssim.Op{tosssim.Confirm, tosssim.Get}, Kind: tosssim.Hang},
		Then: func(ctx context.Context) (err error) {
			if l.Quick {
				return nil // the breakers open for ten seconds
			}
			if err := b.Gateway.Heal(ctx); err != nil {
				return err
			}
			run.took, err = b.Recover(ctx, 10*time.Minute)
			return err
		},
	})
	if err != nil {
		return run, err
	}
	run.books, err = b.Books(ctx)
	return run, err
}

func refusedByBreaker(s harness.Sent) bool { return harness.Answered(503, "gateway_down")(s) }

func (size outage) table(r *report.Result, runs []outageRun) {
	r.Columns = []string{"", "they, before", "they, with retry and breaker"}
	for _, run := range runs {
		r.Columns = append(r.Columns, run.out.Arm)
		keep(r, run.healthy)
		keep(r, run.out)
	}
	each := func(name, bare, guarded string, of func(outageRun) string) {
		cells := []string{bare, guarded}
		for _, run := range runs {
			cells = append(cells, of(run))
		}
		r.Row(name, cells...)
	}
	times := func(o harness.Observed) string {
		p := o.Of("reads").Spread()
		return fmt.Sprintf("%s / %s / %s", report.Short(p.P95), report.Short(p.P99), report.Short(p.Most))
	}
	each("reads p95 / p99 / max, healthy", "", "", func(run outageRun) string { return times(run.healthy) })
	each("reads p95 / p99 / max, gateway silent", "7.21 / 7.75 / 8.82 s", "2.54 / 3.28 / 4.42 s", func(run outageRun) string { return times(run.out) })
	each("requests in flight, most", "200", "200, then 20–50", func(run outageRun) string {
		return fmt.Sprint(run.out.Most(func(l harness.Look) int {
			return l.InFlight["money"] + l.InFlight["reading"] + l.InFlight["notification"]
		}))
	})
	each("confirms", "", "", func(run outageRun) string { return run.out.Of("confirms").Answers() })
	each("refused by the breaker, a second", "", "30–38", func(run outageRun) string {
		return fmt.Sprintf("%.1f", float64(run.out.Of("confirms").Count(refusedByBreaker))/size.over.Seconds())
	})
	each("confirms p95", "", "", func(run outageRun) string { return report.Short(run.out.Of("confirms").Spread().P95) })
	each("nothing in doubt, once the gateway is back", "", "", func(run outageRun) string { return report.Short(run.took) })
	each("captured in the end: books, gateway", "", "", func(run outageRun) string {
		return fmt.Sprintf("%d, %d", run.out.Since.Captures.Count, run.out.Since.GatewayCaptures.Count)
	})
	for n, name := range resourceColumns() {
		each(name, "", "", func(run outageRun) string { return resources(run.out)[n] })
	}
}

func (size outage) claims(r *report.Result, runs []outageRun) {
	shipped := runs[len(runs)-1]
	calm, out := shipped.healthy.Of("reads").Spread(), shipped.out.Of("reads").Spread()
	r.ClaimTime(out.P95 <= atMost(calm.P95, 10*time.Millisecond), "as shipped, over the whole outage and its first seconds, the reads' p95 is %s, at most twice the healthy %s or 10 ms more",
		report.Short(out.P95), report.Short(calm.P95))
	r.ClaimTime(out.P99 <= atMost(calm.P99, 10*time.Millisecond), "and their p99 is %s, at most twice the healthy %s or 10 ms more", report.Short(out.P99), report.Short(calm.P99))
	if len(runs) < 3 {
		return // a quick run
	}
	bare, alone := runs[0], runs[1]
	r.ClaimTime(bare.out.Of("reads").Spread().P95 > 10*out.P95 && alone.out.Of("reads").Spread().P99 > out.P99,
		"a breaker alone acts only after the first time-outs have come back; without one the reads wait to the end: p95 %s, breaker alone %s, p99 %s",
		report.Short(bare.out.Of("reads").Spread().P95), report.Short(alone.out.Of("reads").Spread().P95), report.Short(alone.out.Of("reads").Spread().P99))
	for _, run := range runs {
		r.Claim(run.out.After.Open == 0 && run.out.Since.Captures == run.out.Since.GatewayCaptures && run.books.Sound(),
			"%s: in the end the books hold what the gateway captured (%s, %s), the audit says %s %v, and every invariant holds (%d violations)", run.out.Arm,
			run.out.Since.Captures, run.out.Since.GatewayCaptures, run.books.Verdict, run.books.Reasons, len(run.books.Violations))
	}
}

// plot draws the reads' p95 of each stretch of the outage.
func (size outage) plot(r *report.Result, runs []outageRun) {
	var curves []curve
	for _, run := range runs {
		curves = append(curves, curve{run.out.Arm, run.out.Of("reads")})
	}
	r.Plots = []report.NamedPlot{p95s("reads", "reads during the outage", size.over, curves...)}
}
