package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
)

var (
	// ErrSigner means that no person asked for the signature: the service answers for nothing.
	ErrSigner = errors.New("only a person can sign a day")
	// ErrSignature means that a field of the request is not what it must be.
	ErrSignature = errors.New("the digest must be 64 hexadecimal digits, and the note at most 500 characters")
	// ErrDayNotClosed means that the day's newest closing run does not settle it, so there is nothing to sign.
	ErrDayNotClosed = errors.New("the day is not closed: no closing run settles it")
	// ErrDayDiffers means that the day says something else than what was to be signed. It is to be looked at again.
	ErrDayDiffers = errors.New("the day says something else than what was to be signed; look at it again")
	// ErrNotAcknowledged means that more changed since the signature than one person may settle, and that nobody but the
	// signer has acknowledged it.
	ErrNotAcknowledged = errors.New("more changed since the day was signed than one person may settle: " +
		"another must acknowledge the mismatch about it first, or note something on it")
)

// noteMax is how long a note may be, as the table has it.
const noteMax = 500

// Signing is a person's wish to sign a business day.
type Signing struct {
	Day    ledger.Day
	By     ledger.Actor
	Digest string // of the statement that the person saw; empty: the one of the newest closing run
	Note   string
}

// Signature says who signed which statement of a business day, and which heads of the journal seal what our books have of
// it.
type Signature struct {
	Day         ledger.Day   `json:"day" db:"day"`
	SignedBy    ledger.Actor `json:"signed_by" db:"signed_by"`
	SignedAt    time.Time    `json:"signed_at" db:"signed_at"`
	RunID       int64        `json:"run_id" db:"run_id"`
	Digest      string       `json:"digest" db:"digest"`
	JournalHead *string      `json:"journal_head" db:"journal_head"` // the newest when it was signed; absent: there was none
	BookedUpTo  *int64       `json:"booked_up_to" db:"-"`            // the newest journal transaction among the statement's bookings
	Sealed      Sealed       `json:"sealed" db:"-"`
	SealedBy    *string      `json:"sealed_by" db:"-"` // the first head over all those bookings; absent: there is none yet
	Note        string       `json:"note,omitempty" db:"note"`
	Again       bool         `json:"again,omitempty" db:"-"` // it was given before; nothing was written

	facts string
}

func (w Signing) validate() error {
	if !w.By.Person() {
		return fmt.Errorf("%q: %w", w.By, ErrSigner)
	}
	if _, err := ledger.ParseDay(string(w.Day)); err != nil {
		return err
	}
	if _, err := ledger.ParseDigest(w.Digest); w.Digest != "" && err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	if !ledger.PlainText(w.Note, noteMax) {
		return ErrSignature
	}
	return nil
}

// Sign signs a closed business day. The day is closed once more in the same transaction, so that what is signed is what
// both books say now; it must be settled and say just what the person saw. The same person signing the same statement
// again gets the first signature back.
func (a *Auditor) Sign(ctx context.Context, w Signing) (Signature, error) {
	if err := w.validate(); err != nil {
		return Signature{}, err
	}
	var signed Signature
	var refused error // the closing run is kept although the signature is refused
	_, err := a.alone(ctx, func() (Statement, error) {
		return Statement{}, postgres.InTx(ctx, a.cfg.DB, func(tx pgx.Tx) (err error) {
			signed, refused, err = a.signIn(ctx, tx, w)
			return err
		})
	})
	switch {
	case errors.Is(err, errAuditing):
		err = ErrClosingBusy
	case err == nil:
		err = refused
	}
	if err != nil {
		return Signature{}, fmt.Errorf("sign %s: %w", w.Day, err)
	}
	return signed, nil
}

