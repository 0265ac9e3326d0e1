package ledger

import (
	"fmt"
	"slices"
	"time"
)

// Decision is what one observation does to one payment. It is computed without clock, database or log.
type Decision struct {
	Event   Event
	Verdict verdict
	From    Status
	To      Status
	// Capture is new money; LearnedKey names the transaction of a capture recorded earlier without one.
	Capture    *Capture
	LearnedKey string
	Reversed   *Capture
	Cancels    []Cancel // new ones only, oldest first
	Open       []ObservedCancel
	Ended      []string // keys of cancels that the gateway aborted
	Findings   []Finding
	// WaitingSeenAt and MoneySeenAt are what the payment must remember of a look that contradicts its deposit.
	WaitingSeenAt time.Time
	MoneySeenAt   time.Time
}

// Changed reports whether the decision writes anything about money or status.
func (d Decision) Changed() bool {
	return d.Verdict == goes && (d.From != d.To || len(d.Cancels) > 0 || d.Capture != nil || d.Reversed != nil)
}

// Conflict reports whether the gateway contradicts our books or itself.
func (d Decision) Conflict() bool { return d.Verdict == conflicts }

// Decide says what an observation does to a payment. It only adds: a cancel that an observation lacks is
// never taken out. Everything that contradicts the order or our books is a finding and changes nothing.
func Decide(p Payment, o Observation) Decision {
	d := Decision{From: p.Status, To: p.Status, WaitingSeenAt: p.WaitingSeenAt, MoneySeenAt: p.MoneySeenAt}
	if !o.Evidence.HasObject() {
		if o.Attempt == 0 || o.Attempt != p.Attempt {
			d.Event, d.Verdict = callEvent(o.Evidence), stays // no attempt, or one that no longer owns the row
			return d
		}
		return d.take(callEvent(o.Evidence))
	}
	if finding, bad := differs(p, o); bad {
		return d.refuse(finding)
	}
	o.Cancels = oldestFirst(o.Cancels)
	switch o.Evidence {
	case EvidenceOpen:
		return d.take(EventOpen)
	case EvidenceDead:
		d.MoneySeenAt = time.Time{}
		if _, paid := p.capture(); paid && o.overdue() {
			return decideWaiting(d, p, o) // a deposit that fell back when the account's time was over
		}
		return d.take(EventDead)
	case EvidenceWaiting:
		return decideWaiting(d, p, o)
	case EvidenceVoided:
		return decideVoided(d, p, o)
	case EvidenceCaptured:
		return decideCaptured(d, p, o)
	case EvidenceUnrecognized:
		d.Event, d.Verdict = EventOpen, stays
		d.Findings = append(d.Findings, finding(KindUnrecognized, p, o, "the gateway shows a status that is not known: "+o.Word))
		return d
	case EvidenceRefused, EvidenceUnprocessed, EvidenceLost:
	}
	panic(fmt.Sprintf("evidence %q is not decided", o.Evidence))
}

// callEvent translates the outcome of a call of ours that brought no payment object.
func callEvent(e Evidence) Event {
	switch e {
	case EvidenceRefused:
		return EventRefused
	case EvidenceUnprocessed:
		return EventUnprocessed
	case EvidenceLost:
		return EventLost
	case EvidenceOpen, EvidenceWaiting, EvidenceCaptured, EvidenceVoided, EvidenceDead, EvidenceUnrecognized:
	}
	panic(fmt.Sprintf("evidence %q is not a call's outcome", e))
}

// take looks the event up in the state machine. A conflict always brings its finding: no contradiction goes by
// unseen.
func (d Decision) take(e Event) Decision {
	m := transitions[d.From][e]
	d.Event, d.Verdict = e, m.verdict
	switch m.verdict {
	case goes:
		d.To = m.to
	case conflicts:
		return d.refuse(d.contradiction())
	case stays, refuses:
	}
	return d
}

// contradiction is the finding that the event cannot have happened to a payment as our books show it.
func (d Decision) contradiction() Finding {
	return Finding{Kind: KindHistoryChanged, Detail: fmt.Sprintf("%s while our books say %s", d.Event, d.From)}
}

