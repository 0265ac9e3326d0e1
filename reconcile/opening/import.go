package opening

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/time/rate"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// ErrRunning reports that another import is being written.
var ErrRunning = errors.New("another import is running")

// Asker asks the gateway about one payment, on the path that leaves room for live traffic.
type Asker interface {
	Recover(ctx context.Context, channel ledger.Channel, paymentKey string) (ledger.Observation, error)
}

// Config is what an Importer needs.
type Config struct {
	DB      *pgxpool.Pool
	Ledger  *ledger.Ledger
	Gateway Asker
	Now     func() time.Time

	By        ledger.Actor
	OpeningAt time.Time
	OurOrders *regexp.Regexp // nil = every order is ours

	// Allowed is asked before each payment is written whether it still may be; an error ends the import. nil = always.
	Allowed func(context.Context, ledger.Querier) error

	Apply bool // false: nothing is written, only said
	// PerMinute bounds the questions: a test key may ask 100 times a minute in all, live traffic included.
	PerMinute int
	// Parallel is how many questions are under way at once; those of the service come on top.
	Parallel int
	// Progress hears of every row; nil = nobody listens.
	Progress func(Summary)
}

func (c Config) withDefaults() Config {
	c.PerMinute = cmp.Or(c.PerMinute, 60)
	c.Parallel = cmp.Or(c.Parallel, 2)
	if c.Allowed == nil {
		c.Allowed = func(context.Context, ledger.Querier) error { return nil }
	}
	if c.Progress == nil {
		c.Progress = func(Summary) {}
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.DB == nil || c.Ledger == nil || c.Gateway == nil || c.Now == nil:
		return errors.New("opening: DB, Ledger, Gateway and Now are required")
	case c.OpeningAt.IsZero():
		return errors.New("set DAESA_OPENING_AT to the instant from which on these are your books: without it nothing lies before")
	case c.PerMinute < 1 || c.Parallel < 1 || c.Parallel > 8:
		return errors.New("the import needs at least 1 question a minute, and 1 to 8 at once")
	}
	return nil
}

// Result is what became of a row.
type Result string

// The results.
const (
	ResultImported Result = "imported"
	ResultKnown    Result = "known" // it was in the books already
	ResultRejected Result = "rejected"
	ResultLeft     Result = "left" // the gateway did not answer, or somebody stopped: run it again
)

// Row is one claim with what became of it.
type Row struct {
	Claim    Claim
	Result   Result
	Reason   string
	Captured ledger.Money // as the gateway shows it
	Canceled ledger.Money
}

// Summary adds up: Read = Imported + Known + Rejected + Left.
type Summary struct {
	Read, Imported, Known, Rejected, Left int
	Rows                                  []Row // in the order of the source, once all is done
}

// Done is how many rows have a result.
func (s Summary) Done() int { return s.Imported + s.Known + s.Rejected }

// Importer takes payments over.
type Importer struct {
	cfg   Config
	limit *rate.Limiter
}

// New checks the configuration and makes an Importer.
func New(cfg Config) (*Importer, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Importer{cfg: cfg, limit: rate.NewLimiter(rate.Limit(cfg.PerMinute)/60, 1)}, nil
}

func (i *Importer) now() time.Time { return i.cfg.Now().Truncate(time.Microsecond) }

// Run takes over what the claims name, or says what it would do. The error is why rows are left: they and only they are
// missing from the books then, and the same call goes on with them.
func (i *Importer) Run(ctx context.Context, claims Claims) (Summary, error) {
	if !i.cfg.Apply {
		return i.all(ctx, claims, 0)
	}
	var summary Summary
	err := i.alone(ctx, func() error {
		id, err := i.begin(ctx, claims)
		if err != nil {
			return err
		}
		if summary, err = i.all(ctx, claims, id); err != nil || summary.Left > 0 {
			return err
		}
		return i.end(ctx, id)
	})
	return summary, err
}

// alone runs fn while no other import writes. The lock belongs to a database session, so a crash frees it.
func (i *Importer) alone(ctx context.Context, fn func() error) (err error) {
	conn, err := i.cfg.DB.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("take the lock of the import: %w", err)
	}
	defer conn.Release()
	var held bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, postgres.LockImport).Scan(&held); err != nil {
		return fmt.Errorf("take the lock of the import: %w", err)
	}
	if !held {
		return ErrRunning
	}
	defer func() {
		free, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer stop()
		if _, unlockErr := conn.Exec(free, `SELECT pg_advisory_unlock($1)`, postgres.LockImport); unlockErr != nil {
			err = errors.Join(err, conn.Conn().Close(free))
		}
	}()
	return fn()
}

// all works on the rows, those of some orders at once and those of one order one after the other, so that the first that
// fits has it. A failure that is not a row's own stops it.
func (i *Importer) all(ctx context.Context, claims Claims, id int64) (Summary, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := Summary{Read: len(claims.Rows), Left: len(claims.Rows), Rows: make([]Row, len(claims.Rows))}
	for n, c := range claims.Rows {
		s.Rows[n] = Row{Claim: c, Result: ResultLeft}
	}
	var mu sync.Mutex
	orders, next := byOrder(claims.Rows), 0
	var workers sync.WaitGroup
	for range i.cfg.Parallel {
		workers.Go(func() {
			for {
				mu.Lock()
				order := next
				next++
				mu.Unlock()
				if order >= len(orders) {
					return
				}
				if err := i.order(ctx, claims.Rows, orders[order], id, func(n int, row Row) {
					mu.Lock()
					defer mu.Unlock()
					s.Rows[n] = row
					s = s.with(row)
					i.cfg.Progress(s)
				}); err != nil {
					stop(err)
					return
				}
			}
		})
	}
	workers.Wait()
	return s, context.Cause(ctx)
}

