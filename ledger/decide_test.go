package ledger

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// second is an instant of the story that the tests of this package tell: noon in Seoul, and so many seconds on.
func second(n int) time.Time {
	return time.Date(2026, 5, 1, 3, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
}

// bought is a payment of 50,000 won in a status that has no money.
func bought(s Status) Payment {
	p := Payment{
		Key: "pk_1", OrderID: "order_1", MerchantID: "shop", Status: s, Amount: Won(50_000), Attempt: 1, Generation: 1,
		IntendedAt: second(0), UpdatedAt: second(0),
	}
	if s.Undecided() {
		p.UndecidedSince = second(0)
	}
	return p
}

// paid is a payment of 50,000 won, captured at second 10 under the key "tx_1", with the parts given back.
func paid(parts ...int64) Payment {
	p := bought(StatusDone)
	p.Captures = []Capture{{Number: 1, TransactionKey: "tx_1", Amount: Won(50_000), CapturedAt: second(10)}}
	for i, amount := range parts {
		p.Cancels = append(p.Cancels, Cancel{TransactionKey: cancelKey(i + 1), PaymentKey: p.Key, Amount: Won(amount)})
		p.Status = StatusPartiallyCanceled
	}
	if p.Balance().IsZero() {
		p.Status = StatusCanceled
	}
	return p
}

func cancelKey(n int) string { return "c" + string(rune('0'+n)) }

// deposited is a virtual account that was paid into at second 10.
func deposited() Payment {
	p := paid()
	p.VirtualAccount = true
	return p
}

// shown is what the gateway shows at second 100, asked a second earlier.
func shown(e Evidence, cancels ...ObservedCancel) Observation {
	o := Observation{
		PaymentKey: "pk_1", OrderID: "order_1", MerchantID: "shop", Channel: ChannelWebhook, Evidence: e,
		AskedAt: second(99), SeenAt: second(100), Word: string(e), Total: Won(50_000), Balance: Won(50_000), Cancels: cancels,
	}
	if e == EvidenceCaptured {
		o.CapturedAt, o.LastTransactionKey = second(10), "tx_1"
	}
	for _, c := range cancels {
		o.LastTransactionKey = c.TransactionKey
		if c.State == CancelDone {
			o.Balance.Minor -= c.Amount.Minor
		}
	}
	return o
}

func part(n int, amount int64) ObservedCancel {
	return ObservedCancel{TransactionKey: cancelKey(n), State: CancelDone, Amount: Won(amount), CanceledAt: second(50 + n)}
}

// leaving is a part of one and the same second, after which so much could still be canceled.
func leaving(n int, amount, refundable int64) ObservedCancel {
	c := part(n, amount)
	c.CanceledAt, c.Refundable = second(50), Won(refundable)
	return c
}

func inState(c ObservedCancel, s CancelState) ObservedCancel {
	c.State = s
	return c
}

// with changes a copy: payments and observations of the tables differ from the usual ones in a line.
func with[T any](v T, change func(*T)) T {
	change(&v)
	return v
}

// decided is what a test wants of a decision.
type decided struct {
	To       Status
	Verdict  verdict
	Captured string   // the new capture's key and number
	Reversed string   // the fallen capture's key
	Cancels  []string // new ones
	Open     []string
	Ended    []string
	Finding  Kind
}

func summarize(d Decision) decided {
	s := decided{To: d.To, Verdict: d.Verdict, Ended: d.Ended}
	if d.Capture != nil {
		s.Captured = captureReference(d.Capture.TransactionKey, d.Capture.Number)
	}
	if d.Reversed != nil {
		s.Reversed = d.Reversed.TransactionKey
	}
	for _, c := range d.Cancels {
		s.Cancels = append(s.Cancels, c.TransactionKey+" "+c.Amount.Decimal())
	}
	for _, c := range d.Open {
		s.Open = append(s.Open, c.TransactionKey)
	}
	for _, f := range d.Findings {
		s.Finding += f.Kind
	}
	return s
}

type situation struct {
	name   string
	before Payment
	seen   Observation
	want   decided
}

func decideAll(t *testing.T, situations []situation) {
	t.Helper()
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			before := s.before
			before.Cancels, before.Captures = slices.Clone(before.Cancels), slices.Clone(before.Captures)
			got := Decide(s.before, s.seen)
			if diff := cmp.Diff(s.want, summarize(got)); diff != "" {
				t.Errorf("decision differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, s.before); diff != "" {
				t.Errorf("Decide changed the payment it was given:\n%s", diff)
			}
			if got.Conflict() != (len(got.Findings) > 0 && got.Verdict == conflicts) {
				t.Errorf("got a conflict without a finding: %+v", got)
			}
		})
	}
}

