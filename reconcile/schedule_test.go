package reconcile

import (
	"slices"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient"
)

func TestNextDue(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	far := now.Add(4 * day)
	tests := []struct {
		name     string
		kind     ledger.WorkKind
		attempts int
		deadline time.Time
		patient  bool
		want     time.Duration
	}{
		{"confirm begins with seconds", ledger.WorkConfirmUnknown, 1, far, false, 3 * time.Second},
		{"confirm, minutes", ledger.WorkConfirmUnknown, 6, far, false, time.Minute},
		{"confirm, hours", ledger.WorkConfirmUnknown, 13, far, false, 2 * time.Hour},
		{"confirm, for ever daily", ledger.WorkConfirmUnknown, 5000, now.Add(-day), false, day},
		{"confirm does not care for its deadline", ledger.WorkConfirmUnknown, 16, now.Add(time.Hour), false, day},
		{"confirm is the same when patient", ledger.WorkConfirmUnknown, 1, far, true, 3 * time.Second},
		{"claim begins with minutes", ledger.WorkCancelClaimed, 1, far, false, 5 * time.Minute},
		{"claim grows", ledger.WorkCancelClaimed, 3, far, false, 20 * time.Minute},
		{"claim never misses the last chance", ledger.WorkCancelClaimed, 7, now.Add(time.Hour), false, time.Hour},
		{"claim at the last chance goes on", ledger.WorkCancelClaimed, 8, now, false, 6 * time.Hour},
		{"patient claim waits for the last chance", ledger.WorkCancelClaimed, 1, far, true, 4 * day},
		{"patient claim past it goes on", ledger.WorkCancelClaimed, 1, now.Add(-time.Second), true, 5 * time.Minute},
		{"listed", ledger.WorkCancelListed, 1, far, false, time.Minute},
		{"listed, second", ledger.WorkCancelListed, 2, far, false, 2 * time.Minute},
		{"listed, third", ledger.WorkCancelListed, 3, far, false, 5 * time.Minute},
		{"listed, fourth", ledger.WorkCancelListed, 4, far, false, 15 * time.Minute},
		{"patient listed waits too", ledger.WorkCancelListed, 1, far, true, 4 * day},
		{"in progress", ledger.WorkCancelInProgress, 1, far, false, time.Minute},
		{"in progress, hourly", ledger.WorkCancelInProgress, 7, far, false, time.Hour},
		{"in progress, daily", ledger.WorkCancelInProgress, 100, far, false, day},
		{"in progress when patient", ledger.WorkCancelInProgress, 1, far, true, time.Minute},
		{"deposit, second look after 10 minutes", ledger.WorkDepositWatch, 1, far, false, 7 * time.Minute},
		{"deposit, third after an hour", ledger.WorkDepositWatch, 2, far, false, 50 * time.Minute},
		{"deposit, fourth after six", ledger.WorkDepositWatch, 3, far, false, 5 * time.Hour},
		{"deposit, last at the end", ledger.WorkDepositWatch, 4, now.Add(18 * time.Hour), false, 18 * time.Hour},
		{"request", ledger.WorkCancelRequest, 1, far, false, 5 * time.Second},
		{"request, for ever", ledger.WorkCancelRequest, 999, now, false, day},
		{"parked", ledger.WorkParked, 1, now, false, day},
		{"an attempt that was not counted", ledger.WorkCancelListed, 0, far, false, time.Minute},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := nextDue(test.kind, test.attempts, now, test.deadline, !test.patient)
			if got.Sub(now) != test.want {
				t.Errorf("got %s, want %s", got.Sub(now), test.want)
			}
		})
	}
}

// TestNextAfterDenial: after its first question a claim that is not borne out is asked about six times, and the last one is
// exactly at its last chance.
func TestNextAfterDenial(t *testing.T) {
	t.Parallel()
	opened := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	deadline := pgclient.LastChance(opened)
	var looks []time.Duration
	for at := opened.Add(5 * time.Minute); at.Before(deadline); looks = append(looks, at.Sub(opened)) {
		at = nextAfterDenial(len(looks)+1, at, deadline, true)
	}
	want := []time.Duration{
		65 * time.Minute, 7*time.Hour + 5*time.Minute, 31*time.Hour + 5*time.Minute, 55*time.Hour + 5*time.Minute,
		79*time.Hour + 5*time.Minute, deadline.Sub(opened),
	}
	if !slices.Equal(looks, want) {
		t.Errorf("got %v, want %v", looks, want)
	}
	if due := nextAfterDenial(1, opened, deadline, false); due != deadline {
		t.Errorf("a patient claim is due %s, want at its last chance", due)
	}
	if due := nextAfterDenial(9, deadline, deadline, false); !due.After(deadline) {
		t.Errorf("past its last chance it is due %s, want later", due)
	}
}

// TestNextDue_AlwaysLater: a row that is due again at once would never let a sweep end.
func TestNextDue_AlwaysLater(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	for _, kind := range ledger.WorkKinds() {
		for attempts := range 40 {
			for _, deadline := range []time.Time{now.Add(-day), now, now.Add(time.Microsecond), now.Add(time.Hour), now.Add(30 * day)} {
				for _, eager := range []bool{true, false} {
					if due := nextDue(kind, attempts, now, deadline, eager); !due.After(now) {
						t.Errorf("%s after %d with deadline %s: due at once", kind, attempts, deadline.Sub(now))
					}
				}
			}
		}
	}
}
