package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// MismatchFilter says which mismatches a list shows. What is not set is not asked for.
type MismatchFilter struct {
	Status     MismatchStatus // "" = all that are not resolved
	Resolution Resolution     // those resolved in this way
	From, To   Day            // those resolved from the one business day to the other, both with it
	Kind       Kind
	Assignee   Actor
	OrderID    string
	PaymentKey string
	Incident   int64
	AtLeast    Money // money at risk; with its currency
	Before     int64 // a page begins below this number; 0 = with the newest
	Limit      int
}

// listMost bounds one page.
const listMost = 200

// where is the filter as conditions: only those that are set, so that each finds its index.
func (f MismatchFilter) where() (conditions []string, args pgx.StrictNamedArgs) {
	args = pgx.StrictNamedArgs{}
	set := func(condition, name string, value any) {
		conditions = append(conditions, condition)
		args[name] = value
	}
	if f.Status == "" && f.resolvedOnly() {
		f.Status = MismatchResolved
	}
	if f.Status == "" {
		conditions = append(conditions, `m.status <> 'resolved'`)
	} else {
		set(`m.status = @status`, "status", f.Status)
	}
	if f.Status == MismatchOpen || f.Status == MismatchAcknowledged {
		conditions = append(conditions, `m.status <> 'resolved'`)
	}
	if f.Resolution != "" {
		set(`m.resolved_as = @resolution`, "resolution", f.Resolution)
	}
	if f.From != "" {
		set(`m.resolved_at >= @from`, "from", f.From.Start())
	}
	if f.To != "" {
		set(`m.resolved_at < @to`, "to", f.To.End())
	}
	if f.Kind != "" {
		set(`m.kind = @kind`, "kind", f.Kind)
	}
	if f.Assignee != "" {
		set(`m.assignee = @assignee`, "assignee", f.Assignee)
	}
	if f.OrderID != "" {
		set(`m.order_id = @order_id`, "order_id", f.OrderID)
	}
	if f.PaymentKey != "" {
		set(`m.payment_key = @payment_key`, "payment_key", f.PaymentKey)
	}
	if f.Incident != 0 {
		set(`m.incident_id = @incident`, "incident", f.Incident)
	}
	if f.AtLeast.Currency != "" {
		set(`m.currency = @currency`, "currency", f.AtLeast.Currency)
		set(`m.amount >= @amount`, "amount", f.AtLeast.Minor)
	}
	if f.Before != 0 {
		set(`m.mismatch_id < @before`, "before", f.Before)
	}
	return conditions, args
}

// resolvedOnly reports whether only resolved ones can fit.
func (f MismatchFilter) resolvedOnly() bool { return f.Resolution != "" || f.From != "" || f.To != "" }

// ListMismatches reads one page, newest first, and what the next page begins before; 0 when there is none. A mismatch
// keeps its number for ever, so that pages neither skip nor repeat one whatever happens between them.
func ListMismatches(ctx context.Context, db Querier, f MismatchFilter) (page []Mismatch, next int64, err error) {
	limit := f.Limit
	if limit <= 0 || limit > listMost {
		limit = listMost
	}
	conditions, args := f.where()
	args["limit"] = limit + 1
	rows, err := db.Query(ctx, mismatchColumns+`
		WHERE `+strings.Join(conditions, ` AND `)+`
		ORDER BY m.mismatch_id DESC
		LIMIT @limit`, args)
	if err != nil {
		return nil, 0, fmt.Errorf("list mismatches: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[mismatchRow])
	if err != nil {
		return nil, 0, fmt.Errorf("list mismatches: %w", err)
	}
	if len(found) > limit {
		found = found[:limit]
		next = found[limit-1].ID
	}
	page = make([]Mismatch, 0, len(found))
	for _, r := range found {
		page = append(page, r.mismatch())
	}
	return page, next, nil
}

// TrailLine is one change of a mismatch. The changed fields of all lines, one after the other, are the mismatch.
type TrailLine struct {
	Number  int             `json:"number" db:"number"`
	At      time.Time       `json:"at" db:"at"`
	Actor   Actor           `json:"actor" db:"actor"`
	Action  TrailAction     `json:"action" db:"action"`
	Changed json.RawMessage `json:"changed" db:"changed"`
	Note    string          `json:"note,omitempty" db:"note"`
	Gateway json.RawMessage `json:"gateway,omitempty" db:"gateway"` // evidence as it stood then
	Books   json.RawMessage `json:"books,omitempty" db:"books"`
}

// MismatchTrail reads everything that was ever done with a mismatch, in order.
func MismatchTrail(ctx context.Context, db Querier, id int64) ([]TrailLine, error) {
	rows, err := db.Query(ctx, `
		SELECT number, at, actor, action, changed, note, gateway, books
		FROM mismatch_trail
		WHERE mismatch_id = @id
		ORDER BY number`, pgx.StrictNamedArgs{"id": id})
	if err != nil {
		return nil, fmt.Errorf("read the trail of mismatch %d: %w", id, err)
	}
	trail, err := pgx.CollectRows(rows, pgx.RowToStructByName[TrailLine])
	if err != nil {
		return nil, fmt.Errorf("read the trail of mismatch %d: %w", id, err)
	}
	return trail, nil
}