func TestDecide_Captures(t *testing.T) {
	t.Parallel()
	decideAll(t, []situation{
		{"confirmed", bought(StatusConfirming), shown(EvidenceCaptured), decided{To: StatusDone, Verdict: goes, Captured: "tx_1#1"}},
		{"unknown turns out paid", bought(StatusUnknown), shown(EvidenceCaptured), decided{To: StatusDone, Verdict: goes, Captured: "tx_1#1"}},
		{"money wins over failed", bought(StatusFailed), shown(EvidenceCaptured), decided{To: StatusDone, Verdict: goes, Captured: "tx_1#1"}},
		{"money wins over ready", bought(StatusReady), shown(EvidenceCaptured), decided{To: StatusDone, Verdict: goes, Captured: "tx_1#1"}},
		{"deposit came", with(bought(StatusWaitingForDeposit), virtual), shown(EvidenceCaptured), decided{To: StatusDone, Verdict: goes, Captured: "tx_1#1"}},
		{"the same again", paid(), shown(EvidenceCaptured), decided{To: StatusDone, Verdict: stays}},
		{"capture and full cancel in one look", bought(StatusConfirming), shown(EvidenceCaptured, part(1, 50_000)), decided{
			To: StatusCanceled, Verdict: goes, Captured: "#1", Cancels: []string{"c1 50000"},
		}},
		{"capture and two parts in one look", bought(StatusUnknown), shown(EvidenceCaptured, part(1, 2_000), part(2, 3_000)), decided{
			To: StatusPartiallyCanceled, Verdict: goes, Captured: "#1", Cancels: []string{"c1 2000", "c2 3000"},
		}},
		{"capture with a cancel that is not done yet", bought(StatusConfirming), shown(EvidenceCaptured, inState(part(1, 2_000), CancelInProgress)), decided{
			To: StatusDone, Verdict: goes, Captured: "#1", Open: []string{"c1"},
		}},
		{"an old DONE after a full cancel", paid(50_000), shown(EvidenceCaptured), decided{To: StatusCanceled, Verdict: stays}},
		{"an old DONE after a part", paid(12_000), shown(EvidenceCaptured), decided{To: StatusPartiallyCanceled, Verdict: stays}},
		{"money for a payment that was void", with(bought(StatusCanceled), func(p *Payment) {
			p.Cancels = []Cancel{{TransactionKey: "v1", Amount: Won(0)}}
		}), shown(EvidenceCaptured), decided{To: StatusCanceled, Verdict: conflicts, Finding: KindHistoryChanged}},
	})
}

