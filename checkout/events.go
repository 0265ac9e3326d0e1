package checkout

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// eventView is an event as our API lists it.
type eventView struct {
	EventID     string           `json:"event_id" db:"event_id"`
	Kind        ledger.EventKind `json:"type" db:"kind"`
	Audience    ledger.Audience  `json:"audience" db:"audience"`
	OrderID     string           `json:"order_id" db:"order_id"`
	PaymentKey  string           `json:"payment_key" db:"payment_key"`
	CreatedAt   time.Time        `json:"created_at" db:"created_at"`
	Attempts    int              `json:"attempts" db:"attempts"`
	LastAnswer  string           `json:"last_answer" db:"last_answer"`
	DeliveredAt *time.Time       `json:"delivered_at" db:"delivered_at"`
	DeadAt      *time.Time       `json:"dead_at" db:"dead_at"`
}

// eventsMax bounds one list.
const eventsMax = 200

const eventColumns = `
	SELECT event_id, kind, audience, order_id, payment_key, created_at, attempts, last_answer, delivered_at, dead_at
	FROM events`

// eventsIn is the query for the events in a state, "" when there is no such state.
func eventsIn(state string) string {
	const newest = ` ORDER BY created_at DESC, event_id LIMIT @limit`
	switch state {
	case "", "dead":
		return eventColumns + ` WHERE dead_at IS NOT NULL AND delivered_at IS NULL` + newest
	case "pending":
		return eventColumns + ` WHERE dead_at IS NULL AND delivered_at IS NULL` + newest
	case "delivered":
		return eventColumns + ` WHERE delivered_at IS NOT NULL` + newest
	}
	return ""
}

// ListEvents serves GET /v1/events?state=dead|pending|delivered, newest first; dead ones when no state is named.
func (h *Handler) ListEvents(w http.ResponseWriter, r *http.Request) error {
	query := eventsIn(r.URL.Query().Get("state"))
	if query == "" {
		return invalid("state must be dead, pending or delivered")
	}
	rows, err := h.cfg.Reads.Query(r.Context(), query, pgx.StrictNamedArgs{"limit": eventsMax})
	if err != nil {
		return unavailable(fmt.Errorf("list events: %w", err))
	}
	events, err := pgx.CollectRows(rows, pgx.RowToStructByName[eventView])
	if err != nil {
		return unavailable(fmt.Errorf("list events: %w", err))
	}
	return reply{status: http.StatusOK, body: map[string]any{"events": events}}.write(w)
}

// ResendEvent serves POST /v1/events/{event_id}/resend: the event is delivered once more, whether it was given up,
// refused for want of an address, or delivered and lost by its receiver. Asking twice delivers once more, not twice.
func (h *Handler) ResendEvent(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	id, err := pathID(r, "event_id")
	if err != nil {
		return err
	}
	err = postgres.InTx(ctx, h.cfg.Reads, func(tx pgx.Tx) error { return h.resend(ctx, tx, id) })
	if err != nil {
		return unavailable(err)
	}
	return reply{status: http.StatusAccepted, body: map[string]any{"event_id": id}}.write(w)
}

func (h *Handler) resend(ctx context.Context, tx pgx.Tx, id string) error {
	tag, err := tx.Exec(ctx, `UPDATE events SET delivered_at = NULL, dead_at = NULL, resent_at = @now WHERE event_id = @event_id`,
		pgx.StrictNamedArgs{"event_id": id, "now": h.now()})
	if err != nil {
		return fmt.Errorf("resend event %s: %w", id, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNoEvent
	}
	return h.cfg.Notices.again(ctx, tx, id)
}
