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
	Scope     ScopeName   `json:"scope"`
	Day       ledger.Day  `json:"day,omitempty"`
	StartedAt time.Time   `json:"started_at"`
	AsOf      time.Time   `json:"as_of"`
	Verdict   Verdict     `json:"verdict"`
	Reasons   []string    `json:"reasons,omitempty"` // why it is incomplete, or what failed
	Looked    Looked      `json:"looked"`
	Sums      []Sum       `json:"sums"`               // the identity, per currency
	Lines     []Line      `json:"lines"`              // per line and currency; lines without anything are left out
	Captures  []Captures  `json:"captures,omitempty"` // per currency
	Orders    []OrderRoll `json:"orders,omitempty"`   // what canceled at the gateway means for orders

	findings []ledger.Finding
}

// Looked is what the audit looked at: a passing audit that looked at nothing shows it.
type Looked struct {
	From        time.Time `json:"from"`
	To          time.Time `json:"to"`
	Lag         string    `json:"lag"`
	Runs        int       `json:"runs"` // reads of the list that touch the window
	FailedRuns  int       `json:"failed_runs"`
	Rows        int       `json:"rows"` // of the mirror
	ForeignRows int       `json:"foreign_rows"`
	Cancels     int       `json:"cancels"` // of our books
	Work        int       `json:"work"`    // open, about cancels
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
}

// Captures compares money taken in one currency.
type Captures struct {
	Currency ledger.Currency `json:"currency"`
	Listed   Figure          `json:"listed"`  // in the gateway's list
	Booked   Figure          `json:"booked"`  // of those, in our books
	Pending  Figure          `json:"pending"` // of those, being asked about
	Missing  Figure          `json:"missing"` // of those, neither
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

// tally collects facts into a statement.
type tally struct {
	bounds    bounds
	sums      map[ledger.Currency]*Sum
	lines     map[lineKey]*Line
	orders    map[string]*orderState
	findings  []ledger.Finding
	cancels   int
	work      int
	agreedMax int // of what agrees, this many are listed on its line
}

type lineKey struct {
	name     LineName
	currency ledger.Currency
}

type orderState struct {
	currency       ledger.Currency
	pending, other bool
}

func newTally(b bounds) *tally {
	return &tally{
		bounds: b, sums: make(map[ledger.Currency]*Sum), lines: map[lineKey]*Line{}, orders: map[string]*orderState{},
	}
}

// add puts one fact on its lines and says what it came to.
func (t *tally) add(f fact) judged {
	j := judge(f, t.bounds)
	if f.B.Present {
		t.cancels++
	}
	if f.W.Present {
		t.work++
	}
	if f.G.Present {
		sum := t.sum(f.G.Amount.Currency)
		sum.Gateway = sum.Gateway.plus(Figure{1, f.G.Amount.Minor})
	}
	for _, p := range j.parts {
		t.put(f, j, p)
	}
	t.roll(f, j)
	if j.finding != nil {
		t.findings = append(t.findings, *j.finding)
	}
	return j
}

func (t *tally) sum(c ledger.Currency) *Sum {
	if t.sums[c] == nil {
		t.sums[c] = &Sum{Currency: c}
	}
	return t.sums[c]
}

func (t *tally) put(f fact, j judged, p part) {
	figure := Figure{p.count, p.amount.Minor}
	key := lineKey{p.line, p.amount.Currency}
	if t.lines[key] == nil {
		t.lines[key] = &Line{Name: p.line, Currency: p.amount.Currency}
	}
	line := t.lines[key]
	line.Figure = line.plus(figure)
	if f.G.Present {
		sum := t.sum(f.G.Amount.Currency)
		switch {
		case p.line == LineApplied:
			sum.Canceled = sum.Canceled.plus(figure)
		case p.line.pending():
			sum.Pending = sum.Pending.plus(figure)
		case p.line == LineAccepted:
			sum.Accepted = sum.Accepted.plus(figure)
		case p.line == LineUnexplained:
			sum.Unexplained = sum.Unexplained.plus(figure)
		}
	}
	if p.line == LineApplied && len(line.Entries) >= t.agreedMax {
		if t.agreedMax > 0 {
			line.More++
		}
		return
	}
	entry := Entry{
		OrderID: f.OrderID, PaymentKey: f.PaymentKey, TransactionKey: f.TransactionKey, Amount: p.amount.Minor,
		Since: f.since(), Note: j.note,
	}
	if p.line == LineBreaks {
		entry.Kind, entry.Note = j.finding.Kind, j.finding.Detail
	}
	line.Entries = append(line.Entries, entry)
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

// roll counts the order behind a cancel of the gateway's. An order is pending while any of its cancels is.
func (t *tally) roll(f fact, j judged) {
	if !f.G.Present {
		return
	}
	o := t.orders[f.OrderID]
	if o == nil {
		o = &orderState{currency: f.G.Amount.Currency}
		t.orders[f.OrderID] = o
	}
	for _, p := range j.parts {
		o.pending = o.pending || p.line.pending()
		o.other = o.other || p.line == LineAccepted || p.line == LineUnexplained
	}
}

// statement puts the lines in order and says what they come to. The incomplete reasons are the caller's.
func (t *tally) statement(reasons []string) Statement {
	s := Statement{AsOf: t.bounds.asOf, StartedAt: t.bounds.now, Reasons: reasons, findings: t.findings}
	for _, sum := range t.sums {
		s.Sums = append(s.Sums, *sum)
	}
	slices.SortFunc(s.Sums, func(a, b Sum) int { return cmp.Compare(a.Currency, b.Currency) })
	for _, line := range t.lines {
		slices.SortFunc(line.Entries, func(a, b Entry) int {
			return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.TransactionKey, b.TransactionKey))
		})
		s.Lines = append(s.Lines, *line)
	}
	order := LineNames()
	slices.SortFunc(s.Lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Name), slices.Index(order, b.Name)), cmp.Compare(a.Currency, b.Currency))
	})
	s.Orders = t.rolled()
	s.Looked.Cancels, s.Looked.Work = t.cancels, t.work
	s.Verdict = t.verdict(s)
	return s
}

func (t *tally) rolled() []OrderRoll {
	rolls := make(map[ledger.Currency]*OrderRoll)
	for _, o := range t.orders {
		r := rolls[o.currency]
		if r == nil {
			r = &OrderRoll{Currency: o.currency}
			rolls[o.currency] = r
		}
		r.Gateway++
		switch {
		case o.pending:
			r.Pending++
		case o.other:
			r.Other++
		default:
			r.Canceled++
		}
	}
	var all []OrderRoll
	for _, r := range rolls {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b OrderRoll) int { return cmp.Compare(a.Currency, b.Currency) })
	return all
}

// verdict takes the worst. A contradiction that was seen stands even when the list was not read to its end; the
// absence of one means nothing then.
func (t *tally) verdict(s Statement) Verdict {
	pending := false
	for _, sum := range s.Sums {
		if !sum.Holds() {
			return VerdictError
		}
		pending = pending || sum.Pending.Count > 0
	}
	switch {
	case len(t.findings) > 0:
		return VerdictBreaks
	case len(s.Reasons) > 0:
		return VerdictIncomplete
	case pending:
		return VerdictPending
	}
	return VerdictReconciled
}
