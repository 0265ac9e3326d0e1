package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	all, err := Signatures(ctx, tx, s.Day)
	if err != nil || len(all) == 0 {
		return err
	}
	signed, now := all[len(all)-1], a.cfg.now()
	if signed.facts == facts.String() {
		return resolveSigned(ctx, tx, s.Day, ledger.System, now)
	}
	changed, err := changedSince(ctx, tx, signed)
	if err != nil {
		return err
	}
	_, err = ledger.OpenMismatches(ctx, tx, s.run(), []ledger.Finding{changed.finding(s, signed, facts)}, now)
	return err
}

// signedChange collects what changed of what a signature covers.
type signedChange struct {
	count  int
	first  []Change
	atRisk map[ledger.Currency]ledger.Money
	beyond bool // the sum of a currency is more than can be held
}

// changedSince compares what the day's newest closing run saw with what a signature covers.
func changedSince(ctx context.Context, tx pgx.Tx, signed Signature) (*signedChange, error) {
	c := &signedChange{atRisk: make(map[ledger.Currency]ledger.Money)}
	return c, differences(ctx, tx, signed.Day, signed.RunID, c.add)
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
	most := d.most()
	sum, err := ledger.Money{Minor: c.atRisk[most.Currency].Minor, Currency: most.Currency}.Add(most)
	c.beyond = c.beyond || err != nil
	c.atRisk[most.Currency] = sum
	return nil
}

// most is the most that the transaction was or is in either book.
func (d difference) most() ledger.Money {
	most := ledger.Won(0)
	for _, r := range []*dayRow{d.before, d.after} {
		if r == nil {
			continue
		}
		for _, m := range r.money() {
			if m.Outweighs(most) {
				most = m
			}
		}
	}
	return most
}

// money is what each book has of the transaction, of those that have it.
func (r dayRow) money() []ledger.Money {
	var has []ledger.Money
	if r.Listed != nil && r.ListedCurrency != nil {
		has = append(has, ledger.Money{Minor: *r.Listed, Currency: *r.ListedCurrency})
	}
	if r.Booked != nil && r.BookedCurrency != nil {
		has = append(has, ledger.Money{Minor: *r.Booked, Currency: *r.BookedCurrency})
	}
	return has
}

// parts are all that moved in what changed, per currency, in the order of their codes.
func (c *signedChange) parts() []ledger.Money {
	var parts []ledger.Money
	for _, currency := range slices.Sorted(maps.Keys(c.atRisk)) {
		parts = append(parts, c.atRisk[currency])
	}
	return parts
}

// money is all that moved in what changed as one amount. It is what the mismatch about the day has at risk and what is
// weighed when the day is signed again: two ways to settle the same change.
func (c *signedChange) money() ledger.Money {
	if c.beyond {
		return ledger.Money{}
	}
	return ledger.Together(c.parts()...)
}

// dayKey is how a mismatch names the business day that it is about.
func dayKey(day ledger.Day) string { return "day:" + string(day) }

// finding is the mismatch about the day. Money of several currencies is at risk as it weighs in won, and named as it is.
func (c *signedChange) finding(s Statement, signed Signature, facts ledger.Digest) ledger.Finding {
	each, texts := make(map[ledger.Currency]string), make([]string, 0, len(c.atRisk))
	for _, m := range c.parts() {
		each[m.Currency], texts = m.Decimal(), append(texts, m.String())
	}
	detail := fmt.Sprintf("%s was signed as %.12s and says %.12s now: %d transactions differ from what was signed",
		s.Day, signed.Digest, s.Digest, c.count)
	if len(texts) > 1 {
		detail += ", of " + strings.Join(texts, " and ")
	}
	return ledger.Finding{
		Kind: ledger.KindSignedDayChanged, TransactionKey: dayKey(s.Day), AtRisk: c.money(), Detail: detail,
		Gateway: map[string]any{
			"digest": s.Digest, "facts": facts.String(), "run_id": s.RunID, "verdict": s.Verdict, "changed": c.count, "at_risk": each, "first": c.first,
		},
		Books: map[string]any{
			"digest": signed.Digest, "run_id": signed.RunID, "signed_by": signed.SignedBy, "signed_at": signed.SignedAt,
		},
	}
}

// resolveSigned closes the mismatch about a day that says what is signed: again, by itself, or because somebody signed what
// it says now.
func resolveSigned(ctx context.Context, tx pgx.Tx, day ledger.Day, by ledger.Actor, now time.Time) error {
	as := ledger.ResolvedFixed
	if by == ledger.System {
		as = ledger.ResolvedAuto
	}
	_, err := tx.Exec(ctx, `
		UPDATE mismatches m
		SET status = 'resolved', resolved_at = @now, resolved_as = @as, resolved_by = @by, proposal = NULL,
			revision = m.revision + 1, changed_at = @now, changed_by = @by, remark = ''
		WHERE m.kind = 'signed_day_changed' AND m.transaction_key = @key AND m.status <> 'resolved'`,
		pgx.StrictNamedArgs{"key": dayKey(day), "as": as, "by": by, "now": now})
	if err != nil {
		return fmt.Errorf("resolve that the signed %s changed: %w", day, err)
	}
	return nil
}
