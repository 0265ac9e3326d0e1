package app

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/riverqueue/river/rivertype"
)

// metrics are the figures of the program itself: jobs and the database pool.
type metrics struct {
	jobSuccess  *prometheus.GaugeVec
	jobSeconds  *prometheus.HistogramVec
	jobFailures *prometheus.CounterVec
}

// newMetrics registers the figures, one series for every kind of job from the start.
func newMetrics(reg *prometheus.Registry, kinds []string) *metrics {
	factory := promauto.With(reg)
	m := &metrics{
		jobSuccess: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "daesa_job_last_success_timestamp_seconds",
			Help: "When a job of the kind last succeeded on any instance; 0 means never. Old means work is not getting done.",
		}, []string{"kind"}),
		jobSeconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "daesa_job_duration_seconds",
			Help:    "Time one job took.",
			Buckets: []float64{.01, .05, .1, .5, 1, 5, 15, 60, 300},
		}, []string{"kind"}),
		jobFailures: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "daesa_job_failures_total",
			Help: "Jobs that returned an error. The next tick does the same work again.",
		}, []string{"kind"}),
	}
	for _, kind := range kinds {
		m.jobSuccess.WithLabelValues(kind)
		m.jobSeconds.WithLabelValues(kind)
		m.jobFailures.WithLabelValues(kind)
	}
	reg.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Work measures one job. It is River middleware around every worker.
func (m *metrics) work(ctx context.Context, job *rivertype.JobRow, inner func(context.Context) error) error {
	begin := time.Now()
	err := inner(ctx)
	m.jobSeconds.WithLabelValues(job.Kind).Observe(time.Since(begin).Seconds())
	if err != nil {
		m.jobFailures.WithLabelValues(job.Kind).Inc()
		return err
	}
	m.jobSuccess.WithLabelValues(job.Kind).SetToCurrentTime()
	return nil
}

// recall reads from the jobs' own table when each kind last succeeded on any instance, so that a restart does not
// forget and the instance that runs no jobs still shows the age.
func (m *metrics) recall(ctx context.Context, db *pgxpool.Pool) error {
	type success struct {
		Kind string    `db:"kind"`
		At   time.Time `db:"at"`
	}
	rows, err := db.Query(ctx, `
		SELECT kind, max(finalized_at) AS at
		FROM river.river_job
		WHERE state = 'completed' AND finalized_at IS NOT NULL
		GROUP BY kind`)
	if err != nil {
		return fmt.Errorf("read last successes of jobs: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[success])
	if err != nil {
		return fmt.Errorf("read last successes of jobs: %w", err)
	}
	for _, s := range found {
		m.jobSuccess.WithLabelValues(s.Kind).Set(float64(s.At.Unix()))
	}
	return nil
}
