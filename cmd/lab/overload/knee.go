package overload

import (
	"context"
	"fmt"
	"time"

	"daesa/checkout/store/storesim"
	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
)

// lunch is the size of the experiment.
type lunch struct {
	knee     int           // of the store
	base     time.Duration // its round trip up to there
	calm     float64       // confirms a second off the peak
	peak     float64
	calmFor  time.Duration
	peakFor  time.Duration
	workers  int // of the stand-in
	patience time.Duration
	settings []string // of the service as shipped, in a quick run
}

func lunchOf(quick bool) lunch {
	if quick {
		return lunch{
			knee: 5, base: 50 * time.Millisecond, calm: 10, peak: 120, calmFor: time.Second, peakFor: 2 * time.Second, workers: 13,
			patience: 20 * time.Second, settings: []string{"DAESA_PATH_STORE_CAP=4"},
		}
	}
	return lunch{
		knee: 25, base: 150 * time.Millisecond, calm: 60, peak: 200, calmFor: 20 * time.Second, peakFor: 40 * time.Second, workers: 64,
		patience: 60 * time.Second,
	}
}

// lunchRun is one arm, off the peak and on it.
type lunchRun struct {
	calm, peak           harness.Observed
	calmStore, peakStore atStore
	held, captured, owed int
	books                harness.Books
}

// atStore is what the store saw of a run.
type atStore struct {
	took   report.Spread
	atOnce int
	asked  int
}

// StoreKnee sends more orders than the store bears: it serves so many at once before its round trip rises.
func StoreKnee(ctx context.Context, l *harness.Lab) (r report.Result, err error) {
	size := lunchOf(l.Quick)
	arms := []harness.Arm{
		{Name: "before", Settings: []string{
			"DAESA_ONE_LINE=100000", "DAESA_PATH_CONFIRM_CAP=100000", fmt.Sprint("DAESA_PATH_STORE_CAP=", size.workers), "DAESA_PATH_STORE_TOTAL=5m",
			"DAESA_BREAKERS=false",
		}},
		{Name: "the store's guard alone", Settings: append([]string{"DAESA_ONE_LINE=100000", "DAESA_PATH_CONFIRM_CAP=100000"}, size.settings...)},
		{Name: "as shipped", Settings: size.settings},
	}
	var runs []lunchRun
	for _, arm := range arms {
		run, err := size.arm(ctx, l, arm, &r)
		if err != nil {
			return r, err
		}
		runs = append(runs, run)
	}
	size.table(&r, runs)
	size.claims(&r, runs, l.Quick)
	size.plot(&r, runs)
	r.Notes = []string{fmt.Sprintf(
		"%.0f orders a second for %s off the peak, %.0f for %s on it, in front of a store that serves %d at once in %s each and takes longer for each one more: "+
			"it bears %.0f a second. The gateway answers at once. Before is our stand-in for their service: the same binary with %d workers in front of the "+
			"store, no deadline, no breaker, no cap on approvals, everything let in. The store runs in the lab's own process.",
		size.calm, size.calmFor, size.peak, size.peakFor, size.knee, size.base, float64(size.knee)/size.base.Seconds(), size.workers)}
	return r, nil
}

func (size lunch) arm(ctx context.Context, l *harness.Lab, arm harness.Arm, r *report.Result) (run lunchRun, err error) {
	l.Say("store-knee: %s", arm.Name)
	k, err := openKitchen(ctx, storesim.Config{Knee: size.knee, Base: size.base})
	if err != nil {
		return run, err
	}
	defer func() { err = firstOf(err, k.close()) }()
	arm.Settings = append(k.settings(), arm.Settings...)
	b, err := l.Open(ctx, arm)
	if err != nil {
		return run, err
	}
	defer func() { err = firstOf(err, b.Close()) }() //nolint:contextcheck // it ends also when the context has ended
	if _, _, err = size.run(ctx, b, k, "warm-up", size.calm, size.calmFor/4); err != nil {
		return run, err
	}
	if run.calm, run.calmStore, err = size.run(ctx, b, k, "off the peak", size.calm, size.calmFor); err != nil {
		return run, err
	}
	if run.peak, run.peakStore, err = size.run(ctx, b, k, "peak", size.peak, size.peakFor); err != nil {
		return run, err
	}
	keep(r, run.calm)
	keep(r, run.peak)
	if run.owed, err = k.settled(ctx, b); err != nil {
		return run, err
	}
	run.held, run.captured = len(k.sim.Held()), run.peak.After.Captures.Count
	size.doubt(r, run, run.calm, run.calmStore)
	size.doubt(r, run, run.peak, run.peakStore)
	run.books, err = b.Books(ctx)
	return run, err
}

