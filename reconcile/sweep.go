package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/pgclient"
)

// Result is what one question about one row of work came to.
type Result string

// The results.
const (
	ResultSettled    Result = "settled"    // the books have the answer
	ResultWaiting    Result = "waiting"    // the gateway answered, and the answer is not final
	ResultUnanswered Result = "unanswered" // the gateway could not be asked
	ResultRefuted    Result = "refuted"    // at the last chance the gateway shows no such cancel
	ResultExpired    Result = "expired"    // nothing came of it
	ResultFailed     Result = "failed"     // our own database failed; the row comes back when its lease is over
)

// Results lists every result.
func Results() []Result {
	return []Result{ResultSettled, ResultWaiting, ResultUnanswered, ResultRefuted, ResultExpired, ResultFailed}
}

// Swept is what one sweep did.
type Swept struct {
	Asked   int // questions, each about one payment
	Results map[Result]int
}

// Sweeper asks the gateway about everything that is still owed an answer.
type Sweeper struct {
	cfg    Config
	claims *allowance

	mu       sync.Mutex
	tendedAt time.Time
}

// tendEvery is how often a sweep also looks after the table itself.
const tendEvery = time.Minute

// Sweep takes due rows, asks the gateway about each outside any transaction, and records what it says, until
// nothing is due or the context ends. Any number of sweeps may run at once, in any number of processes. A crash at any
// point loses nothing: a claimed row comes back when its lease is over, and Record is idempotent.
//
// The error is about our own database; a gateway that does not answer is a result.
func (s *Sweeper) Sweep(ctx context.Context) (Swept, error) {
	return s.sweep(ctx, func() bool { return ctx.Err() == nil })
}

// sweepWithin is Sweep that takes no new rows after the given time, so that those in hand can be finished.
func (s *Sweeper) sweepWithin(ctx context.Context, limit time.Duration) error {
	timer, stop := context.WithTimeout(ctx, limit)
	defer stop()
	_, err := s.sweep(ctx, func() bool { return timer.Err() == nil })
	return err
}

// sweep works side by side on what is owed and on what notices alone claim, so that neither stands before the other.
func (s *Sweeper) sweep(ctx context.Context, more func() bool) (Swept, error) {
	t := &sweeping{metrics: s.cfg.Metrics, swept: Swept{Results: make(map[Result]int)}}
	if s.tendingDue() {
		t.failed(s.Tend(ctx))
	}
	var owed, claims sync.WaitGroup
	claimed, done := context.WithCancel(ctx)
	owed.Go(func() { t.failed(s.sweepOwed(ctx, claimed, more, t)) })
	for range claimedAtOnce(s.cfg.Slots) {
		claims.Go(func() { t.failed(s.sweepClaimed(ctx, more, t)) })
	}
	claims.Wait()
	done()
	owed.Wait()
	return t.swept, errors.Join(t.failures...)
}

// owedAgain is how soon a sweep that goes on for claims looks for what has become owed meanwhile.
const owedAgain = time.Second

// sweepOwed asks about what is owed whatever notices say. Questions on behalf of claims that are under way leave it the
// other slots. While there are such, until claimed ends, it looks again: what falls due then waits for no claim.
func (s *Sweeper) sweepOwed(ctx, claimed context.Context, more func() bool, t *sweeping) error {
	for more() {
		items, err := s.claim(ctx, max(1, s.cfg.Slots-int(s.claims.inHand.Load())))
		if err != nil {
			return err
		}
		if len(items) == 0 {
			if wait(claimed, owedAgain) != nil {
				return nil //nolint:nilerr // no claims are left: that is the end, not a failure
			}
			continue
		}
		var group sync.WaitGroup
		for _, i := range items {
			group.Go(func() { t.asked(s.handled(ctx, i)) })
		}
		group.Wait()
	}
	return nil
}

// sweeping counts what the questions of one sweep came to. One that fails does not keep the others.
type sweeping struct {
	metrics *Metrics

	mu       sync.Mutex
	swept    Swept
	failures []error
}

func (t *sweeping) asked(kind ledger.WorkKind, result Result, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.swept.Asked++
	t.swept.Results[result]++
	t.failures = append(t.failures, err)
	t.metrics.swept(kind, result)
}

