package reconcile_test

import (
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// TestReadHistory_LeavesRoomForWhatIsNew: between two windows the lock is free, so that the service reads on; another
// reader is waited for.
func TestReadHistory_LeavesRoomForWhatIsNew(t *testing.T) {
	t.Parallel()
	s := setup(t)
	conn, err := s.db.Acquire(t.Context())
	s.must(err)
	_, err = conn.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, int64(0x6461657361_01))
	s.must(err)
	waited, polled := 0, 0
	read, err := s.Mirror.ReadHistory(t.Context(), reconcile.History{
		From: noon().Add(-72 * time.Hour), To: noon(),
		Progress: func(p reconcile.HistoryProgress) {
			switch {
			case p.Waiting != "":
				waited++
				_, err := conn.Exec(t.Context(), `SELECT pg_advisory_unlock($1)`, int64(0x6461657361_01))
				s.must(err)
				conn.Release()
			case p.Ended:
				if p := s.poll(); !p.Busy {
					polled++
				}
			}
		},
	})
	s.must(err)
	if waited != 1 || polled != 3 || read.Windows != 3 || len(read.Left) != 0 {
		t.Errorf("got %+v after %d waits, and %d polls in between", read, waited, polled)
	}
}

// TestReadHistory_SkipsNothingSilently: what was read before is named, what failed is left, and the next call reads
// just that.
func TestReadHistory_SkipsNothingSilently(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, err := s.Mirror.Backfill(t.Context(), noon().Add(-48*time.Hour), noon().Add(-24*time.Hour))
	s.must(err)
	h := reconcile.History{From: noon().Add(-96 * time.Hour), To: noon().Add(time.Hour)}
	windows := 0
	h.Progress = func(p reconcile.HistoryProgress) {
		if windows++; windows == 3 { // before the second one
			s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Status, Code: 500})
		}
	}
	read, err := s.Mirror.ReadHistory(t.Context(), h)
	if err == nil || len(read.Left) != 2 || !read.Left[0].From.Equal(noon().Add(-72*time.Hour)) {
		t.Errorf("got %+v and %v, want the second window and the last one left", read, err)
	}
	if len(read.Covered) != 1 || !read.Covered[0].To.Equal(noon().Add(-24*time.Hour)) {
		t.Errorf("got %+v as read before", read.Covered)
	}
	h.Progress = nil
	read, err = s.Mirror.ReadHistory(t.Context(), h)
	if err != nil || read.Windows != 2 || len(read.Covered) != 2 {
		t.Errorf("got %+v and %v", read, err)
	}
	days, err := s.Mirror.HistoryDays(t.Context(), h.From, noon())
	s.must(err)
	for _, d := range days {
		if !d.Whole {
			t.Errorf("%s is not whole", d.Day)
		}
	}
	if len(days) != 5 || days[0].Day != ledger.DayOf(h.From) {
		t.Errorf("got %+v", days)
	}
}
