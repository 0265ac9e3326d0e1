package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"daesa/ledger"
)

// Plot is a line chart, written as SVG by hand: no script, no font, prints as it looks.
type Plot struct {
	Title  string
	X      []string // evenly apart
	Unit   string   // of X
	Series []Series
}

// Series is one line of a chart.
type Series struct {
	Name   string
	Values []float64
}

const (
	plotWidth, plotHeight = 640, 360
	plotLeft, plotRight   = 70, 170
	plotTop, plotBottom   = 40, 50
)

// svg draws the chart. The vertical axis begins at nothing: a flat line is flat.
func (p Plot) svg() string {
	most := 0.0
	for _, s := range p.Series {
		for _, v := range s.Values {
			most = math.Max(most, v)
		}
	}
	top := ceiling(most)
	colors := []string{"#1a5fb4", "#c01c28", "#26a269", "#813d9c"}
	at := func(i int, v float64) (x, y float64) {
		steps := math.Max(1, float64(len(p.X)-1))
		return plotLeft + float64(i)/steps*(plotWidth-plotLeft-plotRight), plotHeight - plotBottom - v/top*(plotHeight-plotTop-plotBottom)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="22" font-size="14">%s</text>`+"\n", plotLeft, p.Title)
	for n := range 5 {
		v := top * float64(n) / 4
		x, y := at(0, v)
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n",
			x, plotWidth-plotRight, y, y, x-8, y+4, figure(v))
	}
	for i, label := range p.X {
		x, _ := at(i, 0)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x, plotHeight-plotBottom+18, label)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", plotLeft, plotHeight-12, p.Unit)
	for n, s := range p.Series {
		color := colors[n%len(colors)]
		points := make([]string, 0, len(s.Values))
		for i, v := range s.Values {
			x, y := at(i, v)
			points = append(points, fmt.Sprintf("%.1f,%.1f", x, y))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x, y, color)
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(points, " "), color)
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", plotWidth-plotRight+12, plotTop+20*n+12, color, s.Name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// ceiling is the next number above v that divides well.
func ceiling(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 4, 5, 8, 10} {
		if v <= step*unit {
			return step * unit
		}
	}
	return 10 * unit
}

func figure(v float64) string {
	if v == math.Trunc(v) {
		return ledger.Grouped(strconv.Itoa(int(v)))
	}
	return fmt.Sprintf("%.2g", v)
}
