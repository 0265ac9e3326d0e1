package reconcile

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"daesa/ledger"
)

func testBounds() bounds {
	now := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	return bounds{now: now, asOf: now, since: now.Add(-5 * day), listLag: 10 * time.Minute}
}

// drawAcceptances draws what a person accepted, which may or may not be what is wrong.
func drawAcceptances(t *rapid.T) []acceptance {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) acceptance {
		return acceptance{
			Kind: rapid.SampledFrom([]ledger.Kind{
				ledger.KindCancelMissingHere, ledger.KindCancelMissingThere, ledger.KindAmountDiffers, ledger.KindCurrencyDiffers,
				ledger.KindHistoryChanged, ledger.KindUnrecognized,
			}).Draw(t, "accepted kind"),
			Currency: rapid.SampledFrom([]ledger.Currency{ledger.KRW, ledger.USD, ledger.JPY}).Draw(t, "accepted currency"),
			Minor:    rapid.Int64Range(0, 3).Draw(t, "accepted amount"),
		}
	}), 0, 4).Draw(t, "accepted")
}

// drawFact draws any combination of the three sets, sound or not.
func drawFact(t *rapid.T, n int, b bounds) fact {
	currency := rapid.SampledFrom([]ledger.Currency{ledger.KRW, ledger.USD, ledger.JPY})
	draw := func(name string) side {
		if !rapid.Bool().Draw(t, name) {
			return side{}
		}
		age := rapid.Int64Range(-60, 6*24*3600).Draw(t, name+" age")
		return side{
			Present: true,
			Amount:  ledger.Money{Minor: rapid.Int64Range(0, 3).Draw(t, name+" amount"), Currency: currency.Draw(t, name+" currency")},
			At:      b.now.Add(-time.Duration(age) * time.Second),
		}
	}
	f := fact{
		TransactionKey: fmt.Sprintf("tx-%d", n), PaymentKey: fmt.Sprintf("pay-%d", n), OrderID: fmt.Sprintf("order-%d", n%7),
		G: draw("g"), B: draw("b"), Missing: rapid.Bool().Draw(t, "missing"), VoidAlias: rapid.Bool().Draw(t, "alias"),
		Accepted: drawAcceptances(t),
	}
	if rapid.Bool().Draw(t, "w") {
		f.W = owing{
			Present: true,
			Kind: rapid.SampledFrom([]ledger.WorkKind{
				ledger.WorkCancelClaimed, ledger.WorkCancelListed, ledger.WorkCancelInProgress,
			}).Draw(t, "kind"),
			OpenedAt: b.now.Add(-time.Duration(rapid.IntRange(0, 8000).Draw(t, "opened")) * time.Second),
			Deadline: b.now.Add(time.Duration(rapid.IntRange(-9000, 9000).Draw(t, "deadline")) * time.Second),
			Amount:   ledger.Won(rapid.Int64Range(0, 3).Draw(t, "owed")), NoticeAttempt: rapid.IntRange(-1, 7).Draw(t, "n"),
			NoticeNextAt: b.now.Add(time.Duration(rapid.IntRange(-900, 900).Draw(t, "next")) * time.Second),
		}
	}
	return f
}

