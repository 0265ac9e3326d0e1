package overload

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
	"daesa/pgclient/tosssim"
)

// burst is the size of the experiment.
type burst struct {
	tries     []burstTry
	over      time.Duration // in which each burst arrives
	latency   time.Duration
	redeliver time.Duration // after which what was refused comes again
	rounds    int           // of redelivery at most
	quick     bool
}

// burstTry is one burst.
type burstTry struct {
	name          string
	notices       int
	limit         int // a minute
	instances     int
	split         []int  // of each sum so many go to the first instance, to the second and so on
	theirs, again string // what they measured of the first delivery, and of what followed
}

func burstOf(quick bool) burst {
	if quick {
		return burst{
			tries: []burstTry{{"20 at 600 over 2 instances", 20, 600, 2, nil, "", ""}, {"30 at 12 over 2 instances", 30, 12, 2, []int{5, 1}, "", ""}},
			over:  500 * time.Millisecond, latency: 20 * time.Millisecond, redeliver: 0, rounds: 1, quick: true,
		}
	}
	return burst{
		tries: []burstTry{
			{"200 at 100 a minute", 200, 100, 1, nil, "149 × 200, 51 × 429", "51 applied, 1–3 minutes late"},
			{"200 at 300 a minute", 200, 300, 1, nil, "200 × 200", "200 duplicates, p50 17 ms, max 38 ms"},
			{"1,500 at 300 a minute over three instances", 1500, 300, 3, []int{16, 3, 1}, "", ""},
		},
		over: 30 * time.Second, latency: 300 * time.Millisecond, redeliver: 61 * time.Second, rounds: 7,
	}
}

// burstRun is one burst and what followed.
type burstRun struct {
	burstTry

	first      harness.Observed
	rounds     []harness.Observed // of redelivery
	duplicates harness.Observed   // all once more, at a rate that the limit bears
	books      harness.Books
}

// Burst sends many notices within seconds against a limit per minute that all instances share.
func Burst(ctx context.Context, l *harness.Lab) (r report.Result, err error) {
	size := burstOf(l.Quick)
	var runs []burstRun
	for _, try := range size.tries {
		run, err := size.run(ctx, l, try)
		if err != nil {
			return r, err
		}
		runs = append(runs, run)
	}
	size.table(&r, runs)
	for _, run := range runs {
		size.claims(&r, run)
	}
	r.Notes = []string{fmt.Sprintf(
		"Every notice is of a payment that was canceled, all from one address, sent over %s; the gateway takes %s. A limit of n a minute "+
			"lets n pass at once and refills evenly. What is refused comes again %s after its round, as the sender does, for as long as something is refused. "+
			"At the end all are sent once more, within the limit. Of twenty notices the three instances are sent 16, 3 and 1: each with a third of the "+
			"limit to itself would let 150, 150 and 75 pass.", size.over, size.latency, size.redeliver)}
	return r, nil
}

func (size burst) run(ctx context.Context, l *harness.Lab, try burstTry) (run burstRun, err error) {
	run.burstTry = try
	b, err := l.Open(ctx, harness.Arm{
		Name: try.name, Instances: try.instances,
		Settings: []string{fmt.Sprint("DAESA_WEBHOOK_RATE_LIMIT=", try.limit), "DAESA_LAZY=true", "DAESA_LIST_EVERY=1h"},
	})
	if err != nil {
		return run, err
	}
	defer func() { err = firstOf(err, b.Close()) }() //nolint:contextcheck // it ends also when the context has ended
	notices, err := canceled(ctx, b, try.notices)
	if err != nil {
		return run, err
	}
	if run.first, err = size.deliver(ctx, l, b, try, "first", notices, 0, size.over); err != nil {
		return run, err
	}
	refused := limited(run.first, notices)
	for len(refused) > 0 && len(run.rounds) < size.rounds {
		if err := harness.Wait(ctx, max(0, size.redeliver-size.over)); err != nil {
			return run, err
		}
		over := size.over * time.Duration(len(refused)) / time.Duration(len(notices)) // each a minute after its own refusal
		round, err := size.deliver(ctx, l, b, try, fmt.Sprint("redelivery ", len(run.rounds)+1), refused, len(run.rounds)+1, max(over, size.over/2))
		if err != nil {
			return run, err
		}
		run.rounds = append(run.rounds, round)
		refused = limited(round, refused)
	}
	if !l.Quick {
		if err := harness.Wait(ctx, time.Minute); err != nil { // until the bucket is full again
			return run, err
		}
		some := notices[:min(len(notices), try.limit)]
		if run.duplicates, err = size.deliver(ctx, l, b, try, "all again", some, 1, max(size.over, time.Minute*time.Duration(len(some))/time.Duration(3*try.limit))); err != nil {
			return run, err
		}
	}
	run.books, err = b.Books(ctx)
	return run, err
}

