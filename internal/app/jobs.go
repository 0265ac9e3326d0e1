package app

import (
	"context"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // schedules name Asia/Seoul; a bare machine has no zone data

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"github.com/robfig/cron/v3"

	"daesa/checkout"
	"daesa/internal/admission"
	"daesa/internal/people"
	"daesa/ledger/seal"
	"daesa/migrations"
	"daesa/reconcile"
	"daesa/webhook"
)

// The queues. Each has workers of its own, so that a slow list cannot hold up the sweep.
const (
	queueSweep = "sweep"
	queueList  = "list"
	queueAudit = "audit"
	queueTidy  = "tidy"
	queueSeal  = "seal"
)

// tick is one periodic job: River wakes, our rows decide what there is to do, so a missed, late or doubled tick
// loses nothing.
type tick struct {
	schedule string
	queue    string
	args     river.JobArgs
}

// ticks is everything the service does by itself, and when.
func ticks(cfg Config) []tick {
	return []tick{
		{"@every 1s", queueSweep, reconcile.SweepArgs{}},                         // ask for what is due
		{"@every " + cfg.ListEvery.String(), queueList, reconcile.ListArgs{}},    // read the newest of the gateway's list
		{"@every 10m", queueList, reconcile.RereadArgs{}},                        // tonight, the last 4 days again
		{"@every 1m", queueAudit, reconcile.AuditArgs{}},                         // prove the identity, by what changed
		{"@every 10m", queueAudit, reconcile.AuditAllArgs{}},                     // tonight, in full
		{"@every 10m", queueAudit, reconcile.CloseDaysArgs{}},                    // which closed day has no run?
		{"@every 1m", queueTidy, webhook.ReapArgs{}},                             // close deliveries of a crash
		{"CRON_TZ=Asia/Seoul 10 5 * * *", queueTidy, webhook.RetainArgs{}},       // forget what need not be kept
		{storeEvery(cfg), checkout.StoreQueue, checkout.SettleAcceptancesArgs{}}, // keep or release what the store took on
		{"@every 30s", queueTidy, checkout.ExpireOrdersArgs{}},                   // orders nobody paid
		{"@every 10m", queueTidy, checkout.TidyCheckoutArgs{}},                   // old idempotency keys
		{"@every 1m", queueTidy, admission.TidyArgs{}},                           // sources that send no more
		{"@every 10m", queueTidy, people.ForgetArgs{}},                           // sessions that are over
		{"@every 1m", queueSeal, seal.Args{}},                                    // cut and sign the journal of a day that ended
	}
}

// storeEvery is how often the store's acceptances are looked at. Without a store there are none but those of a time when
// there was one.
func storeEvery(cfg Config) string {
	if cfg.StoreURL == "" {
		return "@every 1m"
	}
	return "@every 1s"
}

// jobKinds names every job, for the metrics.
func jobKinds() []string {
	kinds := []string{checkout.EventArgs{}.Kind()}
	for _, t := range ticks(Config{}.withDefaults()) {
		kinds = append(kinds, t.args.Kind())
	}
	return kinds
}

// newJobs registers every worker and schedule.
func newJobs(a *App) (*river.Client[pgx.Tx], error) {
	workers, err := newWorkers(a)
	if err != nil {
		return nil, err
	}
	periodic, err := periodicJobs(a.cfg)
	if err != nil {
		return nil, err
	}
	client, err := river.NewClient(riverpgxv5.New(a.db), &river.Config{
		Schema: migrations.RiverSchema, Workers: workers, PeriodicJobs: periodic, Logger: a.log,
		Queues: map[string]river.QueueConfig{
			queueSweep:           {MaxWorkers: 2},
			queueList:            {MaxWorkers: 1},
			queueAudit:           {MaxWorkers: 1},
			queueTidy:            {MaxWorkers: 2},
			queueSeal:            {MaxWorkers: 1},
			checkout.EventsQueue: {MaxWorkers: 8},
			checkout.StoreQueue:  {MaxWorkers: 1},
		},
		// A tick that crashed is not worth rescuing for an hour: the next one does the same work.
		RescueStuckJobsAfter:        15 * time.Minute,
		JobTimeout:                  10 * time.Minute,
		SoftStopTimeout:             a.cfg.jobsSoftStop(), // then running jobs are canceled; their rows come due again
		CompletedJobRetentionPeriod: time.Hour,            // one sweep a second would keep a day's worth of rows otherwise
		Middleware:                  []rivertype.Middleware{measured{a.metrics}},
	})
	if err != nil {
		return nil, fmt.Errorf("set up jobs: %w", err)
	}
	return client, nil
}

