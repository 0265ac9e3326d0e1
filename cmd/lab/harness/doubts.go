package harness

import (
	"fmt"
	"math"
	"slices"
	"time"

	"daesa/pgclient/tosssim"
)

// Doubts lists what cannot be true of a run: where two witnesses of the same thing disagree, or a figure lies where it
// cannot. Two measurements that were once believed are the reason: a gateway that takes 5 s and was never called, and a
// report that read the wrong key and showed 0 % late answers beside a p95 of 13 s.
func (o Observed) Doubts() []string {
	d := &doubter{Observed: o}
	for _, s := range o.Load {
		d.sending(s)
		d.times(s)
		d.route(s)
	}
	d.gateway()
	d.money()
	d.watch()
	return d.found
}

// Unexported lists the names that were asked of a run's metrics and that the service does not export. It is asked last:
// what an experiment claims may ask for more of them.
func (o Observed) Unexported() []string {
	d := &doubter{Observed: o}
	for _, name := range o.Since.Metrics.Missing() {
		d.unless(false, "the service exports no %s", name)
	}
	return d.found
}

// doubter collects contradictions.
type doubter struct {
	Observed

	found []string
}

func (d *doubter) unless(agree bool, format string, args ...any) {
	if !agree {
		d.found = append(d.found, d.Arm+", "+d.Name+": "+fmt.Sprintf(format, args...))
	}
}

// What the generator may be late by, in most requests and in any. A quick run is made on any machine.
const (
	lateMost  = 100 * time.Millisecond
	lateEver  = 2 * time.Second
	lateQuick = 5 * time.Second
)

// sending doubts the load itself: one that was late, short or not a multiple of the latency did not put the question
// that the run is about.
func (d *doubter) sending(s Sending) {
	d.unless(len(s.Sent) == s.Requests, "%d requests of %s were wanted and %d sent", s.Requests, s.Name, len(s.Sent))
	late := s.Lateness()
	most, ever := lateMost, lateEver
	if d.Quick {
		most, ever = lateQuick, lateQuick
	}
	d.unless(late.P99 <= most && late.Most <= ever, "requests of %s were sent late, p99 %s, most %s: the open loop could not be kept",
		s.Name, late.P99, late.Most)
	if d.Latency > 0 {
		d.unless(s.Over() >= 3*d.Latency && nearMultiple(s.Over(), d.Latency), "%s were sent over %s, which is no multiple of the gateway's %s",
			s.Name, s.Over(), d.Latency)
	}
	seen := make([]bool, s.Requests)
	for _, one := range s.Sent {
		if one.N < 0 || one.N >= len(seen) || seen[one.N] {
			d.unless(false, "request %d of %s came back twice, or was never made", one.N, s.Name)
			return
		}
		seen[one.N] = true
	}
}

// nearMultiple tells whether a time is a multiple of another, but for the rounding of a rate.
func nearMultiple(whole, part time.Duration) bool {
	times := math.Round(float64(whole) / float64(part))
	return math.Abs(float64(whole)-times*float64(part)) < float64(5*time.Millisecond)
}

// times doubts percentiles that contradict shares, and a mean that contradicts the most.
func (d *doubter) times(s Sending) {
	spread := s.Spread()
	for _, limit := range []time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second} {
		past := s.Count(Past(limit))
		atLeast := len(s.Sent) - (len(s.Sent)*95+99)/100 + 1 // ranks from p95 to the last
		d.unless((spread.P95 > limit) == (past >= atLeast), "p95 of %s is %s while %d of %d took longer than %s",
			s.Name, spread.P95, past, len(s.Sent), limit)
		d.unless((spread.Most > limit) == (past > 0), "the slowest of %s took %s while %d took longer than %s", s.Name, spread.Most, past, limit)
	}
	most, mean := s.Overlap()
	d.unless(mean <= float64(most)+0.001, "%.2f of %s were under way on average, of at most %d", mean, s.Name, most)
	for _, one := range s.Sent {
		switch {
		case one.Took >= d.Latency:
		case s.Name == "confirms" && one.Status == 200:
			d.unless(false, "confirm %d was approved after %s by a gateway that takes %s", one.N, one.Took, d.Latency)
		case s.Name == "notices" && slices.Contains(d.Fault.Ops, tosssim.Get) && slices.Contains(asked(), one.Word):
			d.unless(false, "notice %d was %s after %s by the word of a gateway that takes %s", one.N, one.Word, one.Took, d.Latency)
		}
	}
}

// asked are the outcomes that rest on a question to the gateway: it was asked for each.
func asked() []string { return []string{"applied_full", "applied_partial", "state_mismatch"} }

