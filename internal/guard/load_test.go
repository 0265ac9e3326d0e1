package guard

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestRefusedShare: the six points of the sweep at 50 a second.
func TestRefusedShare(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		takes time.Duration
		want  float64
	}{{0, 0}, {500 * time.Millisecond, 0}, {time.Second, .2}, {2 * time.Second, .6}, {3 * time.Second, .733}, {5 * time.Second, .84}} {
		if got := RefusedShare(40, 50, test.takes); math.Abs(got-test.want) > .001 {
			t.Errorf("%s: got %.3f, want %.3f", test.takes, got, test.want)
		}
	}
}

// TestLoad_ClockSetBack: what was counted in a minute that is yet to come says nothing of this one.
func TestLoad_ClockSetBack(t *testing.T) {
	t.Parallel()
	l := NewLoad(1)
	later := time.Now().Unix() + 1000
	l.seconds[later%shareOver] = loadSecond{second: later, arrived: 10, refused: 10}
	if predicted, measured := l.Shares(); predicted != 0 || measured != 0 {
		t.Errorf("predicted %.3f and measured %.3f of no calls", predicted, measured)
	}
}

// TestShares: every path has its series from the start, and a load alone has no label of a path.
func TestShares(t *testing.T) {
	t.Parallel()
	of := NewLoad(1)
	of.Arrive(false)
	of.Arrive(true)
	paths, alone := NewShares("of_paths", "Shares.", "a", "b"), NewShares("alone", "Shares.")
	paths.Watch("b", of)
	alone.Watch("", of)
	if err := testutil.CollectAndCompare(paths, strings.NewReader(`
		# HELP of_paths Shares.
		# TYPE of_paths gauge
		of_paths{path="a",source="measured"} 0
		of_paths{path="a",source="predicted"} 0
		of_paths{path="b",source="measured"} 0.5
		of_paths{path="b",source="predicted"} 0
	`)); err != nil {
		t.Error(err)
	}
	if err := testutil.CollectAndCompare(alone, strings.NewReader(`
		# HELP alone Shares.
		# TYPE alone gauge
		alone{source="measured"} 0.5
		alone{source="predicted"} 0
	`)); err != nil {
		t.Error(err)
	}
}