func TestDecide_Cancels(t *testing.T) {
	t.Parallel()
	decideAll(t, []situation{
		{"a running total is never booked as a part", paid(2_000), shown(EvidenceCaptured, part(1, 2_000), part(2, 3_000)), decided{
			To: StatusPartiallyCanceled, Verdict: goes, Cancels: []string{"c2 3000"},
		}},
		{"the second part first, with the first beside it", paid(), shown(EvidenceCaptured, part(1, 12_000), part(2, 3_000)), decided{
			To: StatusPartiallyCanceled, Verdict: goes, Cancels: []string{"c1 12000", "c2 3000"},
		}},
		{"the first part's older look after it", paid(12_000, 3_000), shown(EvidenceCaptured, part(1, 12_000)), decided{To: StatusPartiallyCanceled, Verdict: stays}},
		{"the order of the list means nothing", paid(), shown(EvidenceCaptured, part(2, 38_000), part(1, 12_000)), decided{
			To: StatusCanceled, Verdict: goes, Cancels: []string{"c1 12000", "c2 38000"},
		}},
		{"of one second, the one that left more came first", paid(), shown(EvidenceCaptured, leaving(2, 38_000, 0), leaving(1, 12_000, 38_000)), decided{
			To: StatusCanceled, Verdict: goes, Cancels: []string{"c1 12000", "c2 38000"},
		}},
		{"one without a time is taken for the last", paid(), shown(EvidenceCaptured, with(part(2, 38_000), func(c *ObservedCancel) {
			c.CanceledAt = time.Time{}
		}), part(1, 12_000)), decided{To: StatusCanceled, Verdict: goes, Cancels: []string{"c1 12000", "c2 38000"}}},
		{"a second part to zero is not swallowed", paid(12_000), shown(EvidenceCaptured, part(1, 12_000), part(2, 38_000)), decided{
			To: StatusCanceled, Verdict: goes, Cancels: []string{"c2 38000"},
		}},
		{"the last won", paid(49_999), shown(EvidenceCaptured, part(1, 49_999), part(2, 1)), decided{
			To: StatusCanceled, Verdict: goes, Cancels: []string{"c2 1"},
		}},
		{"one won too much", paid(49_999), shown(EvidenceCaptured, part(1, 49_999), part(2, 2)), decided{
			To: StatusPartiallyCanceled, Verdict: conflicts, Finding: KindAmountDiffers,
		}},
		{"another cancel after all was canceled", paid(50_000), shown(EvidenceCaptured, part(1, 50_000), part(2, 1)), decided{
			To: StatusCanceled, Verdict: conflicts, Finding: KindAmountDiffers,
		}},
		{"overflowing cancels", paid(), shown(EvidenceCaptured, part(1, 1<<62), part(2, 1<<62)), decided{
			To: StatusDone, Verdict: conflicts, Finding: KindAmountDiffers,
		}},
		{"a cancel of nothing", paid(), shown(EvidenceCaptured, part(1, 0)), decided{To: StatusDone, Verdict: conflicts, Finding: KindQuarantined}},
		{"a negative cancel", paid(), shown(EvidenceCaptured, part(1, -100)), decided{To: StatusDone, Verdict: conflicts, Finding: KindQuarantined}},
		{"a cancel without key", paid(), shown(EvidenceCaptured, with(part(1, 100), func(c *ObservedCancel) { c.TransactionKey = "" })), decided{
			To: StatusDone, Verdict: conflicts, Finding: KindQuarantined,
		}},
		{"a cancel in another currency", paid(), shown(EvidenceCaptured, with(part(1, 100), func(c *ObservedCancel) { c.Amount.Currency = USD })), decided{
			To: StatusDone, Verdict: conflicts, Finding: KindQuarantined,
		}},
		{"one bad cancel holds the good one back", paid(), shown(EvidenceCaptured, part(1, 100), part(2, 0)), decided{
			To: StatusDone, Verdict: conflicts, Finding: KindQuarantined,
		}},
		{"a cancel told twice in one answer", paid(), shown(EvidenceCaptured, part(1, 12_000), part(1, 12_000)), decided{
			To: StatusPartiallyCanceled, Verdict: goes, Cancels: []string{"c1 12000"},
		}},
		{"a booked cancel of another amount", paid(12_000), shown(EvidenceCaptured, part(1, 12_001)), decided{
			To: StatusPartiallyCanceled, Verdict: conflicts, Finding: KindAmountDiffers,
		}},
		{"in progress is not money", paid(), shown(EvidenceCaptured, inState(part(1, 12_000), CancelInProgress)), decided{
			To: StatusDone, Verdict: stays, Open: []string{"c1"},
		}},
		{"nor is a state never seen", paid(), shown(EvidenceCaptured, inState(part(1, 12_000), CancelUnrecognized)), decided{
			To: StatusDone, Verdict: stays, Open: []string{"c1"},
		}},
		{"given up by the gateway", paid(), shown(EvidenceCaptured, inState(part(1, 12_000), CancelAborted)), decided{
			To: StatusDone, Verdict: stays, Ended: []string{"c1"},
		}},
		{"in progress in an older look than the booked end", paid(12_000), shown(EvidenceCaptured, inState(part(1, 12_000), CancelInProgress)), decided{
			To: StatusPartiallyCanceled, Verdict: stays,
		}},
		{"booked here, given up there", paid(12_000), shown(EvidenceCaptured, inState(part(1, 12_000), CancelAborted)), decided{
			To: StatusPartiallyCanceled, Verdict: conflicts, Finding: KindHistoryChanged,
		}},
		{"one done, one under way", paid(), shown(EvidenceCaptured, part(1, 12_000), inState(part(2, 1_000), CancelInProgress)), decided{
			To: StatusPartiallyCanceled, Verdict: goes, Cancels: []string{"c1 12000"}, Open: []string{"c2"},
		}},
	})
}

