package ledger

import (
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
)

// WorkKind is a kind of answer that is still owed.
type WorkKind string

// The kinds of work.
const (
	WorkConfirmUnknown   WorkKind = "confirm_unknown"    // was our confirm done?
	WorkCancelClaimed    WorkKind = "cancel_claimed"     // a notice said canceled and could not be applied
	WorkCancelListed     WorkKind = "cancel_listed"      // the gateway's list has a cancel that our books lack
	WorkCancelInProgress WorkKind = "cancel_in_progress" // the gateway has not finished a cancel
	WorkDepositWatch     WorkKind = "deposit_watch"      // a deposit may still fall back
	WorkCancelRequest    WorkKind = "cancel_request"     // was our cancel done?
	WorkParked           WorkKind = "parked"             // a notice for a payment never seen
)

// WorkKinds lists every kind.
func WorkKinds() []WorkKind {
	return []WorkKind{
		WorkConfirmUnknown, WorkCancelClaimed, WorkCancelListed, WorkCancelInProgress,
		WorkDepositWatch, WorkCancelRequest, WorkParked,
	}
}

// Closing says how work ended.
type Closing string

// The ways work ends.
const (
	ClosedSettled Closing = "settled" // the books have the answer
	ClosedRefuted Closing = "refuted" // the gateway never confirmed the claim
	ClosedExpired Closing = "expired" // nothing came of it: a parked key, a watch that ran out
	ClosedAborted Closing = "aborted" // the gateway gave the cancel up
)

// Closings lists every way work ends.
func Closings() []Closing {
	return []Closing{ClosedSettled, ClosedRefuted, ClosedExpired, ClosedAborted}
}

// When the first question about each kind of work is due, and how long until the answer is overdue.
const (
	lostDueAfter = 2 * time.Second
	// UndecidedAgeMax is the age past which an unknown payment is also a mismatch. Asking goes on.
	UndecidedAgeMax = time.Hour
	progressDue     = time.Minute
	progressMax     = 14 * 24 * time.Hour
)

// Work is one answer to open; the same subject open already keeps its row, with the earlier due time.
type Work struct {
	Kind           WorkKind
	PaymentKey     string
	OrderID        string
	TransactionKey string
	RequestID      string
	AtRisk         Money
	DueAt          time.Time
	Deadline       time.Time
}

// QueueWork opens work, or makes the open row of the same subject due no later. A listed cancel outranks one
// in progress, which outranks a mere claim: the row then carries the stronger kind. A deadline stays what it was, but
// for the watch over a deposit: one that began when the account was still unpaid lasts as long as the deposit's own.
func QueueWork(b *pgx.Batch, w Work, now time.Time) {
	var minor *int64
	if w.AtRisk.Currency != "" {
		minor = &w.AtRisk.Minor
	}
	b.Queue(`
		INSERT INTO work AS w (kind, payment_key, order_id, transaction_key, request_id, currency, amount, opened_at, due_at, deadline)
		VALUES (@kind, @payment_key, NULLIF(@order_id, ''), NULLIF(@transaction_key, ''), NULLIF(@request_id, ''),
			NULLIF(@currency, ''), @amount, @now, @due_at, @deadline)
		ON CONFLICT (payment_key, subject) WHERE closed_at IS NULL
		DO UPDATE SET due_at = LEAST(w.due_at, excluded.due_at),
			deadline = CASE WHEN excluded.kind = 'deposit_watch' THEN GREATEST(w.deadline, excluded.deadline) ELSE w.deadline END,
			order_id = COALESCE(w.order_id, excluded.order_id),
			currency = COALESCE(excluded.currency, w.currency), amount = COALESCE(excluded.amount, w.amount),
			kind = CASE WHEN w.kind = 'cancel_listed' OR excluded.kind = 'cancel_claimed' THEN w.kind ELSE excluded.kind END`,
		postgres.Args{
			"kind": w.Kind, "payment_key": w.PaymentKey, "order_id": w.OrderID, "transaction_key": w.TransactionKey,
			"request_id": w.RequestID, "currency": w.AtRisk.Currency, "amount": minor, "now": now,
			"due_at": w.DueAt, "deadline": w.Deadline,
		})
}

