package admission

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"daesa/internal/postgres/postgrestest"
)

// noon is when the tests of the statement begin.
func noon() time.Time { return time.Date(2026, 4, 15, 3, 0, 0, 0, time.UTC) }

// stopwatch is a clock that a test moves.
type stopwatch struct{ at atomic.Int64 }

func (s *stopwatch) Now() time.Time           { return noon().Add(time.Duration(s.at.Load())) }
func (s *stopwatch) advance(by time.Duration) { s.at.Add(int64(by)) }

// webhookRule is the rule for notices as the service has it.
func webhookRule() Rule { return Rule{Name: "webhook", PerMinute: 300, Burst: 300} }

func newDatabase(tb testing.TB, db *pgxpool.Pool, now func() time.Time) *Database {
	tb.Helper()
	shared, err := NewDatabase(SharedConfig{DB: db, Now: now})
	if err != nil {
		tb.Fatal(err)
	}
	return shared
}

func mustSpend(tb testing.TB, shared Shared, rule Rule, source string) time.Duration {
	tb.Helper()
	wait, err := shared.Spend(tb.Context(), rule, source)
	if err != nil {
		tb.Fatal(err)
	}
	return wait
}

func oneOf[T any](tb testing.TB, db *pgxpool.Pool, sql string, args ...any) T {
	tb.Helper()
	rows, err := db.Query(tb.Context(), sql, args...)
	if err != nil {
		tb.Fatal(err)
	}
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		tb.Fatal(err)
	}
	return value
}

// TestDatabase_BurstOfRedeliveries sends 200 notices in 30 s, as many as fail while the gateway is silent.
func TestDatabase_BurstOfRedeliveries(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	for _, test := range []struct {
		name     string
		rule     Rule
		min, max int
	}{
		{"a limit of 300 takes all", webhookRule(), 200, 200},
		{"a limit of 100 takes the burst and what refills in 30 s", Rule{Name: "hundred", PerMinute: 100, Burst: 100}, 149, 151},
	} {
		var clock stopwatch
		shared, passed := newDatabase(t, db, clock.Now), 0
		for range 200 {
			if mustSpend(t, shared, test.rule, "203.0.113.9") == 0 {
				passed++
			}
			clock.advance(150 * time.Millisecond)
		}
		if passed < test.min || passed > test.max {
			t.Errorf("%s: got %d passed, want %d to %d", test.name, passed, test.min, test.max)
		}
	}
}

// TestDatabase_CountsAsThePaceDoes holds the statement against the function that counts in this process.
func TestDatabase_CountsAsThePaceDoes(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	var clock stopwatch
	shared, sources := newDatabase(t, db, clock.Now), 0
	rapid.Check(t, func(rt *rapid.T) {
		rule := Rule{
			Name: "webhook", PerMinute: rapid.SampledFrom([]int{1, 60, 120, 300}).Draw(rt, "per minute"),
			Burst: rapid.IntRange(1, 5).Draw(rt, "burst"),
		}
		sources++
		source, fullAt := time.Duration(sources).String(), time.Time{}
		for range rapid.IntRange(1, 12).Draw(rt, "requests") {
			pause := rapid.SampledFrom([]time.Duration{0, rule.pace().every / 4, rule.pace().every, 3 * rule.pace().every, -time.Hour})
			clock.advance(pause.Draw(rt, "pause").Truncate(time.Microsecond))
			var want time.Duration
			fullAt, want = rule.pace().take(fullAt, clock.Now())
			if got := mustSpend(t, shared, rule, source); got != want {
				rt.Fatalf("got a wait of %s, want %s", got, want)
			}
		}
	})
}