func virtual(p *Payment) { p.VirtualAccount = true }

func TestDecide_Voids(t *testing.T) {
	t.Parallel()
	waiting := with(bought(StatusWaitingForDeposit), virtual)
	void := with(waiting, func(p *Payment) {
		p.Status, p.Cancels = StatusCanceled, []Cancel{{TransactionKey: "c1", Amount: Won(0)}}
	})
	unnamed := shown(EvidenceVoided)
	decideAll(t, []situation{
		{"with a key", waiting, shown(EvidenceVoided, part(1, 50_000)), decided{To: StatusCanceled, Verdict: goes, Cancels: []string{"c1 0"}}},
		{"without cancels, under the last key", waiting, with(unnamed, func(o *Observation) { o.LastTransactionKey = "last" }), decided{
			To: StatusCanceled, Verdict: goes, Cancels: []string{"last 0"},
		}},
		{"without any key", waiting, unnamed, decided{To: StatusCanceled, Verdict: goes, Cancels: []string{"void:pk_1 0"}}},
		{"under the key that the list knows too", waiting, with(unnamed, func(o *Observation) { o.LastTransactionKey, o.Listed = "last", "listed" }), decided{
			To: StatusCanceled, Verdict: goes, Cancels: []string{"last 0", "listed 0"},
		}},
		{"the list knows the same key", waiting, with(shown(EvidenceVoided, part(1, 50_000), part(2, 1)), func(o *Observation) { o.Listed = "c2" }), decided{
			To: StatusCanceled, Verdict: goes, Cancels: []string{"c1 0", "c2 0"},
		}},
		{"again", void, shown(EvidenceVoided, part(1, 50_000)), decided{To: StatusCanceled, Verdict: stays}},
		{"again under the list's key", void, with(shown(EvidenceVoided, part(1, 50_000)), func(o *Observation) { o.Listed = "listed" }), decided{
			To: StatusCanceled, Verdict: goes, Cancels: []string{"listed 0"},
		}},
		{"an older look after it", void, shown(EvidenceWaiting), decided{To: StatusCanceled, Verdict: stays}},
		{"of a payment that has money", paid(), shown(EvidenceVoided), decided{To: StatusDone, Verdict: conflicts, Finding: KindHistoryChanged}},
		{"of a confirm that is under way", bought(StatusConfirming), shown(EvidenceVoided, part(1, 0)), decided{To: StatusCanceled, Verdict: goes, Cancels: []string{"c1 0"}}},
	})
}

