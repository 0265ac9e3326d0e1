package reconcile

import (
	"cmp"
	"slices"
	"time"

	"daesa/ledger"
)

// Verdict is what an audit found.
type Verdict string

// The verdicts, worst last.
const (
	VerdictReconciled Verdict = "reconciled"
	VerdictPending    Verdict = "reconciled_with_pending"
	VerdictIncomplete Verdict = "incomplete" // the list was not read completely: nothing can be said
	VerdictBreaks     Verdict = "breaks"
	VerdictError      Verdict = "error"
)

// Verdicts lists every verdict.
func Verdicts() []Verdict {
	return []Verdict{VerdictReconciled, VerdictPending, VerdictIncomplete, VerdictBreaks, VerdictError}
}

// Statement is one audit: what was looked at, what both books say, and what explains the difference.
type Statement struct {
	Scope     ScopeName  `json:"scope"`
	Day       ledger.Day `json:"day,omitempty"`
	StartedAt time.Time  `json:"started_at"`
	AsOf      time.Time  `json:"as_of"`
	Verdict   Verdict    `json:"verdict"`
	Reasons   []string   `json:"reasons,omitempty"` // why it is incomplete, or what failed
	Looked    Looked     `json:"looked"`
	Sums      []Sum      `json:"sums"`               // the identity, per currency
	Lines     []Line     `json:"lines"`              // per line and currency; lines without anything are left out
	Captures  []Captures `json:"captures,omitempty"` // per currency
	// CapturesOpen says that Captures has only what does not agree: all of them are counted by the runs of a day and of
	// everything.
	CapturesOpen bool        `json:"captures_open,omitempty"`
	Orders       []OrderRoll `json:"orders,omitempty"` // what canceled at the gateway means for orders
	// Drift says where the running sums had gone wrong, which is an error of ours and was repaired. The figures here are
	// those of the full comparison.
	Drift []string `json:"drift,omitempty"`

	RunID  int64  `json:"run_id,omitempty"` // of a closing run
	Digest string `json:"digest,omitempty"` // of what a closed day says; empty where the whole day was not seen
	Since  *Since `json:"since,omitempty"`  // what changed since the day's earlier closing run

	findings     []ledger.Finding
	contradicted int // breaks that are mismatches already, and that no comparison finds
	drifted      int // how many; Drift names the first
}

// Looked is what the audit looked at: a passing audit that looked at nothing shows it.
//
// The run of each minute goes by what changed. It counts the reads that began within the last hour and the rows they
// showed; the rows known of the whole window, and those of other systems, are counted by the other runs.
type Looked struct {
	From        time.Time `json:"from"`
	To          time.Time `json:"to"`
	Lag         string    `json:"lag"`
	Runs        int       `json:"runs"` // reads of the list that touch the window
	FailedRuns  int       `json:"failed_runs"`
	Rows        int       `json:"rows"` // of the mirror
	ForeignRows int       `json:"foreign_rows"`
	Cancels     int       `json:"cancels"`          // of our books
	Work        int       `json:"work"`             // open, about cancels
	Judged      int       `json:"judged,omitempty"` // keys compared anew by a run that goes by what changed
}

// Sum is the identity in one currency: Gateway = Canceled + Pending + Accepted + Unexplained, in count and in money.
type Sum struct {
	Currency    ledger.Currency `json:"currency"`
	Gateway     Figure          `json:"gateway"`
	Canceled    Figure          `json:"canceled"`
	Pending     Figure          `json:"pending"`
	Accepted    Figure          `json:"accepted"`
	Unexplained Figure          `json:"unexplained"`
}

// Holds reports whether the identity adds up.
func (s Sum) Holds() bool {
	right := s.Canceled.plus(s.Pending).plus(s.Accepted).plus(s.Unexplained)
	return s.Gateway == right
}

// Figure is a count and an amount in minor units of the line's currency.
type Figure struct {
	Count  int   `json:"count"`
	Amount int64 `json:"amount"`
}

func (f Figure) plus(g Figure) Figure {
	return Figure{Count: f.Count + g.Count, Amount: f.Amount + g.Amount}
}

// Line is one line of the statement in one currency, with the orders behind it.
type Line struct {
	Name     LineName        `json:"name"`
	Currency ledger.Currency `json:"currency"`
	Figure
	Entries []Entry `json:"entries,omitempty"` // bounded when stored
	More    int     `json:"more,omitempty"`    // entries left out
}

