package reconcile

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/time/rate"
)

// What notices alone claim may be made up, so questions about it are bounded, and those that find the claimed cancel are
// free however many there are. The figures are those of the notices themselves: see decision 20.
const (
	// deniedAtOnce questions may find nothing of what is claimed, over all instances, and deniedPerSecond more each second.
	// So many last chances in a row are kept although each of them finds nothing: one source makes claims no faster.
	deniedAtOnce    = 300
	deniedPerSecond = 5
	// claimAgain is when a claim is asked about again that another notice has made while its question was under way.
	claimAgain = 5 * time.Minute
	// claimRipe is how old a claim must be for the question about another one of its payment to be about it as well: what
	// the gateway says of a cancel in its first minute may be from before it.
	claimRipe = time.Minute
)

// claimedAtOnce is how many questions on behalf of claims are under way at once: a quarter of the slots.
func claimedAtOnce(slots int) int { return max(1, slots/4) }

// allowance counts the questions about what notices claim: those under way, and those that found nothing.
type allowance struct {
	atOnce int
	inHand atomic.Int32 // questions that hold claims now

	mu       sync.Mutex
	denied   *rate.Limiter
	underWay int       // questions of which nobody knows yet what they find
	noted    time.Time // as of which the last was counted
}

func newAllowance(slots, replicas int) *allowance {
	return &allowance{
		atOnce: claimedAtOnce(slots),
		denied: rate.NewLimiter(rate.Limit(deniedPerSecond)/rate.Limit(replicas), max(1, deniedAtOnce/replicas)),
	}
}

// begin reports whether a question may be asked that perhaps finds nothing, by whichever sweep of this instance. Each that is
// under way counts as one that does, until end says what it was.
func (a *allowance) begin(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.underWay >= a.atOnce || int(a.denied.TokensAt(a.later(now))) < a.underWay+1 {
		return false
	}
	a.underWay++
	return true
}

// end tells what came of a question that was begun.
func (a *allowance) end(now time.Time, denied bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.underWay--
	if denied {
		a.noted = a.later(now)
		a.denied.ReserveN(a.noted, 1)
	}
}

// later keeps a clock that is set back from filling the allowance once more. The lock is held.
func (a *allowance) later(now time.Time) time.Time {
	if now.Before(a.noted) {
		return a.noted
	}
	return now
}

// sweepClaimed asks about claimed cancels, one payment after the other, as long as that is allowed.
func (s *Sweeper) sweepClaimed(ctx context.Context, more func() bool, t *sweeping) error {
	for more() && s.claims.begin(s.cfg.now()) {
		some, err := s.sweepClaimedOnce(ctx, t)
		if err != nil || !some {
			return err
		}
	}
	return nil
}

// sweepClaimedOnce asks about the claims of one payment, if any are due. A question that was begun ends here.
func (s *Sweeper) sweepClaimedOnce(ctx context.Context, t *sweeping) (some bool, err error) {
	denied := false
	defer func() { s.claims.end(s.cfg.now(), denied) }()
	rows, err := s.claimed(ctx)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	s.claims.inHand.Add(1)
	defer s.claims.inHand.Add(-1)
	kind, result, err := s.handled(ctx, rows...)
	denied = result == ResultWaiting || result == ResultRefuted
	t.asked(kind, result, err)
	return true, nil
}

// claimed takes the payment whose claims have been due for longest: all of its claims that one question is about, in one
// statement, as [Sweeper.claim] does. The lock on the payment's key lasts as long as the statement: whoever else reaches for
// a claim of the same payment meanwhile takes the next payment.
func (s *Sweeper) claimed(ctx context.Context) ([]item, error) {
	now := s.cfg.now()
	return s.take(ctx, `
		WITH first AS MATERIALIZED (
			SELECT c.payment_key
			FROM (
				SELECT w.payment_key
				FROM work w
				WHERE w.closed_at IS NULL AND w.kind = 'cancel_claimed' AND w.due_at <= @now AND (@eager OR w.deadline <= @now)
				ORDER BY w.due_at
				LIMIT 256) AS c
			WHERE pg_try_advisory_xact_lock(hashtextextended(c.payment_key, 0))
			LIMIT 1
		), due AS MATERIALIZED (
			SELECT w.work_id, w.last_asked_at
			FROM first f
			JOIN work w ON w.payment_key = f.payment_key
			WHERE w.closed_at IS NULL AND w.kind = 'cancel_claimed' AND (w.due_at <= @now
				OR COALESCE(w.last_asked_at + @lease_for::interval <= @now, w.opened_at <= @ripe))
			FOR UPDATE OF w SKIP LOCKED
		)`+takeRows,
		pgx.StrictNamedArgs{
			"now": now, "eager": s.cfg.Eager, "lease": now.Add(s.cfg.Lease), "lease_for": s.cfg.Lease, "ripe": now.Add(-claimRipe),
		})
}
