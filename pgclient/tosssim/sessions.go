package tosssim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// expireDue lets time do what it does to payments: windows that nobody confirmed expire, and virtual accounts past their
// due date are marked without a notice. It runs before every look at the state.
func (s *Sim) expireDue() {
	now := s.clock.Now()
	var due []*payment
	for _, p := range s.sessions {
		if !p.expires.After(now) {
			due = append(due, p)
		}
	}
	slices.SortFunc(due, func(a, b *payment) int { return strings.Compare(a.key, b.key) })
	for _, p := range due {
		delete(s.sessions, p.key)
		switch p.status() {
		case statusReady, statusProgress:
			s.expire(p)
		case statusWaiting:
			p.update(p.doc.with("virtualAccount", p.doc.child("virtualAccount").with("expired", true)))
		}
	}
}

// nextExpiry is when time will next do something to a payment.
func (s *Sim) nextExpiry() (time.Time, bool) {
	var next time.Time
	for _, p := range s.sessions {
		if next.IsZero() || p.expires.Before(next) {
			next = p.expires
		}
	}
	return next, !next.IsZero()
}

func (s *Sim) expire(p *payment) {
	doc := p.doc.with("status", statusExpired).with("failure", failure("EXPIRED_PAYMENT")).with("useEscrow", nil)
	if p.status() == statusReady {
		doc = doc.with("method", nil).with("card", nil).with("easyPay", nil).with("transfer", nil)
	}
	delete(s.sessions, p.key)
	p.update(doc)
	s.notifyPayment(p)
}

func failure(code string) document {
	return object("code", code, "message", messageOf(code, false))
}

// Expire ends the payment's window now, whatever the clock says.
func (s *Sim) Expire(paymentKey string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.find(paymentKey)
	if err != nil {
		return err
	}
	if p.status() != statusReady && p.status() != statusProgress {
		return fmt.Errorf("%w: expire %s, which is %s", ErrState, paymentKey, p.status())
	}
	s.expire(p)
	return nil
}

// Abort is an approval that failed. Of an approved payment it changes nothing, but sends the contradicting ABORTED notice
// that two confirms at once have been seen to cause within 45 milliseconds of DONE.
func (s *Sim) Abort(paymentKey, code string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.find(paymentKey)
	if err != nil {
		return err
	}
	aborted := p.doc.with("status", statusAborted).with("approvedAt", nil).with("secret", nil).
		with("receipt", nil).with("failure", failure(code))
	switch p.status() {
	case statusReady, statusProgress:
		delete(s.sessions, p.key)
		p.update(aborted)
		s.notifyPayment(p)
	case statusAborted, statusExpired:
		return fmt.Errorf("%w: abort %s, which is %s", ErrState, paymentKey, p.status())
	default:
		s.notify("PAYMENT_STATUS_CHANGED", p.key, aborted.bytes())
	}
	return nil
}
