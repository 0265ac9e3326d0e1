package pgclient

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"daesa/ledger"
)

// TestLookUp_LeavesRecoveryItsSlots: however many wait for an answer, at most three quarters of the slots are theirs, and a
// question of recovery is sent at once. Those that are too many wait as long as they would for any slot, and are told the same.
func TestLookUp_LeavesRecoveryItsSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{takes: 3 * time.Second}
		o.back.Store(true)
		c := mustNew(t, testConfig(o))
		var group sync.WaitGroup
		var answered, refused atomic.Int64
		for range 20 {
			group.Go(func() {
				began := time.Now()
				_, err := c.LookUp(t.Context(), ledger.ChannelRecover, "pk_1")
				if err == nil {
					answered.Add(1)
					return
				}
				refused.Add(1)
				wantReason(t, err, ReasonCap)
				if took := time.Since(began); took != 2*time.Second {
					t.Errorf("refused after %s, want the path's wait of 2 s", took)
				}
			})
		}
		synctest.Wait()
		if got := o.most.Load(); got != 6 {
			t.Errorf("%d of 20 are asked about at once, want six of the eight slots", got)
		}
		for range 2 {
			group.Go(func() {
				began := time.Now()
				if _, err := c.Recover(t.Context(), ledger.ChannelSweep, "pk_1"); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took != o.takes {
					t.Errorf("recovery took %s beside those who wait, want the %s of the gateway", took, o.takes)
				}
			})
		}
		group.Wait()
		if answered.Load() != 6 || refused.Load() != 14 {
			t.Errorf("%d answered and %d refused, want 6 and 14", answered.Load(), refused.Load())
		}
		answered.Store(0)
		for range 6 { // every slot of the share came back
			group.Go(func() {
				if _, err := c.LookUp(t.Context(), ledger.ChannelRecover, "pk_1"); err == nil {
					answered.Add(1)
				}
			})
		}
		group.Wait()
		if answered.Load() != 6 {
			t.Errorf("%d of 6 answered afterwards", answered.Load())
		}
	})
}

// TestLookUp_WhatRecoveryHoldsIsWaitedForOnce: where recovery has the slots, a share of them is no slot, and is given back.
func TestLookUp_WhatRecoveryHoldsIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{takes: 9 * time.Second}
		o.back.Store(true)
		c := mustNew(t, testConfig(o))
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() { _, _ = c.Recover(t.Context(), ledger.ChannelSweep, "pk_1") })
		}
		synctest.Wait()
		for range 12 {
			group.Go(func() {
				began := time.Now()
				_, err := c.LookUp(t.Context(), ledger.ChannelRecover, "pk_1")
				wantReason(t, err, ReasonCap)
				if took := time.Since(began); took != 2*time.Second {
					t.Errorf("refused after %s, want one wait of 2 s", took)
				}
			})
		}
		group.Wait()
		if got := c.lookUps.Held(); got != 0 {
			t.Errorf("%d of the share held by nobody", got)
		}
	})
}
