package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// report is a result that may be shown.
type report struct {
	experiment
	result
	command string
	at      time.Time
	load    string // of the machine before the run, "" where it is not told
	took    time.Duration
}

// text prints the table for a terminal, and every claim that did not hold.
func (r report) text(out io.Writer) error {
	widths := make([]int, len(r.columns))
	for _, cells := range append([][]string{r.columns}, r.rows...) {
		for i, cell := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, cells := range append([][]string{r.columns}, r.rows...) {
		for i, cell := range cells {
			b.WriteString("  " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		b.WriteString("\n")
	}
	held := 0
	for _, c := range r.claims {
		if c.holds {
			held++
			continue
		}
		b.WriteString("  REFUTED: " + c.text + "\n")
	}
	fmt.Fprintf(&b, "  %d of %d claims hold. Took %s.\n\n", held, len(r.claims), r.took.Round(time.Second))
	_, err := io.WriteString(out, b.String())
	return err
}

// keep writes the table and the single deliveries into a folder: NNNN-name.results.md and .csv.
func (r report) keep(folder string) error {
	if folder == "" {
		return nil
	}
	base := filepath.Join(folder, r.file+".results")
	if err := os.WriteFile(base+".md", []byte(r.markdown()), 0o644); err != nil { //nolint:gosec // a document for everybody
		return fmt.Errorf("keep the results: %w", err)
	}
	for _, p := range r.plots {
		if err := os.WriteFile(base+"."+p.name+".svg", []byte(p.plot.svg()), 0o644); err != nil { //nolint:gosec // a document for everybody
			return fmt.Errorf("keep the chart: %w", err)
		}
	}
	f, err := os.Create(base + ".csv") //nolint:gosec // the folder is the user's own choice
	if err != nil {
		return fmt.Errorf("keep the deliveries: %w", err)
	}
	return errors.Join(r.deliveries(f), f.Close())
}

// unit is what the .csv file has a row of.
func (r report) unit() string {
	if r.table != nil {
		return "run"
	}
	return "delivery"
}

// loadAverage is how busy the machine was during the last minute: times mean little on a machine that is busy with
// something else.
func loadAverage() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "" // not every system tells
	}
	minute, _, _ := strings.Cut(string(content), " ")
	return minute
}

// markdown is the document that is kept.
func (r report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Results of %s\n\nWritten by `%s`; each single %s is in the .csv file beside.\n\n", r.name, r.command, r.unit())
	fmt.Fprintf(&b, "%s, %d cores, %s/%s, %s", r.at.UTC().Format("2006-01-02 15:04 MST"), runtime.NumCPU(),
		runtime.GOOS, runtime.GOARCH, runtime.Version())
	if r.load != "" {
		fmt.Fprintf(&b, "; load average %s before the run", r.load)
	}
	fmt.Fprintf(&b, ". Took %s.\n\n", r.took.Round(time.Second))
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(r.columns)
	b.WriteString(strings.Repeat("|---", len(r.columns)) + "|\n")
	for _, cells := range r.rows {
		line(cells)
	}
	b.WriteString("\n")
	for _, p := range r.plots {
		fmt.Fprintf(&b, "![%s](%s.results.%s.svg)\n\n", p.plot.title, r.file, p.name)
	}
	for _, c := range r.claims {
		mark := "holds"
		if !c.holds {
			mark = "**refuted**"
		}
		b.WriteString("- " + mark + ": " + c.text + "\n")
	}
	return b.String()
}

// deliveries writes every delivery of the run, in the order of the answers.
func (r report) deliveries(w io.Writer) error {
	table := csv.NewWriter(w)
	if r.table != nil {
		return table.WriteAll(r.table)
	}
	if err := table.Write([]string{"phase", "order", "began_ms", "took_us", "status", "outcome", "reason", "query_ms"}); err != nil {
		return fmt.Errorf("keep the deliveries: %w", err)
	}
	for _, p := range r.raw {
		for _, s := range p.sent {
			stored := p.rows[s.payment.key]
			err := table.Write([]string{
				p.name, s.payment.order, strconv.FormatInt(s.began.Milliseconds(), 10), strconv.FormatInt(s.took.Microseconds(), 10),
				strconv.Itoa(s.status), stored.Outcome, stored.Reason, strconv.FormatInt(stored.QueryMS, 10),
			})
			if err != nil {
				return fmt.Errorf("keep the deliveries: %w", err)
			}
		}
	}
	table.Flush()
	return table.Error()
}
