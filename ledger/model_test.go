package ledger

import (
	"fmt"
	"slices"
	"time"
)

// sale is a payment as the model of the gateway knows it.
type sale struct {
	key, order string
	amount     Money
	account    bool // a virtual account: waits for its deposit, which can fall back
	evidence   Evidence
	deposits   int
	captureKey string
	capturedAt time.Time
	cancels    []ObservedCancel
	fell       bool
	before     []Observation // what it showed earlier, newest last: a copy of the gateway's may be behind
}

// look is what the gateway shows of the sale.
func (s *sale) look(now time.Time) Observation {
	o := Observation{
		PaymentKey: s.key, OrderID: s.order, Channel: ChannelSweep, Evidence: s.evidence, AskedAt: now, SeenAt: now,
		Word: string(s.evidence), VirtualAccount: s.account, Total: s.amount, Balance: s.amount,
		LastTransactionKey: s.captureKey, CapturedAt: s.capturedAt, Cancels: slices.Clone(s.cancels),
	}
	for _, c := range s.cancels {
		o.LastTransactionKey = c.TransactionKey
	}
	o.Balance.Minor -= s.given(CancelDone)
	return o
}

// stale is what a copy of the gateway's that is behind shows of an account.
func (s *sale) stale(back int, now time.Time) Observation {
	if !s.account || len(s.before) == 0 {
		return s.look(now)
	}
	o := s.before[max(0, len(s.before)-1-back)]
	o.AskedAt, o.SeenAt = now, now
	return o
}

// given is the sum of the cancels in a state.
func (s *sale) given(states ...CancelState) int64 {
	var sum int64
	for _, c := range s.cancels {
		if slices.Contains(states, c.State) {
			sum += c.Amount.Minor
		}
	}
	return sum
}

// capture takes the money.
func (s *sale) capture(now time.Time) {
	s.deposits++
	s.evidence, s.capturedAt, s.captureKey = EvidenceCaptured, now, fmt.Sprintf("%s_t%d", s.key, s.deposits)
}

// process is the gateway's side of a confirm that it accepts.
func (s *sale) process(now time.Time) {
	switch {
	case s.evidence != EvidenceOpen:
	case s.account:
		s.evidence = EvidenceWaiting
	default:
		s.capture(now)
	}
}

// cancelSome is a cancel made at the gateway's own desk.
func (s *sale) cancelSome(amount int64, state CancelState, now time.Time) {
	s.cancels = append(s.cancels, ObservedCancel{
		TransactionKey: fmt.Sprintf("%s_c%d", s.key, len(s.cancels)), State: state, Amount: Won(amount), CanceledAt: now,
	})
}

// ledgerUnderTest is what a story is told to: the pure core in memory, or the real thing on PostgreSQL.
type ledgerUnderTest interface { //nolint:interfacebloat // two whole ledgers stand behind it
	createOrder(o Order)
	intend(key, order string, amount Money, now time.Time) (attempt int, started bool)
	// record records, or fails after everything but the commit.
	record(o Observation, crash bool, now time.Time)
	// owe opens work as the handler of notices and the audit do.
	owe(d debt, now time.Time)
	owed() []debt
	payment(key string) (Payment, bool)
	order(id string) Order
	findings() []Kind
}

// debt is one open row of work.
type debt struct {
	kind           WorkKind
	payment, order string
	transactionKey string
}

// call is a confirm of ours on its way.
type call struct {
	sale    *sale
	attempt int
}

// story is a random history of a few orders. It is a string of bytes, each of which decides one thing, so that a
// failure shrinks well and can be told again.
type story struct {
	bytes  []byte
	books  ledgerUnderTest
	now    time.Time
	orders []Order
	sales  []*sale
	calls  []call
	seen   []Observation // everything ever read: each may be recorded late, again, or never
	fail   func(format string, args ...any)
}

// tell plays the story to its end and then checks that both sides agree. The prefix keeps stories in one database apart.
func tell(script []byte, prefix string, books ledgerUnderTest, fail func(format string, args ...any)) {
	s := &story{bytes: script, books: books, now: second(0), fail: fail}
	s.open(prefix)
	for len(s.bytes) > 0 {
		s.step()
	}
	s.settle()
	s.compare()
}

// choose decides between n things.
func (s *story) choose(n int) int {
	if len(s.bytes) == 0 {
		return 0
	}
	b := s.bytes[0]
	s.bytes = s.bytes[1:]
	return int(b) % n
}

func (s *story) open(prefix string) {
	for i := range 1 + s.choose(2) {
		o := Order{
			ID: fmt.Sprintf("order_%s_%d", prefix, i), Status: OrderPending, Amount: Won(int64(1000 + s.choose(100))),
			CustomerID: "cus_" + prefix, Credits: int64(s.choose(20)), CreatedAt: s.now, ExpiresAt: s.now.Add(1000 * time.Hour),
		}
		s.orders = append(s.orders, o)
		s.books.createOrder(o)
		for k := range 1 + s.choose(2) {
			s.sales = append(s.sales, &sale{
				key: fmt.Sprintf("pk_%s_%d%d", prefix, i, k), order: o.ID, amount: o.Amount,
				account: s.choose(2) == 1, evidence: EvidenceOpen,
			})
		}
	}
}

