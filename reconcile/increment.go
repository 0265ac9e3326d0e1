package reconcile

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

const (
	// keysAtOnce bounds how many keys one statement looks up; a run goes on until nothing is left.
	keysAtOnce = 5_000
	// marksAtOnce bounds how many marks are held at a time. A payment is marked by each book, so that taking many marks
	// together judges it once.
	marksAtOnce = 10 * keysAtOnce
)

// round is one audit inside its snapshot: what changed is taken, judged, and moves what is remembered.
type round struct {
	*Auditor
	tx     pgx.Tx
	w      window // of the running sums: everything since the opening
	last   *state // what the running sums were computed by; nil where nothing says so
	taken  int64  // the newest mark taken
	judged int
	drift  drift
}

// change is what one key came to before and comes to now.
type change struct{ before, now memory }

// catchUp takes every mark that the snapshot shows and judges its key, and then what the clock or a further reading of
// the list makes another thing. It reports whether that was enough: where the settings are others, or a table was
// emptied, everything has to be compared anew, and the marks are taken only.
func (r *round) catchUp(ctx context.Context) (enough bool, err error) {
	enough = r.continues()
	for {
		marks, err := r.takeDirty(ctx)
		if err != nil || len(marks) == 0 {
			if err == nil && enough {
				err = r.byTime(ctx)
			}
			return enough, err
		}
		if slices.ContainsFunc(marks, func(d dirtyRow) bool { return d.Subject == "everything" }) {
			enough = false
		}
		if enough {
			err = r.judgeMarked(ctx, marks)
		} else {
			err = r.noteMarked(ctx, marks)
		}
		if err != nil {
			return false, err
		}
	}
}

// takeDirty deletes the oldest marks that this snapshot shows, and exactly those. A change that commits later has its
// mark then, whatever its number: the count begins anew in each snapshot, and nothing is skipped by it. Within one it
// spares going over all that was deleted before.
func (r *round) takeDirty(ctx context.Context) ([]dirtyRow, error) {
	rows, err := r.tx.Query(ctx, `
		DELETE FROM audit_dirty
		WHERE dirty_id = ANY(ARRAY(SELECT d.dirty_id FROM audit_dirty d WHERE d.dirty_id > @taken ORDER BY d.dirty_id LIMIT @most))
		RETURNING dirty_id, subject, key, payment_key`,
		pgx.StrictNamedArgs{"taken": r.taken, "most": marksAtOnce})
	if err != nil {
		return nil, fmt.Errorf("take what changed: %w", err)
	}
	marks, err := pgx.CollectRows(rows, pgx.RowToStructByName[dirtyRow])
	if err != nil {
		return nil, fmt.Errorf("take what changed: %w", err)
	}
	for _, d := range marks {
		r.taken = max(r.taken, d.ID)
	}
	return marks, nil
}

// judgeMarked judges the keys of some marks, and the few that depend on them: the voids of the same payments, the
// cancels of payments whose captures changed, and captures about which something was open. A payment on whose captures
// both books agree at a glance comes to nothing: it is judged only where something was open about it.
func (r *round) judgeMarked(ctx context.Context, marks []dirtyRow) error {
	m := marked(marks)
	touched := m.days()
	cancels, payments := m.cancels, m.others
	for piece := range slices.Chunk(m.payments, keysAtOnce) {
		glances, err := r.glanceAt(ctx, piece)
		if err != nil {
			return err
		}
		for _, g := range glances {
			touched.glance(g)
			cancels = append(cancels, g.Cancels...)
			if g.Agreed {
				r.judged++
			} else {
				payments = append(payments, g.PaymentKey)
			}
		}
	}
	for piece := range slices.Chunk(m.of, keysAtOnce) {
		more, err := r.dependOn(ctx, piece)
		if err != nil {
			return err
		}
		cancels, payments = append(cancels, more.cancels...), append(payments, more.payments...)
	}
	return r.judge(ctx, keys{cancels, payments}, touched)
}

// dependOn gives the keys that depend on some payments: their voids, and their captures where something was open.
func (r *round) dependOn(ctx context.Context, payments []string) (keys, error) {
	rows, err := r.tx.Query(ctx, `
		SELECT 'cancel' AS subject, c.transaction_key AS key
		FROM unnest(@payments::text[]) AS p (payment_key)
		CROSS JOIN LATERAL (SELECT x.transaction_key FROM cancels x WHERE x.payment_key = p.payment_key AND x.amount = 0 OFFSET 0) c
		UNION ALL
		SELECT 'capture', j.key
		FROM unnest(@payments::text[]) AS p (payment_key)
		CROSS JOIN LATERAL (SELECT x.key FROM audit_judged x WHERE x.subject = 'capture' AND x.payment_key = p.payment_key LIMIT 1) j`,
		pgx.StrictNamedArgs{"payments": payments})
	if err != nil {
		return keys{}, fmt.Errorf("look for what depends on it: %w", err)
	}
	return readKeys(rows, "look for what depends on it")
}

