package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/pgclient"
)

// adviceToImport ends the detail of a mismatch about money of an order that is not in our books.
const adviceToImport = "; if it was taken before the books were opened, daesa import takes it over"

// takeOver puts a payment of the system before us into the books, because something happened to it after they were
// opened and the gateway shows that it was taken before: the cancel is money of ours, and its payment may be missing
// only because nobody imported it. It reports whether it did. What the books will not take stays a mismatch.
func (s *Sweeper) takeOver(ctx context.Context, tx pgx.Tx, seen ledger.Observation) (r ledger.Recorded, done bool, err error) {
	if s.cfg.OpeningAt.IsZero() || s.cfg.foreign(seen.OrderID) || !pgclient.ValidOrderID(seen.OrderID) {
		return r, false, nil
	}
	if seen.Evidence == ledger.EvidenceCaptured && seen.CapturedAt.IsZero() {
		if seen.CapturedAt, err = mirroredCapture(ctx, tx, seen.PaymentKey); err != nil {
			return r, false, err
		}
	}
	if !s.before(seen) {
		return r, false, nil
	}
	in := ledger.Import{Order: ledger.Order{ID: seen.OrderID, Amount: seen.Total}, Seen: seen, OpeningAt: s.cfg.OpeningAt}
	if err := s.cfg.Ledger.CanImport(ctx, tx, in); err != nil {
		if refusedByBooks(err) {
			return r, false, nil
		}
		return r, false, err
	}
	r, err = s.cfg.Ledger.Import(ctx, tx, in)
	return r, err == nil, err
}

// before reports whether the payment belongs to the time before the opening. Money taken afterwards is ours to explain,
// whenever its window was opened.
func (s *Sweeper) before(seen ledger.Observation) bool {
	switch seen.Evidence {
	case ledger.EvidenceCaptured:
		return seen.CapturedAt.Before(s.cfg.OpeningAt) && !seen.CapturedAt.IsZero()
	case ledger.EvidenceVoided:
		return seen.Began(s.cfg.OpeningAt)
	case ledger.EvidenceOpen, ledger.EvidenceWaiting, ledger.EvidenceDead, ledger.EvidenceRefused, ledger.EvidenceUnprocessed,
		ledger.EvidenceLost, ledger.EvidenceUnrecognized:
	}
	return false
}

// refusedByBooks reports whether an import was turned down for what it is, not for want of a database.
func refusedByBooks(err error) bool {
	for _, refusal := range []error{
		ledger.ErrNotBefore, ledger.ErrNothingTaken, ledger.ErrContradicts, ledger.ErrOrderDiffers, ledger.ErrOrderTaken,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// mirroredCapture is when the list says that a payment's money was taken; zero when it does not.
func mirroredCapture(ctx context.Context, tx pgx.Tx, paymentKey string) (time.Time, error) {
	rows, err := tx.Query(ctx, `
		SELECT COALESCE(max(at), 'epoch') FROM mirror WHERE payment_key = @payment_key AND kind = 'capture' AND amount > 0`,
		pgx.StrictNamedArgs{"payment_key": paymentKey})
	if err != nil {
		return time.Time{}, fmt.Errorf("look for the capture of payment %s: %w", paymentKey, err)
	}
	at, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[time.Time])
	if err != nil || at.Unix() == 0 {
		return time.Time{}, err
	}
	return at, nil
}