// refuse keeps the books as they are and reports why.
func (d Decision) refuse(f Finding) Decision {
	d.Verdict = conflicts
	d.To = d.From
	d.Capture, d.Reversed, d.Cancels, d.LearnedKey = nil, nil, nil, ""
	d.Findings = append(d.Findings, f)
	return d
}

// stale notes an old answer that changes nothing.
func (d Decision) stale(e Event) Decision {
	d.Event, d.Verdict = e, stays
	d.Capture, d.Reversed, d.Cancels, d.LearnedKey = nil, nil, nil, ""
	return d
}

// differs compares what binds a payment to its order. A payment for another order, merchant, amount or
// currency is never booked here, whatever its status.
func differs(p Payment, o Observation) (Finding, bool) {
	switch {
	case o.PaymentKey != p.Key:
		return finding(KindOrderDiffers, p, o, "the answer is about payment "+o.PaymentKey), true
	case o.Evidence == EvidenceDead || o.Evidence == EvidenceOpen:
		return Finding{}, false // no money moved under this key, whatever the buyer had chosen to pay
	case o.OrderID != p.OrderID:
		return finding(KindOrderDiffers, p, o, "the gateway names order "+o.OrderID), true
	case p.MerchantID != "" && o.MerchantID != p.MerchantID:
		return finding(KindMerchantDiffers, p, o, fmt.Sprintf("the gateway names merchant %q", o.MerchantID)), true
	case o.Total.Currency != p.Amount.Currency:
		return ofCapture(KindCurrencyDiffers, p, o), true
	case o.Total != p.Amount:
		return ofCapture(KindAmountDiffers, p, o), true
	}
	return Finding{}, false
}

// ofCapture is a contradiction about the money that was taken. It names the capture in our books, as the audit does that
// finds the same of the gateway's list: one contradiction is one mismatch, whoever sees it first.
func ofCapture(kind Kind, p Payment, o Observation) Finding {
	f := finding(kind, p, o, "the gateway's amount is "+o.Total.String())
	if current, paid := p.capture(); paid {
		f.TransactionKey = current.TransactionKey
	}
	return f
}

// decideCaptured handles money taken, with or without cancels.
func decideCaptured(d Decision, p Payment, o Observation) Decision {
	d.WaitingSeenAt = time.Time{}
	if back, ok := p.takenBack(o); ok {
		return decideStanding(d, p, o, back)
	}
	d.MoneySeenAt = time.Time{}
	d = settleCapture(d, p, o)
	canceled, bad := collectCancels(&d, p, o)
	if bad != nil {
		return d.refuse(*bad)
	}
	captured := o.Total
	if _, paid := p.capture(); !paid && d.Capture == nil {
		return d.stale(EventCaptured)
	}
	if p.Status == StatusCanceled && d.Capture != nil {
		return decideAfterVoid(d, p, o)
	}
	if canceled.Minor > captured.Minor {
		return d.refuse(finding(KindAmountDiffers, p, o, fmt.Sprintf("cancels of %s would exceed the capture of %s", canceled, captured)))
	}
	switch {
	case len(d.Cancels) == 0 && d.Capture == nil:
		return d.take(EventCaptured)
	case len(d.Cancels) == 0:
		return d.settle(EventCaptured)
	case canceled == captured:
		return d.settle(EventFullyCanceled)
	default:
		return d.settle(EventPartiallyCanceled)
	}
}

// settle takes the event; where the machine says that the books already stand there although there is new
// money to write, they contradict each other.
func (d Decision) settle(e Event) Decision {
	next := d.take(e)
	switch {
	case next.Verdict == stays && next.Capture != nil:
		next.Verdict = goes // a deposit that came again leaves the payment done
	case next.Verdict == stays:
		return next.refuse(next.contradiction())
	}
	return next
}

