package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// takenRow is one capture, as one or both books have it.
type takenRow struct {
	TransactionKey string           `db:"transaction_key"`
	PaymentKey     string           `db:"payment_key"`
	OrderID        string           `db:"order_id"`
	Currency       ledger.Currency  `db:"currency"`
	Amount         int64            `db:"amount"`
	At             time.Time        `db:"at"`
	Listed         bool             `db:"listed"`
	Booked         *int64           `db:"booked"`
	BookedCurrency *ledger.Currency `db:"booked_currency"`
	Channel        *ledger.Channel  `db:"channel"`
	BookedOrder    string           `db:"booked_order"` // of a listed one: which order our books have it for
	BookedKey      string           `db:"booked_key"`   // this and the next two only where the two books differ
	BookedAt       *time.Time       `db:"booked_at"`
	Word           string           `db:"word"` // of the list
	Ordered        bool             `db:"ordered"`
	AskedUntil     *time.Time       `db:"asked_until"` // how long open work about it explains that one book lacks it
	Accepted       bool             `db:"accepted"`    // of one that is not listed
	Acceptances    []acceptance     `db:"acceptances"` // of one that is listed
}

// differing holds where the listed g and what our books have of it, c, are not of the same money, or not of the same order.
const differing = `((c.amount, c.currency) IS DISTINCT FROM (g.amount, g.currency) OR (own.order_id <> g.order_id AND g.order_id <> ''))`

// The captures of the gateway's list with what our books have of each: those of a window, or those of some payments.
const (
	listedColumns = `
		SELECT g.transaction_key, g.payment_key, g.order_id, g.currency, g.amount, g.at, true AS listed,
			c.amount AS booked, c.currency AS booked_currency, c.channel, COALESCE(own.order_id, '') AS booked_order,
			CASE WHEN ` + differing + ` THEN COALESCE(c.transaction_key, '') ELSE '' END AS booked_key,
			CASE WHEN ` + differing + ` THEN c.captured_at END AS booked_at, CASE WHEN ` + differing + ` THEN g.word ELSE '' END AS word,
			c.amount IS NULL AND EXISTS (SELECT 1 FROM orders o WHERE o.order_id = g.order_id OFFSET 0) AS ordered,
			CASE WHEN c.amount IS NULL THEN (SELECT max(GREATEST(w.deadline, w.opened_at + interval '1 day')) FROM work w
				WHERE w.payment_key = g.payment_key AND w.closed_at IS NULL AND w.kind = 'confirm_unknown') END AS asked_until,
			false AS accepted,
			CASE WHEN ` + differing + ` THEN (
				SELECT ` + acceptedAs + ` FROM mismatches m
				WHERE m.payment_key = g.payment_key AND m.transaction_key = g.transaction_key AND m.resolved_as = 'accepted' AND m.amount IS NOT NULL) END AS acceptances`
	listedRest = `
		LEFT JOIN LATERAL (
			SELECT c.amount, c.currency, c.channel, c.transaction_key, c.captured_at FROM captures c
			WHERE c.payment_key = g.payment_key AND (c.transaction_key = g.transaction_key OR c.transaction_key IS NULL)
			ORDER BY c.transaction_key NULLS LAST
			LIMIT 1) c ON true
		LEFT JOIN LATERAL (SELECT p.order_id FROM payments p WHERE c.amount IS NOT NULL AND p.payment_key = g.payment_key LIMIT 1) own ON true
		WHERE g.kind = 'capture' AND NOT g.is_foreign AND g.amount > 0 AND g.at >= @from AND g.at < @to`
	listedOfWindow = listedColumns + ` FROM mirror g` + listedRest
	// listedOfDay comes in the order in which the day happened, the same each time.
	listedOfDay      = listedOfWindow + ` ORDER BY g.at, g.transaction_key COLLATE "C"`
	listedOfPayments = listedColumns + `
		FROM unnest(@payments::text[]) AS p (payment_key)
		CROSS JOIN LATERAL (
			SELECT x.transaction_key, x.payment_key, x.order_id, x.currency, x.amount, x.at, x.kind, x.word, x.is_foreign
			FROM mirror x
			WHERE x.payment_key = p.payment_key
			OFFSET 0) g` + listedRest
)

