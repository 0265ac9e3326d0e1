package ledger

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// memory is the books without a database: what Decide and workOut say, kept in maps.
type memory struct {
	payments map[string]Payment
	orders   map[string]Order
	journal  map[string]journalFact
	work     map[debt]bool
	kinds    []Kind
	fail     func(format string, args ...any)
}

func (m *memory) createOrder(o Order) { m.orders[o.ID] = o }

func (m *memory) holder(order, but string) string {
	for key, p := range m.payments {
		if p.OrderID == order && key != but && p.Status.Live() && !p.Surplus {
			return key
		}
	}
	return ""
}

func (m *memory) intend(key, order string, amount Money, now time.Time) (int, bool) {
	p, known := m.payments[key]
	if !known {
		p = Payment{Key: key, OrderID: order, Status: StatusReady, Amount: amount, Generation: 1}
	}
	if transitions[p.Status][EventIntended].verdict != goes || m.holder(order, key) != "" {
		return 0, false
	}
	m.payments[key] = p.intended(now)
	m.work[debt{kind: WorkConfirmUnknown, payment: key, order: order}] = true
	m.adoptParked(key)
	return p.Attempt + 1, true
}

func (m *memory) adoptParked(key string) {
	for d := range m.work {
		if d.payment == key && d.kind == WorkParked {
			delete(m.work, d)
			d.kind = WorkCancelClaimed
			m.work[d] = true
		}
	}
}

func (m *memory) record(o Observation, crash bool, now time.Time) {
	p, known := m.payments[o.PaymentKey]
	if crash || !known && !o.Evidence.HasObject() {
		return
	}
	if !known {
		order := m.orders[o.OrderID]
		p = Payment{Key: o.PaymentKey, OrderID: order.ID, Status: StatusReady, Amount: order.Amount, Generation: 1}
		m.adoptParked(p.Key)
	}
	d := Decide(p, o)
	e := workOut(p, m.orders[p.OrderID], m.holder(p.OrderID, p.Key), o, d, now)
	if d.LearnedKey != "" { // as the database does, also when nothing else changes
		e.after.Captures = slices.Clone(e.after.Captures)
		e.after.Captures[len(e.after.Captures)-1].TransactionKey = d.LearnedKey
	}
	m.payments[p.Key], m.orders[p.OrderID] = e.after, e.order
	for _, f := range e.journal {
		reference := string(f.Kind) + " " + f.Reference
		if _, twice := m.journal[reference]; twice {
			m.fail("%s is in the journal twice", reference)
		}
		m.journal[reference] = f
	}
	for _, f := range e.findings {
		m.kinds = append(m.kinds, f.Kind)
	}
	m.keepWork(e, o)
	m.check(e)
}

// keepWork does what the statements of queueWork do.
func (m *memory) keepWork(e effects, o Observation) {
	p := e.after
	confirm := debt{kind: WorkConfirmUnknown, payment: p.Key, order: p.OrderID}
	if !p.Status.Undecided() {
		delete(m.work, confirm)
	} else if e.decision.Verdict == goes {
		m.work[confirm] = true
	}
	booked := func(d debt) bool {
		unnamed := d.transactionKey == "" && len(e.decision.Open) == 0
		return p.HasCancel(d.transactionKey) || unnamed
	}
	if o.Evidence.HasObject() && len(p.Cancels) > 0 && !e.decision.Conflict() {
		maps.DeleteFunc(m.work, func(d debt, _ bool) bool {
			return d.payment == p.Key && slices.Contains(cancelKinds(), d.kind) && booked(d)
		})
	}
	maps.DeleteFunc(m.work, func(d debt, _ bool) bool {
		return d.payment == p.Key && slices.Contains(e.decision.Ended, d.transactionKey)
	})
	for _, c := range e.decision.Open {
		m.work[debt{WorkCancelInProgress, p.Key, p.OrderID, c.TransactionKey}] = true
	}
	if p.VirtualAccount && e.decision.Capture != nil || p.doubted() {
		m.work[debt{kind: WorkDepositWatch, payment: p.Key, order: p.OrderID}] = true
	}
}

// check asserts after every step what the database asserts by its constraints, and that evidence only adds.
func (m *memory) check(e effects) {
	p, before := e.after, e.before
	captured, canceled := p.Captured().Minor, p.Canceled().Minor
	var fits bool
	switch p.Status {
	case StatusDone:
		fits = captured > 0 && canceled == 0
	case StatusPartiallyCanceled:
		fits = canceled > 0 && canceled < captured
	case StatusCanceled:
		fits = canceled == captured
	case StatusReady, StatusConfirming, StatusUnknown, StatusFailed, StatusWaitingForDeposit:
		fits = captured == 0 && canceled == 0
	}
	if !fits || captured != 0 && captured != p.Amount.Minor {
		m.fail("%s is %s with %d captured and %d canceled", p.Key, p.Status, captured, canceled)
	}
	if len(p.Captures) < len(before.Captures) || len(p.Cancels) < len(before.Cancels) {
		m.fail("%s lost a capture or cancel: %+v then %+v", p.Key, before, p)
	}
	if p.Status.Undecided() != !p.UndecidedSince.IsZero() {
		m.fail("%s is %s since %s", p.Key, p.Status, p.UndecidedSince)
	}
	if p.Status.Live() && !p.Surplus && m.holder(p.OrderID, p.Key) != "" {
		m.fail("%s has two live payments", p.OrderID)
	}
	if p.CreditsRevoked < 0 || p.CreditsRevoked > p.CreditsGranted {
		m.fail("%s revoked %d of %d credits", p.Key, p.CreditsRevoked, p.CreditsGranted)
	}
	balance := int64(0)
	for _, f := range m.journal {
		if f.PaymentKey == p.Key && f.Debit == AccountReceivable {
			balance += f.Amount.Minor
		}
		if f.PaymentKey == p.Key && f.Credit == AccountReceivable {
			balance -= f.Amount.Minor
		}
	}
	if balance != p.Balance().Minor {
		m.fail("%s has a balance of %s and %d in the journal", p.Key, p.Balance(), balance)
	}
}

func (m *memory) owe(d debt, _ time.Time) { m.work[d] = true }

func (m *memory) owed() []debt {
	return slices.SortedFunc(maps.Keys(m.work), func(a, b debt) int {
		return slices.Compare([]string{a.payment, string(a.kind), a.transactionKey}, []string{b.payment, string(b.kind), b.transactionKey})
	})
}

func (m *memory) payment(key string) (Payment, bool) {
	p, known := m.payments[key]
	return p, known
}

func (m *memory) order(id string) Order { return m.orders[id] }

func (m *memory) findings() []Kind { return m.kinds }

// scripts makes the bytes of stories.
func scripts() *rapid.Generator[[]byte] { return rapid.SliceOfN(rapid.Byte(), 150, 300) }

// TestModel_InMemory tells thousands of stories to the pure core: whatever was lost, doubled, late or out of order,
// at rest the books hold what the gateway did.
func TestModel_InMemory(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		t.Run(fmt.Sprintf("hundred_%d", i), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(r *rapid.T) {
				m := &memory{
					payments: map[string]Payment{}, orders: map[string]Order{}, journal: map[string]journalFact{}, work: map[debt]bool{},
					fail: r.Fatalf,
				}
				tell(scripts().Draw(r, "story"), "m", m, r.Fatalf)
			})
		})
	}
}
