package webhook

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/ledger"
	"daesa/pgclient"
)

// Gateway reads notices and answers the question they give rise to.
type Gateway interface {
	ReadNotice(header http.Header, body []byte) (pgclient.Notice, error)
	VerifySignature(header http.Header, body []byte) pgclient.SignatureState
	Query(ctx context.Context, channel ledger.Channel, paymentKey string) (ledger.Observation, error)
}

// Config is what a Handler needs.
type Config struct {
	DB      *pgxpool.Pool
	Ledger  *ledger.Ledger
	Gateway Gateway
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time

	// OurOrders matches our order ids when the merchant id is shared with another system; nil when it is ours alone.
	OurOrders *regexp.Regexp
	// MerchantID is ours; a notice of a payment never seen that names another one is not for us. "" = not checked.
	MerchantID string
	// TrustedProxies may tell the address that a request came from.
	TrustedProxies []netip.Prefix
	// Eager lets the sweeper ask for a failed cancel notice before the sender has given up redelivering it.
	Eager bool

	// Replicas are the instances that share what notices may cost the gateway; 0 = 1.
	Replicas int

	// Keep is how long is kept what a delivery leaves.
	Keep Keep

	// Deadline bounds the whole request. The gateway waits 10 s for the answer.
	Deadline time.Duration
	// BodyBudget bounds the reading of the body.
	BodyBudget time.Duration
	// QueryBudget is a net under the gateway client's own 3 s for a question. It is longer, so that a gateway that does
	// not answer is the client's timeout, which its breaker counts, and not a caller who lost patience.
	QueryBudget time.Duration
}

// writeReserve is kept free at the end of the deadline: an answer of the gateway that cannot be written is worthless.
const writeReserve = time.Second

func (c Config) withDefaults() Config {
	c.Keep = c.Keep.withDefaults()
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.Deadline = cmp.Or(c.Deadline, 9*time.Second)
	c.BodyBudget = cmp.Or(c.BodyBudget, BodyWithin)
	c.QueryBudget = cmp.Or(c.QueryBudget, 3500*time.Millisecond)
	return c
}

func (c Config) validate() error {
	switch {
	case c.DB == nil:
		return errors.New("webhook: DB is required")
	case c.Ledger == nil:
		return errors.New("webhook: Ledger is required")
	case c.Gateway == nil:
		return errors.New("webhook: Gateway is required")
	case c.Metrics == nil:
		return errors.New("webhook: Metrics is required")
	case c.Log == nil:
		return errors.New("webhook: Log is required")
	case c.Now == nil:
		return errors.New("webhook: Now is required")
	case c.Replicas < 1:
		return errors.New("webhook: Replicas must be at least 1")
	case c.BodyBudget < 0 || c.QueryBudget < 0:
		return errors.New("webhook: a budget must not be negative")
	case c.QueryBudget+writeReserve > c.Deadline:
		return errors.New("webhook: Deadline must leave a second after QueryBudget for writing down what the gateway said")
	}
	return c.Keep.validate()
}

// Handler answers notices, and closes what a crash left of them.
type Handler struct {
	cfg        Config
	statements map[shape]string
	fruitless  *fruitless
}

// New makes a Handler.
func New(cfg Config) (*Handler, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Handler{cfg: cfg, statements: statements(), fruitless: newFruitless(cfg.Replicas)}, nil
}