func newWorkers(a *App) (*river.Workers, error) {
	f, workers := a.features, river.NewWorkers()
	events, err := checkout.NewEventWorker(checkout.EventWorkerConfig{
		DB: a.db, Merchant: checkout.Receiver{URL: a.cfg.MerchantURL, Secret: a.cfg.EventSecret},
		Customer: checkout.Receiver{URL: a.cfg.CustomerURL, Secret: a.cfg.EventSecret}, Metrics: f.checkoutMetrics, Now: a.cfg.Now,
	})
	if err != nil {
		return nil, err
	}
	job := checkout.JobConfig{
		DB: a.db, Ledger: f.ledger, Metrics: f.checkoutMetrics, Now: a.cfg.Now, Keep: a.cfg.Retention.keep().checkout,
	}
	expire, err := checkout.NewExpireOrdersWorker(job)
	if err != nil {
		return nil, err
	}
	tidy, err := checkout.NewTidyWorker(job)
	if err != nil {
		return nil, err
	}
	limits, err := admission.NewTidyWorker(admission.TidyConfig{DB: a.db, Now: a.cfg.limitNow})
	if err != nil {
		return nil, err
	}
	river.AddWorker(workers, events)
	river.AddWorker(workers, expire)
	river.AddWorker(workers, tidy)
	river.AddWorker(workers, f.settler)
	river.AddWorker(workers, limits)
	river.AddWorker(workers, &people.ForgetWorker{Accounts: f.people})
	river.AddWorker(workers, &webhook.ReapWorker{Handler: f.webhook})
	river.AddWorker(workers, &webhook.RetainWorker{Handler: f.webhook})
	river.AddWorker(workers, &seal.Worker{Sealer: f.sealer})
	return workers, f.reconcile.AddWorkers(workers)
}

func periodicJobs(cfg Config) ([]*river.PeriodicJob, error) {
	var jobs []*river.PeriodicJob
	for _, t := range ticks(cfg) {
		schedule, err := cron.ParseStandard(hurried(t.schedule, cfg.Hurry))
		if err != nil {
			return nil, fmt.Errorf("schedule of %s: %w", t.args.Kind(), err)
		}
		jobs = append(jobs, river.NewPeriodicJob(schedule, func() (river.JobArgs, *river.InsertOpts) {
			return t.args, &river.InsertOpts{Queue: t.queue, MaxAttempts: 1}
		}, &river.PeriodicJobOpts{ID: t.args.Kind(), RunOnStart: true}))
	}
	return jobs, nil
}

// hurried is a schedule that comes so many times as often. One by the hour of the day is left as it is.
func hurried(schedule string, times int) string {
	every, ok := strings.CutPrefix(schedule, "@every ")
	span, err := time.ParseDuration(every)
	if !ok || err != nil || times <= 1 {
		return schedule
	}
	return "@every " + max(time.Second, span/time.Duration(times)).String()
}

// measured is River middleware that measures every job.
type measured struct{ metrics *metrics }

// IsMiddleware marks the type for River.
func (measured) IsMiddleware() bool { return true }

// Work runs one job and notes how it went.
func (m measured) Work(ctx context.Context, job *rivertype.JobRow, inner func(context.Context) error) error {
	return m.metrics.work(ctx, job, inner)
}
