package opening_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
	"daesa/reconcile/opening"
)

func TestMain(m *testing.M) { postgrestest.Run(m) }

type silent struct{}

func (silent) Notify(context.Context, *pgx.Batch, []ledger.Announcement) error { return nil }

func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, ledger.Seoul()) }

// shop is a merchant who moves in: payments at the gateway, empty books.
type shop struct {
	t      *testing.T
	db     *pgxpool.Pool
	sim    *tosssim.Sim
	clock  *tosssim.ManualClock
	client *pgclient.Client
	books  *ledger.Ledger
	cfg    opening.Config
}

func setup(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t, db: postgrestest.New(t), clock: tosssim.NewManualClock(noon().Add(-24 * time.Hour))}
	s.sim = tosssim.New(tosssim.Config{Clock: s.clock})
	server := httptest.NewServer(s.sim.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(s.sim.Close)
	reg := prometheus.NewRegistry()
	never := pgclient.BreakerLimits{Window: 1000, MinCalls: 1000, FailurePercent: 100}
	var err error
	s.client, err = pgclient.New(pgclient.Config{
		BaseURL: server.URL, SecretKey: "test_sk_simulator", Metrics: pgclient.NewMetrics(reg), Log: slog.New(slog.DiscardHandler),
		Now: s.clock.Now, Breakers: pgclient.Breakers{Money: never, Query: never, Recover: never},
	})
	s.must(err)
	t.Cleanup(s.client.Close)
	s.books, err = ledger.New(ledger.Config{Notify: silent{}, Metrics: ledger.NewMetrics(reg), Now: s.clock.Now})
	s.must(err)
	s.cfg = opening.Config{
		DB: s.db, Ledger: s.books, Gateway: s.client, Now: s.clock.Now, By: "os:kim", OpeningAt: noon(), Apply: true,
		PerMinute: 1_000_000, Parallel: 4,
	}
	return s
}

func (s *shop) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// sold is a payment that the system before us took.
func (s *shop) sold(order string, won int64) (paymentKey string) {
	s.t.Helper()
	key := s.sim.Authenticate(tosssim.Checkout{OrderID: order, OrderName: order, Amount: won})
	s.must(s.sim.Approve(key))
	return key
}

func (s *shop) canceled(key string, won int64) {
	s.t.Helper()
	_, err := s.sim.CancelInDashboard(key, won, "-")
	s.must(err)
}

func (s *shop) run(file string, changes ...func(*opening.Config)) (opening.Summary, error) {
	s.t.Helper()
	cfg := s.cfg
	for _, change := range changes {
		change(&cfg)
	}
	importer, err := opening.New(cfg)
	s.must(err)
	claims, err := opening.ReadCSV("payments.csv", []byte(file))
	s.must(err)
	return importer.Run(s.t.Context(), claims)
}

func (s *shop) number(sql string, args ...any) int {
	s.t.Helper()
	var n int
	s.must(s.db.QueryRow(s.t.Context(), sql, args...).Scan(&n))
	return n
}

// sums is a summary in short.
func sums(s opening.Summary) string {
	return fmt.Sprintf("%d = %d + %d + %d + %d", s.Read, s.Imported, s.Known, s.Rejected, s.Left)
}

func dry(c *opening.Config) { c.Apply = false }