// byTime judges what becomes something else by the clock or by how far the list was read, without any row changing.
func (r *round) byTime(ctx context.Context) error {
	for before := (keys{}); ; {
		rows, err := r.tx.Query(ctx, `
			SELECT subject, key FROM (SELECT subject, key FROM audit_judged WHERE recheck_at <= @now ORDER BY recheck_at LIMIT @most) AS clock
			UNION
			SELECT subject, key FROM (SELECT subject, key FROM audit_judged WHERE recheck_as_of < @as_of ORDER BY recheck_as_of LIMIT @most) AS list`,
			pgx.StrictNamedArgs{"now": r.w.now, "as_of": r.w.asOf, "most": keysAtOnce})
		if err != nil {
			return fmt.Errorf("look for what is due: %w", err)
		}
		due, err := readKeys(rows, "look for what is due")
		if err != nil || len(due.cancels)+len(due.payments) == 0 {
			return err
		}
		if due.equal(before) {
			all := slices.Concat(due.cancels, due.payments)
			return fmt.Errorf("judge what is due: %d rows are due again as soon as they were judged, as %q", len(all), all[0])
		}
		if err := r.judge(ctx, due, touchedDays{}); err != nil {
			return err
		}
		before = due
	}
}

// judge compares some keys anew, moves what is remembered by the difference, and notes the closed days of what came to
// something else beside those that were touched anyway.
func (r *round) judge(ctx context.Context, due keys, touched touchedDays) error {
	if touched.days == nil {
		touched.days = make(map[string]bool)
	}
	for piece := range slices.Chunk(distinctOf(due.cancels), keysAtOnce) {
		facts, err := r.facts(ctx, r.tx, piece)
		if err != nil {
			return err
		}
		changes := make([]change, 0, len(facts))
		for _, f := range facts {
			touched.row(f)
			changes = append(changes, change{f.before(), f.now(r.w.bounds)})
		}
		if err := r.moveBy(ctx, changes, touched); err != nil {
			return err
		}
	}
	for piece := range slices.Chunk(distinctOf(due.payments), keysAtOnce) {
		changes, err := r.takenChanges(ctx, piece)
		if err != nil {
			return err
		}
		if err := r.moveBy(ctx, changes, touched); err != nil {
			return err
		}
	}
	return r.note(ctx, touched)
}

func (r *round) moveBy(ctx context.Context, changes []change, touched touchedDays) error {
	r.judged += len(changes)
	moved, err := r.move(ctx, changes)
	touched.moved(moved)
	return err
}

func (r *round) takenChanges(ctx context.Context, payments []string) ([]change, error) {
	open, err := r.capturesOf(ctx, r.tx, r.w, payments)
	if err != nil {
		return nil, err
	}
	before, err := r.remembered(ctx, `
		SELECT `+memoryColumns+`
		FROM unnest(@payments::text[]) AS p (key)
		CROSS JOIN LATERAL (SELECT `+memoryKept+` FROM audit_judged x WHERE x.subject = 'capture' AND x.payment_key = p.key LIMIT 1) j`,
		pgx.StrictNamedArgs{"payments": payments})
	if err != nil {
		return nil, err
	}
	return pairs(payments, before, open), nil
}

// pairs puts what was remembered of captures beside what they come to now.
func pairs(payments []string, before, now map[string]memory) []change {
	changes := make([]change, 0, len(payments))
	for _, key := range payments {
		c := change{before[key], now[key]}
		c.before.about, c.before.key = aboutCaptures, key
		c.now.about, c.now.key = aboutCaptures, key
		changes = append(changes, c)
	}
	return changes
}