func TestDecide_DepositFallsBack(t *testing.T) {
	t.Parallel()
	waiting := with(shown(EvidenceWaiting), func(o *Observation) { o.VirtualAccount = true })
	overdue := with(waiting, func(o *Observation) { o.Evidence, o.DueAt = EvidenceDead, second(95) })
	seenOnce := with(deposited(), func(p *Payment) { p.WaitingSeenAt = second(60) })
	listed := with(seenOnce, func(p *Payment) { p.FallShownAt = second(19) })
	partly := with(paid(1_000), virtual)
	at := func(o Observation, n int) Observation {
		return with(o, func(o *Observation) { o.AskedAt, o.SeenAt = second(n), second(n+1) })
	}
	fallen := with(deposited(), func(p *Payment) {
		p.Status, p.Captures[0].ReversedAt = StatusWaitingForDeposit, second(100)
	})
	second2 := with(shown(EvidenceCaptured), func(o *Observation) { o.LastTransactionKey, o.CapturedAt = "tx_2", second(90) })
	decideAll(t, []situation{
		{"seen once", deposited(), waiting, decided{To: StatusDone, Verdict: stays}},
		{"seen once, and listed", with(deposited(), func(p *Payment) { p.FallShownAt = second(19) }), waiting, decided{To: StatusDone, Verdict: stays}},
		{"seen and listed, half a minute apart", listed, at(waiting, 90), decided{To: StatusWaitingForDeposit, Verdict: goes, Reversed: "tx_1"}},
		{"seen and listed, too soon", listed, at(waiting, 89), decided{To: StatusDone, Verdict: stays}},
		{"seen twice, by nothing but the payment object", seenOnce, at(waiting, 60+3599), decided{To: StatusDone, Verdict: stays}},
		{"seen for an hour", seenOnce, at(waiting, 60+3600), decided{To: StatusWaitingForDeposit, Verdict: goes, Reversed: "tx_1"}},
		{"it names the deposit itself", seenOnce, with(waiting, func(o *Observation) { o.LastTransactionKey = "tx_1" }), decided{
			To: StatusWaitingForDeposit, Verdict: goes, Reversed: "tx_1",
		}},
		{"asked before the deposit came", listed, at(waiting, 9), decided{To: StatusDone, Verdict: stays}},
		{"not a virtual account", with(paid(), func(p *Payment) { p.WaitingSeenAt = second(60) }), shown(EvidenceWaiting), decided{
			To: StatusDone, Verdict: conflicts, Finding: KindHistoryChanged,
		}},
		{"after a part was given back", partly, waiting, decided{To: StatusPartiallyCanceled, Verdict: stays}},
		{"after a part was given back, for an hour", with(partly, func(p *Payment) { p.WaitingSeenAt = second(60) }), at(waiting, 60+3600), decided{
			To: StatusPartiallyCanceled, Verdict: conflicts, Finding: KindHistoryChanged,
		}},
		{"asked before the deposit of which a part was given back", partly, at(waiting, 9), decided{To: StatusPartiallyCanceled, Verdict: stays}},
		{"fallen, and an older look at the deposit", fallen, shown(EvidenceCaptured), decided{To: StatusWaitingForDeposit, Verdict: stays}},
		{"fallen, and paid in again", fallen, second2, decided{To: StatusDone, Verdict: goes, Captured: "tx_2#2"}},
		{"paid in again before anybody saw it fall", deposited(), second2, decided{To: StatusDone, Verdict: goes, Captured: "tx_2#2", Reversed: "tx_1"}},
		{"an older deposit that nobody had seen", deposited(), with(second2, func(o *Observation) { o.CapturedAt = second(5) }), decided{To: StatusDone, Verdict: stays}},
		{"past the account's time, asked before the deposit came", deposited(), at(overdue, 9), decided{To: StatusDone, Verdict: stays}},
		{"past the account's time, seen once", deposited(), overdue, decided{To: StatusDone, Verdict: stays}},
		{"past the account's time, seen and listed", listed, overdue, decided{To: StatusWaitingForDeposit, Verdict: goes, Reversed: "tx_1"}},
		{"past the account's time, fallen", fallen, overdue, decided{To: StatusFailed, Verdict: goes}},
		{"past the account's time, never paid in", with(bought(StatusWaitingForDeposit), virtual), overdue, decided{To: StatusFailed, Verdict: goes}},
		{"still waiting", with(bought(StatusWaitingForDeposit), virtual), waiting, decided{To: StatusWaitingForDeposit, Verdict: stays}},
	})
}