// shownCapture holds where the list shows the capture c of ours: under its own key or, where the gateway has not named it,
// as one that is none of the others'. The list may write the present status into the row.
const shownCapture = `EXISTS (SELECT 1 FROM mirror g WHERE g.payment_key = c.payment_key AND g.missing_since IS NULL
	AND ((g.transaction_key = c.transaction_key AND g.kind IN ('capture', 'cancel')) OR ` + unnamedCapture + `) OFFSET 0)`

// unnamedCapture holds where the listed g can be the capture c of ours that has no key: a capture that no other of its payment
// has the key of. One that was taken back does not count as another when it is what c is: a deposit that fell back and was
// booked again, as of the instant at which it had fallen back, is one row of the list.
const unnamedCapture = `(c.transaction_key IS NULL AND g.kind = 'capture' AND NOT EXISTS (SELECT 1 FROM captures o
	WHERE o.payment_key = g.payment_key AND o.transaction_key = g.transaction_key AND o.reversed_at IS DISTINCT FROM c.captured_at OFFSET 0))`

// The captures of ours that the gateway's list does not have.
const (
	unlistedColumns = `
		SELECT COALESCE(c.transaction_key, '') AS transaction_key, c.payment_key, p.order_id, c.currency, c.amount, c.captured_at AS at,
			false AS listed, c.amount AS booked, c.currency AS booked_currency, c.channel, '' AS booked_order,
			COALESCE(c.transaction_key, '') AS booked_key, c.captured_at AS booked_at, '' AS word, true AS ordered,
			(SELECT max(CASE WHEN g.kind = 'none' THEN g.first_seen_at ELSE g.missing_since END) + @patience::interval FROM mirror g
				WHERE p.virtual_account AND g.payment_key = c.payment_key
					AND ((g.kind = 'none' AND (g.transaction_key = c.transaction_key OR g.at > c.captured_at))
						OR (g.missing_since IS NOT NULL AND g.transaction_key = c.transaction_key))) AS asked_until,
			EXISTS (SELECT 1 FROM mismatches m WHERE m.payment_key = c.payment_key AND m.resolved_as = 'accepted'
				AND m.amount = c.amount AND m.currency = c.currency
				AND ((m.kind = 'order_without_payment' AND COALESCE(m.transaction_key, m.gateway ->> 'transaction_key', '') = COALESCE(c.transaction_key, ''))
				  OR (m.kind = 'history_changed' AND m.transaction_key = c.transaction_key AND m.detail = @vanished)) OFFSET 0) AS accepted, NULL::jsonb AS acceptances`
	unlistedRest = `
		CROSS JOIN LATERAL (SELECT x.order_id, x.virtual_account FROM payments x WHERE x.payment_key = c.payment_key LIMIT 1) p
		WHERE c.captured_at >= @since AND c.captured_at < @to AND c.reversed_at IS NULL
			AND NOT ` + shownCapture
	unlistedOfWindow   = unlistedColumns + ` FROM captures c` + unlistedRest + ` ORDER BY c.captured_at, c.payment_key COLLATE "C"`
	unlistedOfPayments = unlistedColumns + `
		FROM unnest(@payments::text[]) AS q (payment_key)
		CROSS JOIN LATERAL (
			SELECT x.transaction_key, x.payment_key, x.currency, x.amount, x.captured_at, x.reversed_at, x.channel
			FROM captures x
			WHERE x.payment_key = q.payment_key
			OFFSET 0) c` + unlistedRest
)

