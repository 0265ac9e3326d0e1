package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// SecondPerson says above which money at risk one person alone may not resolve a mismatch.
//
// Other money is weighed in won at rates that stay on the careful side of what it was ever worth, so that a second
// person is asked for too early rather than too late: a dollar for 2,000 won, a yen for 10.
type SecondPerson struct {
	Above int64 // won
}

// DefaultSecondPersonAbove is a million won.
const DefaultSecondPersonAbove = 1_000_000

const (
	wonPerCent = 20
	wonPerYen  = 10
)

// Needed reports whether a second person must confirm. Money that nobody knows needs one, and so does money in a
// currency that is not known here.
func (s SecondPerson) Needed(atRisk ...Money) bool {
	left := s.Above
	for _, m := range atRisk {
		won, ok := wonOf(m)
		if !ok || won > left {
			return true
		}
		left -= won
	}
	return false
}

// Together is money of several currencies as one amount at risk, weighed in won: whoever is asked about it weighs just
// what [SecondPerson.Needed] weighs of the parts. A single part stays what it is. Without a currency it is what nobody can
// weigh.
func Together(parts ...Money) Money {
	switch len(parts) {
	case 0:
		return Money{}
	case 1:
		return parts[0]
	}
	var sum int64
	for _, m := range parts {
		won, ok := wonOf(m)
		if !ok || won > math.MaxInt64-sum {
			return Money{}
		}
		sum += won
	}
	return Won(sum)
}

// Outweighs reports whether m is more money than n by the rates of [SecondPerson]. What cannot be weighed outweighs what
// can.
func (m Money) Outweighs(n Money) bool {
	mine, ok := wonOf(m)
	theirs, known := wonOf(n)
	return known && (!ok || mine > theirs)
}

// wonOf weighs money in won; not ok when it cannot be weighed.
func wonOf(m Money) (int64, bool) {
	rate := int64(0)
	switch m.Currency {
	case KRW:
		rate = 1
	case USD:
		rate = wonPerCent
	case JPY:
		rate = wonPerYen
	case Credits:
	}
	minor := m.Minor
	if minor < 0 {
		minor = -minor
	}
	if rate == 0 || minor < 0 || minor > math.MaxInt64/rate {
		return 0, false
	}
	return minor * rate, true
}

// Executor runs a statement: a pool, a connection or a transaction.
type Executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// SetSecondPerson keeps the amount where every door reads it. Who resolves must not be able to choose it.
func SetSecondPerson(ctx context.Context, db Executor, s SecondPerson, now time.Time) error {
	_, err := db.Exec(ctx, `
		INSERT INTO second_person AS s (above, set_at) VALUES (@above, @now)
		ON CONFLICT (only_row) DO UPDATE SET above = excluded.above, set_at = excluded.set_at
		WHERE s.above <> excluded.above`, pgx.StrictNamedArgs{"above": s.Above, "now": now})
	if err != nil {
		return fmt.Errorf("set above which money a second person is needed: %w", err)
	}
	return nil
}

// LoadSecondPerson reads the amount; a million won where nobody has set it.
func LoadSecondPerson(ctx context.Context, db Querier) (SecondPerson, error) {
	rows, err := db.Query(ctx, `SELECT above FROM second_person`)
	if err != nil {
		return SecondPerson{}, fmt.Errorf("read above which money a second person is needed: %w", err)
	}
	above, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	if errors.Is(err, pgx.ErrNoRows) {
		return SecondPerson{Above: DefaultSecondPersonAbove}, nil
	}
	if err != nil {
		return SecondPerson{}, fmt.Errorf("read above which money a second person is needed: %w", err)
	}
	return SecondPerson{Above: above}, nil
}
