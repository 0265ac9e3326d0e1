package app

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"daesa/checkout"
	"daesa/checkout/store"
	"daesa/internal/admission"
	"daesa/internal/people"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/pgclient"
)

// Config says how an instance runs. Everything a merchant sets has an environment variable and a flag in cli.go;
// what only tests set is at the end.
type Config struct {
	DatabaseURL   string
	Listen        string // public: checkout and webhook
	PrivateListen string // metrics, health, pprof; never public
	PagesListen   string // pages for people; "" = none
	PagesURL      string // where people reach them, when it is not that address

	TossURL         string
	TossSecretKey   string
	TossSecurityKey string
	MerchantID      string

	APIKeys        []string // name=secret, for the merchant's own servers
	TokenKey       string   // signs the status address of a payment; derived from the secret key when empty
	CORSOrigins    []string // front ends that may call confirm
	TrustedProxies []string
	OrderPattern   string    // of our orders, when other systems share the merchant id
	OpeningAt      time.Time // earlier payments belong to the system before this one
	MerchantURL    string    // where order events are delivered
	CustomerURL    string    // where customer notices are delivered
	EventSecret    string    // whsec_…: signs what is delivered
	StoreURL       string    // where the store is asked before money moves; "" = nobody is asked
	StoreSecret    string    // whsec_…: signs what the store is sent
	SealKeyFile    string    // signs the journal's heads; without it none are made
	SealOldKeys    []string  // files of public keys that may have signed heads which the heads file does not know yet
	HeadsFile      string    // where each head is also written; beside the key when empty

	Replicas           int
	Lazy               bool // ask about a claimed cancel only at its last chance
	RateLimit          int  // webhook deliveries a minute and source
	GatewayRateLimit   int  // those from the gateway's own addresses
	GatewayAddresses   []string
	ConfirmRateLimit   int  // approvals a minute and source
	RecordOnly         bool // count what admission would refuse, and refuse nothing
	DatabaseMax        int32
	ListEvery          time.Duration
	ListLag            time.Duration // how late a row may appear in the gateway's list
	StopTimeout        time.Duration
	SecondPersonAbove  *int64 // won at risk above which a second person must confirm; nil = a million
	WebhookDeadline    time.Duration
	WebhookQueryBudget time.Duration

	StoreLate        checkout.StorePolicy // what happens to a sale that the store is late for; "" = refuse
	StoreUnreachable checkout.StorePolicy

	Retention RetentionDays // how long is kept what may go

	LimitTimeout time.Duration // how long a rate limit waits for the database

	Paths       pgclient.Paths
	Breakers    pgclient.Breakers
	StoreLimits store.Limits
	OneLine     int // requests let in at once, in one line in place of admission by class; 0 = by class
	Now         func() time.Time
	DatabaseNow func(context.Context) (time.Time, error) // the database's clock; asked for, unless Now is set and stands for it too
	Log         *slog.Logger
	// Dial opens connections to the database; tests cut them here. nil means a plain dialer.
	Dial pgconn.DialFunc
	// Notices answers notices in place of the webhook's handler, to be compared with. nil means that handler.
	Notices web.Handler
	// DialLimits is Dial for the connections of the rate limits, which are their own.
	DialLimits pgconn.DialFunc

	// PasswordCost is what one look at a password costs; tests make it cheap.
	PasswordCost people.Cost

	// Hurry is how many times as often periodic jobs run, at most once a second: an hour of them fits into a test.
	Hurry int

	limitNow func() time.Time // the clock of the rate limits where Now is set; else each counts by its own, the database first
}

// The least that an instance works with.
const (
	databaseLeast  = 4
	listEveryLeast = 10 * time.Second
	listLagMost    = 15 * time.Minute
)

// securityKey reports whether the text is 32 bytes written in hexadecimal.
func securityKey(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == 32
}

// DefaultRateLimit is what one source may deliver in a minute, and at once, over all instances. Notices come in bursts:
// all that fail in one minute come again together, one minute later, beside the new ones. 100 a minute refused a quarter
// of such a burst of 200 in half a minute; 300 takes it whole, with half to spare.
const DefaultRateLimit = 300

