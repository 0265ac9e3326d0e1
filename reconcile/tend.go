package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// Tend looks after the table of work itself: payments in doubt that nobody asks about get their work back, what has
// been owed for too long becomes a mismatch, mismatches whose sides agree by now are resolved, and the gauges are
// refreshed. Every part may run any number of times, in any number of processes.
func (s *Sweeper) Tend(ctx context.Context) error {
	return errors.Join(s.repair(ctx), s.unpark(ctx), s.staleUnknown(ctx), s.staleAccounts(ctx), s.overdue(ctx), s.takenBack(ctx), s.resolve(ctx), s.measure(ctx))
}

// repair gives work to payments in doubt that have none. There should never be any: the count is an alarm.
func (s *Sweeper) repair(ctx context.Context) error {
	now := s.cfg.now()
	tag, err := s.cfg.DB.Exec(ctx, `
		INSERT INTO work (kind, payment_key, order_id, currency, amount, opened_at, due_at, deadline)
		SELECT 'confirm_unknown', p.payment_key, p.order_id, p.currency, p.amount, @now, @now, p.undecided_since + @age::interval
		FROM payments p
		WHERE p.undecided_since IS NOT NULL AND p.undecided_since < @before
			AND NOT EXISTS (SELECT 1 FROM work w
				WHERE w.payment_key = p.payment_key AND w.kind = 'confirm_unknown' AND w.closed_at IS NULL)
		ON CONFLICT (payment_key, subject) WHERE closed_at IS NULL DO NOTHING`,
		pgx.StrictNamedArgs{"now": now, "age": ledger.UndecidedAgeMax, "before": now.Add(-ledger.ConfirmBudget)})
	if err != nil {
		return fmt.Errorf("repair work: %w", err)
	}
	s.cfg.Metrics.repairs(tag.RowsAffected())
	return nil
}

// unpark turns what is parked for a key that has become a payment into a claim: the two can pass each other while the
// payment's first intent is being committed.
func (s *Sweeper) unpark(ctx context.Context) error {
	_, err := s.cfg.DB.Exec(ctx, `
		UPDATE work w
		SET kind = 'cancel_claimed', order_id = p.order_id, currency = p.currency, due_at = LEAST(w.deadline, @now)
		FROM payments p
		WHERE w.kind = 'parked' AND w.closed_at IS NULL AND p.payment_key = w.payment_key
			AND NOT EXISTS (SELECT 1 FROM work o WHERE o.payment_key = w.payment_key AND o.closed_at IS NULL
				AND o.kind = 'cancel_claimed' AND o.transaction_key IS NULL AND w.transaction_key IS NULL)`,
		pgx.StrictNamedArgs{"now": s.cfg.now()})
	if err != nil {
		return fmt.Errorf("turn parked work into claims: %w", err)
	}
	return nil
}

// owed is something that has been owed for too long.
type owed struct {
	PaymentKey     string          `db:"payment_key"`
	OrderID        string          `db:"order_id"`
	TransactionKey string          `db:"transaction_key"`
	Currency       ledger.Currency `db:"currency"`
	Amount         int64           `db:"amount"`
	Since          time.Time       `db:"since"`
	Asked          int             `db:"asked"`
	Answer         string          `db:"answer"`
}

func (o owed) finding(kind ledger.Kind, detail string) ledger.Finding {
	f := ledger.Finding{
		Kind: kind, PaymentKey: o.PaymentKey, OrderID: o.OrderID, TransactionKey: o.TransactionKey,
		AtRisk: ledger.Money{Minor: o.Amount, Currency: o.Currency}, Detail: detail,
		Gateway: map[string]any{"last_answer": o.Answer, "asked": o.Asked},
		Books:   map[string]any{"since": o.Since.UTC()},
	}
	if kind == ledger.KindHistoryChanged { // it is the list that takes it back, since then; what our books have is looked up
		f.Gateway["present"], f.Gateway["since"], f.Gateway["transaction_key"] = false, o.Since.UTC(), o.TransactionKey
		f.Gateway["amount"], f.Gateway["currency"] = f.AtRisk.Decimal(), o.Currency
		f.Books = nil
	}
	return f
}

// staleUnknown opens a mismatch for each payment in doubt past the age. Asking goes on: only evidence ends doubt (I6).
func (s *Sweeper) staleUnknown(ctx context.Context) error {
	return s.report(ctx, ledger.KindStaleUnknown, "the gateway has not said what became of the confirm", `
		SELECT p.payment_key, p.order_id, '' AS transaction_key, p.currency, p.amount, p.undecided_since AS since,
			COALESCE(w.attempts, 0) AS asked, COALESCE(w.last_answer, '') AS answer
		FROM payments p
		LEFT JOIN work w ON w.payment_key = p.payment_key AND w.kind = 'confirm_unknown' AND w.closed_at IS NULL
		WHERE p.undecided_since <= @before
			AND NOT EXISTS (SELECT 1 FROM mismatches m
				WHERE m.kind = 'stale_unknown' AND m.payment_key = p.payment_key
					AND (m.status <> 'resolved' OR (m.resolved_as = 'accepted' AND m.amount = p.amount AND m.currency = p.currency)))`,
		s.cfg.now().Add(-ledger.UndecidedAgeMax))
}

