package harness

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/pgclient/tosssim"
)

// Money is captures or cancels, in number and in won.
type Money struct {
	Count int   `db:"count"`
	Won   int64 `db:"won"`
}

func (m Money) minus(earlier Money) Money { return Money{m.Count - earlier.Count, m.Won - earlier.Won} }

// String writes number and won.
func (m Money) String() string { return fmt.Sprintf("%d of %d won", m.Count, m.Won) }

// Snapshot is what every witness but the load itself has counted since the beginning of the bench.
type Snapshot struct {
	Metrics  Metrics
	Calls    map[tosssim.Op]int // that arrived at the gateway
	Outcomes map[string]int     // rows of deliveries, by outcome

	Captures, Cancels               Money // in the books
	GatewayCaptures, GatewayCancels Money
	Open                            int // rows of work that are still owed an answer about a payment
}

func (s Snapshot) minus(earlier Snapshot) Snapshot {
	since := Snapshot{
		Metrics: s.Metrics.minus(earlier.Metrics), Calls: make(map[tosssim.Op]int), Outcomes: make(map[string]int),
		Captures: s.Captures.minus(earlier.Captures), Cancels: s.Cancels.minus(earlier.Cancels),
		GatewayCaptures: s.GatewayCaptures.minus(earlier.GatewayCaptures), GatewayCancels: s.GatewayCancels.minus(earlier.GatewayCancels),
		Open: s.Open,
	}
	for op, n := range s.Calls {
		since.Calls[op] = n - earlier.Calls[op]
	}
	for outcome, n := range s.Outcomes {
		if n -= earlier.Outcomes[outcome]; n > 0 {
			since.Outcomes[outcome] = n
		}
	}
	return since
}

// settleMax is how long requests and calls may go on after the last answer.
const settleMax = time.Minute

// snapshot asks every witness at one moment: while no request and no call of the service's is under way, and while
// none has begun between the first witness and the last.
func (b *Bench) snapshot(ctx context.Context) (s Snapshot, err error) {
	ctx, stop := context.WithTimeout(ctx, settleMax)
	defer stop()
	err = Until(ctx, "the service to be at rest", func() (bool, error) {
		before, err := b.metrics(ctx)
		if err != nil || before.Of("daesa_web_in_flight_requests")+before.Of("daesa_pgclient_in_flight_calls") > 0 {
			return false, err
		}
		if s, err = b.count(ctx); err != nil {
			return false, err
		}
		s.Metrics, err = b.metrics(ctx)
		return err == nil && sameCalls(before, s.Metrics), err
	})
	return s, err
}

func sameCalls(a, b Metrics) bool {
	for _, name := range []string{"daesa_pgclient_answers_total", "daesa_pgclient_in_flight_calls", "daesa_web_request_seconds_count"} {
		if a.Of(name) != b.Of(name) {
			return false
		}
	}
	return true
}

// metrics adds up all instances.
func (b *Bench) metrics(ctx context.Context) (sum Metrics, err error) {
	for n, i := range b.Instances {
		m, err := i.Metrics(ctx)
		if err != nil {
			return sum, err
		}
		if n == 0 {
			sum = m
		} else {
			sum = sum.plus(m)
		}
	}
	return sum, nil
}

// count asks the gateway and the tables.
func (b *Bench) count(ctx context.Context) (s Snapshot, err error) {
	if s.Calls, err = b.Gateway.Counts(ctx); err != nil {
		return s, err
	}
	totals, err := b.Gateway.Totals(ctx)
	if err != nil {
		return s, err
	}
	s.GatewayCaptures = Money{totals.Captures, totals.Captured["KRW"]}
	s.GatewayCancels = Money{totals.Cancels, totals.Canceled["KRW"]}
	if s.Captures, err = one[Money](ctx, b, `SELECT count(*)::int AS count, COALESCE(sum(amount), 0)::bigint AS won FROM captures`); err != nil {
		return s, err
	}
	if s.Cancels, err = one[Money](ctx, b, `SELECT count(*)::int AS count, COALESCE(sum(amount), 0)::bigint AS won FROM cancels`); err != nil {
		return s, err
	}
	open, err := one[struct {
		Rows int `db:"rows"`
	}](ctx, b, `SELECT count(*)::int AS rows FROM work WHERE closed_at IS NULL AND kind IN ('confirm_unknown', 'cancel_claimed', 'cancel_listed')`)
	if err != nil {
		return s, err
	}
	s.Open = open.Rows
	s.Outcomes, err = b.outcomes(ctx)
	return s, err
}

func (b *Bench) outcomes(ctx context.Context) (map[string]int, error) {
	type counted struct {
		Outcome string `db:"outcome"`
		Rows    int    `db:"rows"`
	}
	rows, err := b.DB.Query(ctx, `SELECT outcome, count(*)::int AS rows FROM deliveries GROUP BY outcome`)
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

// one reads a single row.
func one[T any](ctx context.Context, b *Bench, sql string) (found T, err error) {
	rows, err := b.DB.Query(ctx, sql)
	if err == nil {
		found, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
	}
	if err != nil {
		return found, fmt.Errorf("count in the books: %w", err)
	}
	return found, nil
}