// DefaultConfirmRateLimit is what one source may ask to approve in a minute, and at once: far above any buyer, also above
// many behind one address. Each made-up payment key costs a call to the gateway and rows of ours.
const DefaultConfirmRateLimit = 120

func (c Config) withDefaults() Config {
	c.Listen = cmp.Or(c.Listen, "127.0.0.1:8080")
	c.PrivateListen = cmp.Or(c.PrivateListen, "127.0.0.1:9090")
	c.TossURL = cmp.Or(c.TossURL, "https://api.tosspayments.com")
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.RateLimit = cmp.Or(c.RateLimit, DefaultRateLimit)
	c.GatewayRateLimit = cmp.Or(c.GatewayRateLimit, c.RateLimit)
	c.ConfirmRateLimit = cmp.Or(c.ConfirmRateLimit, DefaultConfirmRateLimit)
	c.LimitTimeout = cmp.Or(c.LimitTimeout, admission.SharedTimeout)
	c.DatabaseMax = cmp.Or(c.DatabaseMax, 20)
	c.ListEvery = cmp.Or(c.ListEvery, time.Minute)
	c.ListLag = cmp.Or(c.ListLag, 10*time.Minute)
	c.StopTimeout = cmp.Or(c.StopTimeout, 45*time.Second)
	c.WebhookDeadline = cmp.Or(c.WebhookDeadline, 9*time.Second)
	if c.SecondPersonAbove == nil {
		c.SecondPersonAbove = new(int64)
		*c.SecondPersonAbove = ledger.DefaultSecondPersonAbove
	}
	c.limitNow = c.Now
	if now := c.Now; now != nil && c.DatabaseNow == nil {
		c.DatabaseNow = func(context.Context) (time.Time, error) { return now(), nil }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// validate stops a configuration that cannot work, with one sentence that says what to set.
func (c Config) validate() error {
	switch {
	case c.DatabaseURL == "":
		return errors.New("set DAESA_DATABASE_URL to the PostgreSQL database, or run serve -embedded on a single machine")
	case *c.SecondPersonAbove < 0:
		return errors.New("set DAESA_SECOND_PERSON_ABOVE to an amount of won, not below nothing")
	case c.TossSecretKey == "":
		return errors.New("set TOSS_SECRET_KEY to the secret key of the merchant id (test_sk_… or live_sk_…)")
	case strings.Contains(c.TossSecretKey, "_ck_") || strings.Contains(c.TossSecretKey, "_gck_"):
		return errors.New("TOSS_SECRET_KEY holds a client key; set it to the secret key (…_sk_… or …_gsk_…)")
	case c.Replicas < 1:
		return errors.New("set DAESA_REPLICAS to the number of instances, at least 1")
	case c.DatabaseMax < databaseLeast:
		return fmt.Errorf("set DAESA_DATABASE_MAX to at least %d connections: jobs and requests need some at the same time", databaseLeast)
	case c.ListEvery < listEveryLeast:
		return fmt.Errorf("set DAESA_LIST_EVERY to at least %s: the gateway refuses an abnormal number of calls", listEveryLeast)
	case c.ListLag < 0 || c.ListLag > listLagMost:
		return fmt.Errorf("set DAESA_LIST_LAG between 0 and %s, which every read of the list covers again", listLagMost)
	case c.StopTimeout <= 0:
		return errors.New("set DAESA_STOP_TIMEOUT above 0: what is in flight needs time to end")
	case c.TossSecurityKey != "" && !securityKey(c.TossSecurityKey):
		return errors.New("set TOSS_SECURITY_KEY to the 64 hexadecimal digits of the developer centre, or leave it out")
	case c.OneLine < 0:
		return errors.New("set DAESA_ONE_LINE to the requests let in at once, or leave it out to admit them by class")
	case !admission.Countable(c.RateLimit):
		return errors.New("set DAESA_WEBHOOK_RATE_LIMIT to deliveries a minute, at least 1 and at most millions")
	case !admission.Countable(c.GatewayRateLimit):
		return errors.New("set DAESA_GATEWAY_RATE_LIMIT to deliveries a minute, at least 1 and at most millions")
	case !admission.Countable(c.ConfirmRateLimit):
		return errors.New("set DAESA_CONFIRM_RATE_LIMIT to approvals a minute, at least 1 and at most millions")
	case c.Listen == c.PrivateListen && !strings.HasSuffix(c.Listen, ":0"):
		return errors.New("set DAESA_PRIVATE_LISTEN to another address than DAESA_LISTEN: metrics must not be public")
	case (c.MerchantURL != "" || c.CustomerURL != "") && c.EventSecret == "":
		return errors.New("set DAESA_EVENT_SECRET (whsec_…): events are delivered signed or not at all")
	}
	if err := cmp.Or(c.Retention.validate(), c.validateStore(), c.validatePages()); err != nil {
		return err
	}
	for name, address := range map[string]string{
		"DAESA_MERCHANT_URL": c.MerchantURL, "DAESA_CUSTOMER_URL": c.CustomerURL, "DAESA_STORE_URL": c.StoreURL, "TOSS_BASE_URL": c.TossURL,
		"DAESA_PAGES_URL": c.PagesURL,
	} {
		if u, err := url.Parse(address); address != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return fmt.Errorf("set %s to a full http or https address", name)
		}
	}
	return nil
}

// validatePages refuses pages whose passwords would cross a network in the clear.
func (c Config) validatePages() error {
	if c.PagesListen == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.PagesListen)
	if err != nil {
		return errors.New("set DAESA_PAGES_LISTEN to host:port")
	}
	address, err := netip.ParseAddr(host)
	here := host == "localhost" || err == nil && address.IsLoopback()
	if !here && !strings.HasPrefix(c.PagesURL, "https://") {
		return errors.New("set DAESA_PAGES_URL to the https address of the pages, or DAESA_PAGES_LISTEN to one of this machine alone: passwords do not cross a network in the clear")
	}
	return nil
}

