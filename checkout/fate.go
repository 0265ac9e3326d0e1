package checkout

import (
	"time"

	"daesa/checkout/store"
	"daesa/ledger"
)

// checkReason is why the merchant has to look at an order by hand.
type checkReason string

const (
	checkLate        checkReason = "late"        // paid, and the store never said whether it takes it on
	checkUnreachable checkReason = "unreachable" // the same, and it could not be asked
	checkReleased    checkReason = "released"    // paid after all, and the store was told that nothing comes of it
	checkUnreleased  checkReason = "unreleased"  // not paid, and the store may still hold it
)

func checkReasons() []checkReason {
	return []checkReason{checkLate, checkUnreachable, checkReleased, checkUnreleased}
}

const (
	// lingers is for how long a question without an answer may still come through: a request was seen to be held for nearly
	// four minutes after its caller had given up. A release that was heard earlier may have overtaken it, and is sent again.
	lingers = 5 * time.Minute
	// releaseFor is how long a release is tried.
	releaseFor = 3 * 24 * time.Hour
	// lookSlowest is how often the payment of an acceptance is looked at when it stays undecided, an account waiting for its
	// deposit for days, say.
	lookSlowest = 5 * time.Minute

	releaseFirst   = 5 * time.Second
	releaseSlowest = time.Hour
)

// question is an acceptance as its row stands, with the payment that it is for.
type question struct {
	state    acceptanceState
	word     store.Word
	sent     bool
	attempt  int // 0 = no intent was committed
	askedAt  time.Time
	owedAt   time.Time
	endedAt  time.Time
	told     bool
	releases int

	payment *paymentNow // nil = not in the books
}

// paymentNow is what of a payment decides about an acceptance.
type paymentNow struct {
	status  ledger.Status
	attempt int
	took    bool // money, and it holds the order
}

// fate is what becomes of an acceptance.
type fate struct {
	state acceptanceState
	due   time.Time   // when it is looked at again; zero = never
	tell  checkReason // "" = nobody
	send  bool        // tell the store now
}

// decideFate is the whole life of an acceptance after its question: pure, and the same however often it is asked.
//
// The payment decides, never the store's answer alone: an acceptance whose attempt took the money is kept, one whose
// attempt came to nothing is released, and while nobody knows, neither. What was released is watched for as long as the
// gateway's own evidence may still come: should the payment have taken the money after all, somebody has to look.
func decideFate(q question, now time.Time) fate {
	switch q.state {
	case acceptanceAsking: // whoever asked is gone
		return fate{state: acceptanceReleasing, due: now, send: true}
	case acceptanceHeld:
		return heldFate(q, now)
	case acceptanceReleasing:
		if now.Sub(q.owedAt) >= releaseFor {
			return ended(q, acceptanceGivenUp, now, checkUnreleased)
		}
		return fate{state: acceptanceReleasing, due: now, send: true}
	case acceptanceReleased, acceptanceVoid, acceptanceGivenUp:
		if q.payment != nil && q.payment.attempt == q.attempt && q.payment.took {
			return fate{state: q.state, tell: checkReleased}
		}
		return fate{state: q.state, due: nextWatch(q, now)}
	case acceptanceDeclined, acceptanceKept:
	}
	return fate{state: q.state}
}

func heldFate(q question, now time.Time) fate {
	p := q.payment
	switch {
	case p != nil && p.attempt == q.attempt && p.took:
		f := fate{state: acceptanceKept}
		switch q.word {
		case store.Late:
			f.tell = checkLate
		case store.Unreachable:
			f.tell = checkUnreachable
		case store.Accepted, store.Declined:
		}
		return f
	case p != nil && p.attempt == q.attempt && p.undecided():
		return fate{state: acceptanceHeld, due: now.Add(min(max(now.Sub(q.askedAt), time.Second), lookSlowest))}
	case p == nil || p.attempt < q.attempt: // read as it stood before the intent that the row was committed with
		return fate{state: acceptanceHeld, due: now.Add(heldFirst)}
	case !q.sent:
		return ended(q, acceptanceVoid, now, "")
	}
	return fate{state: acceptanceReleasing, due: now, send: true}
}

// undecided reports whether the payment may still take the money in this attempt.
func (p paymentNow) undecided() bool {
	switch p.status {
	case ledger.StatusConfirming, ledger.StatusUnknown, ledger.StatusWaitingForDeposit:
		return true
	case ledger.StatusReady, ledger.StatusFailed, ledger.StatusDone, ledger.StatusPartiallyCanceled, ledger.StatusCanceled:
	}
	return false
}

// ended is the end of an acceptance that came to nothing.
func ended(q question, state acceptanceState, now time.Time, tell checkReason) fate {
	q.endedAt = now
	return fate{state: state, due: nextWatch(q, now), tell: tell}
}

// heardFate is what becomes of an acceptance whose release the store has just heard.
func heardFate(q question, now time.Time) fate {
	if q.word != store.Accepted && now.Before(q.askedAt.Add(lingers)) {
		return fate{state: acceptanceReleasing, due: q.askedAt.Add(lingers)}
	}
	return ended(q, acceptanceReleased, now, "")
}

// nextWatch is when a payment is looked at again whose acceptance was given back: after 1, 4, 16, 64, 256, 1,024 and 4,096
// minutes, as the gateway repeats its notices. Without an attempt there is no payment to look at, and nobody is told twice.
func nextWatch(q question, now time.Time) time.Time {
	if q.attempt == 0 || q.told {
		return time.Time{}
	}
	wait := time.Minute
	for range 7 {
		if at := q.endedAt.Add(wait); at.After(now) {
			return at
		}
		wait *= 4
	}
	return time.Time{}
}

// nextRelease is when a release is tried again that the store did not hear: after five seconds, then twice as long each
// time up to an hour.
func nextRelease(releases int, now time.Time) time.Time {
	wait := releaseFirst
	for range releases {
		if wait *= 2; wait >= releaseSlowest {
			return now.Add(releaseSlowest)
		}
	}
	return now.Add(wait)
}
