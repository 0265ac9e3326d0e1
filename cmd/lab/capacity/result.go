package capacity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
)

// report writes down what was found.
func (l *limit) report(r *report.Result) {
	r.Columns = []string{
		"", "cancels a second", "of pgbench, one by one", "CPU of the service", "of PostgreSQL", "of the gateway", "of the load",
		"log written", "commits", "statements", "round trips", "allocations", "allocated", "jobs meanwhile",
		"goroutines, most", "sockets, most", "pool, most", "memory, most",
	}
	trips := map[string]int{
		armService: l.script.story.trips, armOneByOne: l.script.story.statements(), armPipelined: 3,
	}
	for _, arm := range []string{armOneByOne, armPipelined, armService} {
		for _, one := range l.runs {
			if one.arm == arm {
				r.Row(fmt.Sprintf("%s, round %d", arm, one.round), l.cells(one, trips[arm])...)
			}
		}
		r.Row("**"+arm+", median**", strconv.Itoa(int(l.median(arm))), fmt.Sprintf("%.2f", l.ratio(arm)))
	}
	for _, outcome := range nothings() {
		r.Row(outcome+", median", strconv.Itoa(int(l.medianIdle(outcome))), fmt.Sprintf("%.2f of the constant", l.idleRatio(outcome)))
	}
	l.doubts(r)
	l.claims(r)
	l.raw(r)
	l.plots(r)
	r.Notes = l.notes()
}

func nothings() []string {
	return []string{constantOutcome, duplicateSkipped, eventIgnored, statusIgnored}
}

func (l *limit) cells(one run, trips int) []string {
	n := time.Duration(l.payments)
	used := func(d time.Duration) string {
		if d == 0 {
			return "–"
		}
		return fmt.Sprintf("%.2f ms", (d/n).Seconds()*1e3)
	}
	cells := []string{
		strconv.Itoa(int(one.rate)), fmt.Sprintf("%.2f", one.rate/l.inRound(one.round)),
		used(one.service), used(one.postgres), used(one.gateway), used(one.load),
		fmt.Sprintf("%.1f kB", float64(one.wal)/float64(l.payments)/1e3),
		fmt.Sprintf("%.2f", float64(one.commits)/float64(l.warm+l.payments)),
		strconv.Itoa(l.script.story.statements()), strconv.Itoa(trips),
	}
	if one.arm != armService {
		return append(cells, "–", "–", "–", "–", "–", "–", "–")
	}
	// What was delivered after the cancels is in the sum of commits, and in nothing else.
	cells[7] = fmt.Sprintf("%.2f", float64(one.commits-int64(3*2*(l.warm+l.payments)))/float64(l.warm+l.payments))
	watched := harness.Observed{Looks: one.looks}
	most := func(of func(harness.Look) int) string { return strconv.Itoa(watched.Most(of)) }
	return append(cells, fmt.Sprintf("%.0f", one.allocations/float64(l.payments)), fmt.Sprintf("%.1f kB", one.allocated/float64(l.payments)/1e3),
		strconv.Itoa(one.jobs), most(func(look harness.Look) int { return look.Goroutines }), most(func(look harness.Look) int { return look.Sockets }),
		most(func(look harness.Look) int { return look.PoolInUse }), most(func(look harness.Look) int { return int(look.Resident >> 20) })+" MiB")
}

// inRound is what pgbench did one by one in a round.
func (l *limit) inRound(round int) float64 {
	for _, one := range l.runs {
		if one.arm == armOneByOne && one.round == round {
			return one.rate
		}
	}
	return 0
}

func (l *limit) median(arm string) float64 {
	return middle(l.runs, func(one run) (float64, bool) { return one.rate, one.arm == arm })
}

// ratio is the median of what an arm did in each round beside what pgbench did one by one.
func (l *limit) ratio(arm string) float64 {
	return middle(l.runs, func(one run) (float64, bool) { return one.rate / l.inRound(one.round), one.arm == arm })
}

func (l *limit) medianIdle(outcome string) float64 {
	return middle(l.runs, func(one run) (float64, bool) { return one.idle[outcome], one.arm == armService })
}

func (l *limit) idleRatio(outcome string) float64 {
	return middle(l.runs, func(one run) (float64, bool) {
		return one.idle[outcome] / max(1, one.idle[constantOutcome]), one.arm == armService
	})
}