// captures compares the money taken within the window: every listed capture is booked or being asked about, and every
// booked one is listed once the list had its time. It returns what does not agree, by payment.
func (a *Auditor) captures(ctx context.Context, tx pgx.Tx, w window, t *tally, see func(seen) error) (map[string]memory, error) {
	open := make(map[string]memory)
	each := func(r takenRow) error {
		j := r.judge(w.bounds)
		if r.Listed {
			t.totals.add(r.share(lineCapturesListed))
		}
		stands := true
		for _, p := range j.parts {
			if p.line == LineApplied {
				t.totals.add(r.share(LineCapturesBooked))
			}
			stands = stands && p.line != lineTakenBack
		}
		r.remember(open, j, w.bounds)
		if !stands {
			return nil // until the payment has been asked, it is on the row that the list had
		}
		return tell(see, r.seen(j))
	}
	if err := a.eachCapture(ctx, tx, w, each); err != nil {
		return nil, err
	}
	for _, m := range open {
		m.sort()
		t.take(m)
	}
	return open, nil
}

// eachCapture hands over the captures of a window, as the list has them and those that it lacks. Everything is read in
// stretches of time: what happened together lies together on the disk, so that looking rows up one by one costs no more
// for the whole of a history than for each of its days, and no statement is longer for it.
func (a *Auditor) eachCapture(ctx context.Context, tx pgx.Tx, w window, each func(takenRow) error) error {
	sql, from := listedOfDay, w.from
	if w.endless {
		sql = listedOfWindow
	}
	for {
		to, err := w.until(), error(nil)
		if w.endless {
			to, err = a.stretchFrom(ctx, tx, from, to)
		}
		if err != nil {
			return err
		}
		if err := forEachTaken(ctx, tx, sql, pgx.StrictNamedArgs{"from": from, "to": to}, each); err != nil {
			return fmt.Errorf("read the captures of both books: %w", err)
		}
		since := from
		if w.since.After(since) {
			since = w.since
		}
		args := pgx.StrictNamedArgs{"since": since, "to": to, "vanished": detailVanished, "patience": fallenPatience}
		if err := forEachTaken(ctx, tx, unlistedOfWindow, args, each); err != nil {
			return fmt.Errorf("look for captures that are not listed: %w", err)
		}
		if !to.Before(w.until()) {
			return nil
		}
		from = to
	}
}

// stretchFrom is where the next stretch ends: both books are read up to there.
func (a *Auditor) stretchFrom(ctx context.Context, tx pgx.Tx, from, most time.Time) (time.Time, error) {
	var to *time.Time
	err := tx.QueryRow(ctx, `
		SELECT LEAST(
			(SELECT g.at FROM mirror g WHERE g.at >= @from AND g.at < @most ORDER BY g.at OFFSET @rows LIMIT 1),
			(SELECT c.captured_at FROM captures c WHERE c.captured_at >= @from AND c.captured_at < @most ORDER BY c.captured_at OFFSET @rows LIMIT 1))`,
		pgx.StrictNamedArgs{"from": from, "most": most, "rows": a.cfg.Stretch}).Scan(&to)
	switch {
	case err != nil:
		return most, fmt.Errorf("divide the history: %w", err)
	case to == nil:
		return most, nil
	case !to.After(from):
		return from.Add(time.Microsecond), nil // that many at one instant
	}
	return *to, nil
}

// capturesOf compares the money taken by some payments.
func (a *Auditor) capturesOf(ctx context.Context, tx pgx.Tx, w window, payments []string) (map[string]memory, error) {
	open := make(map[string]memory)
	each := func(r takenRow) error {
		r.remember(open, r.judge(w.bounds), w.bounds)
		return nil
	}
	args := pgx.StrictNamedArgs{"payments": payments, "from": w.from, "to": w.until()}
	if err := forEachTaken(ctx, tx, listedOfPayments, args, each); err != nil {
		return nil, fmt.Errorf("read the captures of both books: %w", err)
	}
	args = pgx.StrictNamedArgs{
		"payments": payments, "since": w.since, "to": w.until(), "vanished": detailVanished, "patience": fallenPatience,
	}
	if err := forEachTaken(ctx, tx, unlistedOfPayments, args, each); err != nil {
		return nil, fmt.Errorf("look for captures that are not listed: %w", err)
	}
	for _, m := range open {
		m.sort()
	}
	return open, nil
}

