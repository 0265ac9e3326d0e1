package webhook

import (
	"cmp"
	"slices"
	"time"

	"daesa/ledger"
)

// judge says what a recorded observation means for the notice that gave rise to it. Only what our books now hold is
// acknowledged: with nothing left no cancel can be missing; otherwise every cancel that the notice names, or, when it
// names none, one that it can be about, and none under way.
func judge(d delivery, seen ledger.Observation, recorded ledger.Recorded) verdict {
	named := d.names(seen, recorded.After)
	switch {
	case recorded.Outcome == ledger.OutcomeConflict:
		return verdict{outcome: OutcomeStateMismatch, reason: "conflict"}
	case recorded.After.Status == ledger.StatusCanceled:
	case d.givenUp(seen):
		return verdict{outcome: OutcomeStateMismatch, reason: reasonGivenUp}
	case len(recorded.After.Cancels) == 0 && len(recorded.Open) > 0:
		return verdict{outcome: OutcomeStateMismatch, reason: "in_progress"}
	case len(recorded.After.Cancels) == 0:
		return verdict{outcome: OutcomeStateMismatch, reason: "not_canceled"}
	case len(missing(named, recorded.After)) > 0:
		return verdict{outcome: OutcomeStateMismatch, reason: "other_cancel"}
	case len(named) == 0 && len(recorded.Open) > 0:
		return verdict{outcome: OutcomeStateMismatch, reason: "in_progress"}
	case len(named) == 0 && d.claimsMore(recorded.After):
		return verdict{outcome: OutcomeStateMismatch, reason: "balance"}
	case len(named) == 0 && !d.knownBy(recorded):
		return verdict{outcome: OutcomeStateMismatch, reason: "no_such_cancel"}
	}
	return acknowledged(recorded)
}

func acknowledged(recorded ledger.Recorded) verdict {
	switch {
	case len(recorded.Applied) == 0:
		return verdict{outcome: OutcomeDuplicateSkipped}
	case recorded.After.Balance().IsZero():
		return verdict{outcome: OutcomeAppliedFull}
	}
	return verdict{outcome: OutcomeAppliedPartial}
}

// names are the cancels that the notice names and that can be in our books: not the deposit, whose key a callback
// might carry, and not a cancel that the gateway gave up.
func (d *delivery) names(seen ledger.Observation, p ledger.Payment) []string {
	return slices.DeleteFunc(slices.Clone(d.named), func(key string) bool {
		return gaveUp(seen, key) || slices.ContainsFunc(p.Captures, func(c ledger.Capture) bool { return c.TransactionKey == key })
	})
}

// givenUp reports whether the gateway gave up every cancel that the notice names.
func (d *delivery) givenUp(seen ledger.Observation) bool {
	return len(d.named) > 0 && !slices.ContainsFunc(d.named, func(key string) bool { return !gaveUp(seen, key) })
}

func gaveUp(seen ledger.Observation, key string) bool {
	return slices.ContainsFunc(seen.Cancels, func(c ledger.ObservedCancel) bool {
		return c.TransactionKey == key && c.State == ledger.CancelAborted
	})
}

func missing(named []string, p ledger.Payment) []string {
	return slices.DeleteFunc(slices.Clone(named), p.HasCancel)
}

// told is the balance that the notice tells; nil when it tells none that our books could be compared with.
func (d *delivery) told(held ledger.Money) *ledger.Money {
	if b := d.notice.Balance; b != nil && b.Currency == held.Currency {
		return b
	}
	return nil
}

// claimsMore reports whether the notice knows of less money than our books: the gateway answered from before the
// cancel.
func (d *delivery) claimsMore(p ledger.Payment) bool {
	held := p.Balance()
	if told := d.told(held); told != nil {
		return told.Minor < held.Minor
	}
	return d.notice.Whole && held.Positive()
}

// sameMoment is how much older than its notice a cancel may be: the gateway tells of it within a second, and writes the
// time of a cancel without fractions.
const sameMoment = 10 * time.Second

// knownBy reports whether our books hold a cancel that a notice without a name can be about. The balance it tells
// decides, if it tells one. Else it takes a cancel as young as the notice: an older one proves nothing about the one
// that it speaks of. Both times are the gateway's own; a notice without one is as young as its delivery, and believed
// when it brought a cancel.
func (d *delivery) knownBy(recorded ledger.Recorded) bool {
	if d.told(recorded.After.Balance()) != nil {
		return true // and it does not tell of less
	}
	if d.notice.CreatedAt.IsZero() && len(recorded.Applied) > 0 {
		return true
	}
	since := cmp.Or(d.notice.CreatedAt, d.at).Add(-sameMoment)
	return slices.ContainsFunc(recorded.After.Cancels, func(c ledger.Cancel) bool { return !c.CanceledAt.Before(since) })
}

// unproven are the claims to open for a notice that was not acknowledged although the gateway answered. A cancel that
// it is still working on has work of its own, and one that it gave up is owed nothing.
func unproven(d delivery, v verdict, seen ledger.Observation, recorded ledger.Recorded) []*string {
	if v.reason == reasonGivenUp {
		return nil
	}
	named := d.names(seen, recorded.After)
	absent := missing(named, recorded.After)
	if recorded.Outcome != ledger.OutcomeConflict {
		absent = slices.DeleteFunc(absent, func(key string) bool {
			return slices.ContainsFunc(seen.Cancels, func(c ledger.ObservedCancel) bool { return c.TransactionKey == key })
		})
		if len(absent) == 0 && (len(named) > 0 || len(recorded.Open) > 0) {
			return nil
		}
	}
	return claimed(absent)
}
