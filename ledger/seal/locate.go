package seal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// errFound ends a walk that has found what it looked for.
var errFound = errors.New("found")

// firstWrong holds a section against the marks of its transactions. The head proves the marks; where they were changed
// too, all that can be said is which day is wrong.
func firstWrong(ctx context.Context, tx pgx.Tx, h ledger.Head) (Break, error) {
	kept, err := readMarks(ctx, tx, h.Sequence)
	if err != nil {
		return Break{}, err
	}
	if sha256.Sum256(kept) != h.Marks {
		return atHead(h, "what it seals was changed somewhere in the ids from %d to %d, and so were its marks", h.FromID+1, h.UpToID), nil
	}
	sealed, read := marks{rest: kept, id: h.FromID}, newSection(h.FromID)
	left := sealed.next()
	found := atHead(h, "it counts other transactions, entries or debits than those it seals")
	err = eachOf(ctx, tx, h.FromID, h.UpToID, func(t *ledger.JournalTransaction) error {
		switch leaf := read.leaf(t); {
		case left && sealed.fits(t.ID, leaf):
			left = sealed.next()
			return nil
		case left && sealed.id < t.ID:
			found = atEntry(sealed.id, h.Sequence, "it was sealed and is gone")
		case left && sealed.id == t.ID:
			found = atEntry(t.ID, h.Sequence, "it was changed after it was sealed; now it is %s", describe(t))
		default:
			found = atEntry(t.ID, h.Sequence, "it was not there when its day was sealed: %s", describe(t))
		}
		return errFound
	})
	if stray, isStray := errors.AsType[orphan](err); isStray {
		return atEntry(stray.id, h.Sequence, "it has entries and does not exist"), nil
	}
	if err != nil && !errors.Is(err, errFound) {
		return Break{}, err
	}
	if err == nil && left {
		found = atEntry(sealed.id, h.Sequence, "it was sealed and is gone")
	}
	return found, nil
}

func readMarks(ctx context.Context, tx pgx.Tx, sequence int64) ([]byte, error) {
	rows, err := tx.Query(ctx, `SELECT marks FROM journal_marks WHERE sequence = @sequence ORDER BY part`,
		pgx.StrictNamedArgs{"sequence": sequence})
	if err != nil {
		return nil, fmt.Errorf("read the marks of head %d: %w", sequence, err)
	}
	parts, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, fmt.Errorf("read the marks of head %d: %w", sequence, err)
	}
	return bytes.Join(parts, nil), nil
}

// describe writes a transaction for people.
func describe(t *ledger.JournalTransaction) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s", t.Kind.Bytes, t.Reference.Bytes)
	for _, l := range t.Lines {
		fmt.Fprintf(&text, ", %s %s", l.Account.Bytes, ledger.Money{Minor: l.Amount, Currency: ledger.Currency(l.Currency.Bytes)})
	}
	return text.String()
}
