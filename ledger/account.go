package ledger

import (
	"slices"
	"time"
)

// A virtual account is the one thing at the gateway that takes its money back: the bank finds an error, usually within
// minutes, and the account waits again. An answer of one of the gateway's copies that is behind looks exactly the same,
// and so does one of before for an account that was paid since. So no single look moves a deposit, in either direction:
// the first is remembered, and only a later one that says the same is believed, when nothing in between said otherwise.
const (
	// fallbackConfirmAfter is how far apart the two looks must be where more than the payment object says so.
	fallbackConfirmAfter = 30 * time.Second
	// fallbackAloneAfter is how long the payment object must go on saying so where nothing else does. The gateway's
	// copies are known to be seconds behind, its list minutes.
	fallbackAloneAfter = time.Hour
)

// believed reports whether a look that contradicts the books of a deposit is to be believed, the first such having been
// at an instant; supported where not the payment object alone says so.
func (o Observation) believed(first time.Time, supported bool) bool {
	least := fallbackAloneAfter
	if supported {
		least = fallbackConfirmAfter
	}
	return !first.IsZero() && o.AskedAt.Sub(first) >= least
}

// decideWaiting handles an account that waits. For a payment we hold as done this is the fallen deposit, or an
// old answer. An answer that names the deposit itself as the last that happened cannot be from before it.
func decideWaiting(d Decision, p Payment, o Observation) Decision {
	d.MoneySeenAt = time.Time{}
	current, paid := p.capture()
	if paid && o.AskedAt.Before(current.CapturedAt) {
		return d.stale(EventWaiting) // asked before the deposit came
	}
	if !paid || !p.Status.HoldsMoney() {
		return d.take(EventWaiting)
	}
	if !o.VirtualAccount {
		return d.refuse(finding(KindHistoryChanged, p, o, "a payment without virtual account is shown waiting for a deposit"))
	}
	names := o.LastTransactionKey != "" && o.LastTransactionKey == current.TransactionKey
	if !o.believed(p.WaitingSeenAt, !p.FallShownAt.IsZero() || names) {
		return d.sighted(EventWaiting, o)
	}
	if p.Status != StatusDone {
		return d.take(EventWaiting) // a part was given back of what is said never to have come
	}
	return d.takeBack(current, o).take(EventReverted)
}

// sighted remembers the first look at an account without the deposit that our books have of it.
func (d Decision) sighted(e Event, o Observation) Decision {
	if d.WaitingSeenAt.IsZero() {
		d.WaitingSeenAt = o.SeenAt
	}
	return d.stale(e)
}

// takeBack reverses the deposit.
func (d Decision) takeBack(c Capture, o Observation) Decision {
	d.WaitingSeenAt = time.Time{}
	c.ReversedAt = o.SeenAt
	d.Reversed = &c
	return d
}

// decideVoided handles a cancel before any money moved. It is booked at nothing under its transaction key, so
// that it stands on both sides of the identity. Where our books have a deposit, it has fallen back before that: an account
// is canceled for good, so the answer is not from before the deposit, and a second look that says the same takes it back.
func decideVoided(d Decision, p Payment, o Observation) Decision {
	d.MoneySeenAt = time.Time{}
	if current, paid := p.capture(); paid {
		switch {
		case !o.VirtualAccount || p.Status != StatusDone:
			return d.refuse(finding(KindHistoryChanged, p, o, "a captured payment is shown as canceled before any money moved"))
		case o.AskedAt.Before(current.CapturedAt):
			return d.stale(EventVoided)
		case !o.believed(p.WaitingSeenAt, true):
			return d.sighted(EventVoided, o)
		}
		d = d.takeBack(current, o)
	}
	d = d.take(EventVoided)
	for _, c := range voids(o) {
		if !p.HasCancel(c.TransactionKey) {
			d.Cancels = append(d.Cancels, c)
		}
	}
	if d.Verdict == stays && len(d.Cancels) > 0 {
		d.Verdict = goes // already canceled; only a further name of the same void is noted
	}
	return d
}

