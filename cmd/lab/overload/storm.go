package overload

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

// storm is the size of the experiment.
type storm struct {
	over      time.Duration
	forged    float64 // notices a second
	everyReal int     // one notice of so many is real
	payments  int     // that the made-up notices are about
	confirms  float64
	doubts    int // payments in doubt when it begins
	latency   time.Duration
	redeliver time.Duration // after which refused notices come again
	patience  time.Duration
	ripe      time.Duration // after which what notices claimed and nobody acknowledged is asked about; 0 = not waited for
}

func stormOf(quick bool) storm {
	if quick {
		return storm{
			over: time.Second, forged: 240, everyReal: 40, payments: 2, confirms: 10, doubts: 2, latency: 20 * time.Millisecond,
			patience: 5 * time.Second,
		}
	}
	return storm{
		over: 60 * time.Second, forged: 102, everyReal: 51, payments: 300, confirms: 10, doubts: 20, latency: 100 * time.Millisecond,
		redeliver: 61 * time.Second, patience: 20 * time.Second, ripe: 5 * time.Minute,
	}
}

// What made-up notices may cost in questions: the declared limits of package webhook. Those that are under way are counted
// against the limit of all payments, and not against that of their own.
const (
	fruitlessOfPayment = 10
	fruitlessOfAll     = 300
	fruitlessPerSecond = 5
	noticesAtOnce      = 160 // the ceiling of their class
)

const noticeForged noticeKind = "forged"

// stormRun is what became of it.
type stormRun struct {
	calm, out   noticesRun
	began       time.Time  // the storm
	later       noticesRun // when the claims of the storm are asked about
	lateAsked   int        // questions of the sweeper's then
	lateDoubts  int        // as doubts, of then
	lateSettled time.Duration
	redelivered harness.Observed
	doubts      int           // payments that nobody knew the outcome of when the storm began
	settled     time.Duration // until those were settled, in the storm
	books       harness.Books
}

// ForgedStorm sends made-up cancel notices of payments that exist, from many addresses.
func ForgedStorm(ctx context.Context, l *harness.Lab) (r report.Result, err error) {
	size := stormOf(l.Quick)
	b, err := l.Open(ctx, harness.Arm{Name: "as shipped", Settings: []string{"DAESA_TRUSTED_PROXIES=127.0.0.1"}})
	if err != nil {
		return r, err
	}
	defer func() { err = firstOf(err, b.Close()) }() //nolint:contextcheck // it ends also when the context has ended
	var run stormRun
	if run.calm, err = size.run(ctx, l, b, "healthy", 0, &run); err != nil {
		return r, err
	}
	if run.out, err = size.run(ctx, l, b, "storm", size.forged, &run); err != nil {
		return r, err
	}
	if run.redelivered, err = size.again(ctx, l, b, run.out); err != nil {
		return r, err
	}
	if err := size.aftermath(ctx, l, b, &run); err != nil {
		return r, err
	}
	if run.books, err = b.Books(ctx); err != nil {
		return r, err
	}
	size.table(&r, run)
	size.claims(&r, run)
	r.Notes = []string{fmt.Sprintf(
		"%.0f confirms a second for %s; in the storm %.0f notices a second as well, of which one in %d is real and the others claim made-up cancels of %d "+
			"payments, from 250 addresses. Nobody who published figures had such a limit; without one each notice would be a question.",
		size.confirms, size.over, size.forged, size.everyReal, size.payments)}
	return r, nil
}

// run sends confirms and, at a rate above nothing, the storm, with payments in doubt when it begins.
func (size storm) run(ctx context.Context, l *harness.Lab, b *harness.Bench, name string, rate float64, into *stormRun) (run noticesRun, err error) {
	l.Say("forged-storm: %s", name)
	plan, err := size.plan(ctx, b, name)
	if err != nil {
		return run, err
	}
	if rate > 0 {
		if run.mixed, err = size.notices(ctx, b, int(rate*size.over.Seconds())); err != nil {
			return run, err
		}
		plan.Streams = append(plan.Streams, fromManySources(harness.Notices(rate, run.notices, 0)))
		into.began = time.Now()
		if into.doubts, err = size.inDoubt(ctx, b, &plan, &into.settled); err != nil {
			return run, err
		}
	}
	run.Observed, err = b.Run(ctx, plan)
	return run, err
}

