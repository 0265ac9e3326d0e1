package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"

	"daesa/checkout/store"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/migrations"
	"daesa/pgclient"
	"daesa/reconcile"
)

// App is one instance of the service.
type App struct {
	cfg        Config
	log        *slog.Logger
	db         *pgxpool.Pool
	reads      *pgxpool.Pool
	limits     *pgxpool.Pool
	deliveries *pgxpool.Pool // of notices
	gateway    *pgclient.Client
	store      *store.Client // nil without one
	registry   *prometheus.Registry
	metrics    *metrics
	ready      *readiness
	features   features
	jobs       *river.Client[pgx.Tx]

	recovered chan struct{}

	public          *web.Server
	private         *web.Server
	pages           *web.Server // nil without pages
	publicListener  net.Listener
	privateListener net.Listener
	pagesListener   net.Listener

	stopOnce sync.Once
	stopErr  error
}

// New wires an instance. It connects to the database and listens, but answers nothing yet. The database must
// be migrated.
func New(ctx context.Context, cfg Config) (_ *App, err error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	a := &App{cfg: cfg, log: cfg.Log, registry: prometheus.NewRegistry(), recovered: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			a.release()
		}
	}()
	if err := a.open(ctx); err != nil {
		return nil, err
	}
	a.ready = &readiness{money: a.db, limits: a.limits}
	a.metrics = newMetrics(a.registry, jobKinds())
	a.watchPools()
	if err := a.metrics.recall(ctx, a.db); err != nil {
		return nil, err
	}
	if a.jobs, err = newJobs(a); err != nil {
		return nil, err
	}
	if err := a.listen(ctx); err != nil {
		return nil, err
	}
	return a, a.features.reconcile.KeepSettings(ctx)
}

// open connects to the database and wires the features over it.
func (a *App) open(ctx context.Context) (err error) {
	if err := a.openPools(ctx); err != nil {
		return err
	}
	if err := requireMigrated(ctx, a.db); err != nil {
		return err
	}
	if err := ledger.SetSecondPerson(ctx, a.db, ledger.SecondPerson{Above: *a.cfg.SecondPersonAbove}, a.cfg.Now()); err != nil {
		return err
	}
	if err := a.openGateway(); err != nil {
		return err
	}
	if err := a.openStore(); err != nil {
		return err
	}
	if a.features, err = newFeatures(a); err != nil {
		return err
	}
	a.features.sealer, err = newSealer(ctx, a)
	return err
}

func requireMigrated(ctx context.Context, db *pgxpool.Pool) error {
	pending, err := migrations.Pending(ctx, db)
	if err != nil {
		return err
	}
	if pending > 0 {
		return fmt.Errorf("run daesa migrate first: the database lacks %d migrations", pending)
	}
	return nil
}

func (a *App) openGateway() (err error) {
	a.gateway, err = pgclient.New(pgclient.Config{
		BaseURL: a.cfg.TossURL, SecretKey: a.cfg.TossSecretKey, SecurityKey: a.cfg.TossSecurityKey,
		Replicas: a.cfg.Replicas, Paths: a.cfg.Paths, Breakers: a.cfg.Breakers,
		OnRecovered: a.hurry,
		Metrics:     pgclient.NewMetrics(a.registry), Log: a.log, Now: a.cfg.Now,
	})
	return err
}

// hurry makes what the silent gateway left waiting due now. The gateway client calls it from within a call, so it
// only leaves a word; further words while one waits say nothing new.
func (a *App) hurry() {
	select {
	case a.recovered <- struct{}{}:
	default:
	}
}

// listenForRecovery passes the word on until ctx ends.
func (a *App) listenForRecovery(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.recovered:
		}
		if err := a.features.reconcile.Sweeper.Hurry(ctx); err != nil && ctx.Err() == nil {
			a.log.LogAttrs(ctx, slog.LevelWarn, "waiting work not hurried", slog.Any("error", err))
		}
	}
}

func (a *App) listen(ctx context.Context) error {
	public, office, err := routers(a)
	if err != nil {
		return err
	}
	if err := a.listenForPeople(ctx, office); err != nil {
		return err
	}
	if a.public, err = web.NewServer(web.ServerConfig{Handler: public, Log: a.log}); err != nil {
		return err
	}
	if a.private, err = web.NewServer(web.ServerConfig{Handler: privateRouter(a.registry, a.ready), Log: a.log}); err != nil {
		return err
	}
	var open net.ListenConfig
	if a.publicListener, err = open.Listen(ctx, "tcp", a.cfg.Listen); err != nil {
		return fmt.Errorf("set DAESA_LISTEN to a free address: %w", err)
	}
	if a.privateListener, err = open.Listen(ctx, "tcp", a.cfg.PrivateListen); err != nil {
		return fmt.Errorf("set DAESA_PRIVATE_LISTEN to a free address: %w", err)
	}
	return nil
}

