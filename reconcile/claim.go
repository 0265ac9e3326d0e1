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
	NoticeNextAt   *time.Time      `db:"notice_next_at"`

	nextLook time.Time // at the latest, where the steps of the kind are not all there is to it
}

// atRisk is the money the row is about; without a currency when nobody has said.
func (i item) atRisk() ledger.Money { return ledger.Money{Minor: i.Amount, Currency: i.Currency} }

// lastChance reports whether no redelivery can settle the row any more.
func (i item) lastChance(now time.Time) bool { return !now.Before(i.Deadline) }

// takeRows ends a statement that takes rows of work, as due has them: it puts them out of reach for the length of the
// lease, counts the question, and returns them.
const takeRows = `
		UPDATE work w
		SET attempts = w.attempts + 1, last_asked_at = @now, due_at = @lease
		FROM due
		WHERE w.work_id = due.work_id
		RETURNING w.work_id, w.kind, w.payment_key, COALESCE(w.order_id, '') AS order_id,
			COALESCE(w.transaction_key, '') AS transaction_key, COALESCE(w.request_id, '') AS request_id,
			COALESCE(w.currency, '') AS currency, COALESCE(w.amount, 0) AS amount, w.opened_at, w.deadline, w.attempts,
			COALESCE(due.last_asked_at, w.opened_at) AS asked_before, w.last_answer, w.notice_next_at`

// claim takes due rows and puts them out of reach for the length of the lease, in one statement: two sweepers never
// hold the same row, and a sweeper that dies has only delayed it. What notices alone claim is taken by [Sweeper.claimed]; what
// is parked costs no question and takes the room that is left.
func (s *Sweeper) claim(ctx context.Context, most int) ([]item, error) {
	now := s.cfg.now()
	return s.take(ctx, `
		WITH owed AS MATERIALIZED (
			SELECT work_id, last_asked_at
			FROM work
			WHERE closed_at IS NULL AND kind NOT IN ('cancel_claimed', 'parked') AND due_at <= @now
				AND (@eager OR kind <> 'cancel_listed' OR deadline <= @now)
			ORDER BY due_at
			LIMIT @most
			FOR UPDATE SKIP LOCKED
		), parked AS MATERIALIZED (
			SELECT work_id, last_asked_at
			FROM work
			WHERE closed_at IS NULL AND kind = 'parked' AND due_at <= @now AND deadline <= @now
			ORDER BY due_at
			LIMIT @most - (SELECT count(*) FROM owed)
			FOR UPDATE SKIP LOCKED
		), due AS (
			SELECT work_id, last_asked_at FROM owed UNION ALL SELECT work_id, last_asked_at FROM parked
		)`+takeRows,
		pgx.StrictNamedArgs{"now": now, "eager": s.cfg.Eager, "most": most, "lease": now.Add(s.cfg.Lease)})
}

func (s *Sweeper) take(ctx context.Context, sql string, args pgx.StrictNamedArgs) ([]item, error) {
	rows, err := s.cfg.DB.Query(ctx, sql, args)
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
	// denied: the gateway answered, and does not show the cancel that a notice claims.
	denied bool
}

// soon is how near a due time that somebody else set meanwhile must be to stand: a notice that came while we asked
// wants an answer now, not at the end of our schedule.
const soon = 45 * time.Second

// conclude records what the gateway said and notes it in the row, in one transaction. The record may close the row
// by itself; then the work is settled, whatever the conclusion was going to be.
func (s *Sweeper) conclude(ctx context.Context, i item, record func(tx pgx.Tx) (conclusion, error)) (Result, error) {
	return s.concludeAll(ctx, []item{i}, func(tx pgx.Tx) ([]conclusion, error) {
		c, err := record(tx)
		return []conclusion{c}, err
	})
}

// concludeAll is conclude for all rows that one question was about, with a conclusion for each. The question is settled
// if a row is.
func (s *Sweeper) concludeAll(ctx context.Context, rows []item, record func(tx pgx.Tx) ([]conclusion, error)) (Result, error) {
	var result Result
	err := postgres.InTx(ctx, s.cfg.DB, func(tx pgx.Tx) error {
		all, err := record(tx)
		if err != nil {
			return err
		}
		left, err := s.note(ctx, tx, rows, all)
		if err != nil {
			return err
		}
		result = all[0].result
		for n, c := range all {
			switch closed, here := left[rows[n].WorkID]; {
			case !here && c.close == "":
				result = ResultSettled
			case closed && result != ResultSettled:
				result = c.result
			}
		}
		return nil
	})
	return result, err
}

