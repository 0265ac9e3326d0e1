package seal

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// signatureRow is a person's signature of a business day, held against the closing run that it names.
type signatureRow struct {
	ID         int64      `db:"signoff_id"`
	Day        ledger.Day `db:"day"`
	SignedBy   string     `db:"signed_by"`
	Head       string     `db:"journal_head"` // empty: it names none
	Digest     string     `db:"digest"`
	BookedUpTo *int64     `db:"booked_up_to"`
	HasRun     bool       `db:"has_run"` // the run is one of the day that saw it whole
	Statement  bool       `db:"statement"`
	Facts      bool       `db:"facts"`
	Cancels    int64      `db:"cancels_up_to"`
}

// checkSignatures holds every signature of a business day against the statement that was kept, against the heads, and
// against where the cancels of that statement stand in the journal.
func (v *verifier) checkSignatures(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT s.signoff_id, to_char(s.day, 'YYYY-MM-DD') AS day, s.signed_by, COALESCE(s.journal_head, '') AS journal_head,
			encode(s.digest, 'hex') AS digest, s.booked_up_to, COALESCE(r.day = s.day AND r.closed IS NOT NULL, false) AS has_run,
			COALESCE(sha256(r.closed) = s.digest AND r.digest = s.digest, false) AS statement, COALESCE(r.facts = s.facts, false) AS facts,
			COALESCE(c.up_to, 0) AS cancels_up_to
		FROM day_signoffs s
		LEFT JOIN audit_runs r ON r.run_id = s.run_id
		LEFT JOIN (
			SELECT s.signoff_id, max(j.transaction_id) AS up_to
			FROM day_signoffs s
			JOIN day_rows d ON d.day = s.day AND d.first_run <= s.run_id AND (d.gone_run IS NULL OR d.gone_run > s.run_id)
			JOIN journal_transactions j ON j.kind = 'cancel' AND j.reference = d.transaction_key
			WHERE d.movement = 'cancel' AND d.booked IS NOT NULL
			GROUP BY s.signoff_id) c ON c.signoff_id = s.signoff_id
		ORDER BY s.signoff_id`)
	if err != nil {
		return fmt.Errorf("read the signatures: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[signatureRow])
	if err != nil {
		return fmt.Errorf("read the signatures: %w", err)
	}
	for _, s := range all {
		if wrong := v.wrongOf(s); wrong != "" {
			v.report.found(inState(0, "signature %d, of %s by %s: %s", s.ID, s.Day, s.SignedBy, wrong))
		}
	}
	v.report.Books = append(v.report.Books, Table{Name: "day_signoffs", Rows: int64(len(all))})
	return nil
}

// wrongOf says what is wrong with a signature; "" when nothing is.
func (v *verifier) wrongOf(s signatureRow) string {
	switch {
	case !s.HasRun:
		return "the closing run that it names is none of that day, or kept no statement"
	case !s.Statement:
		return fmt.Sprintf("the statement that was kept is not the one that was signed as %.12s", s.Digest)
	case !s.Facts:
		return "what the closing run kept of the facts is not what the signature covers"
	case s.Head != "" && !slices.ContainsFunc(v.heads, func(h ledger.Head) bool { return h.Hash.String() == s.Head }):
		return fmt.Sprintf("the head %.12s that it names is not in the database", s.Head)
	case s.BookedUpTo != nil && s.Cancels > *s.BookedUpTo:
		return fmt.Sprintf("it says that its bookings reach up to transaction %d, and one of its cancels is transaction %d", *s.BookedUpTo, s.Cancels)
	}
	return ""
}
