package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// possible is a phase of ten applied notices whose witnesses agree.
func possible() phase {
	p := phase{
		name: "phase", floor: 300 * time.Millisecond, wanted: 10, wall: 10 * time.Second, overlap: 1, asked: 10,
		rows: map[string]row{}, samples: []sample{{waiting: 1, acquired: 1}}, idle: 1,
		count: counters{outcomes: map[string]int{"applied_full": 10}, answered: 10},
	}
	for i, at := range evenly(10, 9*time.Second) {
		key := fmt.Sprint("key-", i)
		p.planned = at
		p.sent = append(p.sent, sent{payment: payment{key: key, order: key}, due: at, began: at, took: 320 * time.Millisecond, status: 200})
		p.rows[key] = row{PaymentKey: key, Outcome: "applied_full", Status: 200, QueryMS: 305}
	}
	return p
}

func (p phase) with(change func(*phase)) phase {
	change(&p)
	return p
}

func TestDoubts(t *testing.T) {
	t.Parallel()
	if found := possible().doubts(); len(found) > 0 {
		t.Fatalf("a possible run is doubted: %v", found)
	}
	tests := []struct {
		name   string
		change func(*phase)
		want   string
	}{
		{"a gateway never asked", func(p *phase) { p.asked = 0 }, "never asked"},
		{"faster than the gateway", func(p *phase) {
			p.sent[3].took, p.rows["key-3"] = 200*time.Millisecond, row{Outcome: "applied_full", Status: 200}
		}, "by a gateway that takes"},
		{"faster than its own question", func(p *phase) { p.sent[3].took = 301 * time.Millisecond }, "before its question ended"},
		{"a notice not sent", func(p *phase) { p.sent = p.sent[1:] }, "10 deliveries were wanted and 9 made"},
		{"a row not stored", func(p *phase) { delete(p.rows, "key-1") }, "9 rows of deliveries"},
		{"another status stored", func(p *phase) { p.sent[2].status = 502 }, "is stored with 200"},
		{"a refusal stored", func(p *phase) { p.sent[2].status = 429 }, "stored all the same"},
		{"a refusal not counted", func(p *phase) { p.sent[2].status = 429 }, "0 refusals of the limit were counted and 1 seen"},
		{"metrics of something else", func(p *phase) { p.count.outcomes = map[string]int{"query_failed": 10} }, "the metrics map[query_failed:10]"},
		{"answers not timed", func(p *phase) { p.count.answered = 4 }, "4 answers were timed"},
		{"late answers that nobody counts", func(p *phase) { p.count.overBudget = 2 }, "counts 2 answers past 10 s and the sender 0"},
		{"more held than asked", func(p *phase) { p.held = 11 }, "holds 11 questions of 10"},
		{"a loop that was not open", func(p *phase) { p.sent[9].began += 5 * time.Second }, "the open loop could not be kept"},
		{"a delivery before its time", func(p *phase) { p.sent[9].began = 0 }, "before it was due"},
		{"over before the last notice", func(p *phase) { p.wall = time.Second }, "before the last notice was due"},
		{"an overlap below the mean", func(p *phase) { p.overlap = 0 }, "on average, of at most 0"},
		{"a look above the overlap", func(p *phase) { p.samples[0].waiting = 7 }, "saw 7 notices under way"},
		{"no look", func(p *phase) { p.samples = nil }, "nobody looked"},
		{"goroutines that stay", func(p *phase) { p.left = 3 }, "3 goroutines"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			found := strings.Join(possible().with(test.change).doubts(), "\n")
			if !strings.Contains(found, test.want) {
				t.Errorf("got doubts %q, want one with %q", found, test.want)
			}
		})
	}
}

// TestPhase_ConnectionsPerNotice: a service that keeps a connection while it asks shows about one for each notice.
func TestPhase_ConnectionsPerNotice(t *testing.T) {
	t.Parallel()
	held := phase{idle: 1, samples: []sample{{waiting: 5, acquired: 6}, {waiting: 0, acquired: 9}, {waiting: 3, acquired: 4}}}
	if got := held.connectionsPerNotice(); got != 1 {
		t.Errorf("got %v, want 1", got)
	}
	free := phase{idle: 1, samples: []sample{{waiting: 5, acquired: 1}, {waiting: 4, acquired: 0}}}
	if got := free.connectionsPerNotice(); got != 0 {
		t.Errorf("got %v, want 0", got)
	}
}
