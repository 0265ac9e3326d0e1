package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"daesa/internal/postgres"
)

// CancelRequestStatus is how far a cancel of our own is.
type CancelRequestStatus string

// The statuses of a cancel request. Sending and unknown end only by the gateway's answer to the same request
// with the same key: a look-up alone cannot tell our cancel from one of the same amount made elsewhere.
const (
	CancelSending           CancelRequestStatus = "sending"     // intent committed, the call may be under way
	CancelRequestUnknown    CancelRequestStatus = "unknown"     // sent, outcome not known
	CancelRequestInProgress CancelRequestStatus = "in_progress" // accepted, finished later by the gateway
	CancelRequestDone       CancelRequestStatus = "done"
	CancelRequestRefused    CancelRequestStatus = "refused"
)

// CancelRequestStatuses lists every status.
func CancelRequestStatuses() []CancelRequestStatus {
	return []CancelRequestStatus{
		CancelSending, CancelRequestUnknown, CancelRequestInProgress, CancelRequestDone, CancelRequestRefused,
	}
}

// Final reports whether the request has ended.
func (s CancelRequestStatus) Final() bool { return s == CancelRequestDone || s == CancelRequestRefused }

var (
	// ErrCancelUnderWay: another cancel of ours for the payment has no answer yet, so what is left is not known.
	ErrCancelUnderWay = errors.New("another cancel of this payment has no answer yet")
	// ErrNotCancelable: the payment holds no money and no open virtual account.
	ErrNotCancelable = errors.New("the payment cannot be canceled")
	// ErrCancelTooMuch: the amount is above what is left and not reserved.
	ErrCancelTooMuch = errors.New("the amount is above what is left")
	// ErrCancelPart: an unpaid virtual account can only be canceled whole.
	ErrCancelPart = errors.New("an unpaid virtual account can only be canceled whole")
)

// CancelOrder asks for a cancel: a part, or all that is left when Amount is nil.
type CancelOrder struct {
	RequestID     string
	PaymentKey    string
	Amount        *Money
	Reason        string
	RefundAccount map[string]string // only for a paid virtual account; cleared when the request ends
	RequestedBy   string
}

// CancelRequest is one cancel that we ask of the gateway.
type CancelRequest struct {
	ID             string
	PaymentKey     string
	Status         CancelRequestStatus
	Amount         Money // nothing for the void of an unpaid virtual account
	Refundable     Money // sent along: the gateway refuses when its balance is another
	Reason         string
	RefundAccount  map[string]string
	Generation     int
	Attempts       int
	TransactionKey string
	Answer         string
	RequestedBy    string
	CreatedAt      time.Time
	KeyFirstUsedAt time.Time
}

// IdempotencyKey is the gateway idempotency key of the request: request + generation.
func (c CancelRequest) IdempotencyKey() string {
	return fmt.Sprintf("cancel-%s-%d", c.ID, c.Generation)
}

// RequestCancel reserves the amount under the payment's lock and writes that we are about to cancel; the
// caller commits before it sends anything. While another request of ours is in doubt nothing is reserved:
// what is left is not known then. Work is opened in the same transaction.
func (l *Ledger) RequestCancel(ctx context.Context, tx pgx.Tx, o CancelOrder) (CancelRequest, error) {
	now := l.now()
	row, err := lock(ctx, tx, o.PaymentKey)
	if err != nil {
		return CancelRequest{}, fmt.Errorf("request cancel of payment %s: %w", o.PaymentKey, err)
	}
	payment := row.payment()
	doubtful, reserved, err := cancelsInFlight(ctx, tx, o.PaymentKey)
	if err != nil {
		return CancelRequest{}, err
	}
	if doubtful {
		return CancelRequest{}, fmt.Errorf("request cancel of payment %s: %w", o.PaymentKey, ErrCancelUnderWay)
	}
	request, err := newCancelRequest(payment, o, reserved, now)
	if err != nil {
		return CancelRequest{}, fmt.Errorf("request cancel of payment %s: %w", o.PaymentKey, err)
	}
	return request, writeCancelRequest(ctx, tx, payment, request, now)
}

// cancelsInFlight tells whether a cancel of ours is in doubt and how much those in progress reserve.
func cancelsInFlight(ctx context.Context, tx pgx.Tx, paymentKey string) (doubtful bool, reserved int64, err error) {
	type inFlight struct {
		Doubtful bool  `db:"doubtful"`
		Reserved int64 `db:"reserved"`
	}
	rows, err := tx.Query(ctx, `
		SELECT COALESCE(bool_or(status IN ('sending', 'unknown')), false) AS doubtful,
			COALESCE(sum(amount) FILTER (WHERE status = 'in_progress'), 0)::bigint AS reserved
		FROM cancel_requests
		WHERE payment_key = @payment_key AND status IN ('sending', 'unknown', 'in_progress')`,
		pgx.StrictNamedArgs{"payment_key": paymentKey})
	if err != nil {
		return false, 0, fmt.Errorf("read cancels in flight of payment %s: %w", paymentKey, err)
	}
	f, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[inFlight])
	if err != nil {
		return false, 0, fmt.Errorf("read cancels in flight of payment %s: %w", paymentKey, err)
	}
	return f.Doubtful, f.Reserved, nil
}

