package seal

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// hasher turns subjects (a payment, a customer, a cancel) into numbers of 128 bits, under a key drawn for this run alone.
type hasher struct {
	high, low maphash.Seed
	text      []byte
}

func newHasher() *hasher { return &hasher{high: maphash.MakeSeed(), low: maphash.MakeSeed()} }

// begin starts a subject. Its parts end in a byte that no text of the database holds, so that no two subjects of the same
// parts read alike; NULL is a part of its own.
func (h *hasher) begin() *hasher {
	h.text = h.text[:0]
	return h
}

func (h *hasher) part(field []byte) *hasher {
	if field == nil {
		h.text = append(h.text, 1)
	}
	h.text = append(h.text, field...)
	h.text = append(h.text, 0)
	return h
}

func (h *hasher) number(n int64) *hasher {
	h.text = binary.BigEndian.AppendUint64(h.text, uint64(n)) //nolint:gosec // only equality counts
	return h
}

// subject is the number of what was begun.
func (h *hasher) subject() wide {
	return wide{maphash.Bytes(h.high, h.text), maphash.Bytes(h.low, h.text)}
}

// wide is a number modulo 2¹²⁸.
type wide struct{ high, low uint64 }

// add adds subject × amount.
func (w *wide) add(subject wide, amount int64) {
	a := uint64(amount) //nolint:gosec // two's complement: the arithmetic is modulo 2¹²⁸
	high, low := bits.Mul64(subject.low, a)
	high += subject.high * a
	if amount < 0 {
		high -= subject.low // the sign goes on through the upper half
	}
	var carry uint64
	w.low, carry = bits.Add64(w.low, low, 0)
	w.high, _ = bits.Add64(w.high, high, carry)
}

// pair is the two sides of one comparison: what the entries say, and what the tables beside them say. They are equal when
// for every subject the amounts add up to the same. Should they differ for some, each difference is multiplied by a random
// number that nobody knew beforehand: the sums still agree with a probability below 2⁻⁸⁸, since amounts stay below 2⁴⁰.
type pair struct{ journal, books wide }

// pairID numbers the comparisons.
type pairID int

// The comparisons. Those of facts name one transaction each, those of states a sum over several.
const (
	pairCaptures pairID = iota
	pairReversals
	pairCancels
	pairSpends
	pairCaptured
	pairCanceled
	pairIncome
	pairCancelRevoked
	pairPaymentGranted
	pairPaymentRevoked
	pairGranted
	pairRevoked
	pairSpent
	pairOrders
	pairBalanceDebits
	pairBalanceCredits
	pairCount
)
