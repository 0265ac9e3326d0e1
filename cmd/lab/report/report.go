package report

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

// Report is a result that may be shown.
type Report struct {
	Result

	Name    string // of the experiment
	File    string // NNNN-name, of its files
	Command string
	At      time.Time
	Load    string // average of the machine before the run, "" where it is not told
	Took    time.Duration
	Setting Setting
}

// Text prints the table for a terminal, and every claim that did not hold.
func (r Report) Text(out io.Writer) error {
	widths := make([]int, len(r.Columns))
	for _, cells := range append([][]string{r.Columns}, r.Rows...) {
		for i, cell := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, cells := range append([][]string{r.Columns}, r.Rows...) {
		for i, cell := range cells {
			b.WriteString("  " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		b.WriteString("\n")
	}
	held := 0
	for _, c := range r.Claims {
		if c.Holds {
			held++
			continue
		}
		b.WriteString("  REFUTED: " + c.Text + "\n")
	}
	fmt.Fprintf(&b, "  %d of %d claims hold. Took %s.\n\n", held, len(r.Claims), r.Took.Round(time.Second))
	_, err := io.WriteString(out, b.String())
	return err
}

// Keep writes the table, the charts and the single measurements into a folder: NNNN-name.results.md, .svg and .csv.
func (r Report) Keep(folder string) error {
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // of documents for everybody
		return fmt.Errorf("keep the results: %w", err)
	}
	base := filepath.Join(folder, r.File+".results")
	if err := os.WriteFile(base+".md", []byte(r.markdown()), 0o644); err != nil { //nolint:gosec // a document for everybody
		return fmt.Errorf("keep the results: %w", err)
	}
	for _, p := range r.Plots {
		if err := os.WriteFile(base+"."+p.Name+".svg", []byte(p.Plot.svg()), 0o644); err != nil { //nolint:gosec // a document for everybody
			return fmt.Errorf("keep the chart: %w", err)
		}
	}
	for _, t := range r.Tables {
		if err := t.write(base + t.suffix()); err != nil {
			return fmt.Errorf("keep the measurements: %w", err)
		}
	}
	return nil
}

func (t Table) suffix() string {
	suffix := ".csv"
	if t.Name != "" {
		suffix = "." + t.Name + suffix
	}
	if t.Packed {
		suffix += ".gz"
	}
	return suffix
}

func (t Table) write(path string) error {
	f, err := os.Create(path) //nolint:gosec // the folder is the user's own choice
	if err != nil {
		return err
	}
	if !t.Packed {
		return errors.Join(csv.NewWriter(f).WriteAll(t.Rows), f.Close())
	}
	packed := gzip.NewWriter(f)
	return errors.Join(csv.NewWriter(packed).WriteAll(t.Rows), packed.Close(), f.Close())
}

// markdown is the document that is kept.
func (r Report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Results of %s\n\nWritten by `%s`", r.Name, r.Command)
	for i, t := range r.Tables {
		joint := "; each single"
		if i > 0 {
			joint = ", each"
		}
		fmt.Fprintf(&b, "%s %s is in [%s](%s)", joint, t.Of, strings.TrimPrefix(t.suffix(), "."), r.File+".results"+t.suffix())
	}
	fmt.Fprintf(&b, ".\n\n%s, %s", r.At.UTC().Format("2006-01-02 15:04 MST"), r.Setting)
	if r.Load != "" {
		fmt.Fprintf(&b, "; load average %s before the run", r.Load)
	}
	fmt.Fprintf(&b, ". Took %s.\n\n", r.Took.Round(time.Second))
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(r.Columns)
	b.WriteString(strings.Repeat("|---", len(r.Columns)) + "|\n")
	for _, cells := range r.Rows {
		line(cells)
	}
	b.WriteString("\n")
	for _, note := range r.Notes {
		b.WriteString(note + "\n\n")
	}
	for _, p := range r.Plots {
		fmt.Fprintf(&b, "![%s](%s.results.%s.svg)\n\n", p.Plot.Title, r.File, p.Name)
	}
	for _, c := range r.Claims {
		mark := "holds"
		if !c.Holds {
			mark = "**refuted**"
		}
		b.WriteString("- " + mark + ": " + c.Text + "\n")
	}
	return b.String()
}
