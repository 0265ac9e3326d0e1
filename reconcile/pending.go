package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// RedeliveriesInAll is how often the gateway sends a notice again.
const RedeliveriesInAll = 7

// PendingLine says by the clock how a pending cancel is doing: waiting as it should, late, or past all waiting. Nothing
// here is broken; what is broken is a mismatch.
type PendingLine string

// The lines of what is pending. The first four are those of the statement.
const (
	PendingInFlight       PendingLine = "in_flight"           // found less than a minute ago
	PendingRedelivery     PendingLine = "awaiting_redelivery" // the gateway will send its notice again
	PendingSweeping       PendingLine = "sweeping"            // we ask
	PendingInProgress     PendingLine = "in_progress"         // the gateway has not finished it
	PendingLate           PendingLine = "late"                // a redelivery was due and did not come
	PendingPastLastChance PendingLine = "past_last_chance"    // no redelivery can settle it any more; asking goes on
)

// PendingLines lists every line.
func PendingLines() []PendingLine {
	return []PendingLine{
		PendingInFlight, PendingRedelivery, PendingSweeping, PendingInProgress, PendingLate, PendingPastLastChance,
	}
}

// lateAfter is how long after its time a redelivery counts as late: the gateway's clock is not a metronome.
const lateAfter = 2 * time.Minute

// pendingLine is the line of a row w of open work, in SQL: list and metrics must not differ.
const pendingLine = `
	CASE
		WHEN GREATEST(w.deadline, w.opened_at + interval '1 hour') <= @now THEN 'past_last_chance'
		WHEN w.kind = 'cancel_in_progress' THEN 'in_progress'
		WHEN w.opened_at > @now - interval '1 minute' THEN 'in_flight'
		WHEN w.notice_next_at > @now THEN 'awaiting_redelivery'
		WHEN w.notice_next_at <= @late AND w.notice_attempt < 7 THEN 'late'
		ELSE 'sweeping'
	END`

// pendingKinds are the kinds of work that wait for a cancel.
const pendingKinds = `('cancel_claimed', 'cancel_listed', 'cancel_in_progress', 'cancel_request')`

// Pending is a cancel that is still owed an answer.
type Pending struct {
	WorkID         int64
	Kind           ledger.WorkKind
	Line           PendingLine
	OrderID        string
	PaymentKey     string
	TransactionKey string
	RequestID      string
	Amount         ledger.Money // without a currency when nobody has said
	Attempt        int          // the redelivery expected next, of 7; 0 when no notice came
	NextExpected   time.Time
	LastChance     time.Time
	OpenedAt       time.Time
	Asked          int
	LastAnswer     string
}

type pendingRow struct {
	WorkID         int64           `db:"work_id"`
	Kind           ledger.WorkKind `db:"kind"`
	Line           PendingLine     `db:"line"`
	OrderID        string          `db:"order_id"`
	PaymentKey     string          `db:"payment_key"`
	TransactionKey string          `db:"transaction_key"`
	RequestID      string          `db:"request_id"`
	Currency       ledger.Currency `db:"currency"`
	Amount         *int64          `db:"amount"`
	NoticeAttempt  *int            `db:"notice_attempt"`
	NextExpected   *time.Time      `db:"notice_next_at"`
	LastChance     time.Time       `db:"deadline"`
	OpenedAt       time.Time       `db:"opened_at"`
	Asked          int             `db:"attempts"`
	LastAnswer     string          `db:"last_answer"`
}

func (r pendingRow) pending() Pending {
	p := Pending{
		WorkID: r.WorkID, Kind: r.Kind, Line: r.Line, OrderID: r.OrderID, PaymentKey: r.PaymentKey, TransactionKey: r.TransactionKey,
		RequestID: r.RequestID, LastChance: r.LastChance, OpenedAt: r.OpenedAt, Asked: r.Asked, LastAnswer: r.LastAnswer,
	}
	if r.Amount != nil && r.Currency != "" {
		p.Amount = ledger.Money{Minor: *r.Amount, Currency: r.Currency}
	}
	if r.NoticeAttempt != nil {
		p.Attempt = nextAttempt(*r.NoticeAttempt)
	}
	if r.NextExpected != nil {
		p.NextExpected = *r.NextExpected
	}
	return p
}

// nextAttempt is the redelivery that is expected after the one that failed last; 0 was the first delivery.
func nextAttempt(failed int) int { return min(max(failed, 0)+1, RedeliveriesInAll) }

// PendingCursor is where a page of what is pending ended.
type PendingCursor struct {
	LastChance time.Time
	WorkID     int64
}

// String writes the cursor for a caller; nothing for the end.
func (c PendingCursor) String() string {
	if c.WorkID == 0 {
		return ""
	}
	return strconv.FormatInt(c.LastChance.UnixMicro(), 10) + "." + strconv.FormatInt(c.WorkID, 10)
}

// ParsePendingCursor reads a cursor; nothing is the beginning.
func ParsePendingCursor(text string) (PendingCursor, error) {
	if text == "" {
		return PendingCursor{}, nil
	}
	at, id, _ := strings.Cut(text, ".")
	micros, err := strconv.ParseInt(at, 10, 64)
	work, idErr := strconv.ParseInt(id, 10, 64)
	// The database's time ends long before the number does.
	if err = errors.Join(err, idErr); err != nil || micros < 0 || micros > 1<<53 || work <= 0 {
		return PendingCursor{}, ErrCursor
	}
	return PendingCursor{LastChance: time.UnixMicro(micros).UTC(), WorkID: work}, nil
}

// pendingMost bounds one page.
const pendingMost = 500

// ListPending reads one page of what is pending, soonest last chance first, and where the next begins. A last chance
// does not move, so that pages neither skip nor repeat what stays pending.
func ListPending(ctx context.Context, db ledger.Querier, now time.Time, after PendingCursor, limit int) ([]Pending, PendingCursor, error) {
	if limit <= 0 || limit > pendingMost {
		limit = pendingMost
	}
	rows, err := db.Query(ctx, `
		SELECT w.work_id, w.kind, `+pendingLine+` AS line, COALESCE(w.order_id, p.order_id, '') AS order_id, w.payment_key,
			COALESCE(w.transaction_key, '') AS transaction_key, COALESCE(w.request_id, '') AS request_id,
			COALESCE(w.currency, '') AS currency, w.amount, w.notice_attempt, w.notice_next_at, w.deadline, w.opened_at, w.attempts,
			w.last_answer
		FROM (
			SELECT x.work_id FROM work x
			WHERE x.closed_at IS NULL AND x.kind IN `+pendingKinds+` AND (x.deadline, x.work_id) > (@last_chance, @work_id)
			ORDER BY x.deadline, x.work_id
			LIMIT @limit) page
		JOIN work w ON w.work_id = page.work_id
		LEFT JOIN payments p ON p.payment_key = w.payment_key
		ORDER BY w.deadline, w.work_id`,
		pgx.StrictNamedArgs{
			"now": now, "late": now.Add(-lateAfter), "last_chance": after.LastChance, "work_id": after.WorkID, "limit": limit + 1,
		})
	if err != nil {
		return nil, PendingCursor{}, fmt.Errorf("list what is pending: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[pendingRow])
	if err != nil {
		return nil, PendingCursor{}, fmt.Errorf("list what is pending: %w", err)
	}
	var next PendingCursor
	if len(found) > limit {
		found = found[:limit]
		next = PendingCursor{LastChance: found[limit-1].LastChance, WorkID: found[limit-1].WorkID}
	}
	page := make([]Pending, 0, len(found))
	for _, r := range found {
		page = append(page, r.pending())
	}
	return page, next, nil
}
