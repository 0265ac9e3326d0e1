package tosssim

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Method is how a buyer pays.
type Method string

// The methods a checkout can have. ForeignEasyPay is canceled asynchronously: the cancel is IN_PROGRESS until FinishCancel.
const (
	Card           Method = "card"
	VirtualAccount Method = "virtual_account"
	EasyPay        Method = "easy_pay"
	Transfer       Method = "transfer"
	ForeignEasyPay Method = "foreign_easy_pay"
)

// Checkout is what the buyer brings to the payment window. Amount is in minor units: won, or cents of a dollar.
type Checkout struct {
	OrderID     string `json:"orderId"`
	OrderName   string `json:"orderName"`
	CustomerKey string `json:"customerKey"`
	Amount      int64  `json:"amount"`
	Currency    string `json:"currency"` // KRW by default.
	Method      Method `json:"method"`   // Card by default.
}

const (
	windowOpen     = 30 * time.Minute // How long the window stays READY.
	confirmWithin  = 10 * time.Minute // How long an authenticated payment waits for its confirm.
	depositWithin  = 7 * 24 * time.Hour
	statusReady    = "READY"
	statusProgress = "IN_PROGRESS"
	statusWaiting  = "WAITING_FOR_DEPOSIT"
	statusDone     = "DONE"
	statusCanceled = "CANCELED"
	statusPartial  = "PARTIAL_CANCELED"
	statusAborted  = "ABORTED"
	statusExpired  = "EXPIRED"
)

// ErrNotFound is returned for a payment or transaction the simulator does not have.
var ErrNotFound = errors.New("tosssim: no such payment or transaction")

// ErrState is returned when a payment is not in a state in which that can happen to it.
var ErrState = errors.New("tosssim: the payment is not in a state for that")

// payment is one payment object and the little that the gateway knows beside it.
type payment struct {
	key         string
	customerKey string
	async       bool // Cancels begin IN_PROGRESS.
	expires     time.Time
	doc         document
	raw         []byte // What a look-up answers: doc rendered, or the seeded bytes.
	previous    []byte // One version back, for stale answers.
}

func (p *payment) status() string   { return p.doc.text("status") }
func (p *payment) orderID() string  { return p.doc.text("orderId") }
func (p *payment) currency() string { return p.doc.text("currency") }

func (p *payment) amount(name string) int64 {
	minor, _ := minorUnits(p.doc.get(name), p.currency())
	return minor
}

// update replaces the document and keeps the version before it.
func (p *payment) update(doc document) {
	p.previous = p.raw
	p.doc, p.raw = doc, doc.bytes()
}

// approved reports whether the payment has been confirmed, whatever became of it since.
func (p *payment) approved() bool {
	return slices.Contains([]string{statusWaiting, statusDone, statusCanceled, statusPartial}, p.status())
}

// Open is a buyer who opened the payment window and has not authenticated yet.
func (s *Sim) Open(c Checkout) (paymentKey string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open(c, statusReady, windowOpen)
}

// Authenticate is a buyer who finished the payment window: the merchant has ten minutes to confirm.
func (s *Sim) Authenticate(c Checkout) (paymentKey string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open(c, statusProgress, confirmWithin)
}

func (s *Sim) open(c Checkout, status string, valid time.Duration) string {
	if c.Currency == "" {
		c.Currency = "KRW"
	}
	if c.Method == "" {
		c.Method = Card
	}
	now := s.clock.Now()
	p := &payment{
		key:         s.paymentKey(now),
		customerKey: c.CustomerKey,
		async:       c.Method == ForeignEasyPay,
		expires:     now.Add(valid),
	}
	p.doc = s.freshDocument(p.key, status, c, now)
	p.raw = p.doc.bytes()
	s.add(p)
	s.sessions[p.key] = p
	s.nudge()
	return p.key
}

// add enters a payment, or the new version of a seeded one, into the look-up tables.
func (s *Sim) add(p *payment) {
	if old := s.payments[p.key]; old != nil {
		p.previous = old.raw
		delete(s.sessions, p.key)
		keys := s.byOrder[old.orderID()]
		s.byOrder[old.orderID()] = slices.DeleteFunc(keys, func(key string) bool { return key == p.key })
	} else {
		s.order = append(s.order, p.key)
	}
	s.payments[p.key] = p
	s.byOrder[p.orderID()] = append(s.byOrder[p.orderID()], p.key)
}

