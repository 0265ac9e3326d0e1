package harness

import (
	"context"
	"fmt"
	"time"
)

// Plan is one run: what is sent, and how the gateway behaves meanwhile.
type Plan struct {
	Name    string
	Streams []Stream
	Fault   Fault         // without Ops the gateway is healthy
	Latency time.Duration // that is swept: the load lasts a multiple of it
	// During is done while the load is on.
	During func(context.Context) error
	// Then is done when the last answer is there, while everything is still watched and before the gateway is healed.
	Then func(context.Context) error
}

// Observed is everything that was seen of a run.
type Observed struct {
	Plan

	Arm       string
	Instances int
	Load      []Sending
	Looks     []Look
	Since     Snapshot      // what the other witnesses counted during the run
	After     Snapshot      // and since the beginning of the bench
	Wall      time.Duration // until the last answer
	Quick     bool
}

// Run puts the load on, waits for every answer, heals the gateway, and asks every witness.
func (b *Bench) Run(ctx context.Context, p Plan) (o Observed, err error) {
	o.Plan, o.Arm, o.Instances, o.Quick = p, b.Name, len(b.Instances), b.lab.Quick
	before, err := b.snapshot(ctx)
	if err != nil {
		return o, err
	}
	if err := b.Gateway.Fail(ctx, p.Fault); err != nil {
		return o, err
	}
	if err := b.load(ctx, &o); err != nil {
		return o, err
	}
	if err := b.Gateway.Heal(ctx); err != nil {
		return o, err
	}
	if o.After, err = b.snapshot(ctx); err != nil {
		return o, err
	}
	o.Since = o.After.minus(before)
	return o, nil
}

// load sends, while a watch looks on.
func (b *Bench) load(ctx context.Context, o *Observed) error {
	every := time.Second
	if b.lab.Quick {
		every = 100 * time.Millisecond
	}
	over := time.Duration(0)
	for _, s := range o.Streams {
		over = max(over, s.Over())
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() {
		var err error
		o.Looks, err = Watch(watching, b.Instances, b.Gateway, every, func(l Look) { b.tell(o.Name, over, l) })
		failed <- err
	}()
	beside := make(chan error, 1)
	go func() {
		if o.During == nil {
			beside <- nil
			return
		}
		beside <- o.During(ctx)
	}()
	began := time.Now()
	load, err := attack(ctx, b.urls(), o.Streams)
	o.Load, o.Wall = load, time.Since(began)
	if during := <-beside; err == nil {
		err = during
	}
	if err == nil && o.Then != nil {
		err = o.Then(ctx)
	}
	stop()
	if watched := <-failed; err == nil {
		err = watched
	}
	return err
}

// tellEvery is how often a run says how far it is, in looks.
const tellEvery = 5 * time.Second

func (b *Bench) tell(run string, over time.Duration, l Look) {
	if b.lab.Quick || l.At.Round(time.Second)%tellEvery != 0 {
		return
	}
	b.lab.Say("  %s, %s: %s of %s; in flight money %d, notification %d, reading %d; %d calls at the gateway; %d goroutines",
		b.Name, run, l.At.Round(time.Second), over.Round(time.Second), l.InFlight["money"], l.InFlight["notification"], l.InFlight["reading"],
		l.AtGateway["confirm"]+l.AtGateway["query"], l.Goroutines)
}

// WarmUp takes the first use of everything out of the figures: the same load on a healthy gateway, of which nothing is
// kept.
func (b *Bench) WarmUp(ctx context.Context, streams ...Stream) error {
	load, err := attack(ctx, b.urls(), streams)
	if err != nil {
		return err
	}
	for _, sending := range load {
		for _, s := range sending.Sent {
			if s.Status == 0 {
				return fmt.Errorf("warm up: a request of %s had no answer: %s", sending.Name, s.Err)
			}
		}
	}
	return nil
}
