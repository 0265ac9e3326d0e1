package overload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
	"daesa/pgclient/tosssim"
)

// comeback is the size of the experiment.
type comeback struct {
	cancels   int     // at the gateway, while the service is down
	pace      float64 // of them a second
	each      int     // deliveries of each notice that come together when it is back
	over      time.Duration
	calm      time.Duration // of the healthy run before
	confirms  float64       // a second, in both
	latency   time.Duration
	patience  time.Duration // of buyers
	warm      time.Duration
	redeliver time.Duration // after which what was refused comes again
	again     float64       // of it a second, which the limit bears
	look      time.Duration // between two looks at what is owed
	settings  []string      // of the service as shipped, in a quick run
}

func comebackOf(quick bool) comeback {
	if quick {
		return comeback{
			cancels: 100, pace: 100, each: 3, over: 2 * time.Second, calm: time.Second, confirms: 10, latency: 20 * time.Millisecond,
			patience: 20 * time.Second, warm: 200 * time.Millisecond, redeliver: time.Second, again: 20, look: 100 * time.Millisecond,
			settings: []string{"DAESA_WEBHOOK_RATE_LIMIT=250"}, // 150 a second come
		}
	}
	return comeback{
		cancels: 600, pace: 10, each: 3, over: 60 * time.Second, calm: 20 * time.Second, confirms: 10, latency: 100 * time.Millisecond,
		patience: 20 * time.Second, warm: 3 * time.Second, redeliver: 30 * time.Second, again: 4, look: time.Second,
	}
}

// Bounds of the claims.
const (
	refusedWithin = 50 * time.Millisecond
	recoveryAsks  = 1 // besides those who deliver; more when a call fails
)

// debtAt is what was owed at one moment of the comeback.
type debtAt struct {
	at            time.Duration
	missing, open int // cancels that are not in the books, and rows of work
}

// comebackRun is what became of it.
type comebackRun struct {
	calm, back harness.Observed
	sent       []tosssim.Notice // in the comeback, each several times
	owed       []debtAt
	again      []harness.Observed // rounds of redelivery
	settled    time.Duration      // until no work was open, after the last of them
	asked      map[string]int     // the gateway, by payment
	books      harness.Books
}

// Comeback takes the service away while cancels happen, and lets everything that it missed come at once.
func Comeback(ctx context.Context, l *harness.Lab) (r report.Result, err error) {
	size := comebackOf(l.Quick)
	b, err := l.Open(ctx, harness.Arm{Name: "as shipped", Settings: size.settings})
	if err != nil {
		return r, err
	}
	defer func() { err = firstOf(err, b.Close()) }() //nolint:contextcheck // it ends also when the context has ended
	run, err := size.run(ctx, l, b)
	if err != nil {
		return r, err
	}
	size.table(&r, run)
	size.claims(&r, run)
	r.Plots = []report.NamedPlot{size.backlog(run.owed), p95s("confirms", "confirms when everything comes back", size.over,
		curve{"confirms", run.back.Of("confirms")})}
	r.Notes = []string{fmt.Sprintf(
		"%d payments are canceled at the gateway, %.0f a second, while the service is down. When it is back, %d deliveries of each notice come within %s, "+
			"shuffled, all from one address, beside %.0f confirms a second; the gateway takes %s. What was never answered 200 comes again %s later, at a rate that the "+
			"limit bears. Those who told of such a comeback gave no figures of theirs.",
		size.cancels, size.pace, size.each, size.over, size.confirms, size.latency, size.redeliver)}
	return r, nil
}

func (size comeback) run(ctx context.Context, l *harness.Lab, b *harness.Bench) (run comebackRun, err error) {
	if run.calm, err = size.healthy(ctx, l, b); err != nil {
		return run, err
	}
	payments, err := b.Paid(ctx, size.cancels)
	if err != nil {
		return run, err
	}
	buyers, err := b.Payable(ctx, int(size.confirms*size.over.Seconds()))
	if err != nil {
		return run, err
	}
	if err := size.outage(ctx, l, b, payments); err != nil {
		return run, err
	}
	notices, err := latest(ctx, b, payments)
	if err != nil {
		return run, err
	}
	if err := size.back(ctx, l, b, notices, buyers, &run); err != nil {
		return run, err
	}
	if err := size.redelivered(ctx, l, b, notices, &run); err != nil {
		return run, err
	}
	if run.settled, err = b.Recover(ctx, 6*time.Minute); err != nil { // work of a failed notice is due after five
		return run, err
	}
	asked, err := b.Gateway.Questions(ctx)
	if err != nil {
		return run, err
	}
	run.asked = make(map[string]int)
	for _, p := range payments {
		run.asked[p.Key] = asked[p.Key]
	}
	run.books, err = b.Books(ctx)
	return run, err
}

