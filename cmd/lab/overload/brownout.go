package overload

import (
	"context"
	"fmt"
	"slices"
	"time"

	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
	"daesa/pgclient/tosssim"
)

// brownout is the size of the experiment.
type brownout struct {
	latencies []time.Duration
	over      time.Duration // of each run, a multiple of every latency
	confirms  float64       // a second
	reads     float64
	threads   int // of the stand-in
	slots     int // the cap
	smaller   int // the other cap, tried at one latency; 0 = none
	smallerAt time.Duration
	again     []time.Duration // latencies that are run twice
	patience  time.Duration
	warm      time.Duration
}

func brownoutOf(quick bool) brownout {
	if quick {
		const slow = 200 * time.Millisecond
		return brownout{
			latencies: []time.Duration{0, slow}, over: 4 * slow, confirms: 50, reads: 20, threads: 8, slots: 4,
			patience: 3 * time.Second, warm: 300 * time.Millisecond,
		}
	}
	return brownout{
		latencies: []time.Duration{0, 500 * time.Millisecond, time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second},
		over:      30 * time.Second, confirms: 50, reads: 20, threads: 100, slots: 40, smaller: 20, smallerAt: 3 * time.Second,
		again:    []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second},
		patience: 20 * time.Second, warm: 5 * time.Second,
	}
}

// brownoutRun is one latency of one arm.
type brownoutRun struct {
	harness.Observed

	latency time.Duration
	slots   int // 0 without a cap
}

// Brownout sweeps the latency of the gateway, with and without a cap on the approvals that are under way.
func Brownout(ctx context.Context, l *harness.Lab) (r report.Result, err error) {
	size := brownoutOf(l.Quick)
	none, err := size.sweep(ctx, l, before(size.threads), 0, append(slices.Clone(size.latencies), size.again...))
	if err != nil {
		return r, err
	}
	cap40, err := size.sweep(ctx, l, capped(size.slots), size.slots, append(slices.Clone(size.latencies), size.again...))
	if err != nil {
		return r, err
	}
	var cap20 []brownoutRun
	if size.smaller > 0 {
		if cap20, err = size.sweep(ctx, l, capped(size.smaller), size.smaller, []time.Duration{size.smallerAt}); err != nil {
			return r, err
		}
	}
	r.Columns = append([]string{
		"", "refused", "share", "1 − cap ÷ (rate × measured latency)", "they", "reads p50, p95, max", "they, reads p95", "confirms p95",
		"no answer", "at the gateway, most",
	}, resourceColumns()...)
	for _, run := range slices.Concat(none, cap40, cap20) {
		keep(&r, run.Observed)
		size.row(&r, run)
	}
	size.claims(&r, none, cap40)
	for _, run := range cap20 {
		size.claimShare(&r, run)
	}
	size.plots(&r, none, cap40)
	r.Notes = []string{fmt.Sprintf(
		"Each run: %.0f confirms and %.0f reads a second for %s after %s of warm-up at a healthy gateway. Before is our stand-in "+
			"for their servers: the same binary with %d requests at once in one line, no cap, no breaker, one attempt. A client "+
			"hangs up after %s, and what had no answer counts with the time that it waited.",
		size.confirms, size.reads, size.over, size.warm, size.threads, size.patience,
	)}
	return r, nil
}

// sweep runs an arm at one latency after the other.
func (size brownout) sweep(ctx context.Context, l *harness.Lab, arm harness.Arm, slots int, latencies []time.Duration) (runs []brownoutRun, err error) {
	b, err := l.Open(ctx, arm)
	if err != nil {
		return nil, err
	}
	defer func() { err = firstOf(err, b.Close()) }() //nolint:contextcheck // it ends also when the context has ended
	for _, latency := range latencies {
		name := fmt.Sprint("gateway ", latency)
		if slices.ContainsFunc(runs, func(run brownoutRun) bool { return run.latency == latency }) {
			name += ", again"
		}
		l.Say("brownout: %s, %s", arm.Name, name)
		if err := size.warmUp(ctx, b); err != nil {
			return nil, err
		}
		o, err := size.run(ctx, b, name, latency)
		if err != nil {
			return nil, err
		}
		runs = append(runs, brownoutRun{o, latency, slots})
	}
	return runs, nil
}

func (size brownout) streams(ctx context.Context, b *harness.Bench, over time.Duration) ([]harness.Stream, error) {
	payments, err := b.Payable(ctx, int(size.confirms*over.Seconds()))
	if err != nil {
		return nil, err
	}
	return []harness.Stream{
		harness.Confirms(size.confirms, size.patience, payments),
		harness.Reads(size.reads, size.patience, int(size.reads*over.Seconds()), payments),
	}, nil
}

func (size brownout) warmUp(ctx context.Context, b *harness.Bench) error {
	streams, err := size.streams(ctx, b, size.warm)
	if err != nil {
		return err
	}
	return b.WarmUp(ctx, streams...)
}

func (size brownout) run(ctx context.Context, b *harness.Bench, name string, latency time.Duration) (o harness.Observed, err error) {
	streams, err := size.streams(ctx, b, size.over)
	if err != nil {
		return o, err
	}
	plan := harness.Plan{Name: name, Streams: streams, Latency: latency}
	if latency > 0 {
		plan.Fault = harness.Fault{Ops: []tosssim.Op{tosssim.Confirm}, Kind: tosssim.Delay, Delay: latency}
	}
	return b.Run(ctx, plan)
}

func refusedByCap(s harness.Sent) bool { return harness.Answered(503, "gateway_busy")(s) }