// TestDatabase_RefusalWritesNothing: neither what was spent nor a lock; so a source that keeps trying costs reading, and
// is let in as soon as there is one request to spend.
func TestDatabase_RefusalWritesNothing(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	var clock stopwatch
	shared, rule := newDatabase(t, db, clock.Now), Rule{Name: "webhook", PerMinute: 60, Burst: 2}
	for range 2 {
		if wait := mustSpend(t, shared, rule, "a"); wait != 0 {
			t.Fatalf("got a wait of %s within the burst", wait)
		}
	}
	const row = `SELECT ctid::text || xmin::text || xmax::text || full_at::text FROM rate_limits WHERE source = 'a'`
	before := oneOf[string](t, db, row)
	for range 50 {
		if wait := mustSpend(t, shared, rule, "a"); wait != time.Second {
			t.Fatalf("got a wait of %s, want a second", wait)
		}
	}
	if after := oneOf[string](t, db, row); after != before {
		t.Errorf("50 refusals made %s of %s", after, before)
	}
	if wait := mustSpend(t, shared, rule, "b"); wait != 0 {
		t.Errorf("another source has to wait %s", wait)
	}
	if wait := mustSpend(t, shared, Rule{Name: "confirm", PerMinute: 60, Burst: 2}, "a"); wait != 0 {
		t.Errorf("under another rule it has to wait %s", wait)
	}
	clock.advance(time.Second - time.Microsecond)
	if wait := mustSpend(t, shared, rule, "a"); wait != time.Microsecond {
		t.Errorf("got a wait of %s a microsecond too early", wait)
	}
	clock.advance(time.Microsecond)
	if wait := mustSpend(t, shared, rule, "a"); wait != 0 {
		t.Errorf("got a wait of %s at the instant that was told", wait)
	}
}

// TestDatabase_Concurrent lets several instances spend one allowance at once. Not one more passes than there is.
func TestDatabase_Concurrent(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	const burst, instances, each = 40, 6, 30
	rule := Rule{Name: "webhook", PerMinute: 60, Burst: burst}
	var clock stopwatch
	var passed atomic.Int64
	var group sync.WaitGroup
	for range instances {
		shared := newDatabase(t, db, clock.Now)
		group.Go(func() {
			for range each {
				wait, err := shared.Spend(t.Context(), rule, "203.0.113.9")
				if err != nil {
					t.Error(err)
				}
				if wait == 0 {
					passed.Add(1)
				}
			}
		})
	}
	group.Wait()
	if got := passed.Load(); got != burst {
		t.Errorf("got %d of %d passed, want exactly %d", got, instances*each, burst)
	}
}

// TestDatabase_ItsOwnClock: without a clock of a test's, the database says what time it is.
func TestDatabase_ItsOwnClock(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	shared, rule := newDatabase(t, db, nil), Rule{Name: "webhook", PerMinute: 1, Burst: 1}
	if wait := mustSpend(t, shared, rule, "a"); wait != 0 {
		t.Fatalf("got a wait of %s for the first request", wait)
	}
	if wait := mustSpend(t, shared, rule, "a"); wait <= 0 || wait > time.Minute {
		t.Errorf("got a wait of %s, want up to a minute", wait)
	}
	if ahead := oneOf[bool](t, db, `SELECT full_at BETWEEN now() + '30 seconds' AND now() + '61 seconds' FROM rate_limits`); !ahead {
		t.Error("the allowance is not whole again in a minute by the database's clock")
	}
}

// TestDatabase_OneRoundTrip: once the statement is known to the connection, a question is one round trip.
func TestDatabase_OneRoundTrip(t *testing.T) {
	t.Parallel()
	db, meter := postgrestest.NewMetered(t)
	shared, rule := newDatabase(t, db, nil), Rule{Name: "webhook", PerMinute: 60, Burst: 3}
	mustSpend(t, shared, rule, "a")
	for _, passes := range []bool{true, true, false} {
		meter.Reset()
		if wait := mustSpend(t, shared, rule, "a"); (wait == 0) != passes || meter.RoundTrips() != 1 {
			t.Errorf("got a wait of %s in %d round trips, want passed = %v in one", wait, meter.RoundTrips(), passes)
		}
	}
}

