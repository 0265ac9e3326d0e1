package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/app"
	"daesa/internal/postgres"
	"daesa/internal/postgres/embedded"
	"daesa/internal/stage"
	"daesa/ledger"
	"daesa/ledger/seal"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// clock is everybody's: the wall's, moved.
type clock struct{ ahead atomic.Int64 }

func (c *clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (*clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// move puts the clock forward or back.
func (c *clock) move(d time.Duration) { c.ahead.Add(int64(d)) }

// drill is what is played with.
type drill struct {
	*stage.Stage

	out      io.Writer
	clock    *clock
	database *stage.Database
	name     string
	url      string
	dir      string // of the seal's key, the heads file and the back-up
	log      *slog.Logger
	keys     []string   // of every payment, in the order of their sale
	sealed   ledger.Day // whose head is held against the heads file
	orders   int
}

const (
	price    = 10_000
	before   = 12 // sales that the back-up has
	refunded = 3  // of them
	after    = 3  // sales that it does not have
	later    = 2  // refunds that it does not have, of payments that it has
)

// prepare starts everything, at noon of yesterday.
func prepare(ctx context.Context, out io.Writer) (_ *drill, err error) {
	d := &drill{out: out, clock: &clock{}, name: fmt.Sprintf("drill_%d", os.Getpid()), log: slog.New(slog.DiscardHandler)}
	defer func() { //nolint:contextcheck // what was begun is undone also when ctx is over
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	noon := ledger.DayOf(time.Now()).Start().Add(-12 * time.Hour)
	d.clock.move(time.Until(noon))
	if d.dir, err = os.MkdirTemp("", "daesa-drill-"); err != nil {
		return nil, fmt.Errorf("make a place for the back-up: %w", err)
	}
	if _, err := seal.GenerateKey(d.sealKey()); err != nil {
		return nil, err
	}
	at, err := embedded.DefaultDir(os.Getenv("XDG_STATE_HOME"), "drill")
	if err != nil {
		return nil, err
	}
	d.database, err = stage.StartDatabase(ctx, stage.DatabaseConfig{Dir: at, BinDir: os.Getenv("DAESA_POSTGRES_BIN"), Log: d.log})
	if err != nil {
		return nil, err
	}
	if d.url, err = d.database.Fresh(ctx, d.name); err != nil {
		return nil, err
	}
	if d.Stage, err = stage.Set(ctx, d.config()); err != nil {
		return nil, err
	}
	d.Release() //nolint:contextcheck // the sender lives as long as the stage
	return d, nil
}

// config is that of the service, before the loss and after it.
func (d *drill) config() stage.Config {
	return stage.Config{
		DatabaseURL: d.url, Gateway: tosssim.Config{Clock: d.clock}, Log: d.log,
		Service: app.Config{Now: d.clock.Now, SealKeyFile: d.sealKey(), Hurry: 60},
	}
}

func (d *drill) sealKey() string { return filepath.Join(d.dir, "seal.key") }
func (d *drill) backup() string  { return filepath.Join(d.dir, "books.dump") }

func (d *drill) close() error {
	var err error
	if d.Stage != nil {
		err = d.Close()
	}
	if d.database != nil {
		if d.url != "" {
			err = errors.Join(err, d.database.Drop(context.Background(), d.name))
		}
		err = errors.Join(err, d.database.Stop())
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}

func (d *drill) say(format string, args ...any) { fmt.Fprintf(d.out, "   "+format+"\n", args...) }

// sell sells so many orders.
func (d *drill) sell(ctx context.Context, n int) error {
	for range n {
		d.orders++
		key, err := d.Sell(ctx, d.sale(d.orders))
		if err != nil {
			return err
		}
		d.keys = append(d.keys, key)
	}
	return nil
}

func (*drill) sale(n int) stage.Sale {
	return stage.Sale{OrderID: fmt.Sprintf("drill-order-%02d", n), Won: price}
}

// refund cancels payments in the gateway's dashboard, whose notices are answered.
func (d *drill) refund(keys []string) error {
	for _, key := range keys {
		if _, err := d.Sim.CancelInDashboard(key, 0, "고객 변심"); err != nil {
			return err
		}
	}
	return nil
}

// counted waits until a query counts so many.
func (d *drill) counted(ctx context.Context, what string, want int, sql string, args ...any) error {
	ctx, stop := context.WithTimeoutCause(ctx, 2*time.Minute, fmt.Errorf("%s: not %d within two minutes", what, want))
	defer stop()
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for {
		var got int
		if err := d.App.DB().QueryRow(ctx, sql, args...).Scan(&got); err != nil && ctx.Err() == nil {
			return fmt.Errorf("count %s: %w", what, err)
		}
		if got == want {
			d.say("%s: %d", what, got)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%d)", context.Cause(ctx), got)
		case <-look.C:
		}
	}
}

func (d *drill) yesterday(ctx context.Context) error {
	if err := d.sell(ctx, before); err != nil {
		return err
	}
	if err := d.refund(d.keys[:refunded]); err != nil {
		return err
	}
	if err := d.counted(ctx, "refunds in the books", refunded, `SELECT count(*) FROM cancels`); err != nil {
		return err
	}
	d.sealed = ledger.DayOf(d.clock.Now())
	d.clock.move(-time.Duration(d.clock.ahead.Load())) // to the wall's time of today
	if err := d.counted(ctx, "sealed heads of "+string(d.sealed), 1, `SELECT count(*) FROM journal_heads WHERE day = $1`, string(d.sealed)); err != nil {
		return err
	}
	return d.verify(ctx)
}

// verify recomputes the journal and holds it against the heads file.
func (d *drill) verify(ctx context.Context) error {
	db, err := postgres.Open(ctx, postgres.Config{URL: d.url, MaxConns: 4, ApplicationName: "drill"})
	if err != nil {
		return err
	}
	defer db.Close()
	key, err := seal.ReadKey(d.sealKey())
	if err != nil {
		return err
	}
	heads, err := seal.NewWitness(d.sealKey() + ".heads").Read()
	if err != nil {
		return err
	}
	report, err := seal.Verify(ctx, db, seal.Options{Keys: []ed25519.PublicKey{key.Public()}, Witnessed: heads, Now: d.clock.Now()})
	if err != nil {
		return err
	}
	if !report.Whole() {
		return errors.Join(errors.New("the books are not whole"), report.WriteText(d.out))
	}
	n := slices.IndexFunc(heads, func(h seal.Witnessed) bool { return h.Day == d.sealed })
	if n < 0 {
		return fmt.Errorf("the heads file does not know %s", d.sealed)
	}
	d.say("daesa verify: whole, up to the head of %s, %s", d.sealed, heads[n].Hash)
	return d.sameHead(ctx, db, heads[n].Hash)
}

// sameHead checks that the database has for the day that was sealed the head which the file has.
func (d *drill) sameHead(ctx context.Context, db *pgxpool.Pool, want ledger.Digest) error {
	var have []byte
	if err := db.QueryRow(ctx, `SELECT hash FROM journal_heads WHERE day = $1`, string(d.sealed)).Scan(&have); err != nil {
		return fmt.Errorf("read the head of %s: %w", d.sealed, err)
	}
	if !bytes.Equal(have, want[:]) {
		return fmt.Errorf("the head of %s is %x, and %s in the heads file", d.sealed, have, want)
	}
	return nil
}

func (d *drill) backUp(ctx context.Context) error {
	return d.program(ctx, "pg_dump", "--format=custom", "--file", d.backup(), d.url)
}

// program runs one of PostgreSQL's own programs.
func (d *drill) program(ctx context.Context, name string, arguments ...string) error {
	said, err := exec.CommandContext(ctx, filepath.Join(d.database.Bin(), name), arguments...).CombinedOutput() //nolint:gosec // its folder is the server's
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, said)
	}
	size, err := os.Stat(d.backup())
	if err != nil {
		return fmt.Errorf("look at the back-up: %w", err)
	}
	d.say("%s: %d kB", name, size.Size()>>10)
	return nil
}

func (d *drill) today(ctx context.Context) error {
	if err := d.sell(ctx, after); err != nil {
		return err
	}
	if err := d.refund(d.keys[refunded : refunded+later]); err != nil {
		return err
	}
	if err := d.counted(ctx, "refunds in the books, their notices answered", refunded+later, `SELECT count(*) FROM cancels`); err != nil {
		return err
	}
	return d.counted(ctx, "sales in the books", before+after, `SELECT count(*) FROM captures`)
}

func (d *drill) lose(ctx context.Context) error {
	if err := d.StopService(); err != nil {
		return err
	}
	return d.database.Drop(ctx, d.name)
}

func (d *drill) restore(ctx context.Context) error {
	if _, err := d.database.Empty(ctx, d.name); err != nil {
		return err
	}
	if err := d.program(ctx, "pg_restore", "--exit-on-error", "--no-owner", "--dbname", d.url, d.backup()); err != nil {
		return err
	}
	return d.verify(ctx)
}

func (d *drill) catchUp(ctx context.Context) error {
	if err := d.StartService(ctx, d.config()); err != nil {
		return err
	}
	if err := d.counted(ctx, "refunds in the restored books", refunded+later, `SELECT count(*) FROM cancels`); err != nil {
		return err
	}
	d.clock.move(time.Hour) // past what the list may be late by
	return d.counted(ctx, "payments of orders that nobody knows any more, each a mismatch with its money", after,
		`SELECT count(*) FROM mismatches WHERE kind = 'payment_without_order' AND status = 'open'`)
}

func (d *drill) sendAgain(ctx context.Context) error {
	for n := range after {
		if err := d.Shop.Order(ctx, d.sale(before+n+1)); err != nil {
			return err
		}
	}
	if err := d.counted(ctx, "sales in the books", before+after, `SELECT count(*) FROM captures`); err != nil {
		return err
	}
	return d.counted(ctx, "open mismatches", 0, `SELECT count(*) FROM mismatches WHERE status <> 'resolved'`)
}

func (d *drill) prove(ctx context.Context) error {
	statement, err := d.Audit(ctx, time.Minute, func(v reconcile.Verdict) bool { return v == reconcile.VerdictReconciled })
	if err != nil {
		return err
	}
	for _, sum := range statement.Sums {
		d.say("gateway cancels %d = canceled %d + pending %d + unexplained %d", sum.Gateway.Count, sum.Canceled.Count, sum.Pending.Count, sum.Unexplained.Count)
	}
	if statement.Verdict != reconcile.VerdictReconciled {
		return fmt.Errorf("the audit says %s %v", statement.Verdict, statement.Reasons)
	}
	violations, err := ledger.Check(ctx, d.App.DB())
	if err != nil {
		return err
	}
	if len(violations) > 0 {
		return fmt.Errorf("%d broken invariants, the first: %s", len(violations), violations[0])
	}
	return d.verify(ctx)
}