// freshDocument is a payment before its approval, members in the order the gateway sends them.
func (s *Sim) freshDocument(key, status string, c Checkout, now time.Time) document {
	vat := vatOf(c.Amount, 0, c.Currency)
	zero := number(0, c.Currency)
	return object(
		"mId", s.cfg.MerchantID, "lastTransactionKey", nil, "paymentKey", key, "orderId", c.OrderID,
		"orderName", c.OrderName, "taxExemptionAmount", zero, "status", status, "requestedAt", s.stamp(now),
		"approvedAt", nil, "useEscrow", false, "cultureExpense", false, "card", cardOf(c),
		"virtualAccount", nil, "transfer", transferOf(c), "mobilePhone", nil, "giftCertificate", nil, "cashReceipt", nil,
		"cashReceipts", nil, "discount", nil, "cancels", nil, "secret", nil, "type", "NORMAL", "easyPay", easyPayOf(c),
		"country", "KR", "failure", nil, "isPartialCancelable", true, "receipt", nil,
		"checkout", object("url", "https://api.tosspayments.com/v1/payments/"+key+"/checkout"),
		"currency", c.Currency, "totalAmount", number(c.Amount, c.Currency), "balanceAmount", number(c.Amount, c.Currency),
		"suppliedAmount", number(c.Amount-vat, c.Currency), "vat", number(vat, c.Currency), "taxFreeAmount", zero,
		"method", methodName(c.Method), "version", "2022-11-16", "metadata", nil,
	)
}

func methodName(method Method) string {
	switch method {
	case Card:
		return "카드"
	case VirtualAccount:
		return "가상계좌"
	case Transfer:
		return "계좌이체"
	case EasyPay, ForeignEasyPay:
		return "간편결제"
	}
	return string(method)
}

func cardOf(c Checkout) any {
	if c.Method != Card {
		return nil
	}
	return object(
		"issuerCode", "4V", "acquirerCode", "21", "number", "12345678****000*", "installmentPlanMonths", 0,
		"isInterestFree", false, "interestPayer", nil, "approveNo", "00000000", "useCardPoint", false, "cardType", "신용",
		"ownerType", "개인", "acquireStatus", "READY", "amount", number(c.Amount, c.Currency),
	)
}

func transferOf(c Checkout) any {
	if c.Method != Transfer {
		return nil
	}
	return object("bankCode", "20", "settlementStatus", "INCOMPLETED")
}

func easyPayOf(c Checkout) any {
	provider := "토스페이"
	switch c.Method {
	case ForeignEasyPay:
		provider = "PAYPAL"
	case EasyPay:
	case Card, VirtualAccount, Transfer:
		return nil
	}
	return object("provider", provider, "amount", number(c.Amount, c.Currency), "discountAmount", number(0, c.Currency))
}

// paymentKey has the gateway's newer form: five characters of the merchant id, the Korean time, five characters.
func (s *Sim) paymentKey(now time.Time) string {
	tail := strconv.FormatInt(s.next(), 36)
	return s.cfg.MerchantID[:min(5, len(s.cfg.MerchantID))] + s.kst(now).Format("20060102150405") +
		strings.Repeat("0", max(0, 5-len(tail))) + tail
}

// transactionKey has one of the two forms in production: txrd_a01… or, for virtual accounts, 32 hexadecimal digits.
func (s *Sim) transactionKey(p *payment) string {
	unique := fmt.Sprintf("%012X%08X", s.clock.Now().UnixMilli(), s.next())
	if p.doc.child("virtualAccount") != nil {
		return strings.Repeat("0", 32-len(unique)) + unique
	}
	return "txrd_a01" + strings.Repeat("0", max(0, 23-len(unique))) + strings.ToLower(unique)
}

func newSecret() string { return "ps_" + rand.Text() }

// PutPayment seeds a payment object. Whatever is odd in it is kept byte for byte until something happens to the payment.
// It sends no notice and makes no row in the list.
func (s *Sim) PutPayment(raw []byte) error {
	doc, err := parseDocument(raw)
	if err != nil {
		return fmt.Errorf("read payment: %w", err)
	}
	key := doc.text("paymentKey")
	if key == "" {
		return errors.New("read payment: paymentKey is missing")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &payment{key: key, doc: doc, raw: slices.Clone(raw), expires: s.clock.Now().Add(confirmWithin)}
	if old := s.payments[key]; old != nil {
		p.customerKey, p.async = old.customerKey, old.async
	}
	s.add(p)
	if p.status() == statusReady || p.status() == statusProgress {
		s.sessions[key] = p
	}
	return nil
}

// Payment returns the payment object as a look-up would answer it now.
func (s *Sim) Payment(paymentKey string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireDue()
	p := s.payments[paymentKey]
	if p == nil {
		return nil, false
	}
	return slices.Clone(p.raw), true
}

// Keys returns the keys of all payments, oldest first.
func (s *Sim) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.order)
}

// find returns a payment for one of the buyer's or the dashboard's acts, after time has done its part.
func (s *Sim) find(paymentKey string) (*payment, error) {
	s.expireDue()
	p := s.payments[paymentKey]
	if p == nil {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, paymentKey)
	}
	return p, nil
}

// newest returns the newest payment of an order, or nil.
func (s *Sim) newest(orderID string) *payment {
	keys := s.byOrder[orderID]
	if len(keys) == 0 {
		return nil
	}
	return s.payments[keys[len(keys)-1]]
}

// wordOf reads a JSON string, and reports false for anything else.
func wordOf(raw json.RawMessage) (string, bool) {
	var text string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return "", false
	}
	return text, true
}
