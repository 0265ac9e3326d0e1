package tosssim

import (
	"encoding/json"
	"slices"
	"time"
)

// Notice is one webhook event and what became of it.
type Notice struct {
	ID             int64      `json:"id"`
	TransmissionID string     `json:"transmissionId"`
	EventType      string     `json:"eventType"`
	PaymentKey     string     `json:"paymentKey"` // For the test; deposit callbacks and cancel events do not send it.
	Body           []byte     `json:"body"`       // Base64 in JSON.
	Deliveries     []Delivery `json:"deliveries"`
	Done           bool       `json:"done"` // A delivery was answered 200 in time.
	Lost           bool       `json:"lost"` // The eighth delivery failed, or the plan said so.
	NextAt         time.Time  `json:"nextAt"`
}

// Delivery is one send of a notice and how the receiver answered it.
type Delivery struct {
	At           time.Time     `json:"at"`
	RetriedCount int           `json:"retriedCount"`
	Status       int           `json:"status"` // 0 when there was no answer.
	Took         time.Duration `json:"took"`   // Real time, in nanoseconds in JSON.
	Err          string        `json:"err"`
}

// DeliveryPlan says how the gateway mistreats its notices. The zero value sends each once, in order, at once.
type DeliveryPlan struct {
	Hold      bool              // Queue, but send only what Deliver is asked to.
	HoldTime  time.Duration     // New notices are first sent this long after they came to be.
	Lose      int               // That many of the next notices are never sent.
	LoseIf    func(Notice) bool // New notices for which it is true are never sent. It must not call the simulator.
	Duplicate int               // Extra copies of every send, with the same headers.
	Shuffle   uint64            // A seed other than 0 sends what is due together in another order.
	FreshIDs  bool              // A new transmission id for every retry; whether it stays is not documented.
	Parallel  int               // Sends at the same time: by default 1 in DeliverDue and 64 in Run.
}

// RedeliverySchedule is how long after a failed delivery the next one follows: seven times, 3 days 19 hours 1 minute in all.
func RedeliverySchedule() []time.Duration {
	return []time.Duration{
		1 * time.Minute, 4 * time.Minute, 16 * time.Minute, 64 * time.Minute, 256 * time.Minute, 1024 * time.Minute,
		4096 * time.Minute,
	}
}

// notice is a Notice and its way to the receiver.
type notice struct {
	Notice
	attempts int // Deliveries begun, copies not counted.
	sending  int // Senders that have taken it.
	signed   bool
}

// notifyPayment sends the payment as it is now.
func (s *Sim) notifyPayment(p *payment) { s.notify("PAYMENT_STATUS_CHANGED", p.key, p.raw) }

// notify queues an event of the common envelope; the real order of its members is not the documented one.
func (s *Sim) notify(eventType, paymentKey string, data []byte) {
	id := s.next()
	body := object("createdAt", s.createdAt(s.clock.Now(), id), "eventType", eventType, "data", json.RawMessage(data))
	s.queue(notice{Notice: Notice{ID: id, EventType: eventType, PaymentKey: paymentKey, Body: body.bytes()}})
}

// Notify queues an event of any type in the common envelope, to be delivered like all others. It returns the notice's id.
func (s *Sim) Notify(eventType string, data []byte) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify(eventType, "", data)
	return s.notices[len(s.notices)-1].ID
}

// Payout queues payout.changed, the one kind of event that is signed, for an amount in won. It returns the notice's id.
func (s *Sim) Payout(amount int64, completed bool) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, id := s.clock.Now(), s.next()
	status := "FAILED"
	if completed {
		status = "COMPLETED"
	}
	body := object(
		"eventType", "payout.changed", "createdAt", s.stamp(now), "version", "2022-11-16",
		"eventId", transmissionID("evt_sim_", id), "entityType", "payout",
		"entityBody", object(
			"id", transmissionID("FPA_", id), "refPayoutId", transmissionID("payout-", id), "destination", "seller-1",
			"scheduleType", "SCHEDULED", "payoutDate", s.kst(now).Format(time.DateOnly),
			"amount", object("currency", "KRW", "value", json.RawMessage(string(number(amount, "KRW"))+".0")),
			"transactionDescription", "대금지급", "requestedAt", s.stamp(now), "status", status, "error", nil,
			"metadata", nil,
		),
	)
	s.queue(notice{Notice: Notice{ID: id, EventType: "payout.changed", Body: body.bytes()}, signed: true})
	return id
}

// queue enters a notice, and loses it at once when the plan says so.
func (s *Sim) queue(n notice) {
	n.TransmissionID = transmissionID("whtrans_a01", n.ID)
	n.NextAt = s.clock.Now().Add(s.plan.HoldTime)
	s.notices = append(s.notices, &n)
	switch {
	case s.plan.Lose > 0:
		s.plan.Lose--
		n.Lost = true
	case s.plan.LoseIf != nil && s.plan.LoseIf(n.Notice):
		n.Lost = true
	default:
		s.pending = append(s.pending, &n)
		s.nudge()
	}
}

// Notices returns all notices, in the order they came to be.
func (s *Sim) Notices() []Notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireDue()
	notices := make([]Notice, len(s.notices))
	for i, n := range s.notices {
		notices[i] = n.Notice
		notices[i].Deliveries = slices.Clone(n.Deliveries)
	}
	return notices
}

// SetDelivery changes how notices are mistreated from now on.
func (s *Sim) SetDelivery(plan DeliveryPlan) {
	s.mu.Lock()
	s.plan = plan
	s.mu.Unlock()
	s.nudge()
}