func (t *sweeping) failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, err)
}

// Hurry makes work due now whose last question the gateway did not answer: it answers again.
func (s *Sweeper) Hurry(ctx context.Context) error {
	_, err := s.cfg.DB.Exec(ctx, `
		UPDATE work SET due_at = @now
		WHERE closed_at IS NULL AND due_at > @now AND last_answer LIKE 'unanswered:%'`,
		pgx.StrictNamedArgs{"now": s.cfg.now()})
	if err != nil {
		return fmt.Errorf("make unanswered work due: %w", err)
	}
	return nil
}

func (s *Sweeper) tendingDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.now()
	if !s.tendedAt.IsZero() && now.Sub(s.tendedAt) < tendEvery && !now.Before(s.tendedAt) {
		return false
	}
	s.tendedAt = now
	return true
}

// handled asks one question about rows of one payment and one kind.
func (s *Sweeper) handled(ctx context.Context, rows ...item) (ledger.WorkKind, Result, error) {
	i := rows[0]
	result, err := s.handle(ctx, rows)
	if err != nil {
		result = ResultFailed
		err = fmt.Errorf("work %d (%s of payment %s): %w", i.WorkID, i.Kind, i.PaymentKey, err)
	}
	s.cfg.Log.DebugContext(ctx, "work swept", slog.Int64("work_id", i.WorkID), slog.String("kind", string(i.Kind)),
		slog.Int("rows", len(rows)), slog.String("payment_key", i.PaymentKey), slog.String("result", string(result)))
	return i.Kind, result, err
}

// handle asks about the rows. Only claims come several at once.
func (s *Sweeper) handle(ctx context.Context, rows []item) (Result, error) {
	i := rows[0]
	switch i.Kind {
	case ledger.WorkConfirmUnknown:
		return s.confirmUnknown(ctx, i)
	case ledger.WorkCancelClaimed, ledger.WorkCancelListed, ledger.WorkCancelInProgress:
		return s.cancelOwed(ctx, rows)
	case ledger.WorkDepositWatch:
		return s.depositWatch(ctx, i)
	case ledger.WorkCancelRequest:
		return s.cancelRequest(ctx, i)
	case ledger.WorkParked:
		// A stranger's key: it is never asked about, only forgotten in time.
		return s.noted(ctx, i, conclusion{result: ResultExpired, answer: "no payment with this key appeared", close: ledger.ClosedExpired})
	}
	return "", fmt.Errorf("work kind %q is not known", i.Kind)
}

// unanswered notes a question that the gateway did not answer.
func (s *Sweeper) unanswered(ctx context.Context, rows []item, err error) (Result, error) {
	if ctx.Err() != nil {
		return ResultUnanswered, nil //nolint:nilerr // it was we who stopped asking: the lease brings the row back
	}
	wait, unasked := refusedHere(err)
	c := conclusion{result: ResultUnanswered, answer: "unanswered: " + err.Error(), unasked: unasked, again: wait}
	return s.concludeAll(ctx, rows, func(pgx.Tx) ([]conclusion, error) { return slices.Repeat([]conclusion{c}, len(rows)), nil })
}

// refusedHere reports whether our own guard refused the question, and after how long it may pass: then nothing was
// asked, and the steps that grow with the questions have nothing to count.
func refusedHere(err error) (wait time.Duration, ok bool) {
	if unsent, ok := errors.AsType[*pgclient.Unsent](err); ok {
		return max(second, unsent.RetryAfter), true
	}
	failure, ok := errors.AsType[*pgclient.Error](err)
	if !ok || (failure.Reason != pgclient.ReasonBreakerOpen && failure.Reason != pgclient.ReasonCap) {
		return 0, false
	}
	return max(second, failure.RetryAfter), true
}

// notFound reports whether the gateway answered that it has no such payment. That is no evidence about money: another
// key's merchant, a lagging replica and a payment that never was look the same.
func notFound(err error) bool {
	var failure *pgclient.Error
	return errors.As(err, &failure) && failure.Reason == pgclient.ReasonNotFound
}

// detached is a context that outlives its parent for a while: what was sent must be recorded.
func detached(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}
