package pgclient

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestLoad_PredictsWhatIsMeasured: 50 calls a second that hold one of 40 slots for 5 s each: 84 of 100 find none.
func TestLoad_PredictsWhatIsMeasured(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		takes time.Duration
		want  float64
	}{{500 * time.Millisecond, 0}, {1010 * time.Millisecond, .208}, {2 * time.Second, .6}, {5 * time.Second, .84}} {
		synctest.Test(t, func(t *testing.T) {
			o := &outage{takes: test.takes}
			o.back.Store(true)
			cfg := testConfig(o)
			cfg.Paths.Confirm.Cap = 40
			c := mustNew(t, cfg)
			for range 90 * 50 {
				if permit, err := c.ReserveConfirm(t.Context()); err == nil {
					time.AfterFunc(test.takes, permit.Release)
				}
				time.Sleep(20 * time.Millisecond)
			}
			predicted, measured := c.confirm.load.Shares()
			if math.Abs(predicted-test.want) > .015 || math.Abs(measured-test.want) > .015 {
				t.Errorf("%s: predicted %.3f, measured %.3f, want %.2f", test.takes, predicted, measured, test.want)
			}
			time.Sleep(2 * time.Minute) // a quiet gateway refuses nobody
			if predicted, measured := c.confirm.load.Shares(); predicted != 0 || measured != 0 {
				t.Errorf("%s: predicted %.3f and measured %.3f of no calls", test.takes, predicted, measured)
			}
		})
	}
}

func TestLoad_IsExportedFromTheStart(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(&outage{}))
	if got, want := testutil.CollectAndCount(c.cfg.Metrics.shares), 2*len(PathNames()); got != want {
		t.Errorf("got %d series, want %d", got, want)
	}
}

// TestLoad_WhoHungUpWasNotRefused: a caller who is gone before it gets a slot did not find all of them taken.
func TestLoad_WhoHungUpWasNotRefused(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(&outage{}))
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if _, err := c.ReserveConfirm(gone); err == nil {
		t.Fatal("a slot for somebody who is gone")
	}
	if _, measured := c.confirm.load.Shares(); measured != 0 {
		t.Errorf("measured %.3f of the calls without a slot, want none", measured)
	}
}
