package app

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"daesa/internal/postgres"
)

// The pools by their names in figures. Whoever may wait for a connection behind others waits only behind its own kind.
const (
	poolMoney   = "money"   // confirms, cancels, jobs
	poolNotices = "notices" // the gateway's notices
	poolReading = "reading" // look-ups, pages, the desk
	poolLimits  = "limits"  // the questions of rate limits
)

// readingShare is how many connections reading has, as a part of those of money and never fewer than two. A flood of
// look-ups fills its class at the gate; on one pool with money each of those would stand before a confirm that needs five
// connections one after the other. A few connections keep a small machine as busy with reading as many do.
const readingShare = 4

// noticesShare is how many connections notices have, as a part of those of money and never fewer than two. What they do
// takes milliseconds, but 160 of them may be in flight, each with a statement to store it before anything else is known of it.
const noticesShare = 4

// limitConnections is how many questions of rate limits may be at the database at once. One connection answers
// thousands a second, the network aside, which is more than all other work of an instance lets it admit; four keep one
// slow answer from holding up the rest.
const limitConnections = 4

// openPools connects to the database.
func (a *App) openPools(ctx context.Context) (err error) {
	money := postgres.Config{URL: a.cfg.DatabaseURL, MaxConns: a.cfg.DatabaseMax, ApplicationName: "daesa", Dial: a.cfg.Dial}
	if a.db, err = postgres.Open(ctx, money); err != nil {
		return err
	}
	notices := money
	notices.MaxConns, notices.ApplicationName = max(2, a.cfg.DatabaseMax/noticesShare), "daesa-notices"
	if a.deliveries, err = postgres.Open(ctx, notices); err != nil {
		return err
	}
	reading := money
	reading.MaxConns, reading.ApplicationName = max(2, a.cfg.DatabaseMax/readingShare), "daesa-reading"
	if a.reads, err = postgres.Open(ctx, reading); err != nil {
		return err
	}
	// The server ends a statement before the one who asks gives up: that would cost the connection.
	most := a.cfg.LimitTimeout * 4 / 5
	a.limits, err = postgres.Open(ctx, postgres.Config{
		URL: a.cfg.DatabaseURL, MaxConns: limitConnections, ApplicationName: "daesa-limits", StatementTimeout: most, LockTimeout: most,
		RelaxedCommit: true, Dial: a.cfg.DialLimits,
	})
	return err
}

// closePools closes those that were opened.
func (a *App) closePools() {
	for _, pool := range []*pgxpool.Pool{a.limits, a.reads, a.deliveries, a.db} {
		if pool != nil {
			pool.Close()
		}
	}
}

// watchPools exports the pools: a saturated one makes everything of its kind wait.
func (a *App) watchPools() {
	pools := map[string]*pgxpool.Pool{poolMoney: a.db, poolNotices: a.deliveries, poolReading: a.reads, poolLimits: a.limits}
	for name, pool := range pools {
		watchPool(prometheus.WrapRegistererWith(prometheus.Labels{"pool": name}, a.registry), pool)
	}
}

func watchPool(reg prometheus.Registerer, db *pgxpool.Pool) {
	factory := promauto.With(reg)
	gauge := func(name, help string, read func(*pgxpool.Stat) float64) {
		factory.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return read(db.Stat()) })
	}
	counter := func(name, help string, read func(*pgxpool.Stat) float64) {
		factory.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return read(db.Stat()) })
	}
	gauge("daesa_postgres_pool_acquired_connections", "Connections in use.",
		func(s *pgxpool.Stat) float64 { return float64(s.AcquiredConns()) })
	gauge("daesa_postgres_pool_max_connections", "Connections the pool may hold.",
		func(s *pgxpool.Stat) float64 { return float64(s.MaxConns()) })
	counter("daesa_postgres_pool_waits_total", "Times a request had to wait for a connection. Rising means the pool is saturated.",
		func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) })
	counter("daesa_postgres_pool_wait_seconds_total", "Time that requests have waited for a connection, of those that got one.",
		func(s *pgxpool.Stat) float64 { return s.EmptyAcquireWaitTime().Seconds() })
}