// route doubts the answers against the service's own count of them. A request without an answer may have had one that
// nobody read.
func (d *doubter) route(s Sending) {
	silent := s.Count(Silent)
	counted := func(class string) int {
		return d.Since.Metrics.Count("daesa_web_request_seconds_count", "route", s.Route, "method", s.Method, "status_class", class)
	}
	all := counted("gone")
	for n, class := range []string{"2xx", "3xx", "4xx", "5xx"} {
		low := 100 * (n + 2)
		seen, own := s.Count(func(one Sent) bool { return one.Status >= low && one.Status < low+100 }), counted(class)
		d.unless(own >= seen && own <= seen+silent, "the client saw %d answers %s of %s, the service counts %d", seen, class, s.Name, own)
		all += own
	}
	d.unless(all <= len(s.Sent) && all >= len(s.Sent)-silent, "%d requests of %s were sent, %d without an answer, and the service counts %d",
		len(s.Sent), s.Name, silent, all)
	for _, limit := range []struct {
		bucket string
		time   time.Duration
	}{{"1", time.Second}, {"10", 10 * time.Second}} {
		within := d.Since.Metrics.Count("daesa_web_request_seconds_bucket", "route", s.Route, "method", s.Method, "le", limit.bucket)
		past := s.Count(Past(limit.time))
		d.unless(all-within <= past+silent, "the service counts %d requests of %s past %s, the client %d", all-within, s.Name, limit.time, past)
	}
}

// gateway doubts what rests on the gateway's word although it was not called.
func (d *doubter) gateway() {
	d.calls(tosssim.Confirm, 0, "confirm")
	d.calls(tosssim.Cancel, 0, "cancel")
	d.calls(tosssim.Get, d.resent(), "query", "recover")
	for _, s := range d.Load {
		if s.Name != "confirms" {
			continue
		}
		approved := s.Count(Answered(200, "done"))
		d.unless(d.Since.Calls[tosssim.Confirm] > 0, "the gateway was never called")
		d.unless(d.Since.Calls[tosssim.Confirm] >= approved, "%d payments were approved by %d calls", approved, d.Since.Calls[tosssim.Confirm])
		d.answers(s, "approved", Answered(200, "done"))
		d.answers(s, "busy", Answered(503, "gateway_busy"))
		d.answers(s, "down", Answered(503, "gateway_down"))
		d.answers(s, "unknown", Answered(202, ""))
		d.unless(approved <= d.Since.Captures.Count, "%d payments were approved and %d captures booked", approved, d.Since.Captures.Count)
	}
	for _, s := range d.Load {
		if s.Name == "notices" {
			d.notices(s)
		}
	}
	shed := d.Since.Metrics.Count("daesa_admission_gate_shed_total")
	seen, silent := 0, 0
	for _, s := range d.Load {
		seen, silent = seen+s.Count(Answered(503, "overloaded")), silent+s.Count(Silent)
	}
	d.unless(shed >= seen && shed <= seen+silent, "the clients were turned away %d times and the service counts %d", seen, shed)
}

// calls doubts what arrived at the gateway against what the service counts on the paths of an operation. A call that had
// no answer may have been given up before it was sent.
func (d *doubter) calls(op tosssim.Op, resent int, paths ...string) {
	arrived, own, unanswered := d.Since.Calls[op], 0, 0
	for _, path := range paths {
		own += d.Since.Metrics.Count("daesa_pgclient_answers_total", "path", path)
		for _, result := range []string{"timeout", "connection", "canceled"} {
			unanswered += d.Since.Metrics.Count("daesa_pgclient_answers_total", "path", path, "result", result)
		}
	}
	d.unless(arrived >= own-unanswered && arrived <= own+resent, "%d calls to %s arrived at the gateway and the service counts %d, %d of them unanswered",
		arrived, op, own, unanswered)
}

// resent is how many questions net/http may have sent twice by itself: it does so where a connection that was used before
// ends without an answer, which is how a gateway ends what it held. Calls that move money are never sent again by it.
func (d *doubter) resent() int {
	if d.Fault.Kind == "" || d.Fault.Kind == tosssim.Delay {
		return 0
	}
	return max(1, d.Instances) * questionsAtOnce
}

// questionsAtOnce is the caps of both paths on which questions are asked.
const questionsAtOnce = 60 + 8

// answers doubts one kind of answer to a confirm against the count of checkout.
func (d *doubter) answers(s Sending, result string, kind func(Sent) bool) {
	seen, own := s.Count(kind), d.Since.Metrics.Count("daesa_checkout_confirms_total", "result", result)
	d.unless(own >= seen && own <= seen+s.Count(Silent), "the clients saw %d confirms that are %s, the service counts %d", seen, result, own)
}