// plan is a run of confirms at the gateway's latency.
func (size storm) plan(ctx context.Context, b *harness.Bench, name string) (harness.Plan, error) {
	payments, err := b.Payable(ctx, int(size.confirms*size.over.Seconds()))
	return harness.Plan{
		Name: name, Streams: []harness.Stream{harness.Confirms(size.confirms, size.patience, payments)},
		Fault: harness.Fault{Ops: []tosssim.Op{tosssim.Get, tosssim.Confirm}, Kind: tosssim.Delay, Delay: size.latency}, Latency: size.latency,
	}, err
}

// inDoubt leaves payments in doubt, says how many, and has the run measure how long it takes until none is.
func (size storm) inDoubt(ctx context.Context, b *harness.Bench, plan *harness.Plan, settled *time.Duration) (left int, err error) {
	if left, err = size.doubt(ctx, b); err != nil {
		return 0, err
	}
	began := time.Now()
	plan.During = func(ctx context.Context) error {
		err := b.Settled(ctx, ledger.WorkConfirmUnknown, time.Minute)
		*settled = time.Since(began)
		return err
	}
	return left, nil
}

// aftermath is the time in which the sweeper asks about what the storm claimed: payments go on, and some are in doubt again.
func (size storm) aftermath(ctx context.Context, l *harness.Lab, b *harness.Bench, run *stormRun) (err error) {
	if size.ripe == 0 {
		return nil
	}
	l.Say("forged-storm: what was claimed is asked about in %s", time.Until(run.began.Add(size.ripe)).Round(time.Second))
	if err := harness.Wait(ctx, time.Until(run.began.Add(size.ripe))); err != nil {
		return err
	}
	plan, err := size.plan(ctx, b, "aftermath")
	if err != nil {
		return err
	}
	before, err := b.Asked(ctx, pathRecover)
	if err != nil {
		return err
	}
	if run.lateDoubts, err = size.inDoubt(ctx, b, &plan, &run.lateSettled); err != nil {
		return err
	}
	if run.later.Observed, err = b.Run(ctx, plan); err != nil {
		return err
	}
	after, err := b.Asked(ctx, pathRecover)
	run.lateAsked = after - before
	return err
}

// lostOneIn is how few of the payments lose their reply. A lost one is sent once more and fails twice, so two in thirteen
// calls fail: too few for a breaker to take the gateway for broken, which would refuse buyers before the storm does.
const lostOneIn = 12

// lostRate is how many of them are sent a second: all are lost before recovery has asked about the first ones.
const lostRate = 200

// soundAfter is how many follow whose reply comes: the second attempts of the last lost ones, up to a second late, would be
// the gateway's only answers otherwise.
const soundAfter = lostRate

// doubt leaves payments of which nobody knows the outcome, and says how many: the gateway approves them and its reply is
// lost.
func (size storm) doubt(ctx context.Context, b *harness.Bench) (left int, err error) {
	payments, err := b.Payable(ctx, size.doubts*lostOneIn+soundAfter)
	if err != nil {
		return 0, err
	}
	for n := 0; n < size.doubts*lostOneIn; n += lostOneIn {
		lost := harness.Fault{Ops: []tosssim.Op{tosssim.Confirm}, Kind: tosssim.LostReply, PaymentKey: payments[n].Key}
		if err := b.Gateway.Fail(ctx, lost); err != nil {
			return 0, err
		}
	}
	if err := b.WarmUp(ctx, harness.Confirms(lostRate, size.patience, payments)); err != nil {
		return 0, err
	}
	if err := b.Gateway.Heal(ctx); err != nil {
		return 0, err
	}
	return b.InDoubt(ctx)
}

// notices makes n of them: real ones, each of a payment of its own that was canceled, and made-up ones.
func (size storm) notices(ctx context.Context, b *harness.Bench, n int) (m mixed, err error) {
	victims, err := b.Paid(ctx, size.payments)
	if err != nil {
		return m, err
	}
	approved, err := latest(ctx, b, victims)
	if err != nil {
		return m, err
	}
	canceled, err := b.Paid(ctx, (n+size.everyReal-1)/size.everyReal)
	if err != nil {
		return m, err
	}
	for _, p := range canceled {
		if err := b.Gateway.Cancel(ctx, p.Key); err != nil {
			return m, err
		}
	}
	real, err := latest(ctx, b, canceled)
	if err != nil {
		return m, err
	}
	for i := range n {
		if i%size.everyReal == 0 {
			m.notices, m.kinds = append(m.notices, real[i/size.everyReal]), append(m.kinds, noticeCancel)
			continue
		}
		made, err := forge(approved[i%len(approved)], i)
		if err != nil {
			return m, err
		}
		m.notices, m.kinds = append(m.notices, made), append(m.kinds, noticeForged)
	}
	return m, nil
}

