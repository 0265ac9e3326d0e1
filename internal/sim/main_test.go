package sim_test

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"daesa/internal/postgres/postgrestest"
)

var (
	seedsFlag = flag.String("seeds", "", "seeds to play, as 7 or 1-200 or 3,5,8-12; the smoke's own by default")
	csvFlag   = flag.String("csv", "", "file for one line per seed")
	firstFlag = flag.Bool("first", false, "stop at the first seed that fails")
	storyFlag = flag.Bool("story", false, "print every story, not only those that fail")
)

func TestMain(m *testing.M) { postgrestest.Run(m) }

// seeds reads a list of seeds as people write it.
func seeds(text string) ([]uint64, error) {
	var all []uint64
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("seeds %q: %w", text, err)
		}
		last, err := strconv.ParseUint(to, 10, 32)
		if err != nil || last < first {
			return nil, fmt.Errorf("seeds %q: not a range", text)
		}
		for seed := first; seed <= last; seed++ {
			all = append(all, seed)
		}
	}
	return all, nil
}