// TestInvariantI7_LinesAddUp: whatever the three sets are, the gateway's cancels are exactly canceled + pending +
// accepted + unexplained, in count and in money of every currency; what cannot be explained always breaks; and the
// lines say the same as the sums.
func TestInvariantI7_LinesAddUp(t *testing.T) {
	t.Parallel()
	b := testBounds()
	rapid.Check(t, func(t *rapid.T) {
		tl := newTally(b)
		gateway := make(map[ledger.Currency]Figure)
		orders := map[string]bool{}
		for n := range rapid.IntRange(0, 40).Draw(t, "facts") {
			f := drawFact(t, n, b)
			if !f.G.Present && !f.B.Present && !f.W.Present {
				continue
			}
			tl.add(f)
			if f.G.Present {
				gateway[f.G.Amount.Currency] = gateway[f.G.Amount.Currency].plus(Figure{1, f.G.Amount.Minor})
				orders[f.OrderID] = true
			}
		}
		s := tl.statement(nil)
		unexplained := false
		for _, sum := range s.Sums {
			if !sum.Holds() || sum.Gateway != gateway[sum.Currency] {
				t.Fatalf("got %+v, want the gateway's %+v", sum, gateway[sum.Currency])
			}
			pending := Figure{}
			for _, name := range LineNames() {
				if name.pending() {
					pending = pending.plus(s.Line(name, sum.Currency).Figure)
				}
			}
			if pending != sum.Pending || s.Line(LineUnexplained, sum.Currency).Figure != sum.Unexplained {
				t.Fatalf("lines and sums of %s differ: %+v %+v", sum.Currency, s.Lines, sum)
			}
			unexplained = unexplained || sum.Unexplained != Figure{}
		}
		if unexplained && s.Verdict != VerdictBreaks {
			t.Fatalf("got %s with something unexplained", s.Verdict)
		}
		rolled := 0
		for _, o := range s.Orders {
			rolled += o.Canceled + o.Pending + o.Other
		}
		if rolled != len(orders) {
			t.Fatalf("got %d orders, want %d", rolled, len(orders))
		}
	})
}

// TestJudge_EveryInjectedBreakIsFoundOnce: in otherwise sound books, each damage gives exactly one finding, of its kind
// and about its key.
func TestJudge_EveryInjectedBreakIsFoundOnce(t *testing.T) {
	t.Parallel()
	b := testBounds()
	settled := b.now.Add(-time.Hour)
	type damage struct {
		kind ledger.Kind
		do   func(f *fact)
	}
	damages := []damage{
		{ledger.KindAmountDiffers, func(f *fact) { f.B.Amount.Minor++ }},
		{ledger.KindCurrencyDiffers, func(f *fact) { f.B.Amount.Currency = ledger.JPY }},
		{ledger.KindCancelMissingHere, func(f *fact) { f.B = side{} }},
		{ledger.KindCancelMissingThere, func(f *fact) { f.G = side{} }},
		{ledger.KindHistoryChanged, func(f *fact) { f.Missing = true }},
	}
	rapid.Check(t, func(t *rapid.T) {
		hurts := damages[rapid.IntRange(0, len(damages)-1).Draw(t, "damage")]
		count := rapid.IntRange(1, 30).Draw(t, "cancels")
		hurt := rapid.IntRange(0, count-1).Draw(t, "hurt")
		tl := newTally(b)
		for n := range count {
			amount := ledger.Won(rapid.Int64Range(1, 100_000).Draw(t, "amount"))
			f := fact{
				TransactionKey: fmt.Sprint("tx-", n), OrderID: fmt.Sprint("order-", n),
				G: side{Present: true, Amount: amount, At: settled}, B: side{Present: true, Amount: amount, At: settled},
			}
			if n == hurt {
				hurts.do(&f)
			}
			tl.add(f)
		}
		s := tl.statement(nil)
		if s.Verdict != VerdictBreaks || len(s.findings) != 1 || s.findings[0].Kind != hurts.kind ||
			s.findings[0].TransactionKey != fmt.Sprint("tx-", hurt) {
			t.Fatalf("got %s with %+v, want one %s about tx-%d", s.Verdict, s.findings, hurts.kind, hurt)
		}
	})
}

