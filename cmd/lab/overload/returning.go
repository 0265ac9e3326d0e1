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

// returning is the size of an outage whose notices come again the moment it is over.
type returning struct {
	over     time.Duration
	confirms float64 // a second
	cancels  float64
	burst    float64 // redeliveries a second
	patience time.Duration
	warm     time.Duration
}

func returningOf(quick bool) returning {
	if quick {
		return returning{over: 1500 * time.Millisecond, confirms: 10, cancels: 16, burst: 100, patience: 3 * time.Second, warm: 200 * time.Millisecond}
	}
	return returning{over: time.Minute, confirms: 10, cancels: 4, burst: 100, patience: 20 * time.Second, warm: 5 * time.Second}
}

// returned is an outage and what came of the burst after it.
type returned struct {
	outage, burst harness.Observed
	owed          int     // cancels that were not in the books when the burst began
	breaker       float64 // of notices' questions just before it: 0 closed, 1 half open, 2 open
	books         harness.Books
}

// run lets the gateway be silent to everybody, and delivers what was refused once more as soon as it answers again,
// whatever the breakers say.
func (size returning) run(ctx context.Context, l *harness.Lab) (run returned, err error) {
	l.Say("webhook-brownout: as shipped, an outage of %s", size.over)
	b, err := l.Open(ctx, harness.Arm{Name: "as shipped", Settings: []string{"DAESA_WEBHOOK_RATE_LIMIT=1000000"}})
	if err != nil {
		return run, err
	}
	defer func() { err = firstOf(err, b.Close()) }() //nolint:contextcheck // it ends also when the context has ended
	warm := brownout{confirms: size.confirms, reads: size.confirms, patience: size.patience, warm: size.warm}
	if err := warm.warmUp(ctx, b); err != nil {
		return run, err
	}
	notices, err := canceled(ctx, b, int(size.cancels*size.over.Seconds()))
	if err != nil {
		return run, err
	}
	selling := max(size.over-size.patience, size.over/3) // the last buyer is gone when the gateway is back
	buyers, err := b.Payable(ctx, int(size.confirms*selling.Seconds()))
	if err != nil {
		return run, err
	}
	if run.outage, err = b.Run(ctx, harness.Plan{
		Name: fmt.Sprint("gateway silent for ", size.over), Fault: harness.Fault{Ops: []tosssim.Op{tosssim.Confirm, tosssim.Get, tosssim.List}, Kind: tosssim.Hang},
		Streams: []harness.Stream{harness.Confirms(size.confirms, size.patience, buyers), harness.Notices(size.cancels, notices, 0)},
	}); err != nil {
		return run, err
	}
	if run.owed, _, err = b.Owed(ctx); err != nil {
		return run, err
	}
	m, err := b.Instances[0].Metrics(ctx)
	if err != nil {
		return run, err
	}
	run.breaker = m.Of("daesa_pgclient_breaker_state", "breaker", "query")
	again := mixed{notices: notices}.refused(run.outage.Of("notices"))
	l.Say("webhook-brownout: as shipped, the gateway is back, and %d notices come again", len(again))
	if run.burst, err = b.Run(ctx, harness.Plan{
		Name: "gateway back", Streams: []harness.Stream{harness.Notices(size.burst, again, 1)},
	}); err != nil {
		return run, err
	}
	if _, err = b.Recover(ctx, 6*time.Minute); err != nil { // work of a failed notice is due after five
		return run, err
	}
	run.books, err = b.Books(ctx)
	return run, err
}

func (run returned) row(r *report.Result) {
	keep(r, run.outage)
	keep(r, run.burst)
	for _, o := range []harness.Observed{run.outage, run.burst} {
		n := noticesRun{Observed: o}
		notices := o.Of("notices")
		confirms := ""
		if len(o.Load) > 1 {
			confirms = report.Short(o.Of("confirms").Spread().P95)
		}
		r.Row(title(o), append([]string{
			fmt.Sprintf("%d of %d", n.stored(), len(notices.Sent)), "", fmt.Sprintf("%.2f %%", 100*n.late()), "", report.Short(notices.Spread().P95), "", "",
			notices.Answers(), report.Short(slowest502(notices)), confirms,
		}, resources(o)...)...)
	}
}

func (run returned) claims(r *report.Result, bound time.Duration, quick bool) {
	claim502(r, run.outage, bound)
	burst := run.burst.Of("notices")
	applied := burst.Count(harness.Answered(http.StatusOK, "applied_full"))
	known := burst.Count(harness.Answered(http.StatusOK, "duplicate_skipped"))
	r.ClaimTime(len(burst.Sent) > 0 && applied+known == len(burst.Sent),
		"%s: every notice is answered 200 the first time it comes again, with the breaker not closed yet (%d of %d)", title(run.burst), applied+known, len(burst.Sent))
	r.Unless(run.breaker > 0 || quick, "%s: the breaker of questions had closed before the burst, so nothing had to wait for it", title(run.burst))
	r.ClaimTime(2*applied > len(burst.Sent), "%s: its redelivery is what applies a cancel, not the list or the sweeper (%d of the %d that were owed)",
		title(run.burst), applied, run.owed)
	r.Claim(run.books.Sound() && run.books.Sum.Pending.Count == 0, "%s: after it every cancel is in the books: %s, verdict %s %v, %d violations",
		run.burst.Arm, run.books.Identity(), run.books.Verdict, run.books.Reasons, len(run.books.Violations))
}
