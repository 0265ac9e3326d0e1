package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// evidenceMax is how many changed transactions a mismatch about a signed day names; it counts them all.
const evidenceMax = 20

// holdAgainstSignature compares what the day says now with what its newest signature covers. Where that differs, the day
// becomes a mismatch with both digests and what changed; where it does not, or not any more, a mismatch about it is
// resolved.
func (a *Auditor) holdAgainstSignature(ctx context.Context, tx pgx.Tx, s Statement, facts ledger.Digest) error {
	all, err := signatures(ctx, tx, s.Day)
	if err != nil || len(all) == 0 {
		return err
	}
	signed, now := all[len(all)-1], a.cfg.now()
	if signed.facts == facts.String() {
		return resolveSigned(ctx, tx, s.Day, now)
	}
	changed := signedChange{atRisk: make(map[ledger.Currency]int64)}
	if err := differences(ctx, tx, s.Day, signed.RunID, changed.add); err != nil {
		return err
	}
	_, err = ledger.OpenMismatches(ctx, tx, s.run(), []ledger.Finding{changed.finding(s, signed)}, now)
	return err
}

// signedChange collects what changed of what a signature covers.
type signedChange struct {
	count  int
	first  []Change
	atRisk map[ledger.Currency]int64
}

// add counts a difference unless the signature covers it: a pending cancel that is applied as it was signed.
func (c *signedChange) add(d difference) error {
	if d.same(dayRow.appendSigned) {
		return nil
	}
	c.count++
	if len(c.first) < evidenceMax {
		c.first = append(c.first, d.change())
	}
	currency, most := ledger.Currency(""), int64(-1)
	for _, r := range []*dayRow{d.before, d.after} {
		if r != nil && r.moves() > most {
			currency, most = r.currency(), r.moves()
		}
	}
	c.atRisk[currency] += most
	return nil
}

func (r dayRow) currency() ledger.Currency {
	if r.ListedCurrency != nil {
		return *r.ListedCurrency
	}
	if r.BookedCurrency != nil {
		return *r.BookedCurrency
	}
	return ""
}

// dayKey is how a mismatch names the business day that it is about.
func dayKey(day ledger.Day) string { return "day:" + string(day) }

// finding is the mismatch about the day. At risk is all that moved in what changed, in the currency that has most of it.
func (c *signedChange) finding(s Statement, signed Signature) ledger.Finding {
	var atRisk ledger.Money
	for currency, minor := range c.atRisk {
		if minor > atRisk.Minor || (minor == atRisk.Minor && currency < atRisk.Currency) || atRisk.Currency == "" {
			atRisk = ledger.Money{Minor: minor, Currency: currency}
		}
	}
	return ledger.Finding{
		Kind: ledger.KindSignedDayChanged, TransactionKey: dayKey(s.Day), AtRisk: atRisk,
		Detail: fmt.Sprintf("%s was signed as %.12s and says %.12s now: %d transactions differ from what was signed",
			s.Day, signed.Digest, s.Digest, c.count),
		Gateway: map[string]any{"digest": s.Digest, "run_id": s.RunID, "verdict": s.Verdict, "changed": c.count, "first": c.first},
		Books: map[string]any{
			"digest": signed.Digest, "run_id": signed.RunID, "signed_by": signed.SignedBy, "signed_at": signed.SignedAt,
		},
	}
}

// resolveSigned closes the mismatch about a day that says what is signed.
func resolveSigned(ctx context.Context, tx pgx.Tx, day ledger.Day, now time.Time) error {
	_, err := tx.Exec(ctx, `
		UPDATE mismatches m
		SET status = 'resolved', resolved_at = @now, resolved_as = 'auto', resolved_by = 'system', proposal = NULL,
			revision = m.revision + 1, changed_at = @now, changed_by = 'system', remark = ''
		WHERE m.kind = 'signed_day_changed' AND m.transaction_key = @key AND m.status <> 'resolved'`,
		pgx.StrictNamedArgs{"key": dayKey(day), "now": now})
	if err != nil {
		return fmt.Errorf("resolve that the signed %s changed: %w", day, err)
	}
	return nil
}
