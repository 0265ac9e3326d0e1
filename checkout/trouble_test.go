package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
)

func pool(t *testing.T, cfg postgres.Config) *pgxpool.Pool {
	t.Helper()
	db, err := postgres.Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(db.Close)
	return db
}

// TestPool_SmallOnesWorkAndNoneWaitsWithTheGateway: a slow gateway holds no connection, so one or two are enough.
func TestPool_SmallOnesWorkAndNoneWaitsWithTheGateway(t *testing.T) {
	t.Parallel()
	for _, size := range []int32{1, 2} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			url := postgrestest.NewURL(t)
			s := open(t, shopOptions{db: pool(t, postgres.Config{URL: url, MaxConns: size})})
			watch := pool(t, postgres.Config{URL: url, MaxConns: 1, ApplicationName: "watch"})
			const buyers = 6
			s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Delay, Delay: time.Minute, N: buyers})
			var all sync.WaitGroup
			for range buyers {
				orderID, key := s.order(1000)
				all.Go(func() {
					answer, err := s.try(t.Context(), "POST", "/v1/payments/confirm", confirmOf(key, orderID, 1000), keyHeader, "press")
					if err != nil || answer.status != http.StatusOK {
						t.Errorf("got %d %v, want 200", answer.status, errors.Join(err, fmt.Errorf("%v", answer.body)))
					}
				})
			}
			eventually(t, "all are at the gateway", func() bool { return s.sim.Count(tosssim.Confirm) == buyers })
			var inTransaction int
			must(t, watch.QueryRow(t.Context(), `
				SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name <> 'watch' AND state LIKE 'idle in transaction%'`).Scan(&inTransaction))
			if inTransaction != 0 || s.db.Stat().AcquiredConns() != 0 {
				t.Errorf("got %d connections in a transaction and %d in use during the call, want none", inTransaction, s.db.Stat().AcquiredConns())
			}
			s.sim.Heal()
			all.Wait()
		})
	}
}

// cut is a network that can lose the connection at the next COMMIT: before the server sees it, or after.
type cut struct{ before, after atomic.Bool }

func (c *cut) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &cutConn{Conn: conn, cut: c}, nil
}

type cutConn struct {
	net.Conn

	cut *cut
}

// Write loses the connection at COMMIT when asked to.
func (c *cutConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("commit")) {
		if c.cut.before.CompareAndSwap(true, false) {
			return len(b), c.Close()
		}
		if c.cut.after.CompareAndSwap(true, false) {
			n, err := c.Conn.Write(b)
			_, read := c.Read(make([]byte, 1)) // the server has answered, so it has committed
			return n, errors.Join(err, read, c.Close())
		}
	}
	return c.Conn.Write(b)
}

// TestConfirm_IntentMayBeCommitted: when nobody knows whether the intent stands, nothing is sent and nothing is denied.
func TestConfirm_IntentMayBeCommitted(t *testing.T) {
	t.Parallel()
	for _, committed := range []bool{true, false} {
		t.Run(fmt.Sprint(committed), func(t *testing.T) {
			t.Parallel()
			network := &cut{}
			s := open(t, shopOptions{db: pool(t, postgres.Config{URL: postgrestest.NewURL(t), Dial: network.dial})})
			orderID, key := s.order(50000)
			network.after.Store(committed)
			network.before.Store(!committed)
			s.confirm(key, orderID, 50000).wants(t, http.StatusAccepted, "unknown")
			if got := s.sim.Count(tosssim.Confirm); got != 0 {
				t.Fatalf("got %d confirm calls, want none after a commit that may be lost", got)
			}
			_, _, err := ledger.Load(t.Context(), s.db, key)
			if stands := err == nil; stands != committed {
				t.Fatalf("got intent standing %t, want %t", stands, committed)
			}
			if !committed {
				s.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
				return
			}
			s.confirm(key, orderID, 50000).wants(t, http.StatusAccepted, "confirming")
			if got := s.count(`SELECT count(*) FROM work WHERE kind = 'confirm_unknown' AND closed_at IS NULL`); got != 1 {
				t.Errorf("got %d open questions, want 1", got)
			}
		})
	}
}

// TestConfirm_LostCommitOfTheOutcomeIsRecordedOnce: the outcome is recorded again, which changes nothing.
func TestConfirm_LostCommitOfTheOutcomeIsRecordedOnce(t *testing.T) {
	t.Parallel()
	for _, committed := range []bool{true, false} {
		t.Run(fmt.Sprint(committed), func(t *testing.T) {
			t.Parallel()
			network := &cut{}
			s := open(t, shopOptions{
				db: pool(t, postgres.Config{URL: postgrestest.NewURL(t), Dial: network.dial}),
				config: func(c *Config) {
					c.Gateway = &interrupted{Gateway: c.Gateway, after: func() {
						network.after.Store(committed)
						network.before.Store(!committed)
					}}
				},
			})
			orderID, key := s.order(50000)
			s.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
			s.wantBooks(key, ledger.StatusDone, ledger.OrderPaid)
			if got := s.count(`SELECT count(*) FROM captures`); got != 1 {
				t.Errorf("got %d captures, want 1", got)
			}
		})
	}
}

// interrupted is a gateway whose answers come just when something else happens.
type interrupted struct {
	Gateway

	after func()
}

// Confirm lets it happen after the answer.
func (g *interrupted) Confirm(ctx context.Context, permit *pgclient.Permit, r pgclient.ConfirmRequest) pgclient.Result {
	result := g.Gateway.Confirm(ctx, permit, r)
	g.after()
	return result
}

