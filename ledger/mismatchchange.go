package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"daesa/internal/postgres"
)

type mismatchRow struct {
	ID             int64          `db:"mismatch_id"`
	Kind           Kind           `db:"kind"`
	Status         MismatchStatus `db:"status"`
	PaymentKey     string         `db:"payment_key"`
	OrderID        string         `db:"order_id"`
	TransactionKey string         `db:"transaction_key"`
	Currency       Currency       `db:"currency"`
	Amount         *int64         `db:"amount"`
	Detail         string         `db:"detail"`
	Gateway        []byte         `db:"gateway"`
	Books          []byte         `db:"books"`
	OpenedAt       time.Time      `db:"opened_at"`
	LastSeenAt     time.Time      `db:"last_seen_at"`
	TimesSeen      int            `db:"times_seen"`
	Assignee       Actor          `db:"assignee"`
	Proposal       *Proposal      `db:"proposal"`
	ResolvedAs     Resolution     `db:"resolved_as"`
	ResolvedBy     Actor          `db:"resolved_by"`
	ResolvedAt     *time.Time     `db:"resolved_at"`
	Note           string         `db:"note"`
	Incident       int64          `db:"incident_id"`
	Revision       int            `db:"revision"`
	ChangedAt      time.Time      `db:"changed_at"`
	Confirmed      *Confirmation  `db:"confirmed"`
}

const mismatchColumns = `
	SELECT m.mismatch_id, m.kind, m.status, COALESCE(m.payment_key, '') AS payment_key, COALESCE(m.order_id, '') AS order_id,
		COALESCE(m.transaction_key, '') AS transaction_key, COALESCE(m.currency, '') AS currency, m.amount, m.detail, m.gateway, m.books,
		m.opened_at, m.last_seen_at, m.times_seen, COALESCE(m.assignee, '') AS assignee, m.proposal,
		COALESCE(m.resolved_as, '') AS resolved_as, COALESCE(m.resolved_by, '') AS resolved_by, m.resolved_at, m.note,
		COALESCE(m.incident_id, 0) AS incident_id, m.revision, COALESCE(m.changed_at, m.opened_at) AS changed_at,
		CASE WHEN m.resolved_as IN ('fixed', 'accepted') THEN ` + confirmation + ` END AS confirmed
	FROM mismatches m`

// confirmation is how a second person resolved the mismatch m as a first one had proposed, from the trail: the resolution
// took a proposal away that it is equal to. Who signs a day anew resolves what was said of it, and confirms nobody's
// proposal.
const confirmation = `(
			SELECT jsonb_build_object('proposed', p.changed -> 'proposal', 'by', r.actor, 'at', r.at, 'note', r.note)
			FROM (SELECT number, at, actor, changed, note FROM mismatch_trail
				WHERE mismatch_id = m.mismatch_id AND action = 'resolved' ORDER BY number DESC LIMIT 1) r
			CROSS JOIN LATERAL (SELECT changed FROM mismatch_trail
				WHERE mismatch_id = m.mismatch_id AND number < r.number AND changed ? 'proposal' ORDER BY number DESC LIMIT 1) p
			WHERE r.changed ? 'proposal' AND p.changed -> 'proposal' ->> 'as' = m.resolved_as
				AND p.changed -> 'proposal' ->> 'note' = m.note AND p.changed -> 'proposal' ->> 'by' <> r.actor
				AND (m.kind <> 'signed_day_changed' OR m.note <> ''))`

func (r mismatchRow) mismatch() Mismatch {
	m := Mismatch{
		ID: r.ID, Kind: r.Kind, Status: r.Status, PaymentKey: r.PaymentKey, OrderID: r.OrderID, TransactionKey: r.TransactionKey,
		Detail: r.Detail, Gateway: r.Gateway, Books: r.Books, OpenedAt: r.OpenedAt, LastSeenAt: r.LastSeenAt, TimesSeen: r.TimesSeen,
		Assignee: r.Assignee, Proposal: r.Proposal, ResolvedAs: r.ResolvedAs, ResolvedBy: r.ResolvedBy, ResolvedAt: postgres.Time(r.ResolvedAt),
		Note: r.Note, Incident: r.Incident, Revision: r.Revision, ChangedAt: r.ChangedAt, Confirmed: r.Confirmed,
	}
	if r.Amount != nil && r.Currency != "" {
		m.AtRisk = Money{Minor: *r.Amount, Currency: r.Currency}
	}
	if m.Confirmed != nil {
		m.Confirmed.At = m.Confirmed.At.UTC()
	}
	return m
}

// LoadMismatch reads a mismatch. One that never was gives ErrNotFound.
func LoadMismatch(ctx context.Context, db Querier, id int64) (Mismatch, error) {
	return oneMismatch(ctx, db, mismatchColumns+` WHERE m.mismatch_id = @id`, id)
}

