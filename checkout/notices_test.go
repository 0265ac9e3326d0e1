package checkout

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
)

// TestNotify_OneRoundTrip: telling costs one round trip, however much there is to tell, and none to wake the workers.
func TestNotify_OneRoundTrip(t *testing.T) {
	t.Parallel()
	pool, meter := postgrestest.NewMetered(t)
	notices, err := NewNotices(slog.New(slog.DiscardHandler))
	must(t, err)
	notify := func(count int) (trips int64) {
		announcements := make([]ledger.Announcement, 0, count)
		for i := range count {
			announcements = append(announcements, ledger.Announcement{ID: fmt.Sprintf("evt_%d", i)})
		}
		must(t, postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `SELECT 1`); err != nil {
				return err
			}
			before := meter.RoundTrips()
			err := notices.Notify(t.Context(), tx, announcements)
			trips = meter.RoundTrips() - before
			return err
		}))
		return trips
	}
	notify(1) // the first asks for the server's version and prepares the statement
	for _, test := range []struct {
		count int
		want  int64
	}{{0, 0}, {1, 1}, {2, 1}, {3, 1}, {1, 1}} {
		if got := notify(test.count); got != test.want {
			t.Errorf("%d announcements: got %d round trips, want %d", test.count, got, test.want)
		}
	}
}

// TestCancel_RoundTripsOfTheApplyingTransaction: lock, write, tell, commit.
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
		if got := meter.RoundTrips() - before; i > 0 && got > 5 {
			t.Errorf("got %d round trips, want at most 5", got)
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
