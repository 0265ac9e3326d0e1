package overload

import (
	"fmt"
	"time"

	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
)

// stretches is into how many equal times a run is cut for a chart.
const stretches = 10

// curve is what a chart shows of one run.
type curve struct {
	name string
	of   harness.Sending
}

// chart draws one figure of what was due in each stretch of time, a line for each run.
func chart(name, title string, over time.Duration, figure func(harness.Sending) float64, curves ...curve) report.NamedPlot {
	p := report.Plot{Title: title, Unit: "seconds since the load began", X: make([]string, stretches)}
	stretch := over / stretches
	for n := range p.X {
		p.X[n] = fmt.Sprintf("%.3g", (time.Duration(n+1) * stretch).Seconds())
	}
	for _, c := range curves {
		line := report.Series{Name: c.name}
		for n := range stretches {
			from, to := time.Duration(n)*stretch, time.Duration(n+1)*stretch
			due := harness.Sending{Stream: c.of.Stream}
			for _, one := range c.of.Sent {
				if one.Due >= from && one.Due < to {
					due.Sent = append(due.Sent, one)
				}
			}
			line.Values = append(line.Values, figure(due))
		}
		p.Series = append(p.Series, line)
	}
	return report.NamedPlot{Name: name, Plot: p}
}

// p95s is the chart of how long requests took, in milliseconds.
func p95s(name, what string, over time.Duration, curves ...curve) report.NamedPlot {
	return chart(name, "p95 of "+what+", ms", over, func(s harness.Sending) float64 { return s.Spread().P95.Seconds() * 1e3 }, curves...)
}

// looked is the chart of one figure of the looks at the service, a line for each run, from its first look to its last.
func looked(name, title string, of func(harness.Look) int, runs ...harness.Observed) report.NamedPlot {
	p := report.Plot{Title: title, Unit: "seconds since the load began"}
	for _, run := range runs {
		line := report.Series{Name: run.Name}
		for n, look := range run.Looks {
			line.Values = append(line.Values, float64(of(look)))
			if n == len(p.X) {
				p.X = append(p.X, fmt.Sprintf("%.0f", look.At.Seconds()))
			}
		}
		p.Series = append(p.Series, line)
	}
	return report.NamedPlot{Name: name, Plot: p}
}
