package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"daesa/internal/postgres"
	"daesa/internal/stage"
	"daesa/ledger"
)

// Lab is what every experiment is given.
type Lab struct {
	Programs Programs
	// Fresh makes a database with all migrations and nothing else in it.
	Fresh func(ctx context.Context, name string) (url string, err error)
	// Drop takes it away again; nil leaves it.
	Drop func(ctx context.Context, name string) error
	// Folder is where programs keep what they print.
	Folder string
	// Quick is a run of seconds, which shows that the lab works.
	Quick bool
	// Say tells whoever waits how far it is.
	Say func(format string, args ...any)
}

// Arm is one way to run the service: the same program, other settings.
type Arm struct {
	Name      string
	Settings  []string // of the environment
	Instances int      // 0 means one
}

// Bench is a gateway, a database and the instances of an arm.
type Bench struct {
	Arm

	Gateway   *Gateway
	Instances []*Instance
	DB        *pgxpool.Pool // of our own, to look at the books

	lab     *Lab
	shop    stage.Shop
	address string // of the database
	folder  string
	sold    int
	started int // instances, those that are down again included
}

// Open starts everything that an arm consists of. The caller closes it.
func (l *Lab) Open(ctx context.Context, arm Arm) (_ *Bench, err error) {
	b := &Bench{Arm: arm, lab: l}
	if b.folder, err = os.MkdirTemp(l.Folder, "bench-"); err != nil {
		return nil, fmt.Errorf("make a folder for what is printed: %w", err)
	}
	defer func() {
		if err != nil {
			err = closing(err, b.Close)
		}
	}()
	if b.address, err = l.Fresh(ctx, b.database()); err != nil {
		return nil, err
	}
	if b.DB, err = postgres.Open(ctx, postgres.Config{URL: b.address, MaxConns: 4, ApplicationName: "lab"}); err != nil {
		return nil, err
	}
	if b.Gateway, err = l.Programs.gateway(ctx, b.folder); err != nil {
		return nil, err
	}
	if err := b.Up(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// Up starts the instances. After Down they answer at other addresses.
func (b *Bench) Up(ctx context.Context) error {
	settings := append([]string{
		"DAESA_CONFIRM_RATE_LIMIT=1000000", // all buyers come from one address
		"DAESA_REPLICAS=" + strconv.Itoa(max(1, b.Arm.Instances)),
	}, b.Settings...)
	b.Instances = nil
	for range max(1, b.Arm.Instances) {
		b.started++
		programs := b.lab.Programs
		if !b.lab.Quick { // beside the tests of other packages it would yield to those
			programs = programs.yielding()
		}
		i, err := programs.serve(ctx, b.folder, fmt.Sprint("daesa-", b.started), b.address, b.Gateway.URL, settings)
		if err != nil {
			return err
		}
		b.Instances = append(b.Instances, i)
	}
	b.shop = stage.NewShop(b.Instances[0].URL)
	return nil
}

// Down stops the instances, which finish what is in flight. Everything else of the bench goes on.
func (b *Bench) Down() error {
	ending := errgroup.Group{}
	for _, i := range b.Instances {
		ending.Go(i.stop)
	}
	return ending.Wait()
}

// Close ends everything in order: the instances, which finish what is in flight, then their gateway.
func (b *Bench) Close() error {
	var errs []error
	if b.Gateway != nil && len(b.Instances) > 0 {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		errs = append(errs, b.Gateway.Heal(ctx)) // or the instances would wait for answers that never come
	}
	errs = append(errs, b.Down())
	if b.Gateway != nil {
		errs = append(errs, b.Gateway.stop())
	}
	if b.DB != nil {
		b.DB.Close()
	}
	if b.lab.Drop != nil && b.address != "" {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		errs = append(errs, b.lab.Drop(ctx, b.database()))
	}
	return errors.Join(append(errs, os.RemoveAll(b.folder))...)
}

// database is the name of the bench's own: another lab on this machine has another.
func (b *Bench) database() string { return fmt.Sprint("lab_", os.Getpid()) }

// urls are where the instances answer.
func (b *Bench) urls() []string {
	urls := make([]string, len(b.Instances))
	for n, i := range b.Instances {
		urls[n] = i.URL
	}
	return urls
}

// Payment is an order whose buyer has authenticated: all that is left is to confirm it.
type Payment struct {
	Key, Order string
	Won        int64
}

// atOnce is how many orders are prepared at a time, and payAtOnce how many are paid: few enough for any cap.
const (
	atOnce    = 8
	payAtOnce = 2
)

// Payable makes n payments that can be confirmed.
func (b *Bench) Payable(ctx context.Context, n int) ([]Payment, error) {
	made := make([]Payment, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range made {
		b.sold++
		p := Payment{Order: fmt.Sprintf("lab-order-%06d", b.sold), Won: 10_000 + int64(b.sold)}
		group.Go(func() (err error) {
			if err := b.shop.Order(ctx, stage.Sale{OrderID: p.Order, Won: p.Won, Customer: "customer"}); err != nil {
				return err
			}
			p.Key, err = b.Gateway.Authenticate(ctx, p.Order, p.Won)
			made[i] = p
			return err
		})
	}
	return made, group.Wait()
}

// Paid makes n payments and confirms them.
func (b *Bench) Paid(ctx context.Context, n int) ([]Payment, error) {
	made, err := b.Payable(ctx, n)
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(payAtOnce)
	for _, p := range made {
		group.Go(func() error { return b.pay(ctx, p) })
	}
	return made, group.Wait()
}

// pay confirms a payment, once more where it was refused before it was sent: after an outage the breaker takes a while.
func (b *Bench) pay(ctx context.Context, p Payment) error {
	ctx, stop := context.WithTimeout(ctx, settleMax)
	defer stop()
	var reply stage.Reply
	err := Until(ctx, "payment "+p.Key, func() (bool, error) {
		var err error
		reply, err = b.shop.Confirm(ctx, p.Key, p.Order, p.Won)
		return reply.HTTP != http.StatusServiceUnavailable, err
	})
	if err != nil {
		return err
	}
	return reply.Expect("confirming "+p.Order, http.StatusOK, "done")
}

// Recover waits until the gateway has been asked about everything that was in doubt, and says how long that took.
func (b *Bench) Recover(ctx context.Context, limit time.Duration) (time.Duration, error) {
	began := time.Now()
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	err := Until(ctx, "what is in doubt to be settled", func() (bool, error) {
		s, err := b.count(ctx)
		return s.Open == 0, err
	})
	return time.Since(began), err
}

// Closed waits until no breaker keeps calls from a gateway that is healthy again.
func (b *Bench) Closed(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, settleMax)
	defer stop()
	const open = 2
	return Until(ctx, "the breakers to let calls through", func() (bool, error) {
		for _, i := range b.Instances {
			m, err := i.Metrics(ctx)
			if err != nil {
				return false, err
			}
			for _, breaker := range []string{"money", "query", "recover"} {
				if m.Of("daesa_pgclient_breaker_state", "breaker", breaker) == open {
					return false, nil
				}
			}
		}
		return true, nil
	})
}

// ledFor is how long the jobs of a new leader take to start.
const ledFor = 3 * time.Second

// Led waits until one of the instances leads the jobs, and has begun to do so.
func (b *Bench) Led(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, settleMax)
	defer stop()
	type leaders struct {
		Elected int `db:"elected"`
	}
	err := Until(ctx, "a leader of the jobs", func() (bool, error) {
		found, err := one[leaders](ctx, b, `SELECT count(*)::int AS elected FROM river.river_leader`)
		return found.Elected > 0, err
	})
	return errors.Join(err, Wait(ctx, ledFor))
}

// InDoubt is how many payments nobody knows the outcome of.
func (b *Bench) InDoubt(ctx context.Context) (int, error) {
	return b.open(ctx, ledger.WorkConfirmUnknown)
}

// Asked is how many questions the service has asked the gateway on a path since it started.
func (b *Bench) Asked(ctx context.Context, path string) (int, error) {
	m, err := b.metrics(ctx)
	return m.Count("daesa_pgclient_answers_total", "path", path), err
}

// Owed is how many cancels of the gateway are not in the books, and how much work is open.
func (b *Bench) Owed(ctx context.Context) (missing, open int, err error) {
	s, err := b.count(ctx)
	return s.GatewayCancels.Count - s.Cancels.Count, s.Open, err
}

// Settled waits until no work of a kind is open.
func (b *Bench) Settled(ctx context.Context, kind ledger.WorkKind, limit time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	return Until(ctx, string(kind)+" to be settled", func() (bool, error) {
		open, err := b.open(ctx, kind)
		return open == 0, err
	})
}

// open is how much work of a kind is open.
func (b *Bench) open(ctx context.Context, kind ledger.WorkKind) (int, error) {
	rows, err := b.DB.Query(ctx, `SELECT count(*)::int FROM work WHERE closed_at IS NULL AND kind = @kind`, pgx.StrictNamedArgs{"kind": kind})
	if err != nil {
		return 0, fmt.Errorf("count open work: %w", err)
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
}

// Wait lets time pass, as a sender does before it comes again.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
