package tosssim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"time"
	"unicode/utf8"
)

// cancellation is one wish to cancel, from the API or from the dashboard.
type cancellation struct {
	amount    int64
	partial   bool // An amount was named.
	taxFree   int64
	reason    string
	requestID any // Only of asynchronous cancels; null otherwise.
}

// cancel answers POST /v1/payments/{paymentKey}/cancel.
func (s *Sim) cancel(in *inbound) reply {
	s.expireDue()
	p := s.payments[in.call.PaymentKey]
	if p == nil {
		return refuse("NOT_FOUND_PAYMENT")
	}
	wish, code := wishOf(in.json, p)
	if code == "" {
		code = s.judge(p, wish)
	}
	if code == "" && p.doc.child("virtualAccount") != nil && p.status() != statusWaiting {
		code = judgeRefundAccount(in.json.child("refundReceiveAccount"))
	}
	if code != "" {
		return refuse(code)
	}
	s.applyCancel(p, wish)
	return reply{status: http.StatusOK, body: p.raw, effect: true}
}

// wishOf reads the request, and refuses what is malformed or contradicts the payment's currency or balance.
func wishOf(body document, p *payment) (wish cancellation, code string) {
	reason, ok := wordOf(body.get("cancelReason"))
	if !ok || reason == "" || utf8.RuneCountInString(reason) > 200 {
		return wish, "INVALID_REQUEST"
	}
	if currency := body.text("currency"); currency != "" && currency != p.currency() {
		return wish, "INVALID_REQUEST"
	}
	balance := p.amount("balanceAmount")
	expected := balance
	wish = cancellation{amount: balance, reason: reason, partial: !isNull(body.get("cancelAmount"))}
	for name, to := range map[string]*int64{
		"cancelAmount": &wish.amount, "taxFreeAmount": &wish.taxFree, "refundableAmount": &expected,
	} {
		raw := body.get(name)
		if isNull(raw) {
			continue
		}
		if *to, ok = minorUnits(raw, p.currency()); !ok || *to < 0 {
			return wish, "INVALID_REQUEST"
		}
	}
	if wish.partial && wish.amount == 0 {
		return wish, "INVALID_REQUEST"
	}
	if wish.requestID, ok = requestIDOf(body.get("cancelRequestId")); !ok {
		return wish, "INVALID_REQUEST"
	}
	if expected != balance && p.approved() && p.status() != statusCanceled {
		return wish, "NOT_MATCHES_REFUNDABLE_AMOUNT"
	}
	return wish, ""
}

// requestIDOf reads the merchant's own name for an asynchronous cancel, which may be absent.
func requestIDOf(raw json.RawMessage) (id any, ok bool) {
	if isNull(raw) {
		return nil, true
	}
	text, _ := wordOf(raw)
	return text, regexp.MustCompile(`^[A-Za-z0-9\-_=]{6,64}$`).MatchString(text)
}

// judge decides whether the payment can be canceled by that much.
func (s *Sim) judge(p *payment, wish cancellation) (code string) {
	balance := p.amount("balanceAmount")
	switch p.status() {
	case statusCanceled:
		return "ALREADY_CANCELED_PAYMENT"
	case statusWaiting:
		if wish.partial && wish.amount != p.amount("totalAmount") {
			return "NOT_ALLOWED_PARTIAL_REFUND_WAITING_DEPOSIT"
		}
		return ""
	case statusDone, statusPartial:
	default:
		return "NOT_CANCELABLE_PAYMENT"
	}
	for _, c := range p.doc.children("cancels") {
		if c.text("cancelStatus") == statusProgress {
			return "FORBIDDEN_CONSECUTIVE_REQUEST"
		}
	}
	// Fully refunded in parts stays PARTIAL_CANCELED, and is refused here instead of as already canceled.
	if balance == 0 || wish.amount > balance {
		return "NOT_CANCELABLE_AMOUNT"
	}
	return ""
}

// judgeRefundAccount checks where the money of a paid virtual account should go.
func judgeRefundAccount(account document) (code string) {
	number, holder := account.text("accountNumber"), account.text("holderName")
	switch {
	case account == nil || holder == "" || utf8.RuneCountInString(holder) > 60:
		return "INVALID_REFUND_ACCOUNT_INFO"
	case account.text("bank") == "":
		return "INVALID_BANK"
	case !regexp.MustCompile(`^[0-9]{1,20}$`).MatchString(number):
		return "INVALID_REFUND_ACCOUNT_NUMBER"
	}
	return ""
}

