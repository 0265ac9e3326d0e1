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

// leftovers is the size of the experiment.
type leftovers struct {
	faults   []harness.Fault
	over     time.Duration
	confirms float64 // a second
	notices  float64
	reads    float64
	attempt  time.Duration // what one attempt to approve may take, so that a silent gateway does not take the whole day
	patience time.Duration
	back     time.Duration // in which everything must be as before
}

func leftoversOf(quick bool) leftovers {
	every := []tosssim.Op{tosssim.Confirm, tosssim.Get}
	size := leftovers{
		over: 10 * time.Second, confirms: 20, notices: 10, reads: 20, attempt: 3 * time.Second, patience: 20 * time.Second, back: 30 * time.Second,
		faults: []harness.Fault{
			{Kind: tosssim.Hang},
			{Kind: tosssim.DoThenHang},
			{Kind: tosssim.Delay, Delay: 2 * time.Second},
			{Kind: tosssim.LateReply, Delay: 5 * time.Second},
			{Kind: tosssim.LostReply},
			{Kind: tosssim.Reset},
			{Kind: tosssim.StalledBody},
			{Kind: tosssim.Garbage},
			{Kind: tosssim.HTML},
			{Kind: tosssim.EmptyArray},
			{Kind: tosssim.Status, Code: 500},
			{Kind: tosssim.TooMany},
		},
	}
	if quick {
		size.over, size.notices, size.attempt, size.patience = 400*time.Millisecond, 30, 300*time.Millisecond, 5*time.Second
		size.faults = []harness.Fault{{Kind: tosssim.Hang}, {Kind: tosssim.LostReply}}
	}
	for n := range size.faults {
		size.faults[n].Ops = every
	}
	return size
}

// leftover is one fault and what it left.
type leftover struct {
	noticesRun

	base, after harness.Goroutines
	took        time.Duration // until it was as before
}

// slack is what jobs, which come and go, may add to the base.
const slack = 10

// Goroutines lets the gateway misbehave in every way, one after the other, and looks whether each leaves anything behind.
func Goroutines(ctx context.Context, l *harness.Lab) (r report.Result, err error) {
	size := leftoversOf(l.Quick)
	b, err := l.Open(ctx, harness.Arm{Name: "as shipped", Settings: []string{
		"DAESA_WEBHOOK_RATE_LIMIT=1000000", "DAESA_PATH_CONFIRM_ATTEMPT=" + size.attempt.String(),
	}})
	if err != nil {
		return r, err
	}
	defer func() { err = firstOf(err, b.Close()) }() //nolint:contextcheck // it ends also when the context has ended
	healthy, err := size.run(ctx, b, harness.Fault{})
	if err != nil {
		return r, err
	}
	if err := b.Led(ctx); err != nil { // the leader's jobs are part of the base
		return r, err
	}
	base, err := rested(ctx, b)
	if err != nil {
		return r, err
	}
	keep(&r, healthy.Observed)
	var runs []leftover
	for _, fault := range size.faults {
		l.Say("goroutines: %s", fault.Kind)
		run := leftover{base: base}
		if run.noticesRun, err = size.run(ctx, b, fault); err != nil {
			return r, err
		}
		if run.took, run.after, err = size.until(ctx, b, base.Busy()+slack); err != nil {
			return r, err
		}
		keep(&r, run.Observed)
		runs = append(runs, run)
	}
	size.table(&r, healthy, runs)
	r.Notes = []string{fmt.Sprintf(
		"%.0f confirms, %.0f notices and %.0f reads a second for %s in front of a gateway that misbehaves in one way, after the same in front of a healthy one. "+
			"An attempt to approve may take %s. Goroutines of connections that wait for their next request are left out: they end half a minute later.",
		size.confirms, size.notices, size.reads, size.over, size.attempt)}
	return r, nil
}