func (size lunch) run(ctx context.Context, b *harness.Bench, k *kitchen, name string, rate float64, over time.Duration) (o harness.Observed, s atStore, err error) {
	payments, err := b.Payable(ctx, int(rate*over.Seconds()))
	if err != nil {
		return o, s, err
	}
	from := len(k.sim.Calls())
	o, err = b.Run(ctx, harness.Plan{Name: name, Streams: []harness.Stream{harness.Confirms(rate, size.patience, payments)}})
	if err != nil {
		return o, s, err
	}
	s.took, s.atOnce, s.asked = k.round(from)
	return o, s, nil
}

// doubt holds what the store saw against what the service counts, and the answers of the buyers against both.
func (size lunch) doubt(r *report.Result, run lunchRun, o harness.Observed, s atStore) {
	m, confirms := o.Since.Metrics, o.Of("confirms")
	own := m.Count("daesa_store_answers_total", "path", "ask")
	r.Unless(s.asked >= own-unheard(m) && s.asked <= own, "%s: the store was asked %d times and the service counts %d, %d of them unanswered", title(o), s.asked,
		own, unheard(m))
	r.Unless(s.asked > 0 && s.took.Least >= size.base, "%s: the store took %s for a question, below its %s", title(o), s.took.Least, size.base)
	approved := confirms.Count(harness.Answered(200, "done"))
	accepted := m.Count("daesa_store_answers_total", "path", "ask", "result", "accepted")
	r.Unless(approved <= accepted, "%s: %d orders were paid and the store accepted %d", title(o), approved, accepted)
	for _, refused := range []string{"store_late", "store_down"} {
		seen, counted := confirms.Count(harness.Answered(503, refused)), m.Count("daesa_checkout_confirms_total", "result", refused)
		r.Unless(counted >= seen && counted <= seen+confirms.Count(harness.Silent), "%s: the buyers saw %d answers %s and the service counts %d", title(o), seen, refused, counted)
	}
	r.Unless(run.peak.Arm == o.Arm, "%s is of another arm", title(o))
}

// unheard is how many questions had no answer in their time.
func unheard(m harness.Metrics) int {
	return m.Count("daesa_store_answers_total", "path", "ask", "result", "timeout") + m.Count("daesa_store_answers_total", "path", "ask", "result", "connection")
}

// perRequest bounds the goroutines that one request under way explains: its connection and what reads ahead on it, the two
// ends of one to the store and of one to the gateway, and one to the database. The rest is what a service at rest has.
const (
	perRequest = 7
	atRest     = 150
)

func (size lunch) table(r *report.Result, runs []lunchRun) {
	r.Columns = append([]string{
		"", "confirms", "confirms p50, p95, max", "wait for the store p50, p95", "they", "store p50, p95", "they", "at the store, most",
		"under way, most", "rate × time",
	}, resourceColumns()...)
	for _, run := range runs {
		for _, half := range []struct {
			o            harness.Observed
			s            atStore
			queue, store string
		}{
			{run.calm, run.calmStore, "–, 14 ms", "–, 49 ms"},
			{run.peak, run.peakStore, "30 ms, 1,010 ms", "52 ms, 61 ms"},
		} {
			confirms := half.o.Of("confirms")
			most, _ := confirms.Overlap()
			p, m := confirms.Spread(), half.o.Since.Metrics
			if run.peak.Arm != "before" {
				half.queue, half.store = "", ""
			}
			r.Row(title(half.o), append([]string{
				confirms.Answers(), fmt.Sprintf("%s, %s, %s", report.Short(p.P50), report.Short(p.P95), report.Short(p.Most)),
				waitWithin(m, .5) + ", " + waitWithin(m, .95), half.queue,
				report.Short(half.s.took.P50) + ", " + report.Short(half.s.took.P95), half.store, fmt.Sprint(half.s.atOnce), fmt.Sprint(most),
				fmt.Sprintf("%.0f", explained(confirms)),
			}, resources(half.o)...)...)
		}
	}
}

