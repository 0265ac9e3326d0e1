package admission

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
)

// free is a database that lets everything pass and takes no time.
type free struct{}

// Spend lets a request pass.
func (free) Spend(context.Context, Rule, string) (wait time.Duration, err error) { return 0, nil }

// BenchmarkRateLimit_Shared is what a question costs in this process: all but the database.
func BenchmarkRateLimit_Shared(b *testing.B) {
	limit := newRateLimit(b, RateConfig{Rules: webhook(perMinuteMost, perMinuteMost), Shared: free{}, Enforce: true})
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		limit.Allow(b.Context(), addr(n%1000))
	}
}

// BenchmarkDatabase is what a question costs in PostgreSQL, beside the cheapest statement there is: in time, in the
// server's own work, and in log.
func BenchmarkDatabase(b *testing.B) {
	url := postgrestest.NewURL(b)
	for _, of := range []struct {
		name    string
		rule    Rule // none asks for a constant
		sources int
	}{
		{"select 1", Rule{}, 1},
		{"passes, 1000 sources", Rule{Name: "fast", PerMinute: perMinuteMost, Burst: perMinuteMost}, 1000},
		{"passes, one source", Rule{Name: "fast", PerMinute: perMinuteMost, Burst: perMinuteMost}, 1},
		{"refused, one source", Rule{Name: "slow", PerMinute: 1, Burst: 1}, 1},
	} {
		ask := func(ctx context.Context, db *pgxpool.Pool, shared *Database, n int) error {
			if of.rule.Name != "" {
				_, err := shared.Spend(ctx, of.rule, addr(n%of.sources).String())
				return err
			}
			rows, err := db.Query(ctx, `SELECT $1::integer`, 1)
			if err != nil {
				return err
			}
			_, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
			return err
		}
		b.Run(of.name+"/one by one", func(b *testing.B) {
			db := limitPool(b, url, 1)
			shared, ctx, n := newDatabase(b, db, nil), b.Context(), 0
			for range 10 { // what is prepared once is not prepared again
				if err := ask(ctx, db, shared, 0); err != nil {
					b.Fatal(err)
				}
			}
			wal, cpu := walBytes(b, db), serverWork(b, db)
			b.ReportAllocs()
			for b.Loop() {
				if err := ask(ctx, db, shared, n); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric(float64(walBytes(b, db)-wal)/float64(b.N), "wal-B/op")
			b.ReportMetric(float64(serverWork(b, db)-cpu)/float64(b.N), "server-ns/op")
		})
		b.Run(of.name+"/parallel", func(b *testing.B) {
			db := limitPool(b, url, 4)
			shared, ctx := newDatabase(b, db, nil), b.Context()
			b.ReportAllocs()
			b.SetParallelism(4)
			b.RunParallel(func(pb *testing.PB) {
				for n := 0; pb.Next(); n++ {
					if err := ask(ctx, db, shared, n); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// limitPool is a pool as the service has it for its limits.
func limitPool(b *testing.B, url string, most int32) *pgxpool.Pool {
	b.Helper()
	db, err := postgres.Open(b.Context(), postgres.Config{URL: url, MaxConns: most, RelaxedCommit: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(db.Close)
	return db
}

// walBytes is how much log the server has written.
func walBytes(b *testing.B, db *pgxpool.Pool) int64 {
	b.Helper()
	return oneOf[int64](b, db, `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint`)
}

// serverWork is how long the server has worked for the only connection of the pool.
func serverWork(b *testing.B, db *pgxpool.Pool) time.Duration {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", oneOf[int](b, db, `SELECT pg_backend_pid()`)))
	if err != nil {
		b.Skip("needs the server on this machine, and Linux")
	}
	_, after, _ := strings.Cut(string(raw), ") ")
	const user, system = 11, 12 // of the fields after the name
	const tick = 10 * time.Millisecond
	worked := time.Duration(0)
	for _, n := range []int{user, system} {
		field, err := strconv.Atoi(strings.Fields(after)[n])
		if err != nil {
			b.Fatal(err)
		}
		worked += time.Duration(field) * tick
	}
	return worked
}