const (
	outcomeOpen   = "received"  // of a row that has none yet
	outcomeFailed = "db_failed" // of a delivery that the database did not take, or whose end nobody knows
)

// notices doubts the answers to notices against the rows of deliveries and the metrics, outcome by outcome.
func (d *doubter) notices(s Sending) {
	silent, seen := s.Count(Silent), map[string]int{}
	for _, one := range s.Sent {
		if one.Status != 0 && one.Status != 429 && one.Word != "overloaded" {
			seen[one.Word]++
		}
	}
	// A row whose outcome could not be written in time stays as it was received, until the reaper closes it.
	open := d.Since.Outcomes[outcomeOpen]
	// A delivery that the database did not take has no row: its witness is the metric.
	failed := d.Since.Metrics.Count("daesa_webhook_outcomes_total", "outcome", outcomeFailed)
	d.unless(failed >= seen[outcomeFailed] && failed <= seen[outcomeFailed]+silent, "the sender saw %d answers %s and the metrics %d",
		seen[outcomeFailed], outcomeFailed, failed)
	d.unless(d.Since.Outcomes[outcomeFailed] <= failed, "the table has %d deliveries that are %s and the metrics %d", d.Since.Outcomes[outcomeFailed],
		outcomeFailed, failed)
	delete(seen, outcomeFailed)
	for outcome, rows := range d.Since.Outcomes {
		if outcome == outcomeOpen || outcome == outcomeFailed {
			continue
		}
		counted := d.Since.Metrics.Count("daesa_webhook_outcomes_total", "outcome", outcome)
		d.unless(counted >= rows-open && counted <= rows+open, "the table has %d deliveries that are %s and %d open, the metrics %d", rows, outcome, open, counted)
		d.unless(rows+open >= seen[outcome] && rows <= seen[outcome]+silent, "the sender saw %d answers %s, %d rows are stored and %d are open",
			seen[outcome], outcome, rows, open)
		delete(seen, outcome)
	}
	for outcome, n := range seen {
		d.unless(n <= open, "the sender saw %d answers %q of which no row is stored", n, outcome)
	}
	resting := 0
	for _, outcome := range asked() {
		resting += d.Since.Outcomes[outcome]
	}
	d.unless(d.Since.Calls[tosssim.Get] >= resting, "%d notices rest on the gateway's word, and it was asked %d times", resting, d.Since.Calls[tosssim.Get])
	late := d.Since.Metrics.Count("daesa_webhook_seconds_count", "over_budget", "yes")
	d.unless(late <= s.Count(Past(senderPatience))+silent, "the service counts %d answers past 10 s and the sender %d", late, s.Count(Past(senderPatience)))
	refused := s.Count(Answered(429, ""))
	limited := d.Since.Metrics.Count("daesa_admission_rate_refused_total", "rule", "webhook")
	d.unless(limited >= refused && limited <= refused+silent, "the sender was limited %d times and the service counts %d", refused, limited)
}

// money doubts the books against the gateway's. A capture that is still in doubt may be missing in ours and no other; a
// cancel may be missing for as long as its notice has not come.
func (d *doubter) money() {
	s := d.After
	missing := s.GatewayCaptures.Count - s.Captures.Count
	d.unless(missing >= 0 && missing <= s.Open, "the gateway captured %s, the books hold %s and %d are in doubt", s.GatewayCaptures, s.Captures, s.Open)
	d.unless(missing != 0 || s.GatewayCaptures.Won == s.Captures.Won, "the gateway captured %s and the books hold %s", s.GatewayCaptures, s.Captures)
	missing = s.GatewayCancels.Count - s.Cancels.Count
	d.unless(missing >= 0 && (missing > 0 || s.GatewayCancels.Won == s.Cancels.Won), "the gateway canceled %s and the books hold %s", s.GatewayCancels, s.Cancels)
}

// watch doubts what was seen while load was on.
func (d *doubter) watch() {
	d.unless(len(d.Looks) > 0, "nobody looked")
	overlap := 0
	for _, s := range d.Load {
		most, _ := s.Overlap()
		overlap += most
	}
	for _, l := range d.Looks {
		under := 0
		for _, n := range l.InFlight {
			under += n
		}
		d.unless(under <= overlap+1 || l.At > d.Wall, "a look saw %d requests in flight, of at most %d", under, overlap)
		d.unless(l.Goroutines > 0 && l.Resident > 0 && l.Sockets > 0, "a look saw no service")
	}
}
