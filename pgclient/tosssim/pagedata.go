package tosssim

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"
)

// pagePayment is a payment as the page shows it.
type pagePayment struct {
	Key       string
	OrderID   string
	OrderName string
	Status    string
	Currency  string
	Total     string
	Canceled  string
	Balance   string
	At        string
	Open      bool // something is left to cancel
	Notices   []pageNotice
}

// pageNotice is a notice of a payment, and how its deliveries were answered.
type pageNotice struct {
	State   string // done, held, waiting, lost
	Answers []string
	Next    string
}

// pageTotal is what the gateway did in one currency.
type pageTotal struct{ Currency, Captured, Canceled string }

// pageData is all that the page shows, as it stands at one moment.
func (s *Sim) pageData(tag language.Tag) pageData {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireDue()
	d := pageData{
		Language: tag.String(), Gateway: s.gatewayNow(), Notices: s.noticesNow(), Modes: gatewayModes(), Sendings: noticeModes(),
		Now: s.pageTime(s.clock.Now()),
	}
	for _, currency := range slices.Sorted(maps.Keys(s.totals.Captured)) {
		d.Totals = append(d.Totals, pageTotal{
			currency, grouped(s.totals.Captured[currency], currency), grouped(s.totals.Canceled[currency], currency),
		})
	}
	keys := slices.Clone(s.order)
	slices.Reverse(keys)
	d.More = max(0, len(keys)-pagePayments)
	of := map[string][]pageNotice{}
	for _, n := range s.notices {
		of[n.PaymentKey] = append(of[n.PaymentKey], s.pageNotice(n))
	}
	for _, key := range keys[:min(len(keys), pagePayments)] {
		d.Payments = append(d.Payments, s.pagePayment(s.payments[key], of[key]))
	}
	return d
}

func (s *Sim) pagePayment(p *payment, notices []pageNotice) pagePayment {
	total, balance := p.amount("totalAmount"), p.amount("balanceAmount")
	shown := pagePayment{
		Key: p.key, OrderID: p.orderID(), OrderName: p.doc.text("orderName"), Status: p.status(), Currency: p.currency(),
		Total: grouped(total, p.currency()), Canceled: grouped(total-balance, p.currency()), Balance: grouped(balance, p.currency()),
		Open:    balance > 0 && slices.Contains([]string{statusDone, statusPartial, statusWaiting}, p.status()),
		Notices: notices,
	}
	if at, err := time.Parse(time.RFC3339, p.doc.text("requestedAt")); err == nil {
		shown.At = s.pageTime(at)
	}
	return shown
}

func (s *Sim) pageNotice(n *notice) pageNotice {
	shown := pageNotice{State: "waiting"}
	switch {
	case n.Done:
		shown.State = "done"
	case n.Lost:
		shown.State = "lost"
	case len(n.Deliveries) == 0 && s.plan.Hold:
		shown.State = "held"
	case len(n.Deliveries) > 0:
		shown.Next = s.pageTime(n.NextAt)
	}
	for _, d := range n.Deliveries {
		answer := "–"
		if d.Status != 0 {
			answer = strconv.Itoa(d.Status)
		}
		shown.Answers = append(shown.Answers, answer)
	}
	return shown
}

func (s *Sim) pageTime(t time.Time) string { return s.kst(t).Format("2006-01-02 15:04:05") }

// grouped is an amount with separators.
func grouped(minor int64, currency string) string {
	whole, fraction, _ := strings.Cut(string(number(minor, currency)), ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return sign + whole
}
