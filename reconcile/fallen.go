package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/pgclient"
)

// How the gateway's list shows a deposit that fell back is not documented. It may have a row of its own, without money;
// the row of the deposit may be shown without money; it may be gone; or nothing at all may show. Whatever it shows of a
// deposit in our books makes somebody ask, and explains the difference for as long as that takes.

const (
	// fallenPatience is how long a deposit may be in our books that the list takes back, until that is a mismatch: the
	// payment object is to be asked, and to be asked again.
	fallenPatience = 2 * time.Hour
	// detailTakenBack is the detail of a mismatch about a deposit that the list shows without money and the payment with.
	detailTakenBack = "the list shows the row of the deposit without money, and the payment object does not"
)

// fellBack opens a question about every deposit of ours that the page takes back: with a row without money that is later
// than the deposit, or with the deposit's own. A question asked since the list began to show it keeps its pace.
func (m *Mirror) fellBack(ctx context.Context, tx pgx.Tx, b *gathered, rows []pgclient.Transaction, now time.Time) error {
	var keys []string
	for _, r := range rows {
		if r.Kind == pgclient.TransactionNone && !r.At.Before(m.cfg.OpeningAt) {
			keys = append(keys, r.TransactionKey)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	answer, err := tx.Query(ctx, `
		SELECT p.payment_key, p.order_id, c.currency, c.amount
		FROM unnest(@keys::text[]) AS r (transaction_key)
		JOIN mirror g ON g.transaction_key = r.transaction_key
		JOIN payments p ON p.payment_key = g.payment_key
		JOIN captures c ON c.payment_key = g.payment_key
		WHERE p.virtual_account AND c.reversed_at IS NULL AND (g.transaction_key = c.transaction_key OR g.at > c.captured_at)
			AND NOT EXISTS (SELECT 1 FROM work w WHERE w.payment_key = g.payment_key AND w.kind = 'deposit_watch' AND w.closed_at IS NULL
				AND w.last_asked_at > COALESCE(g.waiting_since, g.first_seen_at))
			AND NOT EXISTS (SELECT 1 FROM work w WHERE w.payment_key = g.payment_key AND w.kind = 'deposit_watch' AND w.closed_at IS NOT NULL
				AND w.last_asked_at > COALESCE(g.waiting_since, g.first_seen_at))`,
		pgx.StrictNamedArgs{"keys": keys})
	if err != nil {
		return fmt.Errorf("look for deposits that fell back: %w", err)
	}
	fallen, err := pgx.CollectRows(answer, pgx.RowToStructByName[fallenDeposit])
	if err != nil {
		return fmt.Errorf("look for deposits that fell back: %w", err)
	}
	for _, f := range fallen {
		ledger.QueueWork(&b.Batch, f.watch(now), now)
	}
	return nil
}

// fallenDeposit is a deposit in our books that the list takes back.
type fallenDeposit struct {
	PaymentKey string          `db:"payment_key"`
	OrderID    string          `db:"order_id"`
	Currency   ledger.Currency `db:"currency"`
	Amount     int64           `db:"amount"`
}

// watch is the question whether the payment object says so too.
func (f fallenDeposit) watch(now time.Time) ledger.Work {
	return ledger.Work{
		Kind: ledger.WorkDepositWatch, PaymentKey: f.PaymentKey, OrderID: f.OrderID,
		AtRisk: ledger.Money{Minor: f.Amount, Currency: f.Currency}, DueAt: now, Deadline: now.Add(fallenPatience),
	}
}

// takenBack opens a mismatch for each deposit that the list has taken back for long, and that the payment object goes on
// showing: the gateway contradicts itself.
func (s *Sweeper) takenBack(ctx context.Context) error {
	for _, shown := range []struct{ column, detail string }{{"waiting_since", detailTakenBack}, {"missing_since", detailVanished}} {
		err := s.report(ctx, ledger.KindHistoryChanged, shown.detail, `
			SELECT g.payment_key, g.order_id, g.transaction_key, g.currency, g.amount, g.`+shown.column+` AS since,
				COALESCE(w.attempts, 0) AS asked, COALESCE(w.last_answer, '') AS answer
			FROM mirror g
			CROSS JOIN LATERAL (SELECT 1 FROM captures x JOIN payments p ON p.payment_key = x.payment_key
				WHERE x.payment_key = g.payment_key AND x.transaction_key = g.transaction_key AND x.reversed_at IS NULL AND p.virtual_account
				LIMIT 1) c
			LEFT JOIN work w ON w.payment_key = g.payment_key AND w.kind = 'deposit_watch' AND w.closed_at IS NULL
			WHERE g.`+shown.column+` <= @before AND g.kind = 'capture' AND NOT g.is_foreign
				AND NOT EXISTS (SELECT 1 FROM mismatches m
					WHERE m.kind = 'history_changed' AND m.payment_key = g.payment_key AND m.transaction_key = g.transaction_key
						AND (m.status <> 'resolved' OR (m.resolved_as = 'accepted' AND m.amount = g.amount AND m.currency = g.currency)))`,
			s.cfg.now().Add(-fallenPatience))
		if err != nil {
			return err
		}
	}
	return nil
}