// Entry is one transaction behind a line.
type Entry struct {
	OrderID        string      `json:"order_id"`
	PaymentKey     string      `json:"payment_key"`
	TransactionKey string      `json:"transaction_key"`
	Amount         int64       `json:"amount"`
	Since          time.Time   `json:"since"`
	Note           string      `json:"note,omitempty"`
	Kind           ledger.Kind `json:"kind,omitempty"`

	// Of a pending cancel: the redelivery that is expected next, of 7, and when; and until when one can settle it.
	Attempt      int        `json:"attempt,omitempty"`
	NextExpected *time.Time `json:"next_expected,omitempty"`
	LastChance   *time.Time `json:"last_chance,omitempty"`
}

// Captures compares money taken in one currency: Listed = Booked + Pending + Accepted + Missing, in count and in money.
// Those that only our books have are no part of it; where a person accepted one, it is on the line accepted_beside.
type Captures struct {
	Currency ledger.Currency `json:"currency"`
	Listed   Figure          `json:"listed"`   // in the gateway's list
	Booked   Figure          `json:"booked"`   // of those, in our books
	Pending  Figure          `json:"pending"`  // of those, being asked about
	Accepted Figure          `json:"accepted"` // of those, a person accepted that our books have it otherwise or not at all
	Missing  Figure          `json:"missing"`  // of those, none of all that

	TakenBack Figure `json:"taken_back,omitzero"` // in our books and taken back by the list, being asked about
}

// OrderRoll says how the gateway's cancels fall on orders: orders with every cancel booked, and orders with one pending.
type OrderRoll struct {
	Currency ledger.Currency `json:"currency"`
	Gateway  int             `json:"gateway"`
	Canceled int             `json:"canceled"`
	Pending  int             `json:"pending"`
	Other    int             `json:"other"`
}

// Line returns one line; its figure is zero when nothing is on it.
func (s Statement) Line(name LineName, currency ledger.Currency) Line {
	for _, l := range s.Lines {
		if l.Name == name && l.Currency == currency {
			return l
		}
	}
	return Line{Name: name, Currency: currency}
}

// bounded leaves at most n entries on every line, for storing.
func (s Statement) bounded(n int) Statement {
	s.Lines = slices.Clone(s.Lines)
	for i, l := range s.Lines {
		if len(l.Entries) > n {
			s.Lines[i].More += len(l.Entries) - n
			s.Lines[i].Entries = l.Entries[:n]
		}
	}
	return s
}

// tally collects what the keys came to into a statement.
type tally struct {
	bounds    bounds
	totals    totals
	entries   map[lineKey][]Entry
	findings  []ledger.Finding
	orders    map[string]*orderState
	agreedMax int // of what agrees, this many are listed on its line

	contradicted int
}

type lineKey struct {
	name     LineName
	currency ledger.Currency
}

func newTally(b bounds) *tally {
	return &tally{bounds: b, totals: totals{}, entries: map[lineKey][]Entry{}, orders: map[string]*orderState{}}
}

// add puts one fact on its lines and says what it came to.
func (t *tally) add(f fact) judged {
	j := judge(f, t.bounds)
	t.take(f.remember(j, t.bounds))
	for _, p := range j.parts {
		key := lineKey{LineApplied, p.amount.Currency}
		if p.line == LineApplied && len(t.entries[key]) < t.agreedMax {
			t.entries[key] = append(t.entries[key], f.entry(j, p))
		}
	}
	return j
}

// take puts what one key came to on its lines.
func (t *tally) take(m memory) {
	for _, s := range m.parts {
		t.totals.add(s)
	}
	t.list(m)
	if m.about != aboutCancel || m.orderID == "" {
		return
	}
	var first orderState
	o := t.orders[m.orderID]
	if o == nil {
		if first.see(m, false) {
			t.orders[m.orderID] = &first
		}
		return
	}
	o.see(m, true)
}

// list keeps the entries, and the contradictions behind them.
func (t *tally) list(m memory) {
	for _, l := range m.entries {
		key := lineKey{l.Line, l.Currency}
		t.entries[key] = append(t.entries[key], l.Entry)
		if l.Line == LineBreaks {
			t.findings = append(t.findings, l.finding())
		}
	}
}

// rollUp counts the orders behind the gateway's cancels, once every cancel is there.
func (t *tally) rollUp() {
	for _, o := range t.orders {
		t.totals.add(o.share())
	}
	t.orders = map[string]*orderState{}
}

// figures adds the days up, leaving out what nothing is on.
func (t *tally) figures() map[lineKey]total {
	sums := make(map[lineKey]total)
	for k, v := range t.totals {
		line := lineKey{k.line, k.currency}
		sums[line] = sums[line].plus(v)
	}
	for k, v := range sums {
		if v == (total{}) {
			delete(sums, k)
		}
	}
	return sums
}

