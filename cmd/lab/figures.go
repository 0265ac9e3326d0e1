package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"daesa/cmd/lab/report"
)

// statuses counts the answers by status; 0 is none.
func (p phase) statuses() map[int]int {
	counts := map[int]int{}
	for _, s := range p.sent {
		counts[s.status]++
	}
	return counts
}

// answers writes the statuses as people do: 149 × 200, 51 × 429.
func (p phase) answers() string {
	counts := p.statuses()
	parts := make([]string, 0, len(counts))
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d × %s", counts[status], statusName(status)))
	}
	return strings.Join(parts, ", ")
}

func statusName(status int) string {
	if status == 0 {
		return "no answer"
	}
	return fmt.Sprint(status)
}

// overBudget counts what the sender had to wait for longer than it waits.
func (p phase) overBudget() int {
	late := 0
	for _, s := range p.sent {
		if s.took > answerMax {
			late++
		}
	}
	return late
}

func (p phase) slowest() time.Duration {
	most := time.Duration(0)
	for _, s := range p.sent {
		most = max(most, s.took)
	}
	return most
}

func (p phase) times95() time.Duration {
	return report.SpreadOf(p.whole(func(row) bool { return true })).P95
}

// whole lists the times of the answers whose stored outcome is wanted.
func (p phase) whole(want func(row) bool) []time.Duration {
	var times []time.Duration
	for _, s := range p.sent {
		if want(p.rows[s.payment.key]) {
			times = append(times, s.took)
		}
	}
	return times
}

// share lists what we took of each answer beside our question to the gateway, as we timed the question.
func (p phase) share() []time.Duration {
	var times []time.Duration
	for _, s := range p.sent {
		if r := p.rows[s.payment.key]; r.questioned() {
			times = append(times, s.took-r.query())
		}
	}
	return times
}

// beyond lists what each answer took beyond the time that the gateway itself takes.
func (p phase) beyond() []time.Duration {
	var times []time.Duration
	for _, took := range p.whole(row.questioned) {
		times = append(times, took-p.floor)
	}
	return times
}

// outcomes counts rows by a condition.
func (p phase) outcomes(want func(row) bool) int {
	n := 0
	for _, r := range p.rows {
		if want(r) {
			n++
		}
	}
	return n
}

func duplicate(r row) bool { return r.Outcome == "duplicate_skipped" }
