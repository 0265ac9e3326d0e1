package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// detailVanished is the detail of a mismatch about a row that the list no longer has.
const detailVanished = "the list had this row and no longer has it"

var (
	// ErrShortRead reports a read of the list that lacks rows which were there before, or has none where our books
	// have some. It proves nothing until a second read says the same.
	ErrShortRead = errors.New("the list is shorter than what is known of it")
	errRunaway   = errors.New("the list does not end")
)

// pagesMax stops a list that never ends: at 1,000 rows a page it is five million rows a day.
const pagesMax = 5000

// read is one read of one window.
type read struct {
	run         int64
	from, to    time.Time
	startedAt   time.Time
	pages       int
	rows        int
	fresh       int
	quarantined int
	missing     int
	cursor      string
}

// readWindow reads one window to its end. A read that is suspiciously short counts as failed and is made once more;
// what the second read says is believed, and what it lacks is marked as missing.
func (m *Mirror) readWindow(ctx context.Context, reason Reason, from, to time.Time) (read, error) {
	first, err := m.attempt(ctx, reason, from, to, false)
	if !errors.Is(err, ErrShortRead) {
		return first, err
	}
	m.cfg.Log.WarnContext(ctx, "the list came back short, reading again", slog.Time("from", from), slog.Time("to", to),
		slog.Int("missing", first.missing))
	return m.attempt(ctx, reason, from, to, true)
}

// attempt is one read with its row in list_runs: running before the first call, complete only after the last page.
// What a crash leaves running proves nothing.
func (m *Mirror) attempt(ctx context.Context, reason Reason, from, to time.Time, believe bool) (read, error) {
	r := read{from: from, to: to, startedAt: m.cfg.now()}
	rows, err := m.cfg.DB.Query(ctx, `
		INSERT INTO list_runs (reason, window_from, window_to, started_at, result)
		VALUES (@reason, @from, @to, @now, 'running')
		RETURNING run_id`,
		pgx.StrictNamedArgs{"reason": string(reason), "from": from, "to": to, "now": r.startedAt})
	if err != nil {
		return r, fmt.Errorf("begin to read the list: %w", err)
	}
	if r.run, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64]); err != nil {
		return r, fmt.Errorf("begin to read the list: %w", err)
	}
	err = m.pages(ctx, &r)
	if err == nil {
		err = m.weigh(ctx, &r, believe)
	}
	if endErr := m.end(ctx, r, err); endErr != nil {
		return r, errors.Join(err, endErr)
	}
	if err != nil {
		return r, fmt.Errorf("read the list from %s to %s: %w", from.In(ledger.Seoul()).Format(time.DateTime),
			to.In(ledger.Seoul()).Format(time.DateTime), err)
	}
	return r, nil
}

// pages reads page after page until one is not full. The cursor never leaves the window it came from.
func (m *Mirror) pages(ctx context.Context, r *read) error {
	for r.pages < pagesMax {
		page, err := m.cfg.Gateway.Transactions(ctx, r.from, r.to, r.cursor, m.cfg.PageSize)
		if err != nil {
			return err
		}
		fresh, err := m.keep(ctx, r.run, page)
		if err != nil {
			return err
		}
		r.pages++
		r.rows += len(page.Rows) + len(page.Quarantined)
		r.fresh += fresh
		r.quarantined += len(page.Quarantined)
		if !page.Full {
			return nil
		}
		r.cursor = page.Last
	}
	return errRunaway
}

// settled is where the rows of a window end that the list no longer may show and hide again.
func (m *Mirror) settled(r read) time.Time {
	settled := r.startedAt.Add(-m.cfg.ListLag)
	if r.to.Before(settled) {
		return r.to
	}
	return settled
}