// TestDecide_FallenDepositIsCanceled: an account is canceled for good, so that an answer which shows no money ever taken is
// not from before the deposit.
func TestDecide_FallenDepositIsCanceled(t *testing.T) {
	t.Parallel()
	voided := with(shown(EvidenceVoided, part(1, 50_000)), func(o *Observation) { o.VirtualAccount = true })
	seenOnce := with(deposited(), func(p *Payment) { p.WaitingSeenAt = second(69) })
	decideAll(t, []situation{
		{"seen once", deposited(), voided, decided{To: StatusDone, Verdict: stays}},
		{"seen twice", seenOnce, voided, decided{To: StatusCanceled, Verdict: goes, Reversed: "tx_1", Cancels: []string{"c1 0"}}},
		{"seen twice, too soon", with(deposited(), func(p *Payment) { p.WaitingSeenAt = second(70) }), voided, decided{To: StatusDone, Verdict: stays}},
		{"under the key that the list knows too", seenOnce, with(voided, func(o *Observation) { o.Listed = "listed" }), decided{
			To: StatusCanceled, Verdict: goes, Reversed: "tx_1", Cancels: []string{"c1 0", "listed 0"},
		}},
		{"asked before the deposit came", seenOnce, with(voided, func(o *Observation) { o.AskedAt = second(9) }), decided{To: StatusDone, Verdict: stays}},
		{"after a part was given back", with(paid(1_000), virtual), voided, decided{To: StatusPartiallyCanceled, Verdict: conflicts, Finding: KindHistoryChanged}},
		{"not a virtual account", with(paid(), func(p *Payment) { p.WaitingSeenAt = second(60) }), shown(EvidenceVoided), decided{
			To: StatusDone, Verdict: conflicts, Finding: KindHistoryChanged,
		}},
	})
}

// TestDecide_DepositTakenBackStands: the gateway shows the very deposit that we took back. Either the answer is old, or we
// were wrong.
func TestDecide_DepositTakenBackStands(t *testing.T) {
	t.Parallel()
	fallen := with(deposited(), func(p *Payment) {
		p.Status, p.Captures[0].ReversedAt = StatusWaitingForDeposit, second(100)
	})
	seenOnce := with(fallen, func(p *Payment) { p.MoneySeenAt = second(200) })
	listed := with(seenOnce, func(p *Payment) { p.FallShownAt = second(19) })
	canceled := with(seenOnce, func(p *Payment) {
		p.Status, p.Cancels = StatusCanceled, []Cancel{{TransactionKey: "c1", Amount: Won(0)}}
	})
	standing := func(n int) Observation {
		return with(shown(EvidenceCaptured), func(o *Observation) { o.AskedAt, o.SeenAt = second(n), second(n+1) })
	}
	keyless := func(n int) Observation {
		return with(standing(n), func(o *Observation) { o.LastTransactionKey = "" })
	}
	aborted := with(standing(200), func(o *Observation) {
		o.Cancels = []ObservedCancel{with(part(1, 1_000), func(c *ObservedCancel) { c.State = CancelAborted })}
	})
	decideAll(t, []situation{
		{"seen once", fallen, standing(200), decided{To: StatusWaitingForDeposit, Verdict: stays}},
		{"seen twice", seenOnce, standing(230), decided{To: StatusDone, Verdict: goes, Captured: "tx_1#2"}},
		{"seen twice, too soon", seenOnce, standing(229), decided{To: StatusWaitingForDeposit, Verdict: stays}},
		{"without its key, seen once", fallen, keyless(200), decided{To: StatusWaitingForDeposit, Verdict: stays}},
		{"without its key, seen twice", seenOnce, keyless(230), decided{To: StatusDone, Verdict: goes, Captured: "tx_1#2"}},
		{"without its key, asked before it was taken back", seenOnce, keyless(99), decided{To: StatusWaitingForDeposit, Verdict: stays}},
		{"beside a cancel that came to nothing, seen once", fallen, aborted, decided{To: StatusWaitingForDeposit, Verdict: stays}},
		{"with a part given back since", fallen, with(standing(200), func(o *Observation) { o.Cancels = []ObservedCancel{part(1, 1_000)} }), decided{
			To: StatusPartiallyCanceled, Verdict: goes, Captured: "#2", Cancels: []string{"c1 1000"},
		}},
		{"asked before it was taken back", seenOnce, standing(99), decided{To: StatusWaitingForDeposit, Verdict: stays}},
		{"seen twice, while the list shows that it fell", listed, standing(200 + 3599), decided{To: StatusWaitingForDeposit, Verdict: stays}},
		{"seen for an hour, whatever the list shows", listed, standing(200 + 3600), decided{To: StatusDone, Verdict: goes, Captured: "tx_1#2"}},
		{"after the account was canceled", canceled, standing(230), decided{To: StatusCanceled, Verdict: stays}},
		{"after the account was canceled, for an hour", canceled, standing(200 + 3600), decided{
			To: StatusCanceled, Verdict: conflicts, Finding: KindHistoryChanged,
		}},
		{"an older deposit than the one that was taken back", with(seenOnce, func(p *Payment) {
			p.Captures = append(p.Captures, Capture{Number: 2, TransactionKey: "tx_2", Amount: Won(50_000), CapturedAt: second(110), ReversedAt: second(150)})
		}), standing(5000), decided{To: StatusWaitingForDeposit, Verdict: stays}},
	})
	if d := Decide(seenOnce, standing(230)); !d.Capture.CapturedAt.Equal(second(100)) {
		t.Errorf("got the deposit booked again as of %s, want from when on the books lacked it", d.Capture.CapturedAt)
	}
	waits := with(shown(EvidenceWaiting), func(o *Observation) { o.VirtualAccount = true })
	if d := Decide(seenOnce, waits); !d.MoneySeenAt.IsZero() {
		t.Errorf("got %s remembered after a look that says otherwise", d.MoneySeenAt)
	}
}