func (size leftovers) run(ctx context.Context, b *harness.Bench, fault harness.Fault) (run noticesRun, err error) {
	if err := b.Closed(ctx); err != nil {
		return run, err
	}
	if run.mixed, err = mix(ctx, b, int(size.notices*size.over.Seconds())); err != nil {
		return run, err
	}
	payments, err := b.Payable(ctx, int(size.confirms*size.over.Seconds()))
	if err != nil {
		return run, err
	}
	name := string(fault.Kind)
	if name == "" {
		name = "healthy"
	}
	run.Observed, err = b.Run(ctx, harness.Plan{Name: name, Fault: fault, Streams: []harness.Stream{
		harness.Confirms(size.confirms, size.patience, payments), harness.Notices(size.notices, run.notices, 0),
		harness.Reads(size.reads, size.patience, int(size.reads*size.over.Seconds()), payments),
	}})
	return run, err
}

// looks are made of a service at rest, of which the least counts: jobs come and go.
const looks = 20

// rested is what the service has while nothing happens.
func rested(ctx context.Context, b *harness.Bench) (least harness.Goroutines, err error) {
	for n := range looks {
		g, err := b.Goroutines(ctx)
		if err != nil {
			return least, err
		}
		if n == 0 || g.Busy() < least.Busy() {
			least = g
		}
		if err := harness.Wait(ctx, 50*time.Millisecond); err != nil {
			return least, err
		}
	}
	return least, nil
}

// until waits until there are no more busy goroutines than that.
func (size leftovers) until(ctx context.Context, b *harness.Bench, most int) (took time.Duration, g harness.Goroutines, err error) {
	began := time.Now()
	ctx, stop := context.WithTimeout(ctx, size.back)
	defer stop()
	for {
		if g, err = b.Goroutines(ctx); err != nil {
			return time.Since(began), g, err
		}
		if g.Busy() <= most {
			return time.Since(began), g, nil
		}
		if err := harness.Wait(ctx, 50*time.Millisecond); errors.Is(err, context.DeadlineExceeded) {
			return time.Since(began), g, nil // which the claim will say
		} else if err != nil {
			return time.Since(began), g, err
		}
	}
}

func (size leftovers) table(r *report.Result, healthy noticesRun, runs []leftover) {
	r.Columns = []string{"", "confirms", "notices", "goroutines: before, most, after", "back after", "sockets: most, after", "memory, most", "pool, most"}
	before := healthy.Looks[len(healthy.Looks)-1]
	for _, run := range runs {
		last := run.Looks[len(run.Looks)-1]
		r.Row(run.Name, run.Of("confirms").Answers(), run.Of("notices").Answers(),
			fmt.Sprintf("%d, %d, %d", run.base.Busy(), run.Most(func(l harness.Look) int { return l.Goroutines }), run.after.Busy()), report.Short(run.took),
			fmt.Sprintf("%d, %d", run.Most(func(l harness.Look) int { return l.Sockets }), last.Sockets),
			fmt.Sprintf("%d MiB", run.Most(func(l harness.Look) int { return int(l.Resident >> 20) })),
			fmt.Sprint(run.Most(func(l harness.Look) int { return l.PoolInUse })))
		r.Claim(run.after.Busy() <= run.base.Busy()+slack, "%s: back to the base within %s: %d goroutines besides idle connections, %d before it", run.Name,
			report.Short(run.took), run.after.Busy(), run.base.Busy())
	}
	observed := []harness.Observed{healthy.Observed}
	for _, run := range runs[:min(len(runs), 3)] {
		observed = append(observed, run.Observed)
	}
	r.Plots = []report.NamedPlot{looked("goroutines", "Goroutines", func(l harness.Look) int { return l.Goroutines }, observed...)}
	last := runs[len(runs)-1].Looks
	r.ClaimTime(last[len(last)-1].Resident < 2*before.Resident+(64<<20), "memory does not pile up: %d MiB after the first run, %d after the last",
		before.Resident>>20, last[len(last)-1].Resident>>20)
	end := runs[len(runs)-1].After
	r.Claim(end.Captures.Count <= end.GatewayCaptures.Count, "nothing was captured that the gateway did not capture (%s, %s)", end.Captures, end.GatewayCaptures)
}
