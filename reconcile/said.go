package reconcile

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// Said is what a business day says, named as its closing runs and its signatures name it. It is empty where the whole day
// could not be seen.
type Said struct {
	Digest string // of the closed statement: 64 hexadecimal digits
	Facts  string // of what a signature covers, likewise
}

// SaysIn compares both books of a business day within a snapshot of the caller's, as of an instant of the caller's, and
// says what a closing run would say. Nothing is kept.
func (a *Auditor) SaysIn(ctx context.Context, tx pgx.Tx, day ledger.Day, now time.Time) (Statement, Said, error) {
	scope, c := Scope{Name: ScopeDay, Day: day}, newClosing(day)
	s, err := a.compareIn(ctx, tx, scope, now, func(f seen) error {
		if r, on := f.closed(); on {
			c.add(r)
		}
		return nil
	})
	if s, err = listed(s, scope, now, err); err != nil || !s.whole() {
		return s, Said{}, err
	}
	return s, Said{Digest: ledger.Digest(sha256.Sum256(c.statement(s))).String(), Facts: c.facts().String()}, nil
}
