package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	Asked   int
	Results map[Result]int
}

// Sweeper asks the gateway about everything that is still owed an answer.
type Sweeper struct {
	cfg Config

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

func (s *Sweeper) sweep(ctx context.Context, more func() bool) (Swept, error) {
	swept := Swept{Results: make(map[Result]int)}
	var failures []error
	if s.tendingDue() {
		failures = append(failures, s.Tend(ctx))
	}
	for more() {
		items, err := s.claim(ctx)
		if err != nil {
			return swept, errors.Join(append(failures, err)...)
		}
		if len(items) == 0 {
			break
		}
		results, err := s.handleAll(ctx, items)
		failures = append(failures, err)
		for n, result := range results {
			swept.Asked++
			swept.Results[result]++
			s.cfg.Metrics.swept(items[n].Kind, result)
		}
	}
	return swept, errors.Join(failures...)
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

// handleAll works on the rows at once. One that fails does not keep the others.
func (s *Sweeper) handleAll(ctx context.Context, items []item) ([]Result, error) {
	results, failures := make([]Result, len(items)), make([]error, len(items))
	var group sync.WaitGroup
	for n, i := range items {
		group.Go(func() {
			result, err := s.handle(ctx, i)
			if err != nil {
				result = ResultFailed
				failures[n] = fmt.Errorf("work %d (%s of payment %s): %w", i.WorkID, i.Kind, i.PaymentKey, err)
			}
			results[n] = result
			s.cfg.Log.DebugContext(ctx, "work swept", slog.Int64("work_id", i.WorkID), slog.String("kind", string(i.Kind)),
				slog.String("payment_key", i.PaymentKey), slog.String("result", string(result)))
		})
	}
	group.Wait()
	return results, errors.Join(failures...)
}

func (s *Sweeper) handle(ctx context.Context, i item) (Result, error) {
	switch i.Kind {
	case ledger.WorkConfirmUnknown:
		return s.confirmUnknown(ctx, i)
	case ledger.WorkCancelClaimed, ledger.WorkCancelListed, ledger.WorkCancelInProgress:
		return s.cancelOwed(ctx, i)
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
func (s *Sweeper) unanswered(ctx context.Context, i item, err error) (Result, error) {
	if ctx.Err() != nil {
		return ResultUnanswered, nil //nolint:nilerr // it was we who stopped asking: the lease brings the row back
	}
	wait, unasked := refusedHere(err)
	return s.noted(ctx, i, conclusion{
		result: ResultUnanswered, answer: "unanswered: " + err.Error(), unasked: unasked, again: wait,
	})
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
