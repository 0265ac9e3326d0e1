package postgrestest_test

import (
	"testing"

	"daesa/internal/postgres/postgrestest"
)

// TestPlans_WholeTables: what reads a table from end to end is found, by its rows or by every entry of an index; what looks
// something up, or ends after the first few rows, is not.
func TestPlans_WholeTables(t *testing.T) {
	t.Parallel()
	db, plans := postgrestest.NewExplained(t)
	for _, sql := range []string{
		`CREATE TABLE bells (id bigint PRIMARY KEY, at timestamptz NOT NULL, open boolean NOT NULL, word text NOT NULL)`,
		`INSERT INTO bells SELECT n, now() + n * interval '1 minute', n % 1000 = 0, repeat('x', 500) FROM generate_series(1, 5000) AS n`,
		`CREATE INDEX bells_at ON bells (at)`,
		`CREATE INDEX bells_open ON bells (id) WHERE open`,
		`VACUUM ANALYZE bells`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, sql string
		whole     bool
	}{
		{"every row", `SELECT word FROM bells`, true},
		{"every entry of an index", `SELECT count(at) FROM bells`, true},
		{"every row in the order of an index", `SELECT at, id, count(*) FROM (SELECT at, id FROM bells ORDER BY at) AS e GROUP BY at, id HAVING count(*) > 1`, true},
		{"one by its key", `SELECT word FROM bells WHERE id = 7`, false},
		{"those of an hour", `SELECT word FROM bells WHERE at < now() + interval '1 hour'`, false},
		{"the newest", `SELECT max(at) FROM bells`, false},
		{"the newest few, ties by number", `SELECT word FROM bells ORDER BY at DESC, id DESC LIMIT 3`, false},
		{"all that are open", `SELECT id FROM bells WHERE open`, false},
	} {
		plans.Forget()
		if _, err := db.Exec(t.Context(), c.sql); err != nil {
			t.Fatal(err)
		}
		found, err := plans.WholeTables(t.Context(), db, "bells")
		if err != nil || (len(found) > 0) != c.whole {
			t.Errorf("%s: got %v and %v, want found %t", c.name, found, err, c.whole)
		}
	}
}