// forge turns the notice of an approval into one of a cancel that never was.
func forge(approved tosssim.Notice, number int) (tosssim.Notice, error) {
	var event map[string]any
	if err := json.Unmarshal(approved.Body, &event); err != nil {
		return approved, fmt.Errorf("forge a notice: %w", err)
	}
	payment, ok := event["data"].(map[string]any)
	if !ok {
		return approved, fmt.Errorf("forge a notice: %s has no data", approved.EventType)
	}
	payment["status"], payment["balanceAmount"] = "CANCELED", 0
	payment["cancels"] = []map[string]any{{
		"transactionKey": fmt.Sprintf("txrd_forged%012d", number), "cancelAmount": payment["totalAmount"], "cancelStatus": "DONE",
		"canceledAt": payment["approvedAt"], "cancelReason": "forged",
	}}
	body, err := json.Marshal(event)
	if err != nil {
		return approved, fmt.Errorf("forge a notice: %w", err)
	}
	approved.Body, approved.TransmissionID = body, fmt.Sprintf("whtrans_forged%012d", number)
	return approved, nil
}

// sources is how many addresses a storm comes from.
const sources = 250

// fromManySources lets each request come from another address, as a proxy that is trusted says.
func fromManySources(s harness.Stream) harness.Stream {
	inner := s.Make
	s.Make = func(n int) harness.Request {
		made := inner(n)
		made.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", n%sources))
		return made
	}
	return s
}

// again delivers the real notices that were refused once more, when their sender would.
func (size storm) again(ctx context.Context, l *harness.Lab, b *harness.Bench, run noticesRun) (o harness.Observed, err error) {
	var refused []tosssim.Notice
	for _, one := range run.Of("notices").Sent {
		if run.kinds[one.N] == noticeCancel && one.Status != http.StatusOK {
			refused = append(refused, run.notices[one.N])
		}
	}
	if len(refused) == 0 {
		return o, nil
	}
	l.Say("forged-storm: %d real notices come again in %s", len(refused), size.redeliver)
	if err := harness.Wait(ctx, size.redeliver); err != nil {
		return o, err
	}
	return b.Run(ctx, harness.Plan{Name: "redelivery", Streams: []harness.Stream{harness.Notices(2, refused, 1)}})
}

// allowed is the most questions that made-up notices may cost.
func (size storm) allowed() int {
	return min(size.payments*fruitlessOfPayment+noticesAtOnce, fruitlessOfAll+int(fruitlessPerSecond*(size.over+time.Second).Seconds()))
}

// pathRecover is the sweeper's path to the gateway.
const pathRecover = "recover"

// recoverable is how many it may ask when the storm's claims are due: one about each payment, whatever was claimed of it,
// and those about what is in doubt, which may come twice.
func (size storm) recoverable(run stormRun) int { return size.payments + 2*run.lateDoubts }

// asked is how many questions the made-up notices cost: those that were answered and bore nothing out.
func (run noticesRun) asked() int {
	return run.kind(noticeForged).Count(harness.Answered(http.StatusConflict, "state_mismatch"))
}

