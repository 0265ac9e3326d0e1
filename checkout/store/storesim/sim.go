package storesim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Config says what the store is like.
type Config struct {
	Secret string        // "whsec_…" that calls must be signed with
	Knee   int           // questions at once that it bears; 0 = 25
	Base   time.Duration // a question's time up to the knee; 0 = 50 ms, below 0 = none
}

// State is how an acceptance stands.
type State string

// The states.
const (
	Held     State = "held"
	Declined State = "declined"
	Released State = "released"
)

// Acceptance is what the store knows of one id.
type Acceptance struct {
	ID       string
	OrderID  string
	Amount   string
	Currency string
	State    State
	Asked    int // how often
	Released int // how often
}

// Op is a kind of call.
type Op string

// The calls.
const (
	Ask     Op = "ask"
	Release Op = "release"
)

// Call is one request as it came.
type Call struct {
	Op           Op
	AcceptanceID string
	OrderID      string
	Key          string // Idempotency-Key
	AtOnce       int    // under way when it came, itself included
	Took         time.Duration
}

// Sim is a store. Its methods may be used by many goroutines.
type Sim struct {
	cfg    Config
	signer *standardwebhooks.Webhook

	mu          sync.Mutex
	acceptances map[string]*Acceptance
	declines    map[string]string // by order, "" = every order: the reason
	faults      []*Fault
	healed      chan struct{}
	underWay    int
	atMost      int
	calls       []Call
}

// New makes a store. It panics when the secret is none.
func New(cfg Config) *Sim {
	cfg.Knee = cmp.Or(cfg.Knee, 25)
	cfg.Base = max(0, cmp.Or(cfg.Base, 50*time.Millisecond))
	signer, err := standardwebhooks.NewWebhook(cfg.Secret)
	if err != nil {
		panic(fmt.Sprintf("storesim: the secret: %v", err))
	}
	return &Sim{
		cfg: cfg, signer: signer, acceptances: make(map[string]*Acceptance), declines: make(map[string]string),
		healed: make(chan struct{}),
	}
}

// Handler serves questions at its root and releases below it.
func (s *Sim) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{$}", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, Ask) })
	mux.HandleFunc("POST /{id}/release", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, Release) })
	return mux
}

// Decline makes the store decline an order from now on, "" every order. Without a reason it accepts again.
func (s *Sim) Decline(orderID, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.declines, orderID)
	if reason != "" {
		s.declines[orderID] = reason
	}
}

// Acceptances is everything the store knows, by id.
func (s *Sim) Acceptances() []Acceptance {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Acceptance, 0, len(s.acceptances))
	for _, a := range s.acceptances {
		all = append(all, *a)
	}
	slices.SortFunc(all, func(a, b Acceptance) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Held is the orders that the store has taken on, one entry for each acceptance, in order.
func (s *Sim) Held() []string {
	var orders []string
	for _, a := range s.Acceptances() {
		if a.State == Held {
			orders = append(orders, a.OrderID)
		}
	}
	slices.Sort(orders)
	return orders
}

// Calls is every call so far.
func (s *Sim) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Count is how many calls of a kind came.
func (s *Sim) Count(op Op) int {
	n := 0
	for _, c := range s.Calls() {
		if c.Op == op {
			n++
		}
	}
	return n
}

// AtMost is how many calls were under way at once, at most.
func (s *Sim) AtMost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.atMost
}

// UnderWay is how many calls are under way, those whose callers have gone included.
func (s *Sim) UnderWay() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.underWay
}

// request is what both calls carry.
type request struct {
	AcceptanceID string `json:"acceptance_id"`
	OrderID      string `json:"order_id"`
	Amount       string `json:"amount"`
	Currency     string `json:"currency"`
}

func (s *Sim) serve(w http.ResponseWriter, r *http.Request, op Op) {
	began := time.Now()
	in, status := s.read(r, op)
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	atOnce, fault, healed := s.enter(op, in)
	defer func() {
		s.leave(Call{
			Op: op, AcceptanceID: in.AcceptanceID, OrderID: in.OrderID, Key: r.Header.Get("Idempotency-Key"), AtOnce: atOnce,
			Took: time.Since(began),
		})
	}()
	pass(s.roundTrip(atOnce), nil)
	if fault != nil && s.misbehave(w, r, *fault, op, in, healed) {
		return
	}
	answer(w, s.decide(op, in))
}

// roundTrip is how long a call takes with so many under way.
func (s *Sim) roundTrip(atOnce int) time.Duration {
	return s.cfg.Base * time.Duration(max(atOnce, s.cfg.Knee)) / time.Duration(s.cfg.Knee)
}

// pass lets time pass, or less when the channel is closed before.
func pass(d time.Duration, ends <-chan struct{}) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ends:
	}
}

// read checks a request; a status above 0 refuses it.
func (s *Sim) read(r *http.Request, op Op) (in request, status int) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	switch {
	case err != nil || json.Unmarshal(body, &in) != nil || in.AcceptanceID == "" || in.OrderID == "":
		return in, http.StatusBadRequest
	case r.Header.Get("Idempotency-Key") == "" || (op == Release && r.PathValue("id") != in.AcceptanceID):
		return in, http.StatusBadRequest
	}
	if s.signer.VerifyIgnoringTimestamp(body, r.Header) != nil { // clocks are the tests' own
		return in, http.StatusUnauthorized
	}
	return in, 0
}

func (s *Sim) enter(op Op, in request) (atOnce int, fault *Fault, healed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay++
	s.atMost = max(s.atMost, s.underWay)
	return s.underWay, s.pick(op, in), s.healed
}

func (s *Sim) leave(call Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay--
	s.calls = append(s.calls, call)
}

// decide does what was asked and returns the answer.
func (s *Sim) decide(op Op, in request) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.acceptances[in.AcceptanceID]
	if a == nil {
		a = &Acceptance{ID: in.AcceptanceID, OrderID: in.OrderID, Amount: in.Amount, Currency: in.Currency}
		s.acceptances[in.AcceptanceID] = a
	}
	if op == Release {
		a.Released++
		a.OrderID, a.State = in.OrderID, Released
		return map[string]any{"released": true}
	}
	a.Asked++
	if a.State == "" {
		a.State = Held
		if s.declined(in.OrderID) != "" {
			a.State = Declined
		}
	}
	switch a.State {
	case Held:
		return map[string]any{"accepted": true}
	case Released:
		return map[string]any{"accepted": false, "reason": "released before"}
	case Declined:
	}
	return map[string]any{"accepted": false, "reason": s.declined(in.OrderID)}
}

// declined is why an order is declined, "" when it is not. The lock is held.
func (s *Sim) declined(orderID string) string {
	return cmp.Or(s.declines[orderID], s.declines[""])
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // the caller may have gone
}