func newCancelRequest(p Payment, o CancelOrder, reserved int64, now time.Time) (CancelRequest, error) {
	request := CancelRequest{
		ID: o.RequestID, PaymentKey: p.Key, Status: CancelSending, Refundable: p.Balance(), Reason: o.Reason,
		RefundAccount: o.RefundAccount, Generation: 1, RequestedBy: o.RequestedBy, CreatedAt: now, KeyFirstUsedAt: now,
	}
	if p.Status == StatusWaitingForDeposit {
		if o.Amount != nil {
			return CancelRequest{}, ErrCancelPart
		}
		request.Amount = Money{Currency: p.Amount.Currency}
		request.Refundable = request.Amount
		return request, nil
	}
	left := Money{Minor: p.Balance().Minor - reserved, Currency: p.Amount.Currency}
	switch {
	case !p.Status.HoldsMoney():
		return CancelRequest{}, ErrNotCancelable
	case o.Amount == nil:
		request.Amount = left
	default:
		request.Amount = *o.Amount
	}
	if request.Amount.Currency != left.Currency || !request.Amount.Positive() || request.Amount.Minor > left.Minor {
		return CancelRequest{}, ErrCancelTooMuch
	}
	return request, nil
}

func writeCancelRequest(ctx context.Context, tx pgx.Tx, p Payment, r CancelRequest, now time.Time) error {
	b := &pgx.Batch{}
	b.Queue(`
		INSERT INTO cancel_requests (request_id, payment_key, status, currency, amount, refundable, reason,
			refund_account, generation, requested_by, created_at, key_first_used_at, updated_at)
		VALUES (@request_id, @payment_key, 'sending', @currency, @amount, @refundable, @reason,
			@refund_account, @generation, @requested_by, @now, @now, @now)`,
		pgx.StrictNamedArgs{
			"request_id": r.ID, "payment_key": r.PaymentKey, "currency": p.Amount.Currency, "amount": r.Amount.Minor,
			"refundable": r.Refundable.Minor, "reason": r.Reason, "refund_account": r.RefundAccount,
			"generation": r.Generation, "requested_by": r.RequestedBy, "now": now,
		})
	QueueWork(b, Work{
		Kind: WorkCancelRequest, PaymentKey: r.PaymentKey, OrderID: p.OrderID, RequestID: r.ID, AtRisk: r.Amount,
		DueAt: now.Add(ConfirmBudget), Deadline: now.Add(UndecidedAgeMax),
	}, now)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("write cancel request %s: %w", r.ID, err)
	}
	return nil
}

// whole reports whether the request leaves nothing.
func (c CancelRequest) whole() bool { return c.Amount == c.Refundable }

// CancelAnswer is what became of a cancel request.
type CancelAnswer struct {
	Status         CancelRequestStatus // never sending
	TransactionKey string              // of the cancel that the gateway answered with
	Word           string              // the gateway's code, for people
}

// Bears reports whether the books bear an answer out. A request is done only with a cancel that is booked (the void of
// an account without money: with the payment canceled), and in progress only with one that has work of its own; what Record
// did not take, such as an object of a status nobody knows, settles nothing.
func (r Recorded) Bears(request CancelRequest, a CancelAnswer) bool {
	switch a.Status {
	case CancelRequestDone:
		return r.Outcome != OutcomeConflict && (r.After.HasCancel(a.TransactionKey) ||
			(request.whole() && r.After.Captured().IsZero() && r.After.Status == StatusCanceled))
	case CancelRequestInProgress:
		open := slices.ContainsFunc(r.Open, func(c ObservedCancel) bool { return c.TransactionKey == a.TransactionKey })
		return r.Outcome != OutcomeConflict && (open || r.After.HasCancel(a.TransactionKey))
	case CancelSending, CancelRequestUnknown, CancelRequestRefused:
	}
	return true
}

