package capacity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/cmd/lab/harness"
	"daesa/internal/postgres"
)

// The arms.
const (
	armService   = "the service"
	armOneByOne  = "pgbench, one by one"
	armPipelined = "pgbench, pipelined"
)

// appliedFull is the outcome of every notice that is applied here, and the others of those that lead to nothing.
const (
	appliedFull      = "applied_full"
	duplicateSkipped = "duplicate_skipped"
	eventIgnored     = "event_ignored"
	statusIgnored    = "status_ignored"
	constantOutcome  = "constant"
)

// run is one arm in one round.
type run struct {
	arm   string
	round int
	rate  float64 // cancels a second
	costs
	books

	outcomes  map[string]int // as the sender saw them, warm-up included
	metrics   harness.Metrics
	questions int
	jobs      int // that were worked while cancels were applied
	looks     []harness.Look
	idle      map[string]float64 // notices a second that lead to nothing, by outcome
}

// costs is what was used while cancels were applied.
type costs struct {
	wall                             time.Duration
	began, ended                     time.Time     // of the reading; of a difference, of both readings with all between them
	processes                        int           // that were read
	service, postgres, gateway, load time.Duration // of processors
	wal                              int64
	allocations, allocated           float64
}

// meter reads what was used so far.
func (l *limit) meter(ctx context.Context, service *harness.Instance) (c costs, err error) {
	c.began = time.Now()
	defer func() { c.ended = time.Now() }()
	if c.wal, err = l.server.wal(ctx); err != nil {
		return c, err
	}
	if c.postgres, c.processes, err = l.server.processor(); err != nil {
		return c, err
	}
	c.processes += 3 // the service, the gateway, ourselves
	own, _, err := statOf(selfPid())
	if err != nil {
		return c, err
	}
	c.load = own.own // and not of children: one that ends meanwhile brings all that it ever used
	if service == nil {
		return c, nil
	}
	if c.service, err = service.Processor(); err != nil {
		return c, err
	}
	if c.gateway, err = l.gateway.Processor(); err != nil {
		return c, err
	}
	m, err := service.Metrics(ctx)
	c.allocations, c.allocated = m.Of("go_memstats_mallocs_total"), m.Of("go_memstats_alloc_bytes_total")
	return c, err
}

func (c costs) minus(earlier costs) costs {
	return costs{
		began: earlier.began, ended: c.ended, processes: max(c.processes, earlier.processes),
		service: c.service - earlier.service, postgres: c.postgres - earlier.postgres, gateway: c.gateway - earlier.gateway,
		load: c.load - earlier.load, wal: c.wal - earlier.wal,
		allocations: c.allocations - earlier.allocations, allocated: c.allocated - earlier.allocated,
	}
}

// service applies cancels through the service, and delivers notices that lead to nothing.
func (l *limit) service(ctx context.Context, round int) (err error) {
	l.lab.Say("limit: round %d, %s", round, armService)
	address, err := l.databases.copyOf(ctx, "service")
	if err != nil {
		return err
	}
	r := run{arm: armService, round: round, idle: map[string]float64{}}
	asked, err := l.gateway.Counts(ctx)
	if err != nil {
		return err
	}
	db, err := postgres.Open(ctx, postgres.Config{URL: address, MaxConns: 2, ApplicationName: "lab"})
	if err != nil {
		return err
	}
	defer db.Close()
	err = l.through(ctx, l.lab.Programs, address, func(s *harness.Instance, to sender) error { return l.apply(ctx, db, s, to, &r) })
	if err != nil {
		return err
	}
	if r.books, err = readBooks(ctx, address); err != nil {
		return err
	}
	now, err := l.gateway.Counts(ctx)
	if err != nil {
		return err
	}
	r.questions = now["get"] - asked["get"]
	err = l.through(ctx, l.constant, address, func(_ *harness.Instance, to sender) error {
		return l.nothing(ctx, to, &r, constantOutcome, l.model.notices())
	})
	l.runs = append(l.runs, r)
	return err
}

