package harness

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"daesa/cmd/lab/report"
)

// Of is the stream of that name. It panics when the run had none: that is a mistake of the experiment.
func (o Observed) Of(stream string) Sending {
	for _, s := range o.Load {
		if s.Name == stream {
			return s
		}
	}
	panic("harness: the run has no stream " + stream)
}

// Count counts the answers of a kind.
func (s Sending) Count(kind func(Sent) bool) int {
	n := 0
	for _, one := range s.Sent {
		if kind(one) {
			n++
		}
	}
	return n
}

// Times are those of the answers of a kind. A request that had no answer took as long as its client waited.
func (s Sending) Times(kind func(Sent) bool) []time.Duration {
	var times []time.Duration
	for _, one := range s.Sent {
		if kind(one) {
			times = append(times, one.Took)
		}
	}
	return times
}

// Spread is of all times.
func (s Sending) Spread() report.Spread { return report.SpreadOf(s.Times(Any)) }

// Share is how many of all requests were answered in a way.
func (s Sending) Share(kind func(Sent) bool) float64 {
	return float64(s.Count(kind)) / float64(max(1, len(s.Sent)))
}

// Any is every answer, and none.
func Any(Sent) bool { return true }

// Silent is a request that had no answer.
func Silent(s Sent) bool { return s.Status == 0 }

// Answered is a status and a word; "" is any.
func Answered(status int, word string) func(Sent) bool {
	return func(s Sent) bool { return s.Status == status && (word == "" || s.Word == word) }
}

// Past are requests that took longer.
func Past(limit time.Duration) func(Sent) bool {
	return func(s Sent) bool { return s.Took > limit }
}

// Answers writes what came: 40 × 200 done, 10 × 503 gateway_busy.
func (s Sending) Answers() string {
	counts := map[string]int{}
	for _, one := range s.Sent {
		name := strings.TrimSpace(fmt.Sprintf("%d %s", one.Status, one.Word))
		if one.Status == 0 {
			name = "no answer"
		}
		counts[name]++
	}
	parts := make([]string, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d × %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}

// Overlap is the most requests under way at once, and the mean.
func (s Sending) Overlap() (most int, mean float64) {
	type edge struct {
		at   time.Duration
		step int
	}
	edges := make([]edge, 0, 2*len(s.Sent))
	var busy, first, last time.Duration
	for n, one := range s.Sent {
		began := one.Due + one.Late
		edges = append(edges, edge{began, 1}, edge{one.Ended(), -1})
		busy += one.Ended() - began
		if n == 0 || began < first {
			first = began
		}
		last = max(last, one.Ended())
	}
	slices.SortFunc(edges, func(a, b edge) int { return int(a.at - b.at) })
	under := 0
	for _, e := range edges {
		under += e.step
		most = max(most, under)
	}
	return most, float64(busy) / float64(max(1, last-first))
}

// Under is the most requests under way at once in a stretch of time.
func (s Sending) Under(from, to time.Duration) int {
	within := Sending{Stream: s.Stream}
	for _, one := range s.Sent {
		if one.Due+one.Late <= to && one.Ended() >= from {
			within.Sent = append(within.Sent, one)
		}
	}
	most, _ := within.Overlap()
	return most
}

// Lateness is how much later than due the requests were really sent.
func (s Sending) Lateness() report.Spread {
	times := make([]time.Duration, len(s.Sent))
	for n, one := range s.Sent {
		times[n] = one.Late
	}
	return report.SpreadOf(times)
}

// Most is the largest value that any look saw.
func (o Observed) Most(of func(Look) int) int {
	most := 0
	for _, l := range o.Looks {
		most = max(most, of(l))
	}
	return most
}

// Processor is what the service used of one core, on average while load was on it.
func (o Observed) Processor() float64 {
	last := o.Looks[len(o.Looks)-1]
	return float64(last.Processor) / float64(max(1, last.At))
}