// byOrder groups the rows' places by the order they name, in the order of the source.
func byOrder(rows []Claim) [][]int {
	var orders [][]int
	at := make(map[string]int)
	for n, c := range rows {
		group, there := at[c.OrderID]
		if !there {
			group = len(orders)
			at[c.OrderID], orders = group, append(orders, nil)
		}
		orders[group] = append(orders[group], n)
	}
	return orders
}

// order works on the rows of one order. A dry run leaves nothing in the books that a later row could meet, so it
// remembers the line whose payment would hold the order.
func (i *Importer) order(ctx context.Context, rows []Claim, places []int, id int64, done func(int, Row)) error {
	holder := 0
	for _, n := range places {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		row, err := i.one(ctx, rows[n], id)
		if err != nil {
			return err
		}
		switch {
		case i.cfg.Apply || row.Result != ResultImported:
		case holder > 0:
			reason := fmt.Sprintf("order %s, by line %d: %v", row.Claim.OrderID, holder, ledger.ErrOrderTaken)
			row = Row{Claim: row.Claim, Result: ResultRejected, Reason: reason}
		default:
			holder = row.Claim.Line
		}
		done(n, row)
	}
	return nil
}

// with counts one more row.
func (s Summary) with(r Row) Summary {
	switch r.Result {
	case ResultImported:
		s.Imported++
	case ResultKnown:
		s.Known++
	case ResultRejected:
		s.Rejected++
	case ResultLeft:
		return s
	}
	s.Left--
	return s
}

// one takes one payment over, or says why not. The error is not the row's own.
func (i *Importer) one(ctx context.Context, c Claim, id int64) (Row, error) {
	row, in, err := i.judge(ctx, c)
	if err != nil || row.Result == ResultLeft || !i.cfg.Apply {
		return row, err
	}
	if row.Result == ResultImported {
		refused, err := i.write(ctx, in, row, id)
		if err != nil || refused == "" {
			return row, err
		}
		row.Result, row.Reason = ResultRejected, refused
	}
	return row, postgres.InTx(ctx, i.cfg.DB, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		i.queueRow(b, id, row)
		return tx.SendBatch(ctx, b).Close()
	})
}

// judge finds out what is to become of a row, without writing.
func (i *Importer) judge(ctx context.Context, c Claim) (Row, ledger.Import, error) {
	rejected := func(reason string) (Row, ledger.Import, error) {
		return Row{Claim: c, Result: ResultRejected, Reason: reason}, ledger.Import{}, nil
	}
	switch {
	case c.Problem != "":
		return rejected(c.Problem)
	case i.cfg.OurOrders != nil && !i.cfg.OurOrders.MatchString(c.OrderID):
		return rejected("the order is not of our pattern")
	}
	known, order, err := ledger.Load(ctx, i.cfg.DB, c.PaymentKey)
	switch {
	case err == nil && (known.OrderID != c.OrderID || known.Amount != c.Amount):
		return rejected(fmt.Sprintf("the books have the payment for order %s, %s", known.OrderID, known.Amount))
	case err == nil && c.Credits > 0 && order.Credits != c.Credits:
		return rejected(fmt.Sprintf("the books have the payment already, with %d credits", order.Credits))
	case err == nil:
		return Row{Claim: c, Result: ResultKnown, Captured: known.Captured(), Canceled: known.Canceled()}, ledger.Import{}, nil
	case !errors.Is(err, ledger.ErrNotFound):
		return Row{}, ledger.Import{}, err
	}
	seen, reason, err := i.ask(ctx, c.PaymentKey)
	if err != nil || reason != "" {
		row := Row{Claim: c, Result: ResultRejected, Reason: reason}
		if errors.Is(err, errUnanswered) {
			return Row{Claim: c, Result: ResultLeft, Reason: err.Error()}, ledger.Import{}, nil
		}
		return row, ledger.Import{}, err
	}
	if difference := c.differs(seen, i.cfg.OpeningAt); difference != "" {
		return rejected(difference)
	}
	in := ledger.Import{Order: c.order(), Seen: seen, OpeningAt: i.cfg.OpeningAt}
	if err := i.cfg.Ledger.CanImport(ctx, i.cfg.DB, in); err != nil {
		if reason := refusal(err); reason != "" {
			return rejected(reason)
		}
		return Row{}, in, err
	}
	return Row{Claim: c, Result: ResultImported, Captured: captured(seen), Canceled: canceled(seen)}, in, nil
}

// write puts the payment and the note of its row into the books at once.
func (i *Importer) write(ctx context.Context, in ledger.Import, row Row, id int64) (refused string, err error) {
	err = postgres.InTx(ctx, i.cfg.DB, func(tx pgx.Tx) error {
		if err := i.cfg.Allowed(ctx, tx); err != nil {
			return err
		}
		if _, err := i.cfg.Ledger.Import(ctx, tx, in); err != nil {
			return err
		}
		b := &pgx.Batch{}
		i.queueRow(b, id, row)
		return tx.SendBatch(ctx, b).Close()
	})
	if reason := refusal(err); reason != "" {
		return reason, nil
	}
	return "", err
}

// refusal is why the books do not take a payment; "" for an error that says nothing about the payment.
func refusal(err error) string {
	for _, refused := range []error{
		ledger.ErrNotBefore, ledger.ErrNothingTaken, ledger.ErrContradicts, ledger.ErrOrderDiffers, ledger.ErrOrderTaken,
	} {
		if errors.Is(err, refused) {
			return err.Error()
		}
	}
	return ""
}