func (a *Auditor) signIn(ctx context.Context, tx pgx.Tx, w Signing) (signed Signature, refused, err error) {
	seen, err := newestClosing(ctx, tx, w.Day)
	switch {
	case err != nil:
		return Signature{}, nil, err
	case !seen.Verdict.settled() || seen.Digest == "":
		return Signature{}, fmt.Errorf("%w; its newest one says %q", ErrDayNotClosed, seen.Verdict), nil
	}
	s, err := a.closeIn(ctx, tx, w.Day)
	if err != nil {
		return Signature{}, nil, err
	}
	a.cfg.Metrics.audited(s, a.cfg.now())
	expected := strings.ToLower(w.Digest)
	if expected == "" {
		expected = seen.Digest
	}
	switch {
	case s.Digest == "" || !s.Verdict.settled():
		return Signature{}, fmt.Errorf("%w; it says %q now", ErrDayNotClosed, s.Verdict), nil
	case s.Digest != expected:
		return Signature{}, fmt.Errorf("%w: its digest is %s", ErrDayDiffers, s.Digest), nil
	}
	switch open, err := missingOf(ctx, tx, w.Day); {
	case err != nil:
		return Signature{}, nil, err
	case open > 0:
		return Signature{}, fmt.Errorf("%w; %d of its cancels and payments are open mismatches, missing from our books", ErrDayNotClosed, open), nil
	}
	before, err := Signatures(ctx, tx, w.Day)
	if err != nil {
		return Signature{}, nil, err
	}
	if again, ok := given(before, w.By, s.Digest); ok {
		return again, nil, nil
	}
	if refused, err = needsAnother(ctx, tx, w, before); err != nil || refused != nil {
		return Signature{}, refused, err
	}
	signed, err = a.keepSignature(ctx, tx, w, s)
	return signed, nil, err
}

// missingOf counts the listed cancels and captures of a day that somebody is to look at because the payment denies what the
// list shows, or because no order of ours explains it. The comparison lets them wait while they are being asked about, since
// the gateway may still bear them out; a signature says that nothing is left to look at.
func missingOf(ctx context.Context, tx pgx.Tx, d ledger.Day) (n int, err error) {
	rows, err := tx.Query(ctx, `
		SELECT count(*)::int
		FROM (SELECT x.transaction_key FROM mismatches x
			WHERE x.status <> 'resolved' AND x.kind IN ('cancel_missing_here', 'payment_without_order') AND x.transaction_key IS NOT NULL OFFSET 0) m
		CROSS JOIN LATERAL (SELECT x.at FROM mirror x WHERE x.transaction_key = m.transaction_key LIMIT 1) g
		WHERE g.at >= @from AND g.at < @to`,
		pgx.StrictNamedArgs{"from": d.Start(), "to": d.End()})
	if err != nil {
		return 0, fmt.Errorf("look for open mismatches of %s: %w", d, err)
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
}

// needsAnother refuses to settle by one person alone that a signed day changed by more money than one person may resolve: a
// signature resolves the mismatch about it, so that another must have acknowledged it as it stands.
func needsAnother(ctx context.Context, tx pgx.Tx, w Signing, before []Signature) (refused, err error) {
	if len(before) == 0 {
		return nil, nil
	}
	changed, err := changedSince(ctx, tx, before[len(before)-1])
	if err != nil || changed.count == 0 {
		return nil, err
	}
	two, err := ledger.LoadSecondPerson(ctx, tx)
	if err != nil || !two.Needed(changed.money()) {
		return nil, err
	}
	looked, err := acknowledgers(ctx, tx, w.Day)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(looked, func(a ledger.Actor) bool { return !a.Same(w.By) }) {
		return ErrNotAcknowledged, nil
	}
	return nil, nil
}

// acknowledgers are the people who acknowledged that a signed day changed, noted something on it, or proposed or accepted
// what it says, since it last became another change. The closing run before has opened what is not just as it was accepted.
func acknowledgers(ctx context.Context, tx pgx.Tx, day ledger.Day) ([]ledger.Actor, error) {
	rows, err := tx.Query(ctx, `
		SELECT DISTINCT t.actor
		FROM mismatches m JOIN mismatch_trail t USING (mismatch_id)
		WHERE m.kind = 'signed_day_changed' AND m.transaction_key = @key AND (m.status <> 'resolved' OR m.resolved_as = 'accepted')
			AND t.action IN ('acknowledged', 'noted', 'resolution_proposed', 'resolved') AND t.actor ~ '^(os|api):'
			AND NOT EXISTS (SELECT 1 FROM mismatch_trail x
				WHERE x.mismatch_id = m.mismatch_id AND x.number > t.number AND x.action IN ('reopened', 'seen_changed'))`,
		pgx.StrictNamedArgs{"key": dayKey(day)})
	if err != nil {
		return nil, fmt.Errorf("look who acknowledged that the signed %s changed: %w", day, err)
	}
	looked, err := pgx.CollectRows(rows, pgx.RowTo[ledger.Actor])
	if err != nil {
		return nil, fmt.Errorf("look who acknowledged that the signed %s changed: %w", day, err)
	}
	return looked, nil
}

// settled reports whether a closing run with this verdict may be signed.
func (v Verdict) settled() bool { return v == VerdictReconciled || v == VerdictPending }

// given finds the person's signature of the same statement among those that nobody has signed anything else after.
func given(before []Signature, by ledger.Actor, digest string) (Signature, bool) {
	for i := len(before) - 1; i >= 0 && before[i].Digest == digest; i-- {
		if before[i].SignedBy == by || before[i].SignedBy.Same(by) {
			again := before[i]
			again.Again = true
			return again, true
		}
	}
	return Signature{}, false
}

// closingRun is what a day's newest closing run said.
type closingRun struct {
	Verdict Verdict `db:"verdict"`
	Digest  string  `db:"digest"` // empty: it did not see the whole day
}

func newestClosing(ctx context.Context, tx pgx.Tx, day ledger.Day) (closingRun, error) {
	rows, err := tx.Query(ctx, `
		SELECT verdict, COALESCE(encode(digest, 'hex'), '') AS digest
		FROM audit_runs
		WHERE scope = 'day' AND day = @day::date
		ORDER BY started_at DESC, run_id DESC
		LIMIT 1`, pgx.StrictNamedArgs{"day": string(day)})
	if err != nil {
		return closingRun{}, fmt.Errorf("read the newest closing run: %w", err)
	}
	run, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[closingRun])
	if errors.Is(err, pgx.ErrNoRows) {
		return closingRun{}, nil
	}
	if err != nil {
		return closingRun{}, fmt.Errorf("read the newest closing run: %w", err)
	}
	return run, nil
}