// remembered reads memories by key.
func (r *round) remembered(ctx context.Context, sql string, args pgx.StrictNamedArgs) (map[string]memory, error) {
	rows, err := r.tx.Query(ctx, sql, args)
	if err != nil {
		return nil, fmt.Errorf("read what is remembered: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[memoryRow])
	if err != nil {
		return nil, fmt.Errorf("read what is remembered: %w", err)
	}
	found := make(map[string]memory, len(all))
	for _, row := range all {
		found[row.Key] = row.memory()
	}
	return found, nil
}

// move writes what changed and moves the sums by the difference. It returns what did.
func (r *round) move(ctx context.Context, changes []change) ([]change, error) {
	changes = slices.DeleteFunc(changes, func(c change) bool { return c.before.same(&c.now) })
	if len(changes) == 0 {
		return nil, nil
	}
	by := totals{}
	for _, c := range changes {
		for _, s := range c.before.parts {
			by.take(s)
		}
		for _, s := range c.now.parts {
			by.add(s)
		}
	}
	if err := r.moveOrders(ctx, changes, by); err != nil {
		return nil, err
	}
	if err := r.write(ctx, changes); err != nil {
		return nil, err
	}
	return changes, r.addTotals(ctx, by)
}

// moveOrders moves the sums of orders: an order is counted once, however many of its cancels changed.
func (r *round) moveOrders(ctx context.Context, changes []change, by totals) error {
	changed := make(map[string]change)
	var orders []string
	for _, c := range changes {
		if c.now.about == aboutCancel {
			changed[c.now.key] = c
			orders = append(orders, c.before.orderID, c.now.orderID)
		}
	}
	if len(orders) == 0 {
		return nil
	}
	orders = distinctOf(orders)
	known, err := r.remembered(ctx, `
		SELECT `+memoryColumns+`
		FROM unnest(@orders::text[]) AS o (order_id)
		CROSS JOIN LATERAL (SELECT `+memoryKept+` FROM audit_judged x WHERE x.subject = 'cancel' AND x.order_id = o.order_id OFFSET 0) j`,
		pgx.StrictNamedArgs{"orders": orders})
	if err != nil {
		return err
	}
	before, now := make(map[string][]memory), make(map[string][]memory)
	for key, m := range known {
		before[m.orderID] = append(before[m.orderID], m)
		if _, again := changed[key]; !again {
			now[m.orderID] = append(now[m.orderID], m)
		}
	}
	for _, c := range changed {
		now[c.now.orderID] = append(now[c.now.orderID], c.now)
	}
	for _, order := range orders {
		if o, any := orderOf(before[order]); any {
			by.take(o.share())
		}
		if o, any := orderOf(now[order]); any {
			by.add(o.share())
		}
	}
	return nil
}

// write keeps what the keys come to now. What there is nothing to remember of is forgotten.
func (r *round) write(ctx context.Context, changes []change) error {
	var rows []memoryRow
	gone := make(map[subject][]string)
	for _, c := range changes {
		if c.now.empty() {
			gone[c.now.about] = append(gone[c.now.about], c.now.key)
			continue
		}
		rows = append(rows, c.now.row())
	}
	b := &pgx.Batch{}
	for about, keys := range gone {
		b.Queue(`DELETE FROM audit_judged WHERE subject = @subject AND key = ANY(@keys)`,
			pgx.StrictNamedArgs{"subject": string(about), "keys": keys})
	}
	if len(rows) > 0 {
		b.Queue(`
			INSERT INTO audit_judged (subject, key, payment_key, order_id, day, currency, amount, parts, entries, open_line, open_currency,
				since, recheck_at, recheck_as_of)
			SELECT subject, key, payment_key, order_id, day, currency, amount, NULLIF(parts, 'null'), NULLIF(entries, 'null'), open_line,
				open_currency, since, recheck_at, recheck_as_of
			FROM jsonb_to_recordset(@rows::jsonb) AS r (subject text, key text, payment_key text, order_id text, day date, currency text,
				amount bigint, parts jsonb, entries jsonb, open_line text, open_currency text, since timestamptz,
				recheck_at timestamptz, recheck_as_of timestamptz)
			ON CONFLICT (subject, key) DO UPDATE
			SET payment_key = excluded.payment_key, order_id = excluded.order_id, day = excluded.day, currency = excluded.currency,
				amount = excluded.amount, parts = excluded.parts, entries = excluded.entries, open_line = excluded.open_line,
				open_currency = excluded.open_currency, since = excluded.since, recheck_at = excluded.recheck_at,
				recheck_as_of = excluded.recheck_as_of`,
			pgx.StrictNamedArgs{"rows": rows})
	}
	if err := r.tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("remember what the keys came to: %w", err)
	}
	return nil
}

// runningTally is the statement's from what is remembered: the sums of all days, and the entries of what is not simply
// applied, as many as a stored statement lists. Contradictions are all there, and those that a person accepted.
func (r *round) runningTally(ctx context.Context) (*tally, error) {
	t := newTally(r.w.bounds)
	sums, err := r.storedTotals(ctx, `SELECT '' AS day, line, currency, sum(count)::bigint AS count, sum(amount)::bigint AS amount,
			sum(entries)::bigint AS entries
		FROM audit_totals
		GROUP BY line, currency`, nil)
	if err != nil {
		return nil, err
	}
	t.totals = sums
	var lines, currencies []string
	for k, v := range t.figures() {
		if v.entries > 0 && k.name != LineBreaks && k.name != LineUnexplained && k.name != LineAcceptedBeside {
			lines, currencies = append(lines, string(k.name)), append(currencies, string(k.currency))
		}
	}
	rows, err := r.tx.Query(ctx, `
		SELECT `+memoryColumns+`
		FROM (SELECT `+memoryKept+` FROM audit_judged x WHERE x.open_line = ANY(@whole)
			UNION ALL
			SELECT `+memoryKept+`
			FROM unnest(@lines::text[], @currencies::text[]) AS l (line, currency)
			CROSS JOIN LATERAL (
				SELECT `+memoryKept+` FROM audit_judged x
				WHERE x.open_line = l.line AND x.open_currency = l.currency
				ORDER BY x.since, x.key COLLATE "C"
				LIMIT @most) x) j`,
		pgx.StrictNamedArgs{
			"whole": []string{string(LineBreaks), string(LineAcceptedBeside)}, "lines": lines, "currencies": currencies, "most": storedEntries,
		})
	if err != nil {
		return nil, fmt.Errorf("read what is open: %w", err)
	}
	open, err := pgx.CollectRows(rows, pgx.RowToStructByName[memoryRow])
	if err != nil {
		return nil, fmt.Errorf("read what is open: %w", err)
	}
	for _, row := range open {
		t.list(row.memory())
	}
	return t, nil
}