func (run brownoutRun) refused() int   { return run.Of("confirms").Count(refusedByCap) }
func (run brownoutRun) share() float64 { return run.Of("confirms").Share(refusedByCap) }
func (run brownoutRun) reads() spread  { return run.Of("reads").Spread() }
func (run brownoutRun) predicted() float64 {
	if run.slots == 0 {
		return 0
	}
	return max(0, 1-float64(run.slots)/(run.Of("confirms").Rate*run.measured().Seconds()))
}

type spread = report.Spread

// measured is what an approval really took, on average: the gateway's latency and our own share.
func (run brownoutRun) measured() time.Duration {
	times := run.Of("confirms").Times(harness.Answered(200, "done"))
	sum := time.Duration(0)
	for _, took := range times {
		sum += took
	}
	return sum / time.Duration(max(1, len(times)))
}

func (size brownout) row(r *report.Result, run brownoutRun) {
	confirms, reads := run.Of("confirms"), run.Of("reads")
	silent := confirms.Count(harness.Silent) + reads.Count(harness.Silent)
	theirShare, theirReads := brownoutOfTheirs(run.latency, run.slots)
	predicted := "–"
	if run.slots > 0 {
		predicted = percent(run.predicted())
	}
	p := run.reads()
	r.Row(title(run.Observed), append([]string{
		fmt.Sprintf("%d of %d", run.refused(), len(confirms.Sent)), percent(run.share()), predicted, theirShare,
		fmt.Sprintf("%s, %s, %s", report.Short(p.P50), report.Short(p.P95), report.Short(p.Most)), theirReads,
		report.Short(confirms.Spread().P95), fmt.Sprint(silent),
		fmt.Sprint(run.Most(func(l harness.Look) int { return l.AtGateway["confirm"] })),
	}, resources(run.Observed)...)...)
}

// brownoutOfTheirs is what they measured: the share they refused, and the p95 of their reads.
func brownoutOfTheirs(latency time.Duration, slots int) (share, reads string) {
	seconds := latency.Seconds()
	switch slots {
	case 0:
		reads = map[float64]string{2: "1 s", 3: "7 s", 5: "14 s"}[seconds]
		return "no cap", reads
	case 40:
		share = map[float64]string{0: "0", 0.5: "0", 1: "486 and 488 refused", 3: "1,651 and 1,650 refused", 5: "84.0 % (84.0 % predicted)"}[seconds]
		return share, "7–8 ms"
	case 20:
		return "1,951 refused", "18.6 ms"
	}
	return "", ""
}

func (size brownout) claims(r *report.Result, none, capped []brownoutRun) {
	healthy := capped[0].reads().P95
	for n, run := range capped {
		switch {
		case run.latency >= time.Second || size.slots < 40 && run.latency > 0:
			size.claimShare(r, run)
		default:
			r.ClaimTime(run.refused() == 0, "%s: no confirm is refused (%d are)", title(run.Observed), run.refused())
		}
		r.ClaimTime(run.reads().P95 <= atMost(healthy, 10*time.Millisecond), "%s: the reads' p95 is %s, at most twice the healthy %s or 10 ms more",
			title(run.Observed), report.Short(run.reads().P95), report.Short(healthy))
		for _, first := range capped[:n] {
			if first.latency == run.latency {
				most := max(first.refused(), run.refused())
				r.ClaimTime(100*max(first.refused()-run.refused(), run.refused()-first.refused()) <= most,
					"cap %d, gateway %s: repeated, the refused agree within 1 %% (%d and %d)", run.slots, run.latency, first.refused(), run.refused())
			}
		}
	}
	last := none[len(size.latencies)-1]
	r.ClaimTime(last.reads().P95 >= 10*healthy, "%s: without a cap the reads wait behind the payments: p95 %s, %.0f times the healthy %s",
		title(last.Observed), report.Short(last.reads().P95), last.reads().P95.Seconds()/healthy.Seconds(), report.Short(healthy))
}

func (brownout) claimShare(r *report.Result, run brownoutRun) {
	off := run.share() - run.predicted()
	r.ClaimTime(off > -0.01 && off < 0.01, "%s: %s of the confirms are refused, within a point of the %s that cap, rate and measured latency (%s) predict",
		title(run.Observed), percent(run.share()), percent(run.predicted()), report.Short(run.measured()))
}

func (size brownout) plots(r *report.Result, none, capped []brownoutRun) {
	labels := make([]string, len(size.latencies))
	var noneReads, cappedReads, share, predicted []float64
	for n, latency := range size.latencies {
		labels[n] = latency.String()
		noneReads = append(noneReads, none[n].reads().P95.Seconds()*1e3)
		cappedReads = append(cappedReads, capped[n].reads().P95.Seconds()*1e3)
		share = append(share, 100*capped[n].share())
		predicted = append(predicted, 100*capped[n].predicted())
	}
	r.Plots = []report.NamedPlot{
		{Name: "reads", Plot: report.Plot{Title: "p95 of reads, ms", Unit: "latency of the gateway", X: labels, Series: []report.Series{
			{Name: "before", Values: noneReads}, {Name: fmt.Sprint("cap ", size.slots), Values: cappedReads},
		}}},
		{Name: "share", Plot: report.Plot{Title: "Confirms refused, percent", Unit: "latency of the gateway", X: labels, Series: []report.Series{
			{Name: "measured", Values: share}, {Name: "predicted", Values: predicted},
		}}},
	}
}

// firstOf is the first error that is one: what went wrong says more than what closing said of it.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
