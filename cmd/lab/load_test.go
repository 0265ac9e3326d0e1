package main

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestLoad_IsAnOpenLoop: no answer comes before the last delivery has begun, and still all begin.
func TestLoad_IsAnOpenLoop(t *testing.T) {
	t.Parallel()
	const n = 20
	begun := make(chan struct{}, n)
	all := make(chan struct{})
	go func() {
		for range n {
			<-begun
		}
		close(all)
	}()
	l := &load{send: func(payment) (int, error) {
		begun <- struct{}{}
		<-all
		return http.StatusOK, nil
	}}
	sent := l.run(t.Context(), make([]payment, n), evenly(n, 10*time.Millisecond))
	if len(sent) != n || l.most.Load() != n || l.inFlight.Load() != 0 {
		t.Errorf("got %d deliveries, %d at once, %d left; want %d, %d, 0", len(sent), l.most.Load(), l.inFlight.Load(), n, n)
	}
}

// TestLoad_EndsWithItsContext: an interrupted run begins no more deliveries.
func TestLoad_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{send: func(payment) (int, error) {
		cancel()
		return http.StatusOK, nil
	}}
	if sent := l.run(ctx, make([]payment, 2), []time.Duration{0, time.Hour}); len(sent) != 1 {
		t.Errorf("got %d deliveries, want 1", len(sent))
	}
}

func TestPhase_Answers(t *testing.T) {
	t.Parallel()
	p := phase{sent: []sent{{status: 429}, {status: 200}, {status: 200}, {}}}
	if got, want := p.answers(), "1 × no answer, 2 × 200, 1 × 429"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestComeAgain_KeepsEachNoticesOwnWait: what was refused last comes again last, and none before its time.
func TestComeAgain_KeepsEachNoticesOwnWait(t *testing.T) {
	t.Parallel()
	first := phase{wall: 30 * time.Second, sent: []sent{
		{payment: payment{order: "b"}, began: 25 * time.Second, status: 429},
		{payment: payment{order: "admitted"}, began: 5 * time.Second, status: 200},
		{payment: payment{order: "a"}, began: 20 * time.Second, status: 429},
	}}
	list, at := comeAgain(first, time.Minute)
	if len(list) != 2 || list[0].order != "a" || list[1].order != "b" {
		t.Fatalf("got %v", list)
	}
	if diff := cmp.Diff([]time.Duration{50 * time.Second, 55 * time.Second}, at); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
}
