package overload

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
	"daesa/pgclient/tosssim"
)

// webhooks is the size of the experiment.
type webhooks struct {
	latency  time.Duration
	over     time.Duration
	confirms float64 // a second
	notices  float64
	threads  int
	slots    int
	question time.Duration // what a notice's question to the gateway may take
	patience time.Duration // of buyers
	warm     time.Duration
	times    int // that the slow gateway is run
}

func webhooksOf(quick bool) webhooks {
	if quick {
		return webhooks{
			latency: 300 * time.Millisecond, over: 900 * time.Millisecond, confirms: 50, notices: 40, threads: 12, slots: 4,
			question: 200 * time.Millisecond, patience: 3 * time.Second, warm: 200 * time.Millisecond, times: 1,
		}
	}
	return webhooks{
		latency: 5 * time.Second, over: 30 * time.Second, confirms: 50, notices: 10, threads: 100, slots: 40,
		question: 3 * time.Second, patience: 20 * time.Second, warm: 5 * time.Second, times: 2,
	}
}

// noticesUnder is what became of notices in one arm.
type noticesUnder struct {
	healthy     noticesRun
	slow        []noticesRun // the same, once or twice
	redelivered []harness.Observed
	books       harness.Books
}

// What a notice's question may take as shipped, and what storing, recording and the way there and back may add.
const (
	shippedQuestion = 3 * time.Second
	writingDown     = 300 * time.Millisecond
)

// redeliveries is how often a sender comes again.
const redeliveries = 7

// noticesRun is notices and confirms together.
type noticesRun struct {
	harness.Observed
	mixed
}

// WebhookBrownout sends notices while confirms wait for a slow gateway.
func WebhookBrownout(ctx context.Context, l *harness.Lab) (r report.Result, err error) {
	size := webhooksOf(l.Quick)
	queries := []string{"DAESA_WEBHOOK_RATE_LIMIT=1000000", "DAESA_PATH_QUERY_ATTEMPT=" + size.question.String()}
	bare, cap40 := before(size.threads), capped(size.slots)
	bare.Settings, cap40.Settings = append(bare.Settings, queries...), append(cap40.Settings, queries...)
	none, err := size.arm(ctx, l, bare)
	if err != nil {
		return r, err
	}
	shipped, err := size.arm(ctx, l, cap40)
	if err != nil {
		return r, err
	}
	back, err := returningOf(l.Quick).run(ctx, l)
	if err != nil {
		return r, err
	}
	size.table(&r, none, shipped)
	back.row(&r)
	size.claims(&r, none, shipped)
	back.claims(&r, shippedQuestion+writingDown, l.Quick)
	r.Notes = []string{fmt.Sprintf(
		"Each run: %.0f confirms and %.0f notices a second for %s; of ten notices six are of approvals, two of cancels that are applied, "+
			"two of cancels that are not. Before is our stand-in for their server: the same binary with %d requests at once in one line, "+
			"no cap, no breaker, one attempt. Their receiver never asks the gateway; ours asks about the cancels.",
		size.confirms, size.notices, size.over, size.threads), fmt.Sprintf(
		"Of the cancels that were answered 502, redelivery applied %d in the arm %s and %d in the arm %s; the others the service "+
			"had found in the gateway's list by then: it is waited until every breaker has closed. As shipped is what happens without that: %.0f cancels and "+
			"%.0f confirms a second at a gateway that answers nobody for %s, its list included; as soon as it answers, all that was refused comes again, %.0f a second.",
		none.applied(), none.healthy.Arm, shipped.applied(), shipped.healthy.Arm, returningOf(l.Quick).cancels, returningOf(l.Quick).confirms, returningOf(l.Quick).over, returningOf(l.Quick).burst)}
	return r, nil
}