func (s *story) step() {
	s.now = s.now.Add(time.Second)
	one := s.sales[s.choose(len(s.sales))]
	switch s.choose(12) {
	case 0:
		s.pay(one)
	case 1:
		s.recover(one)
	case 2: // a call that was believed lost arrives after all, or another system of the shop's confirms
		if len(s.calls) > 0 {
			s.calls[s.choose(len(s.calls))].sale.process(s.now)
		} else if s.choose(3) == 0 {
			one.process(s.now)
		}
	case 3:
		if s.choose(4) == 3 {
			s.read(one.stale(s.choose(3), s.now))
		} else {
			s.look(one)
		}
	case 4, 5:
		if len(s.seen) > 0 {
			s.books.record(s.seen[s.choose(len(s.seen))], s.choose(8) == 7, s.now)
		}
	case 6:
		s.deposit(one)
	case 7, 8:
		s.cancel(one)
	case 9:
		s.finish(one)
	case 10:
		if s.choose(4) == 0 && one.evidence == EvidenceOpen {
			one.evidence = EvidenceDead
		}
		s.now = s.now.Add(time.Duration(s.choose(90)) * time.Second)
	case 11:
		s.notice(one)
	}
}

// pay is a buyer who confirms; at times we crash between the intent and the call.
func (s *story) pay(one *sale) {
	attempt, started := s.books.intend(one.key, one.order, one.amount, s.now)
	if started && s.choose(5) > 0 {
		s.confirm(call{one, attempt})
	}
}

// recover sends the same confirm again for a payment whose outcome is not known. That the first call was lost is
// recorded first: what the second brings is then no evidence about the first.
func (s *story) recover(one *sale) {
	p, known := s.books.payment(one.key)
	if !known || !p.Status.Undecided() || p.Attempt == 0 {
		return
	}
	s.books.record(s.outcome(call{one, p.Attempt}, EvidenceLost), false, s.now)
	s.confirm(call{one, p.Attempt})
}

// confirm is one confirm call and what it brings, each of which may be recorded at once, late, or never.
func (s *story) confirm(c call) {
	reply := s.outcome(c, EvidenceLost)
	switch s.choose(6) {
	case 0, 1:
		c.sale.process(s.now)
		reply = c.sale.look(s.now)
		reply.Attempt = c.attempt
	case 2: // done, and the answer lost
		c.sale.process(s.now)
	case 3: // lost on the way; it may still arrive
		s.calls = append(s.calls, c)
	case 4:
		if c.sale.evidence == EvidenceOpen {
			c.sale.evidence, reply = EvidenceDead, s.outcome(c, EvidenceRefused)
		}
	case 5:
		if c.sale.evidence == EvidenceOpen {
			reply = s.outcome(c, EvidenceUnprocessed)
		}
	}
	s.now = s.now.Add(time.Second)
	s.read(reply)
}

func (s *story) outcome(c call, e Evidence) Observation {
	return Observation{
		PaymentKey: c.sale.key, OrderID: c.sale.order, Channel: ChannelConfirm, Evidence: e, Attempt: c.attempt,
		AskedAt: s.now, SeenAt: s.now, Word: string(e),
	}
}

func (s *story) look(one *sale) {
	s.read(one.look(s.now))
}

// read keeps an observation and mostly records it at once, sometimes twice.
func (s *story) read(o Observation) {
	s.seen = append(s.seen, o)
	for range []int{1, 1, 2, 0}[s.choose(4)] {
		s.books.record(o, false, s.now)
	}
}

// deposit pays into an account, or takes a deposit back as a bank that finds an error does.
func (s *story) deposit(one *sale) {
	switch {
	case !one.account:
	case one.evidence == EvidenceWaiting:
		one.before = append(one.before, one.look(s.now))
		one.capture(s.now)
	case one.evidence == EvidenceCaptured && len(one.cancels) == 0 && s.choose(2) == 0:
		one.before = append(one.before, one.look(s.now))
		one.evidence, one.captureKey, one.capturedAt, one.fell = EvidenceWaiting, "", time.Time{}, true
	}
}

func (s *story) cancel(one *sale) {
	switch {
	case one.evidence == EvidenceWaiting && s.choose(3) == 0:
		one.before = append(one.before, one.look(s.now))
		one.evidence = EvidenceVoided
		one.cancelSome(one.amount.Minor, CancelDone, s.now)
	case one.evidence == EvidenceCaptured:
		left := one.amount.Minor - one.given(CancelDone, CancelInProgress)
		if left == 0 {
			return
		}
		amount := left
		if s.choose(3) > 0 {
			amount = 1 + int64(s.choose(200))*7%left
		}
		state := CancelDone
		if !one.account && s.choose(3) == 0 {
			state = CancelInProgress
		}
		one.cancelSome(amount, state, s.now)
	}
	if s.choose(2) == 0 {
		s.look(one)
	}
}

// finish ends the cancels that the gateway is still working on.
func (s *story) finish(one *sale) {
	for i := range one.cancels {
		if one.cancels[i].State == CancelInProgress {
			one.cancels[i].State = []CancelState{CancelDone, CancelAborted}[s.choose(2)]
		}
	}
}

// notice is a notice of a cancel that could not be applied when it came: it leaves a claim, with a name or without.
func (s *story) notice(one *sale) {
	if one.given(CancelDone) == 0 {
		return
	}
	d := debt{kind: WorkCancelClaimed, payment: one.key, order: one.order}
	p, known := s.books.payment(one.key)
	if !known {
		d.kind = WorkParked
	}
	if !slices.ContainsFunc(one.cancels, func(c ObservedCancel) bool { return c.State == CancelDone && !p.HasCancel(c.TransactionKey) }) {
		return // it would have been acknowledged
	}
	if c := one.cancels[s.choose(len(one.cancels))]; s.choose(2) == 0 && c.State == CancelDone {
		d.transactionKey = c.TransactionKey
	}
	s.books.owe(d, s.now)
}
