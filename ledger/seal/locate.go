package seal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// errFound ends a walk that has found what it looked for.
var errFound = errors.New("found")

// firstWrong holds a section against the marks of its transactions. The head proves the marks; where they were changed
// too, all that can be said is which day is wrong.
func firstWrong(ctx context.Context, tx pgx.Tx, h ledger.Head) (Break, error) {
	whole, err := marksAreWhole(ctx, tx, h)
	if err != nil {
		return Break{}, err
	}
	if !whole {
		return atHead(h, "what it seals was changed somewhere in the ids from %d to %d, and so were its marks", h.FromID+1, h.UpToID), nil
	}
	sealed, read := marks{more: partsOf(ctx, tx, h.Sequence), id: h.FromID}, newSection(h.FromID)
	left, err := sealed.next()
	if err != nil {
		return Break{}, err
	}
	found := atHead(h, "it counts other transactions, entries or debits than those it seals")
	err = eachOf(ctx, tx, h.FromID, h.UpToID, func(t *ledger.JournalTransaction) (err error) {
		switch leaf := read.leaf(t); {
		case left && sealed.fits(t.ID, leaf):
			left, err = sealed.next()
			return err
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

// marksAreWhole reports whether the marks of a head are those that it was signed with.
func marksAreWhole(ctx context.Context, tx pgx.Tx, h ledger.Head) (bool, error) {
	sum, more := sha256.New(), partsOf(ctx, tx, h.Sequence)
	for {
		part, err := more()
		if err != nil {
			return false, err
		}
		if part == nil {
			return bytes.Equal(sum.Sum(nil), h.Marks[:]), nil
		}
		sum.Write(part)
	}
}

// partsOf hands over the marks of a head part by part, as they were kept, and nil after the last: a section may be years.
func partsOf(ctx context.Context, tx pgx.Tx, sequence int64) func() ([]byte, error) {
	last := int32(math.MinInt32)
	return func() (part []byte, err error) {
		err = tx.QueryRow(ctx, `
			SELECT part, marks FROM journal_marks
			WHERE sequence = @sequence AND part > @last AND marks <> ''
			ORDER BY part
			LIMIT 1`, pgx.StrictNamedArgs{"sequence": sequence, "last": last}).Scan(&last, &part)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the marks of head %d: %w", sequence, err)
		}
		return part, nil
	}
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
