package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// window is the stretch of time that an audit compares, and how much of it the list was read for.
type window struct {
	bounds
	from, to time.Time
	endless  bool // to is only shown
	reasons  []string
	looked   Looked
}

// until ends what is read. A row may bear a time that has not come yet, so a window without an end has none here.
func (w window) until() time.Time {
	if w.endless {
		return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return w.to
}

// tally begins to count what lies in the window.
func (w window) tally() *tally {
	t := newTally(w.bounds)
	if !w.endless {
		t.agreedMax = storedEntries
	}
	return t
}

// farFuture ends a window that has no end of its own.
func farFuture(now time.Time) time.Time { return now.Add(day) }

// window finds out how far the list was read without a gap.
func (a *Auditor) window(ctx context.Context, tx pgx.Tx, scope Scope, now time.Time) (window, error) {
	w := window{bounds: bounds{now: now, listLag: a.cfg.ListLag}, from: a.cfg.OpeningAt, to: farFuture(now), endless: true}
	switch scope.Name {
	case ScopeRecent, ScopeAll:
	case ScopeDay:
		start := scope.Day.Start()
		if start.IsZero() {
			return w, fmt.Errorf("%q: %w", scope.Day, ledger.ErrDay)
		}
		if start.After(w.from) {
			w.from = start
		}
		w.to, w.endless = scope.Day.End(), false
	default:
		return w, errors.New("an audit needs a scope")
	}
	return w, a.coverage(ctx, tx, scope, &w)
}

type coverage struct {
	Since    *time.Time `db:"since"`
	AsOf     *time.Time `db:"as_of"`
	Runs     int        `db:"runs"`
	Failed   int        `db:"failed"`
	LastFail string     `db:"last_fail"`
	Rows     int        `db:"rows"`
	Foreign  int        `db:"foreign_rows"`
}

// lookedAtWindow counts the reads that touch the window, and all that is known of it.
const lookedAtWindow = `
		touched AS (
			SELECT count(*) FILTER (WHERE result = 'complete')::integer AS runs, count(*) FILTER (WHERE result = 'failed')::integer AS failed
			FROM list_runs WHERE tstzrange(window_from, window_to, '[]') && tstzrange(@from, GREATEST(@from::timestamptz, @to))),
		held AS (
			SELECT count(*)::integer AS rows, count(*) FILTER (WHERE is_foreign)::integer AS foreign_rows
			FROM mirror WHERE at >= @from AND at < @to)`

// lookedAtLately counts the newest reads only: each minute nobody counts history.
const lookedAtLately = `
		touched AS (
			SELECT count(*) FILTER (WHERE result = 'complete')::integer AS runs, count(*) FILTER (WHERE result = 'failed')::integer AS failed,
				COALESCE(sum(rows), 0)::integer AS rows
			FROM list_runs WHERE started_at >= @to::timestamptz - interval '1 hour'),
		held AS (SELECT rows, 0 AS foreign_rows FROM touched)`

// coverage reads which part of the window complete reads of the list cover without a gap. Running and failed reads
// cover nothing. Where no opening says from when on everything counts, the stretch that was read last without a gap does:
// one of the past, read by itself, is no beginning.
func (a *Auditor) coverage(ctx context.Context, tx pgx.Tx, scope Scope, w *window) error {
	looked, to := lookedAtWindow, w.until()
	if scope.Name == ScopeRecent {
		looked, to = lookedAtLately, w.now
	}
	rows, err := tx.Query(ctx, `
		WITH base AS (
			SELECT CASE WHEN @opened THEN @from::timestamptz
					WHEN @endless THEN GREATEST(@from::timestamptz, (SELECT max(lower(s)) FROM unnest(stretches) AS s))
					ELSE GREATEST(@from::timestamptz, lower(stretches)) END AS at, stretches
			FROM list_covered),
		latest AS (
			SELECT result, error FROM list_runs
			WHERE result <> 'running' AND reason IN ('poll', 'reread') -- a stretch of the past shows in what is covered
			ORDER BY started_at DESC, run_id DESC LIMIT 1),`+looked+`
		SELECT (SELECT at FROM base) AS since,
			(SELECT upper(s) FROM base, unnest(stretches) AS s WHERE s @> base.at) AS as_of,
			touched.runs, touched.failed, held.rows, held.foreign_rows,
			COALESCE((SELECT error FROM latest WHERE result = 'failed'), '') AS last_fail
		FROM touched, held`,
		pgx.StrictNamedArgs{"opened": !a.cfg.OpeningAt.IsZero(), "endless": w.endless, "from": w.from, "to": to})
	if err != nil {
		return fmt.Errorf("read how far the list was read: %w", err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[coverage])
	if err != nil {
		return fmt.Errorf("read how far the list was read: %w", err)
	}
	a.bind(w, c, scope)
	return nil
}

// bind sets what the comparison may judge, and why it may not be complete.
func (a *Auditor) bind(w *window, c coverage, scope Scope) {
	w.since, w.asOf = w.from, w.from
	if c.Since != nil && c.Since.After(w.since) {
		w.since = *c.Since
	}
	readTo := w.since
	if c.AsOf != nil {
		readTo = *c.AsOf
	}
	if readTo.After(w.now) {
		readTo = w.now // read by a clock that was ahead: what happens until then was not seen
	}
	w.asOf = readTo
	if readTo.After(w.to) {
		w.asOf = w.to.Add(w.listLag) // a closed day was given its lag: all of it can be judged
		if readTo.Before(w.asOf) {
			w.asOf = readTo
		}
	}
	switch {
	case !w.to.After(w.from):
		w.reasons = append(w.reasons, "the books were opened at "+ledger.Stamp(w.from)+", after the day")
	case c.AsOf == nil:
		w.reasons = append(w.reasons, "the gateway's list was never read completely from the window's start")
	case scope.Name == ScopeDay && readTo.Before(w.to.Add(w.listLag)):
		w.reasons = append(w.reasons, "the gateway's list was read up to "+ledger.Stamp(readTo)+" only; the day needs it up to its end and the list's lag")
	case scope.Name != ScopeDay && readTo.Before(w.now.Add(-w.listLag)):
		w.reasons = append(w.reasons, "the gateway's list was read up to "+ledger.Stamp(readTo)+" only")
	}
	if whole := w.from.Equal(w.since) || !a.cfg.OpeningAt.IsZero(); scope.Name == ScopeDay && !whole {
		w.reasons = append(w.reasons, "the gateway's list was read from "+ledger.Stamp(w.since)+" on only; the day begins earlier")
	}
	if c.LastFail != "" && scope.Name != ScopeDay {
		w.reasons = append(w.reasons, "the last read of the gateway's list failed: "+c.LastFail)
	}
	w.looked = Looked{
		From: w.since.UTC(), To: w.to.UTC(), Lag: w.listLag.String(), Runs: c.Runs, FailedRuns: c.Failed,
		Rows: c.Rows, ForeignRows: c.Foreign,
	}
}

// factRow is one transaction key with what the three sets say of it.
type factRow struct {
	TransactionKey string           `db:"transaction_key"`
	PaymentKey     string           `db:"payment_key"`
	OrderID        string           `db:"order_id"`
	GCurrency      *ledger.Currency `db:"g_currency"`
	GAmount        *int64           `db:"g_amount"`
	GAt            *time.Time       `db:"g_at"`
	GWord          string           `db:"g_word"`
	BCurrency      *ledger.Currency `db:"b_currency"`
	BAmount        *int64           `db:"b_amount"`
	BAt            *time.Time       `db:"b_at"`
	BChannel       *ledger.Channel  `db:"b_channel"`
	BPaymentKey    string           `db:"b_payment_key"`
	BOrderID       string           `db:"b_order_id"`
	WKind          *ledger.WorkKind `db:"w_kind"`
	WOpenedAt      *time.Time       `db:"w_opened_at"`
	WDeadline      *time.Time       `db:"w_deadline"`
	WAttempt       *int             `db:"w_attempt"`
	WNextAt        *time.Time       `db:"w_next_at"`
	WCurrency      *ledger.Currency `db:"w_currency"`
	WAmount        *int64           `db:"w_amount"`
	Missing        bool             `db:"missing"`
	VoidAlias      bool             `db:"void_alias"`
	Accepted       []acceptance     `db:"accepted"`
	Excluded       bool             `db:"excluded"` // another system's, or from before the opening
	ListedDay      *string          `db:"listed_day"`
	Known          bool             `db:"known"` // remembered from an earlier run, as follows
	JPaymentKey    string           `db:"j_payment_key"`
	JOrderID       string           `db:"j_order_id"`
	JDay           *string          `db:"j_day"`
	JCurrency      *ledger.Currency `db:"j_currency"`
	JAmount        *int64           `db:"j_amount"`
	JParts         []share          `db:"j_parts"`
	JEntries       []listing        `db:"j_entries"`
	JRecheckAt     *time.Time       `db:"j_recheck_at"`
	JRecheckAsOf   *time.Time       `db:"j_recheck_as_of"`
}

// facts reads what the three sets say of each key, in their order, and what it last came to. A cancel that moved no money counts as
// nothing on both sides, whatever amount the list writes beside it: that of an account into which nothing was paid, or
// whose every deposit fell back. Where several payments claim one key, the work of
// the payment that has it counts.
//
// LIMIT and OFFSET keep the planner from joining with a whole table: each key is looked up, so that an audit costs what
// it compares. What is rarely needed is only looked up where it is: whether a cancel was a void where the books do not
// say the same as the list, and whose a row is where the list has none of ours.
func (a *Auditor) facts(ctx context.Context, tx pgx.Tx, keys []string) ([]factRow, error) {
	rows, err := tx.Query(ctx, `
		SELECT k.transaction_key, COALESCE(g.payment_key, c.payment_key, w.payment_key, '') AS payment_key,
			COALESCE(g.order_id, c.order_id, w.order_id, '') AS order_id,
			g.currency AS g_currency, g.at AS g_at, COALESCE(g.word, '') AS g_word, CASE WHEN v.void THEN 0 ELSE g.amount END AS g_amount,
			c.currency AS b_currency, c.amount AS b_amount, c.canceled_at AS b_at, c.channel AS b_channel,
			COALESCE(c.payment_key, '') AS b_payment_key, COALESCE(c.order_id, '') AS b_order_id,
			w.kind AS w_kind, w.opened_at AS w_opened_at, w.deadline AS w_deadline, w.notice_attempt AS w_attempt,
			w.notice_next_at AS w_next_at, w.currency AS w_currency, w.amount AS w_amount,
			g.missing_since IS NOT NULL AS missing,
			COALESCE(c.amount = 0 AND EXISTS (SELECT 1 FROM mirror x WHERE x.payment_key = c.payment_key AND x.kind = 'cancel' OFFSET 0), false) AS void_alias,
			(SELECT `+acceptedAs+` FROM mismatches m
				WHERE m.transaction_key = k.transaction_key AND m.resolved_as = 'accepted' AND m.amount IS NOT NULL
					AND (m.kind <> 'history_changed' OR m.detail = @vanished)) AS accepted,
			COALESCE(e.excluded, false) AS excluded, COALESCE(g.day, e.day)::text AS listed_day,
			j.key IS NOT NULL AS known, COALESCE(j.payment_key, '') AS j_payment_key, COALESCE(j.order_id, '') AS j_order_id,
			j.day::text AS j_day, j.currency AS j_currency, j.amount AS j_amount, j.parts AS j_parts, j.entries AS j_entries,
			j.recheck_at AS j_recheck_at, j.recheck_as_of AS j_recheck_as_of
		FROM unnest(@keys::text[]) WITH ORDINALITY AS k (transaction_key, number)
		LEFT JOIN LATERAL (
			SELECT x.payment_key, x.order_id, x.currency, x.amount, x.at, x.day, x.word, x.missing_since
			FROM mirror x
			WHERE x.transaction_key = k.transaction_key AND x.kind = 'cancel' AND NOT x.is_foreign AND x.at >= @opening
			LIMIT 1) g ON true
		LEFT JOIN LATERAL (
			SELECT x.day, x.is_foreign OR x.at < @opening OR x.kind = 'unrecognized' AS excluded
			FROM mirror x
			WHERE x.transaction_key = k.transaction_key AND g.payment_key IS NULL
			LIMIT 1) e ON true
		LEFT JOIN LATERAL (
			SELECT x.payment_key, x.order_id, x.currency, x.amount, x.canceled_at, x.channel
			FROM cancels x
			WHERE x.transaction_key = k.transaction_key
			LIMIT 1) c ON true
		LEFT JOIN LATERAL (
			SELECT p.virtual_account
				AND NOT EXISTS (SELECT 1 FROM captures x WHERE x.payment_key = p.payment_key AND x.reversed_at IS NULL OFFSET 0)
				AND NOT EXISTS (SELECT 1 FROM mirror x WHERE x.payment_key = p.payment_key AND x.kind = 'capture' AND x.amount > 0
					AND NOT EXISTS (SELECT 1 FROM captures y WHERE y.payment_key = x.payment_key AND y.transaction_key = x.transaction_key) OFFSET 0) AS void
			FROM payments p
			WHERE p.payment_key = g.payment_key AND (c.amount, c.currency) IS DISTINCT FROM (g.amount, g.currency)
			LIMIT 1) v ON true
		LEFT JOIN LATERAL (
			SELECT o.payment_key, o.order_id, o.kind, o.opened_at, o.deadline, o.notice_attempt, o.notice_next_at, o.currency, o.amount
			FROM work o
			WHERE o.transaction_key = k.transaction_key AND o.closed_at IS NULL
				AND o.kind IN ('cancel_claimed', 'cancel_listed', 'cancel_in_progress')
			ORDER BY o.payment_key = COALESCE(g.payment_key, c.payment_key) DESC NULLS LAST, o.work_id
			LIMIT 1) w ON true
		LEFT JOIN LATERAL (
			SELECT x.key, x.payment_key, x.order_id, x.day, x.currency, x.amount, x.parts, x.entries, x.recheck_at, x.recheck_as_of
			FROM audit_judged x
			WHERE x.subject = 'cancel' AND x.key = k.transaction_key
			LIMIT 1) j ON true
		ORDER BY k.number`,
		pgx.StrictNamedArgs{"keys": keys, "opening": a.cfg.OpeningAt, "vanished": detailVanished})
	if err != nil {
		return nil, fmt.Errorf("read the cancels of both books: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[factRow])
	if err != nil {
		return nil, fmt.Errorf("read the cancels of both books: %w", err)
	}
	return all, nil
}

// counts reports whether the key is in one of the sets, and ours.
func (r factRow) counts() bool {
	return !r.Excluded && (r.GAt != nil || r.BAt != nil || r.WKind != nil)
}

// now is what the key comes to by the bounds.
func (r factRow) now(b bounds) memory {
	if !r.counts() {
		return memory{about: aboutCancel, key: r.TransactionKey}
	}
	f := r.fact()
	return f.remember(judge(f, b), b)
}

// before is what the key last came to.
func (r factRow) before() memory {
	if !r.Known {
		return memory{about: aboutCancel, key: r.TransactionKey}
	}
	return memoryRow{
		Subject: aboutCancel, Key: r.TransactionKey, PaymentKey: r.JPaymentKey, OrderID: r.JOrderID, Day: r.JDay, Currency: r.JCurrency,
		Amount: r.JAmount, Parts: r.JParts, Entries: r.JEntries, RecheckAt: r.JRecheckAt, RecheckAsOf: r.JRecheckAsOf,
	}.memory()
}

func (r factRow) fact() fact {
	f := fact{
		TransactionKey: r.TransactionKey, PaymentKey: r.PaymentKey, OrderID: r.OrderID,
		G: sideOf(r.GCurrency, r.GAmount, r.GAt), B: sideOf(r.BCurrency, r.BAmount, r.BAt), Word: r.GWord,
		BookedFor: whose{r.BPaymentKey, r.BOrderID}, W: r.owing(),
		Missing: r.Missing, VoidAlias: r.VoidAlias, Accepted: r.Accepted,
	}
	if r.BChannel != nil {
		f.Channel = *r.BChannel
	}
	return f
}

func sideOf(currency *ledger.Currency, amount *int64, at *time.Time) side {
	if currency == nil || amount == nil || at == nil {
		return side{}
	}
	return side{Present: true, Amount: ledger.Money{Minor: *amount, Currency: *currency}, At: *at}
}

func (r factRow) owing() owing {
	if r.WKind == nil {
		return owing{}
	}
	w := owing{Present: true, Kind: *r.WKind, OpenedAt: *r.WOpenedAt, Deadline: *r.WDeadline, NoticeAttempt: -1}
	if r.WAttempt != nil {
		w.NoticeAttempt = *r.WAttempt
	}
	if r.WNextAt != nil {
		w.NoticeNextAt = *r.WNextAt
	}
	if r.WCurrency != nil && r.WAmount != nil {
		w.Amount = ledger.Money{Minor: *r.WAmount, Currency: *r.WCurrency}
	}
	return w
}
