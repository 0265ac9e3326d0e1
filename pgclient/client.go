package pgclient

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"daesa/internal/guard"
)

// Config is what a Client needs.
type Config struct {
	BaseURL     string   // "https://api.tosspayments.com"; plain HTTP only for a test key or on this machine
	SecretKey   string   // the API's secret key, test_… or live_…
	SecurityKey string   // 64 hexadecimal digits that sign some notices; "" = signatures are not checked
	Versions    []string // versions of the payment object known to be read right; others are read too, and counted
	Replicas    int      // instances that share the caps; 0 = 1
	Paths       Paths
	Breakers    Breakers
	Transport   http.RoundTripper // for tests; nil = an own connection pool per path

	// OnChange hears of every change of a breaker, in order. OnRecovered hears that the gateway answers questions
	// again after a breaker had stopped them: work that waits is worth doing now. Both are called on the goroutine
	// of some call, so they must be quick; nil = nobody listens.
	OnChange    func(name BreakerName, from, to guard.State)
	OnRecovered func()

	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time
}

// Client asks the gateway. Its methods may be used by many goroutines.
type Client struct {
	cfg         Config
	base        *url.URL
	securityKey []byte

	confirm, cancel, query, recovery, list *lane
	lookUps                                *guard.Bulkhead // the share of recovery's slots that LookUp has
	money, queries, recoveries             *guard.Breaker
}

// New checks the configuration and returns a Client. It sends nothing.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("gateway client: %w", err)
	}
	base, _ := url.Parse(cfg.BaseURL)
	securityKey, _ := hex.DecodeString(cfg.SecurityKey)
	c := &Client{cfg: cfg, base: base, securityKey: securityKey}
	c.money = guard.NewBreaker(cfg.Breakers.Money, c.announcer(BreakerMoney))
	c.queries = guard.NewBreaker(cfg.Breakers.Query, c.announcer(BreakerQuery))
	c.recoveries = guard.NewBreaker(cfg.Breakers.Recover, c.announcer(BreakerRecover))
	c.confirm = newLane(cfg, PathConfirm, c.money)
	c.cancel = newLane(cfg, PathCancel, c.money)
	c.query = newLane(cfg, PathQuery, c.queries)
	c.recovery = newLane(cfg, PathRecover, c.recoveries)
	c.lookUps = guard.NewBulkhead(lookUpsAtOnce(cfg.Paths.Recover.share(cfg.Replicas)), 0)
	c.list = newLane(cfg, PathList, nil)
	return c, nil
}

// Live reports whether the key moves real money.
func (c *Client) Live() bool { return c.cfg.live() }

// Close drops idle connections and stops the breakers' timers. Calls under way go on.
func (c *Client) Close() {
	for _, b := range []*guard.Breaker{c.money, c.queries, c.recoveries} {
		b.Stop()
	}
	for _, l := range []*lane{c.confirm, c.cancel, c.query, c.recovery, c.list} {
		l.http.CloseIdleConnections()
	}
}

// announcer tells metrics, log and listeners what a breaker did.
func (c *Client) announcer(name BreakerName) func(from, to guard.State) {
	return func(from, to guard.State) {
		c.cfg.Metrics.breakerState(name, to)
		c.cfg.Log.Warn("breaker changed",
			slog.String("breaker", string(name)), slog.String("from", string(from)), slog.String("to", string(to)))
		if c.cfg.OnChange != nil {
			c.cfg.OnChange(name, from, to)
		}
		if to == guard.Closed && name != BreakerMoney && c.cfg.OnRecovered != nil {
			c.cfg.OnRecovered()
		}
	}
}

func (c Config) live() bool { return strings.HasPrefix(c.SecretKey, "live_") }

func (c Config) withDefaults() Config {
	c.BaseURL = strings.TrimSuffix(cmp.Or(c.BaseURL, "https://api.tosspayments.com"), "/")
	c.Replicas = cmp.Or(c.Replicas, 1)
	if len(c.Versions) == 0 {
		c.Versions = []string{"2022-11-16", "2024-06-01"}
	}
	c.Paths = c.Paths.or(declaredPaths())
	c.Breakers = c.Breakers.or(declaredBreakers())
	return c
}

func (c Config) validate() error {
	if c.Metrics == nil || c.Log == nil || c.Now == nil {
		return errors.New("metrics, a log and a clock are required")
	}
	if err := c.validateKeys(); err != nil {
		return err
	}
	if err := c.validateURL(); err != nil {
		return err
	}
	if c.Replicas < 1 {
		return fmt.Errorf("the number of replicas must be at least 1, not %d", c.Replicas)
	}
	for _, name := range PathNames() {
		if err := c.Paths.named(name).validate(name); err != nil {
			return err
		}
	}
	return c.Breakers.validate()
}

func (c Config) validateKeys() error {
	switch {
	case c.SecretKey == "":
		return errors.New("the secret key is missing")
	case !graphic(c.SecretKey) || strings.Contains(c.SecretKey, ":"):
		return errors.New("the secret key holds a space, a colon or another character no key has; was it copied whole and alone?")
	case strings.Contains(c.SecretKey, "_ck_") || strings.Contains(c.SecretKey, "_gck_"):
		return errors.New("the secret key is a client key; the secret key is the one with _sk_ or _gsk_ in it")
	case c.SecurityKey == "":
		return nil
	}
	if key, err := hex.DecodeString(c.SecurityKey); err != nil || len(key) != 32 {
		return errors.New("the security key must be 64 hexadecimal digits")
	}
	return nil
}

func (c Config) validateURL() error {
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" ||
		!slices.Contains([]string{"http", "https"}, base.Scheme) {
		return errors.New("the gateway's address must look like https://api.tosspayments.com")
	}
	if base.Scheme == "http" && c.live() && !loopback(base.Hostname()) {
		return errors.New("a live key may only be sent over https")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// graphic reports whether s is visible ASCII throughout.
func graphic(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
