package ledger

import (
	"time"
)

// Order is what a buyer owes: the amount comes from the merchant's server and from nowhere else.
type Order struct {
	ID         string
	Status     OrderStatus
	Amount     Money
	CustomerID string // "" when the merchant named none; then no credits can be granted
	Name       string
	Credits    int64 // granted when the order is paid
	CreatedAt  time.Time
	ExpiresAt  time.Time
}

// Payment is one payment key in our books, with the captures and cancels that prove its status.
type Payment struct {
	Key        string
	OrderID    string
	MerchantID string
	Status     Status
	Amount     Money // what was to be captured: the order's amount
	// Surplus marks a payment that does not hold its order: another one does, or it is in doubt and the gateway has
	// never known it (see Release). Money that comes for a held order waits in suspense and never touches the order.
	Surplus bool
	// Attempt counts our confirm calls. A writer that carries a stale attempt owns nothing.
	Attempt int
	// Generation numbers the idempotency key. It changes only after the gateway answered definitely.
	Generation     int
	KeyFirstUsedAt time.Time
	IntendedAt     time.Time // of the present attempt
	UndecidedSince time.Time // zero unless confirming or unknown
	WaitingSeenAt  time.Time // a done virtual account was seen without its deposit since then; zero when not
	MoneySeenAt    time.Time // a deposit that was taken back was seen standing since then; zero when not
	FallShownAt    time.Time // since when the gateway's list, or a notice that proved itself, says that the last deposit fell back
	VirtualAccount bool
	SecretDigest   []byte
	Reason         string // the gateway's word for a failure
	Method         string
	Captures       []Capture
	Cancels        []Cancel
	CreditsGranted int64
	CreditsRevoked int64
	Tax            Tax
	UpdatedAt      time.Time
}

// Capture is money taken, or a deposit received. A payment has more than one only when a virtual account's
// deposit fell back and came again, or was taken back in error.
type Capture struct {
	Number         int
	TransactionKey string // "" until the gateway named it: an object with cancels no longer shows the capture's key
	Amount         Money
	CapturedAt     time.Time
	ReversedAt     time.Time // zero unless the deposit fell back
}

// Cancel is money given back, or the void of an unpaid virtual account (amount nothing).
type Cancel struct {
	TransactionKey string
	PaymentKey     string
	Amount         Money
	TaxFree        Money
	TaxExempt      Money
	Reason         string
	CanceledAt     time.Time
	Channel        Channel
	RecordedAt     time.Time
	CreditsRevoked int64
}

// Captured is the money taken and not fallen back.
func (p Payment) Captured() Money {
	sum := Money{Currency: p.Amount.Currency}
	for _, c := range p.Captures {
		if c.ReversedAt.IsZero() {
			sum.Minor += c.Amount.Minor // each is ≤ the order's amount and at most one is not reversed
		}
	}
	return sum
}

// Canceled is the sum of the cancels.
func (p Payment) Canceled() Money {
	sum := Money{Currency: p.Amount.Currency}
	for _, c := range p.Cancels {
		sum.Minor += c.Amount.Minor // I2: never above Captured
	}
	return sum
}

// Balance is what is left of the captured money (I2).
func (p Payment) Balance() Money {
	return Money{Minor: p.Captured().Minor - p.Canceled().Minor, Currency: p.Amount.Currency}
}

// HasCancel reports whether the cancel is in our books.
func (p Payment) HasCancel(transactionKey string) bool {
	for _, c := range p.Cancels {
		if c.TransactionKey == transactionKey {
			return true
		}
	}
	return false
}

// capture returns the capture that is not reversed.
func (p Payment) capture() (Capture, bool) {
	for _, c := range p.Captures {
		if c.ReversedAt.IsZero() {
			return c, true
		}
	}
	return Capture{}, false
}

// IdempotencyKey is the key sent to the gateway with the present generation of the confirm. It names the
// payment, because the gateway replays by key and address alone, whatever the body says.
func (p Payment) IdempotencyKey() string { return confirmKey(p.Key, p.Generation) }