// QueueClose closes open work of a payment: the kinds given, for the transaction keys given (nil: every key,
// and rows without one).
func QueueClose(b *pgx.Batch, paymentKey string, kinds []WorkKind, transactionKeys []string, as Closing, now time.Time) {
	b.Queue(`
		UPDATE work SET closed_at = @now, closed_as = @closed_as
		WHERE payment_key = @payment_key AND closed_at IS NULL AND kind = ANY(@kinds)
			AND (@every OR transaction_key = ANY(@transaction_keys))`,
		postgres.Args{
			"now": now, "closed_as": as, "payment_key": paymentKey, "kinds": kinds,
			"every": transactionKeys == nil, "transaction_keys": transactionKeys,
		})
}

// cancelKinds are the kinds of work that wait for a cancel of the gateway's. A claim that was parked while the
// payment's first intent was being committed is one of them.
func cancelKinds() []WorkKind {
	return []WorkKind{WorkCancelClaimed, WorkCancelListed, WorkCancelInProgress, WorkParked}
}

// queueWork closes what the decision settles and opens what it leaves owing.
func (e *effects) queueWork(b *pgx.Batch, o Observation, now time.Time) {
	p := e.after
	if e.before.Status.Undecided() && !p.Status.Undecided() {
		QueueClose(b, p.Key, []WorkKind{WorkConfirmUnknown}, nil, ClosedSettled, now)
	}
	if p.Status.Undecided() && e.decision.Verdict == goes {
		QueueWork(b, Work{
			Kind: WorkConfirmUnknown, PaymentKey: p.Key, OrderID: p.OrderID, AtRisk: p.Amount,
			DueAt: now.Add(lostDueAfter), Deadline: p.UndecidedSince.Add(UndecidedAgeMax),
		}, now)
	}
	e.queueCancelWork(b, o, now)
	e.queueDepositWork(b, now)
}

func (e *effects) queueCancelWork(b *pgx.Batch, o Observation, now time.Time) {
	p := e.after
	if o.Evidence.HasObject() && len(p.Cancels) > 0 && !e.decision.Conflict() {
		keys := make([]string, 0, len(p.Cancels))
		for _, c := range p.Cancels {
			keys = append(keys, c.TransactionKey)
		}
		QueueClose(b, p.Key, cancelKinds(), keys, ClosedSettled, now)
		if len(e.decision.Open) == 0 {
			queueCloseUnnamed(b, p, o.AskedAt, now)
		}
	}
	if len(e.decision.Ended) > 0 {
		QueueClose(b, p.Key, cancelKinds(), e.decision.Ended, ClosedAborted, now)
	}
	for _, c := range e.decision.Open {
		QueueWork(b, Work{
			Kind: WorkCancelInProgress, PaymentKey: p.Key, OrderID: p.OrderID, TransactionKey: c.TransactionKey,
			AtRisk: c.Amount, DueAt: now.Add(progressDue), Deadline: now.Add(progressMax),
		}, now)
	}
}

// queueCloseUnnamed closes a claim that named no cancel, once the gateway was asked after it was made, every cancel it
// shows is booked, and the claim can have been about one of them: nothing is left, or one is as young as the claim. An
// answer that shows only what was booked before proves nothing.
func queueCloseUnnamed(b *pgx.Batch, p Payment, askedAt, now time.Time) {
	b.Queue(`
		UPDATE work w SET closed_at = @now, closed_as = 'settled'
		WHERE w.payment_key = @payment_key AND w.closed_at IS NULL AND w.kind IN ('cancel_claimed', 'parked')
			AND w.transaction_key IS NULL AND w.opened_at <= @asked_at
			AND (@nothing_left OR EXISTS (SELECT 1 FROM cancels c
				WHERE c.payment_key = w.payment_key
					AND GREATEST(c.recorded_at, c.canceled_at) >= LEAST(w.opened_at, w.notice_failed_at)))`,
		postgres.Args{
			"now": now, "payment_key": p.Key, "asked_at": askedAt, "nothing_left": p.Status == StatusCanceled,
		})
}
