package tosssim

import "time"

// Op is what a call asks the gateway for. Get covers look-ups by payment key and by order.
type Op string

// The operations of the gateway that the simulator knows; a call to any other address has the empty one.
const (
	Confirm Op = "confirm"
	Cancel  Op = "cancel"
	Get     Op = "get"
	List    Op = "list"
)

// Call is one request the gateway received, whether or not it was answered.
type Call struct {
	Op             Op        `json:"op"`
	Method         string    `json:"method"`
	Path           string    `json:"path"` // As sent, escapes included.
	RawQuery       string    `json:"rawQuery"`
	PaymentKey     string    `json:"paymentKey"`
	OrderID        string    `json:"orderId"`
	IdempotencyKey string    `json:"idempotencyKey"`
	AcceptLanguage string    `json:"acceptLanguage"`
	Authorization  string    `json:"authorization"`
	Body           []byte    `json:"body"` // Base64 in JSON.
	At             time.Time `json:"at"`
	Status         int       `json:"status"` // 0 while it is held, and for good when the connection was dropped.
	Effect         bool      `json:"effect"` // State changed.
}

// Calls returns all calls in the order they arrived.
func (s *Sim) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := make([]Call, len(s.calls))
	for i, call := range s.calls {
		calls[i] = *call
	}
	return calls
}

// Count returns how many calls of an operation arrived.
func (s *Sim) Count(op Op) int {
	return s.count(func(c *Call) bool { return c.Op == op })
}

// Counts returns how many calls of each operation arrived.
func (s *Sim) Counts() map[Op]int {
	counts := map[Op]int{Confirm: 0, Cancel: 0, Get: 0, List: 0}
	s.count(func(c *Call) bool {
		counts[c.Op]++
		return false
	})
	return counts
}

// CountKey returns how many calls of an operation about one payment arrived.
func (s *Sim) CountKey(op Op, paymentKey string) int {
	return s.count(func(c *Call) bool { return c.Op == op && c.PaymentKey == paymentKey })
}

func (s *Sim) count(match func(*Call) bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, call := range s.calls {
		if match(call) {
			n++
		}
	}
	return n
}

// ResetCalls forgets the calls so far.
func (s *Sim) ResetCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

func (s *Sim) noteStatus(in *inbound, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in.call.Status = status
}
