package reconcile

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/ledger"
	"daesa/pgclient"
)

// Asker asks about one payment.
type Asker interface {
	Recover(ctx context.Context, channel ledger.Channel, paymentKey string) (ledger.Observation, error)
	RecoverOrder(ctx context.Context, channel ledger.Channel, orderID string) (ledger.Observation, error)
}

// Sender sends a confirm or a cancel of ours again, with the idempotency key it was first sent with.
type Sender interface {
	ReserveConfirm(ctx context.Context) (*pgclient.Permit, error)
	Confirm(ctx context.Context, permit *pgclient.Permit, r pgclient.ConfirmRequest) pgclient.Result
	ReserveCancel(ctx context.Context) (*pgclient.Permit, error)
	Cancel(ctx context.Context, permit *pgclient.Permit, r pgclient.CancelRequest) pgclient.Result
}

// Lister reads the gateway's list of transactions.
type Lister interface {
	Transactions(ctx context.Context, from, to time.Time, after string, limit int) (pgclient.Page, error)
}

// Gateway is everything that reconciling needs of the gateway.
type Gateway interface {
	Asker
	Sender
	Lister
}

// Config is what reconciling needs.
type Config struct {
	DB      *pgxpool.Pool
	Ledger  *ledger.Ledger
	Gateway Gateway
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time
	// DatabaseNow is the database's own clock; nil asks it. Tests have clocks of their own.
	DatabaseNow func(context.Context) (time.Time, error)

	// Eager asks about a claimed or listed cancel at once. Without it the sender's redeliveries get their whole
	// time first, and the sweeper asks at the last chance only.
	Eager bool
	// OurOrders is the form of our order ids where other systems share the merchant id; nil = every order is ours.
	OurOrders *regexp.Regexp
	// OpeningAt is when our books begin: what happened before belongs to the system before us. Zero = always.
	OpeningAt time.Time
	// Beside says that this is a command beside the service: it may write the mirror by the service's settings only.
	Beside bool
	// ListLag is how long the gateway's list may need to show what happened.
	ListLag time.Duration
	// Keep is how long is kept what grows by the minute.
	Keep Keep
	// PageSize is how many rows of the list are read at once.
	PageSize int
	// Stretch is about how many rows of either book a comparison of everything reads at once.
	Stretch int
	// Pace is the least time between two reads of the past; negative = none. What is new is never held up by it.
	Pace time.Duration
	// Slots is how many rows of work are asked about at once: no more than the gateway client lets this instance ask,
	// see [SlotsOf], or the others are refused for nothing.
	Slots int
	// Replicas is how many instances there are; each has its share of the questions that may find nothing.
	Replicas int
	// Lease is how long a claimed row of work is left alone. It must outlast everything one row can take, so that
	// only a crash lets it run out.
	Lease time.Duration
}

func (c Config) withDefaults() Config {
	c.ListLag = cmp.Or(c.ListLag, 10*time.Minute)
	c.Keep = c.Keep.withDefaults()
	c.PageSize = cmp.Or(c.PageSize, 1000)
	c.Stretch = cmp.Or(c.Stretch, 50_000)
	c.Pace = cmp.Or(c.Pace, time.Second)
	c.Slots = cmp.Or(c.Slots, SlotsOf(0, 1))
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.Lease = cmp.Or(c.Lease, 2*time.Minute)
	if c.DatabaseNow == nil {
		c.DatabaseNow = c.databaseNow
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.DB == nil:
		return errors.New("reconcile: DB is required")
	case c.Ledger == nil:
		return errors.New("reconcile: Ledger is required")
	case c.Gateway == nil:
		return errors.New("reconcile: Gateway is required")
	case c.Metrics == nil:
		return errors.New("reconcile: Metrics is required")
	case c.Log == nil:
		return errors.New("reconcile: Log is required")
	case c.Now == nil:
		return errors.New("reconcile: Now is required")
	case c.ListLag < 0 || c.ListLag > overlapMax:
		return errors.New("reconcile: ListLag must lie between 0 and 15 minutes, which every poll reads again")
	case c.PageSize < 1 || c.PageSize > 5000:
		return errors.New("reconcile: PageSize must lie between 1 and 5,000")
	case c.Slots < 1:
		return errors.New("reconcile: Slots must be at least 1")
	case c.Replicas < 1:
		return errors.New("reconcile: Replicas must be at least 1")
	case c.Lease < leaseLeast:
		return errors.New("reconcile: Lease must be at least 2 minutes, or a row in hand could be taken twice")
	}
	return c.Keep.validate()
}

// SlotsOf is one instance's share of the questions that the gateway client lets all of them ask at once; 0 = 8, as the
// client's own path for them has it.
func SlotsOf(questions, replicas int) int { return max(1, cmp.Or(questions, 8)/replicas) }

// leaseLeast is above the longest a row can take: three questions of 12 s, a confirm of 31 s, and the writing.
const leaseLeast = 2 * time.Minute

// Reconciler is the three parts over one configuration.
type Reconciler struct {
	Sweeper *Sweeper
	Mirror  *Mirror
	Auditor *Auditor
}

// New checks the configuration and makes the three parts. It starts nothing.
func New(cfg Config) (*Reconciler, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Reconciler{
		Sweeper: &Sweeper{cfg: cfg, claims: newAllowance(cfg.Slots, cfg.Replicas)},
		Mirror:  &Mirror{cfg: cfg},
		Auditor: &Auditor{cfg: cfg},
	}, nil
}

// now is the clock at the precision of the database, so that a time written is the time read back.
func (c Config) now() time.Time { return c.Now().Truncate(time.Microsecond) }

// foreign reports whether an order belongs to another system on the same merchant id.
func (c Config) foreign(orderID string) bool {
	return c.OurOrders != nil && !c.OurOrders.MatchString(orderID)
}
