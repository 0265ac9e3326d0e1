package reconcile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// subject is what one remembered comparison is about.
type subject string

const (
	aboutCancel   subject = "cancel"  // one transaction key
	aboutCaptures subject = "capture" // one payment key: the money taken by it
)

// What is counted beside the lines of the statement.
const (
	lineGateway       LineName = "gateway" // cancels in the gateway's list
	lineBooked        LineName = "booked"  // cancels of ours
	lineOwed          LineName = "owed"    // open work about cancels
	lineOrderCanceled LineName = "order_canceled"
	lineOrderPending  LineName = "order_pending"
	lineOrderOther    LineName = "order_other"
	lineTakenBack     LineName = "taken_back" // captures of ours that the list takes back

	// Of captures only what does not agree is remembered; this one and LineCapturesBooked are counted where everything is read.
	lineCapturesListed LineName = "captures_listed"
)

// share is one contribution to one line of one day.
type share struct {
	Day      ledger.Day      `json:"day"`
	Line     LineName        `json:"line"`
	Currency ledger.Currency `json:"currency"`
	Count    int             `json:"count"`
	Amount   int64           `json:"amount"`
}

// listing is how the statement lists it, with the evidence where it is a break.
type listing struct {
	Line     LineName        `json:"line"`
	Currency ledger.Currency `json:"currency"`
	Entry
	Gateway map[string]any `json:"gateway,omitempty"`
	Books   map[string]any `json:"books,omitempty"`
}

// memory is what one key came to: everything by which it moves a sum or is listed, and when that changes by itself.
type memory struct {
	about       subject
	key         string
	paymentKey  string
	orderID     string
	parts       []share
	entries     []listing
	recheckAt   time.Time // by the clock; zero = never
	recheckAsOf time.Time // once the list was read past it; zero = never
}

// remember keeps what a fact came to.
func (f fact) remember(j judged, b bounds) memory {
	m := memory{about: aboutCancel, key: f.TransactionKey, paymentKey: f.PaymentKey, orderID: f.OrderID}
	day := ledger.DayOf(f.since())
	put := func(line LineName, count int, amount ledger.Money) {
		m.parts = append(m.parts, share{Day: day, Line: line, Currency: amount.Currency, Count: count, Amount: amount.Minor})
	}
	if f.G.Present {
		put(lineGateway, 1, f.G.Amount)
	}
	if f.B.Present && (f.G.Present || !f.B.At.Before(b.since)) {
		put(lineBooked, 1, f.B.Amount)
	}
	if f.W.Present {
		put(lineOwed, 1, f.W.Amount)
	}
	for _, p := range j.parts {
		put(p.line, p.count, p.amount)
		if !p.line.listed() {
			continue // what agrees is counted, not listed
		}
		l := listing{Line: p.line, Currency: p.amount.Currency, Entry: f.entry(j, p)}
		if p.line == LineAcceptedBeside {
			l.Kind = j.kind
		}
		if p.line == LineBreaks {
			l.Kind, l.Note, l.Gateway, l.Books = j.finding.Kind, j.finding.Detail, j.finding.Gateway, j.finding.Books
		}
		m.entries = append(m.entries, l)
	}
	m.recheckAt, m.recheckAsOf = f.recheck(b)
	return m
}

// entry is how a part of the fact is listed.
func (f fact) entry(j judged, p part) Entry {
	e := Entry{
		OrderID: f.OrderID, PaymentKey: f.PaymentKey, TransactionKey: f.TransactionKey, Amount: p.amount.Minor,
		Since: f.since().UTC(), Note: j.note,
	}
	if p.line.pending() || p.line == LineUnproven {
		e.waits(f.W)
	}
	return e
}

// recheck is when the same fact comes to something else without any row changing: by the clock, or by how far the list
// was read.
func (f fact) recheck(b bounds) (at, asOf time.Time) {
	switch {
	case f.G.Present && f.B.Present:
	case f.G.Present && f.W.Present:
		for _, next := range []time.Time{f.W.OpenedAt.Add(inFlightFor), f.W.NoticeNextAt, f.W.maximumAge()} {
			if next.After(b.now) && (at.IsZero() || next.Before(at)) {
				at = next
			}
		}
	case f.B.Present && !f.G.Present && !f.B.Amount.IsZero() && !f.B.At.Before(b.since):
		if listed := f.B.At.Add(b.listLag); !listed.Before(b.asOf) {
			asOf = listed
		}
	}
	return at, asOf
}

// empty reports whether there is nothing to remember.
func (m *memory) empty() bool {
	return len(m.parts) == 0 && len(m.entries) == 0 && m.recheckAt.IsZero() && m.recheckAsOf.IsZero()
}

// plainShares are the parts of a cancel that both books simply agree on, as almost all do.
func plainShares(day ledger.Day, amount ledger.Money) []share {
	of := func(line LineName) share {
		return share{Day: day, Line: line, Currency: amount.Currency, Count: 1, Amount: amount.Minor}
	}
	return []share{of(lineGateway), of(lineBooked), of(LineApplied)}
}

// plain reports whether m says no more than that both books agree.
func (m *memory) plain() bool {
	return len(m.parts) == 3 && len(m.entries) == 0 && m.recheckAt.IsZero() && m.recheckAsOf.IsZero() &&
		slices.Equal(m.parts, plainShares(m.parts[0].Day, ledger.Money{Minor: m.parts[0].Amount, Currency: m.parts[0].Currency}))
}

// same reports whether two memories of one key are equal.
func (m *memory) same(o *memory) bool {
	if m.empty() || o.empty() {
		return m.empty() == o.empty()
	}
	return m.paymentKey == o.paymentKey && m.orderID == o.orderID && slices.Equal(m.parts, o.parts) &&
		m.recheckAt.Equal(o.recheckAt) && m.recheckAsOf.Equal(o.recheckAsOf) && sameListings(m.entries, o.entries)
}