func forEachTaken(ctx context.Context, tx pgx.Tx, sql string, args pgx.StrictNamedArgs, each func(takenRow) error) error {
	rows, err := tx.Query(ctx, sql, args) //nolint:rowserrcheck // ForEachRow closes the rows and checks their error
	if err != nil {
		return err
	}
	var r takenRow
	_, err = pgx.ForEachRow(rows, []any{
		&r.TransactionKey, &r.PaymentKey, &r.OrderID, &r.Currency, &r.Amount, &r.At, &r.Listed, &r.Booked, &r.BookedCurrency,
		&r.Channel, &r.BookedOrder, &r.BookedKey, &r.BookedAt, &r.Word, &r.Ordered, &r.AskedUntil, &r.Accepted, &r.Acceptances,
	}, func() error { return each(r) })
	return err
}

func (r takenRow) share(line LineName) share {
	return share{Day: ledger.DayOf(r.At), Line: line, Currency: r.Currency, Count: 1, Amount: r.Amount}
}

// detailUnlisted says what is wrong with a capture that only our books have.
const detailUnlisted = "the order is paid in our books and the gateway's list has no such money"

// judge places one capture on a line, as [judge] does with a cancel.
func (r takenRow) judge(b bounds) judged {
	on := func(line LineName) judged {
		return judged{parts: []part{{line, 1, ledger.Money{Minor: r.Amount, Currency: r.Currency}}}}
	}
	switch {
	case !r.Listed && !r.At.Add(b.listLag).Before(b.asOf):
		return judged{} // the list still has time to show it
	case !r.Listed && r.asked(b):
		return on(lineTakenBack) // and somebody asks whether the payment takes the deposit back too
	case !r.Listed && r.Accepted:
		j := on(LineAcceptedBeside)
		j.kind, j.note = ledger.KindOrderWithoutPayment, detailUnlisted
		return j
	case !r.Listed:
		var j judged
		r.breaks(&j, ledger.KindOrderWithoutPayment, detailUnlisted)
		return j
	case r.Booked != nil && *r.Booked == r.Amount && *r.BookedCurrency == r.Currency:
		return r.judgeAgreed()
	case r.Booked == nil && r.asked(b):
		return on(LineSweeping)
	case r.acceptsMoney():
		return on(LineAccepted)
	}
	j := on(LineUnexplained)
	switch {
	case r.Booked != nil:
		kind := ledger.KindAmountDiffers
		if *r.BookedCurrency != r.Currency {
			kind = ledger.KindCurrencyDiffers
		}
		r.breaks(&j, kind, fmt.Sprintf("the capture is %s at the gateway and %s here", r.money(), ledger.Money{Minor: *r.Booked, Currency: *r.BookedCurrency}))
	case r.Ordered:
		r.breaks(&j, ledger.KindPaymentWithoutOrder, "the gateway lists money for an order of ours that our books do not have as taken")
	default:
		r.breaks(&j, ledger.KindPaymentWithoutOrder, "the gateway lists money for an order that is not in our books")
	}
	return j
}

// judgeAgreed looks at whose a capture is that both books have with the same money.
func (r takenRow) judgeAgreed() judged {
	j := judged{parts: []part{{LineApplied, 1, r.money()}}}
	listed, booked := whose{r.PaymentKey, r.OrderID}, whose{r.PaymentKey, r.BookedOrder}
	if !listed.differs(booked) {
		return j
	}
	detail := detailWhose(MovementCapture, listed, booked)
	if acceptedWords(r.Acceptances, ledger.KindOrderDiffers, r.money(), detail) {
		j.parts = append(j.parts, part{LineAcceptedBeside, 1, r.money()})
		j.kind, j.note = ledger.KindOrderDiffers, detail
		return j
	}
	r.breaks(&j, ledger.KindOrderDiffers, detail)
	listed.addTo(j.finding.Gateway)
	booked.addTo(j.finding.Books)
	return j
}

