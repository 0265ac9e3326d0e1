package checkout

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

// Gateway is what checkout asks of the gateway client.
type Gateway interface {
	ReserveConfirm(ctx context.Context) (*pgclient.Permit, error)
	Confirm(ctx context.Context, permit *pgclient.Permit, r pgclient.ConfirmRequest) pgclient.Result
	ReserveCancel(ctx context.Context) (*pgclient.Permit, error)
	Cancel(ctx context.Context, permit *pgclient.Permit, r pgclient.CancelRequest) pgclient.Result
	LookUp(ctx context.Context, channel ledger.Channel, paymentKey string) (ledger.Observation, error)
}

// Config is what a Handler needs.
type Config struct {
	DB      *pgxpool.Pool
	Reads   *pgxpool.Pool // of what is only looked up, so that a flood of it does not stand before payments; nil = DB
	Ledger  *ledger.Ledger
	Gateway Gateway
	Notices *Notices // sends events again

	// Store is asked before money moves; nil = nobody is. What happens when it is late or cannot be reached is a policy each.
	Store            Store
	StoreLate        StorePolicy
	StoreUnreachable StorePolicy

	// TokenKey signs the status addresses given to buyers. It must be the same on every instance.
	TokenKey []byte
	// MerchantID is what the gateway must say of every payment; "" = not checked.
	MerchantID string
	// OurOrders is the form of our order ids where other systems share the merchant id; nil = every order is ours.
	OurOrders *regexp.Regexp
	// OrderExpiry is how long an order waits for its payment unless it says otherwise.
	OrderExpiry time.Duration
	// ConfirmBudget is past the longest time that an approval can be at the gateway. A payment that has been
	// confirming for less is surely under way and is not asked about.
	ConfirmBudget time.Duration
	// AskBudget bounds the one question that a waiting buyer pays for.
	AskBudget time.Duration
	// SettleBudget bounds the recording of an outcome.
	SettleBudget time.Duration

	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time
}

// tokenKeyMin is the length below which a signature can be guessed.
const tokenKeyMin = 16

func (c Config) withDefaults() Config {
	c.Reads = cmp.Or(c.Reads, c.DB)
	c.StoreLate = cmp.Or(c.StoreLate, StoreRefuse)
	c.StoreUnreachable = cmp.Or(c.StoreUnreachable, StoreRefuse)
	c.OrderExpiry = cmp.Or(c.OrderExpiry, 30*time.Minute)
	c.ConfirmBudget = cmp.Or(c.ConfirmBudget, ledger.ConfirmBudget)
	c.AskBudget = cmp.Or(c.AskBudget, 6*time.Second)
	c.SettleBudget = cmp.Or(c.SettleBudget, 10*time.Second)
	return c
}

func (c Config) validate() error {
	switch {
	case c.DB == nil:
		return errors.New("checkout: DB is required")
	case c.Ledger == nil:
		return errors.New("checkout: Ledger is required")
	case c.Gateway == nil:
		return errors.New("checkout: Gateway is required")
	case c.Notices == nil:
		return errors.New("checkout: Notices is required: it sends events again")
	case !c.StoreLate.known() || !c.StoreUnreachable.known():
		return errors.New("checkout: StoreLate and StoreUnreachable must be refuse or accept")
	case len(c.TokenKey) < tokenKeyMin:
		return errors.New("checkout: TokenKey must have at least 16 bytes: it signs the status addresses of buyers")
	case c.OrderExpiry < 0 || c.ConfirmBudget < 0 || c.AskBudget < 0 || c.SettleBudget < 0:
		return errors.New("checkout: a time limit must not be negative")
	case c.Metrics == nil:
		return errors.New("checkout: Metrics is required")
	case c.Log == nil:
		return errors.New("checkout: Log is required")
	case c.Now == nil:
		return errors.New("checkout: Now is required")
	}
	return nil
}

// Handler serves the routes. Its methods that serve one are web handlers.
type Handler struct {
	cfg     Config
	ledger  *ledger.Ledger
	gateway Gateway
	metrics *Metrics
	log     *slog.Logger
	now     func() time.Time
}

// New makes a Handler.
func New(cfg Config) (*Handler, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Handler{
		cfg: cfg, ledger: cfg.Ledger, gateway: cfg.Gateway, metrics: cfg.Metrics, log: cfg.Log, now: cfg.Now,
	}, nil
}
