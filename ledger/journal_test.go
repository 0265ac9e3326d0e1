package ledger_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"daesa/internal/postgres"
	"daesa/ledger/ledgertest"
)

const (
	newTransaction = `INSERT INTO journal_transactions (kind, reference, occurred_at, recorded_at)
		VALUES ('capture', 'test', now(), now())`
	oneEntry = `INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
		VALUES (currval('journal_transactions_transaction_id_seq'), 1, 'sales', 'KRW', -100)`
	oneMore = `INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
		VALUES (currval('journal_transactions_transaction_id_seq'), 3, 'sales', 'KRW', -100)`
	earlierEntries = `INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
		SELECT min(transaction_id), 7, 'sales', 'KRW', -5 FROM journal_transactions
		UNION ALL SELECT min(transaction_id), 8, 'refunds', 'KRW', 5 FROM journal_transactions`
	bothEntries = `INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
		VALUES (currval('journal_transactions_transaction_id_seq'), 1, 'sales', 'KRW', -100),
			(currval('journal_transactions_transaction_id_seq'), 2, 'gateway_receivable', 'KRW', 100)`
	unequalEntries = `INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
		VALUES (currval('journal_transactions_transaction_id_seq'), 1, 'sales', 'KRW', -100),
			(currval('journal_transactions_transaction_id_seq'), 2, 'gateway_receivable', 'KRW', 99)`
	inTwoCurrencies = `INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
		VALUES (currval('journal_transactions_transaction_id_seq'), 1, 'sales', 'KRW', -100),
			(currval('journal_transactions_transaction_id_seq'), 2, 'gateway_receivable', 'JPY', 100)`
	twoThatEvenOut = `WITH t AS (INSERT INTO journal_transactions (kind, reference, occurred_at, recorded_at)
			VALUES ('capture', 'short', now(), now()), ('capture', 'over', now(), now()) RETURNING transaction_id, reference)
		INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
		SELECT transaction_id, line, 'sales', 'KRW', CASE WHEN line = 1 THEN -100 WHEN reference = 'short' THEN 99 ELSE 101 END
		FROM t, generate_series(1, 2) AS line`
	immediate = `SET CONSTRAINTS ALL IMMEDIATE`
)

// TestInvariantI3_TheDatabaseRefusesAnythingElse tries everything that would break the journal, on books that
// have entries.
func TestInvariantI3_TheDatabaseRefusesAnythingElse(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 7)
	for _, c := range []struct {
		name       string
		statements []string
		constraint string
	}{
		{"change a transaction", []string{`UPDATE journal_transactions SET reference = 'other'`}, "journal_append_only"},
		{"change an entry", []string{`UPDATE journal_entries SET amount = amount * 2`}, "journal_append_only"},
		{"delete a transaction", []string{`DELETE FROM journal_transactions`}, "journal_append_only"},
		{"delete an entry", []string{`DELETE FROM journal_entries`}, "journal_append_only"},
		{"empty the entries", []string{`TRUNCATE journal_entries`}, "journal_append_only"},
		{"empty both", []string{`TRUNCATE journal_transactions, journal_entries`}, "journal_append_only"},
		{"empty by cascade", []string{`TRUNCATE journal_transactions CASCADE`}, "journal_append_only"},
		{"no entry", []string{newTransaction}, "journal_sums_to_zero"},
		{"one entry", []string{newTransaction, oneEntry}, "journal_sums_to_zero"},
		{"unequal entries", []string{newTransaction, unequalEntries}, "journal_sums_to_zero"},
		{"equal in two currencies", []string{newTransaction, inTwoCurrencies}, "journal_sums_to_zero"},
		{"two transactions that are unequal and even out", []string{twoThatEvenOut}, "journal_sums_to_zero"},
		{"no entry, checked at once", []string{immediate, newTransaction}, "journal_sums_to_zero"},
		{"one entry more", []string{newTransaction, bothEntries, oneMore}, "journal_sums_to_zero"},
		{"one entry more, once the balance was checked", []string{newTransaction, bothEntries, immediate, oneMore}, "journal_sums_to_zero"},
		{"balanced entries for an earlier transaction", []string{earlierEntries}, "journal_closed_transaction"},
		{"the same fact again", []string{`INSERT INTO journal_transactions (kind, reference, occurred_at, recorded_at)
			SELECT kind, reference, now(), now() FROM journal_transactions`}, "journal_one_per_fact"},
		{"an entry of nothing", []string{newTransaction, `INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
			VALUES (currval('journal_transactions_transaction_id_seq'), 1, 'sales', 'KRW', 0)`}, "journal_amount_not_zero"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
				for _, statement := range c.statements {
					if _, err := tx.Exec(t.Context(), statement); err != nil {
						return err
					}
				}
				return nil
			})
			var refused *pgconn.PgError
			if !errors.As(err, &refused) || refused.ConstraintName != c.constraint {
				t.Errorf("got %v, want a refusal by %s", err, c.constraint)
			}
		})
	}
	t.Cleanup(func() { ledgertest.RequireSound(t, b.pool) })
}

// TestJournal_BalancedIsAccepted shows that the refusals above are not for want of a right way.
func TestJournal_BalancedIsAccepted(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.do(func(tx pgx.Tx) error {
		for _, statement := range []string{newTransaction, bothEntries, immediate} {
			if _, err := tx.Exec(t.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestRecord_WritesABalancedJournalAtOnce: what Record writes balances statement by statement, not only at commit.
func TestRecord_WritesABalancedJournalAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 7)
	b.do(func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), immediate); err != nil {
			return err
		}
		_, err := b.ledger.Record(t.Context(), tx, b.captured("pk_1", "order_1", 50_000, done("c1", 12_000)))
		return err
	})
	ledgertest.RequireSound(t, b.pool)
}