func (r takenRow) money() ledger.Money { return ledger.Money{Minor: r.Amount, Currency: r.Currency} }

// asked reports whether a question that is under way explains what does not agree.
func (r takenRow) asked(b bounds) bool { return r.AskedUntil != nil && r.AskedUntil.After(b.now) }

// breaks adds a contradiction. It is about that transaction: a payment may be taken more than once, and what a person
// accepts of one says nothing of the next. Of a capture that only we have, the gateway may not have named it yet.
func (r takenRow) breaks(j *judged, kind ledger.Kind, detail string) {
	amount := ledger.Money{Minor: r.Amount, Currency: r.Currency}
	j.parts = append(j.parts, part{LineBreaks, 1, amount})
	j.finding = &ledger.Finding{
		Kind: kind, PaymentKey: r.PaymentKey, OrderID: r.OrderID, TransactionKey: r.TransactionKey, AtRisk: amount, Detail: detail,
		Gateway: r.shownEvidence(), Books: r.bookedEvidence(),
	}
}

// remember adds what one capture came to, unless it agrees, to what is known of its payment.
func (r takenRow) remember(open map[string]memory, j judged, b bounds) {
	m, known := open[r.PaymentKey]
	if !known {
		m = memory{about: aboutCaptures, key: r.PaymentKey, paymentKey: r.PaymentKey, orderID: r.OrderID}
	}
	m.orderID = min(m.orderID, r.OrderID) // the same, however they were read
	for _, p := range j.parts {
		switch {
		case p.line.pending():
			m.parts = append(m.parts, r.share(LineCapturesPending))
			m.recheckBy(*r.AskedUntil)
		case p.line == lineTakenBack:
			m.parts = append(m.parts, r.share(lineTakenBack))
			m.recheckBy(*r.AskedUntil)
		case p.line == LineAccepted:
			m.parts = append(m.parts, r.share(LineCapturesAccepted))
		case p.line == LineUnexplained:
			m.parts = append(m.parts, r.share(LineCapturesMissing))
		case p.line == LineAcceptedBeside:
			m.parts = append(m.parts, r.share(LineAcceptedBeside))
			m.entries = append(m.entries, r.listing(p.line, j.kind, j.note))
		case p.line == LineBreaks:
			m.parts = append(m.parts, r.share(LineBreaks))
			l := r.listing(p.line, j.finding.Kind, j.finding.Detail)
			l.Gateway, l.Books = j.finding.Gateway, j.finding.Books
			m.entries = append(m.entries, l)
			if j.finding.Kind == ledger.KindPaymentWithoutOrder && !r.Ordered {
				m.recheckBy(b.now.Truncate(time.Hour).Add(time.Hour)) // no trigger tells of a new order
			}
		}
	}
	if listed := r.At.Add(b.listLag); !r.Listed && len(j.parts) == 0 && (m.recheckAsOf.IsZero() || listed.Before(m.recheckAsOf)) {
		m.recheckAsOf = listed
	}
	if !m.empty() {
		open[r.PaymentKey] = m
	}
}

func (m *memory) recheckBy(t time.Time) {
	if m.recheckAt.IsZero() || t.Before(m.recheckAt) {
		m.recheckAt = t
	}
}

// listing is how a difference about a capture is listed.
func (r takenRow) listing(line LineName, kind ledger.Kind, note string) listing {
	return listing{
		Line: line, Currency: r.Currency,
		Entry: Entry{
			OrderID: r.OrderID, PaymentKey: r.PaymentKey, TransactionKey: r.TransactionKey, Amount: r.Amount, Since: r.At.UTC(),
			Note: note, Kind: kind,
		},
	}
}
