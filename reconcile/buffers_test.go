package reconcile_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres/postgrestest"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// counted is a shop whose database tells at once which pages were touched.
func counted(t *testing.T, payments int) *shop {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(postgrestest.NewURL(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 4
	cfg.AfterRelease = func(c *pgx.Conn) bool {
		_, err := c.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`)
		return err == nil
	}
	db, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	s := setup(t, func(c *reconcile.Config, _ *tosssim.Config) {
		c.DB, c.OpeningAt, c.Stretch = db, noon().Add(-120*24*time.Hour), 5_000
	})
	s.remember(payments)
	s.audit(reconcile.ScopeRecent) // the first compares everything
	s.exec(`VACUUM ANALYZE`)
	s.audit(reconcile.ScopeRecent)
	return s
}

// pages counts the pages of our tables and indexes that an audit of a minute touches.
func (s *shop) pages() int {
	s.t.Helper()
	touched := func() int {
		var held []*pgxpool.Conn // once every connection can be had, every session has told
		for range s.db.Config().MaxConns {
			c, err := s.db.Acquire(s.t.Context())
			s.must(err)
			held = append(held, c)
		}
		for _, c := range held {
			c.Release()
		}
		return s.number(`SELECT sum(heap_blks_hit + heap_blks_read + COALESCE(idx_blks_hit + idx_blks_read, 0)
			+ COALESCE(toast_blks_hit + toast_blks_read, 0))::bigint FROM pg_statio_user_tables WHERE schemaname = 'public'`)
	}
	before := touched()
	s.audit(reconcile.ScopeRecent)
	return touched() - before
}

// TestEveryMinute_TouchesPagesByWhatChanged: a history twenty times as long takes no more pages for each key that
// changed, whether that key comes to what it came to or to something else.
func TestEveryMinute_TouchesPagesByWhatChanged(t *testing.T) {
	t.Parallel()
	const keys = 100
	changes := []struct {
		name string
		most int // percent of the short history; opening and resolving mismatches, which have a history too, is in the others
		sql  string
	}{
		{"marked", 110, `INSERT INTO audit_dirty (subject, key, payment_key)
			SELECT 'cancel', transaction_key, payment_key FROM cancels ORDER BY hashtext(transaction_key) LIMIT 100`},
		{"sold", 110, `UPDATE captures SET captured_at = captured_at + interval '1 second' WHERE payment_key IN
			(SELECT payment_key FROM captures ORDER BY hashtext(payment_key) LIMIT 100)`},
		{"no longer listed", 130, `UPDATE mirror SET missing_since = '2026-11-30 02:00:00+00' WHERE transaction_key IN
			(SELECT transaction_key FROM cancels ORDER BY hashtext(transaction_key) LIMIT 100)`},
		{"listed again", 130, `UPDATE mirror SET missing_since = NULL WHERE missing_since IS NOT NULL`},
	}
	touched := make(map[string][]int)
	for _, payments := range []int{1_500, 30_000} {
		s := counted(t, payments)
		idle := s.pages()
		for _, c := range changes {
			s.exec(c.sql)
			touched[c.name] = append(touched[c.name], s.pages()-idle)
		}
		if st := s.audit(reconcile.ScopeRecent); st.Sums[0].Canceled.Count != payments/10 || len(st.Lines) != 1 {
			t.Errorf("got %+v %+v", st.Sums, st.Lines)
		}
	}
	for _, c := range changes {
		p := touched[c.name]
		t.Logf("%s: %d pages for %d keys, then %d", c.name, p[0], keys, p[1])
		if 100*p[1] > c.most*p[0] {
			t.Errorf("%s: got %d pages in the long history, %d in the short one", c.name, p[1], p[0])
		}
	}
}