// staleAccounts opens a mismatch for each account that still waits for its deposit past its watch: the gateway neither
// took one nor said that the time is over, and the account holds its order. Asking goes on.
func (s *Sweeper) staleAccounts(ctx context.Context) error {
	return s.report(ctx, ledger.KindStaleUnknown, "the account waits for its deposit past its time and holds the order", `
		SELECT w.payment_key, p.order_id, '' AS transaction_key, p.currency, p.amount, w.opened_at AS since, w.attempts AS asked,
			w.last_answer AS answer
		FROM work w
		CROSS JOIN LATERAL (
			SELECT x.order_id, x.currency, x.amount, x.payment_key FROM payments x
			WHERE x.payment_key = w.payment_key AND x.status = 'waiting_for_deposit' LIMIT 1) p
		WHERE w.closed_at IS NULL AND w.kind = 'deposit_watch' AND w.deadline <= @before
			AND NOT EXISTS (SELECT 1 FROM mismatches m
				WHERE m.kind = 'stale_unknown' AND m.payment_key = p.payment_key
					AND (m.status <> 'resolved' OR (m.resolved_as = 'accepted' AND m.amount = p.amount AND m.currency = p.currency)))`,
		s.cfg.now().Add(-overdueGrace))
}

// overdue opens a mismatch for each cancel that is still owed after its last chance, or an hour after it was found when
// that was later: one of the gateway's, or one that we asked for and whose answer is not known. A claim of unknown amount
// puts what is left of the payment at risk.
func (s *Sweeper) overdue(ctx context.Context) error {
	return s.report(ctx, ledger.KindCancelMissingHere, "the cancel is still owed after its last chance", `
		SELECT o.payment_key, o.order_id, COALESCE(o.transaction_key, '') AS transaction_key, o.currency, o.amount, o.since, o.asked, o.answer
		FROM (
			SELECT w.payment_key, COALESCE(w.order_id, '') AS order_id, COALESCE(w.transaction_key, 'request:' || w.request_id) AS transaction_key,
				COALESCE(w.currency, p.currency, '') AS currency, COALESCE(w.amount, p.captured - p.canceled, 0) AS amount,
				w.opened_at AS since, w.attempts AS asked, w.last_answer AS answer
			FROM work w
			LEFT JOIN payments p ON p.payment_key = w.payment_key
			WHERE w.closed_at IS NULL AND w.kind IN ('cancel_claimed', 'cancel_listed', 'cancel_in_progress', 'cancel_request')
				AND GREATEST(w.deadline, w.opened_at + interval '1 hour') <= @before) o
		WHERE NOT EXISTS (SELECT 1 FROM mismatches m
			WHERE m.kind = 'cancel_missing_here' AND m.payment_key = o.payment_key
				AND m.transaction_key IS NOT DISTINCT FROM o.transaction_key
				AND (m.status <> 'resolved' OR (m.resolved_as = 'accepted' AND m.amount = o.amount AND m.currency = o.currency)))`,
		s.cfg.now().Add(-overdueGrace))
}

// report opens a mismatch for each row that the query finds.
func (s *Sweeper) report(ctx context.Context, kind ledger.Kind, detail, sql string, before time.Time) error {
	rows, err := s.cfg.DB.Query(ctx, sql, pgx.StrictNamedArgs{"before": before})
	if err != nil {
		return fmt.Errorf("look for %s: %w", kind, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[owed])
	if err != nil {
		return fmt.Errorf("look for %s: %w", kind, err)
	}
	if len(found) == 0 {
		return nil
	}
	findings := make([]ledger.Finding, 0, len(found))
	for _, o := range found {
		findings = append(findings, o.finding(kind, detail))
	}
	now := s.cfg.now()
	return postgres.InTx(ctx, s.cfg.DB, func(tx pgx.Tx) error {
		if err := besideBooks(ctx, tx, findings); err != nil {
			return err
		}
		_, err := ledger.OpenMismatches(ctx, tx, fmt.Sprintf("sweep for %s %s", kind, now.UTC().Format(time.RFC3339Nano)), findings, now)
		return err
	})
}

// resolve closes mismatches whose two sides agree by now.
func (s *Sweeper) resolve(ctx context.Context) error {
	return postgres.InTx(ctx, s.cfg.DB, func(tx pgx.Tx) error { return resolveAgreed(ctx, tx, s.cfg.now()) })
}
