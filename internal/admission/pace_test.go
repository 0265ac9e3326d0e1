package admission

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestPace_IsABucketOfTokens holds the one instant that is kept of a source against the plainest bucket of tokens.
func TestPace_IsABucketOfTokens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{Name: "webhook", PerMinute: rapid.IntRange(1, 600).Draw(t, "per minute"), Burst: rapid.IntRange(1, 20).Draw(t, "burst")}
		pace := rule.pace()
		now := time.Date(2026, 4, 15, 1, 0, 0, 0, time.UTC)
		var fullAt time.Time
		tokens := pace.window // in the time that they take to refill
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			passes := time.Duration(rapid.Int64Range(0, int64(3*pace.every)).Draw(t, "pause"))
			now = now.Add(passes)
			tokens = min(pace.window, tokens+passes)
			after, wait := pace.take(fullAt, now)
			if tokens >= pace.every {
				tokens -= pace.every
				if wait != 0 {
					t.Fatalf("refused for %s with a token left", wait)
				}
			} else if wait != pace.every-tokens || !after.Equal(fullAt) {
				t.Fatalf("got a wait of %s and %s after, want %s and nothing spent", wait, after, pace.every-tokens)
			}
			fullAt = after
		}
	})
}

// TestPace_ClockSetBack: what was written before a clock was set back counts for nothing; what another clock, a moment
// ahead, has written counts.
func TestPace_ClockSetBack(t *testing.T) {
	t.Parallel()
	pace := Rule{Name: "webhook", PerMinute: 60, Burst: 10}.pace()
	now := time.Date(2026, 4, 15, 1, 0, 0, 0, time.UTC)
	if _, wait := pace.take(now.Add(time.Hour), now); wait != 0 {
		t.Errorf("refused for %s because of an instant that no clock of today has written", wait)
	}
	if _, wait := pace.take(now.Add(pace.window+clockTolerance), now); wait != 2*time.Second {
		t.Errorf("got a wait of %s, want what is missing", wait)
	}
}

// TestPace_Charge never spends more than there is.
func TestPace_Charge(t *testing.T) {
	t.Parallel()
	pace := Rule{Name: "webhook", PerMinute: 60, Burst: 3}.pace()
	now := time.Date(2026, 4, 15, 1, 0, 0, 0, time.UTC)
	var fullAt time.Time
	for range 100 {
		fullAt = pace.charge(fullAt, now)
	}
	if _, wait := pace.take(fullAt, now); wait != time.Second {
		t.Errorf("got a wait of %s after 100 requests that others let pass, want that of one", wait)
	}
}

func TestRule_Share(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule     Rule
		replicas int
		want     pace
	}{
		{Rule{PerMinute: 300, Burst: 300}, 1, pace{200 * time.Millisecond, time.Minute}},
		{Rule{PerMinute: 300, Burst: 300}, 3, pace{600 * time.Millisecond, time.Minute}},
		{Rule{PerMinute: 60, Burst: 2}, 3, pace{3 * time.Second, 3 * time.Second}}, // one at least, or nobody ever passes
	} {
		if got := test.rule.share(test.replicas); got != test.want {
			t.Errorf("got %v of %+v for %d instances, want %v", got, test.rule, test.replicas, test.want)
		}
	}
}

func TestRule_Holds(t *testing.T) {
	t.Parallel()
	rule := Rule{Addresses: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/28"), netip.MustParsePrefix("2001:db8::/32")}}
	for addr, want := range map[string]bool{"203.0.113.9": true, "203.0.113.16": false, "2001:db8:1::1": true, "2001:db9::1": false} {
		if got := rule.holds(netip.MustParseAddr(addr)); got != want {
			t.Errorf("got %v for %s, want %v", got, addr, want)
		}
	}
	if !(Rule{}).holds(netip.Addr{}) || rule.holds(netip.Addr{}) {
		t.Error("no address belongs to everybody and to nobody in particular")
	}
}