// TestDecide_OldLooksNeverUndoADeposit tells the order of events that two looks alone would get wrong: both were
// asked before the deposit and are recorded after it.
func TestDecide_OldLooksNeverUndoADeposit(t *testing.T) {
	t.Parallel()
	p := deposited()
	for _, asked := range []int{-60, -10} {
		d := Decide(p, with(shown(EvidenceWaiting), func(o *Observation) {
			o.VirtualAccount, o.AskedAt, o.SeenAt = true, second(asked), second(asked)
		}))
		if d.Reversed != nil || !d.WaitingSeenAt.IsZero() {
			t.Fatalf("got %+v for a look from before the deposit, want nothing", d)
		}
	}
}

func TestDecide_WhatOurCallsBring(t *testing.T) {
	t.Parallel()
	call := func(e Evidence, attempt int) Observation {
		return Observation{PaymentKey: "pk_1", Evidence: e, Attempt: attempt, AskedAt: second(1), SeenAt: second(2)}
	}
	decideAll(t, []situation{
		{"refused", bought(StatusConfirming), call(EvidenceRefused, 1), decided{To: StatusFailed, Verdict: goes}},
		{"refused after doubt", bought(StatusUnknown), call(EvidenceRefused, 1), decided{To: StatusUnknown, Verdict: stays}},
		{"refused after it was paid", paid(), call(EvidenceRefused, 1), decided{To: StatusDone, Verdict: stays}},
		{"turned away unprocessed", bought(StatusConfirming), call(EvidenceUnprocessed, 1), decided{To: StatusReady, Verdict: goes}},
		{"turned away after doubt", bought(StatusUnknown), call(EvidenceUnprocessed, 1), decided{To: StatusUnknown, Verdict: stays}},
		{"lost", bought(StatusConfirming), call(EvidenceLost, 1), decided{To: StatusUnknown, Verdict: goes}},
		{"an older attempt is refused", with(bought(StatusConfirming), func(p *Payment) { p.Attempt = 2 }), call(EvidenceRefused, 1), decided{To: StatusConfirming, Verdict: stays}},
		{"an older attempt is turned away", with(bought(StatusConfirming), func(p *Payment) { p.Attempt = 2 }), call(EvidenceUnprocessed, 1), decided{To: StatusConfirming, Verdict: stays}},
		{"an older attempt is lost", with(bought(StatusReady), func(p *Payment) { p.Attempt = 2 }), call(EvidenceLost, 1), decided{To: StatusReady, Verdict: stays}},
		{"a lost question is no lost confirm", with(bought(StatusReady), func(p *Payment) { p.Attempt = 0 }), call(EvidenceLost, 0), decided{To: StatusReady, Verdict: stays}},
	})
}

