package guard

import (
	"math"
	"testing"
	"time"
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
