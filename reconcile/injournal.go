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

// What an audit compares with the gateway's list are the rows of captures and cancels. That each of them has its
// transaction in the journal, and each such transaction its row, is so because both are written in one transaction of the
// database; only somebody with rights in the database can make it otherwise. The runs of a day, and the nightly one of the
// last weeks, prove that nobody did.

// heldAgainstJournal joins rows of our books with transactions of the journal, all of some conditions: over c, a cancel or
// a capture, and over t, a transaction. The rows are in b, the transactions in j; where one is missing, all of it is NULL.
func heldAgainstJournal(cancels, captures, reversals, transactions string) string {
	return `(
			SELECT 'cancel' AS kind, c.transaction_key AS reference, c.transaction_key AS key, c.payment_key, c.order_id, c.currency,
				c.amount, c.canceled_at AS at, c.recorded_at, false AS unnamed
			FROM cancels c WHERE ` + cancels + `
			UNION ALL
			SELECT 'capture', c.payment_key || '#' || c.number, c.transaction_key, c.payment_key, NULL, c.currency,
				c.amount, c.captured_at, c.recorded_at, c.transaction_key IS NULL AND c.reversed_at IS NULL
			FROM captures c WHERE ` + captures + `
			UNION ALL
			SELECT 'deposit_reversal', c.payment_key || '#' || c.number, NULL, c.payment_key, NULL, c.currency,
				c.amount, c.reversed_at, NULL, false
			FROM captures c WHERE ` + reversals + `) b
		FULL JOIN (
			SELECT t.kind, t.reference, t.payment_key, t.order_id, t.occurred_at AS at, t.recorded_at, e.currency, e.amount, e.whole
			FROM journal_transactions t
			LEFT JOIN LATERAL (
				SELECT min(e.currency) AS currency,
					sum(CASE t.kind WHEN 'capture' THEN e.amount ELSE -e.amount END) FILTER (WHERE e.account = 'gateway_receivable') AS amount,
					count(*) = 2 AND sum(e.amount) = 0 AND min(e.currency) = max(e.currency)
						AND count(*) FILTER (WHERE e.account = 'gateway_receivable') = 1
						AND count(*) FILTER (WHERE e.account IN ('suspense', CASE t.kind WHEN 'cancel' THEN 'refunds' ELSE 'sales' END)) = 1 AS whole
				FROM journal_entries e
				WHERE e.transaction_id = t.transaction_id) e ON true
			WHERE t.kind IN ('cancel', 'capture', 'deposit_reversal') AND ` + transactions + `) j ON j.kind = b.kind AND j.reference = b.reference`
}

// journalled holds where a row and a transaction are of one and the same fact. The void of an account that nobody paid into
// moved nothing and has no transaction. Which order a capture is of is its payment's to say, and when a deposit was recorded
// as taken back only the journal's.
const journalled = `COALESCE(
		(b.amount = 0 AND j.reference IS NULL)
		OR (j.payment_key = b.payment_key AND (b.order_id IS NULL OR j.order_id = b.order_id) AND j.at = b.at
			AND (b.recorded_at IS NULL OR j.recorded_at = b.recorded_at) AND j.currency = b.currency AND j.amount = b.amount
			AND j.whole), false)`

// ofReference holds one fact, named by two expressions for its kind and its reference, against the journal.
func ofReference(kind, reference string) string {
	capture := `c.payment_key = split_part(` + reference + `, '#', 1) AND c.payment_key || '#' || c.number = ` + reference
	return heldAgainstJournal(
		kind+` = 'cancel' AND c.transaction_key = `+reference,
		kind+` = 'capture' AND `+capture,
		kind+` = 'deposit_reversal' AND c.reversed_at IS NOT NULL AND `+capture,
		`t.kind = `+kind+` AND t.reference = `+reference)
}

