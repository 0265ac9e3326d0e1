package seal

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"daesa/ledger"
)

// Break is one thing that is wrong.
type Break struct {
	TransactionID int64  // the journal transaction; 0 when it is none, or not known
	Head          int64  // the head that no longer fits, by its sequence number; 0 when none is concerned
	What          string // in words
	position      int64
	derived       bool // seen by comparing: told after what the transaction itself or its mark shows
	state         bool // in a table beside the journal: told after what is wrong in the journal itself
}

// String writes the break as one line.
func (b Break) String() string {
	switch {
	case b.TransactionID != 0 && b.Head != 0:
		return fmt.Sprintf("transaction %d (head %d): %s", b.TransactionID, b.Head, b.What)
	case b.TransactionID != 0:
		return fmt.Sprintf("transaction %d: %s", b.TransactionID, b.What)
	case b.Head != 0:
		return fmt.Sprintf("head %d: %s", b.Head, b.What)
	}
	return b.What
}

// Report is what was looked at, and what came of it.
type Report struct {
	Transactions int64
	Entries      int64
	LastID       int64 // of the newest transaction
	Heads        int
	SealedUpTo   int64 // the newest head ends with this id
	SealedDay    ledger.Day
	Unsealed     int64 // transactions after it
	Signed       bool  // the signatures were checked
	Books        []Table
	Breaks       []Break // the first ones, the first of all first
	More         int64   // how many more were seen than are listed
	Warnings     []string
	chain        []ledger.Head
}

// Table is how many rows of a table beside the journal were held against it.
type Table struct {
	Name string
	Rows int64
}

// breaksKept bounds what a report lists: the first is what counts.
const breaksKept = 50

func (r *Report) found(b Break) {
	if len(r.Breaks) >= 4*breaksKept {
		r.More++
		return
	}
	r.Breaks = append(r.Breaks, b)
}

func (r *Report) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// settle puts the breaks in order: the journal's own by where they are, then those of the tables beside it, which have no
// order, as they were looked for.
func (r *Report) settle() {
	slices.SortStableFunc(r.Breaks, func(a, b Break) int {
		return cmp.Or(after(a.state, b.state), cmp.Compare(a.position, b.position), after(a.derived, b.derived))
	})
	if len(r.Breaks) > breaksKept {
		r.More += int64(len(r.Breaks) - breaksKept)
		r.Breaks = r.Breaks[:breaksKept]
	}
}

// after orders what holds the mark behind what does not.
func after(a, b bool) int {
	switch {
	case a && !b:
		return 1
	case b && !a:
		return -1
	}
	return 0
}

// atEntry places a break at a transaction.
func atEntry(id, head int64, format string, args ...any) Break {
	return Break{TransactionID: id, Head: head, What: fmt.Sprintf(format, args...), position: id}
}

// atHead places a break before the first transaction of the head's section.
func atHead(h ledger.Head, format string, args ...any) Break {
	return Break{Head: h.Sequence, What: "of " + string(h.Day) + ": " + fmt.Sprintf(format, args...), position: h.FromID}
}

// atEnd places a break behind every transaction.
func atEnd(head int64, format string, args ...any) Break {
	return Break{Head: head, What: fmt.Sprintf(format, args...), position: math.MaxInt64}
}

// inState places a break in a table beside the journal.
func inState(id int64, format string, args ...any) Break {
	return Break{TransactionID: id, What: fmt.Sprintf(format, args...), state: true}
}

// Whole reports whether nothing is wrong.
func (r *Report) Whole() bool { return len(r.Breaks) == 0 }

// WriteText prints the report for people: what was covered first, since a verdict over nothing is worth nothing.
func (r *Report) WriteText(w io.Writer) error {
	signed := "signatures not checked"
	if r.Signed {
		signed = "signatures checked"
	}
	lines := []string{
		fmt.Sprintf("journal    %d transactions, %d entries, up to id %d", r.Transactions, r.Entries, r.LastID),
	}
	if r.Heads == 0 {
		lines = append(lines, "heads      none")
	} else {
		lines = append(lines, fmt.Sprintf("heads      %d up to %s (%s): ids up to %d are sealed, %d transactions are not yet",
			r.Heads, r.SealedDay, signed, r.SealedUpTo, r.Unsealed))
	}
	for _, t := range r.Books {
		lines = append(lines, fmt.Sprintf("%-10s %d rows", t.Name, t.Rows))
	}
	for _, warning := range r.Warnings {
		lines = append(lines, "warning    "+warning)
	}
	for i, b := range r.Breaks {
		name := "broken     "
		if i == 0 {
			name = "BROKEN     "
		}
		lines = append(lines, name+b.String())
	}
	if r.More > 0 {
		lines = append(lines, fmt.Sprintf("           and %d more", r.More))
	}
	if r.Whole() {
		lines = append(lines, "verdict    whole")
	} else {
		lines = append(lines, "verdict    BROKEN, first at "+r.Breaks[0].String())
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return fmt.Errorf("print the report: %w", err)
		}
	}
	return nil
}
