package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// takenRow is one capture, as one or both books have it.
type takenRow struct {
	TransactionKey string          `db:"transaction_key"`
	PaymentKey     string          `db:"payment_key"`
	OrderID        string          `db:"order_id"`
	Currency       ledger.Currency `db:"currency"`
	Amount         int64           `db:"amount"`
	At             time.Time       `db:"at"`
	Booked         *int64          `db:"booked"`
	BookedCurrency *string         `db:"booked_currency"`
	Ordered        bool            `db:"ordered"`
	Pending        bool            `db:"pending"`
	Accepted       bool            `db:"accepted"`
	Listed         bool            `db:"listed"`
	Channel        *ledger.Channel `db:"channel"`
}

// takenOrder is the order in which the captures of a day happened.
const takenOrder = `
		ORDER BY g.at, g.transaction_key COLLATE "C"`

// captures compares the money taken: every listed capture is booked or being asked about, and every booked one is
// listed once the list had its time.
func (a *Auditor) captures(ctx context.Context, tx pgx.Tx, w window, t *tally, see func(seen) error) ([]Captures, error) {
	order := ""
	if w.ordered {
		order = takenOrder
	}
	sums := make(map[ledger.Currency]*Captures)
	//nolint:rowserrcheck // ForEachRow closes the rows and checks their error
	rows, err := tx.Query(ctx, `
		SELECT g.transaction_key, g.payment_key, g.order_id, g.currency, g.amount, g.at,
			c.amount AS booked, c.currency AS booked_currency,
			c.amount IS NULL AND EXISTS (SELECT 1 FROM orders o WHERE o.order_id = g.order_id OFFSET 0) AS ordered,
			c.amount IS NULL AND EXISTS (SELECT 1 FROM work w WHERE w.payment_key = g.payment_key AND w.closed_at IS NULL
				AND w.kind = 'confirm_unknown' AND GREATEST(w.deadline, w.opened_at + interval '1 day') > @now OFFSET 0) AS pending,
			(c.amount, c.currency) IS DISTINCT FROM (g.amount, g.currency) AND EXISTS (SELECT 1 FROM mismatches m WHERE m.payment_key = g.payment_key AND m.transaction_key IS NULL
				AND m.resolved_as = 'accepted' AND m.amount = g.amount AND m.currency = g.currency
				AND m.kind = CASE WHEN c.amount IS NULL THEN 'payment_without_order' ELSE 'amount_differs' END OFFSET 0) AS accepted,
			c.channel
		FROM mirror g
		LEFT JOIN LATERAL (
			SELECT c.amount, c.currency, c.channel FROM captures c
			WHERE c.payment_key = g.payment_key AND (c.transaction_key = g.transaction_key OR c.transaction_key IS NULL)
			ORDER BY c.transaction_key NULLS LAST
			LIMIT 1) c ON true
		WHERE g.kind = 'capture' AND NOT g.is_foreign AND g.amount > 0 AND g.at >= @from AND g.at < @to`+order,
		pgx.StrictNamedArgs{"now": w.now, "from": w.from, "to": w.to})
	if err != nil {
		return nil, fmt.Errorf("read the captures of both books: %w", err)
	}
	r := takenRow{Listed: true}
	_, err = pgx.ForEachRow(rows, []any{
		&r.TransactionKey, &r.PaymentKey, &r.OrderID, &r.Currency, &r.Amount, &r.At, &r.Booked, &r.BookedCurrency,
		&r.Ordered, &r.Pending, &r.Accepted, &r.Channel,
	}, func() error {
		if sums[r.Currency] == nil {
			sums[r.Currency] = &Captures{Currency: r.Currency}
		}
		return tell(see, r.seen(t.capture(r, sums[r.Currency])))
	})
	if err != nil {
		return nil, fmt.Errorf("read the captures of both books: %w", err)
	}
	if err := a.unlisted(ctx, tx, w, t, see); err != nil {
		return nil, err
	}
	all := make([]Captures, 0, len(sums))
	for _, c := range sums {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(x, y Captures) int { return cmp.Compare(x.Currency, y.Currency) })
	return all, nil
}

// capture places one capture and says what it came to.
func (t *tally) capture(r takenRow, c *Captures) judged {
	j := r.judge()
	if r.Listed {
		c.Listed = c.Listed.plus(Figure{1, r.Amount})
	}
	for _, p := range j.parts {
		figure := Figure{p.count, p.amount.Minor}
		switch {
		case p.line == LineApplied:
			c.Booked = c.Booked.plus(figure)
		case p.line.pending():
			c.Pending = c.Pending.plus(figure)
		case p.line == LineAccepted, p.line == LineUnexplained:
			c.Missing = c.Missing.plus(figure)
		}
	}
	if j.finding != nil {
		t.breakOf(r, *j.finding)
	}
	return j
}