// CancelInDashboard is a person at the merchant who cancels in the gateway's dashboard. Amount 0 cancels all that is left.
func (s *Sim) CancelInDashboard(paymentKey string, amount int64, reason string) (transactionKey string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.find(paymentKey)
	if err != nil {
		return "", err
	}
	wish := cancellation{amount: amount, partial: amount != 0, reason: reason}
	if amount == 0 {
		wish.amount = p.amount("balanceAmount")
	}
	if code := s.judge(p, wish); code != "" || wish.amount < 0 {
		return "", fmt.Errorf("%w: cancel %d of %s: %s", ErrState, amount, paymentKey, code)
	}
	return s.applyCancel(p, wish), nil
}

// applyCancel appends the cancel and, unless it is asynchronous, makes it count at once.
func (s *Sim) applyCancel(p *payment, wish cancellation) string {
	now, currency := s.clock.Now(), p.currency()
	key := s.transactionKey(p)
	zero := number(0, currency)
	state := statusDone
	if p.async && p.status() != statusWaiting {
		state = statusProgress
	}
	entry := object(
		"transactionKey", key, "cancelReason", wish.reason, "taxExemptionAmount", zero, "canceledAt", s.stamp(now),
		"cardDiscountAmount", zero, "transferDiscountAmount", zero, "easyPayDiscountAmount", zero, "receiptKey", nil,
		"cancelAmount", number(wish.amount, currency), "taxFreeAmount", number(wish.taxFree, currency),
		"refundableAmount", number(p.amount("balanceAmount")-wish.amount, currency), "cancelStatus", state,
		"cancelRequestId", wish.requestID,
	)
	cancels := append(p.doc.children("cancels"), entry)
	if state == statusProgress {
		p.update(p.doc.with("cancels", cancels))
		return key
	}
	s.finishCancel(p, cancels, entry, now)
	return key
}

// finishCancel makes the last-decided cancel count: balance, tax, status, list, sums and notice. The cancel of an unpaid
// virtual account moves no money; its row in the list has amount 0, as the row of its issue has (an assumption).
func (s *Sim) finishCancel(p *payment, cancels []document, entry document, now time.Time) {
	currency, unpaid := p.currency(), p.status() == statusWaiting
	amount, _ := minorUnits(entry.get("cancelAmount"), currency)
	taxFreePart, _ := minorUnits(entry.get("taxFreeAmount"), currency)
	balance := p.amount("balanceAmount") - amount
	taxFree := max(0, p.amount("taxFreeAmount")-taxFreePart)
	vat := vatOf(balance, taxFree, currency)
	status := statusPartial
	if balance == 0 && p.status() != statusPartial {
		status = statusCanceled
	}
	key := entry.text("transactionKey")
	delete(s.sessions, p.key)
	p.update(p.doc.with("status", status).with("cancels", cancels).with("lastTransactionKey", key).
		with("balanceAmount", number(balance, currency)).with("taxFreeAmount", number(taxFree, currency)).
		with("vat", number(vat, currency)).with("suppliedAmount", number(balance-vat-taxFree, currency)))
	if unpaid {
		amount = 0
	} else {
		s.totals.Cancels++
		s.totals.Canceled[currency] += amount
	}
	s.addRow(p, key, int64(s.cfg.CancelRowSign)*amount, now)
	if p.doc.child("virtualAccount") != nil {
		s.notifyAccount(p)
		return
	}
	s.notifyPayment(p)
}

// FinishCancel ends an asynchronous cancel: DONE, or ABORTED, which moves no money. Both send CANCEL_STATUS_CHANGED, whose
// body names no payment; DONE changes the payment too, and so sends PAYMENT_STATUS_CHANGED as well.
func (s *Sim) FinishCancel(transactionKey string, done bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.payments {
		cancels := p.doc.children("cancels")
		for i, entry := range cancels {
			if entry.text("transactionKey") != transactionKey || entry.text("cancelStatus") != statusProgress {
				continue
			}
			now := s.clock.Now()
			if done {
				cancels[i] = entry.with("cancelStatus", statusDone).with("canceledAt", s.stamp(now))
				s.notify("CANCEL_STATUS_CHANGED", p.key, cancels[i].bytes())
				s.finishCancel(p, cancels, cancels[i], now)
				return nil
			}
			cancels[i] = entry.with("cancelStatus", statusAborted).
				with("refundableAmount", p.doc.get("balanceAmount"))
			p.update(p.doc.with("cancels", cancels))
			s.notify("CANCEL_STATUS_CHANGED", p.key, cancels[i].bytes())
			return nil
		}
	}
	return fmt.Errorf("%w: no cancel %s is in progress", ErrNotFound, transactionKey)
}

func isNull(raw json.RawMessage) bool { return raw == nil || string(raw) == "null" }
