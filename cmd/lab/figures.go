package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
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

func (p phase) times95() time.Duration { return spreadOf(p.whole(func(row) bool { return true })).p95 }

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

// spread is what is said of many times.
type spread struct{ least, p50, p95, most time.Duration }

// spreadOf uses the nearest rank: every figure is a time that was measured.
func spreadOf(times []time.Duration) spread {
	if len(times) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(times))
	rank := func(percent int) time.Duration { return sorted[(len(sorted)*percent+99)/100-1] }
	return spread{sorted[0], rank(50), rank(95), sorted[len(sorted)-1]}
}

// String writes p50, p95 and the maximum.
func (s spread) String() string {
	return fmt.Sprintf("p50 %s, p95 %s, max %s", short(s.p50), short(s.p95), short(s.most))
}

// between writes the range.
func (s spread) between() string { return short(s.least) + "–" + short(s.most) }

// short writes a time with three digits or so.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
}