// canceled sells n payments, cancels each at the gateway, and has the notices.
func canceled(ctx context.Context, b *harness.Bench, n int) ([]tosssim.Notice, error) {
	payments, err := b.Paid(ctx, n)
	if err != nil {
		return nil, err
	}
	for _, p := range payments {
		if err := b.Gateway.Cancel(ctx, p.Key); err != nil {
			return nil, err
		}
	}
	return latest(ctx, b, payments)
}

func (size burst) deliver(
	ctx context.Context, l *harness.Lab, b *harness.Bench, try burstTry, name string, notices []tosssim.Notice, retried int, over time.Duration,
) (harness.Observed, error) {
	l.Say("burst: %s, %s, %d notices over %s", b.Name, name, len(notices), over.Round(time.Second))
	stream := harness.Notices(float64(len(notices))/over.Seconds(), notices, retried)
	stream.Split = try.split
	return b.Run(ctx, harness.Plan{
		Name: name, Fault: harness.Fault{Ops: []tosssim.Op{tosssim.Get}, Kind: tosssim.Delay, Delay: size.latency},
		Streams: []harness.Stream{stream},
	})
}

// limited are the notices that the limit refused.
func limited(o harness.Observed, notices []tosssim.Notice) (refused []tosssim.Notice) {
	for _, one := range o.Of("notices").Sent {
		if one.Status == http.StatusTooManyRequests {
			refused = append(refused, notices[one.N])
		}
	}
	return refused
}

// predicted is how many a bucket admits: its size, and what refills until the last arrival.
func (size burst) predicted(try burstTry) int {
	last := size.over.Seconds() * float64(try.notices-1) / float64(try.notices)
	return min(try.notices, try.limit+int(float64(try.limit)/60*last))
}

// give is how many more or fewer may pass than predicted: what refills within a late request or two.
func (size burst) give(try burstTry) int { return max(1, size.predicted(try)/100) }

func passed(s harness.Sent) bool { return s.Status == http.StatusOK }

func (size burst) table(r *report.Result, runs []burstRun) {
	r.Columns = append([]string{
		"", "answers", "they", "pass, predicted", "time of what was applied", "time of a refusal", "redelivered: applied each round", "they",
		"all again, within the limit", "identity",
	}, resourceColumns()...)
	var curves []curve
	for _, run := range runs {
		keep(r, run.first)
		first := run.first.Of("notices")
		alone := run.first.Since.Metrics.Count("daesa_admission_rate_fallbacks_total")
		r.Unless(run.instances == 1 || alone == 0 || size.quick,
			"%s: instances counted alone %d times: what passed is not what one bucket for all admits", run.name, alone)
		var rounds []string
		for _, round := range run.rounds {
			keep(r, round)
			rounds = append(rounds, fmt.Sprintf("%d of %d", round.Of("notices").Count(passed), len(round.Of("notices").Sent)))
		}
		again := ""
		if run.duplicates.Name != "" {
			keep(r, run.duplicates)
			again = run.duplicates.Of("notices").Answers() + ", " + run.duplicates.Of("notices").Spread().String()
		}
		r.Row(run.name, append([]string{
			first.Answers(), run.theirs, fmt.Sprint(size.predicted(run.burstTry)), report.SpreadOf(first.Times(passed)).String(),
			report.SpreadOf(first.Times(harness.Answered(http.StatusTooManyRequests, ""))).String(), strings.Join(rounds, ", "), run.again, again, run.books.Identity(),
		}, resources(run.first)...)...)
		curves = append(curves, curve{run.name, first})
	}
	r.Plots = []report.NamedPlot{chart("passed", "Notices that pass, of each tenth of the burst", size.over,
		func(s harness.Sending) float64 { return float64(s.Count(passed)) }, curves...)}
}

func (size burst) claims(r *report.Result, run burstRun) {
	pass, want := run.first.Of("notices").Count(passed), size.predicted(run.burstTry)
	off := size.give(run.burstTry)
	r.ClaimTime(pass >= want-off && pass <= want+off, "%s: %d pass, give or take %d of the %d that one bucket admits", run.name, pass, off, want)
	applied := run.first.Of("notices").Count(harness.Answered(http.StatusOK, "applied_full"))
	for _, round := range run.rounds {
		applied += round.Of("notices").Count(harness.Answered(http.StatusOK, "applied_full"))
	}
	if run.duplicates.Name == "" {
		return // a quick run
	}
	r.Claim(applied == run.notices, "%s: after redelivery every one is applied, once (%d of %d)", run.name, applied, run.notices)
	again := run.duplicates.Of("notices")
	r.Claim(again.Count(harness.Answered(http.StatusOK, "duplicate_skipped")) == len(again.Sent) && run.duplicates.Since.Calls[tosssim.Get] == 0,
		"%s: all again are duplicates, and the gateway is not asked (%s; %d questions)", run.name, again.Answers(), run.duplicates.Since.Calls[tosssim.Get])
	r.Claim(run.books.Sound() && run.books.Orders.Canceled == run.notices, "%s: both books agree: %s, verdict %s %v, %d violations", run.name,
		run.books.Identity(), run.books.Verdict, run.books.Reasons, len(run.books.Violations))
}
