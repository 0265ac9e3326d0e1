package reconcile

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/pgclient"
)

// keep writes one page into the mirror and, in the same transaction, opens work for everything in it that our books
// lack: there is never an instant at which the mirror knows of money that nobody is going to ask about. How far the read
// has come is written with the page, so that a successor neither loses nor doubles a row.
func (m *Mirror) keep(ctx context.Context, w *read, page pgclient.Page) error {
	rows, twice := distinct(page.Rows)
	fresh := 0
	err := m.inTx(ctx, func(tx pgx.Tx) error {
		b, now := &gathered{}, m.cfg.now()
		b.findings = append(b.findings, twice...)
		for _, q := range page.Quarantined {
			m.quarantine(b, q)
			b.shown(w.Run, q.TransactionKey)
		}
		var err error
		if fresh, err = m.keepRows(ctx, tx, b, w.Run, rows, now); err != nil {
			return err
		}
		if b.Len() > 0 {
			if err := tx.SendBatch(ctx, &b.Batch).Close(); err != nil {
				return fmt.Errorf("keep a page of the list: %w", err)
			}
		}
		if err := besideBooks(ctx, tx, b.findings); err != nil {
			return err
		}
		if _, err := ledger.OpenMismatches(ctx, tx, listRun(w.Run), b.findings, now); err != nil {
			return err
		}
		return advance(ctx, tx, *w, fresh)
	})
	if err == nil {
		w.Fresh += fresh
	}
	return err
}

// keepRows writes the rows and gathers what they mean. It returns how many of them are new.
func (m *Mirror) keepRows(
	ctx context.Context, tx pgx.Tx, b *gathered, run int64, rows []pgclient.Transaction, now time.Time,
) (fresh int, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	known, err := m.upsert(ctx, tx, run, rows, now)
	if err != nil {
		return 0, err
	}
	fresh = m.compareAgain(b, rows, known)
	m.unheardOf(b, rows, known)
	if err := m.lacking(ctx, tx, b, rows, now); err != nil {
		return 0, err
	}
	return fresh, m.fellBack(ctx, tx, b, rows, now)
}

