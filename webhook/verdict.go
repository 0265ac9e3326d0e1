package webhook

import (
	"slices"

	"daesa/ledger"
)

// judge says what a recorded observation means for the notice that gave rise to it. Only what our books now hold is
// acknowledged: every cancel that the notice names, or, when it names none, at least one and none under way.
func judge(d delivery, recorded ledger.Recorded) verdict {
	switch {
	case recorded.Outcome == ledger.OutcomeConflict:
		return verdict{outcome: OutcomeStateMismatch, reason: "conflict"}
	case len(recorded.After.Cancels) == 0 && len(recorded.Open) > 0:
		return verdict{outcome: OutcomeStateMismatch, reason: "in_progress"}
	case len(recorded.After.Cancels) == 0:
		return verdict{outcome: OutcomeStateMismatch, reason: "not_canceled"}
	case len(d.missing(recorded.After)) > 0:
		return verdict{outcome: OutcomeStateMismatch, reason: "other_cancel"}
	case len(d.named) == 0 && len(recorded.Open) > 0:
		return verdict{outcome: OutcomeStateMismatch, reason: "in_progress"}
	case d.claimsMore(recorded.After):
		return verdict{outcome: OutcomeStateMismatch, reason: "balance"}
	case len(recorded.Applied) == 0:
		return verdict{outcome: OutcomeDuplicateSkipped}
	case recorded.After.Balance().IsZero():
		return verdict{outcome: OutcomeAppliedFull}
	}
	return verdict{outcome: OutcomeAppliedPartial}
}

// missing are the cancels that the notice names and our books lack.
func (d *delivery) missing(p ledger.Payment) []string {
	return slices.DeleteFunc(slices.Clone(d.named), p.HasCancel)
}

// claimsMore reports whether the notice knows of a smaller balance than our books: the gateway answered from before
// the cancel.
func (d *delivery) claimsMore(p ledger.Payment) bool {
	told, held := d.notice.Balance, p.Balance()
	return len(d.named) == 0 && told != nil && told.Currency == held.Currency && told.Minor < held.Minor
}

// unproven are the claims to open for a notice that was not acknowledged although the gateway answered. A cancel that
// it is still working on has work of its own, and one that it gave up is owed nothing.
func unproven(d delivery, seen ledger.Observation, recorded ledger.Recorded) []*string {
	missing := d.missing(recorded.After)
	if recorded.Outcome != ledger.OutcomeConflict {
		missing = slices.DeleteFunc(missing, func(key string) bool {
			return slices.ContainsFunc(seen.Cancels, func(c ledger.ObservedCancel) bool { return c.TransactionKey == key })
		})
		if len(missing) == 0 && (len(d.named) > 0 || len(recorded.Open) > 0) {
			return nil
		}
	}
	return claimed(missing)
}
