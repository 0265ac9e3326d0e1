package report

import (
	"context"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/reconcile"
)

// signedNotSeen is the word for a signed day of which it cannot be told now whether it says what was signed.
const signedNotSeen = "not_seen"

// signed says how the newest audit of a day that saw it whole stands to its newest signature.
func (d auditedDay) signed() reconcile.Signed {
	switch {
	case d.SignedBy == nil:
		return reconcile.SignedNot
	case d.Stands != nil && *d.Stands:
		return reconcile.SignedYes
	}
	return reconcile.SignedChanged
}

// signedNow says how what both books say now stands to the day's newest signature.
func (d auditedDay) signedNow(said reconcile.Said) Cell {
	switch {
	case d.SignedBy == nil:
		return word(reconcile.SignedNot)
	case said.Facts == "":
		return Word(signedNotSeen)
	case said.Facts == d.SignedFacts:
		return word(reconcile.SignedYes)
	}
	return word(reconcile.SignedChanged)
}

// signedCells are how the day stands to its newest signature, by whom that is and when it was given.
func (d auditedDay) signedCells(how Cell) []Cell {
	cells := []Cell{how, nil, moment(d.SignedAt)}
	if d.SignedBy != nil {
		cells[1] = text(*d.SignedBy)
	}
	return cells
}

func signedColumns() []Column {
	return []Column{{"signed", TypeWord}, {"signed_by", TypeText}, {"signed_at", TypeInstant}}
}

func signatureColumns() []Column {
	return []Column{
		{"signed_at", TypeInstant},
		{"signed_by", TypeText},
		{"run_id", TypeCount},
		{"digest", TypeText},
		{"head", TypeText},
		{"sealed", TypeWord},
		{"sealed_by", TypeText},
		{"note", TypeText},
	}
}

// signatureRows are every signature of a day, oldest first.
func signatureRows(ctx context.Context, tx pgx.Tx, day ledger.Day) ([]Row, error) {
	all, err := reconcile.Signatures(ctx, tx, day)
	if err != nil {
		return nil, err
	}
	hash := func(h *string) Cell {
		if h == nil {
			return nil
		}
		return text(*h)
	}
	rows := make([]Row, len(all))
	for i, s := range all {
		rows[i] = Row{
			instant(s.SignedAt), text(s.SignedBy), Count(s.RunID), text(s.Digest), hash(s.JournalHead), word(s.Sealed), hash(s.SealedBy), text(s.Note),
		}
	}
	return rows, nil
}

func changeColumns() []Column {
	return []Column{
		{"at", TypeInstant},
		{"movement", TypeWord},
		{"order_id", TypeText},
		{"payment_key", TypeText},
		{"transaction_key", TypeText},
		{"standing_before", TypeWord},
		{"listed_before", TypeText},
		{"booked_before", TypeText},
		{"standing_after", TypeWord},
		{"listed_after", TypeText},
		{"booked_after", TypeText},
	}
}

// changeRows are what the newest kept audit of the day found otherwise than the one before it: as many as it kept.
func changeRows(since *reconcile.Since) []Row {
	if since == nil {
		return nil
	}
	rows := make([]Row, len(since.Entries))
	for i, c := range since.Entries {
		rows[i] = append(append(Row{
			instant(c.At), word(c.Movement), text(c.OrderID), text(c.PaymentKey), text(c.TransactionKey),
		}, stood(c.Before)...), stood(c.After)...)
	}
	return rows
}

func stood(s *reconcile.Stood) []Cell {
	if s == nil {
		return []Cell{nil, nil, nil}
	}
	return []Cell{word(s.Standing), text(s.Listed), text(s.Booked)}
}

// sinceFacts count what changed since the audit before: transactions that are new, gone, or otherwise.
func sinceFacts(since *reconcile.Since) []Fact {
	if since == nil {
		return []Fact{{"since_run_id", nil}, {"new", nil}, {"gone", nil}, {"changed", nil}}
	}
	return []Fact{
		{"since_run_id", Count(since.RunID)},
		{"new", Count(since.New)},
		{"gone", Count(since.Gone)},
		{"changed", Count(since.Changed)},
	}
}