// delayed is the gateway in every run.
func (size comeback) delayed() harness.Fault {
	return harness.Fault{Ops: []tosssim.Op{tosssim.Confirm, tosssim.Get}, Kind: tosssim.Delay, Delay: size.latency}
}

func (size comeback) healthy(ctx context.Context, l *harness.Lab, b *harness.Bench) (o harness.Observed, err error) {
	l.Say("comeback: healthy")
	for _, over := range []time.Duration{size.warm, size.calm} {
		payments, err := b.Payable(ctx, int(size.confirms*over.Seconds()))
		if err != nil {
			return o, err
		}
		stream := harness.Confirms(size.confirms, size.patience, payments)
		if over == size.warm {
			err = b.WarmUp(ctx, stream)
		} else {
			o, err = b.Run(ctx, harness.Plan{Name: "healthy", Fault: size.delayed(), Latency: size.latency, Streams: []harness.Stream{stream}})
		}
		if err != nil {
			return o, err
		}
	}
	return o, nil
}

// outage takes the service away, cancels one payment after the other, and starts the service in front of a gateway that
// takes its time.
func (size comeback) outage(ctx context.Context, l *harness.Lab, b *harness.Bench, payments []harness.Payment) error {
	l.Say("comeback: the service is down while %d payments are canceled", len(payments))
	if err := b.Down(); err != nil {
		return err
	}
	began := time.Now()
	for n, p := range payments {
		if err := b.Gateway.Cancel(ctx, p.Key); err != nil {
			return err
		}
		next := began.Add(time.Duration(float64(n+1) / size.pace * float64(time.Second)))
		if err := harness.Wait(ctx, time.Until(next)); err != nil {
			return err
		}
	}
	if err := b.Gateway.Fail(ctx, size.delayed()); err != nil {
		return err
	}
	return b.Up(ctx)
}

// back lets everything come at once, and looks at what is owed meanwhile.
func (size comeback) back(
	ctx context.Context, l *harness.Lab, b *harness.Bench, notices []tosssim.Notice, buyers []harness.Payment, run *comebackRun,
) (err error) {
	sent, retried := size.together(notices)
	l.Say("comeback: %d deliveries over %s", len(sent), size.over)
	run.sent = sent
	run.back, err = b.Run(ctx, harness.Plan{
		Name: "comeback", Fault: size.delayed(), Latency: size.latency,
		Streams: []harness.Stream{
			harness.Confirms(size.confirms, size.patience, buyers),
			retriedAs(harness.Notices(float64(len(sent))/size.over.Seconds(), sent, 0), retried),
		},
		During: func(ctx context.Context) error { return size.watch(ctx, b, run) },
	})
	return err
}

// together are several deliveries of each notice, in an order that is nobody's, and how often each was sent before.
func (size comeback) together(notices []tosssim.Notice) (sent []tosssim.Notice, retried []int) {
	for range size.each {
		sent = append(sent, notices...)
	}
	order := rand.New(rand.NewPCG(uint64(size.cancels), uint64(size.each))) //nolint:gosec // the same in every run
	order.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
	times := make(map[string]int)
	for _, notice := range sent {
		times[notice.PaymentKey]++
		retried = append(retried, times[notice.PaymentKey])
	}
	return sent, retried
}

// retriedAs lets each notice say how often it was sent before.
func retriedAs(s harness.Stream, retried []int) harness.Stream {
	inner := s.Make
	s.Make = func(n int) harness.Request {
		made := inner(n)
		made.Header.Set("Tosspayments-Webhook-Transmission-Retried-Count", strconv.Itoa(retried[n]))
		return made
	}
	return s
}

