package reconcile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"daesa/ledger"
)

// Standing is how a transaction stands in a closed day. It says no more than lasts: how far a pending cancel has come
// depends on when one looks.
type Standing string

// The standings.
const (
	StandingApplied        Standing = "applied" // in both books
	StandingPending        Standing = "pending" // known to be owed
	StandingAccepted       Standing = "accepted"
	StandingNotListed      Standing = "not_yet_listed"
	StandingAcceptedBeside Standing = "accepted_beside" // a person accepted it, and it is no part of the gateway's sum
	StandingBreaks         Standing = "breaks"
)

// Standings lists every standing.
func Standings() []Standing {
	return []Standing{
		StandingApplied, StandingPending, StandingAccepted, StandingNotListed, StandingAcceptedBeside, StandingBreaks,
	}
}

// dayRow is one transaction of a closed day.
type dayRow struct {
	Movement       Movement         `db:"movement"`
	TransactionKey string           `db:"transaction_key"`
	PaymentKey     string           `db:"payment_key"`
	OrderID        string           `db:"order_id"`
	Standing       Standing         `db:"standing"`
	At             time.Time        `db:"at"`
	ListedCurrency *ledger.Currency `db:"listed_currency"`
	Listed         *int64           `db:"listed"`
	BookedCurrency *ledger.Currency `db:"booked_currency"`
	Booked         *int64           `db:"booked"`
}

// closed is the transaction as a closed day has it, if it has it at all: a further name of a void is on no line, and of
// what nobody can read nobody knows what moved. Once a person has accepted it, it is a row of the day without a movement.
func (s seen) closed() (dayRow, bool) {
	r := dayRow{
		Movement: s.Movement, TransactionKey: s.TransactionKey, PaymentKey: s.PaymentKey, OrderID: s.OrderID,
		Standing: s.standing(), At: s.At,
	}
	if s.G.Present {
		r.ListedCurrency, r.Listed = &s.G.Amount.Currency, &s.G.Amount.Minor
	}
	if s.B.Present {
		r.BookedCurrency, r.Booked = &s.B.Amount.Currency, &s.B.Amount.Minor
	}
	return r, r.Standing == StandingAcceptedBeside || (r.Standing != "" && r.Movement != "")
}

// standing takes the worst of the lines that the transaction is on.
func (s seen) standing() Standing {
	if s.finding != nil {
		return StandingBreaks
	}
	var worst Standing
	for _, p := range s.parts {
		switch {
		case p.line.pending():
			worst = StandingPending
		case p.line == LineAccepted:
			return StandingAccepted
		case p.line == LineAcceptedBeside:
			return StandingAcceptedBeside
		case p.line == LineApplied:
			worst = cmp.Or(worst, StandingApplied)
		default:
			worst = cmp.Or(worst, StandingNotListed)
		}
	}
	return worst
}

// appendCanonical appends everything that the closed day says of the transaction. Texts from outside carry their length,
// so that no two rows have the same bytes.
func (r dayRow) appendCanonical(b []byte) []byte {
	b = r.appendNames(b)
	b = append(b, r.Standing...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, r.At.UnixMicro(), 10)
	b = appendMoney(append(b, " listed "...), r.ListedCurrency, r.Listed)
	b = appendMoney(append(b, " booked "...), r.BookedCurrency, r.Booked)
	return append(b, '\n')
}

// appendSigned appends what a signature covers of the transaction: nothing where no money moved, unless a person
// accepted just that nobody can read how much. What is pending was signed as owed at the amount that the gateway lists,
// so once it is applied at just that amount nothing has changed.
func (r dayRow) appendSigned(b []byte) []byte {
	if r.moves() == 0 && r.Standing != StandingAcceptedBeside {
		return b
	}
	b = r.appendNames(b)
	if r.Standing == StandingApplied || r.Standing == StandingPending {
		return append(appendMoney(append(b, "owed "...), r.ListedCurrency, r.Listed), '\n')
	}
	b = append(b, r.Standing...)
	b = appendMoney(append(b, " listed "...), r.ListedCurrency, r.Listed)
	b = appendMoney(append(b, " booked "...), r.BookedCurrency, r.Booked)
	return append(b, '\n')
}

func (r dayRow) appendNames(b []byte) []byte {
	b = append(b, r.Movement...)
	for _, text := range []string{r.TransactionKey, r.PaymentKey, r.OrderID} {
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(len(text)), 10)
		b = append(append(b, ':'), text...)
	}
	return append(b, ' ')
}

func appendMoney(b []byte, currency *ledger.Currency, minor *int64) []byte {
	if currency == nil || minor == nil {
		return append(b, '-')
	}
	b = append(append(b, *currency...), ' ')
	return strconv.AppendInt(b, *minor, 10)
}

