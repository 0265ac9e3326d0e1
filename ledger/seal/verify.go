package seal

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// Options say what the journal is held against, all of it from outside the database.
type Options struct {
	Keys      []ed25519.PublicKey // any of them may have signed; none: signatures are not checked
	Witnessed []Witnessed         // heads that a witness file knows
	Heads     []ledger.Digest     // heads kept elsewhere, as from a signed day report
	Through   ledger.Day          // verify the journal up to the head of this day only, and no states; empty: everything
	Now       time.Time
}

// Verify recomputes the journal, the heads, the states and the credits from the entries, in one snapshot and one pass: each
// table is streamed once, in memory that does not grow with it. An error means that it could not look; what it finds is in
// the report.
func Verify(ctx context.Context, db *pgxpool.Pool, o Options) (*Report, error) {
	v := &verifier{options: o, report: &Report{Signed: len(o.Keys) > 0}, keys: make(map[string]ed25519.PublicKey)}
	for _, k := range o.Keys {
		v.keys[KeyID(k)] = k
	}
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := postgres.InTxWith(ctx, db, snapshot, func(first pgx.Tx) error { return onlyOnce(v.look(ctx, db, snapshot, first)) })
	if stopped, isOnce := errors.AsType[once](err); isOnce {
		return nil, stopped.error
	}
	if err != nil {
		return nil, err
	}
	v.report.settle()
	return v.report, nil
}

// look shares the snapshot of the first transaction with a second one, and verifies on both.
func (v *verifier) look(ctx context.Context, db *pgxpool.Pool, snapshot pgx.TxOptions, first pgx.Tx) error {
	if _, err := first.Exec(ctx, verifySettings); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	var name string
	if err := first.QueryRow(ctx, `SELECT pg_export_snapshot()`).Scan(&name); err != nil {
		return fmt.Errorf("verify: share the snapshot: %w", err)
	}
	return postgres.InTxWith(ctx, db, snapshot, func(second pgx.Tx) error {
		if _, err := second.Exec(ctx, `SET TRANSACTION SNAPSHOT '`+name+`'; `+verifySettings); err != nil {
			return onlyOnce(fmt.Errorf("verify: share the snapshot: %w", err))
		}
		return onlyOnce(v.run(ctx, first, second))
	})
}

// once hides from the transaction why it failed, so that it is not run again: what was summed up so far would be summed
// up twice, and sound books be called broken. A standby ends every long reading so when its recovery is in the way.
type once struct{ error }

func onlyOnce(err error) error {
	if err == nil {
		return nil
	}
	if _, already := errors.AsType[once](err); already {
		return err
	}
	return once{err}
}

// verifySettings let a session read for as long as it takes, and along the index instead of sorting: the journal lies on
// disk in the order of its ids.
const verifySettings = `SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL enable_sort = off`

type verifier struct {
	options  Options
	keys     map[string]ed25519.PublicKey
	report   *Report
	heads    []ledger.Head
	later    []ledger.Head // those after the day that is looked at, which no check concerns
	sections []sectionRow
	suspects []ledger.Head // their section is not what was sealed

	sum     *section
	facts   facts
	atHead  int // the head whose section is being read
	cut     int // and the section
	counted sectionRow
}

// sectionRow is a section as the table has it; times in microseconds since 1970, 0 for none.
type sectionRow struct {
	Day           ledger.Day `db:"day"`
	FromID        int64      `db:"from_id"`
	UpToID        int64      `db:"up_to_id"`
	Transactions  int64      `db:"transactions"`
	RecordedFirst int64      `db:"recorded_first"`
	RecordedLast  int64      `db:"recorded_last"`
}

func (v *verifier) run(ctx context.Context, first, second pgx.Tx) error {
	if err := v.load(ctx, first); err != nil {
		return err
	}
	v.checkChain()
	v.checkOutside()
	if err := v.readJournal(ctx, first, second); err != nil {
		return err
	}
	if v.options.Through == "" {
		if err := v.readBooks(ctx, first, second); err != nil {
			return err
		}
		if err := v.compare(ctx, first); err != nil {
			return err
		}
		if err := v.checkSignatures(ctx, first); err != nil {
			return err
		}
	}
	return v.locate(ctx, first)
}