// arm runs notices in front of a healthy gateway, twice in front of a slow one, and then delivers once more what was refused.
func (size webhooks) arm(ctx context.Context, l *harness.Lab, arm harness.Arm) (u noticesUnder, err error) {
	b, err := l.Open(ctx, arm)
	if err != nil {
		return u, err
	}
	defer func() { err = firstOf(err, b.Close()) }() //nolint:contextcheck // it ends also when the context has ended
	if _, err := size.run(ctx, l, b, "warm-up", size.warm, 0); err != nil {
		return u, err
	}
	if u.healthy, err = size.run(ctx, l, b, "healthy", size.over, 0); err != nil {
		return u, err
	}
	var refused []tosssim.Notice
	for n := range size.times {
		name := fmt.Sprint("gateway ", size.latency)
		if n > 0 {
			name += ", again"
		}
		run, err := size.run(ctx, l, b, name, size.over, size.latency)
		if err != nil {
			return u, err
		}
		u.slow = append(u.slow, run)
		refused = append(refused, run.refused(run.Of("notices"))...)
	}
	if err := b.Closed(ctx); err != nil {
		return u, err
	}
	for round := 1; len(refused) > 0 && round <= redeliveries; round++ {
		l.Say("webhook-brownout: %s, redelivery of %d", arm.Name, len(refused))
		o, err := b.Run(ctx, harness.Plan{Name: fmt.Sprint("redelivery ", round), Streams: []harness.Stream{harness.Notices(size.notices, refused, round)}})
		if err != nil {
			return u, err
		}
		u.redelivered = append(u.redelivered, o)
		refused = mixed{notices: refused}.refused(o.Of("notices"))
	}
	if _, err := b.Recover(ctx, 3*time.Minute); err != nil {
		return u, err
	}
	u.books, err = b.Books(ctx)
	return u, err
}

func (size webhooks) run(ctx context.Context, l *harness.Lab, b *harness.Bench, name string, over, latency time.Duration) (run noticesRun, err error) {
	l.Say("webhook-brownout: %s, %s", b.Name, name)
	if err := b.Closed(ctx); err != nil {
		return run, err
	}
	if run.mixed, err = mix(ctx, b, int(size.notices*over.Seconds())); err != nil {
		return run, err
	}
	payments, err := b.Payable(ctx, int(size.confirms*over.Seconds()))
	if err != nil {
		return run, err
	}
	plan := harness.Plan{Name: name, Latency: latency, Streams: []harness.Stream{
		harness.Confirms(size.confirms, size.patience, payments), harness.Notices(size.notices, run.notices, 0),
	}}
	if latency > 0 {
		plan.Fault = harness.Fault{Ops: []tosssim.Op{tosssim.Confirm, tosssim.Get}, Kind: tosssim.Delay, Delay: latency}
	}
	run.Observed, err = b.Run(ctx, plan)
	return run, err
}

// applied is how many of the cancels that were refused came into the books by their redelivery.
func (u noticesUnder) applied() int {
	n := 0
	for _, round := range u.redelivered {
		n += round.Of("notices").Count(harness.Answered(http.StatusOK, "applied_full"))
	}
	return n
}

// late is the share of the notices that the sender gave up on.
func (run noticesRun) late() float64 {
	return run.Of("notices").Share(func(s harness.Sent) bool { return harness.Silent(s) || harness.Past(10*time.Second)(s) })
}

// stored is how many rows the service has of the notices sent.
func (run noticesRun) stored() int {
	rows := 0
	for _, n := range run.Since.Outcomes {
		rows += n
	}
	return rows
}

// kind is what was sent of some kinds of notices.
func (run noticesRun) kind(kinds ...noticeKind) harness.Sending {
	all := run.Of("notices")
	some := harness.Sending{Stream: all.Stream}
	for _, one := range all.Sent {
		if slices.ContainsFunc(kinds, func(kind noticeKind) bool { return run.of(kind)(one) }) {
			some.Sent = append(some.Sent, one)
		}
	}
	return some
}

