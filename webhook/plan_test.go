package webhook_test

import (
	"strings"
	"testing"

	"daesa/internal/postgres/postgrestest"
)

// TestUpkeep_ReadsNoTableWhole: closing what a crash left, and forgetting what is old, cost what there is to do, not
// what was ever received.
func TestUpkeep_ReadsNoTableWhole(t *testing.T) {
	t.Parallel()
	db, plans := postgrestest.NewExplained(t)
	s := open(t, options{db: db})
	if _, err := db.Exec(t.Context(), `
		INSERT INTO deliveries (received_at, source, body_hash, body_bytes, outcome)
		SELECT $1::timestamptz - i * interval '1 minute', '192.0.2.1', '', 0, 'duplicate_skipped' FROM generate_series(1, 20000) AS i`,
		s.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `
		INSERT INTO work (kind, payment_key, opened_at, due_at, deadline, closed_at, closed_as)
		SELECT 'deposit_watch', 'pay-' || i, $1, $1, $1, $1, 'settled' FROM generate_series(1, 5000) AS i`, s.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `ANALYZE`); err != nil {
		t.Fatal(err)
	}
	plans.Forget()
	if _, err := s.handler.Reap(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.handler.Retain(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := plans.WholeTables(t.Context(), db, "deliveries", "work")
	if err != nil || len(found) > 0 {
		t.Errorf("got %v and %d statements that read a table from end to end:\n%s", err, len(found), strings.Join(found, "\n\n"))
	}
}
