package capacity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// wrote is what PostgreSQL counted of one table: rows added, and changed, and how many of these without touching an index.
type wrote struct {
	Table string `db:"relname"`
	Added int64  `db:"added"`
	Moved int64  `db:"moved"`
	Hot   int64  `db:"hot"`
}

// books is what a database holds after an arm.
type books struct {
	tables     map[string]wrote
	commits    int64
	outcomes   map[string]int // of deliveries
	canceled   int            // copies with a cancel of the whole
	jobs       int            // that River has worked
	violations []ledger.Violation
}

// moneyTables are those that an applied cancel adds rows to, and nothing else does meanwhile. Whatever applied it, each must
// have the same number of them.
func moneyTables() []string {
	return []string{"cancels", "deliveries", "events", "journal_transactions", "journal_entries"}
}

// readBooks reads a database when nobody uses it any more, so that PostgreSQL has counted everything.
func readBooks(ctx context.Context, address string) (b books, err error) {
	db, err := postgres.Open(ctx, postgres.Config{URL: address, MaxConns: 2, ApplicationName: "lab"})
	if err != nil {
		return b, err
	}
	defer db.Close()
	if err := alone(ctx, db); err != nil {
		return b, err
	}
	if b.tables, err = readTables(ctx, db); err != nil {
		return b, err
	}
	if b.outcomes, err = readOutcomes(ctx, db); err != nil {
		return b, err
	}
	counted, err := readOne[struct {
		Commits  int64 `db:"commits"`
		Canceled int   `db:"canceled"`
		Jobs     int   `db:"jobs"`
	}](ctx, db, `
		SELECT (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS commits,
			(SELECT count(*)::int FROM payments p
			 JOIN orders o ON o.order_id = p.order_id AND o.status = 'canceled'
			 JOIN cancels c ON c.payment_key = p.payment_key AND c.amount = p.captured
			 WHERE p.status = 'canceled' AND p.canceled = p.captured AND p.payment_key ~ '^[0-9]+$') AS canceled,
			(SELECT count(*)::int FROM river.river_job WHERE finalized_at IS NOT NULL) AS jobs`)
	if err != nil {
		return b, err
	}
	b.commits, b.canceled, b.jobs = counted.Commits, counted.Canceled, counted.Jobs
	b.violations, err = ledger.Check(ctx, db)
	return b, err
}

