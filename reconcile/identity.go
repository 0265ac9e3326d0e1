package reconcile

import (
	"fmt"
	"slices"
	"time"

	"daesa/ledger"
)

// LineName names one line of the statement.
type LineName string

// The lines. The first group adds up to the gateway's cancels; the second stands beside the sum.
const (
	LineApplied     LineName = "applied"             // in both books
	LineInFlight    LineName = "in_flight"           // pending, found less than a minute ago
	LineRedelivery  LineName = "awaiting_redelivery" // pending, the gateway will send its notice again
	LineSweeping    LineName = "sweeping"            // pending, we ask
	LineInProgress  LineName = "in_progress"         // pending, the gateway has not finished it
	LineAccepted    LineName = "accepted"            // a person accepted the difference
	LineUnexplained LineName = "unexplained"         // must be nothing

	LineNotListed      LineName = "not_yet_listed"  // in our books, younger than the list's lag
	LineUnproven       LineName = "unproven"        // claimed by a notice, shown by nothing: never summed
	LineAcceptedBeside LineName = "accepted_beside" // a person accepted a difference that is no part of the gateway's sum
	LineBreaks         LineName = "breaks"          // must be none
)

// LineNames lists every line, in the order of the statement.
func LineNames() []LineName {
	return []LineName{
		LineApplied, LineInFlight, LineRedelivery, LineSweeping, LineInProgress, LineAccepted, LineUnexplained,
		LineNotListed, LineUnproven, LineAcceptedBeside, LineBreaks,
	}
}

// pending reports whether the line is part of what is known to be owed.
func (l LineName) pending() bool {
	return l == LineInFlight || l == LineRedelivery || l == LineSweeping || l == LineInProgress
}

// listed reports whether the statement lists what is on the line: what agrees is counted only.
func (l LineName) listed() bool { return l != LineApplied && slices.Contains(LineNames(), l) }

// side is one set's view of a transaction key; absent when Present is false.
type side struct {
	Present bool
	Amount  ledger.Money
	At      time.Time
}

// owing is the open work of a transaction key.
type owing struct {
	Present       bool
	Kind          ledger.WorkKind
	OpenedAt      time.Time
	Deadline      time.Time
	NoticeAttempt int // redelivery n of 7 that failed last; -1 when no notice came
	NoticeNextAt  time.Time
	Amount        ledger.Money
}

// fact is everything the three sets say of one transaction key.
type fact struct {
	TransactionKey string
	PaymentKey     string // by the list, where that has it
	OrderID        string
	G              side  // the gateway's list
	B              side  // our books
	BookedFor      whose // by our books
	W              owing
	Missing        bool           // the list had it and no longer has it
	VoidAlias      bool           // B is a further name of a void that the list has under another key
	Word           string         // of the list's row, as the gateway writes it
	Channel        ledger.Channel // how B came into our books
	Accepted       []acceptance
}

// bounds are the instants a comparison judges by.
type bounds struct {
	now     time.Time
	asOf    time.Time // the list was read completely up to here
	since   time.Time // and from here
	listLag time.Duration
}

// inFlightFor is how long a pending cancel counts as just found.
const inFlightFor = time.Minute

// maximumAge is when work stops counting as an explanation.
func (w owing) maximumAge() time.Time {
	fair := w.OpenedAt.Add(time.Hour) // what is found late still gets a fair chance
	if w.Deadline.After(fair) {
		fair = w.Deadline
	}
	return fair.Add(overdueGrace)
}

// part is one contribution of a fact to a line. A fact on both sides with two amounts contributes twice.
type part struct {
	line   LineName
	count  int
	amount ledger.Money
}

// judged is what a fact comes to.
type judged struct {
	parts   []part
	finding *ledger.Finding
	kind    ledger.Kind // of the difference that a person accepted beside the sum
	note    string      // of what is pending, or of that difference
}

// judge places one transaction key on its lines. Whatever it is, the parts on the summed lines add up to exactly what
// G says of it, in count and in money: that is the identity, kept by construction and checked again at the end.
func judge(f fact, b bounds) judged {
	switch {
	case f.G.Present && f.B.Present:
		return judgeBoth(f)
	case f.G.Present:
		return judgeListed(f, b)
	case f.B.Present:
		return judgeBooked(f, b)
	}
	return judged{parts: []part{{LineUnproven, 1, f.W.Amount}}, note: string(f.W.Kind)}
}

// judgeBoth compares a cancel that both books have.
func judgeBoth(f fact) judged {
	if f.G.Amount == f.B.Amount {
		return judgeAgreed(f)
	}
	kind := ledger.KindAmountDiffers
	if f.G.Amount.Currency != f.B.Amount.Currency {
		kind = ledger.KindCurrencyDiffers
	}
	detail := fmt.Sprintf("the cancel is %s at the gateway and %s here", f.G.Amount, f.B.Amount)
	accepted := acceptedWords(f.Accepted, kind, f.G.Amount, detail)
	rest := LineUnexplained
	if accepted {
		rest = LineAccepted
	}
	var j judged
	if kind == ledger.KindCurrencyDiffers {
		j.parts = []part{{rest, 1, f.G.Amount}}
	} else {
		j.parts = []part{
			{LineApplied, 1, f.B.Amount},
			{rest, 0, ledger.Money{Minor: f.G.Amount.Minor - f.B.Amount.Minor, Currency: f.G.Amount.Currency}},
		}
	}
	if !accepted {
		j.breaks(f, kind, f.G.Amount, detail)
	}
	return j
}

