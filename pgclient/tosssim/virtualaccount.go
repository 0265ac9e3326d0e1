package tosssim

import (
	"fmt"
	"slices"
)

// FallenRow is a way in which the list may show a deposit that fell back.
type FallenRow string

// The ways.
const (
	FallenRowOwn     FallenRow = "own"      // a row of its own, waiting, of amount 0
	FallenRowInPlace FallenRow = "in_place" // the deposit's row says waiting from then on
	FallenRowGone    FallenRow = "gone"     // the deposit's row is taken out
	FallenRowNone    FallenRow = "none"     // nothing
)

// FallenRows lists every way.
func FallenRows() []FallenRow {
	return []FallenRow{FallenRowOwn, FallenRowInPlace, FallenRowGone, FallenRowNone}
}

// Deposit is a buyer who paid into the virtual account.
func (s *Sim) Deposit(paymentKey string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.find(paymentKey)
	if err != nil {
		return err
	}
	account := p.doc.child("virtualAccount")
	if p.status() != statusWaiting || string(account.get("expired")) == "true" {
		return fmt.Errorf("%w: deposit for %s, which is %s", ErrState, paymentKey, p.status())
	}
	now := s.clock.Now()
	key := s.transactionKey(p)
	delete(s.sessions, p.key)
	p.update(p.doc.with("status", statusDone).with("approvedAt", s.stamp(now)).with("lastTransactionKey", key).
		with("virtualAccount", account.with("depositorName", "테스트입금자")))
	s.captured(p, 1)
	s.addRow(p, key, p.amount("totalAmount"), now)
	s.notifyAccount(p)
	return nil
}

// RevertDeposit is a deposit that turned out to be an error of the bank: DONE falls back to WAITING_FOR_DEPOSIT, under a
// transaction key of its own. How the list shows it is not documented: see [FallenRow].
func (s *Sim) RevertDeposit(paymentKey string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.find(paymentKey)
	if err != nil {
		return err
	}
	account := p.doc.child("virtualAccount")
	if p.status() != statusDone || account == nil {
		return fmt.Errorf("%w: revert the deposit for %s, which is %s", ErrState, paymentKey, p.status())
	}
	now := s.clock.Now()
	deposit, key := p.doc.text("lastTransactionKey"), s.transactionKey(p)
	p.update(p.doc.with("status", statusWaiting).with("approvedAt", nil).with("lastTransactionKey", key).
		with("virtualAccount", account.with("depositorName", nil)))
	p.expires = now.Add(depositWithin)
	s.sessions[p.key] = p
	s.captured(p, -1)
	at := slices.IndexFunc(s.rows, func(r row) bool { return r.key == deposit })
	switch {
	case s.cfg.FallenRow == FallenRowOwn:
		s.addRow(p, key, 0, now)
	case s.cfg.FallenRow == FallenRowInPlace && at >= 0:
		s.rows[at].doc = s.rows[at].doc.with("status", statusWaiting)
	case s.cfg.FallenRow == FallenRowGone && at >= 0:
		s.rows = slices.Delete(s.rows, at, at+1)
	}
	s.notifyAccount(p)
	return nil
}

// notifyAccount sends both notices of a virtual account: shops register for the status of payments and for deposits, and
// then get two for every change.
func (s *Sim) notifyAccount(p *payment) {
	s.notifyDeposit(p)
	s.notify("PAYMENT_STATUS_CHANGED", p.key, p.raw)
}

// notifyDeposit sends the flat deposit callback, which has no event type and no payment key.
func (s *Sim) notifyDeposit(p *payment) {
	id := s.next()
	body := object("createdAt", s.createdAt(s.clock.Now(), id), "secret", p.doc.text("secret"), "status", p.status(),
		"transactionKey", p.doc.text("lastTransactionKey"), "orderId", p.orderID())
	s.queue(notice{Notice: Notice{ID: id, EventType: "DEPOSIT_CALLBACK", PaymentKey: p.key, Body: body.bytes()}})
}