// settleCapture finds whether the money shown is new. A virtual account whose deposit fell back unnoticed and
// came again shows another transaction key and a later time: the first capture is reversed and the second recorded.
func settleCapture(d Decision, p Payment, o Observation) Decision {
	key := o.captureKey()
	at := o.CapturedAt
	if at.IsZero() {
		at = o.SeenAt
	}
	current, paid := p.capture()
	fresh := Capture{Number: len(p.Captures) + 1, TransactionKey: key, Amount: o.Total, CapturedAt: at}
	switch {
	case !paid:
		if back, ok := p.lastTakenBack(); ok && !at.After(back.CapturedAt) {
			fresh.CapturedAt = back.ReversedAt // the deposit of before, of which a part was given back since
		}
		d.Capture = &fresh
	case key == "" || key == current.TransactionKey || p.knowsCapture(key):
	case current.TransactionKey == "":
		d.LearnedKey = key
	case p.VirtualAccount && p.Canceled().IsZero() && at.After(current.CapturedAt):
		current.ReversedAt = at
		d.Reversed, d.Capture = &current, &fresh
	}
	return d
}

// captureKey is the capture's transaction key, "" where the object does not show it: with cancels the last key is a
// cancel's.
func (o Observation) captureKey() string {
	if len(o.Cancels) > 0 {
		return ""
	}
	return o.LastTransactionKey
}

func (p Payment) knowsCapture(key string) bool {
	for _, c := range p.Captures {
		if key != "" && c.TransactionKey == key {
			return true
		}
	}
	return false
}

// collectCancels adds the cancels that our books lack to the decision and returns the sum of all cancels then.
func collectCancels(d *Decision, p Payment, o Observation) (Money, *Finding) {
	canceled := p.Canceled()
	for _, c := range o.Cancels {
		switch c.State {
		case CancelDone:
			added, bad := collectDone(d, p, o, c)
			if bad != nil {
				return Money{}, bad
			}
			sum, err := canceled.Add(added)
			if err != nil {
				f := finding(KindAmountDiffers, p, o, "cancels overflow")
				return Money{}, &f
			}
			canceled = sum
		case CancelInProgress, CancelUnrecognized:
			if !p.HasCancel(c.TransactionKey) {
				d.Open = append(d.Open, c)
			}
		case CancelAborted:
			if p.HasCancel(c.TransactionKey) {
				f := finding(KindHistoryChanged, p, o, "cancel "+c.TransactionKey+" is booked here and aborted at the gateway")
				return Money{}, &f
			}
			d.Ended = append(d.Ended, c.TransactionKey)
		}
	}
	return canceled, nil
}

// collectDone adds one finished cancel unless it is in our books, and returns what it adds to the sum.
func collectDone(d *Decision, p Payment, o Observation, c ObservedCancel) (Money, *Finding) {
	nothing := Money{Currency: p.Amount.Currency}
	for _, known := range slices.Concat(p.Cancels, d.Cancels) {
		if known.TransactionKey != c.TransactionKey {
			continue
		}
		if known.Amount != c.Amount {
			f := finding(KindAmountDiffers, p, o, fmt.Sprintf("the cancel is %s at the gateway and %s here", c.Amount, known.Amount))
			if known.Amount.Currency != c.Amount.Currency {
				f.Kind = KindCurrencyDiffers
			}
			f.TransactionKey, f.AtRisk = c.TransactionKey, c.Amount // as the audit finds it in the list
			return nothing, &f
		}
		return nothing, nil
	}
	if !c.Amount.Positive() || c.Amount.Currency != p.Amount.Currency || c.TransactionKey == "" {
		f := finding(KindQuarantined, p, o, fmt.Sprintf("cancel %q of %s cannot be booked", c.TransactionKey, c.Amount))
		return nothing, &f
	}
	d.Cancels = append(d.Cancels, Cancel{
		TransactionKey: c.TransactionKey, PaymentKey: p.Key, Amount: c.Amount, TaxFree: c.TaxFree,
		TaxExempt: c.TaxExempt, Reason: c.Reason, CanceledAt: c.CanceledAt, Channel: o.Channel,
	})
	return c.Amount, nil
}

// finding describes a contradiction, with the money at risk when the gateway named any.
func finding(kind Kind, p Payment, o Observation, detail string) Finding {
	risk := o.Total
	if !risk.Currency.Known() {
		risk = p.Amount
	}
	return Finding{Kind: kind, PaymentKey: p.Key, OrderID: p.OrderID, AtRisk: risk, Detail: detail, Gateway: o.summary()}
}
