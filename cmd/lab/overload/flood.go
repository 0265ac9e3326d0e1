package overload

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
	"daesa/pgclient/tosssim"
)

// flood is the size of the experiment.
type flood struct {
	over     time.Duration
	confirms float64 // a second
	notices  float64
	calm     float64 // lists a second, before the flood
	reads    float64 // and in it
	latency  time.Duration
	threads  int
	patience time.Duration
	glance   time.Duration // after which whoever looks something up hangs up
	warm     time.Duration
}

func floodOf(quick bool) flood {
	if quick {
		return flood{
			over: time.Second, confirms: 20, notices: 20, calm: 20, reads: 300, latency: 50 * time.Millisecond, threads: 30,
			patience: 3 * time.Second, glance: time.Second, warm: 200 * time.Millisecond,
		}
	}
	return flood{
		over: 20 * time.Second, confirms: 20, notices: 10, calm: 20, reads: 1000, latency: 100 * time.Millisecond, threads: 100,
		patience: 10 * time.Second, glance: time.Second, warm: 3 * time.Second,
	}
}

// floodRun is one arm: the same payments and notices, with few reads and with a flood of them.
type floodRun struct {
	calm, flooded noticesRun
	books         harness.Books
}

// ReadFlood asks for more lists than the service can make, beside payments and notices. A list is two hundred events; of
// single orders two cores answer more than they can ask for.
func ReadFlood(ctx context.Context, l *harness.Lab) (r report.Result, err error) {
	size := floodOf(l.Quick)
	bare := before(size.threads)
	arms := []harness.Arm{bare, {Name: "as shipped"}}
	if l.Quick {
		arms = arms[1:]
	}
	var runs []floodRun
	for _, arm := range arms {
		arm.Settings = append(arm.Settings, "DAESA_WEBHOOK_RATE_LIMIT=1000000")
		run, err := size.arm(ctx, l, arm)
		if err != nil {
			return r, err
		}
		runs = append(runs, run)
	}
	size.table(&r, runs)
	size.claims(&r, runs)
	r.Notes = []string{fmt.Sprintf(
		"%.0f confirms and %.0f notices a second for %s at a gateway that takes %s, with %.0f lists of two hundred events a second and with %.0f. Load, gateway, database and "+
			"service share the processors of one machine, so the flood takes processor time from everything, whoever is let in. Before is our "+
			"stand-in: the same binary with %d requests at once in one line.",
		size.confirms, size.notices, size.over, size.latency, size.calm, size.reads, size.threads)}
	return r, nil
}

func (size flood) arm(ctx context.Context, l *harness.Lab, arm harness.Arm) (run floodRun, err error) {
	b, err := l.Open(ctx, arm)
	if err != nil {
		return run, err
	}
	defer func() { err = firstOf(err, b.Close()) }() //nolint:contextcheck // it ends also when the context has ended
	if _, err := size.run(ctx, l, b, "warm-up", size.warm, size.calm); err != nil {
		return run, err
	}
	if run.calm, err = size.run(ctx, l, b, "few reads", size.over, size.calm); err != nil {
		return run, err
	}
	if run.flooded, err = size.run(ctx, l, b, "flood", size.over, size.reads); err != nil {
		return run, err
	}
	run.books, err = b.Books(ctx)
	return run, err
}

func (size flood) run(ctx context.Context, l *harness.Lab, b *harness.Bench, name string, over time.Duration, reads float64) (run noticesRun, err error) {
	l.Say("read-flood: %s, %s", b.Name, name)
	if run.mixed, err = mix(ctx, b, int(size.notices*over.Seconds())); err != nil {
		return run, err
	}
	payments, err := b.Payable(ctx, int(size.confirms*over.Seconds()))
	if err != nil {
		return run, err
	}
	run.Observed, err = b.Run(ctx, harness.Plan{
		Name: name, Latency: size.latency, Fault: harness.Fault{Ops: []tosssim.Op{tosssim.Confirm, tosssim.Get}, Kind: tosssim.Delay, Delay: size.latency},
		Streams: []harness.Stream{
			harness.Confirms(size.confirms, size.patience, payments), harness.Notices(size.notices, run.notices, 0),
			harness.Listings(reads, size.glance, int(reads*over.Seconds())),
		},
	})
	return run, err
}

