package ledger

import "fmt"

// Status is what our books say of a payment.
type Status string

// The statuses of a payment.
const (
	StatusReady             Status = "ready"               // known, not being confirmed; may be confirmed again
	StatusConfirming        Status = "confirming"          // intent committed, the call may be under way
	StatusUnknown           Status = "unknown"             // sent, outcome not known
	StatusFailed            Status = "failed"              // definite, by gateway evidence
	StatusWaitingForDeposit Status = "waiting_for_deposit" // virtual account issued
	StatusDone              Status = "done"
	StatusPartiallyCanceled Status = "partially_canceled"
	StatusCanceled          Status = "canceled"
)

// Statuses lists every status, in the order a payment lives through them.
func Statuses() []Status {
	return []Status{
		StatusReady, StatusConfirming, StatusUnknown, StatusFailed,
		StatusWaitingForDeposit, StatusDone, StatusPartiallyCanceled, StatusCanceled,
	}
}

// Event is what happens to a payment: an intent of ours, or what an observation amounts to.
type Event string

// The events.
const (
	EventIntended          Event = "intended"           // we are about to confirm
	EventRefused           Event = "refused"            // our confirm was refused for good
	EventUnprocessed       Event = "unprocessed"        // our confirm was turned away unprocessed
	EventLost              Event = "lost"               // sent, no usable answer
	EventOpen              Event = "open"               // the gateway: nothing moved, still open
	EventDead              Event = "dead"               // the gateway: expired or aborted
	EventWaiting           Event = "waiting"            // the gateway: virtual account waits for its deposit
	EventReverted          Event = "reverted"           // the gateway, asked twice: the deposit fell back
	EventCaptured          Event = "captured"           // the gateway: money taken, no cancel that we lack
	EventPartiallyCanceled Event = "partially_canceled" // the gateway: new cancels, a balance is left
	EventFullyCanceled     Event = "fully_canceled"     // the gateway: new cancels, nothing is left
	EventVoided            Event = "voided"             // the gateway: canceled before any money moved
)

// Events lists every event.
func Events() []Event {
	return []Event{
		EventIntended, EventRefused, EventUnprocessed, EventLost, EventOpen, EventDead, EventWaiting,
		EventReverted, EventCaptured, EventPartiallyCanceled, EventFullyCanceled, EventVoided,
	}
}

// move is one cell of the state machine.
type move struct {
	to      Status
	verdict verdict
}

type verdict string

const (
	goes      verdict = "goes"      // the payment moves (or an intent is taken)
	stays     verdict = "stays"     // old, repeated or weaker evidence: nothing changes
	refuses   verdict = "refuses"   // not allowed: our own intent is turned down
	conflicts verdict = "conflicts" // the gateway contradicts our books: nothing changes, a mismatch is opened
)

func to(s Status) move { return move{to: s, verdict: goes} }

// stay, refuse and conflict are the cells that move nothing.
func stay() move     { return move{verdict: stays} }
func refuse() move   { return move{verdict: refuses} }
func conflict() move { return move{verdict: conflicts} }