// advance notes how far the read has come, if it is still this reader's turn.
func advance(ctx context.Context, tx pgx.Tx, w read, fresh int) error {
	tag, err := tx.Exec(ctx, `
		UPDATE list_runs
		SET pages = @pages, rows = @rows, fresh = @fresh, quarantined = @quarantined, cursor = @cursor
		WHERE run_id = @run AND turn = @turn AND result = 'running'`,
		pgx.StrictNamedArgs{
			"pages": w.Pages, "rows": w.Rows, "fresh": w.Fresh + fresh, "quarantined": w.Quarantined, "cursor": w.Cursor,
			"run": w.Run, "turn": w.Turn,
		})
	if err != nil {
		return fmt.Errorf("note how far the list was read: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return errOvertaken
	}
	return nil
}

// gathered is what one page of the list comes to, to be written at once.
type gathered struct {
	pgx.Batch
	findings []ledger.Finding
}

func (g *gathered) found(f ledger.Finding) { g.findings = append(g.findings, f) }

// shown notes that the list has a known row, although it cannot be held as it is written now: it is not missing.
func (g *gathered) shown(run int64, transactionKey string) {
	g.Queue(`UPDATE mirror SET last_run = GREATEST(last_run, @run), missing_since = NULL WHERE transaction_key = @key`,
		pgx.StrictNamedArgs{"run": run, "key": transactionKey})
}

// listRun names a read of the list to those who look at what it found.
func listRun(run int64) string { return fmt.Sprintf("list %d", run) }

// How the details begin of mismatches about a row that the list shows otherwise than it was first read, and about one that it
// shows in two ways at once.
const (
	detailChanged = "first read as "
	detailTwice   = "one page has the row as "
)

// distinct drops repeated rows of one page; two rows of one key that differ are a finding.
func distinct(rows []pgclient.Transaction) (kept []pgclient.Transaction, twice []ledger.Finding) {
	at := map[string]int{}
	for _, r := range rows {
		n, again := at[r.TransactionKey]
		switch {
		case !again:
			at[r.TransactionKey] = len(kept)
			kept = append(kept, r)
		case kept[n].Amount != r.Amount || kept[n].Kind != r.Kind || kept[n].PaymentKey != r.PaymentKey:
			twice = append(twice, changed(kept[n].PaymentKey, kept[n].OrderID, r,
				fmt.Sprintf(detailTwice+"%s of %s and as %s of %s", kept[n].Kind, kept[n].Amount, r.Kind, r.Amount)))
		}
	}
	return kept, twice
}

// mirrored is how the mirror holds a row: as it was first read.
type mirrored struct {
	TransactionKey string          `db:"transaction_key"`
	PaymentKey     string          `db:"payment_key"`
	OrderID        string          `db:"order_id"`
	Kind           string          `db:"kind"`
	Word           string          `db:"word"`
	Currency       ledger.Currency `db:"currency"`
	Amount         int64           `db:"amount"`
	Foreign        bool            `db:"is_foreign"`
	Fresh          bool            `db:"fresh"`
	Fell           bool            `db:"fell"` // the row of a virtual account's deposit, which the list shows without money now
}

// upsert writes the rows. A row that is known keeps its first reading; only that it was
// seen again is noted, and whose it is: another system's by the configuration of now, unless our books hold the payment
// or the order. Only a row that this statement inserted has no xmax.
// A row whose word nobody knew was in none of the sets. Once it is read with one that is known, it is what that says; its
// money stays as first read, and another is a contradiction as of any row.
// The list may write a payment's present status into the row of its approval: what looks like a cancel and bears the key
// of a capture of ours is that capture. One that is first read without money and later with it is a capture from then on;
// and since when a capture is shown without money is kept beside its first reading.
func (m *Mirror) upsert(ctx context.Context, tx pgx.Tx, run int64, rows []pgclient.Transaction, now time.Time) (map[string]mirrored, error) {
	c := m.columns(rows)
	answer, err := tx.Query(ctx, `
		INSERT INTO mirror AS g (transaction_key, payment_key, order_id, merchant_id, kind, word, currency, amount, negative,
			at, day, is_foreign, first_seen_at, last_seen_at, first_run, last_run)
		SELECT transaction_key, payment_key, order_id, merchant_id,
			CASE WHEN kind = 'cancel' AND EXISTS (SELECT 1 FROM captures c WHERE c.transaction_key = r.transaction_key)
				THEN 'capture' ELSE kind END,
			word, currency, amount, negative, at, day::date,
			is_foreign AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.payment_key = r.payment_key)
				AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.order_id = r.order_id),
			@now, @now, @run, @run
		FROM unnest(@keys::text[], @payments::text[], @orders::text[], @merchants::text[], @kinds::text[], @words::text[],
			@currencies::text[], @amounts::bigint[], @negatives::boolean[], @ats::timestamptz[], @days::text[], @foreigns::boolean[])
			AS r (transaction_key, payment_key, order_id, merchant_id, kind, word, currency, amount, negative, at, day, is_foreign)
		ON CONFLICT (transaction_key) DO UPDATE
		SET last_seen_at = excluded.last_seen_at, last_run = GREATEST(g.last_run, excluded.last_run), missing_since = NULL,
			is_foreign = excluded.is_foreign,
			kind = CASE WHEN g.kind = 'unrecognized' THEN excluded.kind
				WHEN g.kind = 'none' AND excluded.kind = 'capture' AND (g.amount, g.currency) = (excluded.amount, excluded.currency)
				AND g.amount > 0 THEN 'capture' ELSE g.kind END,
			word = CASE WHEN g.kind = 'unrecognized' THEN excluded.word ELSE g.word END,
			negative = CASE WHEN g.kind = 'unrecognized' THEN excluded.negative ELSE g.negative END,
			waiting_since = CASE WHEN g.kind = 'capture' AND g.amount > 0 AND excluded.kind = 'none' THEN COALESCE(g.waiting_since, excluded.last_seen_at) END
		RETURNING g.transaction_key, g.payment_key, g.order_id, g.kind, g.word, g.currency, g.amount, g.is_foreign,
			g.xmax = 0 AS fresh, g.waiting_since IS NOT NULL AND EXISTS (SELECT 1 FROM payments p
				WHERE p.payment_key = g.payment_key AND p.virtual_account) AS fell`,
		pgx.StrictNamedArgs{
			"now": now, "run": run, "keys": c.keys, "payments": c.payments, "orders": c.orders, "merchants": c.merchants,
			"kinds": c.kinds, "words": c.words, "currencies": c.currencies, "amounts": c.amounts, "negatives": c.negatives,
			"ats": c.ats, "days": c.days, "foreigns": c.foreigns,
		})
	if err != nil {
		return nil, fmt.Errorf("write the mirror: %w", err)
	}
	all, err := pgx.CollectRows(answer, pgx.RowToStructByName[mirrored])
	if err != nil {
		return nil, fmt.Errorf("write the mirror: %w", err)
	}
	known := make(map[string]mirrored, len(all))
	for _, k := range all {
		known[k.TransactionKey] = k
	}
	return known, nil
}

// columns is a page turned by a quarter, as the statement wants it.
type columns struct {
	keys, payments, orders, merchants, kinds, words, currencies, days []string
	amounts                                                           []int64
	negatives, foreigns                                               []bool
	ats                                                               []time.Time
}

func (m *Mirror) columns(rows []pgclient.Transaction) columns {
	var c columns
	for _, r := range rows {
		c.keys, c.payments, c.orders = append(c.keys, r.TransactionKey), append(c.payments, r.PaymentKey), append(c.orders, r.OrderID)
		c.merchants, c.kinds = append(c.merchants, r.MerchantID), append(c.kinds, string(r.Kind))
		c.words, c.currencies = append(c.words, r.Word), append(c.currencies, string(r.Amount.Currency))
		c.amounts, c.negatives = append(c.amounts, r.Amount.Minor), append(c.negatives, r.Negative)
		c.ats, c.days = append(c.ats, r.At), append(c.days, string(ledger.DayOf(r.At)))
		c.foreigns = append(c.foreigns, m.cfg.foreign(r.OrderID))
	}
	return c
}

// compareAgain compares the money of rows seen before with their first reading, and counts the new ones. The word alone
// decides the kind, so a kind that was corrected since does not look like a change. What belongs to other systems, or to
// the time before the books were opened, may change.
func (m *Mirror) compareAgain(b *gathered, rows []pgclient.Transaction, known map[string]mirrored) (fresh int) {
	for _, r := range rows {
		k := known[r.TransactionKey]
		if k.Fresh {
			fresh++
			continue
		}
		if k.Foreign || r.At.Before(m.cfg.OpeningAt) {
			continue
		}
		first := ledger.Money{Minor: k.Amount, Currency: k.Currency}
		// A list that writes a payment's present status into the row of its approval takes nothing back: the cancel
		// has a row of its own.
		sameKind := k.Kind == string(r.Kind) || k.Word == r.Word || (k.Kind == "capture" && r.Kind == pgclient.TransactionCancel)
		if first == r.Amount && sameKind && k.PaymentKey == r.PaymentKey {
			continue
		}
		if (k.Fell || moneyless(k, r)) && (first == r.Amount || r.Amount.IsZero()) && k.PaymentKey == r.PaymentKey {
			continue // the payment object is asked whether the deposit fell back
		}
		b.found(changed(k.PaymentKey, k.OrderID, r, fmt.Sprintf(detailChanged+"%s of %s for payment %s, now %s of %s for payment %s",
			k.Kind, first, k.PaymentKey, r.Kind, r.Amount, r.PaymentKey)))
	}
	return fresh
}

// moneyless reports whether a row had no money and has none, under whatever words.
func moneyless(k mirrored, r pgclient.Transaction) bool { return k.Amount == 0 && r.Amount.IsZero() }

// unheardOf reports new rows whose word nobody here knows: they are in none of the sets, so a person has to look.
func (m *Mirror) unheardOf(b *gathered, rows []pgclient.Transaction, known map[string]mirrored) {
	for _, r := range rows {
		if r.Kind != pgclient.TransactionUnrecognized || !known[r.TransactionKey].Fresh || known[r.TransactionKey].Foreign || r.At.Before(m.cfg.OpeningAt) {
			continue
		}
		b.found(ledger.Finding{
			Kind: ledger.KindUnrecognized, PaymentKey: r.PaymentKey, OrderID: r.OrderID, TransactionKey: r.TransactionKey,
			AtRisk: r.Amount, Detail: "the gateway's list has a status that is not known: " + r.Word,
			Gateway: shownEvidence(r.TransactionKey, r.Word, r.Amount, r.At),
		})
	}
}

func changed(paymentKey, orderID string, r pgclient.Transaction, detail string) ledger.Finding {
	seen := shownEvidence(r.TransactionKey, r.Word, r.Amount, r.At)
	seen["payment_key"] = r.PaymentKey
	return ledger.Finding{
		Kind: ledger.KindHistoryChanged, PaymentKey: paymentKey, OrderID: orderID, TransactionKey: r.TransactionKey,
		AtRisk: r.Amount, Detail: detail, Gateway: seen,
	}
}

// quarantine keeps a row that cannot be held exactly as a mismatch, with the amount as it was written.
func (m *Mirror) quarantine(b *gathered, q pgclient.QuarantinedRow) {
	if m.cfg.foreign(q.OrderID) || (!q.At.IsZero() && q.At.Before(m.cfg.OpeningAt)) {
		return
	}
	key := q.TransactionKey
	if key == "" {
		key = fmt.Sprintf("row:%x", sha256.Sum256([]byte(q.Raw))) // each row is a subject of its own, and no answer explains it
	}
	b.found(ledger.Finding{
		Kind: ledger.KindQuarantined, PaymentKey: q.PaymentKey, OrderID: q.OrderID, TransactionKey: key,
		Detail: "a row of the gateway's list cannot be held exactly: " + q.Problem,
		Gateway: map[string]any{
			"word": q.Word, "amount": q.Amount, "currency": q.Currency, "at": q.At.UTC(), "raw": q.Raw,
		},
	})
}
