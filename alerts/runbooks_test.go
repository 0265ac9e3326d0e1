package alerts

import (
	"path/filepath"
	"regexp"
	"testing"

	"daesa/internal/postgres/postgrestest"
)

// TestRunbooks_TheirQueriesRun plans every query of every runbook on a migrated database, so that the one that is
// needed at night is not the one that names a column of last year. Nothing is changed: EXPLAIN does not execute.
func TestRunbooks_TheirQueriesRun(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	block := regexp.MustCompile("(?s)```sql\n(.*?)```")
	for _, path := range runbooks(t) {
		queries := block.FindAllStringSubmatch(read(t, path), -1)
		if len(queries) == 0 {
			t.Errorf("%s has no query", path)
		}
		for _, query := range queries {
			if _, err := db.Exec(t.Context(), "EXPLAIN "+query[1]); err != nil {
				t.Errorf("%s: %v\n%s", filepath.Base(path), err, query[1])
			}
		}
	}
}
