package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
)

// storiesOnPostgres is how many stories the database is told: each takes some tens of milliseconds.
const storiesOnPostgres = 40

// stored is the real ledger on a database that all stories share.
type stored struct {
	ctx    context.Context //nolint:containedctx // of the test
	pool   *pgxpool.Pool
	ledger *Ledger
	now    time.Time
	prefix string
	fail   func(format string, args ...any)
}

// errCrash rolls back what was done up to the commit.
var errCrash = errors.New("crash")

func (s *stored) do(now time.Time, fn func(tx pgx.Tx) error) {
	s.now = now
	if err := postgres.InTx(s.ctx, s.pool, fn); err != nil && !errors.Is(err, errCrash) {
		s.fail("%v", err)
	}
}

func (s *stored) createOrder(o Order) {
	s.do(o.CreatedAt, func(tx pgx.Tx) error {
		_, err := s.ledger.CreateOrder(s.ctx, tx, o)
		return err
	})
}

func (s *stored) intend(key, order string, amount Money, now time.Time) (attempt int, started bool) {
	s.do(now, func(tx pgx.Tx) error {
		in, err := s.ledger.Intend(s.ctx, tx, Intent{PaymentKey: key, OrderID: order, Amount: amount})
		attempt, started = in.Payment.Attempt, in.Started
		if errors.Is(err, ErrOrderTaken) {
			return errCrash
		}
		return err
	})
	return attempt, started
}

func (s *stored) record(o Observation, crash bool, now time.Time) {
	s.do(now, func(tx pgx.Tx) error {
		_, err := s.ledger.Record(s.ctx, tx, o)
		if crash || errors.Is(err, ErrNotFound) {
			return errCrash
		}
		return err
	})
}

func (s *stored) owe(d debt, now time.Time) {
	s.do(now, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		QueueWork(b, Work{
			Kind: d.kind, PaymentKey: d.payment, OrderID: d.order, TransactionKey: d.transactionKey,
			DueAt: now, Deadline: now.Add(91 * time.Hour),
		}, now)
		return tx.SendBatch(s.ctx, b).Close()
	})
}

// mine reads something of the present story only.
func mine[T any](s *stored, sql string, as pgx.RowToFunc[T]) []T {
	rows, err := s.pool.Query(s.ctx, sql, pgx.StrictNamedArgs{"mine": "pk\\_" + s.prefix + "\\_%"})
	if err != nil {
		s.fail("%v", err)
	}
	found, err := pgx.CollectRows(rows, as)
	if err != nil {
		s.fail("%v", err)
	}
	return found
}

func (s *stored) owed() []debt {
	return mine(s, `
		SELECT kind, payment_key, COALESCE(order_id, ''), COALESCE(transaction_key, '')
		FROM work WHERE closed_at IS NULL AND payment_key LIKE @mine ORDER BY work_id`,
		func(row pgx.CollectableRow) (d debt, err error) {
			err = row.Scan(&d.kind, &d.payment, &d.order, &d.transactionKey)
			return d, err
		})
}

func (s *stored) findings() []Kind {
	return mine(s, `SELECT kind FROM mismatches WHERE payment_key LIKE @mine`, pgx.RowTo[Kind])
}

func (s *stored) payment(key string) (Payment, bool) {
	p, _, err := Load(s.ctx, s.pool, key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		s.fail("%v", err)
	}
	return p, err == nil
}

func (s *stored) order(id string) Order {
	o, err := LoadOrder(s.ctx, s.pool, id)
	if err != nil {
		s.fail("%v", err)
	}
	return o
}

// silent delivers nothing.
type silent struct{}

func (silent) Notify(context.Context, *pgx.Batch, []Announcement) error { return nil }

// TestModel_OnPostgres tells stories of the same kind to the real ledger: the statements must do what the core
// says, and the whole database must stay sound.
func TestModel_OnPostgres(t *testing.T) {
	t.Parallel()
	s := &stored{ctx: t.Context(), pool: postgrestest.New(t)}
	l, err := New(Config{
		Notify: silent{}, Metrics: NewMetrics(prometheus.NewPedanticRegistry()), Now: func() time.Time { return s.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.ledger = l
	for i := range storiesOnPostgres {
		script := scripts().Example(i)[:90]
		s.prefix = fmt.Sprintf("s%d", i)
		s.fail = func(format string, args ...any) {
			t.Helper()
			t.Fatalf("story %d: %s\ntold by %v", i, fmt.Sprintf(format, args...), script)
		}
		tell(script, s.prefix, s, s.fail)
		if i%8 != 7 {
			continue // the check reads the whole database, all stories so far
		}
		violations, err := Check(t.Context(), s.pool)
		if err != nil || len(violations) > 0 {
			s.fail("got %v and %v, want sound books", violations, err)
		}
	}
}