// Cancel lets it happen after the answer.
func (g *interrupted) Cancel(ctx context.Context, permit *pgclient.Permit, r pgclient.CancelRequest) pgclient.Result {
	result := g.Gateway.Cancel(ctx, permit, r)
	g.after()
	return result
}

// TestConfirm_DatabaseLostAfterTheApproval: the money was taken and cannot be booked yet. The buyer is told to wait, and
// a later press finds out; nothing is sent twice.
func TestConfirm_DatabaseLostAfterTheApproval(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	rename := func(from, to string) {
		_, err := db.Exec(context.WithoutCancel(t.Context()), `ALTER TABLE `+from+` RENAME TO `+to)
		must(t, err)
	}
	once := sync.OnceFunc(func() { rename("captures", "captures_gone") })
	s := open(t, shopOptions{db: db, config: func(c *Config) { c.Gateway = &interrupted{Gateway: c.Gateway, after: once} }})
	orderID, key := s.order(50000)
	answer := s.confirm(key, orderID, 50000)
	answer.wants(t, http.StatusAccepted, "unknown")
	if answer.text("status_url") == "" {
		t.Error("a reply that is not known yet needs an address")
	}
	rename("captures_gone", "captures")
	s.wantBooks(key, ledger.StatusConfirming, ledger.OrderPending)
	s.confirm(key, orderID, 50000).wants(t, http.StatusAccepted, "confirming")
	s.ahead.Store(int64(ledger.ConfirmBudget + time.Second))
	s.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
	if got := s.sim.Count(tosssim.Confirm); got != 1 {
		t.Errorf("got %d confirm calls, want 1", got)
	}
}

func TestCancel_DatabaseLostAfterTheCancel(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	rename := func(from, to string) {
		_, err := db.Exec(context.WithoutCancel(t.Context()), `ALTER TABLE `+from+` RENAME TO `+to)
		must(t, err)
	}
	armed := atomic.Bool{}
	s := open(t, shopOptions{db: db, config: func(c *Config) {
		c.Gateway = &interrupted{Gateway: c.Gateway, after: func() {
			if armed.CompareAndSwap(true, false) {
				rename("cancels", "cancels_gone")
			}
		}}
	}})
	_, key := s.paid(50000)
	armed.Store(true)
	s.cancel(key, "c1", whole()).wants(t, http.StatusAccepted, "sending")
	rename("cancels_gone", "cancels")
	s.cancel(key, "c1", whole()).wants(t, http.StatusAccepted, "sending")
	if got := s.sim.Count(tosssim.Cancel); got != 1 {
		t.Errorf("got %d cancel calls, want 1", got)
	}
	if got := s.count(`SELECT count(*) FROM work WHERE kind = 'cancel_request' AND closed_at IS NULL`); got != 1 {
		t.Errorf("got %d open questions, want 1", got)
	}
}

func TestCancel_RequestMayBeCommitted(t *testing.T) {
	t.Parallel()
	network := &cut{}
	s := open(t, shopOptions{db: pool(t, postgres.Config{URL: postgrestest.NewURL(t), Dial: network.dial})})
	_, key := s.paid(50000)
	// The caller's own mark is committed first; the second commit is the request's.
	_, err := s.handler.requestCancel(t.Context(), ledger.CancelOrder{RequestID: "can_other", PaymentKey: key, Reason: reason})
	must(t, err)
	must(t, s.handler.settleCancel(t.Context(), ledger.CancelRequest{ID: "can_other"}, ledger.CancelAnswer{Status: ledger.CancelRequestRefused, Word: "test"}))
	s.handler.gateway = &reserving{Gateway: s.handler.gateway, before: func() { network.after.Store(true) }}
	answer := s.cancel(key, "c1", whole())
	answer.wants(t, http.StatusAccepted, "unknown")
	if got := s.sim.Count(tosssim.Cancel); got != 0 {
		t.Errorf("got %d cancel calls, want none", got)
	}
	s.call("GET", answer.text("status_url"), nil).wants(t, http.StatusOK, "sending")
}

// reserving is a gateway at whose slots something else happens.
type reserving struct {
	Gateway

	before func()
}

// ReserveCancel lets it happen before the slot is given.
func (g *reserving) ReserveCancel(ctx context.Context) (*pgclient.Permit, error) {
	g.before()
	return g.Gateway.ReserveCancel(ctx)
}

// TestDatabase_Gone: a database that does not answer is 503, and nothing is sent.
func TestDatabase_Gone(t *testing.T) {
	t.Parallel()
	url := postgrestest.NewURL(t)
	gone := &atomic.Bool{}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if gone.Load() {
			return nil, errors.New("no route")
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	db := pool(t, postgres.Config{URL: url, Dial: dial, ConnectTimeout: time.Second})
	s := open(t, shopOptions{db: db})
	orderID, key := s.order(50000)
	gone.Store(true)
	db.Reset()
	s.confirm(key, orderID, 50000).wants(t, http.StatusServiceUnavailable, "database_unavailable")
	answer := s.call("POST", "/v1/orders", orderBodyOf("order-gone", 1), keyHeader, "gone")
	answer.wants(t, http.StatusServiceUnavailable, "database_unavailable")
	if answer.header.Get("Retry-After") == "" {
		t.Error("an unavailable database needs Retry-After")
	}
	if got := s.sim.Count(tosssim.Confirm); got != 0 {
		t.Errorf("got %d confirm calls, want none", got)
	}
	gone.Store(false)
	s.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
}
