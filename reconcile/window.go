package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/pgclient"
)

// detailVanished is the detail of a mismatch about a row that the list no longer has.
const detailVanished = "the list had this row and no longer has it"

var (
	// ErrShortRead reports a read of the list that lacks rows which were there before, or money that our books have.
	// It proves nothing until a second read says the same.
	ErrShortRead = errors.New("the list is shorter than what is known of it")
	errRunaway   = errors.New("the list does not end")
	errOvertaken = errors.New("another reader has gone on with this read of the list")
)

// pagesMax stops a list that never ends: at 1,000 rows a page it is five million rows a day.
const pagesMax = 5000

// restartsMax is how often one window is begun again because the row to continue after is gone.
const restartsMax = 3

// read is one read of one window.
type read struct {
	Run         int64     `db:"run_id"`
	Turn        int       `db:"turn"`
	Reason      Reason    `db:"reason"`
	From        time.Time `db:"window_from"`
	To          time.Time `db:"window_to"`
	StartedAt   time.Time `db:"started_at"`
	Pages       int       `db:"pages"`
	Rows        int       `db:"rows"`
	Fresh       int       `db:"fresh"`
	Quarantined int       `db:"quarantined"`
	Cursor      string    `db:"cursor"`
	missing     int
	doubted     int64 // the read of the same window that came back short, and that this one is to confirm; 0: none did
}

// since is the read that a known row must have been shown by, or by a later one, not to be missing: the first of the two
// where one is to confirm another.
func (w read) since() int64 { return cmp.Or(w.doubted, w.Run) }

func (w read) polled() Polled {
	return Polled{Windows: 1, Pages: w.Pages, Rows: w.Rows, Fresh: w.Fresh, Quarantined: w.Quarantined}
}

// readWindow reads one window to its end.
func (r reader) readWindow(ctx context.Context, reason Reason, from, to time.Time) (read, error) {
	w, err := r.begin(ctx, reason, from, to)
	if err != nil {
		return w, err
	}
	return r.finish(ctx, w)
}

// finish reads a window that was begun to its end. A read that is suspiciously short counts as failed and is made once
// more; what the second read says is believed, and what both lack is marked as missing: two reads that are short of
// different rows prove nothing. Where the list has moved so that the gateway no longer knows the row to continue after,
// the window is read from its beginning.
func (r reader) finish(ctx context.Context, w read) (read, error) {
	believe, restarts, doubted := false, 0, int64(0)
	for {
		var err error
		w, err = r.attempt(ctx, w, believe)
		switch {
		case err == nil:
			return w, nil
		case errors.Is(err, ErrShortRead) && !believe:
			believe, doubted = true, w.Run
			r.cfg.Log.WarnContext(ctx, "the list came back short, reading again", slog.Time("from", w.From), slog.Time("to", w.To),
				slog.Any("error", err))
		case cursorRefused(err) && w.Cursor != "" && restarts < restartsMax:
			restarts++
			r.cfg.Log.WarnContext(ctx, "the list has moved, reading the window from its beginning", slog.Time("from", w.From),
				slog.Time("to", w.To), slog.Int("pages", w.Pages))
		default:
			return w, err
		}
		if w, err = r.begin(ctx, w.Reason, w.From, w.To); err != nil {
			return w, err
		}
		w.doubted = doubted
	}
}

func cursorRefused(err error) bool {
	failure, ok := errors.AsType[*pgclient.Error](err)
	return ok && failure.Reason == pgclient.ReasonCursorRefused
}

// begin writes the row of a read before its first call: running. What a crash leaves running proves nothing.
func (r reader) begin(ctx context.Context, reason Reason, from, to time.Time) (read, error) {
	w := read{Turn: 1, Reason: reason, From: from, To: to, StartedAt: r.cfg.now()}
	rows, err := r.cfg.DB.Query(ctx, `
		INSERT INTO list_runs (reason, window_from, window_to, started_at, result)
		VALUES (@reason, @from, @to, @now, 'running')
		RETURNING run_id`,
		pgx.StrictNamedArgs{"reason": string(reason), "from": from, "to": to, "now": w.StartedAt})
	if err != nil {
		return w, fmt.Errorf("begin to read the list: %w", err)
	}
	if w.Run, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64]); err != nil {
		return w, fmt.Errorf("begin to read the list: %w", err)
	}
	return w, nil
}