func TestJudge_Lines(t *testing.T) {
	t.Parallel()
	b := testBounds()
	amount := ledger.Won(1000)
	at := func(ago time.Duration) side { return side{Present: true, Amount: amount, At: b.now.Add(-ago)} }
	accept := func(kind ledger.Kind, won int64) []acceptance {
		return []acceptance{{Kind: kind, Currency: ledger.KRW, Minor: won}}
	}
	words := func(detail string) []acceptance {
		return []acceptance{{Kind: ledger.KindAmountDiffers, Currency: ledger.KRW, Minor: 1000, Detail: detail}}
	}
	work := func(kind ledger.WorkKind, opened, deadline, next time.Duration) owing {
		return owing{
			Present: true, Kind: kind, OpenedAt: b.now.Add(-opened), Deadline: b.now.Add(deadline), Amount: amount,
			NoticeNextAt: b.now.Add(next), NoticeAttempt: 2,
		}
	}
	claimed, listed, progress := ledger.WorkCancelClaimed, ledger.WorkCancelListed, ledger.WorkCancelInProgress
	tests := []struct {
		name string
		fact fact
		want []LineName
	}{
		{"in both books", fact{G: at(time.Hour), B: at(time.Hour)}, []LineName{LineApplied}},
		{"just found", fact{G: at(time.Minute), W: work(listed, 59*time.Second, day, 0)}, []LineName{LineInFlight}},
		{"a notice will come", fact{G: at(time.Hour), W: work(claimed, time.Hour, day, time.Minute)}, []LineName{LineRedelivery}},
		{"no notice is due", fact{G: at(time.Hour), W: work(claimed, time.Hour, day, -time.Minute)}, []LineName{LineSweeping}},
		{"listed", fact{G: at(time.Hour), W: work(listed, time.Hour, day, -time.Minute)}, []LineName{LineSweeping}},
		{"not finished there", fact{G: at(time.Hour), W: work(progress, time.Second, day, 0)}, []LineName{LineInProgress}},
		{"just past its last chance", fact{G: at(day), W: work(listed, day, -14*time.Minute, 0)}, []LineName{LineSweeping}},
		{"past its last chance", fact{G: at(day), W: work(listed, day, -16*time.Minute, 0)}, []LineName{LineUnexplained, LineBreaks}},
		{"found after its last chance", fact{G: at(5 * day), W: work(listed, time.Minute, -day, 0)}, []LineName{LineSweeping}},
		{"nobody asks", fact{G: at(time.Hour)}, []LineName{LineUnexplained, LineBreaks}},
		{"nobody asks, accepted", fact{G: at(time.Hour), Accepted: accept(ledger.KindCancelMissingHere, 1000)}, []LineName{LineAccepted}},
		{"nobody asks, something else accepted", fact{G: at(time.Hour), Accepted: accept(ledger.KindHistoryChanged, 1000)}, []LineName{LineUnexplained, LineBreaks}},
		{"nobody asks, another amount accepted", fact{G: at(time.Hour), Accepted: accept(ledger.KindCancelMissingHere, 900)}, []LineName{LineUnexplained, LineBreaks}},
		{"amounts differ", fact{G: at(time.Hour), B: side{true, ledger.Won(900), b.now}}, []LineName{LineApplied, LineUnexplained, LineBreaks}},
		{"amounts differ, accepted", fact{G: at(time.Hour), B: side{true, ledger.Won(900), b.now}, Accepted: words("the cancel is 1000 KRW at the gateway and 900 KRW here")}, []LineName{LineApplied, LineAccepted}},
		{"amounts differ, another amount in the books accepted", fact{G: at(time.Hour), B: side{true, ledger.Won(900), b.now}, Accepted: words("the cancel is 1000 KRW at the gateway and 800 KRW here")}, []LineName{LineApplied, LineUnexplained, LineBreaks}},
		{"not listed, young", fact{B: at(9 * time.Minute)}, []LineName{LineNotListed}},
		{"not listed", fact{B: at(11 * time.Minute)}, []LineName{LineBreaks}},
		{"not listed, accepted", fact{B: at(time.Hour), Accepted: accept(ledger.KindCancelMissingThere, 1000)}, []LineName{LineAcceptedBeside}},
		{"not listed, before the list begins", fact{B: at(6 * day)}, nil},
		{"a void the list does not show", fact{B: side{true, ledger.Won(0), b.now.Add(-time.Hour)}}, []LineName{LineNotListed}},
		{"a void under another key", fact{B: side{true, ledger.Won(0), b.now.Add(-time.Hour)}, VoidAlias: true}, nil},
		{"only claimed", fact{W: work(claimed, time.Hour, day, 0)}, []LineName{LineUnproven}},
		{"no longer listed", fact{G: at(time.Hour), B: at(time.Hour), Missing: true}, []LineName{LineApplied, LineBreaks}},
		{"no longer listed, accepted", fact{G: at(time.Hour), B: at(time.Hour), Missing: true, Accepted: accept(ledger.KindHistoryChanged, 1000)}, []LineName{LineApplied}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []LineName
			for _, p := range judge(test.fact, b).parts {
				got = append(got, p.line)
			}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
