package webhook

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/pgclient"
)

// stored is what became of a delivery when it was stored.
type stored struct {
	DeliveryID int64
	Outcome    Outcome
	PaymentKey string
	NotParked  bool
}

// parkedMax bounds how many claims of payments never seen are kept: a stranger can make them up.
const parkedMax = 10_000

// store keeps the delivery. Its one round trip also decides everything that needs no question.
func (h *Handler) store(ctx context.Context, d delivery) (stored, error) {
	if d.settled.outcome != "" {
		return stored{Outcome: d.settled.outcome}, h.storeSettled(ctx, d)
	}
	s := shapeOf(d.notice)
	rows, err := h.cfg.DB.Query(ctx, h.statements[s], s.args(d))
	if err != nil {
		return stored{}, fmt.Errorf("store delivery: %w", err)
	}
	kept, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[stored])
	if err != nil {
		return stored{}, fmt.Errorf("store delivery: %w", err)
	}
	return kept, nil
}

// storeSettled keeps a delivery that was decided without the books. It names no payment that could be in them, so its body
// is not kept.
func (h *Handler) storeSettled(ctx context.Context, d delivery) error {
	n := d.notice
	_, err := h.cfg.DB.Exec(ctx, `
		INSERT INTO deliveries (received_at, transmission_id, retried_count, sent_at, source, event_type, word,
			body_hash, body_bytes, outcome, reason, status, answered_at)
		VALUES (@now, NULLIF(@transmission_id, ''), @retried_count, @sent_at, @source, @event_type, @word,
			@body_hash, @body_bytes, @outcome, @reason, @status, @now)`,
		postgres.Args{
			"now": d.at, "transmission_id": n.TransmissionID, "retried_count": n.RetriedCount, "sent_at": postgres.NullTime(n.SentAt),
			"source": d.source, "event_type": n.EventType, "word": n.Word, "body_hash": d.hash[:], "body_bytes": d.size,
			"outcome": d.settled.outcome, "reason": d.settled.reason, "status": d.settled.httpStatus(),
		})
	if err != nil {
		return fmt.Errorf("store delivery: %w", err)
	}
	return nil
}

// shape is how a notice names its payment, and whether it is of a cancel. Each has a statement of its own: notices are
// cheap to send, so those that lead to nothing have to be cheap to answer, and what a kind of notice cannot lead to would
// be set up for each one, and found to be nothing, by the database.
type shape struct {
	by      subject
	ignored bool // a status that is no cancel
}

// subject is what a notice names its payment by.
type subject string

const (
	subjectPayment subject = "payment" // its key
	subjectOrder   subject = "order"   // the callbacks of a deposit
	subjectWork    subject = "work"    // the one kind that names only a cancel
)

func shapeOf(n pgclient.Notice) shape {
	s := shape{by: subjectPayment, ignored: n.Family == pgclient.FamilyKnownOther}
	switch n.Kind {
	case pgclient.NoticeDepositCallback:
		s.by = subjectOrder
	case pgclient.NoticeCancelChanged:
		s.by = subjectWork
	case pgclient.NoticeStatusChanged, pgclient.NoticeSigned, pgclient.NoticeOther:
	}
	return s
}

// statements are those of every shape.
func statements() map[shape]string {
	all := make(map[shape]string)
	for _, by := range []subject{subjectPayment, subjectOrder, subjectWork} {
		for _, ignored := range []bool{true, false} {
			s := shape{by, ignored}
			all[s] = s.statement()
		}
	}
	return all
}

// parks reports whether the payment may turn out never to have been seen. By work only what is known is found.
func (s shape) parks() bool { return !s.ignored && s.by != subjectWork }

// statement keeps a delivery and decides everything that needs no question to the gateway, in one statement: one round
// trip, one commit. It finds the payment that the notice is about, works out the outcome, and makes the work due that a
// status calls for, or parks the claim of a payment never seen.
func (s shape) statement() string {
	sql := "WITH " + s.subject() + paymentPart + decisionPart + deliveryPart
	notParked := "false"
	if s.ignored {
		sql += watchedPart
	}
	if s.ignored && s.by == subjectWork {
		sql += hurriedPart
	}
	if s.parks() {
		sql += parkedPart
		notParked = "d.outcome = 'payment_not_found' AND NOT (SELECT r.left FROM room r)"
	}
	return sql + `
	SELECT delivery.delivery_id, d.outcome, COALESCE(d.payment_key, '') AS payment_key, ` + notParked + ` AS not_parked
	FROM decision d
	CROSS JOIN delivery`
}

// args are what the parts of the statement name.
func (s shape) args(d delivery) postgres.Args {
	n := d.notice
	salt, salted := d.saltedSecret()
	args := postgres.Args{
		"payment_key": n.PaymentKey, "order_id": n.OrderID, "named": d.named, "by_order": s.by == subjectOrder, "by_work": s.by == subjectWork,
		"salt": salt, "salted": salted, "foreign": d.foreign, "no_cancel": s.ignored,
		"now": d.at, "transmission_id": n.TransmissionID, "retried_count": n.RetriedCount, "sent_at": postgres.NullTime(n.SentAt),
		"source": d.source, "event_type": n.EventType, "word": n.Word, "body": d.masked, "body_hash": d.hash[:], "body_bytes": d.size,
	}
	if s.ignored {
		args["contradicted"], args["told_at"] = contradicted(n.Claims), postgres.NullTime(d.toldAt())
	}
	if s.parks() {
		clock := d.clock()
		args["parked_max"], args["claimed"] = parkedMax, claimed(d.named[:min(len(d.named), claimsMax)])
		args["deadline"], args["notice_attempt"], args["notice_next_at"] = clock.lastChance, clock.attempt, clock.next
	}
	return args
}