// attempt reads the pages that are left and closes the row: complete only after the last page. Where it is we who stop,
// the row stays open for the next reader to go on with.
func (r reader) attempt(ctx context.Context, w read, believe bool) (read, error) {
	err := r.pages(ctx, &w)
	if err == nil {
		err = r.weigh(ctx, &w, believe)
	}
	if err != nil && (ctx.Err() != nil || errors.Is(err, errLockLost) || errors.Is(err, errOvertaken)) {
		return w, err
	}
	if endErr := r.end(ctx, w, err); endErr != nil {
		return w, errors.Join(err, endErr)
	}
	if err != nil {
		return w, fmt.Errorf("read the list from %s to %s: %w", w.From.In(ledger.Seoul()).Format(time.DateTime),
			w.To.In(ledger.Seoul()).Format(time.DateTime), err)
	}
	return w, nil
}

// pages reads page after page until one is not full. The cursor never leaves the window it came from.
func (r reader) pages(ctx context.Context, w *read) error {
	for w.Pages < pagesMax {
		if err := r.holds(ctx); err != nil {
			return err
		}
		page, err := r.cfg.Gateway.Transactions(ctx, w.From, w.To, w.Cursor, r.cfg.PageSize)
		if err != nil {
			return err
		}
		next := *w
		next.Pages++
		next.Rows += len(page.Rows) + len(page.Quarantined)
		next.Quarantined += len(page.Quarantined)
		if page.Full {
			next.Cursor = page.Last
		}
		if err := r.keep(ctx, &next, page); err != nil {
			return err
		}
		*w = next
		if !page.Full {
			return nil
		}
	}
	return errRunaway
}

// settled is where the rows of a window end that the list no longer may show and hide again.
func (m *Mirror) settled(r read) time.Time {
	settled := r.StartedAt.Add(-m.cfg.ListLag)
	if r.To.Before(settled) {
		return r.To
	}
	return settled
}

// weigh compares a finished read with what was known of its window, and with what our books have of it: a list that came
// back after an outage, or ends early, may lack what it never showed. Rows within the list's lag are left out: they may
// come and go, and every later read weighs them until they are old enough.
//
// The gateway does not say whether the second at which a window ends belongs to it; the one at which it begins does, or
// no window of a day would have its midnight. So a row at the second where two windows meet is weighed in the later one.
func (m *Mirror) weigh(ctx context.Context, r *read, believe bool) error {
	rows, err := m.cfg.DB.Query(ctx, `
		SELECT (SELECT count(*) FROM mirror WHERE at >= @from AND at < @settled AND last_run < @since AND missing_since IS NULL)::integer AS missing,
			(`+unlistedCancels+` + `+unlistedCaptures+`)::integer AS unlisted`,
		pgx.StrictNamedArgs{"from": r.From, "settled": m.settled(*r), "since": r.since(), "opening": m.cfg.OpeningAt})
	if err != nil {
		return fmt.Errorf("weigh the list: %w", err)
	}
	type weight struct {
		Missing  int `db:"missing"`
		Unlisted int `db:"unlisted"`
	}
	w, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[weight])
	if err != nil {
		return fmt.Errorf("weigh the list: %w", err)
	}
	r.missing = w.Missing
	switch {
	case !believe && w.Missing > 0:
		return fmt.Errorf("%d known rows are not shown: %w", w.Missing, ErrShortRead)
	case !believe && w.Unlisted > 0:
		return fmt.Errorf("%d cancels and captures of our books are not shown: %w", w.Unlisted, ErrShortRead)
	case w.Missing > 0:
		return m.markMissing(ctx, *r)
	}
	return nil
}

