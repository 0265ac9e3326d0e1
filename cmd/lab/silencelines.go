package main

import (
	"fmt"
	"time"
)

// silenceLine is one figure of a run against a silent gateway.
type silenceLine struct {
	name string
	of   func(silence) string
}

// silenceLines are the figures that are compared, in the order of the table. What they had for each is in
// theirSilence and theirSlowness.
func silenceLines() []silenceLine {
	return []silenceLine{
		{"notices", func(s silence) string { return fmt.Sprintf("%d over %s", len(s.first.sent), s.first.over()) }},
		{"answers", func(s silence) string { return s.first.answers() }},
		{"time of those that asked", func(s silence) string { return spreadOf(s.first.whole(row.questioned)).between() }},
		{"refused by our breaker, unasked", func(s silence) string {
			unasked := s.first.whole(row.unsent)
			if len(unasked) == 0 {
				return "0"
			}
			return fmt.Sprintf("%d, %s", len(unasked), spreadOf(unasked))
		}},
		{"past 10 s", func(s silence) string { return fmt.Sprint(s.first.overBudget()) }},
		{"under way at once", func(s silence) string {
			return fmt.Sprintf("%d (rate × time: %.1f)", s.first.overlap, s.first.littles())
		}},
		{"database connections per waiting notice", func(s silence) string { return fmt.Sprintf("%.2f", s.first.connectionsPerNotice()) }},
		{"longest transaction seen", func(s silence) string { return short(s.first.oldestTransaction()) }},
		{"goroutines in the handler: most, after", func(s silence) string {
			return fmt.Sprintf("%d, %d", s.first.handlersMost(), s.first.left)
		}},
		{"questions the gateway held after we gave up", func(s silence) string {
			return fmt.Sprintf("%d of %d", s.first.held, s.first.asked)
		}},
		{"applied", func(s silence) string { return fmt.Sprint(s.first.outcomes(row.applied)) }},
		{"identity in orders", func(s silence) string { return s.after.identity() }},
		{"gateway back, refused notices once more", func(s silence) string {
			return fmt.Sprintf("%s: %d applied", s.again.answers(), s.again.outcomes(row.applied))
		}},
		{"the same again", func(s silence) string {
			return fmt.Sprintf("%d duplicates, %d questions", s.twice.outcomes(duplicate), s.twice.asked)
		}},
		{"their time", func(s silence) string { return spreadOf(s.twice.whole(duplicate)).String() }},
		{"identity at the end", func(s silence) string { return s.end.identity() }},
		{"testers' credits at the end", func(s silence) string { return s.end.creditsText() }},
	}
}

// theirSilence is what they measured with a client of 3 s in front of a silent gateway.
func theirSilence() []string {
	return []string{
		"100 over 1m0s", "100 × 502", "3.02–3.11 s", "no breaker", "0", "5", "0", "", "threads stay at their peak (15 s client)",
		"each, for nearly 4 minutes", "0", "holds", "100 applied", "100 duplicates, one refund each", "", "holds", "as before",
	}
}

// theirSlowness is what they measured with a client of 3 s in front of a gateway that takes 8 s.
func theirSlowness() []string {
	return []string{
		"100 over 1m0s", "100 × 502", "about 3 s", "no breaker", "0", "", "0", "", "", "", "0", "holds", "100 applied",
		"100 duplicates, one refund each", "", "holds", "as before",
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
