package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/app"
	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/reconcile"
)

const (
	// dirtyKeys is how many cancels change between two runs of the audit.
	dirtyKeys = 1000
	// runsOfEach are made of everything that is measured; the median is shown.
	runsOfEach = 3
	// flatWithin is how far the cost of one dirty key may move while the history grows.
	flatWithin = 1.10
	// verifyMemory is what a verification may hold resident, bytes.
	verifyMemory = 256 << 20
	// verifySpeed is the least share of the speed of COPY.
	verifySpeed = 0.4
)

// size is everything measured at one length of history.
type size struct {
	payments int
	touched  []spent // runs with keys that changed nothing
	fresh    []spent // runs with new payments in both books, every tenth canceled
	idle     []spent // runs with nothing dirty
	full     spent   // everything recomputed
	day      []spent // closing the busy day
	copied   []copied
	verified []verified
}

// spent is what one run cost.
type spent struct {
	buffers int64
	took    time.Duration
}

// auditScale measures what the audit, a closing run and a verification cost as the history grows.
func auditScale(ctx context.Context, l *lab) (r result, err error) {
	address, err := l.fresh(ctx, "lab_scale")
	if err != nil {
		return r, err
	}
	b := &scaleBench{lab: l, address: address}
	if err := b.open(ctx); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.close()) }() //nolint:contextcheck // what it changed is put back in any case
	var sizes []size
	for _, n := range l.sizes {
		s, err := b.measure(ctx, n)
		if err != nil {
			return r, fmt.Errorf("%s payments: %w", thousands(n), err)
		}
		sizes = append(sizes, s)
	}
	return scaleResult(sizes, min(busyCancels, l.sizes[0]/10)), nil
}

// scaleBench is one database whose history grows.
type scaleBench struct {
	*lab

	address string
	meter   *pgxpool.Pool // in another database, so that looking costs this one nothing
	name    string
	history *history
	dir     string // of the key and the program
	keyFile string
	binary  string
	seals   int
}

// settings make loading quick. They are the server's, and are taken back at the end; a quick run shares its server.
func (b *scaleBench) settings() []string {
	if b.quick {
		return nil
	}
	return []string{`max_wal_size = '16GB'`, `checkpoint_timeout = '30min'`, `autovacuum = off`}
}

func (b *scaleBench) open(ctx context.Context) error {
	pool, err := postgres.Open(ctx, postgres.Config{URL: b.address, MaxConns: 2, ApplicationName: "lab"})
	if err != nil {
		return err
	}
	b.name = pool.Config().ConnConfig.Database
	ends := ledger.DayOf(time.Now()).Start()
	b.history = &history{db: pool, ends: ends, busy: ledger.DayOf(ends.AddDate(0, 0, -1)).Start(), say: b.say}
	away := pool.Config().ConnConfig.Copy()
	away.Database = "postgres"
	cfg := pool.Config()
	cfg.ConnConfig, cfg.MaxConns = away, 1
	if b.meter, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return fmt.Errorf("open the meter: %w", err)
	}
	for _, s := range b.settings() {
		if _, err := b.meter.Exec(ctx, `ALTER SYSTEM SET `+s); err != nil {
			return fmt.Errorf("set %s: %w", s, err)
		}
	}
	return b.reload(ctx)
}

func (b *scaleBench) reload(ctx context.Context) error {
	if _, err := b.meter.Exec(ctx, `SELECT pg_reload_conf()`); err != nil {
		return fmt.Errorf("make the settings known: %w", err)
	}
	return nil
}

func (b *scaleBench) close() error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	var errs []error
	for _, s := range b.settings() {
		name, _, _ := strings.Cut(s, " ")
		_, err := b.meter.Exec(ctx, `ALTER SYSTEM RESET `+name)
		errs = append(errs, err)
	}
	errs = append(errs, b.reload(ctx))
	b.meter.Close()
	b.history.db.Close()
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

func (b *scaleBench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.out, "  "+format+"\n", args...) // progress only
}

// buffers is how many buffers the database has touched so far. A session reports when it ends, so the figure is taken
// once it stands still.
func (b *scaleBench) buffers(ctx context.Context) (int64, error) {
	last, same := int64(-1), 0
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for same < 4 {
		var now int64
		err := b.meter.QueryRow(ctx, `SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = $1`, b.name).Scan(&now)
		if err != nil {
			return 0, fmt.Errorf("count buffers: %w", err)
		}
		if now == last {
			same++
		} else {
			last, same = now, 0
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
		}
	}
	return last, nil
}

// audited runs one audit in an instance of its own and counts what the whole of it cost, connections included.
func (b *scaleBench) audited(ctx context.Context, scope reconcile.Scope) (s spent, err error) {
	if err := b.history.read(ctx); err != nil { // or a long run would find the list too old
		return s, err
	}
	before, err := b.buffers(ctx)
	if err != nil {
		return s, err
	}
	instance, err := app.New(ctx, app.Config{
		DatabaseURL: b.address, TossURL: "http://127.0.0.1:9", TossSecretKey: "test_sk_lab", Listen: "127.0.0.1:0", PrivateListen: "127.0.0.1:0",
		OpeningAt: b.history.ends.AddDate(0, 0, -historyDays-1), Log: slog.New(slog.DiscardHandler), DatabaseMax: 4,
	})
	if err != nil {
		return s, err
	}
	began := time.Now()
	statement, err := instance.Audit(ctx, scope)
	s.took = time.Since(began)
	if err := errors.Join(err, instance.Stop()); err != nil { //nolint:contextcheck // a stop has its own time
		return s, err
	}
	if statement.Verdict != reconcile.VerdictReconciled {
		return s, fmt.Errorf("the audit of %s says %s: %v", scope.Name, statement.Verdict, statement.Reasons)
	}
	after, err := b.buffers(ctx)
	s.buffers = after - before
	return s, err
}

