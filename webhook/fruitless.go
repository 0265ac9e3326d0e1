package webhook

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// What made-up notices may cost us in questions to the gateway. Only a question that proved nothing counts, so that a
// real cancel is free however many there are, and so is one that met a silent gateway: its redelivery must be able to ask.
const (
	// fruitlessOfPayment questions about one payment may prove nothing, and another each fruitlessRefill. A real notice
	// that the gateway does not bear out yet comes seven times in four days.
	fruitlessOfPayment = 10
	fruitlessRefill    = time.Minute
	// fruitlessOfAll questions about any payments may prove nothing, over all instances, and fruitlessPerSecond more each
	// second: what one source may send, so that many of them together cost the merchant's quota no more than one does.
	fruitlessOfAll     = 300
	fruitlessPerSecond = 5
	// fruitlessPayments bounds the memory that made-up notices can use.
	fruitlessPayments = 10_000
)

// reasonFruitless is why a question was not put: too many before it have proven nothing.
const reasonFruitless = "fruitless"

// errFruitless means that notices have made us ask for nothing too often. The claim that such a notice leaves is asked
// about by the sweeper, whose questions nobody outside can cause faster.
var errFruitless = errors.New("too many questions for such notices have proven nothing")

// fruitless counts the questions that proved nothing. The zero value is not of use; see newFruitless.
type fruitless struct {
	all *rate.Limiter

	mu        sync.Mutex
	ofPayment map[string]*rate.Limiter
}

func newFruitless(replicas int) *fruitless {
	return &fruitless{
		all:       rate.NewLimiter(rate.Limit(fruitlessPerSecond)/rate.Limit(replicas), max(1, fruitlessOfAll/replicas)),
		ofPayment: make(map[string]*rate.Limiter),
	}
}

// mayAsk reports whether a notice may make us ask about the payment. Those that ask at the same time are not counted
// yet: the cap of the query path bounds them.
func (f *fruitless) mayAsk(paymentKey string, now time.Time) bool {
	f.mu.Lock()
	of := f.ofPayment[paymentKey]
	f.mu.Unlock()
	return f.all.TokensAt(now) >= 1 && (of == nil || of.TokensAt(now) >= 1)
}

// note counts a question that proved nothing. What was asked beyond the limits is owed by those who come after.
func (f *fruitless) note(paymentKey string, now time.Time) {
	f.all.ReserveN(now, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.ofPayment[paymentKey]
	if of == nil {
		f.makeRoom(now)
		of = rate.NewLimiter(rate.Every(fruitlessRefill), fruitlessOfPayment)
		f.ofPayment[paymentKey] = of
	}
	of.ReserveN(now, 1)
}

// makeRoom forgets the payments that may ask as often as any other, and, where all are still at it, one of them: then
// the limit of all of them together holds. The lock is held.
func (f *fruitless) makeRoom(now time.Time) {
	if len(f.ofPayment) < fruitlessPayments {
		return
	}
	for key, of := range f.ofPayment {
		if of.TokensAt(now) >= fruitlessOfPayment {
			delete(f.ofPayment, key)
		}
	}
	for key := range f.ofPayment {
		if len(f.ofPayment) < fruitlessPayments {
			return
		}
		delete(f.ofPayment, key)
	}
}
