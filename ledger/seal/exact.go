package seal

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// comparison is one pair in SQL: which rows differ. It is run only when the sums do.
type comparison struct {
	what    string // the amount that differs
	fact    bool   // its subject is one transaction
	journal string // subject, transaction_id AS id, amount
	books   string // subject, amount
}

const (
	fromJournal = ` FROM journal_transactions t JOIN journal_entries e USING (transaction_id) `
	microTime   = `'YYYY-MM-DD HH24:MI:SS.US'`
)

func at(column string) string {
	return `to_char(` + column + ` AT TIME ZONE 'UTC', ` + microTime + `)`
}

// paymentSubject names a payment's money.
func paymentSubject(alias, currency string) string {
	return `concat_ws(' ', 'payment', ` + alias + `.payment_key, 'of order', ` + alias + `.order_id, 'in', ` + currency + `)`
}

// comparisonOf is the pair in SQL.
func comparisonOf(id pairID) comparison {
	payment := paymentSubject("t", "e.currency")
	switch id {
	case pairCaptures:
		return comparison{
			"captured", true,
			`SELECT concat_ws(' ', 'capture', t.reference, 'of payment', t.payment_key, e.currency, ` + at("t.occurred_at") + `, 'recorded', ` + at("t.recorded_at") + `) AS subject,
				t.transaction_id AS id, e.amount` + fromJournal + `WHERE t.kind = 'capture' AND e.account = 'gateway_receivable'`,
			`SELECT concat_ws(' ', 'capture', c.payment_key || '#' || c.number, 'of payment', c.payment_key, c.currency, ` + at("c.captured_at") + `, 'recorded', ` + at("c.recorded_at") + `) AS subject,
				c.amount FROM captures c`,
		}
	case pairReversals:
		return comparison{
			"taken back", true,
			`SELECT concat_ws(' ', 'deposit', t.reference, 'of payment', t.payment_key, e.currency, ` + at("t.occurred_at") + `) AS subject,
				t.transaction_id AS id, -e.amount AS amount` + fromJournal + `WHERE t.kind = 'deposit_reversal' AND e.account = 'gateway_receivable'`,
			`SELECT concat_ws(' ', 'deposit', c.payment_key || '#' || c.number, 'of payment', c.payment_key, c.currency, ` + at("c.reversed_at") + `) AS subject,
				c.amount FROM captures c WHERE c.reversed_at IS NOT NULL`,
		}
	case pairCancels:
		return comparison{
			"canceled", true,
			`SELECT concat_ws(' ', 'cancel', t.reference, 'of payment', t.payment_key, 'of order', t.order_id, e.currency, ` + at("t.occurred_at") + `, 'recorded', ` + at("t.recorded_at") + `) AS subject,
				t.transaction_id AS id, -e.amount AS amount` + fromJournal + `WHERE t.kind = 'cancel' AND e.account = 'gateway_receivable'`,
			`SELECT concat_ws(' ', 'cancel', c.transaction_key, 'of payment', c.payment_key, 'of order', c.order_id, c.currency, ` + at("c.canceled_at") + `, 'recorded', ` + at("c.recorded_at") + `) AS subject,
				c.amount FROM cancels c`,
		}
	case pairSpends:
		return comparison{
			"credits spent", true,
			`SELECT concat_ws(' ', 'spend', t.reference, 'of customer', t.customer_id, ` + at("t.occurred_at") + `) AS subject,
				t.transaction_id AS id, e.amount` + fromJournal + `WHERE t.kind = 'credit_spend' AND e.account = 'customer_credits'`,
			`SELECT concat_ws(' ', 'spend', s.spend_id, 'of customer', s.customer_id, ` + at("s.spent_at") + `) AS subject, s.amount FROM credit_spends s`,
		}
	case pairCaptured:
		return comparison{
			"captured", false,
			`SELECT ` + payment + ` AS subject, t.transaction_id AS id, e.amount` + fromJournal + `WHERE t.kind IN ('capture', 'deposit_reversal') AND e.account = 'gateway_receivable'`,
			`SELECT ` + paymentSubject("p", "p.currency") + ` AS subject, p.captured AS amount FROM payments p`,
		}
	case pairCanceled:
		return comparison{
			"canceled", false,
			`SELECT ` + payment + ` AS subject, t.transaction_id AS id, -e.amount AS amount` + fromJournal + `WHERE t.kind = 'cancel' AND e.account = 'gateway_receivable'`,
			`SELECT ` + paymentSubject("p", "p.currency") + ` AS subject, p.canceled AS amount FROM payments p`,
		}
	case pairIncome:
		return comparison{
			"sales less refunds", false,
			`SELECT ` + payment + ` AS subject, t.transaction_id AS id, -e.amount AS amount` + fromJournal + `WHERE e.account IN ('sales', 'refunds')`,
			`SELECT ` + paymentSubject("p", "p.currency") + ` AS subject, p.captured - p.canceled AS amount FROM payments p WHERE NOT p.surplus`,
		}
	case pairCancelRevoked, pairPaymentGranted, pairPaymentRevoked, pairGranted, pairRevoked, pairSpent:
		return creditComparisonOf(id)
	case pairOrders:
		return comparison{
			"orders in the status of their payment", false,
			`SELECT concat_ws(' ', 'order', p.order_id, CASE p.status WHEN 'done' THEN 'paid' ELSE p.status END) AS subject,
				NULL::bigint AS id, 1 AS amount FROM payments p WHERE NOT p.surplus AND p.status IN ('done', 'partially_canceled', 'canceled')`,
			`SELECT concat_ws(' ', 'order', o.order_id, o.status) AS subject, 1 AS amount FROM orders o WHERE o.status NOT IN ('pending', 'expired')`,
		}
	case pairBalanceDebits, pairBalanceCredits:
		return balanceComparison(id == pairBalanceDebits)
	case pairCount:
	}
	return comparison{}
}