func (size webhooks) table(r *report.Result, none, shipped noticesUnder) {
	r.Columns = append([]string{
		"", "rows stored of notices sent", "they", "past 10 s", "they", "notices p95", "they", "ignored and duplicates p50, p95, max",
		"cancels", "slowest 502", "confirms p95",
	}, resourceColumns()...)
	for _, arm := range []struct {
		noticesUnder
		theirs [][3]string // of the runs in front of a slow gateway
	}{
		{none, [][3]string{{"459 of 527", "26.11 %", "13 s"}, {"", "26.77 %", ""}}},
		{shipped, [][3]string{{"all", "0.00 %", "9 ms"}, {"all", "0.00 %", ""}}},
	} {
		keep(r, arm.healthy.Observed)
		arm.healthy.row(r, [3]string{})
		for n, run := range arm.slow {
			keep(r, run.Observed)
			run.row(r, arm.theirs[n])
		}
		for _, round := range arm.redelivered {
			keep(r, round)
		}
	}
	r.Plots = []report.NamedPlot{p95s("notices", "notices in front of a slow gateway", size.over,
		curve{none.healthy.Arm, none.slow[0].Of("notices")},
		curve{shipped.healthy.Arm + ", answered from the books", shipped.slow[0].kind(noticeIgnored, noticeDuplicate)},
		curve{shipped.healthy.Arm + ", cancels", shipped.slow[0].kind(noticeCancel)})}
}

func (run noticesRun) row(r *report.Result, theirs [3]string) {
	notices := run.Of("notices")
	quickly, cancels := run.kind(noticeIgnored, noticeDuplicate).Spread(), run.kind(noticeCancel)
	r.Row(title(run.Observed), append([]string{
		fmt.Sprintf("%d of %d", run.stored(), len(notices.Sent)), theirs[0], fmt.Sprintf("%.2f %%", 100*run.late()), theirs[1],
		report.Short(notices.Spread().P95), theirs[2],
		fmt.Sprintf("%s, %s, %s", report.Short(quickly.P50), report.Short(quickly.P95), report.Short(quickly.Most)),
		cancels.Answers(), report.Short(slowest502(notices)), report.Short(run.Of("confirms").Spread().P95),
	}, resources(run.Observed)...)...)
}

func slowest502(s harness.Sending) time.Duration {
	return report.SpreadOf(s.Times(failed)).Most
}

// failed are the notices whose question had no answer.
func failed(s harness.Sent) bool { return s.Status == http.StatusBadGateway }

// claim502 says by when a cancel is refused that could not be asked about. Without a single one it says nothing.
func claim502(r *report.Result, o harness.Observed, bound time.Duration) {
	notices := o.Of("notices")
	n, slowest := notices.Count(failed), slowest502(notices)
	r.ClaimTime(n > 0 && slowest <= bound, "%s: cancels whose question fails are answered 502 within %s (%d of them, the slowest after %s)", title(o),
		report.Short(bound), n, report.Short(slowest))
}

func (size webhooks) claims(r *report.Result, none, shipped noticesUnder) {
	healthy := shipped.healthy.kind(noticeIgnored, noticeDuplicate).Spread().P95
	bound := size.question + writingDown
	for _, run := range shipped.slow {
		sent := len(run.Of("notices").Sent)
		r.ClaimTime(run.stored() == sent, "%s: a row is stored of every notice sent (%d of %d)", title(run.Observed), run.stored(), sent)
		r.ClaimTime(run.late() == 0, "%s: no notice takes longer than 10 s (%.2f %% do)", title(run.Observed), 100*run.late())
		quickly := run.kind(noticeIgnored, noticeDuplicate).Spread().P95
		r.ClaimTime(quickly <= atMost(healthy, 20*time.Millisecond),
			"%s: what needs no question is answered within %s at p95, at most twice the healthy %s or 20 ms more", title(run.Observed),
			report.Short(quickly), report.Short(healthy))
		claim502(r, run.Observed, bound)
	}
	for _, arm := range []noticesUnder{none, shipped} {
		r.ClaimTime(len(arm.redelivered) <= 1, "%s: one redelivery is enough (%d were made)", arm.healthy.Arm, len(arm.redelivered))
		r.Claim(arm.books.Sound() && arm.books.Sum.Pending.Count == 0, "%s: after it every cancel is in the books: %s, verdict %s %v, %d violations",
			arm.healthy.Arm, arm.books.Identity(), arm.books.Verdict, arm.books.Reasons, len(arm.books.Violations))
	}
	first := none.slow[0]
	r.ClaimTime(first.late() > 0, "%s: without a cap notices wait behind payments: %.2f %% are past 10 s", title(first.Observed), 100*first.late())
}
