package ledger

import "time"

// effects is everything one decision writes, worked out before anything is written.
type effects struct {
	before        Payment
	after         Payment
	order         Order // after
	orderBefore   OrderStatus
	decision      Decision
	journal       []journalFact
	granted       int64
	revoked       int64
	cancels       []Cancel // new ones, with the credits each revokes
	findings      []Finding
	announcements []Announcement
	settled       bool // the deposit has stood for too long to fall back
}

// workOut works out what a decision does to the payment, its order, the journal and the credits. Pure.
func workOut(p Payment, order Order, holder string, o Observation, d Decision, now time.Time) effects {
	e := effects{before: p, after: p, order: order, orderBefore: order.Status, decision: d}
	for _, f := range d.Findings {
		f.PaymentKey, f.OrderID, f.Books = p.Key, p.OrderID, p.summary()
		if f.Gateway == nil {
			f.Gateway, f.AtRisk = o.summary(), p.Amount
		}
		e.findings = append(e.findings, f)
	}
	e.after.WaitingSeenAt, e.after.MoneySeenAt = d.WaitingSeenAt, d.MoneySeenAt
	if o.Evidence.HasObject() && !d.Conflict() {
		e.adopt(o)
	}
	if d.Verdict == goes {
		e.move(holder, o, order, now)
	}
	if o.Evidence == EvidenceCaptured && !d.Conflict() && e.after.shownBy(o) {
		e.after.Tax = o.Tax
	}
	return e
}

// move applies a decision that changes status or money.
func (e *effects) move(holder string, o Observation, order Order, now time.Time) {
	p, d := e.before, e.decision
	e.after.Status, e.after.UpdatedAt = d.To, now
	e.after.Reason = reasonOf(d.To, o, p)
	e.after.UndecidedSince = undecidedSince(p, d.To, now)
	switch {
	case d.To.Live() && holder != "":
		e.after.Surplus = true
	case p.takesBack(d, holder):
		e.after.Surplus = false
	}
	e.reverse(d)
	e.capture(d, order)
	e.cancel(d, order, now)
	e.settleOrder(o)
}

// shownBy reports whether the observation shows the payment's money as it stands, not as it stood before.
func (p Payment) shownBy(o Observation) bool {
	var done int64
	for _, c := range o.Cancels {
		if c.State == CancelDone {
			done += c.Amount.Minor
		}
	}
	return p.Captured().Positive() && p.Canceled().Minor == done
}

func reasonOf(s Status, o Observation, p Payment) string {
	switch s {
	case StatusFailed, StatusReady, StatusUnknown:
		if o.overdue() {
			return reasonOverdue
		}
		return o.Word
	case StatusConfirming, StatusWaitingForDeposit, StatusDone, StatusPartiallyCanceled, StatusCanceled:
		return ""
	}
	return p.Reason
}

func undecidedSince(p Payment, s Status, now time.Time) time.Time {
	if !s.Undecided() {
		return time.Time{}
	}
	if p.UndecidedSince.IsZero() {
		return now
	}
	return p.UndecidedSince
}

// adopt keeps what the gateway told about the payment besides money.
func (e *effects) adopt(o Observation) {
	if o.Method != "" {
		e.after.Method = o.Method
	}
	e.after.VirtualAccount = e.after.VirtualAccount || o.VirtualAccount
	if len(o.SecretDigest) > 0 {
		e.after.SecretDigest = o.SecretDigest // a later look-up may no longer show the secret
	}
}

// income is the account that a payment's money is earned in.
func (e *effects) income() Account {
	if e.after.Surplus {
		return AccountSuspense
	}
	return AccountSales
}

// reverse takes a fallen deposit back, and with it every credit it granted.
func (e *effects) reverse(d Decision) {
	if d.Reversed == nil {
		return
	}
	r := *d.Reversed
	captures := append([]Capture(nil), e.after.Captures...)
	for i := range captures {
		if captures[i].Number == r.Number {
			captures[i].ReversedAt = r.ReversedAt
		}
	}
	e.after.Captures = captures
	e.journal = append(e.journal, e.fact(EntryDepositReversal, captureReference(e.after.Key, r.Number),
		e.income(), AccountReceivable, r.Amount, r.ReversedAt))
	if left := e.after.CreditsGranted - e.after.CreditsRevoked; left > 0 {
		e.revoke(left, "reversal:"+captureReference(e.after.Key, r.Number), r.ReversedAt)
	}
}

