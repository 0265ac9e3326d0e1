package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// The kinds of jobs. A job only wakes the part that reads its work from our own rows; one that is lost, doubled or late
// changes nothing but the time.
const (
	KindSweep     = "sweep_work"
	KindList      = "read_list"
	KindReread    = "reread_list"
	KindAudit     = "audit_recent"
	KindAuditAll  = "audit_all"
	KindCloseDays = "close_days"
)

// JobKinds lists every kind, for whoever watches that each still succeeds.
func JobKinds() []string {
	return []string{KindSweep, KindList, KindReread, KindAudit, KindAuditAll, KindCloseDays}
}

// tick are the options of a job that a clock inserts: one attempt, because the next tick is the retry, and at most one
// waiting or running within the period. The period also bounds how long the leftover of a crashed process stands in the
// way: its job counts as running until it is rescued. Finished jobs must not block, so completed is left out.
func tick(period time.Duration) river.InsertOpts {
	return river.InsertOpts{
		MaxAttempts: 1,
		UniqueOpts: river.UniqueOpts{
			ByPeriod: period,
			ByState: []rivertype.JobState{
				rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateScheduled,
			},
		},
	}
}

// SweepArgs wakes the sweeper.
type SweepArgs struct{}

// Kind names the job.
func (SweepArgs) Kind() string { return KindSweep }

// InsertOpts keeps ticks from piling up.
func (SweepArgs) InsertOpts() river.InsertOpts { return tick(15 * time.Second) }

// ListArgs wakes the mirror.
type ListArgs struct{}

// Kind names the job.
func (ListArgs) Kind() string { return KindList }

// InsertOpts keeps ticks from piling up.
func (ListArgs) InsertOpts() river.InsertOpts { return tick(time.Minute) }

// RereadArgs makes the mirror read the last days again, if it has not done so since the last night.
type RereadArgs struct{}

// Kind names the job.
func (RereadArgs) Kind() string { return KindReread }

// InsertOpts keeps ticks from piling up.
func (RereadArgs) InsertOpts() river.InsertOpts { return tick(10 * time.Minute) }

// AuditArgs audits what changed.
type AuditArgs struct{}

// Kind names the job.
func (AuditArgs) Kind() string { return KindAudit }

// InsertOpts keeps ticks from piling up.
func (AuditArgs) InsertOpts() river.InsertOpts { return tick(time.Minute) }

// AuditAllArgs audits everything since the books were opened, if that has not been done since the last night.
type AuditAllArgs struct{}

// Kind names the job.
func (AuditAllArgs) Kind() string { return KindAuditAll }

// InsertOpts keeps ticks from piling up.
func (AuditAllArgs) InsertOpts() river.InsertOpts { return tick(10 * time.Minute) }

// CloseDaysArgs audits the closed days that have no settled audit, and forgets what need not be kept.
type CloseDaysArgs struct{}

// Kind names the job.
func (CloseDaysArgs) Kind() string { return KindCloseDays }

// InsertOpts keeps ticks from piling up.
func (CloseDaysArgs) InsertOpts() river.InsertOpts { return tick(time.Minute) }

// AddWorkers registers a worker for every kind.
func (r *Reconciler) AddWorkers(workers *river.Workers) error {
	return errors.Join(
		river.AddWorkerSafely(workers, &worker[SweepArgs]{limit: 2 * time.Minute, work: r.sweep}),
		river.AddWorkerSafely(workers, &worker[ListArgs]{limit: 30 * time.Minute, work: r.list}),
		river.AddWorkerSafely(workers, &worker[RereadArgs]{limit: time.Hour, work: r.reread}),
		river.AddWorkerSafely(workers, &worker[AuditArgs]{limit: 30 * time.Minute, work: r.audit}),
		river.AddWorkerSafely(workers, &worker[AuditAllArgs]{limit: 30 * time.Minute, work: r.auditNightly}),
		river.AddWorkerSafely(workers, &worker[CloseDaysArgs]{limit: 30 * time.Minute, work: r.closeDays}),
	)
}

// worker runs one part. Every part is idempotent: the sweeper claims rows with a lease and Record adds only what is
// missing; the mirror writes by transaction key under a lock; an audit only reads and adds its own statement.
type worker[T river.JobArgs] struct {
	river.WorkerDefaults[T]
	limit time.Duration
	work  func(ctx context.Context) error
}

// Timeout bounds one run.
func (w *worker[T]) Timeout(*river.Job[T]) time.Duration { return w.limit }

// Work runs the part. Where its time ends with work left, the next tick goes on.
func (w *worker[T]) Work(ctx context.Context, _ *river.Job[T]) error { return w.work(ctx) }

// sweepFor leaves rows in hand the time to be finished before the job's own limit cuts them off.
const sweepFor = 50 * time.Second

func (r *Reconciler) sweep(ctx context.Context) error {
	return r.Sweeper.sweepWithin(ctx, sweepFor)
}

// listPatience is how long a poll waits for somebody who reads a stretch of the past: that one lets go of the lock
// after each window.
const listPatience = 20 * time.Second

func (r *Reconciler) list(ctx context.Context) error {
	return readHere(r.Mirror.poll(ctx, listPatience))
}

func (r *Reconciler) reread(ctx context.Context) error {
	return readHere(r.Mirror.RereadNightly(ctx))
}

// readHere makes a read that another instance stood in the way of no success. Nobody is woken for it: an alarm goes by
// the newest success of any instance, and the one that reads has it.
func readHere(p Polled, err error) error {
	if err == nil && p.Busy {
		return ErrBusy
	}
	return err
}

// audit is the audit of each minute. What it finds is not the job's failure, but an audit that could not tell is no
// success either: the time of the last good one must not advance. Nor is one that another audit stood in the way of, and
// nobody is woken for it: alarms go by the newest success and the newest verdict of any instance, and this one says none.
func (r *Reconciler) audit(ctx context.Context) error {
	return told(r.Auditor.Run(ctx, Scope{Name: ScopeRecent}))
}

// auditNightly is the audit of everything, once a night.
func (r *Reconciler) auditNightly(ctx context.Context) error {
	s, ran, err := r.Auditor.RunNightly(ctx)
	if !ran {
		return err
	}
	return told(s, err)
}

func told(s Statement, err error) error {
	if err != nil {
		return err
	}
	if s.Verdict == VerdictIncomplete {
		return fmt.Errorf("audit %s: %w", s.Scope, ErrIncomplete)
	}
	return nil
}

func (r *Reconciler) closeDays(ctx context.Context) error {
	_, err := r.Auditor.CloseDays(ctx)
	return errors.Join(err, r.Auditor.Forget(ctx))
}

// ErrIncomplete reports an audit that could not tell, because the gateway's list was not read completely.
var ErrIncomplete = errors.New("the gateway's list was not read completely")
