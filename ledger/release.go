package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Release lets a payment in doubt go on being asked about without holding its order: the caller has just asked the
// gateway, which knows no such payment. Anybody can name a key that never was, and the buyer must be able to pay with
// the right one. It reports whether the payment let go now: only one whose attempt began more than UndecidedAgeMax
// ago does, which is read again under the locks of the order and the payment.
//
// No doubt ends here. The payment stays unknown and its work stays open; money that shows up after all takes the order
// back, or is surplus where another payment holds the order by then.
func (l *Ledger) Release(ctx context.Context, tx pgx.Tx, paymentKey string) (released bool, err error) {
	row, err := lock(ctx, tx, paymentKey)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("release the order of payment %s: %w", paymentKey, err)
	}
	now := l.now()
	if !row.payment().releasable(now) {
		return false, nil
	}
	if _, err := tx.Exec(ctx, `UPDATE payments SET surplus = true, updated_at = @now WHERE payment_key = @payment_key`,
		pgx.StrictNamedArgs{"now": now, "payment_key": paymentKey}); err != nil {
		return false, fmt.Errorf("release the order of payment %s: %w", paymentKey, err)
	}
	return true, nil
}

// releasable reports whether the payment holds its order by nothing but an old doubt.
func (p Payment) releasable(now time.Time) bool {
	return p.Status.Undecided() && !p.Surplus && now.Sub(p.IntendedAt) > UndecidedAgeMax
}

// takesBack reports whether a payment that does not hold its order shall hold it from now on: its money has come, or an
// account to pay into was issued, no other payment holds the order, and none of its money waits in suspense yet. A void
// moves nothing and takes nothing.
func (p Payment) takesBack(d Decision, holder string) bool {
	holds := d.To.Live() && !d.To.Undecided() && d.Event != EventVoided
	return p.Surplus && holds && holder == "" && len(p.Captures) == 0
}
