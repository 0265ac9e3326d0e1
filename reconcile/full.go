package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// driftShown bounds how many errors of the running sums a statement names.
const driftShown = 20

// drift is where what is remembered was found wrong.
type drift struct {
	found []string
	count int
}

func (d *drift) add(format string, args ...any) {
	d.count++
	if len(d.found) < driftShown {
		d.found = append(d.found, fmt.Sprintf(format, args...))
	}
}

// giveTime lets the statements of this transaction take as long as a whole history needs.
func giveTime(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', @limit, true)`, pgx.StrictNamedArgs{"limit": wholeLimit}); err != nil {
		return fmt.Errorf("give the audit its time: %w", err)
	}
	return nil
}

// inFull reads the facts of every key of the window, in pieces; those of a day in the order in which they happened.
func (r *round) inFull(ctx context.Context, w window, each func([]factRow) error) error {
	keys, after := r.everyKey, ""
	if !w.endless {
		keys = r.keysOf(w)
	}
	for {
		piece, err := keys(ctx, after)
		if err != nil || len(piece) == 0 {
			return err
		}
		facts, err := r.facts(ctx, r.tx, piece)
		if err != nil {
			return err
		}
		if err := each(facts); err != nil {
			return err
		}
		after = piece[len(piece)-1]
	}
}

// everyKey gives the next keys after one, of all three sets and of what is remembered.
func (r *round) everyKey(ctx context.Context, after string) ([]string, error) {
	return r.keysAfter(ctx, after, keysAtOnce)
}

// keysAfter gives the next keys after one, at most so many.
func (r *round) keysAfter(ctx context.Context, after string, most int) ([]string, error) {
	rows, err := r.tx.Query(ctx, `
		SELECT key
		FROM (
			(SELECT transaction_key AS key FROM mirror WHERE kind = 'cancel' AND NOT is_foreign AND transaction_key > @after
				ORDER BY transaction_key LIMIT @most)
			UNION
			(SELECT transaction_key FROM cancels WHERE transaction_key > @after ORDER BY transaction_key LIMIT @most)
			UNION
			(SELECT transaction_key FROM work WHERE closed_at IS NULL AND transaction_key > @after
				AND kind IN ('cancel_claimed', 'cancel_listed', 'cancel_in_progress')
				ORDER BY transaction_key LIMIT @most)
			UNION
			(SELECT key FROM audit_judged WHERE subject = 'cancel' AND key > @after ORDER BY key LIMIT @most)) AS k
		ORDER BY key
		LIMIT @most`,
		pgx.StrictNamedArgs{"after": after, "most": most})
	if err != nil {
		return nil, fmt.Errorf("read the keys of both books: %w", err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read the keys of both books: %w", err)
	}
	return keys, nil
}

// keysOf gives the keys whose cancel lies in the window, in either book. They are read once.
func (r *round) keysOf(w window) func(context.Context, string) ([]string, error) {
	var left []string
	return func(ctx context.Context, after string) ([]string, error) {
		if after == "" {
			rows, err := r.tx.Query(ctx, `
				SELECT k.transaction_key
				FROM (
					SELECT g.transaction_key, g.at, true AS listed FROM mirror g
					WHERE g.kind = 'cancel' AND NOT g.is_foreign AND g.at >= @from AND g.at < @to
					UNION ALL
					SELECT c.transaction_key, c.canceled_at, false FROM cancels c
					WHERE c.canceled_at >= @from AND c.canceled_at < @to) AS k
				GROUP BY k.transaction_key
				ORDER BY COALESCE(min(k.at) FILTER (WHERE k.listed), min(k.at)), k.transaction_key COLLATE "C"`,
				pgx.StrictNamedArgs{"from": w.from, "to": w.until()})
			if err != nil {
				return nil, fmt.Errorf("read the keys of the day: %w", err)
			}
			if left, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
				return nil, fmt.Errorf("read the keys of the day: %w", err)
			}
		}
		piece := left[:min(len(left), keysAtOnce)]
		left = left[len(piece):]
		return piece, nil
	}
}

// holds reports whether a fact counts within the window: by the mirror's row, or by our cancel where the list has none.
func (w window) holds(f factRow) bool {
	return w.endless || f.GAt == nil || (!f.GAt.Before(w.from) && f.GAt.Before(w.to))
}

// everything compares all keys anew, corrects what is remembered and returns what it all comes to. Where nothing gave
// reason to doubt what was remembered, a difference is an error of ours.
func (r *round) everything(ctx context.Context, trusted bool) (*tally, error) {
	if err := giveTime(ctx, r.tx); err != nil {
		return nil, err
	}
	var found drift
	t := newTally(r.w.bounds)
	err := r.inFull(ctx, r.w, func(facts []factRow) error {
		changes := make([]change, 0, len(facts))
		for _, f := range facts {
			c := change{f.before(), f.now(r.w.bounds)}
			t.take(c.now)
			changes = append(changes, c)
		}
		r.judged += len(changes)
		return r.correct(ctx, changes, &found)
	})
	if err != nil {
		return nil, err
	}
	if err := r.everyCapture(ctx, t, &found); err != nil {
		return nil, err
	}
	t.rollUp()
	stored, err := r.storedTotals(ctx, `SELECT day::text, line, currency, count, amount, entries FROM audit_totals`, nil)
	if err != nil {
		return nil, err
	}
	if err := r.correctTotals(ctx, stored, t.totals, &found); err != nil {
		return nil, err
	}
	if trusted {
		r.drift = found
	}
	return t, nil
}

