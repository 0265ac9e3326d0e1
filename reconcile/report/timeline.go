package report

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

func timelineColumns() []Column {
	return []Column{
		{"at", TypeInstant},
		{"source", TypeWord},
		{"what", TypeWord},
		{"result", TypeWord},
		{"currency", TypeWord},
		{"amount", TypeMoney},
		{"payment_key", TypeText},
		{"transaction_key", TypeText},
		{"detail", TypeText},
	}
}

// happened is one row of the timeline.
type happened struct {
	At             time.Time
	Source         string
	What           string
	Result         string
	Currency       ledger.Currency
	Amount         *int64
	PaymentKey     string
	TransactionKey string
	Detail         string
	Typed          string // the end of the detail that a person typed
}

// timeline reads everything about an order and its payments as one sorted stream. What happened at the same instant is
// in the order of sources below, and within one in the order in which it was written. The gateway tells whole seconds:
// what it did stands at the end of its second, but never after we knew of it.
func timeline(ctx context.Context, tx pgx.Tx, orderID string, of named) Rows {
	return func(row func(Row) error) error {
		//nolint:rowserrcheck // ForEachRow closes the rows and checks their error
		rows, err := tx.Query(ctx, `
			SELECT at, source, what, COALESCE(result, ''), COALESCE(currency, ''), amount, COALESCE(payment_key, ''),
				COALESCE(transaction_key, ''), COALESCE(detail, ''), COALESCE(typed, '')
			FROM (`+strings.Join(sources(), "\n\t\t\tUNION ALL")+`) AS everything (rank, seq, at, sort_at, source, what, result, currency, amount, payment_key, transaction_key, detail, typed)
			WHERE at IS NOT NULL
			ORDER BY COALESCE(sort_at, at), rank, seq, what, transaction_key, detail, result, amount`,
			pgx.StrictNamedArgs{
				"order_id": orderID, "payments": of.Payments, "jobs": of.Jobs, "attempt_age": ledger.UndecidedAgeMax,
			})
		if err != nil {
			return fmt.Errorf("read the timeline of order %s: %w", orderID, err)
		}
		var h happened
		_, err = pgx.ForEachRow(rows, []any{
			&h.At, &h.Source, &h.What, &h.Result, &h.Currency, &h.Amount, &h.PaymentKey, &h.TransactionKey, &h.Detail, &h.Typed,
		}, func() error { return row(h.row()) })
		if err != nil {
			return fmt.Errorf("read the timeline of order %s: %w", orderID, err)
		}
		return nil
	}
}

func (h happened) row() Row {
	var amount Cell
	if h.Amount != nil {
		amount = money(*h.Amount, h.Currency)
	}
	var detail Cell
	if h.Detail != "" {
		detail = Sentences{Text: h.Detail, Typed: h.Typed, Source: h.Source}
	}
	return Row{
		instant(h.At), word(h.Source), word(h.What), word(h.Result), word(h.Currency), amount,
		text(h.PaymentKey), text(h.TransactionKey), detail,
	}
}

// sources are the parts of the timeline. Each leaves out what says who a buyer is or where their money goes: customers,
// reasons, refund accounts, bodies of notices, addresses.
func sources() []string {
	return []string{
		orderHappened, storeHappened, paymentHappened, requestHappened, gatewayHappened, listHappened, deliveryHappened, booksHappened,
		journalHappened, paymentStates, orderStates, workHappened, mismatchHappened, eventHappened, jobHappened,
	}
}