// load reads heads and sections: one row a day, so both are small.
func (v *verifier) load(ctx context.Context, tx pgx.Tx) (err error) {
	if v.heads, err = ledger.HeadsAfter(ctx, tx, math.MinInt64, math.MaxInt32); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `
		SELECT to_char(day, 'YYYY-MM-DD') AS day, from_id, up_to_id, transactions,
			COALESCE((extract(epoch FROM recorded_first) * 1000000)::bigint, 0) AS recorded_first,
			COALESCE((extract(epoch FROM recorded_last) * 1000000)::bigint, 0) AS recorded_last
		FROM journal_sections
		ORDER BY day`)
	if err != nil {
		return fmt.Errorf("read sections: %w", err)
	}
	if v.sections, err = pgx.CollectRows(rows, pgx.RowToStructByName[sectionRow]); err != nil {
		return fmt.Errorf("read sections: %w", err)
	}
	through := v.options.Through
	if through == "" {
		return nil
	}
	end := len(v.heads)
	if i := slices.IndexFunc(v.heads, func(h ledger.Head) bool { return h.Day > through }); i >= 0 {
		end = i
	}
	// A head that is gone and was witnessed is a break, which checkOutside tells; one that nobody knows never was.
	if (end == 0 || v.heads[end-1].Day != through) && !v.knownOutside(through) {
		return fmt.Errorf("verify through %s: %w", through, ledger.ErrNotSealed)
	}
	v.heads, v.later = v.heads[:end], v.heads[end:]
	v.sections = slices.DeleteFunc(v.sections, func(s sectionRow) bool { return s.Day > through })
	return nil
}

// knownOutside reports whether a witness knows a head of the day, or a head was kept that is nowhere in the chain.
func (v *verifier) knownOutside(day ledger.Day) bool {
	for _, hash := range v.options.Heads {
		if !slices.ContainsFunc(v.heads, func(h ledger.Head) bool { return h.Hash == hash }) {
			return true
		}
	}
	return slices.ContainsFunc(v.options.Witnessed, func(w Witnessed) bool { return w.Day == day })
}

// checkChain looks at each head by itself and at how it follows the one before.
func (v *verifier) checkChain() {
	var previous ledger.Head
	for i, h := range v.heads {
		if wrong := checkSignature(h, v.keys); wrong != "" {
			v.report.found(atHead(h, "%s", wrong))
		}
		switch {
		case h.Sequence != previous.Sequence+1:
			v.report.found(atHead(h, "it follows head %d", previous.Sequence))
		case h.Previous != previous.Hash:
			v.report.found(atHead(h, "it names another head as the one before"))
		case h.FromID != previous.UpToID || h.UpToID < h.FromID:
			v.report.found(atHead(h, "it seals the ids from %d to %d, the one before ends at %d", h.FromID, h.UpToID, previous.UpToID))
		case i > 0 && h.Day != previous.Day.Next():
			v.report.found(atHead(h, "the head before is of %s", previous.Day))
		}
		if i >= len(v.sections) || v.sections[i].Day != h.Day || v.sections[i].FromID != h.FromID || v.sections[i].UpToID != h.UpToID ||
			v.sections[i].Transactions != h.Transactions {
			v.report.found(atHead(h, "the section of the day is not the one that was sealed"))
		}
		previous = h
	}
	v.report.Heads, v.report.chain = len(v.heads), v.heads
	v.report.SealedUpTo, v.report.SealedDay = previous.UpToID, previous.Day
}

// readJournal streams the journal on two connections at once.
func (v *verifier) readJournal(ctx context.Context, first, second pgx.Tx) error {
	where := ""
	if v.options.Through != "" {
		where = fmt.Sprintf(` WHERE transaction_id <= %d`, v.report.SealedUpTo)
	}
	ctx, stop := context.WithCancel(ctx)
	transactions := startFlow(ctx, first.Conn().PgConn(), `SELECT `+transactionColumns+` FROM journal_transactions`+where+` ORDER BY transaction_id`)
	entries := startFlow(ctx, second.Conn().PgConn(), `SELECT `+entryColumns+` FROM journal_entries`+where+` ORDER BY transaction_id, line`)
	j := &journal{transactions: transactions.reader(), entries: entries.reader()}
	v.sum, v.facts.hash = newSection(0), newHasher()
	v.beginHead()
	err := v.walk(j)
	v.report.Entries = j.entryCount
	if err != nil {
		stop()
	}
	transactions.drain()
	entries.drain()
	stop()
	return err
}