// URL is where the public listener answers.
func (a *App) URL() string { return "http://" + a.publicListener.Addr().String() }

// PrivateURL is where metrics and health answer.
func (a *App) PrivateURL() string { return "http://" + a.privateListener.Addr().String() }

// DB is the instance's pool, for the demo, the lab and tests.
func (a *App) DB() *pgxpool.Pool { return a.db }

// Registry holds the instance's metrics.
func (a *App) Registry() *prometheus.Registry { return a.registry }

// ReadList reads the newest of the gateway's list into the mirror now.
func (a *App) ReadList(ctx context.Context) error {
	_, err := a.features.reconcile.Mirror.Poll(ctx)
	return err
}

// Sweep asks the gateway about everything that is due now.
func (a *App) Sweep(ctx context.Context) error {
	_, err := a.features.reconcile.Sweeper.Sweep(ctx)
	return err
}

// Audit compares both books now and returns the statement.
func (a *App) Audit(ctx context.Context, scope reconcile.Scope) (reconcile.Statement, error) {
	return a.features.reconcile.Auditor.Run(ctx, scope)
}

// AuditAll audits everything since the books were opened.
func (a *App) AuditAll(ctx context.Context) (reconcile.Statement, error) {
	return a.Audit(ctx, reconcile.Scope{Name: reconcile.ScopeAll})
}

// Run serves until ctx ends or a listener fails, then stops in order. It returns nil after a clean stop.
func (a *App) Run(ctx context.Context) error {
	if err := a.jobs.Start(context.WithoutCancel(ctx)); err != nil {
		return errors.Join(fmt.Errorf("start jobs: %w", err), a.Stop()) //nolint:contextcheck // a stop has its own time
	}
	failed := make(chan error, 3)
	var serving sync.WaitGroup
	listening, stopListening := context.WithCancel(context.WithoutCancel(ctx))
	serving.Go(func() { a.listenForRecovery(listening) })
	serving.Go(func() { a.features.keys.Run(listening) })
	for server, listener := range a.servers() {
		serving.Go(func() {
			if err := server.Serve(listener); err != nil {
				failed <- err
			}
		})
	}
	a.log.LogAttrs(ctx, slog.LevelInfo, "serving",
		slog.String("public", a.publicListener.Addr().String()), slog.String("private", a.privateListener.Addr().String()),
		slog.String("pages", a.PagesURL()))
	a.tellOfAccounts(ctx)
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	err = errors.Join(err, a.Stop()) //nolint:contextcheck // a stop begins when ctx is over
	stopListening()
	serving.Wait()
	return err
}

// Stop stops accepting, lets requests in flight finish, then the jobs, then closes what is open. It may be called more
// than once and is bounded: requests have the stop timeout, jobs a third of it before they are canceled and another to
// notice. An answer of 200 is never given for work cut off, because every answer is written after its commit.
func (a *App) Stop() error {
	a.stopOnce.Do(func() {
		a.ready.stopping.Store(true)
		a.stopErr = errors.Join(
			a.within("public listener", a.cfg.StopTimeout, a.public.Shutdown),
			a.stopPages(),
			a.within("jobs", 2*a.cfg.jobsSoftStop(), a.jobs.Stop),
			a.within("private listener", time.Second, a.private.Shutdown),
		)
		a.features.keys.Rest()
		a.release()
	})
	return a.stopErr
}

// jobsSoftStop is how long running jobs may go on after a stop began.
func (c Config) jobsSoftStop() time.Duration { return c.StopTimeout / 3 }

// within stops one part within its time.
func (a *App) within(what string, limit time.Duration, stop func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := stop(ctx); err != nil {
		return fmt.Errorf("stop the %s: %w", what, err)
	}
	return nil
}

// release closes what New opened.
func (a *App) release() {
	for _, l := range []net.Listener{a.publicListener, a.privateListener, a.pagesListener} {
		if l != nil {
			_ = l.Close() // closed already after a clean stop
		}
	}
	if a.gateway != nil {
		a.gateway.Close()
	}
	if a.store != nil {
		a.store.Close()
	}
	a.closePools()
}

// tokenKey signs status addresses. Without a key of its own it follows from the gateway's secret key, so that every
// instance agrees.
func (c Config) tokenKey() []byte {
	secret := c.TokenKey
	if secret == "" {
		secret = "status-address\x00" + c.TossSecretKey
	}
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// Waits that the public routes are given.
const (
	readingTimeout = 10 * time.Second
	reportTimeout  = 30 * time.Minute // a file of a million rows, fetched slowly
	moneyTimeout   = 75 * time.Second // a confirm's whole budget of 31 s, asking about another payment first, and the books
)
