package checkout

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
)

// TestNotify_GoesWithItsFact: telling is statements of the batch, one for two announcements, and sends nothing by itself.
// What it inserts are whole jobs.
func TestNotify_GoesWithItsFact(t *testing.T) {
	t.Parallel()
	pool, meter := postgrestest.NewMetered(t)
	notices, err := NewNotices(slog.New(slog.DiscardHandler))
	must(t, err)
	for _, test := range []struct{ count, want int }{{0, 0}, {1, 1}, {2, 1}, {3, 2}} {
		announcements := make([]ledger.Announcement, 0, test.count)
		for i := range test.count {
			announcements = append(announcements, ledger.Announcement{ID: fmt.Sprintf("evt_%d_%d", test.count, i)})
		}
		var b pgx.Batch
		before := meter.RoundTrips()
		must(t, notices.Notify(t.Context(), &b, announcements))
		if trips := meter.RoundTrips() - before; b.Len() != test.want || trips != 0 {
			t.Errorf("%d announcements: got %d statements and %d round trips, want %d and none", test.count, b.Len(), trips, test.want)
		}
		must(t, postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error { return tx.SendBatch(t.Context(), &b).Close() }))
	}
	rows, err := pool.Query(t.Context(), `
		SELECT format('%s %s %s %s %s %s', args ->> 'event_id', kind, queue, state, max_attempts, metadata)
		FROM river.river_job ORDER BY id`)
	must(t, err)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	var want []string
	for _, id := range []string{"evt_1_0", "evt_2_0", "evt_2_1", "evt_3_0", "evt_3_1", "evt_3_2"} {
		want = append(want, fmt.Sprintf("%s deliver_event events available %d {}", id, deliveryAttempts))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestCancel_RoundTripsOfTheApplyingTransaction: lock, write and tell, commit.
func TestCancel_RoundTripsOfTheApplyingTransaction(t *testing.T) {
	t.Parallel()
	pool, meter := postgrestest.NewMetered(t)
	s := open(t, shopOptions{db: pool})
	for i := range 3 {
		_, key := s.paid(50000, "customer_id", "kim")
		_, err := s.sim.CancelInDashboard(key, 0, "dashboard")
		must(t, err)
		seen, err := s.handler.lookUp(t.Context(), key)
		must(t, err)
		before := meter.RoundTrips()
		_, err = s.handler.record(t.Context(), seen)
		must(t, err)
		if got := meter.RoundTrips() - before; i > 0 && got > 3 {
			t.Errorf("got %d round trips, want at most 3", got)
		}
	}
}

func TestNotify_RollsBackWithItsFact(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	_, key := s.paid(50000, "customer_id", "kim")
	jobs := s.count(`SELECT count(*) FROM river.river_job WHERE kind = 'deliver_event' AND queue = 'events'`)
	if jobs != 1 {
		t.Fatalf("got %d deliveries after one payment, want 1", jobs)
	}
	_, err := s.sim.CancelInDashboard(key, 0, "dashboard")
	must(t, err)
	seen, _ := s.handler.lookUp(t.Context(), key)
	refused := fmt.Errorf("refused")
	err = postgres.InTx(t.Context(), s.db, func(tx pgx.Tx) error {
		if _, err := s.ledger.Record(t.Context(), tx, seen); err != nil {
			return err
		}
		return refused
	})
	if err == nil || s.count(`SELECT count(*) FROM river.river_job`) != jobs {
		t.Errorf("got %v and %d jobs, want the roll-back to take the deliveries along", err, s.count(`SELECT count(*) FROM river.river_job`))
	}
	s.lookUpNow(key)
	if got := s.count(`SELECT count(*) FROM river.river_job`); got != jobs+2 {
		t.Errorf("got %d jobs, want two more: merchant and customer", got)
	}
}
