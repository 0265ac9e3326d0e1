package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"daesa/cmd/lab/report"
)

// perKey is what one dirty key costs: a run with them beside a run without any.
func (s size) perKey() float64 {
	return (median(s.touched, buffersOf) - median(s.idle, buffersOf)) / dirtyKeys
}

// perSale is what one new payment costs, every tenth of which is canceled.
func (s size) perSale() float64 {
	return (median(s.fresh, buffersOf) - median(s.idle, buffersOf)) / (10 * dirtyKeys)
}

// speed is how fast a verification reads beside COPY.
func (s size) speed() float64 {
	return median(s.copied, func(c copied) float64 { return c.took.Seconds() }) /
		median(s.verified, func(v verified) float64 { return v.took.Seconds() })
}

func (s size) resident() float64 {
	most := 0.0
	for _, v := range s.verified {
		most = math.Max(most, float64(v.resident))
	}
	return most
}

func buffersOf(s spent) float64 { return float64(s.buffers) }
func millisOf(s spent) float64  { return float64(s.took) / float64(time.Millisecond) }

// scaleResult puts the lengths of history side by side.
func scaleResult(sizes []size, firstCancels int) result {
	r := result{Columns: []string{""}}
	for _, s := range sizes {
		r.Columns = append(r.Columns, thousands(s.payments)+" payments")
	}
	each := func(name string, of func(size) string) {
		cells := make([]string, 0, len(sizes))
		for _, s := range sizes {
			cells = append(cells, of(s))
		}
		r.Row(name, cells...)
	}
	whole := func(v float64) string { return thousands(int(math.Round(v))) }
	each("cancels", func(s size) string { return thousands(s.payments / 10) })
	each("each minute, nothing changed: buffers", func(s size) string { return whole(median(s.idle, buffersOf)) })
	each("each minute, nothing changed: ms", func(s size) string { return whole(median(s.idle, millisOf)) })
	each(fmt.Sprintf("each minute, %s keys changed: buffers", thousands(dirtyKeys)), func(s size) string { return whole(median(s.touched, buffersOf)) })
	each(fmt.Sprintf("each minute, %s keys changed: ms", thousands(dirtyKeys)), func(s size) string { return whole(median(s.touched, millisOf)) })
	each("buffers for each changed key", func(s size) string { return fmt.Sprintf("%.2f", s.perKey()) })
	each(fmt.Sprintf("each minute, %s new payments: ms", thousands(10*dirtyKeys)), func(s size) string { return whole(median(s.fresh, millisOf)) })
	each("buffers for each new payment, every tenth canceled", func(s size) string { return fmt.Sprintf("%.2f", s.perSale()) })
	each(fmt.Sprintf("closing run of the day with %s cancels: ms", thousands(firstCancels)), func(s size) string { return whole(median(s.day, millisOf)) })
	each("its buffers", func(s size) string { return whole(median(s.day, buffersOf)) })
	each("everything recomputed: s", func(s size) string { return fmt.Sprintf("%.1f", s.full.took.Seconds()) })
	each("COPY of the books: rows", func(s size) string { return thousands(int(s.copied[0].rows)) })
	each("COPY of the books: s", func(s size) string {
		return fmt.Sprintf("%.1f", median(s.copied, func(c copied) float64 { return c.took.Seconds() }))
	})
	each("verify: s", func(s size) string {
		return fmt.Sprintf("%.1f", median(s.verified, func(v verified) float64 { return v.took.Seconds() }))
	})
	each("verify beside COPY", func(s size) string { return fmt.Sprintf("%.2f of its speed", s.speed()) })
	each("verify: most memory resident", func(s size) string {
		if s.resident() == 0 {
			return "not measured in this process"
		}
		return fmt.Sprintf("%.0f MiB", s.resident()/(1<<20))
	})
	scaleClaims(&r, sizes)
	r.Plots = []report.NamedPlot{
		{Name: "keys", Plot: report.Plot{Title: "Buffers touched for each changed key", Unit: "payments in the books", X: labels(sizes), Series: []report.Series{
			{Name: "changed again", Values: valuesOf(sizes, size.perKey)}, {Name: "new payments", Values: valuesOf(sizes, size.perSale)},
		}}},
		{Name: "reading", Plot: report.Plot{Title: "Reading everything: seconds", Unit: "payments in the books", X: labels(sizes), Series: []report.Series{
			{Name: "COPY", Values: valuesOf(sizes, func(s size) float64 { return median(s.copied, func(c copied) float64 { return c.took.Seconds() }) })},
			{Name: "verify", Values: valuesOf(sizes, func(s size) float64 { return median(s.verified, func(v verified) float64 { return v.took.Seconds() }) })},
			{Name: "recompute", Values: valuesOf(sizes, func(s size) float64 { return s.full.took.Seconds() })},
		}}},
	}
	r.Tables = []report.Table{{Of: "run", Rows: scaleTable(sizes)}}
	return r
}

func scaleClaims(r *result, sizes []size) {
	for _, s := range sizes {
		if s.perKey() <= 0 {
			r.Doubts = append(r.Doubts, fmt.Sprintf("at %s payments a changed key cost %.2f buffers", thousands(s.payments), s.perKey()))
		}
		r.Claim(s.speed() >= verifySpeed, "at %s payments a verification reads at %.2f of the speed of COPY, at least %.1f", thousands(s.payments), s.speed(), verifySpeed)
		if s.resident() == 0 {
			continue // a quick run
		}
		r.Claim(s.resident() <= verifyMemory, "at %s payments a verification holds %.0f MiB at most, within %d", thousands(s.payments), s.resident()/(1<<20), verifyMemory>>20)
	}
	for what, of := range map[string]func(size) float64{"a key looked at again": size.perKey, "a new payment": size.perSale} {
		costs := valuesOf(sizes, of)
		least, most := slices.Min(costs), slices.Max(costs)
		r.Claim(most <= least*flatWithin, "%s costs between %.2f and %.2f buffers, flat within %.0f %%", what, least, most, 100*(flatWithin-1))
	}
}

func labels(sizes []size) []string {
	names := make([]string, 0, len(sizes))
	for _, s := range sizes {
		names = append(names, thousands(s.payments))
	}
	return names
}

func valuesOf(sizes []size, of func(size) float64) []float64 {
	values := make([]float64, 0, len(sizes))
	for _, s := range sizes {
		values = append(values, of(s))
	}
	return values
}

// scaleTable is every single run.
func scaleTable(sizes []size) [][]string {
	table := [][]string{{"payments", "what", "run", "ms", "buffers", "rows", "resident_bytes"}}
	for _, s := range sizes {
		add := func(what string, run int, took time.Duration, buffers, rows, resident int64) {
			table = append(table, []string{
				strconv.Itoa(s.payments), what, strconv.Itoa(run), strconv.FormatInt(took.Milliseconds(), 10),
				strconv.FormatInt(buffers, 10), strconv.FormatInt(rows, 10), strconv.FormatInt(resident, 10),
			})
		}
		for _, kind := range []struct {
			name string
			runs []spent
		}{{"idle", s.idle}, {"touched", s.touched}, {"fresh", s.fresh}, {"day", s.day}, {"all", []spent{s.full}}} {
			for i, one := range kind.runs {
				add(kind.name, i+1, one.took, one.buffers, 0, 0)
			}
		}
		for i, c := range s.copied {
			add("copy", i+1, c.took, 0, c.rows, 0)
		}
		for i, v := range s.verified {
			add("verify", i+1, v.took, 0, 0, v.resident)
		}
	}
	return table
}