// factText is one side of a fact for people; whatever is another on the two sides shows in it.
func factText(alias string) string {
	at := func(column string) string {
		return `to_char(` + alias + `.` + column + ` AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
	}
	return `CASE WHEN ` + alias + `.reference IS NULL THEN 'nothing' ELSE concat_ws(' ', COALESCE(` + alias + `.amount::text, 'nothing'), ` +
		alias + `.currency, 'at', ` + at("at") + `, 'recorded ' || ` + at("recorded_at") + `, 'of payment', ` + alias + `.payment_key, 'of order ' || ` +
		alias + `.order_id) END`
}

// listedKey is the key under which the gateway's list shows a capture of ours that bears none, or one that only the journal
// has, named by two expressions for its payment and its instant: that of a capture which no other of the payment has the key
// of, as [unnamedCapture] has it, and of several the one that was nearest.
func listedKey(payment, at string) string {
	return `(SELECT g.transaction_key FROM mirror g
				WHERE g.payment_key = ` + payment + ` AND g.kind = 'capture' AND NOT EXISTS (SELECT 1 FROM captures o
					WHERE o.payment_key = g.payment_key AND o.transaction_key = g.transaction_key AND o.reversed_at IS DISTINCT FROM ` + at + ` OFFSET 0)
				ORDER BY GREATEST(g.at, ` + at + `) - LEAST(g.at, ` + at + `), g.transaction_key COLLATE "C"
				LIMIT 1)`
}

// unproven is a row of our books and its transaction in the journal that are not of one and the same fact.
type unproven struct {
	contradiction
	Subject   string           `db:"subject"` // tells it apart from the other differences of its transaction
	Entry     ledger.EntryKind `db:"entry"`
	Reference string           `db:"reference"`
}

// notInJournal reads, in the order in which they happened, where the books of a window and the journal differ and nobody
// accepted just that. Both are read by time, and compared with each other; what differs is looked up by what it is known
// by, so that it is the same difference on whichever day one side of it lies.
//
// What tells one difference from another is the reference: several captures of a payment can bear one key, and one has none
// until the gateway names it. A mismatch that has the same evidence under the transaction's key stays the mismatch of that
// capture: it was opened when the key told differences apart.
func notInJournal(ctx context.Context, tx pgx.Tx, from, to time.Time) ([]unproven, error) {
	of := func(column string) string { return column + ` >= @from AND ` + column + ` < @to` }
	rows, err := tx.Query(ctx, `
		SELECT false AS accepted, f.kind, f.transaction_key, f.payment_key, f.order_id, f.currency, f.amount, f.detail, f.at, f.listed_as,
			f.listed, f.listed_currency, f.booked, f.booked_currency, f.unnamed, f.entry || ' ' || f.reference AS fact,
			s.subject, f.entry, f.reference
		FROM (
			SELECT COALESCE(b.kind, j.kind) AS kind, COALESCE(b.reference, j.reference) AS reference
			FROM `+heldAgainstJournal(of("c.canceled_at"), of("c.captured_at"), of("c.reversed_at"), of("t.occurred_at"))+`
			WHERE NOT `+journalled+`) d
		CROSS JOIN LATERAL (
			SELECT '`+string(ledger.KindJournalDiffers)+`' AS kind,
				k.key AS transaction_key, k.subject, COALESCE(b.unnamed, false) AS unnamed,
				COALESCE(b.payment_key, j.payment_key, '') AS payment_key, COALESCE(b.order_id, p.order_id, j.order_id, '') AS order_id,
				COALESCE(b.currency, c.currency, 'KRW') AS currency, COALESCE(b.amount, LEAST(abs(j.amount), 1000000000000)::bigint, 0) AS amount,
				left(concat('this ', d.kind, ' and its transaction in the journal differ: our books have ', `+factText("b")+`,
					', the journal has ', `+factText("j")+`, CASE WHEN NOT j.whole THEN ', in entries that no ' || d.kind || ' has' END), 500) AS detail,
				COALESCE(b.at, j.at) AS at, CASE d.kind WHEN 'deposit_reversal' THEN '' ELSE d.kind END AS listed_as,
				g.amount AS listed, g.currency AS listed_currency, b.amount AS booked, b.currency AS booked_currency,
				d.kind AS entry, d.reference
			FROM `+ofReference("d.kind", "d.reference")+`
			CROSS JOIN LATERAL (SELECT CASE d.kind WHEN 'deposit_reversal' THEN 'reversal:' ELSE '' END || d.reference AS subject) n
			CROSS JOIN LATERAL (SELECT n.subject, COALESCE(b.key, CASE d.kind WHEN 'capture' THEN
				`+listedKey("COALESCE(b.payment_key, j.payment_key)", "COALESCE(b.at, j.at)")+` END, n.subject) AS key) k
			LEFT JOIN LATERAL (SELECT x.order_id FROM payments x WHERE x.payment_key = b.payment_key LIMIT 1) p ON true
			LEFT JOIN LATERAL (SELECT x.amount, x.currency FROM mirror x
				WHERE x.transaction_key = k.key AND x.kind = d.kind LIMIT 1) g ON true
			LEFT JOIN unnest(@currencies::text[]) AS c (currency) ON c.currency = j.currency) f
		CROSS JOIN LATERAL (SELECT CASE WHEN EXISTS (SELECT 1 FROM mismatches m
			WHERE m.fingerprint = concat_ws('|', f.kind, f.payment_key, f.order_id, f.transaction_key)
				AND m.books ->> 'entry' = f.entry AND m.books ->> 'reference' = f.reference OFFSET 0) THEN f.transaction_key ELSE f.subject END AS subject) s
		WHERE NOT EXISTS (SELECT 1 FROM mismatches m
			WHERE m.fingerprint = concat_ws('|', f.kind, f.payment_key, f.order_id, s.subject)
				AND m.resolved_as = 'accepted' AND m.amount = f.amount AND m.currency = f.currency AND m.detail = f.detail OFFSET 0)
		ORDER BY f.at, f.entry, f.reference COLLATE "C"`,
		pgx.StrictNamedArgs{"from": from, "to": to, "currencies": moneyCurrencies()})
	if err != nil {
		return nil, fmt.Errorf("hold the books against the journal: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[unproven])
	if err != nil {
		return nil, fmt.Errorf("hold the books against the journal: %w", err)
	}
	return all, nil
}

// finding is the difference as a mismatch.
func (u unproven) finding() ledger.Finding {
	return ledger.Finding{
		Kind: u.Kind, PaymentKey: u.PaymentKey, OrderID: u.OrderID, TransactionKey: u.TransactionKey, Subject: u.Subject,
		AtRisk: ledger.Money{Minor: u.Amount, Currency: u.Currency}, Detail: u.Detail, Gateway: u.seen().G.evidence(),
		Books: map[string]any{"entry": u.Entry, "reference": u.Reference, "at": u.At.UTC()},
	}
}

// prove adds to the tally where the books of a day and the journal differ, each once, and to what breaks. A break that the
// comparison has found of the same transaction stands for both.
func (r *round) prove(ctx context.Context, w window, t *tally, breaks named, see func(seen) error) error {
	all, err := notInJournal(ctx, r.tx, w.from, w.until())
	if err != nil {
		return err
	}
	for _, u := range all {
		if breaks.has(u.contradiction) {
			continue
		}
		breaks.add(u.contradiction)
		t.findings = append(t.findings, u.finding())
		t.place(u.contradiction)
		if err := tell(see, u.seen()); err != nil {
			return err
		}
	}
	return nil
}

// besideDay adds to the tally of a day what breaks beside its identity: where the books and the journal differ, and what
// contradicts itself.
func (r *round) besideDay(ctx context.Context, w window, t *tally, see func(seen) error) error {
	breaks := t.named(LineBreaks)
	if err := r.prove(ctx, w, t, breaks, see); err != nil {
		return err
	}
	return r.contradictBeside(ctx, w, t, breaks, see)
}

// proveDays holds the books of the last weeks against the journal, day by day, and opens a mismatch for each difference. It
// is for the days that nobody looks at any more because they are settled: the mismatch has its day closed again. A crash on
// the way loses nothing: the next night finds the rest, and so does every closing run.
func (a *Auditor) proveDays(ctx context.Context) error {
	now := a.cfg.now()
	last := LastEnded(now.Add(-a.cfg.ListLag))
	var failed error
	for d := ledger.DayOf(now.Add(-closingDays * day)); d <= last && ctx.Err() == nil; d = d.Next() {
		if d.End().After(a.cfg.OpeningAt) {
			failed = errors.Join(failed, a.proveDay(ctx, d))
		}
	}
	return errors.Join(failed, ctx.Err())
}

func (a *Auditor) proveDay(ctx context.Context, d ledger.Day) error {
	s := Statement{Scope: ScopeDay, Day: d, StartedAt: a.cfg.now()}
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := postgres.InTxWith(ctx, a.cfg.DB, snapshot, func(tx pgx.Tx) error {
		if err := giveTime(ctx, tx); err != nil {
			return err
		}
		from := d.Start()
		if a.cfg.OpeningAt.After(from) {
			from = a.cfg.OpeningAt
		}
		all, err := notInJournal(ctx, tx, from, d.End())
		s.findings = nil
		for _, u := range all {
			s.findings = append(s.findings, u.finding())
		}
		return err
	})
	if err == nil && len(s.findings) > 0 {
		err = a.open(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("prove %s by the journal: %w", d, err)
	}
	return nil
}