// judgeAgreed looks at what else may be wrong with a cancel that both books have with the same money: that they say
// otherwise whose it is, or that the list has it no more. A void moved no money, whose ever it is.
func judgeAgreed(f fact) judged {
	j := judged{parts: []part{{LineApplied, 1, f.G.Amount}}}
	if listed := (whose{f.PaymentKey, f.OrderID}); !f.G.Amount.IsZero() && listed.differs(f.BookedFor) {
		detail := detailWhose(MovementCancel, listed, f.BookedFor)
		if !acceptedWords(f.Accepted, ledger.KindOrderDiffers, f.G.Amount, detail) {
			j.breaks(f, ledger.KindOrderDiffers, f.G.Amount, detail)
			return j
		}
		j.parts = append(j.parts, part{LineAcceptedBeside, 1, f.G.Amount})
		j.kind, j.note = ledger.KindOrderDiffers, detail
	}
	if f.Missing && !f.accepts(ledger.KindHistoryChanged, f.G.Amount) {
		j.breaks(f, ledger.KindHistoryChanged, f.G.Amount, detailVanished)
	}
	return j
}

// judgeListed explains a cancel that only the gateway has: it is pending as long as exactly one open row of work, not
// too old, is asking about it.
func judgeListed(f fact, b bounds) judged {
	switch {
	case f.W.Present && b.now.Before(f.W.maximumAge()):
		return judged{parts: []part{{f.W.line(b.now), 1, f.G.Amount}}, note: f.W.note(b.now)}
	case f.accepts(ledger.KindCancelMissingHere, f.G.Amount):
		return judged{parts: []part{{LineAccepted, 1, f.G.Amount}}}
	}
	j := judged{parts: []part{{LineUnexplained, 1, f.G.Amount}}}
	detail := "the gateway lists a cancel that is not in our books, and nobody is asking about it"
	if f.W.Present {
		detail = "the cancel is still owed after its last chance"
	}
	j.breaks(f, ledger.KindCancelMissingHere, f.G.Amount, detail)
	return j
}

// line says how far the pending cancel is.
func (w owing) line(now time.Time) LineName {
	switch {
	case w.Kind == ledger.WorkCancelInProgress:
		return LineInProgress
	case now.Sub(w.OpenedAt) < inFlightFor:
		return LineInFlight
	case w.NoticeNextAt.After(now):
		return LineRedelivery
	}
	return LineSweeping
}

func (w owing) note(now time.Time) string {
	if w.line(now) == LineRedelivery {
		return fmt.Sprintf("%d of 7, next %s", min(w.NoticeAttempt+1, 7), w.NoticeNextAt.In(ledger.Seoul()).Format("01-02 15:04"))
	}
	return ""
}

// detailNotListed says what is wrong with a cancel that only our books have.
const detailNotListed = "the cancel is in our books and not in the gateway's list"

// judgeBooked judges a cancel that only our books have. It proves nothing until the list had its time to show it; what
// lies outside the stretch that was read is not judged.
func judgeBooked(f fact, b bounds) judged {
	void := f.B.Amount.IsZero()
	switch {
	case void && f.VoidAlias:
		return judged{}
	case f.B.At.Before(b.since):
		return judged{}
	case void || !f.B.At.Before(b.asOf.Add(-b.listLag)):
		return judged{parts: []part{{LineNotListed, 1, f.B.Amount}}}
	case f.accepts(ledger.KindCancelMissingThere, f.B.Amount):
		return judged{
			parts: []part{{LineAcceptedBeside, 1, f.B.Amount}}, kind: ledger.KindCancelMissingThere, note: detailNotListed,
		}
	}
	var j judged
	j.breaks(f, ledger.KindCancelMissingThere, f.B.Amount, detailNotListed)
	return j
}

// breaks adds a contradiction, with the evidence of both sides.
func (j *judged) breaks(f fact, kind ledger.Kind, atRisk ledger.Money, detail string) {
	j.parts = append(j.parts, part{LineBreaks, 1, atRisk})
	j.finding = &ledger.Finding{
		Kind: kind, PaymentKey: f.PaymentKey, OrderID: f.OrderID, TransactionKey: f.TransactionKey, AtRisk: atRisk, Detail: detail,
		Gateway: f.shownEvidence(), Books: f.bookedEvidence(),
	}
	if kind == ledger.KindOrderDiffers {
		(whose{f.PaymentKey, f.OrderID}).addTo(j.finding.Gateway)
		f.BookedFor.addTo(j.finding.Books)
	}
}
