package tosssim

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config says which shop the simulator plays the gateway for. The zero value is a test shop that records its notices
// instead of sending them.
type Config struct {
	SecretKey   string        // The user of Basic authentication; a key that begins with test_ accepts test codes.
	SecurityKey string        // 64 hexadecimal digits; signs payout.changed.
	MerchantID  string        // mId of every payment, at most 14 characters.
	WebhookURL  string        // Where notices go; empty means record, do not send.
	Clock       Clock         // The clock on the wall by default.
	ListLag     time.Duration // Rows become visible in the list this long after they happened.

	// CancelRowSign is the sign of the amount of cancel rows in the list, +1 or -1: the gateway does not document it, so
	// a client has to work with either.
	CancelRowSign int

	// FallenRow is how the list shows a deposit that fell back, FallenRowOwn by default: the gateway does not document that
	// either.
	FallenRow FallenRow

	// HideSecret makes a later look-up answer a null secret, as has been seen of virtual accounts.
	HideSecret bool

	Log *slog.Logger // Discards by default.
}

func (c Config) withDefaults() Config {
	c.SecretKey = cmp.Or(c.SecretKey, "test_sk_simulator")
	c.MerchantID = cmp.Or(c.MerchantID, "tsimshop01")
	c.CancelRowSign = cmp.Or(c.CancelRowSign, 1)
	c.FallenRow = cmp.Or(c.FallenRow, FallenRowOwn)
	if c.SecurityKey == "" {
		sum := sha256.Sum256([]byte("tosssim"))
		c.SecurityKey = hex.EncodeToString(sum[:])
	}
	if c.Clock == nil {
		c.Clock = RealClock()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) mustValidate() {
	if key, err := hex.DecodeString(c.SecurityKey); err != nil || len(key) != 32 {
		panic("tosssim: the security key must be 64 hexadecimal digits")
	}
	if len(c.MerchantID) > 14 {
		panic("tosssim: a merchant id has at most 14 characters")
	}
	if c.CancelRowSign != 1 && c.CancelRowSign != -1 {
		panic("tosssim: the sign of cancel rows is +1 or -1")
	}
	if !slices.Contains(FallenRows(), c.FallenRow) {
		panic("tosssim: there is no such way to list a deposit that fell back: " + string(c.FallenRow))
	}
	if strings.Contains(c.SecretKey, ":") {
		panic("tosssim: a secret key has no colon")
	}
	if c.ListLag < 0 {
		panic("tosssim: rows cannot become visible before they happen")
	}
}

// Sim is one simulated gateway. All its methods may be called at any time from any goroutine.
type Sim struct {
	cfg    Config
	clock  Clock
	zone   *time.Location
	client *http.Client // Sends notices.

	life    context.Context // Ends with Close, and with it all that is held.
	end     context.CancelFunc
	wake    chan struct{} // Tells the background sender that something changed.
	senders sync.WaitGroup

	mu sync.Mutex // Guards everything below; never held while waiting, sending or answering.
	state
}

// state is all that Reset throws away.
type state struct {
	number     int64 // Last number given to a key, a notice or a transaction.
	payments   map[string]*payment
	order      []string            // Payment keys, oldest first.
	byOrder    map[string][]string // Payment keys of an order, oldest first.
	sessions   map[string]*payment // Payments whose window can still expire.
	rows       []row
	totals     Totals
	idempotent map[string]*bound

	faults  []*Fault
	healed  chan struct{} // Closed by Heal and replaced; ends delays and holds.
	held    int
	calls   []*Call
	notices []*notice
	pending []*notice // Notices that are neither done nor lost.
	plan    DeliveryPlan

	webhookURL string
	ended      bool
}

// New returns a simulator without payments. It panics on a configuration that makes no sense.
func New(cfg Config) *Sim {
	cfg = cfg.withDefaults()
	cfg.mustValidate()
	zone, err := time.LoadLocation("Asia/Seoul")
	if err != nil {
		panic(fmt.Sprintf("tosssim: load Asia/Seoul: %v", err))
	}
	life, end := context.WithCancel(context.Background())
	transport := &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}
	return &Sim{
		cfg: cfg, clock: cfg.Clock, zone: zone,
		client: &http.Client{
			Transport:     transport,
			Timeout:       deliveryTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		life: life, end: end,
		wake:  make(chan struct{}, 1),
		state: emptyState(cfg.WebhookURL),
	}
}

func emptyState(webhookURL string) state {
	return state{
		payments:   map[string]*payment{},
		byOrder:    map[string][]string{},
		sessions:   map[string]*payment{},
		idempotent: map[string]*bound{},
		totals:     Totals{Captured: map[string]int64{}, Canceled: map[string]int64{}},
		healed:     make(chan struct{}),
		webhookURL: webhookURL,
	}
}

// Handler serves the gateway's API and, to this machine only, its control under /__sim/: a page for people, and an API.
func (s *Sim) Handler() http.Handler {
	mux := http.NewServeMux()
	s.routeControl(mux)
	control := guarded(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/__sim/") {
			control.ServeHTTP(w, r)
			return
		}
		s.serveGateway(w, r)
	})
}

// Close ends held and delayed requests and the background sender, and waits for the sends under way. Close the simulator
// before the server that runs its handler: a server waits for its requests, and a held one does not end by itself.
func (s *Sim) Close() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.end()
	s.senders.Wait()
	s.client.CloseIdleConnections()
}

// Reset forgets payments, calls, notices, faults and bound replies; the configuration stays.
func (s *Sim) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.healed)
	number, held, ended := s.number, s.held, s.ended
	s.state = emptyState(s.webhookURL)
	s.number, s.held, s.ended = number, held, ended
}

// SetWebhookURL changes where notices go; what is pending goes there too.
func (s *Sim) SetWebhookURL(url string) {
	s.mu.Lock()
	s.webhookURL = url
	s.mu.Unlock()
	s.nudge()
}

// Totals is what the gateway itself did, in number and in minor units per currency: deposits and approvals that stand, and
// cancels that moved money and are DONE. Tests hold the merchant's books against it.
type Totals struct {
	Captures int              `json:"captures"`
	Cancels  int              `json:"cancels"`
	Captured map[string]int64 `json:"captured"`
	Canceled map[string]int64 `json:"canceled"`
}

// Totals returns the sums so far. A reverted deposit is taken out again. Seeded payments do not count.
func (s *Sim) Totals() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	totals := s.totals
	totals.Captured, totals.Canceled = maps.Clone(totals.Captured), maps.Clone(totals.Canceled)
	return totals
}

// next numbers keys, transactions and notices of this simulator.
func (s *Sim) next() int64 {
	s.number++
	return s.number
}

// nudge wakes the background sender.
func (s *Sim) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// untilClosed derives a context that also ends when the simulator is closed.
func (s *Sim) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.life, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