func oneMismatch(ctx context.Context, db Querier, sql string, id int64) (Mismatch, error) {
	rows, err := db.Query(ctx, sql, pgx.StrictNamedArgs{"id": id})
	if err != nil {
		return Mismatch{}, fmt.Errorf("read mismatch %d: %w", id, err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[mismatchRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return Mismatch{}, fmt.Errorf("mismatch %d: %w", id, ErrNotFound)
	}
	if err != nil {
		return Mismatch{}, fmt.Errorf("read mismatch %d: %w", id, err)
	}
	return r.mismatch(), nil
}

// ChangeMismatch makes one step of a person's, under the row's lock, and returns the mismatch afterwards. A step that
// is not allowed is an error and changes nothing; of two people at once the second meets what the first has done.
func ChangeMismatch(ctx context.Context, tx pgx.Tx, id int64, c Change, two SecondPerson, now time.Time) (Mismatch, error) {
	before, err := oneMismatch(ctx, tx, mismatchColumns+` WHERE m.mismatch_id = @id FOR UPDATE`, id)
	if err != nil {
		return Mismatch{}, err
	}
	after, err := before.step(c, two, now)
	if err != nil {
		return before, fmt.Errorf("%s mismatch %d: %w", c.Step, id, err)
	}
	end := c.Request
	if before.Proposal != nil {
		end = before.Proposal.Request
	}
	if after.Status == MismatchResolved && before.Status != MismatchResolved && end != nil {
		if err := endRequestByHand(ctx, tx, before, *end, after, now); err != nil {
			return before, fmt.Errorf("%s mismatch %d: %w", c.Step, id, err)
		}
	}
	b := &pgx.Batch{}
	queueChange(b, before, after, c, now)
	if after.Status == MismatchResolved {
		QueueEndIncidents(b, now)
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return before, fmt.Errorf("%s mismatch %d: %w", c.Step, id, err)
	}
	return LoadMismatch(ctx, tx, id)
}

func queueChange(b *pgx.Batch, before, after Mismatch, c Change, now time.Time) {
	b.Queue(`
		UPDATE mismatches
		SET status = @status, assignee = NULLIF(@assignee, ''), proposal = @proposal, resolved_as = NULLIF(@resolved_as, ''),
			resolved_by = NULLIF(@resolved_by, ''), resolved_at = @resolved_at, note = @note, incident_id = NULLIF(@incident, 0),
			revision = revision + 1, changed_at = @now, changed_by = @by, remark = @remark
		WHERE mismatch_id = @id AND revision = @revision`,
		pgx.StrictNamedArgs{
			"status": after.Status, "assignee": after.Assignee, "proposal": after.Proposal, "resolved_as": after.ResolvedAs,
			"resolved_by": after.ResolvedBy, "resolved_at": postgres.NullTime(after.ResolvedAt), "note": after.Note, "incident": after.Incident,
			"now": now, "by": c.By, "remark": strings.TrimSpace(c.Note), "id": before.ID, "revision": before.Revision,
		}).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() == 0 {
			return ErrMoved
		}
		return nil
	})
}

// askedApart is how long after the last question about a cancel request a person may end it: by then no call of ours
// can be under way any more.
const askedApart = 2 * time.Minute

// endRequestByHand ends a cancel request of ours by what a person states, and stops asking about it. It is never done
// by anybody's word alone: the cancel named must be in the books, of this payment and amount, and no other request's.
// Refused frees the amount; a cancel that comes to light later is booked like any other.
func endRequestByHand(ctx context.Context, tx pgx.Tx, m Mismatch, end RequestEnd, by Mismatch, now time.Time) error {
	id, ok := m.requestID()
	if !ok {
		return ErrRequestEnd
	}
	rows, err := tx.Query(ctx, `
		UPDATE cancel_requests r
		SET status = @status, transaction_key = COALESCE(NULLIF(@transaction_key, ''), r.transaction_key),
			answer = left('by hand, ' || @by || ': ' || @note, 600), updated_at = @now, refund_account = NULL
		WHERE r.request_id = @request_id AND r.status = 'unknown'
			AND NOT EXISTS (SELECT 1 FROM work w
				WHERE w.request_id = r.request_id AND w.closed_at IS NULL AND w.last_asked_at > @asked_before)
			AND (@status = 'refused' OR EXISTS (SELECT 1 FROM cancels c
				WHERE c.transaction_key = @transaction_key AND c.payment_key = r.payment_key AND c.amount = r.amount AND c.currency = r.currency))
			AND NOT EXISTS (SELECT 1 FROM cancel_requests o
				WHERE o.payment_key = r.payment_key AND o.request_id <> r.request_id AND o.transaction_key = NULLIF(@transaction_key, ''))
		RETURNING r.request_id`,
		pgx.StrictNamedArgs{
			"status": end.Status, "transaction_key": end.TransactionKey, "by": by.ResolvedBy, "note": by.Note, "now": now,
			"request_id": id, "asked_before": now.Add(-askedApart),
		})
	if err != nil {
		return fmt.Errorf("end cancel request %s: %w", id, err)
	}
	ended, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("end cancel request %s: %w", id, err)
	}
	if len(ended) == 0 {
		return fmt.Errorf("cancel request %s is not unknown, is being asked about, or has no such cancel in the books: %w", id, ErrRequestEnd)
	}
	as := ClosedSettled
	if end.Status == CancelRequestRefused {
		as = ClosedRefuted
	}
	_, err = tx.Exec(ctx, `UPDATE work SET closed_at = @now, closed_as = @as WHERE request_id = @request_id AND closed_at IS NULL`,
		pgx.StrictNamedArgs{"now": now, "as": as, "request_id": id})
	if err != nil {
		return fmt.Errorf("end cancel request %s: %w", id, err)
	}
	return nil
}
