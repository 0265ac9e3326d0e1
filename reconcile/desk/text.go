package desk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"daesa/ledger"
)

// WriteText writes the page for a terminal.
func (l MismatchList) WriteText(w io.Writer) error {
	t := table{
		heads: []string{"NO", "STATUS", "KIND", "AT RISK", "ORDER", "OPENED", "ASSIGNEE", "DETAIL", "RESOLVED"}, right: []int{0, 3},
		none: "no mismatches", more: moreOf("--before", l.Next),
	}
	for _, m := range l.Mismatches {
		t.add(fmt.Sprint(m.ID), m.state(), string(m.Kind), money(m.money), m.OrderID, ledger.Stamp(m.OpenedAt), string(m.Assignee), m.Detail, m.resolution())
	}
	return t.write(w)
}

// resolution is who resolved it, when and why; nothing where nobody did. Of two people each has their own words.
func (m MismatchView) resolution() string {
	switch {
	case m.ResolvedAt == nil:
		return ""
	case m.Confirmed == nil:
		return said(m.ResolvedBy, *m.ResolvedAt, m.Note)
	}
	p := m.Confirmed.Proposed
	return "proposed " + said(p.By, p.At, p.Note) + "; confirmed " + said(m.Confirmed.By, m.Confirmed.At, m.Confirmed.Note)
}

// said is who did something, when, and with which words, if any.
func said(by ledger.Actor, at time.Time, words string) string {
	return strings.TrimSuffix(fmt.Sprintf("by %s, %s: %s", by, ledger.Stamp(at), words), ": ")
}

// state is the status with what happens to it.
func (m MismatchView) state() string {
	switch {
	case m.Proposal != nil:
		return string(m.Status) + ", " + string(m.Proposal.As) + "?"
	case m.ResolvedAs != "":
		return string(m.Status) + ", " + string(m.ResolvedAs)
	}
	return string(m.Status)
}

// WriteText writes the mismatch for a terminal.
func (m MismatchView) WriteText(w io.Writer) error {
	var t strings.Builder
	m.write(&t)
	_, err := io.WriteString(w, t.String())
	return err
}

func (m MismatchView) write(t *strings.Builder) {
	fmt.Fprintf(t, "mismatch %d  %s  %s (revision %d)\n", m.ID, m.Kind, m.state(), m.Revision)
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "  %-12s %s\n", name, plain(value))
		}
	}
	field("at risk", money(m.money))
	field("order", m.OrderID)
	field("payment", m.PaymentKey)
	field("transaction", m.TransactionKey)
	field("detail", m.Detail)
	field("opened", ledger.Stamp(m.OpenedAt))
	field("last seen", fmt.Sprintf("%s, %d times in all", ledger.Stamp(m.LastSeenAt), m.TimesSeen))
	field("assignee", string(m.Assignee))
	if m.Incident != 0 {
		field("incident", fmt.Sprint(m.Incident))
	}
	if p := m.Proposal; p != nil {
		field("proposed", string(p.As)+" "+said(p.By, p.At, p.Note))
		field("", "somebody else confirms or withdraws it")
	}
	switch c := m.Confirmed; {
	case c != nil:
		field("proposed", string(c.Proposed.As)+" "+said(c.Proposed.By, c.Proposed.At, c.Proposed.Note))
		field("confirmed", said(c.By, c.At, c.Note))
	case m.ResolvedAt != nil:
		field("resolved", string(m.ResolvedAs)+" "+said(m.ResolvedBy, *m.ResolvedAt, ""))
		field("note", m.Note)
	}
}