// TestTidy takes away those whose allowance is whole again, whatever their number, and nobody else.
func TestTidy(t *testing.T) {
	t.Parallel()
	db, plans := postgrestest.NewExplained(t)
	clock := &stopwatch{}
	const many = 3*tidyBatch + 7
	if _, err := db.Exec(t.Context(), `
		INSERT INTO rate_limits (rule, source, full_at)
		SELECT CASE i % 2 WHEN 0 THEN 'confirm' ELSE 'webhook' END, 'source ' || i,
			$1::timestamptz + CASE i % 10 WHEN 0 THEN interval '1 minute' ELSE interval '-1 second' END
		FROM generate_series(1, $2::integer) AS i`, noon(), many); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `ANALYZE rate_limits`); err != nil {
		t.Fatal(err)
	}
	worker, err := NewTidyWorker(TidyConfig{DB: db, Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	plans.Forget()
	if err := worker.Work(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	whole, err := plans.WholeTables(t.Context(), db, "rate_limits")
	if err != nil || len(whole) > 0 {
		t.Errorf("got %v and statements that read the table from end to end: %s", err, whole)
	}
	if got := oneOf[int](t, db, `SELECT count(*) FROM rate_limits WHERE full_at > $1`, clock.Now()); got != many/10 {
		t.Errorf("got %d sources left that have something to refill, want all %d", got, many/10)
	}
	if got := oneOf[int](t, db, `SELECT count(*) FROM rate_limits`); got != many/10 {
		t.Errorf("got %d sources left, want %d", got, many/10)
	}
	clock.advance(2 * time.Minute)
	if err := worker.Work(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got := oneOf[int](t, db, `SELECT count(*) FROM rate_limits`); got != 0 {
		t.Errorf("got %d sources left, want none", got)
	}
}

// race does one thing while another transaction has changed the row of a source, and commits that once the first waits
// for it.
func race(t *testing.T, db *pgxpool.Pool, fullAt time.Time, act func() error) error {
	t.Helper()
	other, err := db.Begin(t.Context()) //nolint:forbidigo // it is held open on purpose
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback(context.WithoutCancel(t.Context()))
	if _, err := other.Exec(t.Context(), `UPDATE rate_limits SET full_at = $1`, fullAt); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- act() }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !oneOf[bool](t, db, `SELECT EXISTS (SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND datname = current_database())`) {
		select {
		case err := <-done:
			t.Fatalf("did not wait for the row: %v", err)
		case <-tick.C:
		}
	}
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return <-done
}

// TestDatabase_LostRace: a request that had something to spend when it began, and whose row was spent meanwhile, is
// refused.
func TestDatabase_LostRace(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	var clock stopwatch
	shared, rule := newDatabase(t, db, clock.Now), Rule{Name: "webhook", PerMinute: 60, Burst: 3}
	mustSpend(t, shared, rule, "a")
	var wait time.Duration
	err := race(t, db, clock.Now().Add(3*time.Second), func() (err error) {
		wait, err = shared.Spend(t.Context(), rule, "a")
		return err
	})
	if err != nil || wait == 0 {
		t.Errorf("got a wait of %s and %v, want refused", wait, err)
	}
}

// TestTidy_LostRace: a source that sends at the moment at which it would be taken away stays.
func TestTidy_LostRace(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	clock := &stopwatch{}
	mustSpend(t, newDatabase(t, db, clock.Now), webhookRule(), "a")
	clock.advance(time.Hour)
	worker, err := NewTidyWorker(TidyConfig{DB: db, Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := race(t, db, clock.Now().Add(time.Second), func() error { return worker.Work(t.Context(), nil) }); err != nil {
		t.Fatal(err)
	}
	if got := oneOf[int](t, db, `SELECT count(*) FROM rate_limits`); got != 1 {
		t.Errorf("got %d sources left, want the one that sends", got)
	}
}