// moves is the money that is in question, whichever book has more of it.
func (r dayRow) moves() int64 {
	var most int64
	for _, minor := range []*int64{r.Listed, r.Booked} {
		if minor != nil && *minor > most {
			most = *minor
		}
	}
	return most
}

// closing turns the transactions of a day, in their order, into what the closed day says.
type closing struct {
	rows         int
	said, signed hash.Hash
	scratch      []byte
	day          ledger.Day
}

func newClosing(day ledger.Day) *closing {
	c := &closing{said: sha256.New(), signed: sha256.New(), day: day}
	c.signed.Write([]byte("daesa signed day v1\nday " + string(day) + "\n"))
	return c
}

func (c *closing) add(r dayRow) {
	c.rows++
	c.scratch = r.appendCanonical(c.scratch[:0])
	c.said.Write(c.scratch)
	c.scratch = r.appendSigned(c.scratch[:0])
	c.signed.Write(c.scratch)
}

// statement is the closed statement: the same bytes whenever and however often the day is looked at, as long as both
// books say the same of it. Its last line stands for every transaction of the day.
func (c *closing) statement(s Statement) []byte {
	var t strings.Builder
	fmt.Fprintf(&t, "daesa closed day v1\nday %s\nverdict %s\n", c.day, s.Verdict)
	figures := s.figures()
	for _, k := range figureOrder(figures) {
		if f := figures[k]; k.said(f) {
			fmt.Fprintf(&t, "%s %s %d %d\n", k.Currency, k.Name, f.Count, f.Amount)
		}
	}
	for _, o := range s.Orders {
		fmt.Fprintf(&t, "%s orders %d canceled %d pending %d other %d\n", o.Currency, o.Gateway, o.Canceled, o.Pending, o.Other)
	}
	fmt.Fprintf(&t, "transactions %d sha256 %s\n", c.rows, hex.EncodeToString(c.said.Sum(nil)))
	return []byte(t.String())
}

// facts is the digest of what a signature covers.
func (c *closing) facts() ledger.Digest { return ledger.Digest(c.signed.Sum(nil)) }

// figureKey names one figure of a closed day.
type figureKey struct {
	Currency ledger.Currency
	Name     string
}

// figureNames are the figures of a closed day in each currency, in their order.
func figureNames() []string {
	return []string{
		"gateway", "canceled", "pending", "accepted", "unexplained", "not_yet_listed", figureAcceptedBeside, "breaks",
		"captures_listed", "captures_booked", "captures_pending", figureCapturesAccepted, "captures_missing", figureTakenBack,
	}
}

// Three figures say something only where a person accepted a difference, or where the list takes a deposit back. A day
// without any is closed in the same bytes as before there were these figures.
const (
	figureAcceptedBeside   = string(LineAcceptedBeside)
	figureCapturesAccepted = string(LineCapturesAccepted)
	figureTakenBack        = "captures_taken_back"
)

// said reports whether the closed statement has a line for the figure.
func (k figureKey) said(f Figure) bool {
	return f != (Figure{}) || (k.Name != figureAcceptedBeside && k.Name != figureCapturesAccepted && k.Name != figureTakenBack)
}

// figures are the figures of a closed day. A currency that anything is said of has every one.
func (s Statement) figures() map[figureKey]Figure {
	figures := map[figureKey]Figure{}
	put := func(c ledger.Currency, name string, f Figure) {
		for _, each := range figureNames() {
			k := figureKey{c, each}
			figures[k] = figures[k].plus(Figure{})
		}
		figures[figureKey{c, name}] = f
	}
	for _, sum := range s.Sums {
		put(sum.Currency, "gateway", sum.Gateway)
		put(sum.Currency, "canceled", sum.Canceled)
		put(sum.Currency, "pending", sum.Pending)
		put(sum.Currency, "accepted", sum.Accepted)
		put(sum.Currency, "unexplained", sum.Unexplained)
	}
	for _, l := range s.Lines {
		if l.Name == LineNotListed || l.Name == LineAcceptedBeside || l.Name == LineBreaks {
			put(l.Currency, string(l.Name), l.Figure)
		}
	}
	for _, c := range s.Captures {
		put(c.Currency, "captures_listed", c.Listed)
		put(c.Currency, "captures_booked", c.Booked)
		put(c.Currency, "captures_pending", c.Pending)
		put(c.Currency, figureCapturesAccepted, c.Accepted)
		put(c.Currency, "captures_missing", c.Missing)
		put(c.Currency, figureTakenBack, c.TakenBack)
	}
	return figures
}

func figureOrder(figures map[figureKey]Figure) []figureKey {
	names := figureNames()
	return slices.SortedFunc(maps.Keys(figures), func(a, b figureKey) int {
		return cmp.Or(cmp.Compare(a.Currency, b.Currency), cmp.Compare(slices.Index(names, a.Name), slices.Index(names, b.Name)))
	})
}