// WriteText writes the mismatch with its evidence and trail for a terminal.
func (d Dossier) WriteText(w io.Writer) error {
	var t strings.Builder
	d.write(&t)
	if d.NeedsTwo {
		t.WriteString("  a second person must confirm its resolution\n")
	}
	for _, side := range []struct {
		name string
		json json.RawMessage
	}{{"gateway", d.Gateway}, {"books", d.Books}} {
		fmt.Fprintf(&t, "\n%s\n%s", side.name, indented(side.json))
	}
	t.WriteString("\ntrail\n")
	for _, line := range d.Trail {
		entry := fmt.Sprintf("  %3d  %s  %-20s %-20s %s", line.Number, ledger.Stamp(line.At), line.Actor, line.Action, plain(line.Note))
		t.WriteString(strings.TrimRight(entry, " ") + "\n")
		if line.Action != ledger.TrailOpened {
			for _, changed := range fields(line.Changed) {
				fmt.Fprintf(&t, "       %s\n", changed)
			}
		}
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// fields are the changed fields of a line in order.
func fields(raw json.RawMessage) []string {
	var changed map[string]json.RawMessage
	if json.Unmarshal(raw, &changed) != nil {
		return nil
	}
	var all []string
	for name, value := range changed {
		all = append(all, fmt.Sprintf("%s = %s", name, plain(string(value))))
	}
	slices.Sort(all)
	return all
}

func indented(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return "  nothing\n"
	}
	var out bytes.Buffer
	if json.Indent(&out, raw, "", "  ") != nil {
		return "  " + plain(string(raw)) + "\n"
	}
	var t strings.Builder
	for line := range strings.SplitSeq(out.String(), "\n") {
		t.WriteString(strings.TrimRight("  "+plain(line), " ") + "\n")
	}
	return t.String()
}

// WriteText writes the page for a terminal.
func (l IncidentList) WriteText(w io.Writer) error {
	t := table{
		heads: []string{"NO", "STATUS", "FOUND", "LEFT", "AT RISK", "OPENED", "RUN"}, right: []int{0, 2, 3, 4}, none: "no incidents",
		more: moreOf("--before", l.Next),
	}
	for _, i := range l.Incidents {
		t.add(fmt.Sprint(i.ID), string(i.Status), ledger.Grouped(fmt.Sprint(i.Found)), ledger.Grouped(fmt.Sprint(i.Left)), i.atRisk(), ledger.Stamp(i.OpenedAt), i.Run)
	}
	return t.write(w)
}

// WriteText writes the incident for a terminal.
func (i IncidentView) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "incident %d  %s\n  %-12s %s\n  %-12s %s\n  %-12s %s of %s\n  %-12s %s\n  %-12s %s\n", i.ID, i.Status,
		"run", plain(i.Run), "opened", ledger.Stamp(i.OpenedAt), "left", ledger.Grouped(fmt.Sprint(i.Left)), ledger.Grouped(fmt.Sprint(i.Found)),
		"at risk", i.atRisk(), "proposed", ledger.Grouped(fmt.Sprint(i.Proposed)))
	return err
}

func (i IncidentView) atRisk() string {
	var sums []string
	for _, m := range i.money {
		sums = append(sums, money(m))
	}
	if i.Unknown > 0 {
		sums = append(sums, fmt.Sprintf("%d unknown", i.Unknown))
	}
	return strings.Join(sums, " + ")
}

// WriteText writes the page for a terminal.
func (l PendingList) WriteText(w io.Writer) error {
	t := table{
		heads: []string{"LAST CHANCE", "LINE", "NEXT", "EXPECTED", "AMOUNT", "ORDER", "PAYMENT", "TRANSACTION", "LAST ANSWER"},
		right: []int{4}, none: "nothing is pending", more: moreOf("--after", l.Next),
	}
	for _, p := range l.Pending {
		next, expected := "", ""
		if p.Attempt != nil {
			next = fmt.Sprintf("%d of %d", *p.Attempt, p.Attempts)
		}
		if p.NextExpected != nil {
			expected = ledger.Stamp(*p.NextExpected)
		}
		subject := p.TransactionKey
		if p.RequestID != "" {
			subject = ledger.RequestSubject(p.RequestID)
		}
		t.add(ledger.Stamp(p.LastChance), string(p.Line), next, expected, money(p.money), p.OrderID, p.PaymentKey, subject, p.LastAnswer)
	}
	return t.write(w)
}

// table is rows under heads, each column as wide as its widest.
type table struct {
	heads []string
	right []int // columns of numbers
	rows  [][]string
	none  string // said when there is no row
	more  string // said when there are more
}

func (t *table) add(cells ...string) {
	for i, c := range cells {
		cells[i] = plain(c)
	}
	t.rows = append(t.rows, cells)
}

func (t *table) write(w io.Writer) error {
	if len(t.rows) == 0 {
		_, err := fmt.Fprintln(w, t.none)
		return err
	}
	widths := make([]int, len(t.heads))
	all := append([][]string{t.heads}, t.rows...)
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], width(cell))
		}
	}
	var out strings.Builder
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-width(cell))
			if slices.Contains(t.right, i) {
				line.WriteString(pad + cell + "  ")
			} else {
				line.WriteString(cell + pad + "  ")
			}
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	out.WriteString(t.more)
	_, err := io.WriteString(w, out.String())
	return err
}

func moreOf[T comparable](flag string, next T) string {
	var end T
	if next == end {
		return ""
	}
	return fmt.Sprintf("more: %s %v\n", flag, next)
}

// width is how many columns of a terminal a text takes: Korean letters take two.
func width(text string) int {
	n := utf8.RuneCountInString(text)
	for _, r := range text {
		if unicode.In(r, unicode.Hangul, unicode.Han, unicode.Hiragana, unicode.Katakana) {
			n++
		}
	}
	return n
}

// plain takes out of a text from outside what would move the cursor or turn the writing around.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// money writes an amount for people, in groups of three digits.
func money(m ledger.Money) string {
	if m.Currency == "" {
		return "unknown"
	}
	return ledger.Grouped(m.Decimal()) + " " + string(m.Currency)
}