// everyCapture compares the money taken anew, and what is remembered of it.
func (r *round) everyCapture(ctx context.Context, t *tally, found *drift) error {
	open, err := r.captures(ctx, r.tx, r.w, t, nil)
	if err != nil {
		return err
	}
	before, err := r.remembered(ctx, `SELECT `+memoryColumns+` FROM audit_judged j WHERE j.subject = 'capture'`, nil)
	if err != nil {
		return err
	}
	var payments []string
	for key := range open {
		payments = append(payments, key)
	}
	for key := range before {
		payments = append(payments, key)
	}
	return r.correct(ctx, pairs(distinctOf(payments), before, open), found)
}

// correct writes what was remembered otherwise than it is, and leaves the sums alone.
func (r *round) correct(ctx context.Context, changes []change, found *drift) error {
	changes = slices.DeleteFunc(changes, func(c change) bool { return c.before.same(&c.now) })
	if len(changes) == 0 {
		return nil
	}
	for _, c := range changes {
		found.add("%s %s was remembered as %s and is %s", c.now.about, c.now.key, c.before.text(), c.now.text())
	}
	return r.write(ctx, changes)
}

// text says what a memory is, for a person who looks for an error of ours.
func (m *memory) text() string {
	if m.empty() {
		return "nothing"
	}
	var parts []string
	for _, s := range m.parts {
		if s.Line != lineBooked && s.Line != lineOwed {
			parts = append(parts, fmt.Sprintf("%s of %s on %s", s.Line, ledger.Money{Minor: s.Amount, Currency: s.Currency}, s.Day))
		}
	}
	if len(parts) == 0 {
		return "not due yet"
	}
	return strings.Join(parts, " + ")
}

// correctTotals sets the sums that differ from the full ones.
func (r *round) correctTotals(ctx context.Context, stored, full totals, found *drift) error {
	set := totals{}
	compare := func(k totalKey) {
		if stored[k] == full[k] || k.line == lineCapturesListed || k.line == LineCapturesBooked {
			return
		}
		if _, seen := set[k]; !seen {
			found.add("the sum of %s on %s in %s was %d of %d and is %d of %d, minor units", k.line, k.day, k.currency,
				stored[k].Count, stored[k].Amount, full[k].Count, full[k].Amount)
		}
		set[k] = full[k]
	}
	for k := range full {
		compare(k)
	}
	for k := range stored {
		compare(k)
	}
	if len(set) == 0 {
		return nil
	}
	by := totals{}
	for k, v := range set {
		by[k] = v.plus(stored[k].minus())
	}
	return r.addTotals(ctx, by)
}

// day compares one business day in full. What is remembered of its cancels, and the sums of the day, are held against
// it by the bounds that the running sums go by; the statement's own end with the day.
func (r *round) day(ctx context.Context, w window, d ledger.Day, watch watcher) (*tally, error) {
	if err := giveTime(ctx, r.tx); err != nil {
		return nil, err
	}
	see, err := watch()
	if err != nil {
		return nil, err
	}
	var found drift
	t, running := w.tally(), newTally(r.w.bounds)
	err = r.inFull(ctx, w, func(facts []factRow) error {
		changes := make([]change, 0, len(facts))
		for _, f := range facts {
			c := change{f.before(), f.now(r.w.bounds)}
			changes = append(changes, c)
			if !f.counts() || !w.holds(f) {
				continue
			}
			if err := tell(see, f.fact().seen(t.add(f.fact()))); err != nil {
				return err
			}
			running.take(c.now)
		}
		moved, err := r.move(ctx, changes)
		for _, c := range moved {
			found.add("%s %s was remembered as %s and is %s", c.now.about, c.now.key, c.before.text(), c.now.text())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := r.captures(ctx, r.tx, w, t, see); err != nil {
		return nil, err
	}
	if err := r.besideDay(ctx, w, t, see); err != nil {
		return nil, err
	}
	onDay := w
	onDay.bounds = r.w.bounds
	if onDay.since.Before(w.since) {
		onDay.since = w.since
	}
	if _, err := r.captures(ctx, r.tx, onDay, running, nil); err != nil {
		return nil, err
	}
	stored, err := r.storedTotals(ctx, `
		SELECT day::text, line, currency, count, amount, entries FROM audit_totals WHERE day = @day`, pgx.StrictNamedArgs{"day": string(d)})
	if err != nil {
		return nil, err
	}
	if err := r.correctTotals(ctx, stored.ofDay(d), running.totals.ofDay(d), &found); err != nil {
		return nil, err
	}
	r.drift.found, r.drift.count = append(r.drift.found, found.found...), r.drift.count+found.count
	return t, nil
}

// ofDay are the sums that a day by itself decides. Claims that nobody proved have no day but that of their work, and an
// order has cancels on several.
func (t totals) ofDay(d ledger.Day) totals {
	kept := totals{}
	for k, v := range t {
		elsewhere := []LineName{lineOwed, LineUnproven, lineOrderCanceled, lineOrderPending, lineOrderOther}
		if k.day == d && !slices.Contains(elsewhere, k.line) {
			kept[k] = v
		}
	}
	return kept
}
