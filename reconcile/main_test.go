package reconcile_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == readListArgument {
		if err := readList(os.Args[2], os.Args[3]); err != nil {
			panic(err)
		}
		return
	}
	postgrestest.Run(m)
}

// silent tells nobody.
type silent struct{}

func (silent) Notify(context.Context, *pgx.Batch, []ledger.Announcement) error { return nil }

// shop is a merchant with a simulated gateway and a clock that a test moves.
type shop struct {
	t      *testing.T
	db     *pgxpool.Pool
	sim    *tosssim.Sim
	clock  *tosssim.ManualClock
	client *pgclient.Client
	books  *ledger.Ledger
	reg    *prometheus.Registry
	cfg    reconcile.Config
	*reconcile.Reconciler
}

// noon is a Monday in Seoul.
func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, ledger.Seoul()) }

type option func(*reconcile.Config, *tosssim.Config)

func patient(c *reconcile.Config, _ *tosssim.Config)      { c.Eager = false }
func smallPages(c *reconcile.Config, _ *tosssim.Config)   { c.PageSize = 7 }
func negativeRows(_ *reconcile.Config, c *tosssim.Config) { c.CancelRowSign = -1 }
func lagging(_ *reconcile.Config, c *tosssim.Config)      { c.ListLag = 5 * time.Minute }
func sharedID(c *reconcile.Config, _ *tosssim.Config)     { c.OurOrders = regexp.MustCompile(`^order-`) }

func setup(t *testing.T, options ...option) *shop {
	t.Helper()
	s := &shop{t: t, clock: tosssim.NewManualClock(noon()), reg: prometheus.NewPedanticRegistry()}
	simulated := tosssim.Config{Clock: s.clock}
	cfg := reconcile.Config{
		Metrics: reconcile.NewMetrics(s.reg), Log: slog.New(slog.DiscardHandler), Now: s.clock.Now,
		DatabaseNow: func(context.Context) (time.Time, error) { return s.clock.Now(), nil },
		Eager:       true, OpeningAt: noon().Add(-time.Hour), Pace: -1, Stretch: 2,
	}
	for _, o := range options {
		o(&cfg, &simulated)
	}
	if cfg.DB == nil {
		cfg.DB = postgrestest.New(t)
	}
	s.db = cfg.DB
	s.sim = tosssim.New(simulated)
	server := httptest.NewServer(s.sim.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(s.sim.Close)
	var err error
	s.client, err = pgclient.New(pgclient.Config{
		BaseURL: server.URL, SecretKey: "test_sk_simulator", Metrics: pgclient.NewMetrics(s.reg),
		Log: slog.New(slog.DiscardHandler), Now: s.clock.Now,
		Breakers: pgclient.Breakers{Money: neverOpens(), Query: neverOpens(), Recover: neverOpens()},
		Paths: pgclient.Paths{
			Confirm: fast(), Cancel: fast(), List: fast(), Recover: pgclient.Path{Attempt: time.Second, Connect: time.Second},
		},
	})
	s.must(err)
	t.Cleanup(s.client.Close)
	s.books, err = ledger.New(ledger.Config{Notify: silent{}, Metrics: ledger.NewMetrics(s.reg), Now: s.clock.Now})
	s.must(err)
	cfg.Ledger, cfg.Gateway = s.books, s.client
	s.cfg = cfg
	s.Reconciler, err = reconcile.New(cfg)
	s.must(err)
	return s
}

// another is a second instance over the same books, with metrics of its own if none are given.
func (s *shop) another(change func(*reconcile.Config), shown ...*reconcile.Metrics) *reconcile.Reconciler {
	s.t.Helper()
	cfg := s.cfg
	cfg.Metrics = reconcile.NewMetrics(prometheus.NewRegistry())
	for _, m := range shown {
		cfg.Metrics = m
	}
	change(&cfg)
	r, err := reconcile.New(cfg)
	s.must(err)
	return r
}

func orderID(n int) string { return fmt.Sprintf("order-%04d", n) }

func (s *shop) exec(sql string, args ...any) {
	s.t.Helper()
	_, err := s.db.Exec(s.t.Context(), sql, args...)
	s.must(err)
}

// metric is the value of one series.
func (s *shop) metric(name string, labels map[string]string) int {
	s.t.Helper()
	families, err := s.reg.Gather()
	s.must(err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			matches := 0
			for _, l := range m.GetLabel() {
				if labels[l.GetName()] == l.GetValue() {
					matches++
				}
			}
			if matches == len(labels) {
				return int(m.GetGauge().GetValue() + m.GetCounter().GetValue())
			}
		}
	}
	s.t.Fatalf("no series %s %v", name, labels)
	return 0
}

// neverOpens keeps the breakers, which go by real time, out of tests that move the clock.
func neverOpens() pgclient.BreakerLimits {
	return pgclient.BreakerLimits{Window: 1000, MinCalls: 1000, FailurePercent: 100}
}

func fast() pgclient.Path {
	return pgclient.Path{Attempt: time.Second, Connect: time.Second, Attempts: 1, BackoffMin: time.Millisecond, BackoffMax: time.Millisecond}
}

func (s *shop) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) tx(fn func(tx pgx.Tx) error) {
	s.t.Helper()
	s.must(postgres.InTx(s.t.Context(), s.db, fn))
}