func (v *verifier) walk(j *journal) error {
	for {
		t, err := j.next()
		if stray, isStray := errors.AsType[orphan](err); isStray {
			v.report.found(atEntry(stray.id, v.headOf(stray.id), "it has entries and does not exist"))
		} else if err != nil {
			return err
		}
		if t == nil && err == nil {
			break
		}
		if t == nil {
			continue
		}
		if err := v.transaction(t); err != nil {
			return err
		}
	}
	for v.atHead < len(v.heads) {
		if err := v.endHead(); err != nil {
			return err
		}
	}
	for v.cut < len(v.sections) {
		v.endSection()
	}
	return nil
}

// transaction takes the next one in order.
func (v *verifier) transaction(t *ledger.JournalTransaction) error {
	for v.atHead < len(v.heads) && t.ID > v.heads[v.atHead].UpToID {
		if err := v.endHead(); err != nil {
			return err
		}
	}
	for v.cut < len(v.sections) && t.ID > v.sections[v.cut].UpToID {
		v.endSection()
	}
	v.report.Transactions++
	v.report.LastID = t.ID
	sealedBy := int64(0)
	if v.atHead < len(v.heads) {
		sealedBy = v.heads[v.atHead].Sequence
		if err := v.sum.add(t); errors.Is(err, errOverflow) {
			v.report.found(atEntry(t.ID, sealedBy, "%s", err))
		} else if err != nil {
			return err
		}
	} else {
		v.report.Unsealed++
	}
	if t.ID <= 0 {
		v.report.found(atEntry(t.ID, 0, "no transaction of the service has such an id"))
	}
	if wrong := checkShape(t); wrong != "" {
		v.report.found(atEntry(t.ID, sealedBy, "%s", wrong))
	}
	v.count(t)
	return nil
}

// count adds the transaction to the facts and to its section.
func (v *verifier) count(t *ledger.JournalTransaction) {
	cut := v.cut < len(v.sections) && t.ID > v.sections[v.cut].FromID
	var section, occurredOn int64
	if cut {
		if v.counted.Transactions == 0 || t.RecordedAt < v.counted.RecordedFirst {
			v.counted.RecordedFirst = t.RecordedAt
		}
		if v.counted.Transactions == 0 || t.RecordedAt > v.counted.RecordedLast {
			v.counted.RecordedLast = t.RecordedAt
		}
		v.counted.Transactions++
		section, occurredOn = seoulDay(v.sections[v.cut].Day.Start().UnixMicro()), seoulDay(t.OccurredAt)
	}
	for i := range t.Lines {
		v.facts.entry(t, &t.Lines[i])
		if cut {
			v.facts.balance(section, occurredOn, &t.Lines[i])
		}
	}
}

func (v *verifier) beginHead() {
	if v.atHead < len(v.heads) {
		v.sum.reset(v.heads[v.atHead].FromID)
	}
}

// endHead holds what was read of a section against its head.
func (v *verifier) endHead() error {
	h := v.heads[v.atHead]
	read := h
	if err := v.sum.fill(&read); err != nil {
		return err
	}
	if read.Content != h.Content || read.Marks != h.Marks || read.Transactions != h.Transactions || read.Entries != h.Entries ||
		!slices.Equal(read.Debits, h.Debits) {
		v.suspects = append(v.suspects, h)
	}
	v.atHead++
	v.beginHead()
	return nil
}

func (v *verifier) endSection() {
	s := v.sections[v.cut]
	read := v.counted
	if read.Transactions != s.Transactions || read.RecordedFirst != s.RecordedFirst || read.RecordedLast != s.RecordedLast {
		v.report.found(inState(0, "the section of %s was cut with %d transactions and has %d, or they were recorded at other times",
			s.Day, s.Transactions, read.Transactions))
	}
	v.counted = sectionRow{}
	v.cut++
}

// headOf is the head that seals an id, or 0.
func (v *verifier) headOf(id int64) int64 {
	for _, h := range v.heads {
		if id > h.FromID && id <= h.UpToID {
			return h.Sequence
		}
	}
	return 0
}
