package main

import (
	"fmt"
	"time"

	"daesa/cmd/lab/report"
)

// silenceLine is one figure of a run against a gateway that gives no answer in time, and what they had for it with a
// client of 3 s: in front of a silent gateway, and of one that takes 8 s.
type silenceLine struct {
	name         string
	silent, slow string
	of           func(silence) string
}

// silenceLines are the figures that are compared, in the order of the table.
func silenceLines() []silenceLine {
	return append(silentLines(), returnedLines()...)
}

// silentLines are about the time without an answer.
func silentLines() []silenceLine {
	return []silenceLine{
		{"notices", "100 over 1m0s", "100 over 1m0s", func(s silence) string {
			return fmt.Sprintf("%d over %s", len(s.first.sent), s.first.over())
		}},
		{"answers", "100 × 502", "100 × 502", func(s silence) string { return s.first.answers() }},
		{"time of those that asked", "3.02–3.11 s", "", func(s silence) string {
			return report.SpreadOf(s.first.whole(row.questioned)).Between()
		}},
		{"refused by our breaker, unasked", "no breaker", "no breaker", func(s silence) string {
			unasked := s.first.whole(row.unsent)
			if len(unasked) == 0 {
				return "0"
			}
			return fmt.Sprintf("%d, %s", len(unasked), report.SpreadOf(unasked))
		}},
		{"past 10 s", "0", "0", func(s silence) string { return fmt.Sprint(s.first.overBudget()) }},
		{"under way at once", "5", "", func(s silence) string {
			return fmt.Sprintf("%d (rate × time: %.1f)", s.first.overlap, s.first.littles())
		}},
		{"database connections per waiting notice", "0", "", func(s silence) string {
			return fmt.Sprintf("%.2f", s.first.connectionsPerNotice())
		}},
		{"longest transaction seen", "", "", func(s silence) string { return report.Short(s.first.oldestTransaction()) }},
		{"goroutines in the handler: most, after", "", "", func(s silence) string {
			return fmt.Sprintf("%d, %d", s.first.handlersMost(), s.first.left)
		}},
		{
			"goroutines of the process, gateway included: before, most, at the end", "threads 36 → 53, and staying (15 s client)", "",
			func(s silence) string {
				last := s.twice.samples[len(s.twice.samples)-1]
				return fmt.Sprintf("%d, %d, %d", s.first.samples[0].goroutines, s.first.goroutinesMost(), last.goroutines)
			},
		},
		{"questions the gateway held after we gave up", "each, for nearly 4 minutes", "", func(s silence) string {
			return fmt.Sprintf("%d of %d", s.first.held, s.first.asked)
		}},
		{"applied", "0", "0", func(s silence) string { return fmt.Sprint(s.first.outcomes(row.applied)) }},
		{"identity in orders", "holds", "holds", func(s silence) string { return s.after.identity() }},
	}
}

// returnedLines are about the time after the gateway is back.
func returnedLines() []silenceLine {
	return []silenceLine{
		{"gateway back, refused notices once more", "100 applied", "100 applied", func(s silence) string {
			return fmt.Sprintf("%s: %d applied", s.again.answers(), s.again.outcomes(row.applied))
		}},
		{"the same again", "100 duplicates, one refund each", "100 duplicates, one refund each", func(s silence) string {
			return fmt.Sprintf("%d duplicates, %d questions", s.twice.outcomes(duplicate), s.twice.asked)
		}},
		{"their time", "", "", func(s silence) string { return report.SpreadOf(s.twice.whole(duplicate)).String() }},
		{"identity at the end", "holds", "holds", func(s silence) string { return s.end.identity() }},
		{"testers' credits at the end", "as before", "as before", func(s silence) string { return s.end.creditsText() }},
	}
}

// over is the time in which the deliveries began, of which the last is one step short.
func (p phase) over() time.Duration {
	if p.wanted < 2 {
		return p.planned
	}
	return (p.planned * time.Duration(p.wanted) / time.Duration(p.wanted-1)).Round(time.Second / 10)
}

// littles is the number of notices under way that arrival rate and mean time predict.
func (p phase) littles() float64 {
	busy := time.Duration(0)
	for _, s := range p.sent {
		busy += s.took
	}
	return float64(busy) / float64(max(1, p.over()))
}