// watch looks at what is owed, from the first delivery to the time of the last.
func (size comeback) watch(ctx context.Context, b *harness.Bench, run *comebackRun) error {
	began := time.Now()
	for {
		at := debtAt{at: time.Since(began)}
		var err error
		if at.missing, at.open, err = b.Owed(ctx); err != nil {
			return err
		}
		run.owed = append(run.owed, at)
		if at.at >= size.over {
			return nil
		}
		if err := harness.Wait(ctx, size.look); err != nil {
			return err
		}
	}
}

// redelivered sends the notices of which no delivery was answered 200 again, for as long as there are any.
func (size comeback) redelivered(ctx context.Context, l *harness.Lab, b *harness.Bench, notices []tosssim.Notice, run *comebackRun) error {
	known := make(map[string]bool)
	last, sent := run.back, run.sent
	for round := 1; round <= redeliveries; round++ {
		for _, one := range last.Of("notices").Sent {
			known[sent[one.N].PaymentKey] = known[sent[one.N].PaymentKey] || passed(one)
		}
		sent = slices.DeleteFunc(slices.Clone(notices), func(n tosssim.Notice) bool { return known[n.PaymentKey] })
		if len(sent) == 0 {
			return nil
		}
		l.Say("comeback: %d notices come again in %s", len(sent), size.redeliver)
		if err := harness.Wait(ctx, size.redeliver); err != nil {
			return err
		}
		var err error
		last, err = b.Run(ctx, harness.Plan{
			Name: fmt.Sprint("redelivery ", round), Fault: size.delayed(),
			Streams: []harness.Stream{harness.Notices(size.again, sent, min(size.each+round, redeliveries))},
		})
		if err != nil {
			return err
		}
		run.again = append(run.again, last)
	}
	return nil
}

// tooMuch are the answers to notices that there was no room for.
func tooMuch(s harness.Sent) bool {
	return s.Status == http.StatusTooManyRequests || s.Status == http.StatusServiceUnavailable
}

// most is the largest number of questions about one payment.
func (run comebackRun) most() int {
	most := 0
	for _, n := range run.asked {
		most = max(most, n)
	}
	return most
}

// questions are those about the canceled payments.
func (run comebackRun) questions() int {
	sum := 0
	for _, n := range run.asked {
		sum += n
	}
	return sum
}

func (size comeback) table(r *report.Result, run comebackRun) {
	r.Columns = append([]string{
		"", "confirms", "confirms p50, p95, max", "notices", "time of what was applied", "time of a duplicate", "time of a refusal", "questions", "cancels not in the books: first, last",
	}, resourceColumns()...)
	keep(r, run.calm)
	keep(r, run.back)
	calm, back := run.calm.Of("confirms"), run.back.Of("confirms")
	r.Row(title(run.calm), append([]string{calm.Answers(), calm.Spread().String(), "", "", "", "", "0", ""}, resources(run.calm)...)...)
	first, last := run.owed[0], run.owed[len(run.owed)-1]
	row := func(o harness.Observed, confirms, times, missing string) {
		notices := o.Of("notices")
		of := func(kind func(harness.Sent) bool) string { return report.SpreadOf(notices.Times(kind)).String() }
		r.Row(title(o), append([]string{
			confirms, times, notices.Answers(), of(harness.Answered(http.StatusOK, "applied_full")), of(harness.Answered(http.StatusOK, "duplicate_skipped")),
			of(tooMuch), fmt.Sprint(o.Since.Calls[tosssim.Get]), missing,
		}, resources(o)...)...)
	}
	row(run.back, back.Answers(), back.Spread().String(), fmt.Sprintf("%d, %d", first.missing, last.missing))
	for _, round := range run.again {
		keep(r, round)
		row(round, "", "", "")
	}
	r.Row("in the end", "", "", "", "", "", "", fmt.Sprintf("%d, at most %d of a payment", run.questions(), run.most()), run.books.Identity())
	r.Rows[len(r.Rows)-1] = append(r.Rows[len(r.Rows)-1], make([]string, len(r.Columns)-len(r.Rows[len(r.Rows)-1]))...)
}

