package reconcile

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"daesa/ledger"
)

// WriteText writes the statement for a terminal, with every order behind every line.
func (s Statement) WriteText(w io.Writer) error {
	var t strings.Builder
	title := string(s.Scope)
	if s.Day != "" {
		title = string(s.Day)
	}
	fmt.Fprintf(&t, "Statement %s: %s\n", title, s.Verdict)
	fmt.Fprintf(&t, "as of %s (list lag %s)\n", ledger.Stamp(s.AsOf), s.Looked.Lag)
	fmt.Fprintf(&t, "looked at %d reads of the list (%d failed), %d rows (%d foreign), %d cancels of ours, %d open work\n",
		s.Looked.Runs, s.Looked.FailedRuns, s.Looked.Rows, s.Looked.ForeignRows, s.Looked.Cancels, s.Looked.Work)
	for _, r := range s.Reasons {
		fmt.Fprintf(&t, "! %s\n", r)
	}
	for _, d := range s.Drift {
		fmt.Fprintf(&t, "! an error of ours, repaired: %s\n", d)
	}
	for _, sum := range s.Sums {
		fmt.Fprintf(&t, "\n%s\n", sum.Currency)
		row := func(name string, f Figure) {
			fmt.Fprintf(&t, "  %-24s %7d %18s\n", name, f.Count, ledger.Money{Minor: f.Amount, Currency: sum.Currency}.Decimal())
		}
		row("canceled at the gateway", sum.Gateway)
		row("= canceled here", sum.Canceled)
		row("+ pending", sum.Pending)
		row("+ accepted difference", sum.Accepted)
		row("+ unexplained", sum.Unexplained)
	}
	for _, o := range s.Orders {
		fmt.Fprintf(&t, "\norders canceled at the gateway (%s): %d = %d canceled here + %d pending + %d other\n",
			o.Currency, o.Gateway, o.Canceled, o.Pending, o.Other)
	}
	if s.CapturesOpen {
		t.WriteString("captures: only what does not agree is counted here, all of them by the runs of a day and of everything\n")
	}
	for _, c := range s.Captures {
		if c.TakenBack.Count > 0 {
			fmt.Fprintf(&t, "captures (%s): %d booked here, taken back by the list, being asked about\n", c.Currency, c.TakenBack.Count)
		}
		if s.CapturesOpen {
			fmt.Fprintf(&t, "captures (%s): %d pending + %d accepted + %d missing\n", c.Currency, c.Pending.Count, c.Accepted.Count, c.Missing.Count)
			continue
		}
		fmt.Fprintf(&t, "captures listed (%s): %d = %d here + %d pending + %d accepted + %d missing\n",
			c.Currency, c.Listed.Count, c.Booked.Count, c.Pending.Count, c.Accepted.Count, c.Missing.Count)
	}
	for _, l := range s.Lines {
		l.write(&t)
	}
	if s.Since != nil {
		s.Since.write(&t)
	}
	if s.Digest != "" {
		fmt.Fprintf(&t, "\ndigest %s (run %d)\n", s.Digest, s.RunID)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

func (l Line) write(t *strings.Builder) {
	fmt.Fprintf(t, "\n%s (%s): %d, %s\n", strings.ReplaceAll(string(l.Name), "_", " "), l.Currency, l.Count,
		ledger.Money{Minor: l.Amount, Currency: l.Currency}.Decimal())
	for _, e := range l.Entries {
		entry := fmt.Sprintf("  %s  %-20s  %-34s  %s  %s %s", e.Since.In(ledger.Seoul()).Format(time.DateTime), e.OrderID, e.TransactionKey,
			ledger.Money{Minor: e.Amount, Currency: l.Currency}.Decimal(), e.Kind, e.Note)
		t.WriteString(strings.TrimRight(entry, " ") + "\n")
	}
	if l.More > 0 {
		fmt.Fprintf(t, "  and %d more\n", l.More)
	}
}

// write says what changed since the earlier closing run.
func (s *Since) write(t *strings.Builder) {
	fmt.Fprintf(t, "\nsince run %d of %s (%s): ", s.RunID, ledger.Stamp(s.StartedAt), s.Verdict)
	if s.Nothing() {
		t.WriteString("nothing changed\n")
		return
	}
	fmt.Fprintf(t, "%d new, %d gone, %d changed\n", s.New, s.Gone, s.Changed)
	for _, f := range s.Figures {
		amount := func(g Figure) string { return ledger.Money{Minor: g.Amount, Currency: f.Currency}.Decimal() }
		fmt.Fprintf(t, "  %-24s %s  %d, %s before; %d, %s now\n", strings.ReplaceAll(f.Name, "_", " "), f.Currency,
			f.Before.Count, amount(f.Before), f.After.Count, amount(f.After))
	}
	for _, c := range s.Entries {
		fmt.Fprintf(t, "  %s  %-20s  %-34s  %s: %s -> %s\n", c.At.In(ledger.Seoul()).Format(time.DateTime), c.OrderID,
			c.TransactionKey, c.Movement, c.Before, c.After)
	}
	if s.More > 0 {
		fmt.Fprintf(t, "  and %d more\n", s.More)
	}
}

// String says how a transaction stood, in a few words.
func (s *Stood) String() string {
	if s == nil {
		return "not there"
	}
	text := strings.ReplaceAll(string(s.Standing), "_", " ")
	if s.Listed != s.Booked || s.Listed == "" {
		return fmt.Sprintf("%s (listed %s, booked %s)", text, cmp.Or(s.Listed, "not"), cmp.Or(s.Booked, "not"))
	}
	return fmt.Sprintf("%s (%s)", text, s.Listed)
}