func middle(runs []run, of func(run) (float64, bool)) float64 {
	var values []float64
	for _, one := range runs {
		if value, counts := of(one); counts {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// The bounds.
const (
	ratioLeast = 0.6
	idleLeast  = 0.3
	tripsMost  = 6 // five for the cancel, one for the rate limit on a connection of its own
)

func (l *limit) claims(r *report.Result) {
	r.ClaimTime(l.ratio(armService) >= ratioLeast, "the service applies %.2f of what pgbench does with the same statements one by one, at least %.1f",
		l.ratio(armService), ratioLeast)
	for _, outcome := range nothings()[1:] {
		r.ClaimTime(l.idleRatio(outcome) >= idleLeast, "%s: %.2f of what the same router does that answers a constant, at least %.1f",
			outcome, l.idleRatio(outcome), idleLeast)
	}
	for _, one := range l.runs {
		if one.arm == armService {
			r.Claim(one.jobs > 0 || l.lab.Quick, "round %d: the jobs went on meanwhile: %d were worked", one.round, one.jobs)
		}
	}
	r.Claim(l.script.story.trips <= tripsMost, "an applied cancel waits for PostgreSQL %d times, at most %d", l.script.story.trips, tripsMost)
	for _, one := range l.runs {
		r.Claim(len(one.violations) == 0, "%s, round %d: every invariant of the books holds (%d violations %v)",
			one.arm, one.round, len(one.violations), one.violations[:min(3, len(one.violations))])
	}
}

// doubts compares those who count: the sender, the service, its tables, the gateway, and pgbench with the service.
func (l *limit) doubts(r *report.Result) {
	all := l.warm + l.payments
	for _, one := range l.runs {
		r.Unless(one.canceled == all, "%s, round %d: %d payments are canceled, want %d", one.arm, one.round, one.canceled, all)
		r.Unless(one.books.outcomes[appliedFull] == all, "%s, round %d: the table has %v, want %d applied", one.arm, one.round, one.books.outcomes, all)
		if one.arm != armService {
			l.sameRows(r, one)
			continue
		}
		r.Unless(len(one.outcomes) == 1 && one.outcomes[appliedFull] == all, "round %d: the sender saw %v, want %d applied", one.round, one.outcomes, all)
		r.Unless(one.questions == all, "round %d: the gateway was asked %d times for %d cancels", one.round, one.questions, all)
		for outcome, want := range map[string]int{appliedFull: all, duplicateSkipped: all, eventIgnored: all, statusIgnored: all} {
			counted := one.metrics.Count("daesa_webhook_outcomes_total", "outcome", outcome)
			r.Unless(counted == want && one.books.outcomes[outcome] == want, "round %d: the service counts %d of %s, its table has %d, and %d were sent",
				one.round, counted, outcome, one.books.outcomes[outcome], want)
		}
		refused := one.metrics.Count("daesa_admission_rate_refused_total")
		alone := one.metrics.Count("daesa_admission_rate_fallbacks_total")
		r.Unless(refused == 0, "round %d: the rate limit refused %d", one.round, refused)
		r.Unless(alone*100 <= all || l.lab.Quick, "round %d: the rate limit counted alone %d times, so that its statement was not run", one.round, alone)
		for _, name := range one.metrics.Missing() {
			r.Unless(false, "the service exports no %s", name)
		}
		r.Unless(one.service > 0 || l.lab.Quick, "round %d: the service used no processor", one.round)
		busy, most := one.busy()
		r.Unless(busy <= most, "round %d: %s of processors were used, and there were %s", one.round, busy, most)
	}
}

// busy is what was used of processors, and the most that can have been: all of them from the first reading to the last,
// whatever else the machine does, and for each process two numbers that are rounded.
func (c costs) busy() (used, most time.Duration) {
	return c.service + c.postgres + c.gateway + c.load, time.Duration(cores())*c.ended.Sub(c.began) + time.Duration(2*c.processes)*statTick
}

// sameRows doubts that pgbench did the same work: each table has as many new rows for a cancel as the service wrote.
func (l *limit) sameRows(r *report.Result, one run) {
	for _, other := range l.runs {
		if other.arm != armService || other.round != one.round {
			continue
		}
		for _, table := range moneyTables() {
			want := other.tables[table].Added
			if table == "deliveries" { // those that led to nothing are rows too
				want -= int64(3 * (l.warm + l.payments))
			}
			r.Unless(one.tables[table].Added == want, "%s, round %d: %d new rows of %s, the service wrote %d", one.arm, one.round, one.tables[table].Added, table, want)
		}
	}
}

// raw keeps everything that was measured.
func (l *limit) raw(r *report.Result) {
	header := []string{
		"arm", "round", "payments", "per_second", "wall_ms", "service_cpu_ms", "postgres_cpu_ms", "gateway_cpu_ms", "load_cpu_ms", "wal_bytes",
		"commits", "allocations", "allocated_bytes", "jobs_worked",
	}
	header = append(header, nothings()...)
	runs := report.Table{Of: "run", Rows: [][]string{header}}
	tables := report.Table{Name: "tables", Of: "table's new and changed rows", Rows: [][]string{{"arm", "round", "table", "added", "changed", "changed_in_place"}}}
	for _, one := range l.runs {
		cells := []string{one.arm, strconv.Itoa(one.round), strconv.Itoa(l.payments), fmt.Sprintf("%.1f", one.rate)}
		for _, v := range []int64{
			one.wall.Milliseconds(), one.service.Milliseconds(), one.postgres.Milliseconds(), one.gateway.Milliseconds(), one.load.Milliseconds(),
			one.wal, one.commits, int64(one.allocations), int64(one.allocated), int64(one.jobs),
		} {
			cells = append(cells, strconv.FormatInt(v, 10))
		}
		for _, outcome := range nothings() {
			cells = append(cells, fmt.Sprintf("%.1f", one.idle[outcome]))
		}
		runs.Rows = append(runs.Rows, cells)
		var rows [][]string
		for name, t := range one.tables {
			if t.Added+t.Moved > 0 {
				rows = append(rows, []string{
					name, strconv.FormatInt(t.Added, 10), strconv.FormatInt(t.Moved, 10), strconv.FormatInt(t.Hot, 10),
				})
			}
		}
		for _, row := range byName(rows) {
			tables.Rows = append(tables.Rows, append([]string{one.arm, strconv.Itoa(one.round)}, row...))
		}
	}
	statements := report.Table{Name: "statements", Of: "statement", Rows: [][]string{{"transaction", "turn", "statement"}}}
	for name, t := range map[string]transaction{"1 rate limit": l.script.story.limit, "2 delivery": l.script.story.store, "3 cancel": l.script.story.apply} {
		for _, s := range t.statements {
			statements.Rows = append(statements.Rows, []string{name, strconv.Itoa(s.turn - t.statements[0].turn + 1), strings.Join(strings.Fields(s.sql), " ")})
		}
	}
	slices.SortStableFunc(statements.Rows[1:], func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	watch := report.Table{Name: "watch", Of: "look at the service", Rows: [][]string{harness.LookColumns()}}
	for _, one := range l.runs {
		for _, look := range one.looks {
			watch.Rows = append(watch.Rows, harness.LookRow(fmt.Sprintf("%s, round %d", one.arm, one.round), look))
		}
	}
	r.Tables = []report.Table{runs, tables, statements, watch}
}

// plots draw what each arm did in each round, and what leads to nothing beside the constant.
func (l *limit) plots(r *report.Result) {
	rates := report.Plot{Title: "cancels a second", Unit: "round"}
	idle := report.Plot{Title: "notices a second that lead to nothing", Unit: "round"}
	for round := 1; round <= l.rounds; round++ {
		rates.X = append(rates.X, strconv.Itoa(round))
	}
	idle.X = rates.X
	for _, arm := range []string{armPipelined, armOneByOne, armService} {
		line := report.Series{Name: arm}
		for _, one := range l.runs {
			if one.arm == arm {
				line.Values = append(line.Values, one.rate)
			}
		}
		rates.Series = append(rates.Series, line)
	}
	for _, outcome := range nothings() {
		line := report.Series{Name: outcome}
		for _, one := range l.runs {
			if one.arm == armService {
				line.Values = append(line.Values, one.idle[outcome])
			}
		}
		idle.Series = append(idle.Series, line)
	}
	r.Plots = []report.NamedPlot{{Name: "rates", Plot: rates}, {Name: "nothing", Plot: idle}}
}

func (l *limit) notes() []string {
	return []string{
		fmt.Sprintf(
			"%d cancels in each run, %d under way at a time, after %d of warm-up; each run on a copy of the same database, written to disk before it "+
				"begins. Costs are for one cancel; the service's processor, allocations and commits include its jobs.", l.payments, l.inFlight, l.warm),
		"pgbench runs the statements that were recorded between the service and PostgreSQL, with the names of each payment put in: one by one " +
			"with a round trip each, and pipelined with one for each of the three commits.",
		"Others on such a machine: a service that checks a signature and puts one row into a table, asks nobody and loses refunds of the same second, " +
			"1,180 to 1,760 a second; one with a ledger, 160 to 300.",
		"Two events of each cancel are told by jobs, which go on while cancels are applied. What is left of them is forgotten before notices are measured " +
			"that lead to nothing, and the audit of the minute is waited for: else these would be charged for it.",
		"The constant is the same router in a program of its own: the request is let in by class and by the shared rate limit, read, and answered.",
	}
}