func (size storm) table(r *report.Result, run stormRun) {
	r.Columns = append([]string{""}, "made up", "their answers", "questions they cost", "allowed", "real", "their answers", "confirms", "confirms p95")
	r.Columns = append(r.Columns, resourceColumns()...)
	keep(r, run.calm.Observed)
	keep(r, run.out.Observed)
	r.Row(title(run.calm.Observed), append([]string{
		"0", "", "", "", "0", "", run.calm.Of("confirms").Answers(), report.Short(run.calm.Of("confirms").Spread().P95),
	}, resources(run.calm.Observed)...)...)
	forged, real := run.out.kind(noticeForged), run.out.kind(noticeCancel)
	r.Row(title(run.out.Observed), append([]string{
		fmt.Sprint(len(forged.Sent)), forged.Answers(), fmt.Sprint(run.out.asked()), fmt.Sprint(size.allowed()), fmt.Sprint(len(real.Sent)), real.Answers(),
		run.out.Of("confirms").Answers(), report.Short(run.out.Of("confirms").Spread().P95),
	}, resources(run.out.Observed)...)...)
	if run.redelivered.Name != "" {
		keep(r, run.redelivered)
		again := run.redelivered.Of("notices")
		r.Row(title(run.redelivered), append([]string{"0", "", "", "", fmt.Sprint(len(again.Sent)), again.Answers(), "", ""}, resources(run.redelivered)...)...)
	}
	if size.ripe > 0 {
		keep(r, run.later.Observed)
		r.Row(title(run.later.Observed), append([]string{
			"0", "", fmt.Sprint(run.lateAsked) + " by the sweeper", fmt.Sprint(size.recoverable(run)), "0", "",
			run.later.Of("confirms").Answers(), report.Short(run.later.Of("confirms").Spread().P95),
		}, resources(run.later.Observed)...)...)
	}
	r.Row("payments in doubt from before, settled in the storm", fmt.Sprintf("%d within %s", run.doubts, report.Short(run.settled)))
	r.Rows[len(r.Rows)-1] = append(r.Rows[len(r.Rows)-1], make([]string, len(r.Columns)-2)...)
	r.Plots = []report.NamedPlot{p95s("confirms", "confirms", size.over,
		curve{"healthy", run.calm.Of("confirms")}, curve{"in the storm", run.out.Of("confirms")})}
}

func (size storm) claims(r *report.Result, run stormRun) {
	forged := run.out.kind(noticeForged)
	r.Claim(run.out.asked() <= size.allowed(), "%d made-up notices cost %d questions, at most the %d that are allowed", len(forged.Sent), run.out.asked(), size.allowed())
	r.Claim(forged.Count(harness.Answered(http.StatusOK, "")) == 0, "not one made-up notice is acknowledged: %s", forged.Answers())
	asked := run.out.Since.Metrics.Count("daesa_pgclient_answers_total", "path", "query")
	r.Claim(asked <= size.allowed()+len(run.out.kind(noticeCancel).Sent), "the gateway is asked %d times on behalf of notices, the %d real ones included", asked,
		len(run.out.kind(noticeCancel).Sent))
	r.ClaimTime(run.doubts >= size.doubts/2, "%d payments were in doubt when the storm began, of %d whose reply was lost", run.doubts, size.doubts)
	parts := []noticesRun{run.calm, run.out}
	if size.ripe > 0 {
		parts = append(parts, run.later)
		asked, may := run.lateAsked, size.recoverable(run)
		r.ClaimTime(asked >= size.payments/2 && asked <= may, "when what the storm claimed is due, the sweeper asks %d times: one question about a payment, not about each claim, at most %d",
			asked, may)
		r.ClaimTime(run.lateDoubts >= size.doubts/2 && run.lateSettled <= 15*time.Second, "nor does that stand before recovery: %d payments in doubt then are settled within %s",
			run.lateDoubts, report.Short(run.lateSettled))
	}
	for _, half := range parts {
		confirms := half.Of("confirms")
		r.ClaimTime(confirms.Count(harness.Answered(http.StatusOK, "done")) == len(confirms.Sent), "%s: every payment is approved: %s", title(half.Observed), confirms.Answers())
	}
	r.ClaimTime(run.settled <= 15*time.Second, "recovery goes on: what was in doubt is settled %s after the storm began", report.Short(run.settled))
	calm, out := run.calm.Of("confirms").Spread().P95, run.out.Of("confirms").Spread().P95
	r.ClaimTime(out <= atMost(calm, 20*time.Millisecond), "payments stay as fast: p95 %s, at most twice the healthy %s or 20 ms more", report.Short(out), report.Short(calm))
	r.Claim(run.books.Sound() && run.books.Sum.Pending.Count == 0, "after one redelivery every real cancel is in the books and no other: %s, verdict %s %v, %d violations",
		run.books.Identity(), run.books.Verdict, run.books.Reasons, len(run.books.Violations))
}