// judge places one capture on a line, as [judge] does with a cancel.
func (r takenRow) judge() judged {
	on := func(line LineName) judged {
		return judged{parts: []part{{line, 1, ledger.Money{Minor: r.Amount, Currency: r.Currency}}}}
	}
	switch {
	case !r.Listed:
		var j judged
		r.breaks(&j, ledger.KindOrderWithoutPayment, "the order is paid in our books and the gateway's list has no such money")
		return j
	case r.Booked != nil && *r.Booked == r.Amount && *r.BookedCurrency == string(r.Currency):
		return on(LineApplied)
	case r.Booked == nil && r.Pending:
		return on(LineSweeping)
	case r.Accepted:
		return on(LineAccepted)
	}
	j := on(LineUnexplained)
	switch {
	case r.Booked != nil:
		r.breaks(&j, ledger.KindAmountDiffers, fmt.Sprintf("the capture is %d at the gateway and %d here, minor units", r.Amount, *r.Booked))
	case r.Ordered:
		r.breaks(&j, ledger.KindPaymentWithoutOrder, "the gateway lists money for an order of ours that our books do not have as taken")
	default:
		r.breaks(&j, ledger.KindPaymentWithoutOrder, "the gateway lists money for an order that is not in our books")
	}
	return j
}

// breaks adds a contradiction. It is about the payment: the gateway does not always name the transaction.
func (r takenRow) breaks(j *judged, kind ledger.Kind, detail string) {
	amount := ledger.Money{Minor: r.Amount, Currency: r.Currency}
	j.parts = append(j.parts, part{LineBreaks, 1, amount})
	j.finding = &ledger.Finding{
		Kind: kind, PaymentKey: r.PaymentKey, OrderID: r.OrderID, AtRisk: amount, Detail: detail,
		Gateway: map[string]any{"transaction_key": r.TransactionKey, "at": r.At.UTC()},
	}
}

// unlisted finds captures of ours that the gateway's list does not have although it had its time.
func (a *Auditor) unlisted(ctx context.Context, tx pgx.Tx, w window, t *tally, see func(seen) error) error {
	rows, err := tx.Query(ctx, `
		SELECT COALESCE(c.transaction_key, '') AS transaction_key, c.payment_key, p.order_id, c.currency, c.amount, c.captured_at AS at,
			c.amount AS booked, c.currency AS booked_currency, true AS ordered, false AS pending, false AS accepted,
			false AS listed, c.channel
		FROM captures c
		CROSS JOIN LATERAL (SELECT x.order_id FROM payments x WHERE x.payment_key = c.payment_key LIMIT 1) p
		WHERE c.captured_at >= @since AND c.captured_at < @settled AND c.captured_at < @to AND c.reversed_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM mirror g WHERE g.payment_key = c.payment_key AND g.missing_since IS NULL
				AND (g.kind = 'capture' OR (g.kind = 'cancel' AND g.transaction_key = c.transaction_key)) OFFSET 0)
			AND NOT EXISTS (SELECT 1 FROM mismatches m WHERE m.payment_key = c.payment_key AND m.resolved_as = 'accepted'
				AND m.amount = c.amount AND m.currency = c.currency
				AND (m.kind = 'order_without_payment'
				  OR (m.kind = 'history_changed' AND m.transaction_key = c.transaction_key AND m.detail = @vanished)) OFFSET 0)
		ORDER BY c.captured_at, c.payment_key COLLATE "C"`,
		pgx.StrictNamedArgs{"since": w.since, "settled": w.asOf.Add(-w.listLag), "to": w.to, "vanished": detailVanished})
	if err != nil {
		return fmt.Errorf("look for captures that are not listed: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[takenRow])
	if err != nil {
		return fmt.Errorf("look for captures that are not listed: %w", err)
	}
	for _, r := range found {
		if err := tell(see, r.seen(t.capture(r, &Captures{}))); err != nil {
			return err
		}
	}
	return nil
}

// breakOf puts a contradiction about a capture on the breaks line.
func (t *tally) breakOf(r takenRow, f ledger.Finding) {
	t.findings = append(t.findings, f)
	key := lineKey{LineBreaks, r.Currency}
	if t.lines[key] == nil {
		t.lines[key] = &Line{Name: LineBreaks, Currency: r.Currency}
	}
	t.lines[key].Figure = t.lines[key].plus(Figure{1, r.Amount})
	t.lines[key].Entries = append(t.lines[key].Entries, Entry{
		OrderID: r.OrderID, PaymentKey: r.PaymentKey, TransactionKey: r.TransactionKey, Amount: r.Amount, Since: r.At,
		Note: f.Detail, Kind: f.Kind,
	})
}
