package overload

import (
	"fmt"
	"strconv"
	"time"

	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
)

// keep notes every request and every look of a run, and what makes the run impossible.
func keep(r *report.Result, o harness.Observed) {
	if len(r.Tables) == 0 {
		r.Tables = []report.Table{
			{Of: "request", Packed: true, Rows: [][]string{{"run", "stream", "n", "due_ms", "late_us", "took_us", "status", "word"}}},
			{Name: "watch", Of: "look at the service", Rows: [][]string{harness.LookColumns()}},
		}
	}
	r.Doubts = append(r.Doubts, o.Doubts()...)
	r.Last = append(r.Last, o.Unexported)
	for _, s := range o.Load {
		for _, one := range s.Sent {
			r.Tables[0].Rows = append(r.Tables[0].Rows, []string{
				title(o), s.Name, strconv.Itoa(one.N), strconv.FormatInt(one.Due.Milliseconds(), 10),
				strconv.FormatInt(one.Late.Microseconds(), 10), strconv.FormatInt(one.Took.Microseconds(), 10),
				strconv.Itoa(one.Status), one.Word,
			})
		}
	}
	for _, l := range o.Looks {
		r.Tables[1].Rows = append(r.Tables[1].Rows, harness.LookRow(title(o), l))
	}
}

// title is how a run is called in tables: what was run, and in front of which gateway.
func title(o harness.Observed) string { return o.Arm + ", " + o.Name }

// atMost is the bound that others are held to: twice the healthy time, or so much more, whichever is more.
func atMost(healthy, more time.Duration) time.Duration { return max(2*healthy, healthy+more) }

// percent writes a share.
func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// resources are the columns that every table has at its end.
func resourceColumns() []string {
	return []string{"goroutines, most", "sockets, most", "pool, most", "memory, most", "cores used", "sent late, p99 and most"}
}

func resources(o harness.Observed) []string {
	late := report.Spread{}
	for _, s := range o.Load {
		own := s.Lateness()
		late.P99, late.Most = max(late.P99, own.P99), max(late.Most, own.Most)
	}
	return []string{
		strconv.Itoa(o.Most(func(l harness.Look) int { return l.Goroutines })),
		strconv.Itoa(o.Most(func(l harness.Look) int { return l.Sockets })),
		strconv.Itoa(o.Most(func(l harness.Look) int { return l.PoolInUse })),
		fmt.Sprintf("%d MiB", o.Most(func(l harness.Look) int { return int(l.Resident >> 20) })),
		fmt.Sprintf("%.2f", o.Processor()),
		report.Short(late.P99) + ", " + report.Short(late.Most),
	}
}
