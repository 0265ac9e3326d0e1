package tosssim

import (
	"fmt"
	"net/http"
	"time"
)

// confirm answers POST /v1/payments/confirm.
func (s *Sim) confirm(in *inbound) reply {
	s.expireDue()
	key, okKey := wordOf(in.json.get("paymentKey"))
	order, okOrder := wordOf(in.json.get("orderId"))
	if !okKey || !okOrder || in.json.get("amount") == nil {
		return refuse("INVALID_REQUEST")
	}
	p := s.payments[key]
	switch {
	case p == nil:
		return refuse("NOT_FOUND_PAYMENT")
	case p.approved():
		return refuse("ALREADY_PROCESSED_PAYMENT")
	case p.status() != statusProgress:
		// Expired and aborted windows, and those nobody authenticated, have no session to confirm.
		return refuse("NOT_FOUND_PAYMENT_SESSION")
	}
	// The code for a wrong amount or order is not documented; this one is what other simulators answer.
	if amount, ok := minorUnits(in.json.get("amount"), p.currency()); !ok || amount != p.amount("totalAmount") {
		return refuse("INVALID_REQUEST")
	}
	if order != p.orderID() {
		return refuse("INVALID_REQUEST")
	}
	s.approve(p)
	return reply{status: http.StatusOK, body: p.raw, effect: true}
}

// Approve is an approval without us: an order of another system that shares the merchant id, a confirm whose reply was
// lost before we knew of it, or money that moved although the window had expired or failed.
func (s *Sim) Approve(paymentKey string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.find(paymentKey)
	if err != nil {
		return err
	}
	if p.approved() {
		return fmt.Errorf("%w: approve %s, which is %s", ErrState, paymentKey, p.status())
	}
	s.approve(p)
	return nil
}

// approve makes the payment DONE, or issues its virtual account.
func (s *Sim) approve(p *payment) {
	now := s.clock.Now()
	delete(s.sessions, p.key)
	if p.doc.text("method") == methodName(VirtualAccount) {
		s.issueAccount(p, now)
		return
	}
	key := s.transactionKey(p)
	p.update(p.doc.with("status", statusDone).with("approvedAt", s.stamp(now)).with("lastTransactionKey", key).
		with("secret", newSecret()).with("receipt", receiptOf(p.key)).with("useEscrow", false).with("failure", nil))
	s.captured(p, 1)
	s.addRow(p, key, p.amount("totalAmount"), now)
	s.notifyPayment(p)
}

// captured counts money that came in, or with -1 a deposit that was taken back.
func (s *Sim) captured(p *payment, sign int64) {
	s.totals.Captures += int(sign)
	s.totals.Captured[p.currency()] += sign * p.amount("totalAmount")
}

func receiptOf(paymentKey string) document {
	return object("url", receiptURL(paymentKey))
}

func receiptURL(paymentKey string) string {
	return "https://dashboard.tosspayments.com/receipt/redirection?transactionId=" + paymentKey + "&ref=PX"
}

// issueAccount is what a confirm does to a virtual account: it waits for the deposit. The list has a row of amount 0.
func (s *Sim) issueAccount(p *payment, now time.Time) {
	account := object(
		"accountType", "일반", "accountNumber", fmt.Sprintf("X%013d", s.next()), "bankCode", "20",
		"customerName", "테스트구매자", "depositorName", nil, "dueDate", s.stamp(now.Add(depositWithin)),
		"refundStatus", "NONE", "expired", false, "settlementStatus", "INCOMPLETED", "refundReceiveAccount", nil,
	)
	p.doc = p.doc.with("virtualAccount", account)
	key := s.transactionKey(p)
	p.update(p.doc.with("status", statusWaiting).with("lastTransactionKey", key).with("secret", newSecret()).
		with("receipt", receiptOf(p.key)).with("useEscrow", false).with("failure", nil))
	p.expires = now.Add(depositWithin)
	s.sessions[p.key] = p
	s.addRow(p, key, 0, now)
	s.notifyAccount(p)
}
