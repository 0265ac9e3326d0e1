package webhook

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"daesa/ledger"
)

// What made-up notices may cost us in questions to the gateway. Only a question that proved nothing counts, so that a
// real cancel is free however many there are, with its copies, and so is one that met a silent gateway or failed here: its
// redelivery must be able to ask.
const (
	// fruitlessOfPayment questions about one payment may prove nothing, and another each fruitlessRefill. A real notice
	// that the gateway does not bear out yet comes seven times in four days. One that names no cancel, of a cancel that the
	// books have from its answer already, comes once.
	fruitlessOfPayment = 10
	fruitlessRefill    = time.Minute
	// fruitlessOfAll questions about any payments may prove nothing, over all instances, and fruitlessPerSecond more each
	// second: what one source may send, so that many of them together cost the merchant's quota no more than one does.
	fruitlessOfAll     = 300
	fruitlessPerSecond = 5
	// fruitlessTogether questions may be under way where half of the allowance is left, whatever the share of an instance:
	// as many notices as the gate lets in at a time. A burst of redeliveries may reach one of ten instances, and what its
	// questions prove is known only afterwards.
	fruitlessTogether = 160
	// fruitlessPayments bounds the memory that made-up notices can use.
	fruitlessPayments = 10_000
)

// reasonFruitless is why a question was not put: too many before it have proven nothing.
const reasonFruitless = "fruitless"

// errFruitless means that notices have made us ask for nothing too often. The claim that such a notice leaves is asked
// about by the sweeper, whose questions nobody outside can cause faster.
var errFruitless = errors.New("too many questions for such notices have proven nothing")

// provedNothing reports whether the gateway's answer to a question of the given instant applied nothing. It is no matter that
// the books then agree with the notice: they did before. But the cancel that one of several copies books while the others
// ask, or that its own answer books, is what all of them are about.
func provedNothing(v verdict, after ledger.Payment, asked time.Time) bool {
	switch v.outcome { //nolint:exhaustive // the others applied something, or failed here
	case OutcomeStateMismatch:
		return true
	case OutcomeDuplicateSkipped:
		return !slices.ContainsFunc(after.Cancels, func(c ledger.Cancel) bool { return !c.RecordedAt.Before(asked) })
	}
	return false
}

// fruitless counts the questions that proved nothing. The zero value is not of use; see newFruitless.
type fruitless struct {
	all *rate.Limiter

	mu        sync.Mutex
	ofPayment map[string]*rate.Limiter
	underWay  int       // questions of which nobody knows yet what they prove
	noted     time.Time // as of which the last was counted
}

func newFruitless(replicas int) *fruitless {
	return &fruitless{
		all:       rate.NewLimiter(rate.Limit(fruitlessPerSecond)/rate.Limit(replicas), max(1, fruitlessOfAll/replicas)),
		ofPayment: make(map[string]*rate.Limiter),
	}
}

// begin reports whether a notice may make us ask about the payment. Over all payments each question that is under way
// counts as one that proves nothing until end says what it was: that is known only once its answer has been compared with
// the books, and a storm is fast while that is slow. Only as long as little has proven nothing of late are those under way
// believed in, up to fruitlessTogether; what they cost beyond the allowance is owed, and paid back before anybody asks
// again. For one payment they do not count: copies of a real notice come at the same time.
func (f *fruitless) begin(paymentKey string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.ofPayment[paymentKey]
	room := f.all.TokensAt(now)
	if room >= float64(f.all.Burst())/2 {
		room = max(room, fruitlessTogether)
	}
	if room < float64(f.underWay+1) || of != nil && of.TokensAt(now) < 1 {
		return false
	}
	f.underWay++
	return true
}

// end tells what came of a question that was begun, and counts it if it proved nothing.
func (f *fruitless) end(paymentKey string, now time.Time, provedNothing bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.underWay--
	if provedNothing {
		f.note(paymentKey, now)
	}
}

// note counts a question that proved nothing. The lock is held. A slow question ends after others that began later, and
// is counted as of these: a limiter whose time is set back refills once more what it has refilled already.
func (f *fruitless) note(paymentKey string, now time.Time) {
	if now.Before(f.noted) {
		now = f.noted
	}
	f.noted = now
	f.all.ReserveN(now, 1)
	of := f.ofPayment[paymentKey]
	if of == nil {
		f.makeRoom(now)
		of = rate.NewLimiter(rate.Every(fruitlessRefill), fruitlessOfPayment)
		f.ofPayment[paymentKey] = of
	}
	of.ReserveN(now, 1)
}

// makeRoom forgets the payments that may ask as often as any other, and, where nearly all are still at it, a tenth of them:
// then the limit of all of them together holds. The lock is held.
func (f *fruitless) makeRoom(now time.Time) {
	if len(f.ofPayment) < fruitlessPayments {
		return
	}
	maps.DeleteFunc(f.ofPayment, func(_ string, of *rate.Limiter) bool { return of.TokensAt(now) >= fruitlessOfPayment })
	for key := range f.ofPayment {
		if len(f.ofPayment) <= fruitlessPayments*9/10 {
			return
		}
		delete(f.ofPayment, key)
	}
}