// weigh compares a finished read with what was known of its window. Rows within the list's lag are left out: they may
// come and go, and every later read weighs them until they are old enough.
func (m *Mirror) weigh(ctx context.Context, r *read, believe bool) error {
	rows, err := m.cfg.DB.Query(ctx, `
		SELECT (SELECT count(*) FROM mirror WHERE at > @from AND at < @settled AND last_run < @run AND missing_since IS NULL)::integer AS missing,
			((SELECT count(*) FROM cancels WHERE canceled_at > @from AND canceled_at < @settled AND amount > 0)
			+ (SELECT count(*) FROM captures WHERE captured_at > @from AND captured_at < @settled))::integer AS booked`,
		pgx.StrictNamedArgs{"from": r.from, "settled": m.settled(*r), "run": r.run})
	if err != nil {
		return fmt.Errorf("weigh the list: %w", err)
	}
	type weight struct {
		Missing int `db:"missing"`
		Booked  int `db:"booked"`
	}
	w, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[weight])
	if err != nil {
		return fmt.Errorf("weigh the list: %w", err)
	}
	r.missing = w.Missing
	empty := r.rows == 0 && w.Booked > 0
	switch {
	case !believe && w.Missing > 0:
		return fmt.Errorf("%d known rows are not shown: %w", w.Missing, ErrShortRead)
	case !believe && empty:
		return fmt.Errorf("nothing is shown where our books have %d: %w", w.Booked, ErrShortRead)
	case w.Missing > 0:
		return m.markMissing(ctx, *r)
	}
	return nil
}

// markMissing marks rows that two reads in a row did not show, and opens a mismatch for each that is money of ours.
func (m *Mirror) markMissing(ctx context.Context, r read) error {
	return m.inTx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			UPDATE mirror
			SET missing_since = @now
			WHERE at > @from AND at < @settled AND last_run < @run AND missing_since IS NULL
			RETURNING transaction_key, payment_key, order_id, kind, currency, amount, is_foreign, at`,
			pgx.StrictNamedArgs{"now": m.cfg.now(), "from": r.from, "settled": m.settled(r), "run": r.run})
		if err != nil {
			return fmt.Errorf("mark missing rows: %w", err)
		}
		gone, err := pgx.CollectRows(rows, pgx.RowToStructByName[vanished])
		if err != nil {
			return fmt.Errorf("mark missing rows: %w", err)
		}
		var findings []ledger.Finding
		for _, v := range gone {
			if !v.Foreign && (v.Kind == "cancel" || v.Kind == "capture") && !v.At.Before(m.cfg.OpeningAt) {
				findings = append(findings, v.finding())
			}
		}
		_, err = ledger.OpenMismatches(ctx, tx, listRun(r.run), findings, m.cfg.now())
		return err
	})
}

type vanished struct {
	TransactionKey string          `db:"transaction_key"`
	PaymentKey     string          `db:"payment_key"`
	OrderID        string          `db:"order_id"`
	Kind           string          `db:"kind"`
	Currency       ledger.Currency `db:"currency"`
	Amount         int64           `db:"amount"`
	Foreign        bool            `db:"is_foreign"`
	At             time.Time       `db:"at"`
}

func (v vanished) finding() ledger.Finding {
	return ledger.Finding{
		Kind: ledger.KindHistoryChanged, PaymentKey: v.PaymentKey, OrderID: v.OrderID, TransactionKey: v.TransactionKey,
		AtRisk: ledger.Money{Minor: v.Amount, Currency: v.Currency}, Detail: detailVanished,
		Gateway: map[string]any{"kind": v.Kind, "at": v.At.UTC(), "listed": false},
	}
}

// end closes the run's row, also when the caller's context has ended. What was read completely is added to what is
// covered in the same statement.
func (m *Mirror) end(ctx context.Context, r read, failure error) error {
	result, text := "complete", ""
	if failure != nil {
		result, text = "failed", failure.Error()
	}
	m.cfg.Metrics.listed(result, r.rows)
	ctx, stop := detached(ctx, 5*time.Second)
	defer stop()
	_, err := m.cfg.DB.Exec(ctx, `
		WITH ended AS (
			UPDATE list_runs
			SET ended_at = @now, pages = @pages, rows = @rows, fresh = @fresh, quarantined = @quarantined, missing = @missing,
				cursor = @cursor, result = @result, error = left(@error, 500)
			WHERE run_id = @run
			RETURNING window_from, window_to, result)
		INSERT INTO list_covered AS c (stretches)
		SELECT tstzmultirange(tstzrange(window_from, window_to, '[]'))
		FROM ended
		WHERE result = 'complete'
		ON CONFLICT (only_row) DO UPDATE SET stretches = c.stretches + excluded.stretches`,
		pgx.StrictNamedArgs{
			"now": m.cfg.now(), "pages": r.pages, "rows": r.rows, "fresh": r.fresh, "quarantined": r.quarantined,
			"missing": r.missing, "cursor": r.cursor, "result": result, "error": text, "run": r.run,
		})
	if err != nil {
		return fmt.Errorf("end the read of the list: %w", err)
	}
	return nil
}