// order creates an order and a buyer who has authenticated a payment for it.
func (s *shop) order(id string, won int64, method tosssim.Method) (paymentKey string) {
	s.t.Helper()
	s.tx(func(tx pgx.Tx) error {
		_, err := s.books.CreateOrder(s.t.Context(), tx, ledger.Order{
			ID: id, Amount: ledger.Won(won), Name: id, ExpiresAt: s.clock.Now().Add(30 * time.Minute),
		})
		return err
	})
	return s.sim.Authenticate(tosssim.Checkout{OrderID: id, OrderName: id, Amount: won, Method: method})
}

func (s *shop) intend(id, key string, won int64) ledger.Payment {
	s.t.Helper()
	var p ledger.Payment
	s.tx(func(tx pgx.Tx) error {
		in, err := s.books.Intend(s.t.Context(), tx, ledger.Intent{PaymentKey: key, OrderID: id, Amount: ledger.Won(won)})
		p = in.Payment
		return err
	})
	return p
}

// send confirms at the gateway and forgets the answer.
func (s *shop) send(p ledger.Payment) pgclient.Result {
	s.t.Helper()
	permit, err := s.client.ReserveConfirm(s.t.Context())
	s.must(err)
	defer permit.Release()
	return s.client.Confirm(s.t.Context(), permit, pgclient.ConfirmRequest{
		PaymentKey: p.Key, OrderID: p.OrderID, Amount: p.Amount, IdempotencyKey: p.IdempotencyKey(),
	})
}

// paid is an order that was paid and booked without trouble.
func (s *shop) paid(id string, won int64) (paymentKey string) {
	s.t.Helper()
	key := s.order(id, won, tosssim.Card)
	s.record(s.send(s.intend(id, key, won)).Observation)
	return key
}

func (s *shop) record(o ledger.Observation) ledger.Recorded {
	s.t.Helper()
	var r ledger.Recorded
	s.tx(func(tx pgx.Tx) error {
		var err error
		r, err = s.books.Record(s.t.Context(), tx, o)
		return err
	})
	return r
}

// ask is what the gateway says now.
func (s *shop) ask(channel ledger.Channel, key string) ledger.Observation {
	s.t.Helper()
	seen, err := s.client.Recover(s.t.Context(), channel, key)
	s.must(err)
	return seen
}

func (s *shop) canceled(key string, won int64) (transactionKey string) {
	s.t.Helper()
	tx, err := s.sim.CancelInDashboard(key, won, "dashboard")
	s.must(err)
	return tx
}

func (s *shop) payment(key string) ledger.Payment {
	s.t.Helper()
	p, _, err := ledger.Load(s.t.Context(), s.db, key)
	s.must(err)
	return p
}

func (s *shop) sweep() reconcile.Swept {
	s.t.Helper()
	swept, err := s.Sweeper.Sweep(s.t.Context())
	s.must(err)
	return swept
}

func (s *shop) poll() reconcile.Polled {
	s.t.Helper()
	p, err := s.Mirror.Poll(s.t.Context())
	s.must(err)
	return p
}

func (s *shop) audit(name reconcile.ScopeName) reconcile.Statement {
	s.t.Helper()
	st, err := s.Auditor.Run(s.t.Context(), reconcile.Scope{Name: name})
	s.must(err)
	return st
}

// number is the one number a query gives.
func (s *shop) number(sql string, args ...any) int {
	s.t.Helper()
	var n int
	s.must(s.db.QueryRow(s.t.Context(), sql, args...).Scan(&n))
	return n
}

// text is the one text a query gives.
func (s *shop) text(sql string, args ...any) string {
	s.t.Helper()
	var text string
	s.must(s.db.QueryRow(s.t.Context(), sql, args...).Scan(&text))
	return text
}

func (s *shop) mismatches(kind ledger.Kind) int {
	s.t.Helper()
	return s.number(`SELECT count(*) FROM mismatches WHERE kind = $1 AND status <> 'resolved'`, kind)
}

func (s *shop) claim(key, transactionKey string) {
	s.t.Helper()
	s.tx(func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		ledger.QueueWork(b, ledger.Work{
			Kind: ledger.WorkCancelClaimed, PaymentKey: key, TransactionKey: transactionKey, DueAt: s.clock.Now(),
			Deadline: pgclient.LastChance(s.clock.Now()),
		}, s.clock.Now())
		return tx.SendBatch(s.t.Context(), b).Close()
	})
}

// dueAt is when the open work is due.
func (s *shop) dueAt() time.Time {
	s.t.Helper()
	var due time.Time
	s.must(s.db.QueryRow(s.t.Context(), `SELECT min(due_at) FROM work WHERE closed_at IS NULL`).Scan(&due))
	return due.In(s.clock.Now().Location())
}

// row puts a row into the gateway's list that nothing at the gateway explains.
func (s *shop) row(transactionKey, paymentKey, orderID, status, amount string) {
	s.t.Helper()
	s.must(s.sim.PutTransaction(fmt.Appendf(nil, `{"mId":"tsimshop01","transactionKey":%q,"paymentKey":%q,"orderId":%q,
		"method":"카드","status":%q,"transactionAt":%q,"currency":"KRW","amount":%s}`,
		transactionKey, paymentKey, orderID, status, s.clock.Now().Format(time.RFC3339), amount)))
}