// through runs a program over a database while something is delivered to it.
func (l *limit) through(ctx context.Context, programs harness.Programs, address string, do func(*harness.Instance, sender) error) (err error) {
	s, err := programs.StartInstance(ctx, l.lab.Folder, "daesa", address, l.gateway.URL, settings()...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	to, err := newSender(s.URL, l.inFlight)
	if err != nil {
		return err
	}
	return do(s, to)
}

// apply is the measurement itself, and after it duplicates and what is ignored.
func (l *limit) apply(ctx context.Context, db *pgxpool.Pool, s *harness.Instance, to sender, r *run) error {
	warm, err := to.deliver(ctx, 1, l.warm, l.model.notices())
	if err != nil {
		return err
	}
	if err := l.server.settle(ctx); err != nil {
		return err
	}
	earlier, err := jobsWorked(ctx, db)
	if err != nil {
		return err
	}
	before, err := l.meter(ctx, s)
	if err != nil {
		return err
	}
	var done delivered
	if r.looks, err = l.watched(ctx, s, func() (err error) {
		done, err = to.deliver(ctx, l.warm+1, l.payments, l.model.notices())
		return err
	}); err != nil {
		return err
	}
	after, err := l.meter(ctx, s)
	if err != nil {
		return err
	}
	worked, err := jobsWorked(ctx, db)
	if err != nil {
		return err
	}
	r.jobs = worked - earlier
	r.outcomes, r.rate, r.costs = warm.outcomes, done.rate(l.payments), after.minus(before)
	r.wall = done.wall
	for outcome, n := range done.outcomes {
		r.outcomes[outcome] += n
	}
	if err := idle(ctx, db); err != nil {
		return err
	}
	for _, nothing := range []struct {
		outcome string
		body    func(int) []byte
	}{
		{duplicateSkipped, l.model.notices()},
		{eventIgnored, func(int) []byte {
			return []byte(`{"eventType":"BILLING_DELETED","createdAt":"2026-03-11T12:05:10","data":{"billingKey":"key"}}`)
		}},
		{statusIgnored, l.model.approvals()},
	} {
		if err := l.nothing(ctx, to, r, nothing.outcome, nothing.body); err != nil {
			return err
		}
	}
	r.metrics, err = s.Metrics(ctx)
	return err
}

// watched does something while the service is looked at, each second.
func (l *limit) watched(ctx context.Context, s *harness.Instance, do func() error) ([]harness.Look, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var looks []harness.Look
	failed := make(chan error, 1)
	go func() {
		var err error
		looks, err = harness.Watch(watching, []*harness.Instance{s}, l.gateway, time.Second, func(harness.Look) {})
		failed <- err
	}()
	err := do()
	stop()
	return looks, errors.Join(err, <-failed)
}

// jobsWorked is how many jobs have ended.
func jobsWorked(ctx context.Context, db *pgxpool.Pool) (int, error) {
	found, err := readOne[struct {
		Ended int `db:"ended"`
	}](ctx, db, `SELECT count(*)::int AS ended FROM river.river_job WHERE finalized_at IS NOT NULL`)
	return found.Ended, err
}

// idleMost bounds the wait until the service has nothing left to do: its audit comes each minute.
const idleMost = 3 * time.Minute

// idle leaves the service with nothing to do. Two events of each cancel are to be told, which takes longer than to apply
// it; told while notices are measured that lead to nothing, they would be counted against those. So the events that are
// left are forgotten, and the audit of the minute is waited for.
func idle(ctx context.Context, db *pgxpool.Pool) error {
	ctx, stop := context.WithTimeout(ctx, idleMost)
	defer stop()
	return harness.Until(ctx, "the service to have nothing left to do", func() (bool, error) {
		if _, err := db.Exec(ctx, `DELETE FROM river.river_job WHERE kind = 'deliver_event' AND state = 'available'`); err != nil {
			return false, fmt.Errorf("forget events: %w", err)
		}
		left, err := readOne[struct {
			Rows int `db:"rows"`
		}](ctx, db, `
			SELECT ((SELECT count(*) FROM audit_dirty)
				+ (SELECT count(*) FROM river.river_job WHERE kind = 'deliver_event' AND state IN ('available', 'running')))::int AS rows`)
		return left.Rows == 0, err
	})
}

// nothing delivers notices that lead to nothing.
func (l *limit) nothing(ctx context.Context, to sender, r *run, outcome string, body func(int) []byte) error {
	if _, err := to.deliver(ctx, 1, l.warm, body); err != nil {
		return err
	}
	done, err := to.deliver(ctx, l.warm+1, l.payments, body)
	if err != nil {
		return err
	}
	if done.outcomes[outcome] != l.payments {
		return fmt.Errorf("got %v for %d notices, want %s", done.outcomes, l.payments, outcome)
	}
	r.idle[outcome] = done.rate(l.payments)
	return nil
}

func (l *limit) oneByOne(ctx context.Context, round int) error {
	return l.bench(ctx, round, armOneByOne, l.script.oneByOne)
}

func (l *limit) pipelined(ctx context.Context, round int) error {
	return l.bench(ctx, round, armPipelined, l.script.pipelined)
}

// bench applies the same cancels with pgbench.
func (l *limit) bench(ctx context.Context, round int, arm, text string) error {
	l.lab.Say("limit: round %d, %s", round, arm)
	address, err := l.databases.copyOf(ctx, "pgbench")
	if err != nil {
		return err
	}
	if _, _, err := l.pgbench.run(ctx, address, text, l.script.defines, 1, l.warm, l.inFlight); err != nil {
		return err
	}
	if err := l.server.settle(ctx); err != nil {
		return err
	}
	before, err := l.meter(ctx, nil)
	if err != nil {
		return err
	}
	r := run{arm: arm, round: round}
	var used time.Duration
	if r.rate, used, err = l.pgbench.run(ctx, address, text, l.script.defines, l.warm+1, l.payments, l.inFlight); err != nil {
		return err
	}
	after, err := l.meter(ctx, nil)
	if err != nil {
		return err
	}
	r.costs = after.minus(before)
	r.load += used
	r.wall = time.Duration(float64(l.payments) / r.rate * float64(time.Second))
	r.books, err = readBooks(ctx, address)
	l.runs = append(l.runs, r)
	return err
}