// Signatures reads every signature of a day, oldest first.
func Signatures(ctx context.Context, db ledger.Querier, day ledger.Day) ([]Signature, error) {
	rows, err := db.Query(ctx, `
		SELECT to_char(x.day, 'YYYY-MM-DD') AS day, x.signed_by, x.signed_at, x.run_id, encode(x.digest, 'hex') AS digest, x.journal_head, x.note,
			encode(x.facts, 'hex') AS facts, `+sealingColumns+`
		FROM day_signoffs x
		WHERE x.day = @day::date
		ORDER BY x.signoff_id`, pgx.StrictNamedArgs{"day": string(day)})
	if err != nil {
		return nil, fmt.Errorf("read the signatures of %s: %w", day, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Signature, err error) {
		var by sealing
		err = row.Scan(&s.Day, &s.SignedBy, &s.SignedAt, &s.RunID, &s.Digest, &s.JournalHead, &s.Note, &s.facts, &by.BookedUpTo, &by.Then, &by.By)
		s.SignedAt = s.SignedAt.UTC()
		s.BookedUpTo, s.Sealed, s.SealedBy = by.BookedUpTo, by.sealed(), by.By
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the signatures of %s: %w", day, err)
	}
	return all, nil
}

// keepSignature writes the signature of the closing run that was just made, with the newest head of the journal and with
// how far the statement's bookings reach in it. It settles that an earlier signed statement was another.
func (a *Auditor) keepSignature(ctx context.Context, tx pgx.Tx, w Signing, s Statement) (Signature, error) {
	now := a.cfg.now()
	upTo, err := bookedUpTo(ctx, tx, w.Day)
	if err != nil {
		return Signature{}, err
	}
	head, err := newestHead(ctx, tx)
	if err != nil {
		return Signature{}, err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO day_signoffs (day, signed_by, signed_at, run_id, digest, facts, journal_head, booked_up_to, note)
		SELECT day, @signed_by, @now, run_id, digest, facts, @head, @up_to, @note
		FROM audit_runs
		WHERE run_id = @run`,
		pgx.StrictNamedArgs{"signed_by": string(w.By), "now": now, "head": head, "up_to": upTo, "note": w.Note, "run": s.RunID})
	if err != nil {
		return Signature{}, fmt.Errorf("keep the signature: %w", err)
	}
	all, err := Signatures(ctx, tx, w.Day)
	if err != nil {
		return Signature{}, err
	}
	return all[len(all)-1], resolveSigned(ctx, tx, w.Day, w.By, now)
}