// sort puts what several captures of a payment come to in an order that is the same however they were read.
func (m *memory) sort() {
	slices.SortFunc(m.parts, func(a, b share) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Currency, b.Currency),
			cmp.Compare(a.Amount, b.Amount))
	})
	slices.SortFunc(m.entries, func(a, b listing) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.TransactionKey, b.TransactionKey), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Amount, b.Amount))
	})
}

func sameListings(a, b []listing) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// open is the entry by which the key is found again: that of a break before any other.
func (m *memory) open() *listing {
	for i, l := range m.entries {
		if l.Line == LineBreaks {
			return &m.entries[i]
		}
	}
	if len(m.entries) > 0 {
		return &m.entries[0]
	}
	return nil
}

// finding is the contradiction behind an entry of the breaks line.
func (l listing) finding() ledger.Finding {
	return ledger.Finding{
		Kind: l.Kind, PaymentKey: l.PaymentKey, OrderID: l.OrderID, TransactionKey: l.TransactionKey,
		AtRisk: ledger.Money{Minor: l.Amount, Currency: l.Currency}, Detail: l.Note, Gateway: l.Gateway, Books: l.Books,
	}
}

// memoryRow is a memory as its row of audit_judged holds it. What both books agree on needs no parts.
type memoryRow struct {
	Subject      subject          `db:"subject" json:"subject"`
	Key          string           `db:"key" json:"key"`
	PaymentKey   string           `db:"payment_key" json:"payment_key"`
	OrderID      string           `db:"order_id" json:"order_id"`
	Day          *string          `db:"day" json:"day"`
	Currency     *ledger.Currency `db:"currency" json:"currency"`
	Amount       *int64           `db:"amount" json:"amount"`
	Parts        []share          `db:"parts" json:"parts"`
	Entries      []listing        `db:"entries" json:"entries"`
	RecheckAt    *time.Time       `db:"recheck_at" json:"recheck_at"`
	RecheckAsOf  *time.Time       `db:"recheck_as_of" json:"recheck_as_of"`
	OpenLine     *LineName        `db:"-" json:"open_line"`
	OpenCurrency *ledger.Currency `db:"-" json:"open_currency"`
	Since        *time.Time       `db:"-" json:"since"`
}

// memoryColumns are the columns that memoryRow reads.
const memoryColumns = `j.subject, j.key, j.payment_key, j.order_id, j.day::text AS day, j.currency, j.amount, j.parts, j.entries,
	j.recheck_at, j.recheck_as_of`

// memoryKept are the same columns, of audit_judged x.
const memoryKept = `x.subject, x.key, x.payment_key, x.order_id, x.day, x.currency, x.amount, x.parts, x.entries, x.recheck_at, x.recheck_as_of`

func (m *memory) row() memoryRow {
	r := memoryRow{
		Subject: m.about, Key: m.key, PaymentKey: m.paymentKey, OrderID: m.orderID,
		RecheckAt: postgres.NullTime(m.recheckAt), RecheckAsOf: postgres.NullTime(m.recheckAsOf),
	}
	if m.plain() {
		day := string(m.parts[0].Day)
		r.Day, r.Currency, r.Amount = &day, &m.parts[0].Currency, &m.parts[0].Amount
		return r
	}
	r.Parts = m.parts
	if r.Parts == nil {
		r.Parts = []share{} // nothing, but not plain
	}
	r.Entries = m.entries
	if o := m.open(); o != nil {
		r.OpenLine, r.OpenCurrency, r.Since = &o.Line, &o.Currency, &o.Since
	}
	return r
}

func (r memoryRow) memory() memory {
	m := memory{about: r.Subject, key: r.Key, paymentKey: r.PaymentKey, orderID: r.OrderID, parts: r.Parts, entries: r.Entries}
	if r.Day != nil && r.Currency != nil && r.Amount != nil {
		m.parts = plainShares(ledger.Day(*r.Day), ledger.Money{Minor: *r.Amount, Currency: *r.Currency})
	}
	if r.RecheckAt != nil {
		m.recheckAt = *r.RecheckAt
	}
	if r.RecheckAsOf != nil {
		m.recheckAsOf = *r.RecheckAsOf
	}
	return m
}

// orderState is what the gateway's cancels of one order come to.
type orderState struct {
	day            ledger.Day // of the first
	currency       ledger.Currency
	pending, other bool
}

// orderOf rolls the cancels of one order up; nothing when the gateway has none.
func orderOf(memories []memory) (orderState, bool) {
	var o orderState
	any := false
	for _, m := range memories {
		any = o.see(m, any) || any
	}
	return o, any
}

// see adds one cancel, if the gateway has it.
func (o *orderState) see(m memory, known bool) bool {
	at := slices.IndexFunc(m.parts, func(s share) bool { return s.Line == lineGateway })
	if at < 0 {
		return false
	}
	g := m.parts[at]
	if !known || g.Day < o.day {
		o.day = g.Day
	}
	if !known || g.Currency < o.currency {
		o.currency = g.Currency
	}
	for _, s := range m.parts {
		o.pending = o.pending || s.Line.pending()
		o.other = o.other || s.Line == LineAccepted || s.Line == LineUnexplained
	}
	return true
}

// share is the order's own contribution. An order is pending while any of its cancels is.
func (o *orderState) share() share {
	s := share{Day: o.day, Line: lineOrderCanceled, Currency: o.currency, Count: 1}
	switch {
	case o.pending:
		s.Line = lineOrderPending
	case o.other:
		s.Line = lineOrderOther
	}
	return s
}
