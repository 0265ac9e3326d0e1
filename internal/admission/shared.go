package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Shared is where all instances count together what each source has spent.
type Shared interface {
	// Spend takes one request from what the source has left under the rule. When nothing is left it takes nothing and
	// says how long until there is.
	Spend(ctx context.Context, rule Rule, source string) (wait time.Duration, err error)
}

// errBusy means that every connection for this was in use for as long as the question could wait.
var errBusy = errors.New("admission: no connection was free in time")

// SharedConfig holds what a [Database] needs.
type SharedConfig struct {
	// DB is a pool of the limits' own: requests must not wait for the connections that money needs, nor money for those
	// of a flood.
	DB *pgxpool.Pool
	// Now is the clock of tests; nil is the database's, which is the same for all instances.
	Now func() time.Time
}

// Database is the [Shared] of all instances over one PostgreSQL: the table rate_limits.
type Database struct {
	cfg SharedConfig
}

// NewDatabase returns a Database.
func NewDatabase(cfg SharedConfig) (*Database, error) {
	if cfg.DB == nil {
		return nil, errors.New("admission: Database needs a DB")
	}
	return &Database{cfg: cfg}, nil
}

// spent is what the statement says.
type spent struct {
	Passed bool
	Wait   time.Duration
}

// spendStatement takes one request from what a source has left. It is asked of every request, so its arguments are
// numbered: the instant or NULL, rule, source, the interval, what may be ahead of a request that passes, and what no
// clock of today has written.
const spendStatement = `
	WITH asked AS MATERIALIZED (
		SELECT clock.now, r.full_at
		FROM (SELECT COALESCE($1::timestamptz, now()) AS now) AS clock
		LEFT JOIN rate_limits r ON r.rule = $2 AND r.source = $3 AND r.full_at <= clock.now + $6::interval
	), taken AS (
		INSERT INTO rate_limits AS r (rule, source, full_at)
		SELECT $2, $3, now + $4::interval
		FROM asked
		WHERE full_at IS NULL OR full_at <= now + $5::interval
		ON CONFLICT (rule, source) DO UPDATE
		SET full_at = CASE
			WHEN r.full_at > EXCLUDED.full_at - $4 + $6 THEN EXCLUDED.full_at
			ELSE greatest(r.full_at + $4, EXCLUDED.full_at) END
		WHERE r.full_at <= EXCLUDED.full_at - $4 + $5 OR r.full_at > EXCLUDED.full_at - $4 + $6
		RETURNING full_at
	)
	SELECT EXISTS (SELECT FROM taken) AS passed, COALESCE(full_at - now - $5, $4) AS wait
	FROM asked`

// Spend is one statement and one round trip. A request that passes locks its row, adds one interval to it and lets it
// go; one that is refused reads, and writes nothing, unless it lost a race: full_at only ever moves ahead, so what an old
// snapshot refuses is refused. The table is unlogged, so that a commit writes and waits for nothing.
func (d *Database) Spend(ctx context.Context, rule Rule, source string) (time.Duration, error) {
	conn, err := d.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	pace := rule.pace()
	rows, err := conn.Query(ctx, spendStatement, d.now(), rule.Name, source, pace.every, pace.window-pace.every, pace.window+clockTolerance)
	if err != nil {
		return 0, fmt.Errorf("spend one request of %s under rule %s: %w", source, rule.Name, err)
	}
	answer, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[spent])
	switch {
	case err != nil:
		return 0, fmt.Errorf("spend one request of %s under rule %s: %w", source, rule.Name, err)
	case answer.Passed:
		return 0, nil
	case answer.Wait <= 0: // by what was known before the requests that it lost to
		return pace.every, nil
	}
	return answer.Wait, nil
}

// acquire takes a connection and tells a pool that is in use from a database that does not let us in.
func (d *Database) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	conn, err := d.cfg.DB.Acquire(ctx)
	if err == nil {
		return conn, nil
	}
	if stat := d.cfg.DB.Stat(); ctx.Err() != nil && stat.AcquiredConns() >= stat.MaxConns() {
		err = errors.Join(errBusy, err)
	}
	return nil, fmt.Errorf("take a connection for a rate limit: %w", err)
}

// now is the instant to count by; nil lets the database say.
func (d *Database) now() *time.Time {
	if d.cfg.Now == nil {
		return nil
	}
	now := d.cfg.Now()
	return &now
}