// SettleCancelRequest moves a request by the gateway's answer to it. A request that has ended keeps its end, and
// one answered "in progress" whose cancel was booked in the meantime is done. The work closes with it; an unknown
// one is due soon.
func (l *Ledger) SettleCancelRequest(ctx context.Context, tx pgx.Tx, requestID string, a CancelAnswer) error {
	now := l.now()
	b := &pgx.Batch{}
	b.Queue(`
		UPDATE cancel_requests
		SET status = CASE
				WHEN status = 'in_progress' AND @status = 'unknown' THEN status
				WHEN @status = 'in_progress' AND EXISTS (
					SELECT 1 FROM cancels c WHERE c.transaction_key = @transaction_key) THEN 'done'
				ELSE @status END,
			transaction_key = COALESCE(NULLIF(@transaction_key, ''), transaction_key), answer = left(@answer, 600),
			attempts = attempts + 1, updated_at = @now,
			refund_account = CASE WHEN @status IN ('done', 'refused') OR (@status = 'in_progress' AND @transaction_key <> '') OR EXISTS (
				SELECT 1 FROM cancels c WHERE c.transaction_key = @transaction_key) THEN NULL ELSE refund_account END
		WHERE request_id = @request_id AND status IN ('sending', 'unknown', 'in_progress')`,
		pgx.StrictNamedArgs{
			"status": a.Status, "transaction_key": a.TransactionKey, "answer": a.Word, "now": now, "request_id": requestID,
		}).Exec(func(pgconn.CommandTag) error { return nil })
	// A cancel in progress is found again by its key, and has work of its own; without one only this request can ask.
	if a.Status.Final() || (a.Status == CancelRequestInProgress && a.TransactionKey != "") {
		b.Queue(`
			UPDATE work SET closed_at = @now, closed_as = 'settled'
			WHERE request_id = @request_id AND closed_at IS NULL`,
			pgx.StrictNamedArgs{"now": now, "request_id": requestID})
	} else {
		b.Queue(`
			UPDATE work SET due_at = LEAST(due_at, @due_at)
			WHERE request_id = @request_id AND closed_at IS NULL AND attempts = 0`,
			pgx.StrictNamedArgs{"due_at": now.Add(lostDueAfter), "request_id": requestID})
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("settle cancel request %s: %w", requestID, err)
	}
	return nil
}

// queueCancelRequests ends requests of ours whose cancel the gateway has now finished or given up.
func (e *effects) queueCancelRequests(b *pgx.Batch, now time.Time) {
	end := func(keys []string, status CancelRequestStatus) {
		b.Queue(`
			UPDATE cancel_requests SET status = @status, updated_at = @now, refund_account = NULL
			WHERE payment_key = @payment_key AND status = 'in_progress' AND transaction_key = ANY(@keys)`,
			pgx.StrictNamedArgs{"status": status, "now": now, "payment_key": e.after.Key, "keys": keys})
	}
	if len(e.cancels) > 0 {
		keys := make([]string, 0, len(e.cancels))
		for _, c := range e.cancels {
			keys = append(keys, c.TransactionKey)
		}
		end(keys, CancelRequestDone)
	}
	if len(e.decision.Ended) > 0 {
		end(e.decision.Ended, CancelRequestRefused)
	}
}

type cancelRequestRow struct {
	RequestID      string              `db:"request_id"`
	PaymentKey     string              `db:"payment_key"`
	Status         CancelRequestStatus `db:"status"`
	Currency       Currency            `db:"currency"`
	Amount         int64               `db:"amount"`
	Refundable     int64               `db:"refundable"`
	Reason         string              `db:"reason"`
	RefundAccount  map[string]string   `db:"refund_account"`
	Generation     int                 `db:"generation"`
	Attempts       int                 `db:"attempts"`
	TransactionKey *string             `db:"transaction_key"`
	Answer         string              `db:"answer"`
	RequestedBy    string              `db:"requested_by"`
	CreatedAt      time.Time           `db:"created_at"`
	KeyFirstUsedAt *time.Time          `db:"key_first_used_at"`
}

// LoadCancelRequest reads a cancel request. An id never seen gives ErrNotFound.
func LoadCancelRequest(ctx context.Context, db Querier, requestID string) (CancelRequest, error) {
	rows, err := db.Query(ctx, `
		SELECT request_id, payment_key, status, currency, amount, refundable, reason, refund_account, generation,
			attempts, transaction_key, answer, requested_by, created_at, key_first_used_at
		FROM cancel_requests WHERE request_id = @request_id`, pgx.StrictNamedArgs{"request_id": requestID})
	if err != nil {
		return CancelRequest{}, fmt.Errorf("read cancel request %s: %w", requestID, err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[cancelRequestRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return CancelRequest{}, fmt.Errorf("cancel request %s: %w", requestID, ErrNotFound)
	}
	if err != nil {
		return CancelRequest{}, fmt.Errorf("read cancel request %s: %w", requestID, err)
	}
	request := CancelRequest{
		ID: r.RequestID, PaymentKey: r.PaymentKey, Status: r.Status, Amount: Money{Minor: r.Amount, Currency: r.Currency},
		Refundable: Money{Minor: r.Refundable, Currency: r.Currency}, Reason: r.Reason,
		RefundAccount: r.RefundAccount, Generation: r.Generation, Attempts: r.Attempts, Answer: r.Answer,
		RequestedBy: r.RequestedBy, CreatedAt: r.CreatedAt, KeyFirstUsedAt: postgres.Time(r.KeyFirstUsedAt),
	}
	if r.TransactionKey != nil {
		request.TransactionKey = *r.TransactionKey
	}
	return request, nil
}
