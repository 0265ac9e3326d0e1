package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"daesa/cmd/lab/report"
	"daesa/pgclient/tosssim"
)

// phase is one delivery of a list of notices, and everything that was seen of it.
type phase struct {
	name    string
	floor   time.Duration // no answer that rests on the gateway's can be faster
	planned time.Duration // in which the deliveries begin
	wanted  int
	sent    []sent
	overlap int // most deliveries under way at once
	wall    time.Duration

	idle    int      // connections of the pool in use before
	samples []sample // while deliveries were under way
	before  int      // goroutines
	left    int      // goroutines in the notice handler after the last answer
	held    int      // questions the gateway still holds after the last answer

	rows  map[string]row // of the service's own table, by payment
	count counters       // of the service's own metrics
	asked int            // questions the gateway counted
}

// deliver sends the notices of the list at their times and gathers what every witness says of it.
func (b *bench) deliver(ctx context.Context, name string, list []payment, at []time.Duration, floor time.Duration) (phase, error) {
	p := phase{name: name, floor: floor, wanted: len(list)}
	if len(at) > 0 {
		p.planned = at[len(at)-1]
	}
	mark, err := b.lastDelivery(ctx)
	if err != nil {
		return p, err
	}
	counted, err := b.counters()
	if err != nil {
		return p, err
	}
	if p.idle, err = b.idle(ctx); err != nil {
		return p, err
	}
	asked := b.Sim.Count(tosssim.Get)
	if err := b.load(ctx, &p, list, at); err != nil {
		return p, err
	}
	p.asked, p.held = b.Sim.Count(tosssim.Get)-asked, b.Sim.Held()
	if p.left, err = b.handlersLeft(ctx); err != nil {
		return p, err
	}
	if p.rows, err = b.deliveries(ctx, mark); err != nil {
		return p, err
	}
	after, err := b.counters()
	if err != nil {
		return p, err
	}
	p.count = after.minus(counted)
	return p, ctx.Err()
}

// load sends, while a watch looks on.
func (b *bench) load(ctx context.Context, p *phase, list []payment, at []time.Duration) error {
	l := &load{send: func(one payment) (int, error) { return b.Sim.Deliver(one.notice) }}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() {
		var err error
		p.samples, err = b.watch(watching, func() int { return int(l.inFlight.Load()) })
		failed <- err
	}()
	began := time.Now()
	p.sent = l.run(ctx, list, at)
	p.wall = time.Since(began)
	stop()
	p.overlap = int(l.most.Load())
	if err := <-failed; err != nil {
		return fmt.Errorf("watch the service: %w", err)
	}
	p.before = p.samples[0].goroutines
	return nil
}

// waited are the looks at which notices were under way.
func (p phase) waited() []sample {
	var during []sample
	for _, s := range p.samples {
		if s.waiting > 0 {
			during = append(during, s)
		}
	}
	return during
}

// connectionsPerNotice is how many connections a waiting notice held on average: near 1 when each keeps one while the
// gateway is asked, near 0 when none does.
func (p phase) connectionsPerNotice() float64 {
	waiting, taken := 0, 0
	for _, s := range p.waited() {
		waiting += s.waiting
		taken += max(0, s.acquired-p.idle)
	}
	if waiting == 0 {
		return 0
	}
	return float64(taken) / float64(waiting)
}

// oldestTransaction is the longest that the database was seen to have a transaction open for the service.
func (p phase) oldestTransaction() time.Duration {
	oldest := int64(0)
	for _, s := range p.samples {
		oldest = max(oldest, s.OldestMS)
	}
	return time.Duration(oldest) * time.Millisecond
}

// handlersMost is the largest number of goroutines seen in the notice handler.
func (p phase) handlersMost() int {
	most := 0
	for _, s := range p.samples {
		most = max(most, s.handlers)
	}
	return most
}

// goroutinesMost is the largest number of goroutines of the whole process, gateway and sender included.
func (p phase) goroutinesMost() int {
	most := 0
	for _, s := range p.samples {
		most = max(most, s.goroutines)
	}
	return most
}

// refused lists the notices that were not answered 200, in order of their answers.
func (p phase) refused() []payment {
	var list []payment
	for _, s := range p.sent {
		if s.status != 200 {
			list = append(list, s.payment)
		}
	}
	return list
}

// keepPhase keeps the deliveries of a phase, and what makes them impossible.
func keepPhase(r *result, p phase) {
	r.Doubts = append(r.Doubts, p.doubts()...)
	if len(r.Tables) == 0 {
		r.Tables = []report.Table{{Of: "delivery", Rows: [][]string{
			{"phase", "order", "began_ms", "took_us", "status", "outcome", "reason", "query_ms"},
		}}}
	}
	for _, s := range p.sent {
		stored := p.rows[s.payment.key]
		r.Tables[0].Rows = append(r.Tables[0].Rows, []string{
			p.name, s.payment.order, strconv.FormatInt(s.began.Milliseconds(), 10), strconv.FormatInt(s.took.Microseconds(), 10),
			strconv.Itoa(s.status), stored.Outcome, stored.Reason, strconv.FormatInt(stored.QueryMS, 10),
		})
	}
	if len(r.Plots) == 0 {
		r.Plots = []report.NamedPlot{{Name: "times", Plot: report.Plot{
			Title: "p95 of deliveries, ms", Unit: "tenths of each phase", X: []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"},
		}}}
	}
	r.Plots[0].Plot.Series = append(r.Plots[0].Plot.Series, p.tenths())
}

// tenths is how long deliveries took, one tenth of them after the other.
func (p phase) tenths() report.Series {
	line := report.Series{Name: p.name}
	for n := range 10 {
		var took []time.Duration
		for _, s := range p.sent[len(p.sent)*n/10 : len(p.sent)*(n+1)/10] {
			took = append(took, s.took)
		}
		line.Values = append(line.Values, report.SpreadOf(took).P95.Seconds()*1e3)
	}
	return line
}
