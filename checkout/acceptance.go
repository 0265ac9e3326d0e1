package checkout

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/checkout/store"
	"daesa/ledger"
)

// acceptanceState is how a question to the store stands.
type acceptanceState string

const (
	acceptanceAsking    acceptanceState = "asking"    // committed before the question is sent
	acceptanceDeclined  acceptanceState = "declined"  // by the store
	acceptanceHeld      acceptanceState = "held"      // committed with the intent of the payment's attempt
	acceptanceKept      acceptanceState = "kept"      // the attempt took the money
	acceptanceReleasing acceptanceState = "releasing" // nothing came of the attempt, and the store has to be told
	acceptanceReleased  acceptanceState = "released"  // the store has heard it
	acceptanceVoid      acceptanceState = "void"      // nothing came of it, and the store never got the question
	acceptanceGivenUp   acceptanceState = "given_up"  // the store never heard of the release
)

func acceptanceStates() []acceptanceState {
	return []acceptanceState{
		acceptanceAsking, acceptanceDeclined, acceptanceHeld, acceptanceKept, acceptanceReleasing, acceptanceReleased,
		acceptanceVoid, acceptanceGivenUp,
	}
}

// open reports whether something is still to come.
func (s acceptanceState) open() bool {
	switch s {
	case acceptanceAsking, acceptanceHeld, acceptanceReleasing:
		return true
	case acceptanceDeclined, acceptanceKept, acceptanceReleased, acceptanceVoid, acceptanceGivenUp:
	}
	return false
}

// acceptance is what the attempt in hand knows of the store's answer. Without a store it is nothing.
type acceptance struct {
	id   string     // "" = it has no row yet
	word store.Word // "" = the store was not asked, because the order cannot be confirmed at present
	sent bool
}

// newAcceptanceID names a question. It is random, so that no id is used twice although old rows are forgotten.
func newAcceptanceID() string { return "acc_" + strings.ToLower(rand.Text()) }

const (
	// abandonedAfter is past the longest time between a question's row and its intent: the question, and ten seconds to
	// commit. Should it take longer nevertheless, the intent finds the row taken away and is not committed.
	abandonedAfter = 15 * time.Second
	// heldFirst is when the payment of an acceptance is first looked at: most are decided by then.
	heldFirst = 2 * time.Second
)

// begin commits the row of a question before it is sent, in one round trip, and reports whether the order can be
// confirmed at all: it is asked about by nobody else, waits for its payment, and no other payment holds it. Otherwise the
// store is not asked, and the intent will say what is the matter. What an earlier process left behind does not stand in
// the way for long.
func (h *Handler) begin(ctx context.Context, id string, wish ledger.Intent) (begun bool, err error) {
	now := h.now()
	b := &pgx.Batch{}
	b.Queue(`
		UPDATE acceptances SET state = 'releasing', owed_at = @now, due_at = @now
		WHERE order_id = @order_id AND state = 'asking' AND asked_at < @abandoned`,
		pgx.StrictNamedArgs{"order_id": wish.OrderID, "now": now, "abandoned": now.Add(-abandonedAfter)})
	b.Queue(`
		INSERT INTO acceptances (acceptance_id, order_id, payment_key, currency, amount, state, asked_at, due_at)
		SELECT @acceptance_id, o.order_id, @payment_key, o.currency, o.amount, 'asking', @now, @due_at
		FROM orders o
		WHERE o.order_id = @order_id AND o.status = 'pending' AND o.expires_at > @now
			AND NOT EXISTS (
				SELECT 1 FROM payments p
				WHERE p.order_id = o.order_id AND CASE p.payment_key
					WHEN @payment_key THEN p.status <> 'ready'
					ELSE p.status NOT IN ('ready', 'failed') AND NOT p.surplus END)
		ON CONFLICT (order_id) WHERE state = 'asking' DO NOTHING`,
		pgx.StrictNamedArgs{
			"acceptance_id": id, "order_id": wish.OrderID, "payment_key": wish.PaymentKey, "now": now,
			"due_at": now.Add(abandonedAfter),
		})
	results := h.cfg.DB.SendBatch(ctx, b)
	defer func() { err = errors.Join(err, results.Close()) }()
	if _, err := results.Exec(); err != nil {
		return false, fmt.Errorf("begin to ask the store about order %s: %w", wish.OrderID, err)
	}
	tag, err := results.Exec()
	if err != nil {
		return false, fmt.Errorf("begin to ask the store about order %s: %w", wish.OrderID, err)
	}
	return tag.RowsAffected() == 1, nil
}

// hold ties the acceptance to the attempt whose intent is committed in the same transaction: from then on the payment
// decides what becomes of it. An acceptance that was taken for abandoned meanwhile stops the intent.
func (h *Handler) hold(ctx context.Context, tx pgx.Tx, a acceptance, p ledger.Payment) error {
	if h.cfg.Store == nil {
		return nil
	}
	now := h.now()
	args := pgx.StrictNamedArgs{
		"acceptance_id": a.id, "attempt": p.Attempt, "word": a.word, "sent": a.sent, "due_at": now.Add(heldFirst),
	}
	sql := `
		UPDATE acceptances SET state = 'held', attempt = @attempt, word = @word, sent = @sent, due_at = @due_at
		WHERE acceptance_id = @acceptance_id AND state = 'asking'`
	switch {
	case a.word == "":
		return errUnderWay()
	case a.id == "":
		sql = `
			INSERT INTO acceptances (acceptance_id, order_id, payment_key, attempt, currency, amount, state, word, sent, asked_at, due_at)
			VALUES (@acceptance_id, @order_id, @payment_key, @attempt, @currency, @amount, 'held', @word, @sent, @now, @due_at)`
		args["acceptance_id"], args["order_id"], args["payment_key"] = newAcceptanceID(), p.OrderID, p.Key
		args["currency"], args["amount"], args["now"] = p.Amount.Currency, p.Amount.Minor, now
	}
	tag, err := tx.Exec(ctx, sql, args)
	switch {
	case err != nil:
		return fmt.Errorf("hold acceptance %s: %w", a.id, err)
	case tag.RowsAffected() != 1:
		return storeLate()
	}
	return nil
}

// end notes that nothing comes of a question: the store declined, or it said yes and there is no intent, or nobody knows
// what it said. Unless it is noted here, the row is taken for abandoned, and released.
func (h *Handler) end(ctx context.Context, a acceptance) {
	if a.id == "" {
		return
	}
	state := acceptanceReleasing
	switch {
	case a.word == store.Declined:
		state = acceptanceDeclined
	case !a.sent:
		state = acceptanceVoid
	}
	ctx, stop := detached(ctx, h.cfg.SettleBudget)
	defer stop()
	_, err := h.cfg.DB.Exec(ctx, `
		UPDATE acceptances
		SET state = @state, word = @word, sent = @sent,
			owed_at = CASE WHEN @state = 'releasing' THEN @now::timestamptz END,
			due_at = CASE WHEN @state = 'releasing' THEN @now::timestamptz END,
			ended_at = CASE WHEN @state <> 'releasing' THEN @now::timestamptz END
		WHERE acceptance_id = @acceptance_id AND state = 'asking'`,
		pgx.StrictNamedArgs{"acceptance_id": a.id, "state": state, "word": a.word, "sent": a.sent, "now": h.now()})
	if err != nil {
		h.log.WarnContext(ctx, "what came of an acceptance is not noted; it will be released",
			slog.String("acceptance_id", a.id), slog.Any("error", err))
	}
}
