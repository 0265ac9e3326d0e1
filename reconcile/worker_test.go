package reconcile_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"daesa/ledger"
	"daesa/reconcile"
)

// jobs is a River client with the real workers.
func (s *shop) jobs() *river.Client[pgx.Tx] {
	s.t.Helper()
	workers := river.NewWorkers()
	s.must(s.AddWorkers(workers))
	c, err := river.NewClient(riverpgxv5.New(s.db), &river.Config{
		Schema: "river", Logger: slog.New(slog.DiscardHandler), Workers: workers, TestOnly: true,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}}, FetchPollInterval: 50 * time.Millisecond,
		FetchCooldown: 10 * time.Millisecond,
	})
	s.must(err)
	return c
}

// TestWorkers_TicksDoTheWork: one tick of each kind lists, sweeps and audits a cancel of which no notice came.
func TestWorkers_TicksDoTheWork(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 1000)
	s.clock.Advance(time.Minute)
	s.canceled(key, 0)
	s.clock.Advance(time.Minute)
	c := s.jobs()
	ended, stop := c.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed)
	defer stop()
	lasting := context.WithoutCancel(t.Context()) // the jobs are stopped after the test's own context has ended
	s.must(c.Start(lasting))
	t.Cleanup(func() {
		if err := c.Stop(lasting); err != nil {
			t.Error(err)
		}
	})
	for _, args := range []river.JobArgs{
		reconcile.ListArgs{},
		reconcile.SweepArgs{},
		reconcile.AuditArgs{},
		reconcile.RereadArgs{},
		reconcile.AuditAllArgs{},
		reconcile.CloseDaysArgs{},
	} {
		_, err := c.Insert(t.Context(), args, nil)
		s.must(err)
		if event := <-ended; event.Kind != river.EventKindJobCompleted || event.Job.Kind != args.Kind() {
			t.Errorf("%s: got %s: %v", args.Kind(), event.Kind, event.Job.Errors)
		}
	}
	if p := s.payment(key); p.Status != ledger.StatusCanceled {
		t.Errorf("got %s", p.Status)
	}
	if got := s.text(`SELECT verdict FROM audit_runs WHERE scope = 'recent'`); got != "reconciled" {
		t.Errorf("got %s", got)
	}
}

// TestWorkers_ReadElsewhereIsNoSuccess: a tick that finds another instance reading the list has read nothing.
func TestWorkers_ReadElsewhereIsNoSuccess(t *testing.T) {
	t.Parallel()
	s := setup(t)
	conn, err := s.db.Acquire(t.Context())
	s.must(err)
	defer conn.Release()
	s.must(conn.QueryRow(t.Context(), `SELECT true FROM pg_advisory_lock($1)`, int64(0x6461657361_01)).Scan(new(bool)))
	c := s.jobs()
	ended, stop := c.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed)
	defer stop()
	lasting := context.WithoutCancel(t.Context())
	s.must(c.Start(lasting))
	t.Cleanup(func() {
		if err := c.Stop(lasting); err != nil {
			t.Error(err)
		}
	})
	for _, args := range []river.JobArgs{reconcile.ListArgs{}, reconcile.RereadArgs{}} {
		_, err := c.Insert(t.Context(), args, nil)
		s.must(err)
		if event := <-ended; event.Kind != river.EventKindJobFailed {
			t.Errorf("%s: got %s", args.Kind(), event.Kind)
		}
	}
}

// TestWorkers_AuditElsewhereSaysNothing: a tick that finds another audit running is no success, and no verdict either:
// what the last one said stands.
func TestWorkers_AuditElsewhereSaysNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.poll()
	s.audit(reconcile.ScopeRecent)
	conn, err := s.db.Acquire(t.Context())
	s.must(err)
	defer conn.Release()
	s.must(conn.QueryRow(t.Context(), `SELECT true FROM pg_advisory_lock($1)`, int64(0x6461657361_02)).Scan(new(bool)))
	s.clock.Advance(time.Minute)
	if _, err := s.Auditor.Run(t.Context(), reconcile.Scope{Name: reconcile.ScopeRecent}); err == nil {
		t.Error("it is a success")
	}
	verdict := map[string]string{"scope": "recent", "verdict": "reconciled"}
	ran := s.metric("daesa_reconcile_audit_last_run_timestamp_seconds", map[string]string{"scope": "recent"})
	if s.metric("daesa_reconcile_audit_verdict", verdict) != 1 || int64(ran) != noon().Unix() || s.number(`SELECT count(*) FROM audit_runs`) != 1 {
		t.Errorf("it says something: ran at %d, %d runs", ran, s.number(`SELECT count(*) FROM audit_runs`))
	}
}

// TestWorkers_TicksDoNotPileUp: a tick whose predecessor still waits is dropped; one whose predecessor is finished is
// not, and a failed tick is not tried again: the next one is the retry.
func TestWorkers_TicksDoNotPileUp(t *testing.T) {
	t.Parallel()
	s := setup(t)
	c := s.jobs()
	insert := func() *rivertype.JobInsertResult {
		r, err := c.Insert(t.Context(), reconcile.AuditArgs{}, nil)
		s.must(err)
		return r
	}
	first, second := insert(), insert()
	if first.UniqueSkippedAsDuplicate || !second.UniqueSkippedAsDuplicate || first.Job.MaxAttempts != 1 {
		t.Errorf("got %t, %t and %d attempts", first.UniqueSkippedAsDuplicate, second.UniqueSkippedAsDuplicate, first.Job.MaxAttempts)
	}
	for _, state := range []string{"completed", "discarded"} {
		s.exec(`UPDATE river.river_job SET state = $1::text::river.river_job_state, finalized_at = now() WHERE state = 'available'`, state)
		if next := insert(); next.UniqueSkippedAsDuplicate {
			t.Errorf("a %s tick blocks the next", state)
		}
	}
}

func TestJobKinds_HaveWorkers(t *testing.T) {
	t.Parallel()
	var kinds []string
	for _, args := range []river.JobArgs{
		reconcile.SweepArgs{},
		reconcile.ListArgs{},
		reconcile.RereadArgs{},
		reconcile.AuditArgs{},
		reconcile.AuditAllArgs{},
		reconcile.CloseDaysArgs{},
	} {
		kinds = append(kinds, args.Kind())
	}
	if diff := cmp.Diff(reconcile.JobKinds(), kinds); diff != "" {
		t.Error(diff)
	}
}