// stillOpen is a row that the record left open, and whether its conclusion closed it.
type stillOpen struct {
	WorkID int64 `db:"work_id"`
	Closed bool  `db:"closed"`
}

// note writes the conclusions into the rows that are still open, and tells which these were, and whether they are closed
// now. A claim that another notice has made while we asked, or that the list bears out by now, stays open: the answer may be from
// before its cancel. The locks are taken in the order in which notices take them.
func (s *Sweeper) note(ctx context.Context, tx pgx.Tx, rows []item, all []conclusion) (map[int64]bool, error) {
	now := s.cfg.now()
	var ids []int64
	var answers, closings []string
	var due []time.Time
	var unasked, claimed []bool
	var notices []*time.Time
	for n, c := range all {
		ids, answers, closings = append(ids, rows[n].WorkID), append(answers, c.answer), append(closings, string(c.close))
		due, unasked = append(due, s.dueAfter(rows, rows[n], c)), append(unasked, c.unasked)
		claimed, notices = append(claimed, rows[n].Kind == ledger.WorkCancelClaimed), append(notices, rows[n].NoticeNextAt)
	}
	noted, err := tx.Query(ctx, `
		WITH held AS MATERIALIZED (
			SELECT w.work_id, n.answer, n.closing, n.due, n.unasked, n.claimed AND (w.kind <> 'cancel_claimed'
				OR w.opened_at > w.last_asked_at OR w.notice_next_at IS DISTINCT FROM n.notice_next_at) AS again
			FROM unnest(@ids::bigint[], @answers::text[], @closings::text[], @due::timestamptz[], @unasked::boolean[],
				@claimed::boolean[], @notices::timestamptz[]) AS n (work_id, answer, closing, due, unasked, claimed, notice_next_at)
			JOIN work w ON w.work_id = n.work_id
			WHERE w.closed_at IS NULL
			ORDER BY w.transaction_key
			FOR UPDATE OF w)
		UPDATE work w
		SET last_answer = left(h.answer, 200), attempts = w.attempts - CASE WHEN h.unasked THEN 1 ELSE 0 END,
			due_at = CASE
				WHEN w.due_at < @soon THEN w.due_at
				WHEN h.again AND @eager THEN LEAST(h.due, @again)
				ELSE h.due END,
			closed_at = CASE WHEN h.closing <> '' AND NOT h.again THEN @now::timestamptz END,
			closed_as = CASE WHEN h.closing <> '' AND NOT h.again THEN h.closing END
		FROM held h
		WHERE w.work_id = h.work_id AND w.closed_at IS NULL
		RETURNING w.work_id, w.closed_at IS NOT NULL AS closed`,
		pgx.StrictNamedArgs{
			"ids": ids, "answers": answers, "closings": closings, "due": due, "unasked": unasked, "claimed": claimed,
			"notices": notices,
			"soon":    now.Add(soon), "again": now.Add(claimAgain), "now": now, "eager": s.cfg.Eager,
		})
	if err != nil {
		return nil, fmt.Errorf("note the answer to work %v: %w", ids, err)
	}
	open, err := pgx.CollectRows(noted, pgx.RowToStructByName[stillOpen])
	if err != nil {
		return nil, fmt.Errorf("note the answer to work %v: %w", ids, err)
	}
	left := make(map[int64]bool, len(open))
	for _, o := range open {
		left[o.WorkID] = o.Closed
	}
	return left, nil
}

// dueAfter is when the row is asked about again.
func (s *Sweeper) dueAfter(rows []item, i item, c conclusion) time.Time {
	now := s.cfg.now()
	if c.again > 0 {
		return now.Add(c.again)
	}
	if c.denied {
		most := i.Attempts
		for _, r := range rows {
			most = max(most, r.Attempts)
		}
		return nextAfterDenial(most, now, i.Deadline, s.cfg.Eager)
	}
	due := nextDue(i.Kind, i.Attempts, now, i.Deadline, s.cfg.Eager)
	if !i.nextLook.IsZero() {
		due = earlier(due, i.nextLook)
	}
	return due
}

// noted is conclude for a question that brought nothing to record.
func (s *Sweeper) noted(ctx context.Context, i item, c conclusion) (Result, error) {
	return s.conclude(ctx, i, func(pgx.Tx) (conclusion, error) { return c, nil })
}
