package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/pgclient"
)

// Errors of Replay.
var (
	// ErrNoDelivery means that there is no such delivery, or none any more.
	ErrNoDelivery = errors.New("there is no such delivery")
	// ErrNothingKept means that nothing is kept of what the delivery said: its payment was not in the books, it was none of
	// the gateway's, or its time is over.
	ErrNothingKept = errors.New("nothing is kept of what the delivery said")
	// ErrUnasked means that the gateway gave no answer. Nothing was written.
	ErrUnasked = errors.New("the gateway gave no answer about the payment")
)

// kept is what a replay needs of a delivery.
type kept struct {
	PaymentKey string    `db:"payment_key"`
	ReceivedAt time.Time `db:"received_at"`
	Outcome    Outcome   `db:"outcome"`
	Body       []byte    `db:"body"` // masked; nil where nothing is kept
}

// kept reads a delivery. ErrNoDelivery.
func (h *Handler) kept(ctx context.Context, id int64) (kept, error) {
	rows, err := h.cfg.DB.Query(ctx, `
		SELECT COALESCE(payment_key, '') AS payment_key, received_at, outcome, convert_to(body::text, 'UTF8') AS body
		FROM deliveries
		WHERE delivery_id = @delivery_id`, pgx.StrictNamedArgs{"delivery_id": id})
	if err != nil {
		return kept{}, fmt.Errorf("read delivery %d: %w", id, err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[kept])
	if errors.Is(err, pgx.ErrNoRows) {
		return kept{}, ErrNoDelivery
	}
	if err != nil {
		return kept{}, fmt.Errorf("read delivery %d: %w", id, err)
	}
	return found, nil
}

// Replayed is what taking a delivery up again comes to.
type Replayed struct {
	DeliveryID int64              `json:"delivery_id"`
	Was        Outcome            `json:"was"`                 // of the delivery when it came
	Outcome    Outcome            `json:"outcome"`             // of it now
	Reason     string             `json:"reason,omitempty"`    // one word, of an outcome that has one
	Word       string             `json:"gateway_says"`        // the gateway's own for the payment
	Recorded   ledger.Outcome     `json:"books_say,omitempty"` // what the books make of the gateway's answer; "" where they refuse it
	Detail     string             `json:"detail,omitempty"`    // of a contradiction, or why the books refuse
	Changes    []ledger.RowChange `json:"changes"`             // every row of the books that it adds or changes
	Applied    bool               `json:"applied"`             // it is written down; otherwise it was rolled back
}

// errRehearsed rolls back what was only to be seen.
var errRehearsed = errors.New("rehearsed")

// Replay takes a delivery up again, from what is kept of it: the gateway is asked about its payment now, with the slots of
// other notices, and what it says is recorded as what a person asked for. Unless it is to be kept it is rolled back. Unlike
// one that comes by itself it is no row among the deliveries, leaves no claim and is answered to nobody: it says what the
// books are missing, not what the gateway has sent. The secret of a deposit's notice is not kept and not compared again;
// it decides who is heard, never what is true. ErrNoDelivery, ErrNothingKept, ErrUnasked.
func (h *Handler) Replay(ctx context.Context, id int64, keep bool) (Replayed, error) {
	then, err := h.kept(ctx, id)
	if err != nil {
		return Replayed{}, err
	}
	d, err := h.again(then)
	if err != nil {
		return Replayed{}, err
	}
	asking, stop := context.WithTimeout(ctx, h.cfg.QueryBudget)
	defer stop()
	seen, err := h.cfg.Gateway.Query(asking, ledger.ChannelManual, d.paymentKey)
	if err != nil {
		return Replayed{}, fmt.Errorf("%w: %w", ErrUnasked, err)
	}
	done := Replayed{DeliveryID: id, Was: then.Outcome, Word: seen.Word}
	var recorded ledger.Recorded
	err = postgres.InTx(ctx, h.cfg.DB, func(tx pgx.Tx) (err error) {
		if recorded, done.Changes, err = h.cfg.Ledger.Rehearse(ctx, tx, seen); err == nil && !keep {
			err = errRehearsed
		}
		return err
	})
	switch {
	case errors.Is(err, postgres.ErrCommitUnknown):
		return Replayed{}, err
	case err != nil && !errors.Is(err, errRehearsed):
		v := failure(err)
		done.Outcome, done.Reason, done.Detail, done.Changes = v.outcome, v.reason, err.Error(), nil
		return done, nil
	}
	if keep {
		h.cfg.Ledger.Performed(seen, recorded)
	}
	v := verdict{outcome: OutcomeStatusIgnored}
	if d.notice.Family != pgclient.FamilyKnownOther {
		v = judge(d, seen, recorded)
	}
	done.Outcome, done.Reason, done.Recorded, done.Detail, done.Applied = v.outcome, v.reason, recorded.Outcome, recorded.Detail, keep
	return done, nil
}

// again reads what is kept of a delivery as if it had just come. ErrNothingKept.
func (h *Handler) again(then kept) (d delivery, err error) {
	if then.Body == nil || then.PaymentKey == "" || then.Outcome == OutcomeSignatureRejected {
		return d, ErrNothingKept
	}
	d = delivery{at: then.ReceivedAt, paymentKey: then.PaymentKey}
	if d.notice, err = h.cfg.Gateway.ReadNotice(http.Header{}, then.Body); err != nil {
		return d, fmt.Errorf("%w: %w", ErrNothingKept, err)
	}
	if d.notice.Kind == pgclient.NoticeOther { // its body was too large to be kept
		return d, ErrNothingKept
	}
	return h.sort(d, pgclient.SignatureAbsent), nil
}