// alone waits until all sessions but ours have ended: what a session has done is counted at its end, if not before.
func alone(ctx context.Context, db *pgxpool.Pool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	ctx, stop := context.WithTimeout(ctx, answerWait)
	defer stop()
	for {
		found, err := readOne[struct {
			Others int `db:"others"`
		}](ctx, db, `
			SELECT count(*)::int AS others FROM pg_stat_activity
			WHERE datname = current_database() AND backend_type = 'client backend' AND application_name <> 'lab'`)
		if err != nil || found.Others == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the sessions to end: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

func readTables(ctx context.Context, db *pgxpool.Pool) (map[string]wrote, error) {
	rows, err := db.Query(ctx, `
		SELECT relname::text, n_tup_ins AS added, n_tup_upd AS moved, n_tup_hot_upd AS hot
		FROM pg_stat_user_tables`)
	if err != nil {
		return nil, fmt.Errorf("read what was written: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[wrote])
	if err != nil {
		return nil, fmt.Errorf("read what was written: %w", err)
	}
	tables := make(map[string]wrote, len(list))
	for _, w := range list {
		tables[w.Table] = w
	}
	return tables, nil
}

func readOutcomes(ctx context.Context, db *pgxpool.Pool) (map[string]int, error) {
	type counted struct {
		Outcome string `db:"outcome"`
		Rows    int    `db:"rows"`
	}
	rows, err := db.Query(ctx, `
		SELECT outcome, count(*)::int AS rows FROM deliveries
		WHERE transmission_id <> @model
		GROUP BY outcome`, pgx.StrictNamedArgs{"model": transmissionName.of(0)})
	if err != nil {
		return nil, fmt.Errorf("count deliveries: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[counted])
	if err != nil {
		return nil, fmt.Errorf("count deliveries: %w", err)
	}
	found := make(map[string]int, len(list))
	for _, c := range list {
		found[c.Outcome] = c.Rows
	}
	return found, nil
}

func readOne[T any](ctx context.Context, db *pgxpool.Pool, sql string) (found T, err error) {
	rows, err := db.Query(ctx, sql)
	if err == nil {
		found, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
	}
	if err != nil {
		return found, fmt.Errorf("read the books: %w", err)
	}
	return found, nil
}

// server is the PostgreSQL that everything runs on.
type server struct {
	db         *pgxpool.Pool
	postmaster int
}

// watchServer finds the server's first process: the parent of whoever serves us.
func watchServer(ctx context.Context, db *pgxpool.Pool) (s server, err error) {
	found, err := readOne[struct {
		Pid int `db:"pid"`
	}](ctx, db, `SELECT pg_backend_pid() AS pid`)
	if err != nil {
		return s, err
	}
	_, parent, err := statOf(found.Pid)
	return server{db, parent}, err
}

// settle writes everything to disk, so that no arm pays for the one before it.
func (s server) settle(ctx context.Context) error {
	if _, err := s.db.Exec(ctx, `CHECKPOINT`); err != nil {
		return fmt.Errorf("write everything to disk: %w", err)
	}
	return nil
}

// wal is how many bytes of log the server has written.
func (s server) wal(ctx context.Context) (int64, error) {
	found, err := readOne[struct {
		Bytes int64 `db:"bytes"`
	}](ctx, s.db, `SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS bytes`)
	return found.Bytes, err
}

// processorReads bounds how often the server's processes are read until none of them ends meanwhile.
const processorReads = 20

// processor is what all processes of the server have used, those that have ended included, and how many there are. What
// a process has used passes to the first one when it ends; had one ended while they were read, it could be counted twice,
// or not at all, so they are read again.
func (s server) processor() (sum time.Duration, processes int, err error) {
	for range processorReads {
		before, _, err := statOf(s.postmaster)
		if err != nil {
			return 0, 0, err
		}
		if sum, processes, err = s.alive(); err != nil {
			return 0, 0, err
		}
		after, _, err := statOf(s.postmaster)
		if err != nil {
			return 0, 0, err
		}
		if before.children == after.children {
			return sum + after.own + after.children, processes + 1, nil
		}
	}
	return 0, 0, errors.New("the server's processes end faster than they can be read")
}

// alive is what the processes that the first one has started, and that still run, have used.
func (s server) alive() (sum time.Duration, processes int, err error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, 0, fmt.Errorf("look at the server: %w", err)
	}
	for _, path := range all {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		if used, parent, err := statOf(pid); err == nil && parent == s.postmaster { // an error: it has ended
			sum += used.own
			processes++
		}
	}
	return sum, processes, nil
}

// used is the processor time of a process, and of its children that have ended.
type used struct{ own, children time.Duration }

// statTick is the unit of the times in /proc/<pid>/stat on every platform that Go runs on.
const statTick = 10 * time.Millisecond

// statOf reads /proc/<pid>/stat.
func statOf(pid int) (u used, parent int, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, 0, fmt.Errorf("look at process %d: %w", pid, err)
	}
	_, after, _ := strings.Cut(string(content), ") ") // the name before may hold anything
	fields := strings.Fields(after)
	if len(fields) < 15 {
		return u, 0, fmt.Errorf("look at process %d: %q is not what was expected", pid, content)
	}
	ticks := func(n int) time.Duration {
		count, _ := strconv.ParseInt(fields[n], 10, 64) // a number, by its place
		return time.Duration(count) * statTick
	}
	parent, err = strconv.Atoi(fields[1])
	if err != nil {
		return u, 0, fmt.Errorf("look at process %d: %w", pid, err)
	}
	return used{ticks(11) + ticks(12), ticks(13) + ticks(14)}, parent, nil
}

func selfPid() int { return os.Getpid() }
func cores() int   { return runtime.NumCPU() }
