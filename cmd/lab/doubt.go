package main

import (
	"fmt"
	"maps"
	"time"
)

// doubts lists what cannot be true of a phase: where two witnesses of the same thing disagree, or a figure lies where
// it cannot. Two measurements that were once believed are the reason: a gateway that takes 5 s and was never asked,
// and a report that read the wrong key and showed 0 % late answers beside a p95 of 13 s.
func (p phase) doubts() []string {
	d := &doubter{phase: p}
	d.load()
	d.answers()
	d.counters()
	d.gateway()
	d.times()
	d.watch()
	return d.found
}

// doubter collects contradictions.
type doubter struct {
	phase
	found []string
}

func (d *doubter) unless(ok bool, format string, args ...any) {
	if !ok {
		d.found = append(d.found, d.name+": "+fmt.Sprintf(format, args...))
	}
}

// load doubts the load itself: a loop that was late or short did not put the question that the run is about.
func (d *doubter) load() {
	d.unless(len(d.sent) == d.wanted, "%d deliveries were wanted and %d made", d.wanted, len(d.sent))
	d.unless(d.wall >= d.planned, "all answers were there after %s, before the last notice was due at %s", d.wall, d.planned)
	allowed := max(2*time.Second, d.planned/10)
	late := time.Duration(0)
	for _, s := range d.sent {
		late = max(late, s.began-s.due)
		d.unless(s.began >= s.due, "a delivery began before it was due")
	}
	d.unless(late <= allowed, "a delivery began %s late: the open loop could not be kept", late)
}

// answers doubts the answers against the service's own table.
func (d *doubter) answers() {
	sum, stored, byStatus := 0, 0, map[int]int{}
	for status, n := range d.statuses() {
		sum += n
		if status != 0 && status != 429 {
			stored += n
		}
	}
	d.unless(sum == len(d.sent), "the statuses sum up to %d of %d deliveries", sum, len(d.sent))
	for _, r := range d.rows {
		byStatus[r.Status]++
	}
	silent := d.statuses()[0]
	d.unless(len(d.rows) >= stored && len(d.rows) <= stored+silent,
		"%d answers of the handler and %d rows of deliveries", stored, len(d.rows))
	for _, s := range d.sent {
		r, known := d.rows[s.payment.key]
		if s.status != 0 && s.status != 429 {
			d.unless(known && r.Status == s.status, "%s was answered %d and is stored with %d", s.payment.order, s.status, r.Status)
		}
		if s.status == 429 {
			d.unless(!known, "%s was refused by the limit and is stored all the same", s.payment.order)
		}
	}
}

// counters doubts the metrics against table and answers.
func (d *doubter) counters() {
	stored := map[string]int{}
	for _, r := range d.rows {
		stored[r.Outcome]++
	}
	d.unless(maps.Equal(stored, d.count.outcomes), "the table has the outcomes %v, the metrics %v", stored, d.count.outcomes)
	d.unless(d.count.answered == len(d.rows), "%d answers were timed and %d stored", d.count.answered, len(d.rows))
	d.unless(d.count.rateRefused == d.statuses()[429], "%d refusals of the limit were counted and %d seen",
		d.count.rateRefused, d.statuses()[429])
	d.unless(d.count.overBudget <= d.overBudget(), "the service counts %d answers past 10 s and the sender %d",
		d.count.overBudget, d.overBudget())
}

// gateway doubts what rests on the gateway's word although it was not asked.
func (d *doubter) gateway() {
	questioned, applied := 0, 0
	for _, r := range d.rows {
		if r.questioned() {
			questioned++
		}
		if r.applied() {
			applied++
		}
	}
	d.unless(d.asked == questioned, "%d outcomes rest on a question and the gateway was asked %d times", questioned, d.asked)
	d.unless(applied == 0 || d.asked > 0, "%d cancels were applied and the gateway was never asked", applied)
	d.unless(d.held <= d.asked, "the gateway holds %d questions of %d", d.held, d.asked)
}

// times doubts answers that came before what they rest on, and percentiles that contradict counts.
func (d *doubter) times() {
	for _, s := range d.sent {
		r := d.rows[s.payment.key]
		d.unless(s.took >= r.query(), "%s was answered after %s, before its question ended after %s", s.payment.order, s.took, r.query())
		if r.applied() {
			d.unless(s.took >= d.floor, "%s was applied after %s by a gateway that takes %s", s.payment.order, s.took, d.floor)
		}
	}
	whole := d.times95()
	d.unless(whole <= answerMax || d.overBudget() > 0, "p95 is %s and no answer counts as past 10 s", whole)
	d.unless(d.overBudget() == 0 || d.slowest() > answerMax, "%d answers count as past 10 s and the slowest took %s",
		d.overBudget(), d.slowest())
}

// watch doubts what was seen while notices were under way.
func (d *doubter) watch() {
	d.unless(len(d.samples) > 0, "nobody looked")
	busy, sampled := time.Duration(0), 0
	for _, s := range d.sent {
		busy += s.took
	}
	for _, s := range d.samples {
		sampled = max(sampled, s.waiting)
		d.unless(s.acquired >= 0 && s.waiting >= 0, "a look saw less than nothing")
	}
	d.unless(sampled <= d.overlap, "a look saw %d notices under way, of at most %d", sampled, d.overlap)
	mean := float64(busy) / float64(max(d.wall, 1))
	d.unless(mean <= float64(d.overlap)+0.001, "%.2f notices were under way on average, of at most %d", mean, d.overlap)
	d.unless(d.left == 0, "%d goroutines are still in the notice handler after the last answer", d.left)
}