// touch makes the audit look again at cancels spread over the whole history.
func (b *scaleBench) touch(ctx context.Context) error {
	_, err := b.history.db.Exec(ctx, `
		INSERT INTO audit_dirty (subject, key, payment_key)
		SELECT 'cancel', 'txx_' || md5('x' || n), 'tlab_' || md5('p' || n)
		FROM generate_series(1, @keys::bigint) AS i, LATERAL (SELECT i * 10 * (@cancels::bigint / @keys) AS n) AS spread`,
		pgx.StrictNamedArgs{"keys": dirtyKeys, "cancels": b.history.made / 10})
	if err != nil {
		return fmt.Errorf("make keys dirty: %w", err)
	}
	return nil
}

// load makes the history longer. Meanwhile the server need not survive a crash, and nothing is measured.
func (b *scaleBench) load(ctx context.Context, n int) error {
	if b.quick {
		return b.history.grow(ctx, n)
	}
	careless := []string{"fsync", "full_page_writes"}
	for _, name := range careless {
		if _, err := b.meter.Exec(ctx, `ALTER SYSTEM SET `+name+` = off`); err != nil {
			return fmt.Errorf("load without flushing: %w", err)
		}
	}
	err := errors.Join(b.reload(ctx), b.history.grow(ctx, n))
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Minute)
	defer stop()
	for _, name := range careless {
		_, resetErr := b.meter.Exec(ctx, `ALTER SYSTEM RESET `+name)
		err = errors.Join(err, resetErr)
	}
	err = errors.Join(err, b.reload(ctx))
	_, flushErr := b.meter.Exec(ctx, `CHECKPOINT`)
	return errors.Join(err, flushErr)
}

// measure grows the history to n payments and measures everything there.
func (b *scaleBench) measure(ctx context.Context, n int) (s size, err error) {
	s.payments = n
	if err := b.load(ctx, n); err != nil {
		return s, err
	}
	recent, day := reconcile.Scope{Name: reconcile.ScopeRecent}, reconcile.Scope{Name: reconcile.ScopeDay, Day: ledger.DayOf(b.history.busy)}
	if s.full, err = b.audited(ctx, reconcile.Scope{Name: reconcile.ScopeAll}); err != nil {
		return s, err
	}
	b.say("everything recomputed in %s", s.full.took.Round(time.Millisecond))
	if err := tidy(ctx, b.history.db, []string{"audit_judged", "audit_totals", "audit_dirty"}); err != nil {
		return s, err
	}
	if _, err := b.audited(ctx, recent); err != nil { // whatever the full run left is not the next one's
		return s, err
	}
	for range b.runs() {
		if err := b.record(ctx, &s.idle, recent, func(context.Context) error { return nil }); err != nil {
			return s, err
		}
		if err := b.record(ctx, &s.touched, recent, b.touch); err != nil {
			return s, err
		}
		if err := b.record(ctx, &s.fresh, recent, b.history.sell); err != nil {
			return s, err
		}
		if err := b.record(ctx, &s.day, day, func(context.Context) error { return nil }); err != nil {
			return s, err
		}
	}
	b.say("audits measured")
	return s, b.read(ctx, &s)
}

// copy reads everything by COPY alone.
func (b *scaleBench) copy(ctx context.Context, s *size) error {
	c, err := copyOut(ctx, b.address, verifiedTables())
	if err != nil {
		return err
	}
	s.copied = append(s.copied, c)
	b.say("%s rows copied in %s", thousands(int(c.rows)), c.took.Round(time.Millisecond))
	return nil
}

// verify reads everything by a verification.
func (b *scaleBench) verify(ctx context.Context, s *size) error {
	v, err := b.verifyOnce(ctx)
	if err != nil {
		return err
	}
	s.verified = append(s.verified, v)
	b.say("verified in %s, %d MiB resident", v.took.Round(time.Millisecond), v.resident>>20)
	return nil
}

// runs is how many of each are made.
func (b *scaleBench) runs() int {
	if b.quick {
		return 1
	}
	return runsOfEach
}

// record measures one audit after what comes before it.
func (b *scaleBench) record(ctx context.Context, to *[]spent, scope reconcile.Scope, before func(context.Context) error) error {
	if err := before(ctx); err != nil {
		return err
	}
	s, err := b.audited(ctx, scope)
	if err != nil {
		return err
	}
	*to = append(*to, s)
	return nil
}

// read measures the reading of everything: by COPY alone, and by a verification.
func (b *scaleBench) read(ctx context.Context, s *size) error {
	if err := b.seal(ctx); err != nil {
		return err
	}
	for n := range b.runs() {
		steps := []func(context.Context, *size) error{b.copy, b.verify}
		if n%2 == 1 { // whoever comes second finds warmer memory
			slices.Reverse(steps)
		}
		for _, step := range steps {
			if err := step(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func median[T any](all []T, of func(T) float64) float64 {
	values := make([]float64, 0, len(all))
	for _, v := range all {
		values = append(values, of(v))
	}
	slices.Sort(values)
	if len(values) == 0 {
		return math.NaN()
	}
	return values[len(values)/2]
}