// transitions is the whole state machine: every pair is decided here. docs/state-machine.md is generated
// from it. Three readings matter most. Evidence that money moved wins over ready, confirming, unknown and
// failed. A confirming or unknown payment leaves that status only by gateway evidence, and "open" is not
// evidence. Nothing leads from canceled back to money.
var transitions = map[Status]map[Event]move{
	StatusReady: {
		EventIntended: to(StatusConfirming),
		EventRefused:  stay(), EventUnprocessed: stay(), EventLost: to(StatusUnknown),
		EventOpen: stay(), EventDead: to(StatusFailed),
		EventWaiting: to(StatusWaitingForDeposit), EventReverted: conflict(),
		EventCaptured: to(StatusDone), EventPartiallyCanceled: to(StatusPartiallyCanceled),
		EventFullyCanceled: to(StatusCanceled), EventVoided: to(StatusCanceled),
	},
	StatusConfirming: {
		EventIntended: refuse(), // one attempt owns the row
		EventRefused:  to(StatusFailed), EventUnprocessed: to(StatusReady), EventLost: to(StatusUnknown),
		EventOpen: stay(), EventDead: to(StatusFailed),
		EventWaiting: to(StatusWaitingForDeposit), EventReverted: conflict(),
		EventCaptured: to(StatusDone), EventPartiallyCanceled: to(StatusPartiallyCanceled),
		EventFullyCanceled: to(StatusCanceled), EventVoided: to(StatusCanceled),
	},
	StatusUnknown: {
		EventIntended: refuse(), // ask first; recovery sends the same key again
		EventRefused:  stay(),   // a refusal after a doubtful attempt proves nothing about that attempt
		// Nor does being turned away: the doubtful attempt may still have gone through.
		EventUnprocessed: stay(), EventLost: stay(),
		EventOpen: stay(), EventDead: to(StatusFailed),
		EventWaiting: to(StatusWaitingForDeposit), EventReverted: conflict(),
		EventCaptured: to(StatusDone), EventPartiallyCanceled: to(StatusPartiallyCanceled),
		EventFullyCanceled: to(StatusCanceled), EventVoided: to(StatusCanceled),
	},
	StatusFailed: {
		EventIntended: refuse(), // the buyer needs a new payment
		EventRefused:  stay(), EventUnprocessed: stay(), EventLost: stay(),
		EventOpen: stay(), EventDead: stay(),
		EventWaiting: to(StatusWaitingForDeposit), EventReverted: conflict(),
		EventCaptured: to(StatusDone), EventPartiallyCanceled: to(StatusPartiallyCanceled),
		EventFullyCanceled: to(StatusCanceled), EventVoided: to(StatusCanceled),
	},
	StatusWaitingForDeposit: {
		EventIntended: refuse(),
		EventRefused:  stay(), EventUnprocessed: stay(), EventLost: stay(),
		EventOpen: stay(), EventDead: to(StatusFailed),
		EventWaiting: stay(), EventReverted: stay(),
		EventCaptured: to(StatusDone), EventPartiallyCanceled: to(StatusPartiallyCanceled),
		EventFullyCanceled: to(StatusCanceled), EventVoided: to(StatusCanceled),
	},
	StatusDone: {
		EventIntended: refuse(),
		EventRefused:  stay(), EventUnprocessed: stay(), EventLost: stay(),
		EventOpen: stay(), EventDead: conflict(),
		EventWaiting: stay(), // seen once: remembered, and asked again before money is taken back
		// The one backward move of money: the bank reports a deposit error, usually within minutes.
		EventReverted: to(StatusWaitingForDeposit),
		EventCaptured: stay(), EventPartiallyCanceled: to(StatusPartiallyCanceled),
		EventFullyCanceled: to(StatusCanceled),
		// Seen twice as well: the deposit fell back, and then the account was canceled.
		EventVoided: to(StatusCanceled),
	},
	StatusPartiallyCanceled: {
		EventIntended: refuse(),
		EventRefused:  stay(), EventUnprocessed: stay(), EventLost: stay(),
		EventOpen: stay(), EventDead: conflict(),
		EventWaiting: conflict(), EventReverted: conflict(),
		EventCaptured: stay(), EventPartiallyCanceled: to(StatusPartiallyCanceled),
		EventFullyCanceled: to(StatusCanceled), EventVoided: conflict(),
	},
	StatusCanceled: {
		EventIntended: refuse(),
		EventRefused:  stay(), EventUnprocessed: stay(), EventLost: stay(),
		EventOpen: stay(), EventDead: stay(),
		EventWaiting: stay(), EventReverted: conflict(),
		EventCaptured: stay(), EventPartiallyCanceled: conflict(), // there was nothing left to cancel
		EventFullyCanceled: conflict(), EventVoided: stay(),
	},
}

// Live reports whether the payment holds its order: it may take or has taken the order's money.
func (s Status) Live() bool {
	switch s {
	case StatusConfirming, StatusUnknown, StatusWaitingForDeposit, StatusDone, StatusPartiallyCanceled, StatusCanceled:
		return true
	case StatusReady, StatusFailed:
		return false
	}
	return false
}

// Undecided reports whether a confirm of ours has an outcome that nobody knows yet.
func (s Status) Undecided() bool { return s == StatusConfirming || s == StatusUnknown }

// HoldsMoney reports whether captured money is left at the gateway.
func (s Status) HoldsMoney() bool { return s == StatusDone || s == StatusPartiallyCanceled }

// OrderStatus is what our books say of an order.
type OrderStatus string

// The statuses of an order.
const (
	OrderPending           OrderStatus = "pending"
	OrderPaid              OrderStatus = "paid"
	OrderPartiallyCanceled OrderStatus = "partially_canceled"
	OrderCanceled          OrderStatus = "canceled"
	OrderExpired           OrderStatus = "expired"
)

// OrderStatuses lists every order status.
func OrderStatuses() []OrderStatus {
	return []OrderStatus{OrderPending, OrderPaid, OrderPartiallyCanceled, OrderCanceled, OrderExpired}
}

// orderStatus derives an order's status from the payment that holds it. An unpaid order keeps its own status
// (pending or expired): a failed attempt must not end the order, and a void of an unpaid account frees it for
// nothing else, since the gateway closed that session with the buyer gone.
func orderStatus(current OrderStatus, s Status) OrderStatus {
	switch s {
	case StatusDone:
		return OrderPaid
	case StatusPartiallyCanceled:
		return OrderPartiallyCanceled
	case StatusCanceled:
		return OrderCanceled
	case StatusReady, StatusConfirming, StatusUnknown, StatusFailed, StatusWaitingForDeposit:
		if current == OrderExpired {
			return OrderExpired
		}
		return OrderPending
	}
	panic(fmt.Sprintf("status %q has no order status", s))
}
