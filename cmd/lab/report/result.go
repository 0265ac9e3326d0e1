// Package report is what an experiment found and how it is written down: a table beside the figures of others, claims
// and whether they hold, charts, and every single measurement.
//
// A result with doubts is worthless and is never written: its figures contradict each other. A claim that does not hold
// is something else; it is printed, and the figures stand. Start reading at [Result].
package report

import (
	"fmt"
	"slices"
)

// Claim is something the experiment says about the service.
type Claim struct {
	Text  string
	Holds bool
	// Timed is a claim about time. In a quick run, which is made on any machine however busy, it is shown and no more.
	Timed bool
}

// Result is what an experiment found.
type Result struct {
	Columns []string // the first is the figure's name
	Rows    [][]string
	Claims  []Claim
	Doubts  []string          // contradictions between its own figures
	Last    []func() []string // doubts that can only be raised once everything else is said
	Tables  []Table           // every single measurement
	Plots   []NamedPlot
	Notes   []string // sentences under the table
}

// Table is raw data, a file of its own.
type Table struct {
	Name   string     // "" is the main one, NNNN-name.results.csv
	Rows   [][]string // the first has the names of the columns
	Packed bool       // with gzip, where there are tens of thousands of rows
	Of     string     // what a row is: delivery, request, run
}

// NamedPlot is a chart and what its file is called by.
type NamedPlot struct {
	Name string
	Plot Plot
}

// Row adds a line to the table.
func (r *Result) Row(name string, cells ...string) {
	r.Rows = append(r.Rows, append([]string{name}, cells...))
}

// Claim adds a claim about counts.
func (r *Result) Claim(holds bool, format string, args ...any) {
	r.Claims = append(r.Claims, Claim{Text: fmt.Sprintf(format, args...), Holds: holds})
}

// ClaimTime adds a claim about time.
func (r *Result) ClaimTime(holds bool, format string, args ...any) {
	r.Claims = append(r.Claims, Claim{Text: fmt.Sprintf(format, args...), Holds: holds, Timed: true})
}

// Unless adds a doubt when two figures contradict each other.
func (r *Result) Unless(agree bool, format string, args ...any) {
	if !agree {
		r.Doubts = append(r.Doubts, fmt.Sprintf(format, args...))
	}
}

// AllDoubts are those that were raised, and those that are raised last.
func (r *Result) AllDoubts() []string {
	doubts := slices.Clone(r.Doubts)
	for _, last := range r.Last {
		doubts = append(doubts, last()...)
	}
	return doubts
}

// Refuted is the first claim that does not hold, if any. In a quick run those about time do not count.
func (r *Result) Refuted(quick bool) (Claim, bool) {
	for _, c := range r.Claims {
		if !c.Holds && (!quick || !c.Timed) {
			return c, true
		}
	}
	return Claim{}, false
}
