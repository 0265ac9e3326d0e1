package pages

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"daesa/ledger"
	"daesa/reconcile"
)

// The plot's measures, in its own units.
const (
	plotWidth  = 760
	plotHeight = 220
	plotLeft   = 70
	plotBottom = 28
	plotTop    = 10
)

// part is one part of a day's column.
type part struct {
	class  string
	name   string
	amount int64
}

// plot draws what the gateway canceled on each day as a column of what explains it: canceled orders, pending, accepted and
// unexplained. The gateway's own figure is a line across: where a column does not reach its line, the books do not explain
// the money.
func (s words) plot(days []reconcile.DaySummary, currency ledger.Currency) template.HTML {
	if len(days) == 0 {
		return ""
	}
	ordered := slices.Clone(days)
	slices.Reverse(ordered) // oldest first
	most := int64(1)
	for _, day := range ordered {
		most = max(most, sumIn(day, currency).Gateway.Amount)
	}
	height := func(amount int64) int64 { return amount * (plotHeight - plotBottom - plotTop) / most }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="plot" viewBox="0 0 %d %d" role="img" aria-label="%s">`, plotWidth, plotHeight,
		template.HTMLEscapeString(s.say("Cancels of each day: canceled orders, pending, accepted, unexplained")))
	for _, share := range []int64{0, 1, 2} {
		value := most * share / 2
		y := plotHeight - plotBottom - height(value)
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%d" y2="%d"/><text class="scale" x="%d" y="%d">%s</text>`,
			plotLeft, plotWidth, y, y, plotLeft-6, y+4, amount(value, currency))
	}
	step := (plotWidth - plotLeft) / max(len(ordered), 10)
	for i, day := range ordered {
		x := plotLeft + i*step
		b.WriteString(s.column(day, currency, x, step, height))
		if every := (len(ordered) + 9) / 10; i%every == 0 {
			fmt.Fprintf(&b, `<text class="tick" x="%d" y="%d">%s</text>`, x+step/2, plotHeight-8, day.Day[5:])
		}
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // numbers, our own words escaped, and days
}

// column is one day of the plot, with its figures for whoever points at it.
func (s words) column(day reconcile.DaySummary, currency ledger.Currency, x, step int, height func(int64) int64) string {
	sum := sumIn(day, currency)
	parts := []part{
		{"canceled", "canceled", sum.Canceled.Amount},
		{"pending", "pending", sum.Pending.Amount},
		{"accepted", "accepted", sum.Accepted.Amount},
		{"unexplained", "unexplained", sum.Unexplained.Amount},
	}
	told := []string{string(day.Day), s.say("gateway") + " " + amount(sum.Gateway.Amount, currency)}
	var b strings.Builder
	y := int64(plotHeight - plotBottom)
	for _, p := range parts {
		if p.amount <= 0 {
			continue
		}
		told = append(told, s.language.Word(p.name)+" "+amount(p.amount, currency))
		tall := max(height(p.amount), 1)
		y -= tall
		fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d"/>`, p.class, x+2, y, step-4, tall)
	}
	line := plotHeight - plotBottom - height(sum.Gateway.Amount)
	if sum.Gateway.Amount > 0 {
		fmt.Fprintf(&b, `<line class="gateway" x1="%d" x2="%d" y1="%d" y2="%d"/>`, x, x+step, line, line)
	}
	return fmt.Sprintf(`<a href="/days/%s"><title>%s</title>%s</a>`, day.Day, template.HTMLEscapeString(strings.Join(told, " · ")), b.String())
}

// sumIn is the identity of a day in one currency.
func sumIn(day reconcile.DaySummary, currency ledger.Currency) reconcile.Sum {
	for _, sum := range day.Sums {
		if sum.Currency == currency {
			return sum
		}
	}
	return reconcile.Sum{Currency: currency}
}