// TestRun: what the gateway confirms is taken over with its cancels, what differs is not; a dry run says the same and
// writes nothing; again changes nothing.
func TestRun(t *testing.T) {
	t.Parallel()
	s := setup(t)
	whole, part, gone := s.sold("order-1", 10_000), s.sold("order-2", 20_000), s.sold("order-3", 30_000)
	s.canceled(part, 5_000)
	s.canceled(gone, 0)
	wrong, other, unknown := s.sold("order-4", 40_000), s.sold("order-5", 50_000), "pay_unknown"
	s.clock.Set(noon())
	later := s.sold("order-6", 60_000)
	dead := s.sim.Authenticate(tosssim.Checkout{OrderID: "order-8", OrderName: "x", Amount: 1000})
	s.must(s.sim.Abort(dead, "REJECT_CARD_PAYMENT"))
	s.clock.Advance(time.Hour)
	file := "payment_key,order_id,amount,canceled\n" +
		whole + ",order-1,10000,0\n" +
		part + `,order-2,"20,000",5000` + "\n" +
		gone + ",order-3,30000,\n" +
		wrong + ",order-4,39999,0\n" +
		other + ",order-55,50000,0\n" +
		later + ",order-6,60000,0\n" +
		unknown + ",order-7,70000,0\n" +
		part + ",order-2,20000,5000\n" +
		dead + ",order-8,1000,0\n" +
		",order-9,1,0\n" +
		whole + ",order-1\n"
	summary, err := s.run(file, dry)
	s.must(err)
	if got := sums(summary); got != "11 = 3 + 0 + 8 + 0" {
		t.Errorf("a dry run: got %s", got)
	}
	if n := s.number(`SELECT (SELECT count(*) FROM orders) + (SELECT count(*) FROM payments) + (SELECT count(*) FROM imports)`); n != 0 {
		t.Errorf("a dry run wrote %d rows", n)
	}
	for range 2 {
		summary, err = s.run(file)
		s.must(err)
	}
	if got := sums(summary); got != "11 = 0 + 3 + 8 + 0" {
		t.Errorf("the second time: got %s", got)
	}
	for line, want := range map[int]string{
		5: "amount is 40000", 6: "names order order-5", 7: "did not begin before", 8: "NOT_FOUND_PAYMENT", 9: "line 3 names the same", 10: "no money",
		11: "payment_key", 12: "2 fields, not 4",
	} {
		for _, r := range summary.Rows {
			if r.Claim.Line == line && (r.Result != opening.ResultRejected || !strings.Contains(r.Reason, want)) {
				t.Errorf("line %d: got %s %q, want %q", line, r.Result, r.Reason, want)
			}
		}
	}
	if n := s.number(`SELECT count(*) FROM import_rows WHERE result = 'imported'`); n != 3 {
		t.Errorf("%d rows are noted as imported, want 3", n)
	}
	if n := s.number(`SELECT count(*) FROM imports WHERE started_by = 'os:kim' AND ended_at IS NOT NULL`); n != 1 {
		t.Errorf("got %d imports, want one that ended", n)
	}
	if n := s.number(`SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM mismatches) + (SELECT count(*) FROM work)`); n != 0 {
		t.Errorf("the import announced, found or left %d things", n)
	}
	if n := s.number(`SELECT count(*) FROM orders WHERE created_at < $1 AND status IN ('paid', 'partially_canceled', 'canceled')`, noon()); n != 3 {
		t.Errorf("got %d orders of the past", n)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestRun_Credits: granted only where the file says so, and revoked for what is canceled, before the import and after.
func TestRun_Credits(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key, plain := s.sold("order-1", 10_000), s.sold("order-2", 10_000)
	s.canceled(key, 2_500)
	s.clock.Set(noon())
	summary, err := s.run("payment_key,order_id,amount,customer_id,credits\n" + key + ",order-1,10000,kim,100\n" + plain + ",order-2,10000,kim,\n")
	if s.must(err); summary.Imported != 2 {
		t.Fatalf("got %s: %+v", sums(summary), summary.Rows)
	}
	balance := func() int { return s.number(`SELECT balance FROM credit_accounts WHERE customer_id = 'kim'`) }
	if got := balance(); got != 75 {
		t.Errorf("got a balance of %d, want 75 of 100 after a quarter was canceled", got)
	}
	s.canceled(key, 0)
	seen, err := s.client.Recover(t.Context(), ledger.ChannelWebhook, key)
	s.must(err)
	s.tx(func(tx pgx.Tx) error {
		_, err := s.books.Record(t.Context(), tx, seen)
		return err
	})
	if got := balance(); got != 0 {
		t.Errorf("got a balance of %d after the rest was canceled", got)
	}
	if n := s.number(`SELECT count(*) FROM events WHERE kind = 'order.canceled'`); n != 2 {
		t.Errorf("got %d announcements of a cancel after the opening, want the merchant's and the customer's", n)
	}
	ledgertest.RequireSound(t, s.db)
}

// dying is a gateway client whose process dies at a question.
type dying struct {
	opening.Asker
	asked atomic.Int32
	at    int32
	die   context.CancelFunc
}

func (d *dying) Recover(ctx context.Context, channel ledger.Channel, paymentKey string) (ledger.Observation, error) {
	if d.asked.Add(1) == d.at {
		d.die()
	}
	return d.Asker.Recover(ctx, channel, paymentKey)
}

// TestRun_GoesOn: an import that stops in the middle leaves rows, names how many, and the next run takes just those.
func TestRun_GoesOn(t *testing.T) {
	t.Parallel()
	s := setup(t)
	var file strings.Builder
	file.WriteString("payment_key,order_id,amount\n")
	for n := range 20 {
		order := fmt.Sprintf("order-%d", n)
		fmt.Fprintf(&file, "%s,%s,1000\n", s.sold(order, 1000), order)
	}
	s.clock.Set(noon())
	claims, err := opening.ReadCSV("payments.csv", []byte(file.String()))
	s.must(err)
	ctx, die := context.WithCancel(t.Context())
	defer die()
	cfg := s.cfg
	cfg.Parallel, cfg.Gateway = 1, &dying{Asker: s.client, at: 8, die: die}
	importer, err := opening.New(cfg)
	s.must(err)
	summary, err := importer.Run(ctx, claims)
	if !errors.Is(err, context.Canceled) || sums(summary) != "20 = 7 + 0 + 0 + 13" {
		t.Errorf("got %s and %v", sums(summary), err)
	}
	if n := s.number(`SELECT count(*) FROM imports WHERE ended_at IS NULL`); n != 1 {
		t.Errorf("got %d imports under way", n)
	}
	refusal, asked := errors.New("the service has other settings now"), 0
	summary, err = s.run(file.String(), func(c *opening.Config) {
		c.Parallel = 1
		c.Allowed = func(context.Context, ledger.Querier) error {
			if asked++; asked > 2 {
				return refusal
			}
			return nil
		}
	})
	if !errors.Is(err, refusal) || sums(summary) != "20 = 2 + 7 + 0 + 11" {
		t.Errorf("not allowed any more: got %s and %v", sums(summary), err)
	}
	s.sim.ResetCalls()
	summary, err = s.run(file.String())
	if s.must(err); sums(summary) != "20 = 11 + 9 + 0 + 0" || s.sim.Count(tosssim.Get) != 11 {
		t.Errorf("got %s with %d questions", sums(summary), s.sim.Count(tosssim.Get))
	}
	if n := s.number(`SELECT count(*) FROM import_rows WHERE result = 'imported'`); n != 20 {
		t.Errorf("%d rows are noted as imported, want all", n)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestRun_OneAtATime: a second import declines; a payment that somebody else books meanwhile is booked once.
func TestRun_OneAtATime(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.sold("order-1", 1000)
	s.clock.Set(noon())
	file := "payment_key,order_id,amount\n" + key + ",order-1,1000\n"
	var second error
	_, err := s.run(file, func(c *opening.Config) {
		c.Gateway = asking{Asker: s.client, first: func() { _, second = s.run(file) }}
	})
	if err != nil || !errors.Is(second, opening.ErrRunning) {
		t.Errorf("got %v and, of the second, %v", err, second)
	}
	if n := s.number(`SELECT count(*) FROM captures`); n != 1 {
		t.Errorf("got %d captures", n)
	}
}

type asking struct {
	opening.Asker
	first func()
}

func (a asking) Recover(ctx context.Context, channel ledger.Channel, paymentKey string) (ledger.Observation, error) {
	a.first()
	return a.Asker.Recover(ctx, channel, paymentKey)
}

// TestRun_Unanswered: a gateway that does not answer rejects nothing; one that refuses our key ends the import at once.
func TestRun_Unanswered(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.sold("order-1", 1000)
	s.clock.Set(noon())
	file := "payment_key,order_id,amount\n" + key + ",order-1,1000\n"
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, Code: 500})
	if summary, err := s.run(file); err != nil || summary.Imported != 1 {
		t.Errorf("one failure: got %s and %v", sums(summary), err)
	}
	key = s.sold("order-2", 1000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, Code: 401, Body: `{"code":"UNAUTHORIZED_KEY","message":"-"}`, N: -1})
	summary, err := s.run("payment_key,order_id,amount\n" + key + ",order-2,1000\n")
	failure, ok := errors.AsType[*pgclient.Error](err)
	if !ok || failure.Reason != pgclient.ReasonKeyRefused || summary.Left != 1 || s.sim.Count(tosssim.Get) != 3 {
		t.Errorf("key refused: got %s and %v after %d questions", sums(summary), err, s.sim.Count(tosssim.Get))
	}
}

// TestRun_OrdersInTheWay: an order id that the books have with other terms, or for another payment, rejects the row and
// changes nothing.
func TestRun_OrdersInTheWay(t *testing.T) {
	t.Parallel()
	s := setup(t)
	first, second, third := s.sold("order-1", 1000), s.sold("order-1", 1000), s.sold("order-2", 1000)
	foreign := s.sold("other-1", 1000)
	s.clock.Set(noon())
	s.tx(func(tx pgx.Tx) error {
		_, err := s.books.CreateOrder(t.Context(), tx, ledger.Order{ID: "order-2", Amount: ledger.Won(2000), ExpiresAt: noon()})
		return err
	})
	file := "payment_key,order_id,amount\n" + first + ",order-1,1000\n" + second + ",order-1,1000\n" + third + ",order-2,1000\n" + foreign + ",other-1,1000\n"
	for _, apply := range []bool{false, true} {
		summary, err := s.run(file, func(c *opening.Config) { c.Apply, c.OurOrders = apply, regexp.MustCompile(`^order-`) })
		if s.must(err); sums(summary) != "4 = 1 + 0 + 3 + 0" || summary.Rows[0].Result != opening.ResultImported {
			t.Errorf("apply %t: got %s: %+v", apply, sums(summary), summary.Rows)
		}
		if got := summary.Rows[1].Reason; !strings.Contains(got, ledger.ErrOrderTaken.Error()) {
			t.Errorf("apply %t: the second payment of the order is rejected because %q", apply, got)
		}
	}
	if n := s.number(`SELECT count(*) FROM payments`) + s.number(`SELECT count(*) FROM mismatches`); n != 1 {
		t.Errorf("got %d payments and mismatches, want the one payment", n)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestFromMirror takes over what the list shows before the opening, once.
func TestFromMirror(t *testing.T) {
	t.Parallel()
	s := setup(t)
	old := s.sold("order-1", 1000)
	s.canceled(old, 300)
	s.clock.Set(noon())
	young := s.sold("order-2", 2000)
	for key, at := range map[string]time.Time{old: noon().Add(-24 * time.Hour), young: noon(), "pay-foreign": noon().Add(-time.Hour)} {
		_, err := s.db.Exec(t.Context(), `
			INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, is_foreign, first_seen_at, last_seen_at, first_run)
			VALUES ('t' || $1, $1, $2, 'capture', 'DONE', 'KRW', 1000, false, $3, '2026-11-29', $4, $3, $3, 1)`,
			key, map[string]string{old: "order-1", young: "order-2"}[key], at, key == "pay-foreign")
		s.must(err)
	}
	for _, want := range []string{"1 = 1 + 0 + 0 + 0", "0 = 0 + 0 + 0 + 0"} {
		claims, err := opening.FromMirror(t.Context(), s.db, time.Unix(0, 0), noon().Add(time.Hour), noon())
		s.must(err)
		importer, err := opening.New(s.cfg)
		s.must(err)
		summary, err := importer.Run(t.Context(), claims)
		if s.must(err); sums(summary) != want {
			t.Errorf("got %s, want %s: %+v", sums(summary), want, summary.Rows)
		}
	}
	ledgertest.RequireSound(t, s.db)
}

// TestFromMirror_GoesOn: an import of a stretch that stopped in the middle goes on as the same import, each payment with a
// note of its own, also when the list has shown more meanwhile.
func TestFromMirror_GoesOn(t *testing.T) {
	t.Parallel()
	s := setup(t)
	listed := func(order string) {
		t.Helper()
		_, err := s.db.Exec(t.Context(), `
			INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
			VALUES ('t' || $1, $1, $2, 'capture', 'DONE', 'KRW', 1000, false, $3, '2026-11-29', $3, $3, 1)`,
			s.sold(order, 1000), order, noon().Add(-24*time.Hour))
		s.must(err)
	}
	run := func(ctx context.Context, asker opening.Asker) string {
		t.Helper()
		claims, err := opening.FromMirror(ctx, s.db, time.Unix(0, 0), noon(), noon())
		s.must(err)
		cfg := s.cfg
		cfg.Parallel, cfg.Gateway = 1, asker
		importer, err := opening.New(cfg)
		s.must(err)
		summary, err := importer.Run(ctx, claims)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		return sums(summary)
	}
	for n := range 4 {
		listed(fmt.Sprintf("order-%d", n))
	}
	ctx, die := context.WithCancel(t.Context())
	defer die()
	if got := run(ctx, &dying{Asker: s.client, at: 3, die: die}); got != "4 = 2 + 0 + 0 + 2" {
		t.Errorf("stopped: got %s", got)
	}
	listed("order-4")
	if got := run(t.Context(), s.client); got != "3 = 3 + 0 + 0 + 0" {
		t.Errorf("again: got %s", got)
	}
	if n := s.number(`SELECT count(*) FROM imports WHERE rows = 5 AND ended_at IS NOT NULL`); n != 1 || s.number(`SELECT count(*) FROM imports`) != 1 {
		t.Errorf("got %d imports of 5 rows that ended, want just the one", n)
	}
	if n := s.number(`SELECT count(*) FROM import_rows r JOIN payments p USING (payment_key) WHERE r.result = 'imported'`); n != 5 {
		t.Errorf("%d payments are noted as imported, want 5", n)
	}
	ledgertest.RequireSound(t, s.db)
}

func (s *shop) tx(fn func(tx pgx.Tx) error) {
	s.t.Helper()
	s.must(postgres.InTx(s.t.Context(), s.db, fn))
}

// TestRun_BesideAudit: an import takes hours, and the audit of each minute goes on meanwhile.
func TestRun_BesideAudit(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.sold("order-1", 10_000)
	s.clock.Set(noon().Add(time.Hour))
	r, err := reconcile.New(reconcile.Config{
		DB: s.db, Ledger: s.books, Gateway: s.client, Metrics: reconcile.NewMetrics(prometheus.NewRegistry()),
		Log: slog.New(slog.DiscardHandler), Now: s.clock.Now, OpeningAt: noon(),
	})
	s.must(err)
	audits := 0
	_, err = s.run("payment_key,order_id,amount\n"+key+",order-1,10000\n", func(c *opening.Config) {
		c.Gateway = asking{Asker: c.Gateway, first: func() {
			if _, err := r.Auditor.Run(t.Context(), reconcile.Scope{Name: reconcile.ScopeRecent}); err != nil {
				t.Errorf("no audit beside the import: %v", err)
			}
			audits++
		}}
	})
	s.must(err)
	if audits != 1 {
		t.Errorf("%d audits", audits)
	}
}