func (size comeback) claims(r *report.Result, run comebackRun) {
	confirms, notices := run.back.Of("confirms"), run.back.Of("notices")
	broken := func(s harness.Sent) bool { return s.Status == http.StatusInternalServerError }
	r.Claim(confirms.Count(broken)+notices.Count(broken) == 0, "nothing breaks: no request is answered 500 (%s; %s)", confirms.Answers(), notices.Answers())
	r.ClaimTime(confirms.Count(harness.Silent)+notices.Count(harness.Silent) == 0, "every request is answered (%d confirms and %d notices are not)",
		confirms.Count(harness.Silent), notices.Count(harness.Silent))
	r.ClaimTime(confirms.Count(harness.Answered(http.StatusOK, "done")) == len(confirms.Sent), "every payment is approved: %s", confirms.Answers())
	had, has := run.calm.Of("confirms").Spread().P95, confirms.Spread().P95
	r.ClaimTime(has <= atMost(had, 20*time.Millisecond), "the confirms' p95 is %s, at most twice the healthy %s or 20 ms more", report.Short(has), report.Short(had))
	refused := report.SpreadOf(notices.Times(tooMuch))
	r.ClaimTime(refused.P95 <= refusedWithin, "the %d notices that are too much are refused at once: p95 %s, at most %s", notices.Count(tooMuch),
		report.Short(refused.P95), report.Short(refusedWithin))
	allowed := size.each + len(run.again) + recoveryAsks
	r.Claim(run.most() <= allowed, "the gateway is asked %d times about %d canceled payments, and about none more than %d times: at most %d, once for each delivery and by the recovery",
		run.questions(), size.cancels, run.most(), allowed)
	first, last := run.owed[0], run.owed[len(run.owed)-1]
	r.ClaimTime(steady(size.tenths(run.owed, func(d debtAt) int { return d.open })), "open work falls steadily once it is known: %v rows, tenth by tenth",
		size.tenths(run.owed, func(d debtAt) int { return d.open }))
	r.ClaimTime(last.missing <= first.missing/10, "of %d cancels that the books lack at first, %d are left when the last delivery has come", first.missing, last.missing)
	r.Claim(run.books.Sound() && run.books.Sum.Pending.Count == 0 && run.books.Orders.Canceled == size.cancels,
		"in the end each cancel is in the books once: %s, verdict %s %v, %d violations", run.books.Identity(), run.books.Verdict, run.books.Reasons, len(run.books.Violations))
}

// tenths are what was owed when the comeback began, and at the end of each tenth of it.
func (size comeback) tenths(owed []debtAt, of func(debtAt) int) []int {
	var at []int
	for n := range stretches + 1 {
		end := size.over * time.Duration(n) / stretches
		seen := owed[0]
		for _, d := range owed {
			if d.at <= end {
				seen = d
			}
		}
		at = append(at, of(seen))
	}
	at[stretches] = of(owed[len(owed)-1])
	return at
}

// steady tells whether what rises to its most falls from there without rising again, give or take a twentieth, and is gone
// but for a tenth in the end.
func steady(owed []int) bool {
	most := slices.Max(owed)
	from := slices.Index(owed, most)
	for n := from + 1; n < len(owed); n++ {
		if owed[n] > owed[n-1]+most/20 {
			return false
		}
	}
	return owed[len(owed)-1] <= most/10
}

// backlog is the chart of what is owed.
func (size comeback) backlog(owed []debtAt) report.NamedPlot {
	p := report.Plot{Title: "What is owed when everything comes back", Unit: "seconds since the first delivery"}
	for n := range stretches + 1 {
		p.X = append(p.X, fmt.Sprintf("%.3g", (size.over*time.Duration(n)/stretches).Seconds()))
	}
	for _, line := range []struct {
		name string
		of   func(debtAt) int
	}{{"cancels not in the books", func(d debtAt) int { return d.missing }}, {"open work", func(d debtAt) int { return d.open }}} {
		s := report.Series{Name: line.name}
		for _, n := range size.tenths(owed, line.of) {
			s.Values = append(s.Values, float64(n))
		}
		p.Series = append(p.Series, s)
	}
	return report.NamedPlot{Name: "backlog", Plot: p}
}
