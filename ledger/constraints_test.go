package ledger_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

// TestInvariantI11_OneLivePaymentPerOrder asks the database itself, past all code.
func TestInvariantI11_OneLivePaymentPerOrder(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 0)
	for _, s := range ledger.Statuses() {
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			insert := func(surplus bool) error {
				return postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
					_, err := tx.Exec(t.Context(), `
						INSERT INTO payments (payment_key, order_id, status, currency, amount, captured, canceled, surplus, attempt,
							intended_at, undecided_since, created_at, updated_at)
						VALUES ('pk_' || @status, 'order_1', @status, 'KRW', 50000,
							CASE WHEN @status IN ('done', 'partially_canceled', 'canceled') THEN 50000 ELSE 0 END,
							CASE @status WHEN 'partially_canceled' THEN 1 WHEN 'canceled' THEN 50000 ELSE 0 END,
							@surplus, 1, now(), CASE WHEN @status IN ('confirming', 'unknown') THEN now() END, now(), now())`,
						pgx.StrictNamedArgs{"status": string(s), "surplus": surplus})
					if err == nil && s.Live() == surplus {
						return errUndo // accepted, as it should be; the table is left as it was
					}
					return err
				})
			}
			if err := insert(false); s.Live() != postgres.Violates(err, "payments_one_live_per_order") {
				t.Errorf("got %v for a second %s payment", err, s)
			}
			if err := insert(true); s.Live() && !undone(err) {
				t.Errorf("got %v for a surplus %s payment, want it accepted", err, s)
			}
		})
	}
}

// TestPayments_StatusFollowsMoney tries every status with every shape of money.
func TestPayments_StatusFollowsMoney(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 0)
	for _, s := range ledger.Statuses() {
		for _, m := range []struct {
			name               string
			captured, canceled int64
			fits               []ledger.Status
		}{
			{"no money", 0, 0, []ledger.Status{
				ledger.StatusReady, ledger.StatusConfirming, ledger.StatusUnknown, ledger.StatusFailed, ledger.StatusWaitingForDeposit, ledger.StatusCanceled,
			}},
			{"all of it", 50_000, 0, []ledger.Status{ledger.StatusDone}},
			{"some left", 50_000, 1, []ledger.Status{ledger.StatusPartiallyCanceled}},
			{"none left", 50_000, 50_000, []ledger.Status{ledger.StatusCanceled}},
			{"too much given back", 50_000, 50_001, nil},
			{"given back, never taken", 0, 1, nil},
			{"part taken", 49_999, 0, nil},
			{"below nothing", 50_000, -1, nil},
		} {
			t.Run(string(s)+" with "+m.name, func(t *testing.T) {
				t.Parallel()
				err := postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
					_, err := tx.Exec(t.Context(), `
						INSERT INTO payments (payment_key, order_id, status, currency, amount, captured, canceled, attempt, intended_at,
							undecided_since, created_at, updated_at)
						VALUES ('pk_1', 'order_1', @status, 'KRW', 50000, @captured, @canceled, 1, now(),
							CASE WHEN @status IN ('confirming', 'unknown') THEN now() END, now(), now())`,
						pgx.StrictNamedArgs{"status": string(s), "captured": m.captured, "canceled": m.canceled})
					if err == nil {
						return errUndo
					}
					return err
				})
				refused := postgres.Violates(err, "payments_status_follows_money") ||
					postgres.Violates(err, "payments_canceled_within_captured") || postgres.Violates(err, "payments_captured_within_amount")
				if fits := slices.Contains(m.fits, s); fits != undone(err) || fits == refused {
					t.Errorf("got %v, want accepted %t", err, fits)
				}
			})
		}
	}
}

// TestConstraints_StandAlone asks each constraint for what others would refuse too, or what Record never tries.
func TestConstraints_StandAlone(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 0)
	b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 12_000)))
	for _, c := range []struct {
		constraint string
		statements []string
	}{
		{"cancels_pkey", []string{`
			INSERT INTO cancels (transaction_key, payment_key, order_id, currency, amount, canceled_at, channel, recorded_at)
			SELECT transaction_key, payment_key, order_id, currency, 1, canceled_at, channel, recorded_at FROM cancels`}},
		{"captures_one_standing", []string{`
			INSERT INTO captures (payment_key, number, currency, amount, captured_at, channel, recorded_at)
			SELECT payment_key, number + 1, currency, amount, captured_at, channel, recorded_at FROM captures`}},
		{"captures_one_per_transaction", []string{
			`INSERT INTO payments (payment_key, order_id, status, currency, amount, captured, created_at, updated_at)
			SELECT 'pk_2', order_id, 'ready', currency, amount, 0, created_at, updated_at FROM payments`,
			`INSERT INTO captures (payment_key, number, transaction_key, currency, amount, captured_at, channel, recorded_at)
			SELECT 'pk_2', number, transaction_key, currency, amount, captured_at, channel, recorded_at FROM captures`,
		}},
		{"payments_canceled_within_captured", []string{
			`ALTER TABLE payments DROP CONSTRAINT payments_status_follows_money`, `UPDATE payments SET canceled = captured + 1`,
		}},
		{"orders_amount_bounded", []string{`UPDATE orders SET amount = 1000000000001`}},
		{"orders_credits_bounded", []string{`UPDATE orders SET customer_id = 'c', credits = 1000000000001`}},
		{"payments_undecided_is_dated", []string{`UPDATE payments SET undecided_since = now()`}},
		{"payments_credits_bounded", []string{`UPDATE payments SET credits_revoked = credits_granted + 1`}},
	} {
		err := b.try(func(tx pgx.Tx) error {
			for _, statement := range c.statements {
				if _, err := tx.Exec(t.Context(), statement); err != nil {
					return err
				}
			}
			return nil
		})
		if !postgres.Violates(err, c.constraint) {
			t.Errorf("got %v, want a refusal by %s", err, c.constraint)
		}
	}
	ledgertest.RequireSound(t, b.pool)
}