// keys reads the API keys, each written name=secret.
func (c Config) keys() (web.Keys, error) {
	keys := make(web.Keys, 0, len(c.APIKeys))
	for _, text := range c.APIKeys {
		name, secret, ok := strings.Cut(text, "=")
		if !ok {
			return nil, errors.New("set DAESA_API_KEYS to name=secret pairs separated by commas")
		}
		key, err := web.NewKey(name, secret)
		if err != nil {
			return nil, fmt.Errorf("DAESA_API_KEYS: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// proxies reads the trusted proxies. To trust everybody is to believe whatever a client writes of itself, and leaves no
// limit that holds.
func (c Config) proxies() ([]netip.Prefix, error) {
	prefixes, err := addressBlocks("DAESA_TRUSTED_PROXIES", c.TrustedProxies)
	for _, prefix := range prefixes {
		if prefix.Bits() == 0 {
			return nil, fmt.Errorf("set DAESA_TRUSTED_PROXIES to the addresses of your own proxies: %s is everybody", prefix)
		}
	}
	return prefixes, err
}

func (c Config) gatewayAddresses() ([]netip.Prefix, error) {
	return addressBlocks("DAESA_GATEWAY_ADDRESSES", c.GatewayAddresses)
}

// addressBlocks reads addresses and CIDR blocks. IPv4 written as IPv6 is IPv4, as it is everywhere else.
func addressBlocks(setting string, texts []string) ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if address, single := netip.ParseAddr(text); err != nil && single == nil {
			prefix, err = address.WithZone("").Prefix(address.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("set %s to addresses or CIDR blocks: %.64q is neither", setting, text)
		}
		const mapped = 96 // bits before the IPv4 address
		if prefix.Addr().Is4In6() && prefix.Bits() >= mapped {
			prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-mapped)
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}

func (c Config) ourOrders() (*regexp.Regexp, error) {
	if c.OrderPattern == "" {
		return nil, nil //nolint:nilnil // no pattern: every order on the merchant id is ours
	}
	pattern, err := regexp.Compile(c.OrderPattern)
	if err != nil {
		return nil, fmt.Errorf("set DAESA_ORDER_PATTERN to a regular expression: %w", err)
	}
	return pattern, nil
}