// The parts of the timeline: rank, sequence, instant, instant to sort by where it is another, source, what, result, currency, amount, payment key, transaction
// key, detail, and what at its end a person typed. A row without an instant has not happened.
//
//nolint:dupword // several columns without anything
const (
	orderHappened = `
		SELECT 1, 0::bigint, o.created_at, NULL::timestamptz, 'order', 'created', 'pending', o.currency, o.amount, NULL, NULL, 'expires ' || ` + kst + `o.expires_at` + kstEnd + `, NULL
		FROM orders o
		WHERE o.order_id = @order_id`

	// A payment's row has the times of its last attempt. The states that it had are paymentStates.
	paymentHappened = `
		SELECT 2, s.n, s.at, NULL::timestamptz, 'payment', s.what, NULL, p.currency, s.amount, p.payment_key, NULL, s.detail, NULL
		FROM payments p
		CROSS JOIN LATERAL (VALUES
			(1::bigint, p.created_at, 'known', p.amount, NULL),
			(2, p.intended_at, 'intent', p.amount, 'attempt ' || p.attempt),
			(3, p.key_first_used_at, 'sent', NULL, 'key of generation ' || p.generation),
			(4, p.undecided_since, 'undecided', NULL, NULL)
		) AS s (n, at, what, amount, detail)
		WHERE p.payment_key = ANY(@payments)`

	requestHappened = `
		SELECT CASE s.what WHEN 'state' THEN 9 ELSE 3 END, s.n, s.at, NULL::timestamptz, 'cancel_request', s.what, s.result, r.currency, r.amount, r.payment_key, s.transaction_key, s.detail, NULL
		FROM cancel_requests r
		CROSS JOIN LATERAL (VALUES
			(1::bigint, r.created_at, 'asked', NULL, NULL, concat_ws('; ', r.request_id, 'asked by ' || r.requested_by)),
			(2, r.key_first_used_at, 'sent', NULL, NULL, r.request_id),
			(3, r.updated_at, 'state', r.status, r.transaction_key, concat_ws('; ', r.request_id, 'attempt ' || r.attempts, NULLIF(r.answer, '')))
		) AS s (n, at, what, result, transaction_key, detail)
		WHERE r.payment_key = ANY(@payments)`

	// What the gateway did, at the time that it says.
	gatewayHappened = `
		SELECT 4, c.number::bigint, s.at, LEAST(s.known_at, s.at + interval '999999 microseconds'), 'gateway', s.what, NULL, c.currency, c.amount, c.payment_key, c.transaction_key, NULL, NULL
		FROM captures c
		CROSS JOIN LATERAL (VALUES (c.captured_at, c.recorded_at, 'capture'), (c.reversed_at, NULL, 'deposit_reversal')) AS s (at, known_at, what)
		WHERE c.payment_key = ANY(@payments)
		UNION ALL
		SELECT 4, 0::bigint, c.canceled_at, LEAST(c.recorded_at, c.canceled_at + interval '999999 microseconds'), 'gateway', 'cancel', NULL, c.currency, c.amount, c.payment_key, c.transaction_key, NULL, NULL
		FROM cancels c
		WHERE c.payment_key = ANY(@payments)`

	listHappened = `
		SELECT 5, s.n, s.at, NULL::timestamptz, 'list', s.what, g.word, g.currency, g.amount, g.payment_key, g.transaction_key,
			concat_ws('; ', g.kind, 'dated ' || ` + kst + `g.at` + kstEnd + `, CASE WHEN g.order_id <> @order_id THEN 'names order ' || g.order_id END), NULL
		FROM mirror g
		CROSS JOIN LATERAL (VALUES (1::bigint, g.first_seen_at, 'listed'), (2, g.missing_since, 'missing')) AS s (n, at, what)
		WHERE g.payment_key = ANY(@payments)`

	deliveryHappened = `
		SELECT 6, d.delivery_id, d.received_at, NULL::timestamptz, 'notice', concat_ws(' ', NULLIF(d.event_type, ''), NULLIF(d.word, '')), d.outcome,
			NULL, NULL, d.payment_key, NULL,
			concat_ws('; ',
				CASE WHEN d.retried_count > 0 THEN 'redelivery ' || d.retried_count || ' of 7' WHEN d.retried_count = 0 THEN 'first delivery' END,
				'sent ' || ` + kst + `d.sent_at` + kstEnd + `, 'answered ' || d.status,
				'after ' || (extract(epoch FROM d.answered_at - d.received_at) * 1000)::bigint || ' ms',
				'gateway asked for ' || d.query_ms || ' ms', NULLIF(d.reason, ''), CASE WHEN d.reaped THEN 'closed after a crash' END), NULL
		FROM deliveries d
		WHERE d.payment_key = ANY(@payments)`

	// What came into the books, and through which channel it was learned.
	booksHappened = `
		SELECT 7, c.number::bigint, c.recorded_at, NULL::timestamptz, 'books', 'capture', c.channel, c.currency, c.amount, c.payment_key, c.transaction_key, NULL, NULL
		FROM captures c
		WHERE c.payment_key = ANY(@payments)
		UNION ALL
		SELECT 7, 0::bigint, c.recorded_at, NULL::timestamptz, 'books', 'cancel', c.channel, c.currency, c.amount, c.payment_key, c.transaction_key,
			CASE WHEN c.credits_revoked > 0 THEN 'credits revoked: ' || c.credits_revoked END, NULL
		FROM cancels c
		WHERE c.payment_key = ANY(@payments)`

	journalHappened = `
		SELECT 8, t.transaction_id * 100 + e.line, t.recorded_at, NULL::timestamptz, 'journal', t.kind, e.account, e.currency, e.amount, t.payment_key, NULL,
			concat_ws('; ', 'transaction ' || t.transaction_id || ' line ' || e.line, t.reference), NULL
		FROM journal_transactions t
		JOIN journal_entries e ON e.transaction_id = t.transaction_id
		WHERE t.payment_key = ANY(@payments)`

	// Open and closed work have an index each.
	workHappened = `
		SELECT 10, w.work_id * 10 + s.n, s.at, NULL::timestamptz, 'work', w.kind, s.result, w.currency, w.amount, w.payment_key, w.transaction_key, s.detail, NULL
		FROM work w
		CROSS JOIN LATERAL (VALUES
			(1::bigint, w.opened_at, 'opened', concat_ws('; ', 'last chance ' || ` + kst + `w.deadline` + kstEnd + `,
				CASE WHEN w.notice_attempt > 0 THEN 'redelivery ' || w.notice_attempt || ' of 7 failed' WHEN w.notice_attempt = 0 THEN 'first delivery failed' END,
				'next expected ' || ` + kst + `w.notice_next_at` + kstEnd + `)),
			(2, w.notice_failed_at, 'notice_failed', NULL),
			(3, w.last_asked_at, 'gateway_asked', concat_ws('; ', w.attempts || ' times', NULLIF(w.last_answer, ''))),
			(4, w.closed_at, w.closed_as, NULL)
		) AS s (n, at, result, detail)
		WHERE (w.payment_key = ANY(@payments) AND w.closed_at IS NULL) OR (w.payment_key = ANY(@payments) AND w.closed_at IS NOT NULL)`

	// Every change of a mismatch, and who made it.
	mismatchHappened = `
		SELECT 11, m.mismatch_id * 100000 + t.number, t.at, NULL::timestamptz, 'mismatch', m.kind, t.action,
			CASE WHEN t.changed->>'amount' IS NOT NULL THEN COALESCE(t.changed->>'currency', m.currency) END, (t.changed->>'amount')::bigint,
			m.payment_key, m.transaction_key,
			concat_ws('; ', 'mismatch ' || m.mismatch_id, 'by ' || t.actor, t.changed->>'detail', 'assigned to ' || (t.changed->>'assignee'),
				'to be ' || (t.changed->'proposal'->>'as'), t.changed->>'resolved_as', NULLIF(t.note, '')), NULLIF(t.note, '')
		FROM mismatches m
		JOIN mismatch_trail t ON t.mismatch_id = m.mismatch_id
		WHERE m.order_id = @order_id OR m.payment_key = ANY(@payments)`

	eventHappened = `
		SELECT 12, s.n, s.at, NULL::timestamptz, 'event', v.kind, s.result, NULL, NULL, v.payment_key, NULL,
			concat_ws('; ', v.event_id, 'for the ' || v.audience, s.detail), NULL
		FROM events v
		CROSS JOIN LATERAL (VALUES
			(1::bigint, v.created_at, 'announced', NULL),
			(2, v.resent_at, 'sent_again', NULL),
			(3, v.delivered_at, 'delivered', v.attempts || ' attempts'),
			(4, v.dead_at, 'given_up', concat_ws('; ', v.attempts || ' attempts', NULLIF(v.last_answer, '')))
		) AS s (n, at, result, detail)
		WHERE v.order_id = @order_id`

	// The jobs that deliver the order's events, as long as the queue keeps them.
	jobHappened = `
		SELECT 13, j.id, j.created_at, NULL::timestamptz, 'job', j.kind, j.state::text, NULL, NULL, v.payment_key, NULL,
			concat_ws('; ', 'job ' || j.id, j.args->>'event_id', 'attempt ' || j.attempt || ' of ' || j.max_attempts, 'last tried ' || ` + kst + `j.attempted_at` + kstEnd + `), NULL
		FROM river.river_job j
		LEFT JOIN events v ON v.event_id = j.args->>'event_id'
		WHERE j.id = ANY(@jobs)`

	// kst and kstEnd go around a moment within a detail, which is written as people in Korea write it.
	kst    = `to_char(`
	kstEnd = ` AT TIME ZONE 'Asia/Seoul', 'YYYY-MM-DD HH24:MI:SS')`
)