// voids names the void once for every key the gateway uses for it.
func voids(o Observation) []Cancel {
	nothing := Money{Currency: o.Total.Currency}
	var all []Cancel
	for _, c := range o.Cancels {
		if c.State == CancelDone {
			all = append(all, Cancel{TransactionKey: c.TransactionKey, Amount: nothing, Reason: c.Reason, CanceledAt: c.CanceledAt})
		}
	}
	if len(all) == 0 {
		key := o.LastTransactionKey
		if key == "" {
			key = "void:" + o.PaymentKey
		}
		all = append(all, Cancel{TransactionKey: key, Amount: nothing, CanceledAt: o.SeenAt})
	}
	if o.Listed != "" && !(Payment{Cancels: all}).HasCancel(o.Listed) {
		all = append(all, Cancel{TransactionKey: o.Listed, Amount: nothing, CanceledAt: all[0].CanceledAt})
	}
	for i := range all {
		all[i].PaymentKey, all[i].Channel = o.PaymentKey, o.Channel
		all[i].TaxFree, all[i].TaxExempt = nothing, nothing
	}
	return all
}

// decideStanding handles a deposit that we took back and that the gateway shows standing, under the key that it had or none:
// an old answer, or we were wrong. Believed, it is booked again from the instant on at which it was taken back.
func decideStanding(d Decision, p Payment, o Observation, back Capture) Decision {
	last, _ := p.lastTakenBack()
	switch {
	case o.AskedAt.Before(back.ReversedAt) || back.Number != last.Number:
		return d.stale(EventCaptured) // asked before it fell back, or older than another deposit
	case p.Status == StatusCanceled:
		return decideAfterVoid(d, p, o)
	case !o.believed(p.MoneySeenAt, p.FallShownAt.IsZero()):
		return d.sightedMoney(o)
	}
	d.MoneySeenAt = time.Time{}
	d.Capture = &Capture{
		Number: len(p.Captures) + 1, TransactionKey: back.TransactionKey, Amount: o.Total, CapturedAt: back.ReversedAt,
	}
	return d.settle(EventCaptured)
}

// decideAfterVoid handles money that is shown for a payment which was canceled before it had any. An account is canceled
// for good, so the answer is old; that it is shown for long is for a person.
func decideAfterVoid(d Decision, p Payment, o Observation) Decision {
	d.MoneySeenAt = p.MoneySeenAt
	if (p.VirtualAccount || o.VirtualAccount) && !o.believed(p.MoneySeenAt, false) {
		return d.sightedMoney(o)
	}
	return d.refuse(finding(KindHistoryChanged, p, o, "money was taken for a payment that was void"))
}

// sightedMoney remembers the first look at money that our books do not have of an account.
func (d Decision) sightedMoney(o Observation) Decision {
	if d.MoneySeenAt.IsZero() {
		d.MoneySeenAt = o.SeenAt
	}
	return d.stale(EventCaptured)
}

// takenBack returns the capture that the observation shows, of a payment whose every capture was taken back. An object that
// does not show the key, beside a cancel that came to nothing say, is of the last one when it is of no later deposit; with
// money given back since, it is evidence of its own.
func (p Payment) takenBack(o Observation) (Capture, bool) {
	last, any := p.lastTakenBack()
	if !any {
		return Capture{}, false
	}
	key := o.captureKey()
	if key == "" {
		return last, !o.CapturedAt.IsZero() && !o.CapturedAt.After(last.CapturedAt) && !o.gaveBack()
	}
	for _, c := range slices.Backward(p.Captures) {
		if c.TransactionKey == key {
			return c, true
		}
	}
	return Capture{}, false
}

// gaveBack reports whether the observation has a cancel that moved money.
func (o Observation) gaveBack() bool {
	return slices.ContainsFunc(o.Cancels, func(c ObservedCancel) bool { return c.State == CancelDone })
}

// lastTakenBack returns the newest capture of a payment whose every capture was taken back.
func (p Payment) lastTakenBack() (Capture, bool) {
	if _, paid := p.capture(); paid || len(p.Captures) == 0 {
		return Capture{}, false
	}
	return p.Captures[len(p.Captures)-1], true
}
