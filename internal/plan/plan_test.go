package plan

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAdvise(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		path Path
		want Cap
	}{
		{
			"30 a second at a p99 of 1 s, of 100",
			Path{Rate: 30, P99: time.Second, Most: 60, Cap: 20},
			Cap{Lower: 30, Upper: 60, Recommended: 40, AtCap: 1 - 20.0/30, Bears: 40 * time.Second / 30},
		},
		{
			"a store that bears 24",
			Path{Rate: 100, P99: 61 * time.Millisecond, Most: 24, Cap: 24},
			Cap{Lower: 7, Upper: 24, Recommended: 9, Bears: 90 * time.Millisecond},
		},
		{
			"more than there is room for",
			Path{Rate: 50, P99: 5 * time.Second, Most: 40, Cap: 40},
			Cap{Lower: 250, Upper: 40, Recommended: 40, AtCap: .84, AtRecommended: .84, Bears: 800 * time.Millisecond, Short: true},
		},
		{"nothing comes", Path{Most: 60}, Cap{Lower: 1, Upper: 60, Recommended: 1}},
	}
	for _, test := range tests {
		got, err := Advise(test.path)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
		if diff := cmp.Diff(test.want, got, near); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestAdvise_RefusesWhatIsNoMeasurement(t *testing.T) {
	t.Parallel()
	for _, p := range []Path{{Rate: -1, Most: 1}, {Rate: math.NaN(), Most: 1}, {Rate: math.Inf(1), Most: 1}, {P99: -1, Most: 1}, {Rate: 1}} {
		if _, err := Advise(p); !errors.Is(err, errMeasure) {
			t.Errorf("%+v: got %v", p, err)
		}
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	if got := Limit(100, 100); got != 300 {
		t.Errorf("got %d for 100 that fail and 100 new ones, want 300", got)
	}
	if got := Limit(0, 0); got != 1 {
		t.Errorf("got %d of nothing, want 1", got)
	}
}
