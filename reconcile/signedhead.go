package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// Sealed says how what our books have of a signed statement stands to the heads of the journal. It is worked out from the
// heads that there are: a head is never changed, so once a signature's bookings are sealed they stay so, by the same head.
type Sealed string

// The ways.
const (
	SealedAtSigning  Sealed = "at_signing" // all under the head that the signature names
	SealedSince      Sealed = "since"      // all under a head that was made later
	SealedNotYet     Sealed = "not_yet"    // something of it was booked after the newest head
	SealedUnrecorded Sealed = "unrecorded" // signed when it was not kept how far the bookings reach
)

// SealedWays lists every way.
func SealedWays() []Sealed {
	return []Sealed{SealedAtSigning, SealedSince, SealedNotYet, SealedUnrecorded}
}

// sealing is how far the bookings of a signed statement reach in the journal, and the heads over them.
type sealing struct {
	BookedUpTo *int64  `db:"booked_up_to"`
	Then       bool    `db:"sealed_then"`
	By         *string `db:"sealed_by"`
}

// sealingColumns are those of sealing, for a signature x. The head that seals the bookings is the first that reaches the
// newest of them.
const sealingColumns = `x.booked_up_to,
			COALESCE((SELECT h.up_to_id >= x.booked_up_to FROM journal_heads h WHERE encode(h.hash, 'hex') = x.journal_head LIMIT 1), false) AS sealed_then,
			(SELECT encode(h.hash, 'hex') FROM journal_heads h WHERE h.up_to_id >= x.booked_up_to ORDER BY h.up_to_id, h.sequence LIMIT 1) AS sealed_by`

func (s sealing) sealed() Sealed {
	switch {
	case s.BookedUpTo == nil:
		return SealedUnrecorded
	case s.Then:
		return SealedAtSigning
	case s.By != nil:
		return SealedSince
	}
	return SealedNotYet
}

// bookedUpTo is the newest journal transaction among the bookings of what the day says now, however late they were booked;
// 0 when it has none. A capture that was booked more than once counts with the newest.
func bookedUpTo(ctx context.Context, tx pgx.Tx, day ledger.Day) (int64, error) {
	rows, err := tx.Query(ctx, `
		SELECT COALESCE(max(CASE d.movement
			WHEN 'cancel' THEN (SELECT j.transaction_id FROM journal_transactions j WHERE j.kind = 'cancel' AND j.reference = d.transaction_key)
			ELSE (SELECT max(j.transaction_id) FROM journal_transactions j WHERE j.payment_key = d.payment_key AND j.kind = 'capture')
			END), 0)
		FROM day_rows d
		WHERE d.day = @day::date AND d.gone_run IS NULL AND d.booked IS NOT NULL`, pgx.StrictNamedArgs{"day": string(day)})
	if err != nil {
		return 0, fmt.Errorf("look how far the bookings of %s reach: %w", day, err)
	}
	upTo, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	if err != nil {
		return 0, fmt.Errorf("look how far the bookings of %s reach: %w", day, err)
	}
	return upTo, nil
}

// newestHead is the hash of the newest head; nil when nothing is sealed.
func newestHead(ctx context.Context, tx pgx.Tx) (*string, error) {
	head, err := ledger.LastHead(ctx, tx)
	if errors.Is(err, ledger.ErrNotSealed) {
		return nil, nil //nolint:nilnil // a journal without a head is a state of its own
	}
	if err != nil {
		return nil, err
	}
	hash := head.Hash.String()
	return &hash, nil
}