// statement puts the lines in order and says what they come to. The incomplete reasons are the caller's.
func (t *tally) statement(reasons []string) Statement {
	t.rollUp()
	s := Statement{AsOf: t.bounds.asOf, StartedAt: t.bounds.now, Reasons: reasons, findings: t.findings, contradicted: t.contradicted}
	sums := t.figures()
	for _, c := range currenciesOf(sums) {
		figure := func(name LineName) Figure { return sums[lineKey{name, c}].Figure }
		if figure(lineGateway).Count > 0 {
			s.Sums = append(s.Sums, sumOf(c, figure))
		}
		if roll := orderRollOf(c, figure); roll.Gateway > 0 {
			s.Orders = append(s.Orders, roll)
		}
		taken := Captures{
			Currency: c, Listed: figure(lineCapturesListed), Booked: figure(LineCapturesBooked),
			Pending: figure(LineCapturesPending), Accepted: figure(LineCapturesAccepted), Missing: figure(LineCapturesMissing),
			TakenBack: figure(lineTakenBack),
		}
		if taken != (Captures{Currency: c}) {
			s.Captures = append(s.Captures, taken)
		}
		s.Looked.Cancels += figure(lineBooked).Count
		s.Looked.Work += figure(lineOwed).Count
	}
	s.Lines = t.lines(sums)
	s.Verdict = verdictOf(s)
	return s
}

// currenciesOf lists the currencies that something is counted in.
func currenciesOf(sums map[lineKey]total) []ledger.Currency {
	var all []ledger.Currency
	for k := range sums {
		all = append(all, k.currency)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// sumOf is the identity in one currency. The gateway's figure is counted from its rows, the others from what explains
// them, so that the two can differ.
func sumOf(c ledger.Currency, figure func(LineName) Figure) Sum {
	sum := Sum{
		Currency: c, Gateway: figure(lineGateway), Canceled: figure(LineApplied), Accepted: figure(LineAccepted),
		Unexplained: figure(LineUnexplained),
	}
	for _, name := range LineNames() {
		if name.pending() {
			sum.Pending = sum.Pending.plus(figure(name))
		}
	}
	return sum
}

func orderRollOf(c ledger.Currency, figure func(LineName) Figure) OrderRoll {
	r := OrderRoll{
		Currency: c, Canceled: figure(lineOrderCanceled).Count, Pending: figure(lineOrderPending).Count, Other: figure(lineOrderOther).Count,
	}
	r.Gateway = r.Canceled + r.Pending + r.Other
	return r
}

// lines are the statement's, in its order. What a line has beyond its entries was left out where they were read.
func (t *tally) lines(sums map[lineKey]total) []Line {
	var all []Line
	for _, name := range LineNames() {
		for _, c := range currenciesOf(sums) {
			sum, on := sums[lineKey{name, c}]
			if !on {
				continue
			}
			entries := t.entries[lineKey{name, c}]
			slices.SortFunc(entries, func(a, b Entry) int {
				return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.TransactionKey, b.TransactionKey),
					cmp.Compare(a.PaymentKey, b.PaymentKey), cmp.Compare(a.Kind, b.Kind))
			})
			behind := sum.entries
			if name == LineApplied && t.agreedMax > 0 {
				behind = sum.Count
			}
			all = append(all, Line{Name: name, Currency: c, Figure: sum.Figure, Entries: entries, More: max(0, behind-len(entries))})
		}
	}
	return all
}

// waits tells of a pending cancel how far the gateway's redeliveries are.
func (e *Entry) waits(w owing) {
	if w.NoticeAttempt >= 0 {
		e.Attempt = nextAttempt(w.NoticeAttempt)
	}
	if !w.NoticeNextAt.IsZero() {
		next := w.NoticeNextAt.UTC()
		e.NextExpected = &next
	}
	last := w.Deadline.UTC()
	e.LastChance = &last
}

// since is when the transaction happened, as far as anybody says.
func (f fact) since() time.Time {
	switch {
	case f.G.Present:
		return f.G.At
	case f.B.Present:
		return f.B.At
	}
	return f.W.OpenedAt
}

// breaks counts the contradictions.
func (s Statement) breaks() int { return len(s.findings) + s.contradicted }

// verdictOf takes the worst. A contradiction that was seen stands even when the list was not read to its end; the
// absence of one means nothing then.
func verdictOf(s Statement) Verdict {
	pending := false
	for _, sum := range s.Sums {
		if !sum.Holds() {
			return VerdictError
		}
		pending = pending || sum.Pending.Count > 0
	}
	for _, taken := range s.Captures {
		pending = pending || taken.Pending.Count+taken.TakenBack.Count > 0
	}
	switch {
	case s.breaks() > 0:
		return VerdictBreaks
	case len(s.Reasons) > 0:
		return VerdictIncomplete
	case pending:
		return VerdictPending
	}
	return VerdictReconciled
}