// What our books have of a window's money and the mirror has never seen. What is a mismatch already, open or accepted, is
// known not to be listed: no read is made twice for it again. A capture is looked for as the audit does.
//
// OFFSET keeps the planner from joining with a whole table: each is looked up, so that a read costs what is in its window.
const (
	unlistedCancels = `(SELECT count(*) FROM cancels c
				WHERE c.canceled_at >= @from AND c.canceled_at >= @opening AND c.canceled_at < @settled AND c.amount > 0
					AND NOT EXISTS (SELECT 1 FROM mirror g WHERE g.transaction_key = c.transaction_key OFFSET 0)
					AND NOT EXISTS (SELECT 1 FROM mismatches m WHERE m.transaction_key = c.transaction_key
						AND m.kind IN ('cancel_missing_there', 'quarantined') AND (m.status <> 'resolved' OR m.resolved_as = 'accepted') OFFSET 0))`
	unlistedCaptures = `(SELECT count(*) FROM captures c
				WHERE c.captured_at >= @from AND c.captured_at >= @opening AND c.captured_at < @settled AND c.reversed_at IS NULL
					AND NOT EXISTS (SELECT 1 FROM mirror g WHERE g.payment_key = c.payment_key
						AND (g.transaction_key = c.transaction_key OR ` + unnamedCapture + `) OFFSET 0)
					AND NOT EXISTS (SELECT 1 FROM mismatches m WHERE m.payment_key = c.payment_key
						AND (m.kind = 'quarantined' OR (m.kind = 'order_without_payment' AND COALESCE(m.transaction_key, '') = COALESCE(c.transaction_key, '')))
						AND (m.status <> 'resolved' OR m.resolved_as = 'accepted') OFFSET 0))`
)