// explained is how many requests are under way by rate and time (Little's law).
func explained(s harness.Sending) float64 {
	sum := time.Duration(0)
	for _, took := range s.Times(harness.Any) {
		sum += took
	}
	return s.Rate * sum.Seconds() / float64(max(1, len(s.Sent)))
}

func (size lunch) claims(r *report.Result, runs []lunchRun, quick bool) {
	bare := runs[0]
	r.ClaimTime(bare.peakStore.took.P95 >= bare.calmStore.took.P95*3/2 && bare.peak.Of("confirms").Spread().P95 > 5*bare.calm.Of("confirms").Spread().P95,
		"before: %d workers make the store slower, p95 %s for %s off the peak, and the buyers' p95 goes from %s to %s", size.workers,
		report.Short(bare.peakStore.took.P95), report.Short(bare.calmStore.took.P95), report.Short(bare.calm.Of("confirms").Spread().P95),
		report.Short(bare.peak.Of("confirms").Spread().P95))
	for _, run := range runs[1:] {
		arm, m, confirms := run.peak.Arm, run.peak.Since.Metrics, run.peak.Of("confirms")
		slots := 24
		if quick {
			slots = 4
		}
		left := unheard(m) // the store may still be at what its caller has given up
		r.Claim(run.peakStore.atOnce <= slots+1+left, "%s: the store has %d at once at most, its %d, one release and %d that were given up", arm,
			run.peakStore.atOnce, slots, left)
		r.ClaimTime(run.peakStore.took.P95*5 <= run.calmStore.took.P95*6, "%s: at the peak the store's p95 is %s, within 20 %% of the %s off it", arm,
			report.Short(run.peakStore.took.P95), report.Short(run.calmStore.took.P95))
		long := m.Count("daesa_store_question_seconds_count") - m.Count("daesa_store_question_seconds_bucket", "le", "0.8")
		beyond := m.Count("daesa_store_question_seconds_count") - m.Count("daesa_store_question_seconds_bucket", "le", "1")
		ended := m.Count("daesa_store_answers_total", "path", "ask", "result", "timeout") + m.Count("daesa_store_refusals_total", "path", "ask", "reason", "deadline")
		r.ClaimTime(long <= ended+run.peakStore.asked/1000 && beyond == 0, "%s: nobody waits past 800 ms for a slot and the store's word together (%d do, of %d whose time was ended by us, %d of them past 1 s)", arm,
			long, ended, beyond)
		r.ClaimTime(confirms.Spread().P99 <= 1200*time.Millisecond, "%s: the buyers' p99 is %s, with the books and the gateway", arm, report.Short(confirms.Spread().P99))
		size.claimGoroutines(r, run)
	}
	for _, run := range runs {
		r.Claim(run.held == run.captured && run.books.Sound() && run.peak.After.Captures == run.peak.After.GatewayCaptures,
			"%s: in the end the store holds the %d orders that were paid and nothing else (%d; %d are released a second time later), the books hold what the gateway captured, the audit says %s %v",
			run.peak.Arm, run.captured, run.held, run.owed, run.books.Verdict, run.books.Reasons)
	}
}

// claimGoroutines looks at every look of the peak: what the service holds is explained by the requests that were under way
// within a second of it, and these by rate × time.
func (lunch) claimGoroutines(r *report.Result, run lunchRun) {
	confirms := run.peak.Of("confirms")
	unexplained, most := 0, 0
	for _, look := range run.peak.Looks {
		under := confirms.Under(look.At-time.Second, look.At+time.Second)
		most = max(most, under)
		if look.Goroutines > atRest+perRequest*under {
			unexplained++
		}
	}
	r.ClaimTime(unexplained == 0 && float64(most) <= 20+2*explained(confirms),
		"%s: in each of %d looks the goroutines are those of the requests under way (not in %d), at most %d requests, and those are explained by rate × time = %.0f",
		run.peak.Arm, len(run.peak.Looks), unexplained, most, explained(confirms))
}

// plot draws the buyers' p95 of each stretch of the peak.
func (size lunch) plot(r *report.Result, runs []lunchRun) {
	var curves []curve
	for _, run := range runs {
		curves = append(curves, curve{run.peak.Arm, run.peak.Of("confirms")})
	}
	r.Plots = []report.NamedPlot{p95s("confirms", "confirms in the peak", size.peakFor, curves...)}
}