// capture records new money and grants what the order promises for it.
func (e *effects) capture(d Decision, order Order) {
	if d.LearnedKey != "" {
		captures := append([]Capture(nil), e.after.Captures...)
		for i := range captures {
			if captures[i].ReversedAt.IsZero() {
				captures[i].TransactionKey = d.LearnedKey
			}
		}
		e.after.Captures = captures
	}
	if d.Capture == nil {
		return
	}
	c := *d.Capture
	e.after.Captures = append(append([]Capture(nil), e.after.Captures...), c)
	e.journal = append(e.journal, e.fact(EntryCapture, captureReference(e.after.Key, c.Number),
		AccountReceivable, e.income(), c.Amount, c.CapturedAt))
	if order.Credits > 0 && !e.after.Surplus {
		e.granted = order.Credits
		e.after.CreditsGranted += order.Credits
		e.journal = append(e.journal, e.fact(EntryCreditGrant, captureReference(e.after.Key, c.Number),
			AccountCreditsIssued, AccountCustomerCredits, Money{Minor: order.Credits, Currency: Credits}, c.CapturedAt))
	}
}

// cancel records new cancels; each revokes its share of the credits, rounded so that the sum is exact.
func (e *effects) cancel(d Decision, order Order, now time.Time) {
	for _, c := range d.Cancels {
		c.RecordedAt = now
		if c.CanceledAt.IsZero() {
			c.CanceledAt = now
		}
		e.after.Cancels = append(append([]Cancel(nil), e.after.Cancels...), c)
		if c.Amount.Positive() {
			debit := AccountRefunds
			if e.after.Surplus {
				debit = AccountSuspense
			}
			e.journal = append(e.journal, e.fact(EntryCancel, c.TransactionKey, debit, AccountReceivable, c.Amount, c.CanceledAt))
			c.CreditsRevoked = e.due(order)
			if c.CreditsRevoked > 0 {
				e.revoke(c.CreditsRevoked, c.TransactionKey, c.CanceledAt)
			}
		}
		e.after.Cancels[len(e.after.Cancels)-1] = c
		e.cancels = append(e.cancels, c)
	}
}

// due is how many credits are still to be revoked for what is canceled so far: in all
// floor(granted × canceled ÷ captured), counted on the standing capture only.
func (e *effects) due(order Order) int64 {
	if e.after.CreditsGranted == 0 {
		return 0
	}
	earlier := e.after.CreditsGranted - order.Credits // granted for deposits that fell back, all revoked
	target := earlier + Share(order.Credits, e.after.Canceled().Minor, e.after.Captured().Minor)
	return max(0, target-e.after.CreditsRevoked)
}

func (e *effects) revoke(n int64, reference string, at time.Time) {
	e.revoked += n
	e.after.CreditsRevoked += n
	e.journal = append(e.journal, e.fact(EntryCreditRevoke, reference,
		AccountCustomerCredits, AccountCreditsIssued, Money{Minor: n, Currency: Credits}, at))
}

func (e *effects) fact(kind EntryKind, reference string, debit, credit Account, amount Money, at time.Time) journalFact {
	f := journalFact{
		Kind: kind, Reference: reference, PaymentKey: e.after.Key, OrderID: e.after.OrderID,
		Debit: debit, Credit: credit, Amount: amount, OccurredAt: at,
	}
	if amount.Currency == Credits {
		f.CustomerID = e.order.CustomerID
	}
	return f
}

// settleOrder moves the order with the payment that holds it and notes what must be told and looked at.
func (e *effects) settleOrder(o Observation) {
	if e.after.Surplus {
		if e.decision.Capture != nil {
			f := finding(KindPaidTwice, e.before, o, "another payment already holds the order; this money waits in suspense")
			f.Books = e.before.summary()
			e.findings = append(e.findings, f)
		}
		e.tell(o)
		return
	}
	if e.decision.Capture != nil && e.order.Status == OrderExpired {
		f := finding(KindPaidAfterExpiry, e.before, o, "the money arrived after the order had expired; the order is paid")
		f.Books = e.before.summary()
		e.findings = append(e.findings, f)
	}
	if e.after.Status.Live() || e.before.Status.Live() {
		e.order.Status = orderStatus(e.order.Status, e.after.Status)
	}
	e.tell(o)
}
