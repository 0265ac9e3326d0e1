package ledger

import (
	"maps"
	"slices"
	"time"
)

// settle lets everything come to rest: the gateway finishes what it was doing, its list is read, and every open row
// of work is asked about until it is closed.
func (s *story) settle() {
	for _, c := range s.calls {
		if s.choose(2) == 0 {
			c.sale.process(s.now)
		}
	}
	for _, one := range s.sales {
		s.finish(one)
		if one.evidence == EvidenceOpen {
			one.evidence = EvidenceDead // the session has run out
		}
	}
	s.readList()
	for range 5 {
		s.now = s.now.Add(fallbackAloneAfter + time.Second)
		for _, d := range s.books.owed() {
			o := s.sale(d.payment).look(s.now)
			if d.kind == WorkCancelListed {
				o.Listed = d.transactionKey
			}
			s.books.record(o, false, s.now)
		}
	}
	for _, d := range s.books.owed() {
		if d.kind != WorkDepositWatch { // which ends by its deadline
			s.fail("%+v is still owed when everything is at rest; gateway %+v", d, *s.sale(d.payment))
		}
	}
}

// readList is the audit's reading of the gateway's list: what is in it and not in the books becomes work.
func (s *story) readList() {
	for _, one := range s.sales {
		p, _ := s.books.payment(one.key)
		for _, c := range one.cancels {
			if c.State == CancelDone && !p.HasCancel(c.TransactionKey) {
				s.books.owe(debt{kind: WorkCancelListed, payment: one.key, order: one.order, transactionKey: c.TransactionKey}, s.now)
			}
		}
		if one.evidence == EvidenceCaptured && p.Captured().IsZero() {
			s.books.record(one.look(s.now), false, s.now)
		}
	}
}

func (s *story) sale(key string) *sale {
	i := slices.IndexFunc(s.sales, func(one *sale) bool { return one.key == key })
	return s.sales[i]
}

// compare checks that the money moved at the gateway is the money in the books (I7), and what follows from it.
func (s *story) compare() {
	for _, one := range s.sales {
		s.compareSale(one)
	}
	for _, o := range s.orders {
		s.compareOrder(o)
	}
	for _, k := range s.books.findings() {
		if k != KindPaidTwice {
			s.fail("found %s, though the gateway never contradicted itself", k)
		}
	}
}

func (s *story) compareSale(one *sale) {
	p, known := s.books.payment(one.key)
	captured := int64(0)
	allowed := []Status{StatusDone, StatusPartiallyCanceled, StatusCanceled}
	switch one.evidence { //nolint:exhaustive // what a sale can be at rest
	case EvidenceCaptured:
		captured = one.amount.Minor
	case EvidenceWaiting:
		allowed = []Status{StatusWaitingForDeposit, StatusReady}
	case EvidenceDead:
		allowed = []Status{StatusFailed, StatusReady}
	case EvidenceVoided:
		allowed = []Status{StatusCanceled}
	}
	if !known && captured == 0 && len(one.cancels) == 0 {
		return
	}
	if !one.fell && slices.ContainsFunc(p.Captures, func(c Capture) bool { return !c.ReversedAt.IsZero() }) {
		s.fail("%s: a deposit was taken back that never fell back: %+v", one.key, p.Captures)
	}
	if !slices.Contains(allowed, p.Status) {
		s.fail("%s: got %s, gateway %+v", one.key, p.Status, *one)
	}
	if p.Captured().Minor != captured {
		s.fail("%s: got %s captured, gateway %d", one.key, p.Captured(), captured)
	}
	theirs, ours := map[string]int64{}, map[string]int64{}
	for _, c := range one.cancels {
		if c.State == CancelDone {
			theirs[c.TransactionKey] = c.Amount.Minor
			if one.evidence == EvidenceVoided {
				theirs[c.TransactionKey] = 0
			}
		}
	}
	for _, c := range p.Cancels {
		ours[c.TransactionKey] = c.Amount.Minor
	}
	if !maps.Equal(theirs, ours) {
		s.fail("%s: got cancels %v, gateway %v", one.key, ours, theirs)
	}
}

// compareOrder checks that an order shows the money that came for it, or that a person was told why not, and that
// its credits were revoked to the floor.
func (s *story) compareOrder(o Order) {
	status, money := s.books.order(o.ID).Status, false
	for _, one := range s.sales {
		if one.order != o.ID {
			continue
		}
		money = money || one.evidence == EvidenceCaptured
		p, known := s.books.payment(one.key)
		if !known || p.Surplus || p.CreditsGranted == 0 {
			continue
		}
		fallen := p.CreditsGranted
		if p.Captured().Positive() {
			fallen -= o.Credits
		}
		if want := fallen + Share(o.Credits, p.Canceled().Minor, max(1, p.Captured().Minor)); p.CreditsRevoked != want {
			s.fail("%s: got %d of %d credits revoked, want %d", one.key, p.CreditsRevoked, p.CreditsGranted, want)
		}
	}
	if money && status == OrderPending && !slices.Contains(s.books.findings(), KindPaidTwice) {
		s.fail("%s is pending though money came for it", o.ID)
	}
}