func shed(s harness.Sent) bool {
	return harness.Answered(http.StatusServiceUnavailable, "overloaded")(s)
}

func (size flood) table(r *report.Result, runs []floodRun) {
	r.Columns = append([]string{
		"", "confirms", "confirms p50, p95, max", "notices", "notices p50, p95, max", "reads answered a second", "reads shed", "reads p50, p95, max",
		"reads in flight, most", "machine busy",
	}, resourceColumns()...)
	for _, arm := range runs {
		for _, run := range []noticesRun{arm.calm, arm.flooded} {
			keep(r, run.Observed)
			reads := run.Of("reads")
			three := func(s report.Spread) string {
				return fmt.Sprintf("%s, %s, %s", report.Short(s.P50), report.Short(s.P95), report.Short(s.Most))
			}
			busy := 0.0
			for _, look := range run.Looks {
				busy += look.Busy / float64(len(run.Looks))
			}
			r.Row(title(run.Observed), append([]string{
				run.Of("confirms").Answers(), three(run.Of("confirms").Spread()), run.Of("notices").Answers(), three(run.Of("notices").Spread()),
				fmt.Sprintf("%.0f", float64(reads.Count(harness.Answered(http.StatusOK, "")))/run.Wall.Seconds()),
				percent(reads.Share(shed)), three(reads.Spread()),
				fmt.Sprint(run.Most(func(l harness.Look) int { return l.InFlight["reading"] })), percent(busy),
			}, resources(run.Observed)...)...)
		}
	}
	shipped := runs[len(runs)-1]
	r.Plots = []report.NamedPlot{p95s("classes", "each class as shipped, with few reads and in the flood", size.over,
		curve{"confirms, few reads", shipped.calm.Of("confirms")}, curve{"confirms", shipped.flooded.Of("confirms")},
		curve{"notices", shipped.flooded.Of("notices")}, curve{"reads", shipped.flooded.Of("reads")})}
}

func (size flood) claims(r *report.Result, runs []floodRun) {
	shipped := runs[len(runs)-1]
	flooded, calm := shipped.flooded, shipped.calm
	r.ClaimTime(flooded.Of("confirms").Count(harness.Answered(http.StatusOK, "done")) == len(flooded.Of("confirms").Sent),
		"as shipped, every payment is approved in the flood: %s", flooded.Of("confirms").Answers())
	r.ClaimTime(flooded.Of("notices").Count(harness.Answered(http.StatusOK, "")) == len(flooded.Of("notices").Sent),
		"every notice is answered 200: %s", flooded.Of("notices").Answers())
	reads := flooded.Of("reads")
	answered := reads.Count(harness.Answered(http.StatusOK, ""))
	r.ClaimTime(reads.Count(shed) > len(reads.Sent)/10 && answered > 0, "reads are what is shed (%s), and %d are answered", percent(reads.Share(shed)), answered)
	refused := reads.Count(func(s harness.Sent) bool { return s.Status >= http.StatusBadRequest })
	told := reads.Count(func(s harness.Sent) bool { return shed(s) && s.Later })
	r.Claim(told == refused, "whoever is refused a read is told when to come again, and refused for nothing else (%d of %d)", told, refused)
	for _, stream := range []string{"confirms", "notices"} {
		had, has := calm.Of(stream).Spread().P95, flooded.Of(stream).Spread().P95
		r.ClaimTime(has <= atMost(had, 100*time.Millisecond), "the %s' p95 is %s in the flood, at most twice the %s without it or 100 ms more", stream,
			report.Short(has), report.Short(had))
	}
	for _, run := range runs {
		r.Claim(run.books.Sound() && run.flooded.After.Captures == run.flooded.After.GatewayCaptures,
			"%s: the books hold what the gateway captured, the audit says %s %v, and every invariant holds (%d violations)", run.calm.Arm,
			run.books.Verdict, run.books.Reasons, len(run.books.Violations))
	}
}
