package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// item is one row of work in hand.
type item struct {
	WorkID         int64           `db:"work_id"`
	Kind           ledger.WorkKind `db:"kind"`
	PaymentKey     string          `db:"payment_key"`
	OrderID        string          `db:"order_id"`
	TransactionKey string          `db:"transaction_key"`
	RequestID      string          `db:"request_id"`
	Currency       ledger.Currency `db:"currency"`
	Amount         int64           `db:"amount"`
	OpenedAt       time.Time       `db:"opened_at"`
	Deadline       time.Time       `db:"deadline"`
	Attempts       int             `db:"attempts"`
	AskedBefore    time.Time       `db:"asked_before"` // when the question before this one was claimed
	LastAnswer     string          `db:"last_answer"`  // to the question before this one

	nextLook time.Time // at the latest, where the steps of the kind are not all there is to it
}

// atRisk is the money the row is about; without a currency when nobody has said.
func (i item) atRisk() ledger.Money { return ledger.Money{Minor: i.Amount, Currency: i.Currency} }

// lastChance reports whether no redelivery can settle the row any more.
func (i item) lastChance(now time.Time) bool { return !now.Before(i.Deadline) }

// claim takes due rows and puts them out of reach for the length of the lease, in one statement: two sweepers never
// hold the same row, and a sweeper that dies has only delayed it.
func (s *Sweeper) claim(ctx context.Context) ([]item, error) {
	now := s.cfg.now()
	rows, err := s.cfg.DB.Query(ctx, `
		WITH due AS MATERIALIZED (
			SELECT work_id, last_asked_at
			FROM work
			WHERE closed_at IS NULL AND due_at <= @now
				AND (@eager OR kind NOT IN ('cancel_claimed', 'cancel_listed') OR deadline <= @now)
				AND (kind <> 'parked' OR deadline <= @now)
			ORDER BY due_at
			LIMIT @slots
			FOR UPDATE SKIP LOCKED)
		UPDATE work w
		SET attempts = w.attempts + 1, last_asked_at = @now, due_at = @lease
		FROM due
		WHERE w.work_id = due.work_id
		RETURNING w.work_id, w.kind, w.payment_key, COALESCE(w.order_id, '') AS order_id,
			COALESCE(w.transaction_key, '') AS transaction_key, COALESCE(w.request_id, '') AS request_id,
			COALESCE(w.currency, '') AS currency, COALESCE(w.amount, 0) AS amount, w.opened_at, w.deadline, w.attempts,
			COALESCE(due.last_asked_at, w.opened_at) AS asked_before, w.last_answer`,
		pgx.StrictNamedArgs{
			"now": now, "eager": s.cfg.Eager, "slots": s.cfg.Slots, "lease": now.Add(s.cfg.Lease),
		})
	if err != nil {
		return nil, fmt.Errorf("claim due work: %w", err)
	}
	items, err := pgx.CollectRows(rows, pgx.RowToStructByName[item])
	if err != nil {
		return nil, fmt.Errorf("claim due work: %w", err)
	}
	return items, nil
}

// conclusion is what one question came to: the row stays open and is asked about again, or it closes.
type conclusion struct {
	result Result
	answer string
	close  ledger.Closing // "" = the row stays open
	again  time.Duration  // until the next question; 0 = as the kind's steps say
	// unasked gives the question back that the claim counted.
	unasked bool
}

// soon is how near a due time that somebody else set meanwhile must be to stand: a notice that came while we asked
// wants an answer now, not at the end of our schedule.
const soon = 45 * time.Second

// conclude records what the gateway said and notes it in the row, in one transaction. The record may close the row
// by itself; then the work is settled, whatever the conclusion was going to be.
func (s *Sweeper) conclude(ctx context.Context, i item, record func(tx pgx.Tx) (conclusion, error)) (Result, error) {
	var result Result
	err := postgres.InTx(ctx, s.cfg.DB, func(tx pgx.Tx) error {
		c, err := record(tx)
		if err != nil {
			return err
		}
		result = c.result
		open, err := s.note(ctx, tx, i, c)
		if err == nil && !open && c.close == "" {
			result = ResultSettled
		}
		return err
	})
	return result, err
}

// note writes the conclusion into the row, and tells whether it was still open.
func (s *Sweeper) note(ctx context.Context, tx pgx.Tx, i item, c conclusion) (open bool, err error) {
	now := s.cfg.now()
	due := nextDue(i.Kind, i.Attempts, now, i.Deadline, s.cfg.Eager)
	if !i.nextLook.IsZero() {
		due = earlier(due, i.nextLook)
	}
	if c.again > 0 {
		due = now.Add(c.again)
	}
	tag, err := tx.Exec(ctx, `
		UPDATE work
		SET last_answer = left(@answer, 200), attempts = attempts - CASE WHEN @unasked THEN 1 ELSE 0 END,
			due_at = CASE WHEN due_at < @soon THEN due_at ELSE @due END,
			closed_at = CASE WHEN @close <> '' THEN @now::timestamptz END,
			closed_as = NULLIF(@close, '')
		WHERE work_id = @work_id AND closed_at IS NULL`,
		pgx.StrictNamedArgs{
			"answer": c.answer, "soon": now.Add(soon), "now": now, "close": string(c.close), "work_id": i.WorkID,
			"due": due, "unasked": c.unasked,
		})
	if err != nil {
		return false, fmt.Errorf("note the answer to work %d: %w", i.WorkID, err)
	}
	return tag.RowsAffected() == 1, nil
}

// noted is conclude for a question that brought nothing to record.
func (s *Sweeper) noted(ctx context.Context, i item, c conclusion) (Result, error) {
	return s.conclude(ctx, i, func(pgx.Tx) (conclusion, error) { return c, nil })
}
