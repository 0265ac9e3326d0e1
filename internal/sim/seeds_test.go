package sim_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// smoke is the seeds that every run of the tests plays.
const smoke = "1-3"

// coveredFrom is how many seeds leave no cell of the coverage empty. Fewer only show what they covered.
const coveredFrom = 150

// TestSeeds plays seeds: those of the smoke, or those that -seeds names.
func TestSeeds(t *testing.T) {
	t.Parallel()
	all, err := seeds(smoke)
	if *seedsFlag != "" {
		all, err = seeds(*seedsFlag)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &record{began: time.Now(), want: len(all), cells: map[cell]int{}, breaks: map[string]int{}}
	t.Cleanup(func() { r.close(t) })
	for _, seed := range all {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			if *firstFlag && r.hasFailed() {
				t.Skip("a seed has failed")
			}
			started := time.Now()
			s := newStory(t, seed)
			defer func() { r.add(t, s, time.Since(started)) }()
			s.play()
		})
	}
}

// TestSameSeedSameStory: a story that fails must fail again, or nobody finds out why.
func TestSameSeedSameStory(t *testing.T) {
	t.Parallel()
	first, second := nameless(told(t, 1)), nameless(told(t, 1))
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the stories differ:\n%s", diff)
	}
}

func told(t *testing.T, seed uint64) []string {
	t.Helper()
	s := newStory(t, seed)
	s.play()
	return s.lines
}

// nameless replaces the gateway's keys, which count its calls, by the order in which they appear: how often a call is
// tried again depends on the machine.
func nameless(lines []string) []string {
	keys := regexp.MustCompile(`tsims[0-9]{14}[0-9a-z]{5}|txrd_a01[0-9a-z]+|[0-9A-F]{32}|notice [0-9]+`)
	names := map[string]string{}
	out := make([]string, len(lines))
	for n, line := range lines {
		out[n] = keys.ReplaceAllStringFunc(line, func(key string) string {
			if names[key] == "" {
				names[key] = fmt.Sprintf("#%d", len(names))
			}
			return names[key]
		})
	}
	return out
}

// record is what all seeds came to.
type record struct {
	mu     sync.Mutex
	began  time.Time
	want   int
	done   int
	failed []string
	cells  map[cell]int
	breaks map[string]int
	audits int
	signs  int
	lines  []string
}

func (r *record) hasFailed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failed) > 0
}

func (r *record) add(t *testing.T, s *story, took time.Duration) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	result := "ok"
	if t.Failed() {
		result = "FAILED"
		r.failed = append(r.failed, fmt.Sprint(s.seed))
	}
	audits := 0
	for _, n := range s.verdicts {
		audits += n
	}
	r.audits += audits
	r.signs += s.signs
	injected := 0
	for at, n := range s.cells {
		r.cells[at] += n
	}
	for name, n := range s.breaks {
		r.breaks[name] += n
		injected += n
	}
	r.lines = append(r.lines, fmt.Sprintf("%d,%s,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d", s.seed, result, s.days, len(s.sales), s.cancels, s.kills,
		injected, audits, s.verdicts["reconciled"], s.verdicts["reconciled_with_pending"],
		s.verdicts["incomplete"], s.verdicts["breaks"]))
	if *seedsFlag != "" {
		_, _ = fmt.Fprintf(os.Stderr, "%4d of %d after %s: seed %d %s: %d days, %d sales, %d kills, %d contradictions, %d audits, %s\n",
			r.done, r.want, time.Since(r.began).Round(time.Second), s.seed, result, s.days, len(s.sales), s.kills, injected, audits,
			took.Round(time.Millisecond))
	}
}

// close prints the coverage, and writes the file that -csv names.
func (r *record) close(t *testing.T) {
	t.Helper()
	t.Logf("%d seeds, %d audits, %d signatures, failed: %v\n%s\n%s", r.done, r.audits, r.signs, r.failed, r.table(), r.injected())
	if r.want >= coveredFrom {
		for _, f := range faults() {
			for _, at := range points() {
				if r.cells[cell{f.name, at}] == 0 {
					t.Errorf("no seed killed the process at %s while %s", at, f.name)
				}
			}
		}
		for _, b := range breaks() {
			if r.breaks[b.name] == 0 {
				t.Errorf("no seed has: %s", b.name)
			}
		}
		for _, p := range passings() {
			if r.breaks[p.name] == 0 {
				t.Errorf("no seed has: %s", p.name)
			}
		}
	}
	if *csvFlag == "" {
		return
	}
	head := "seed,result,days,sales,our_cancels,kills,contradictions,audits,reconciled,pending,incomplete,breaks\n"
	slices.SortFunc(r.lines, func(a, b string) int {
		return len(a[:strings.Index(a, ",")])*1000 - len(b[:strings.Index(b, ",")])*1000 + strings.Compare(a, b)
	})
	if err := os.WriteFile(*csvFlag, []byte(head+strings.Join(r.lines, "\n")+"\n"), 0o600); err != nil {
		t.Error(err)
	}
}

// table is the coverage, in Markdown: how often the process was killed at each point on a day on which each fault struck.
func (r *record) table() string {
	var b strings.Builder
	b.WriteString("| fault |")
	for _, at := range points() {
		fmt.Fprintf(&b, " %s |", at)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(points())) + "\n")
	for _, f := range faults() {
		fmt.Fprintf(&b, "| %s |", f.name)
		for _, at := range points() {
			fmt.Fprintf(&b, " %d |", r.cells[cell{f.name, at}])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// injected is how often each contradiction was injected, in Markdown.
func (r *record) injected() string {
	var b strings.Builder
	b.WriteString("| contradiction | injected |\n|---|---:|\n")
	for _, name := range slices.Sorted(maps.Keys(r.breaks)) {
		fmt.Fprintf(&b, "| %s | %d |\n", name, r.breaks[name])
	}
	return b.String()
}