// markMissing marks rows that two reads in a row did not show, and opens a mismatch for each that is money of ours. A
// deposit may be gone because it fell back: that is asked about first.
func (m *Mirror) markMissing(ctx context.Context, r read) error {
	return m.inTx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			WITH gone AS (
				UPDATE mirror
				SET missing_since = @now
				WHERE at >= @from AND at < @settled AND last_run < @since AND missing_since IS NULL
				RETURNING transaction_key, payment_key, order_id, kind, word, currency, amount, is_foreign, at)
			SELECT gone.transaction_key, gone.payment_key, gone.order_id, gone.kind, gone.word, gone.currency, gone.amount, gone.is_foreign, gone.at,
				gone.kind = 'capture' AND d.deposits > 0 AS deposit, COALESCE(d.stands, false) AS stands
			FROM gone
			CROSS JOIN LATERAL (
				SELECT count(*) AS deposits, bool_or(c.reversed_at IS NULL) AS stands
				FROM captures c
				JOIN payments p ON p.payment_key = c.payment_key
				WHERE c.payment_key = gone.payment_key AND c.transaction_key = gone.transaction_key AND p.virtual_account) d`,
			pgx.StrictNamedArgs{"now": m.cfg.now(), "from": r.From, "settled": m.settled(r), "since": r.since()})
		if err != nil {
			return fmt.Errorf("mark missing rows: %w", err)
		}
		gone, err := pgx.CollectRows(rows, pgx.RowToStructByName[vanished])
		if err != nil {
			return fmt.Errorf("mark missing rows: %w", err)
		}
		b := &gathered{}
		for _, v := range gone {
			switch money := v.Kind == "cancel" || v.Kind == "capture"; {
			case v.Foreign || !money || v.At.Before(m.cfg.OpeningAt):
			case v.Deposit && v.Stands:
				f := fallenDeposit{v.PaymentKey, v.OrderID, v.Currency, v.Amount}
				ledger.QueueWork(&b.Batch, f.watch(m.cfg.now()), m.cfg.now())
			case v.Deposit: // it fell back, and our books say so
			default:
				b.found(v.finding())
			}
		}
		if err := tx.SendBatch(ctx, &b.Batch).Close(); err != nil {
			return fmt.Errorf("mark missing rows: %w", err)
		}
		if err := besideBooks(ctx, tx, b.findings); err != nil {
			return err
		}
		_, err = ledger.OpenMismatches(ctx, tx, listRun(r.Run), b.findings, m.cfg.now())
		return err
	})
}

type vanished struct {
	TransactionKey string          `db:"transaction_key"`
	PaymentKey     string          `db:"payment_key"`
	OrderID        string          `db:"order_id"`
	Kind           string          `db:"kind"`
	Word           string          `db:"word"`
	Currency       ledger.Currency `db:"currency"`
	Amount         int64           `db:"amount"`
	Foreign        bool            `db:"is_foreign"`
	At             time.Time       `db:"at"`
	Deposit        bool            `db:"deposit"` // into a virtual account of ours
	Stands         bool            `db:"stands"`  // in our books
}

// finding says what the list had, and that it has it no more.
func (v vanished) finding() ledger.Finding {
	money := ledger.Money{Minor: v.Amount, Currency: v.Currency}
	had := shownEvidence(v.TransactionKey, v.Word, money, v.At)
	had["present"], had["kind"] = false, v.Kind
	return ledger.Finding{
		Kind: ledger.KindHistoryChanged, PaymentKey: v.PaymentKey, OrderID: v.OrderID, TransactionKey: v.TransactionKey,
		AtRisk: money, Detail: detailVanished, Gateway: had,
	}
}

// How long the gateway is left alone after it refused by rate: longer with each refusal of the last hour, and never
// shorter than it asked for.
const (
	pauseLeast = time.Minute
	pauseMost  = 15 * time.Minute
)

// end closes the run's row, also when the caller's context has ended, if it is still this reader's turn. What was read
// completely is added to what is covered in the same statement, up to the instant at which the read began.
func (m *Mirror) end(ctx context.Context, r read, failure error) error {
	result, text := "complete", ""
	if failure != nil {
		result, text = "failed", failure.Error()
	}
	refused, asked := refusedByRate(failure)
	ctx, stop := detached(ctx, 5*time.Second)
	defer stop()
	rows, err := m.cfg.DB.Query(ctx, `
		WITH ended AS (
			UPDATE list_runs
			SET ended_at = @now, missing = @missing, result = @result, error = left(@error, 500),
				paused_until = CASE WHEN @refused THEN @now::timestamptz + GREATEST(@asked::interval, LEAST(@pause_most::interval,
					@pause_least::interval * power(2, (SELECT count(*) FROM list_runs p WHERE p.paused_until > @hour_ago)))) END
			WHERE run_id = @run AND turn = @turn AND result = 'running'
			RETURNING window_from, window_to, started_at, result),
		covered AS (
			INSERT INTO list_covered AS c (stretches)
			SELECT tstzmultirange(tstzrange(window_from, LEAST(window_to, started_at), '[]'))
			FROM ended
			WHERE result = 'complete' AND window_from <= started_at
			ON CONFLICT (only_row) DO UPDATE SET stretches = c.stretches + excluded.stretches
			RETURNING stretches),
		readable AS (`+noteReadable+`)
		SELECT count(*) FROM ended`,
		pgx.StrictNamedArgs{
			"now": m.cfg.now(), "missing": r.missing, "result": result, "error": text, "run": r.Run, "turn": r.Turn,
			"refused": refused, "asked": asked, "pause_least": pauseLeast, "pause_most": pauseMost, "hour_ago": m.cfg.now().Add(-time.Hour),
			"lag": m.cfg.ListLag, "opens": postgres.NullTime(m.cfg.OpeningAt), "oldest": oldestClosed(m.cfg.now()),
		})
	if err != nil {
		return fmt.Errorf("end the read of the list: %w", err)
	}
	ended, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	switch {
	case err != nil:
		return fmt.Errorf("end the read of the list: %w", err)
	case ended == 0:
		return errOvertaken
	}
	m.cfg.Metrics.listed(r.Reason, result, r.Rows)
	return nil
}

// refusedByRate reports whether the gateway turned the read away because it is asked too often, and how long it wants
// to be left alone.
func refusedByRate(failure error) (refused bool, asked time.Duration) {
	if refusal, ok := errors.AsType[*pgclient.Error](failure); ok && refusal.Reason == pgclient.ReasonRateLimited {
		return true, refusal.RetryAfter
	}
	return false, 0
}
