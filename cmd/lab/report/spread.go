package report

import (
	"fmt"
	"slices"
	"time"
)

// Spread is what is said of many times.
type Spread struct{ Least, P50, P95, P99, Most time.Duration }

// SpreadOf uses the nearest rank: every figure is a time that was measured.
func SpreadOf(times []time.Duration) Spread {
	if len(times) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(times))
	rank := func(percent int) time.Duration { return sorted[(len(sorted)*percent+99)/100-1] }
	return Spread{sorted[0], rank(50), rank(95), rank(99), sorted[len(sorted)-1]}
}

// String writes p50, p95 and the maximum.
func (s Spread) String() string {
	return fmt.Sprintf("p50 %s, p95 %s, max %s", Short(s.P50), Short(s.P95), Short(s.Most))
}

// Between writes the range.
func (s Spread) Between() string { return Short(s.Least) + "–" + Short(s.Most) }

// Short writes a time with three digits or so.
func Short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
}
