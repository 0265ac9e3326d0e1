package harness

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Metrics is what one or several instances export, added up. A name that nobody exports is remembered: a report that
// reads a wrong name shows zeros that look like good news.
type Metrics struct {
	series  map[string]float64 // by name and labels, as exported
	missing map[string]bool
}

// ReadMetrics reads the text format, of which we need numbers only.
func ReadMetrics(text []byte) (Metrics, error) {
	m := Metrics{map[string]float64{}, map[string]bool{}}
	for line := range bytes.Lines(text) {
		row := strings.TrimSpace(string(line))
		if row == "" || strings.HasPrefix(row, "#") {
			continue
		}
		at := strings.LastIndexByte(row, ' ')
		if at < 0 {
			return m, fmt.Errorf("read metrics: %q is no series", row)
		}
		value, err := strconv.ParseFloat(row[at+1:], 64)
		if err != nil {
			return m, fmt.Errorf("read metrics: %w", err)
		}
		m.series[row[:at]] = value
	}
	return m, nil
}

// Of adds up the series of a name that have all these labels, given as name and value in turn.
func (m Metrics) Of(name string, labels ...string) float64 {
	sum, known := 0.0, false
	for series, value := range m.series {
		own, pairs, _ := strings.Cut(series, "{")
		if own != name {
			continue
		}
		known = true
		if hasAll(pairs, labels) {
			sum += value
		}
	}
	if !known {
		m.missing[name] = true
	}
	return sum
}

func hasAll(pairs string, labels []string) bool {
	for label := range slices.Chunk(labels, 2) {
		pair := label[0] + "=" + strconv.Quote(label[1])
		if !strings.HasPrefix(pairs, pair) && !strings.Contains(pairs, ","+pair) {
			return false
		}
	}
	return true
}

// Count is Of as a whole number.
func (m Metrics) Count(name string, labels ...string) int { return int(m.Of(name, labels...)) }

// Missing are the names that were asked for and that nobody exports.
func (m Metrics) Missing() []string { return slices.Sorted(maps.Keys(m.missing)) }

// plus adds up two instances.
func (m Metrics) plus(other Metrics) Metrics { return m.with(other, 1) }

// minus is what was counted since an earlier look.
func (m Metrics) minus(earlier Metrics) Metrics { return m.with(earlier, -1) }

func (m Metrics) with(other Metrics, sign float64) Metrics {
	if m.series == nil {
		m.series = map[string]float64{}
	}
	sum := Metrics{maps.Clone(m.series), map[string]bool{}}
	for series, value := range other.series {
		sum.series[series] += sign * value
	}
	return sum
}