func creditComparisonOf(id pairID) comparison {
	entries := func(subject, kind, amount string) string {
		return `SELECT concat_ws(' ', ` + subject + `) AS subject, t.transaction_id AS id, ` + amount + ` AS amount` +
			fromJournal + `WHERE t.kind = '` + kind + `' AND e.account = 'customer_credits'`
	}
	column := func(subject, column, table string) string {
		return `SELECT concat_ws(' ', ` + subject + `) AS subject, ` + column + ` AS amount FROM ` + table
	}
	switch id { //nolint:exhaustive // those of credits
	case pairCancelRevoked:
		return comparison{
			"credits revoked", false, entries(`'cancel', t.reference`, "credit_revoke", "e.amount") + ` AND t.reference NOT LIKE '` + reversalReference + `%'`,
			column(`'cancel', transaction_key`, "credits_revoked", "cancels"),
		}
	case pairPaymentGranted:
		return comparison{
			"credits granted", false, entries(`'payment', t.payment_key`, "credit_grant", "-e.amount"),
			column(`'payment', payment_key`, "credits_granted", "payments"),
		}
	case pairPaymentRevoked:
		return comparison{
			"credits revoked", false, entries(`'payment', t.payment_key`, "credit_revoke", "e.amount"),
			column(`'payment', payment_key`, "credits_revoked", "payments"),
		}
	case pairGranted:
		return comparison{
			"credits granted", false, entries(`'customer', t.customer_id`, "credit_grant", "-e.amount"),
			column(`'customer', customer_id`, "granted", "credit_accounts"),
		}
	case pairRevoked:
		return comparison{
			"credits revoked", false, entries(`'customer', t.customer_id`, "credit_revoke", "e.amount"),
			column(`'customer', customer_id`, "revoked", "credit_accounts"),
		}
	}
	return comparison{
		"credits spent", false, entries(`'customer', t.customer_id`, "credit_spend", "e.amount"),
		column(`'customer', customer_id`, "spent", "credit_accounts"),
	}
}

func balanceComparison(debits bool) comparison {
	what, amount, column := "credits", "GREATEST(-e.amount, 0)", "credits"
	if debits {
		what, amount, column = "debits", "GREATEST(e.amount, 0)", "debits"
	}
	return comparison{
		what, false,
		`SELECT concat_ws(' ', 'balance of', e.account, e.currency, 'on', (t.occurred_at AT TIME ZONE 'Asia/Seoul')::date, 'in the section of', s.day) AS subject,
			t.transaction_id AS id, ` + amount + ` AS amount
			FROM journal_sections s
			JOIN journal_transactions t ON t.transaction_id > s.from_id AND t.transaction_id <= s.up_to_id
			JOIN journal_entries e USING (transaction_id)`,
		`SELECT concat_ws(' ', 'balance of', account, currency, 'on', occurred_on, 'in the section of', day) AS subject, ` + column + ` AS amount FROM journal_balances`,
	}
}

// difference is one subject on which the entries and the tables beside them disagree.
type difference struct {
	Subject string `db:"subject"`
	ID      int64  `db:"id"`
	Journal string `db:"journal"`
	Books   string `db:"books"`
}

// differences names the first subjects of a pair that differ, by their earliest transaction.
func differences(ctx context.Context, tx pgx.Tx, c comparison) ([]difference, error) {
	rows, err := tx.Query(ctx, `
		WITH j AS (SELECT subject, min(id) AS id, sum(amount) AS amount FROM (`+c.journal+`) entries GROUP BY subject),
		b AS (SELECT subject, sum(amount) AS amount FROM (`+c.books+`) kept GROUP BY subject)
		SELECT subject, COALESCE(j.id, 0) AS id, COALESCE(j.amount, 0)::text AS journal, COALESCE(b.amount, 0)::text AS books
		FROM j FULL JOIN b USING (subject)
		WHERE COALESCE(j.amount, 0) <> COALESCE(b.amount, 0)
		ORDER BY j.id NULLS LAST, subject
		LIMIT 10`)
	if err != nil {
		return nil, fmt.Errorf("look for what differs: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[difference])
	if err != nil {
		return nil, fmt.Errorf("look for what differs: %w", err)
	}
	return found, nil
}
