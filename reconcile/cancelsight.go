package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// sight is what a payment object shows of a cancel request of ours.
type sight struct {
	mine   ledger.ObservedCancel // set when found
	found  bool                  // one cancel stands exactly where ours would
	absent bool                  // no cancel can be ours
}

// sightOf looks for our cancel among those that are not another's. The gateway cancels only while exactly the balance
// that the request named is left, and what is left falls with every cancel; so ours is the one cancel of our amount
// after which the difference was left. The reason is not compared: the gateway may have rewritten it. A cancel of our
// amount could be ours too where what was left is vague.
func sightOf(r ledger.CancelRequest, seen ledger.Observation, others map[string]bool) sight {
	candidates := candidatesOf(r, seen, others)
	left := r.Refundable.Minor - r.Amount.Minor
	if r.Amount.IsZero() || (left == 0 && seen.Evidence == ledger.EvidenceVoided) {
		return sightOfVoid(seen, candidates)
	}
	var fits []ledger.ObservedCancel
	possible := false
	for _, c := range candidates {
		switch {
		case c.Amount != r.Amount:
		case c.Refundable.Minor == left && (c.State != ledger.CancelDone || seen.Balance.Minor <= left):
			fits = append(fits, c)
		default:
			possible = possible || vague(seen)
		}
	}
	if len(fits) == 1 {
		return sight{mine: fits[0], found: true}
	}
	return sight{absent: len(fits) == 0 && !possible && (unpaid(seen) ||
		(seen.Evidence == ledger.EvidenceCaptured && seen.Balance.Minor <= r.Refundable.Minor))}
}

// unpaid reports whether the account has no money that could be canceled: its deposit never came or fell back.
func unpaid(seen ledger.Observation) bool {
	return seen.Evidence == ledger.EvidenceWaiting || seen.Evidence == ledger.EvidenceDead || seen.Evidence == ledger.EvidenceVoided
}

// candidatesOf are the cancels that stand and can be the request's.
func candidatesOf(r ledger.CancelRequest, seen ledger.Observation, others map[string]bool) []ledger.ObservedCancel {
	var candidates []ledger.ObservedCancel
	for _, c := range seen.Cancels {
		if c.State != ledger.CancelAborted && !others[c.TransactionKey] && !before(c, r) {
			candidates = append(candidates, c)
		}
	}
	return candidates
}

// vague reports whether the cancels do not tell for sure what was left after each: none says anything, as in older
// objects, or one is still under way, which may be counted or not.
func vague(seen ledger.Observation) bool {
	told := false
	for _, c := range seen.Cancels {
		if c.State == ledger.CancelInProgress || c.State == ledger.CancelUnrecognized {
			return true
		}
		told = told || c.Refundable.Positive()
	}
	return !told
}

// clockSkew is how far the gateway's clock and those of our instances may be apart.
const clockSkew = 10 * time.Minute

// before reports whether the cancel was there before the request, whatever the clocks.
func before(c ledger.ObservedCancel, r ledger.CancelRequest) bool {
	return !c.CanceledAt.IsZero() && c.CanceledAt.Before(r.CreatedAt.Add(-clockSkew))
}

// sightOfVoid looks for the cancel of an account without money: it is the only one there can be, and the object may show it
// without a key of its own. A request for all of a deposit that had fallen back has become that cancel.
func sightOfVoid(seen ledger.Observation, candidates []ledger.ObservedCancel) sight {
	switch {
	case seen.Evidence == ledger.EvidenceVoided && len(candidates) == 1:
		return sight{mine: candidates[0], found: true}
	case seen.Evidence == ledger.EvidenceVoided && len(candidates) == 0:
		return sight{mine: ledger.ObservedCancel{TransactionKey: seen.LastTransactionKey, State: ledger.CancelDone}, found: true}
	}
	return sight{absent: len(candidates) == 0 && (unpaid(seen) || seen.Evidence == ledger.EvidenceCaptured)}
}

// answerOf finds our cancel in the gateway's answer to the very request, which has it for sure. Where what was left does
// not tell, it is the last transaction, if that is a cancel of our amount; and where every cancel of our amount has been
// given up, the last of them.
func answerOf(r ledger.CancelRequest, seen ledger.Observation, others map[string]bool) (ledger.ObservedCancel, bool) {
	if s := sightOf(r, seen, others); s.found {
		return s.mine, true
	}
	var last ledger.ObservedCancel
	alive := false
	for _, c := range seen.Cancels {
		switch {
		case others[c.TransactionKey] || before(c, r) || c.Amount != r.Amount:
		case c.TransactionKey == seen.LastTransactionKey:
			return c, true
		default:
			last, alive = c, alive || c.State != ledger.CancelAborted
		}
	}
	return last, !alive && last.TransactionKey != ""
}

// behind reports whether the look shows an earlier state than the books: then that something is absent says nothing.
func behind(seen ledger.Observation, books ledger.Payment) bool {
	switch seen.Evidence { //nolint:exhaustive // the others show all there is
	case ledger.EvidenceWaiting:
		return books.Status != ledger.StatusWaitingForDeposit
	case ledger.EvidenceDead, ledger.EvidenceVoided:
		return books.Status.HoldsMoney()
	}
	return seen.Evidence == ledger.EvidenceCaptured && seen.Balance.Minor > books.Balance().Minor
}

// otherCancels are the cancels of the payment that cannot be the request's: those of other requests of ours, and those
// known to the books before the request was made.
func otherCancels(ctx context.Context, tx pgx.Tx, r ledger.CancelRequest) (map[string]bool, error) {
	rows, err := tx.Query(ctx, `
		SELECT transaction_key FROM cancel_requests
		WHERE payment_key = @payment_key AND request_id <> @request_id AND transaction_key IS NOT NULL
		UNION
		SELECT transaction_key FROM cancels WHERE payment_key = @payment_key AND recorded_at < @before
		UNION
		SELECT transaction_key FROM work
		WHERE payment_key = @payment_key AND closed_at IS NULL AND kind = 'cancel_in_progress' AND opened_at < @before`,
		pgx.StrictNamedArgs{"payment_key": r.PaymentKey, "request_id": r.ID, "before": r.CreatedAt.Add(-clockSkew)})
	if err != nil {
		return nil, fmt.Errorf("read the other cancels beside request %s: %w", r.ID, err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read the other cancels beside request %s: %w", r.ID, err)
	}
	others := make(map[string]bool, len(keys))
	for _, key := range keys {
		others[key] = true
	}
	return others, nil
}