func TestDecide_WithoutMoney(t *testing.T) {
	t.Parallel()
	decideAll(t, []situation{
		{"open is no evidence", bought(StatusUnknown), shown(EvidenceOpen), decided{To: StatusUnknown, Verdict: stays}},
		{"dead is", bought(StatusUnknown), shown(EvidenceDead), decided{To: StatusFailed, Verdict: goes}},
		{"dead while confirming", bought(StatusConfirming), shown(EvidenceDead), decided{To: StatusFailed, Verdict: goes}},
		{"dead though the buyer chose another amount", bought(StatusUnknown), with(shown(EvidenceDead), func(o *Observation) { o.Total = Won(1) }), decided{To: StatusFailed, Verdict: goes}},
		{"paid here, dead there", paid(), shown(EvidenceDead), decided{To: StatusDone, Verdict: conflicts, Finding: KindHistoryChanged}},
		{"partly canceled here, dead there", paid(1_000), shown(EvidenceDead), decided{To: StatusPartiallyCanceled, Verdict: conflicts, Finding: KindHistoryChanged}},
		{"canceled here, dead there", paid(50_000), shown(EvidenceDead), decided{To: StatusCanceled, Verdict: stays}},
		{"an account was issued", bought(StatusConfirming), shown(EvidenceWaiting), decided{To: StatusWaitingForDeposit, Verdict: goes}},
		{"a status never seen", bought(StatusUnknown), shown(EvidenceUnrecognized), decided{To: StatusUnknown, Verdict: stays, Finding: KindUnrecognized}},
	})
}

func TestDecide_NotOurs(t *testing.T) {
	t.Parallel()
	money := shown(EvidenceCaptured, part(1, 50_000))
	for _, s := range []struct {
		name   string
		change func(*Observation)
		want   Kind
	}{
		{"another payment", func(o *Observation) { o.PaymentKey = "pk_2" }, KindOrderDiffers},
		{"another order", func(o *Observation) { o.OrderID = "order_2" }, KindOrderDiffers},
		{"another merchant", func(o *Observation) { o.MerchantID = "shop2" }, KindMerchantDiffers},
		{"no merchant named", func(o *Observation) { o.MerchantID = "" }, KindMerchantDiffers},
		{"another amount", func(o *Observation) { o.Total = Won(50_001) }, KindAmountDiffers},
		{"another currency", func(o *Observation) { o.Total.Currency = JPY }, KindCurrencyDiffers},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			seen := with(money, func(o *Observation) { s.change(o) })
			for _, before := range []Payment{bought(StatusConfirming), bought(StatusFailed), paid(), paid(12_000)} {
				got := Decide(before, seen)
				want := decided{To: before.Status, Verdict: conflicts, Finding: s.want}
				if diff := cmp.Diff(want, summarize(got)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", before.Status, diff)
				}
				if got.Findings[0].AtRisk.IsZero() {
					t.Error("got no money at risk")
				}
				about, paid := before.capture()
				if money := s.want == KindAmountDiffers || s.want == KindCurrencyDiffers; money && paid && got.Findings[0].TransactionKey != about.TransactionKey {
					t.Errorf("got a finding about %q, want it about the capture %q, as the list names it", got.Findings[0].TransactionKey, about.TransactionKey)
				}
			}
		})
	}
}

// TestDecide_ADifferentCancelIsNamedAsInTheList: what an answer and the list both show is one mismatch.
func TestDecide_ADifferentCancelIsNamedAsInTheList(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		amount Money
		want   Kind
	}{{Won(12_001), KindAmountDiffers}, {Money{12_000, JPY}, KindCurrencyDiffers}} {
		seen := shown(EvidenceCaptured, with(part(1, 12_000), func(c *ObservedCancel) { c.Amount = test.amount }))
		got := Decide(paid(12_000), seen).Findings
		if len(got) != 1 || got[0].Kind != test.want || got[0].TransactionKey != "c1" || got[0].AtRisk != test.amount {
			t.Errorf("%s: got %+v, want %s of cancel c1", test.amount, got, test.want)
		}
	}
}
