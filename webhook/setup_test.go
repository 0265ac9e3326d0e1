package webhook_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
	"daesa/webhook"
)

func TestMain(m *testing.M) { postgrestest.Run(m) }

// start is when every test begins: an ordinary Wednesday morning in Seoul.
var start = time.Date(2026, 4, 15, 1, 0, 0, 0, time.UTC)

// tellArgs is the job that the ledger's announcements become here.
type tellArgs struct {
	Event string `json:"event"`
}

// Kind names the job.
func (tellArgs) Kind() string { return "tell_of_event" }

// quietDriver leaves out the notification of an insert, a round trip of its own: workers look by themselves.
type quietDriver struct{ *riverpgxv5.Driver }

// SupportsListenNotify says no.
func (quietDriver) SupportsListenNotify() bool { return false }

// SupportsListener agrees.
func (quietDriver) SupportsListener() bool { return false }

// teller inserts one job for each announcement, by one statement.
type teller struct{ jobs *river.Client[pgx.Tx] }

// Notify hands the announcements on.
func (n teller) Notify(ctx context.Context, b *pgx.Batch, announcements []ledger.Announcement) error {
	params := make([]river.InsertManyParams, 0, len(announcements))
	for _, a := range announcements {
		params = append(params, river.InsertManyParams{Args: tellArgs{Event: a.ID}})
	}
	_, err := n.jobs.InsertManyFastTx(ctx, postgres.CopyInto(b), params)
	return err
}

// logBook keeps what was logged.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds a line.
func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is everything so far.
func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// shop is a merchant with its gateway.
type shop struct {
	db      *pgxpool.Pool
	meter   *postgrestest.Meter
	books   *ledger.Ledger
	sim     *tosssim.Sim
	clock   *tosssim.ManualClock
	gateway *pgclient.Client
	handler *webhook.Handler
	reg     *prometheus.Registry
	logs    *logBook
	url     string
	client  *http.Client
}

// options change what a shop is made of.
type options struct {
	db       *pgxpool.Pool // nil: a database of the test's own
	handlers *pgxpool.Pool // nil: the same pool; otherwise the one the handler uses
	sim      func(*tosssim.Config)
	paths    pgclient.Paths
	config   func(*webhook.Config)
	notify   ledger.Notifier
}

// open makes a shop.
func open(tb testing.TB, o options) *shop {
	tb.Helper()
	s := &shop{clock: tosssim.NewManualClock(start), reg: prometheus.NewPedanticRegistry(), logs: &logBook{}}
	if s.db = o.db; s.db == nil {
		s.db, s.meter = postgrestest.NewMetered(tb)
	}
	tb.Cleanup(func() { // before the pool is closed
		if !tb.Failed() {
			ledgertest.RequireSound(tb, s.db)
		}
	})
	log := slog.New(slog.NewTextHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.openGateway(tb, o, log)
	if o.notify == nil {
		jobs, err := river.NewClient(quietDriver{riverpgxv5.New(s.db)}, &river.Config{Schema: "river", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			tb.Fatal(err)
		}
		o.notify = teller{jobs}
	}
	var err error
	s.books, err = ledger.New(ledger.Config{Notify: o.notify, Metrics: ledger.NewMetrics(s.reg), Now: s.clock.Now})
	if err != nil {
		tb.Fatal(err)
	}
	cfg := webhook.Config{
		DB: s.db, Ledger: s.books, Gateway: s.gateway, Metrics: webhook.NewMetrics(s.reg), Log: log, Now: s.clock.Now,
	}
	if o.handlers != nil {
		cfg.DB = o.handlers
	}
	if o.config != nil {
		o.config(&cfg)
	}
	if s.handler, err = webhook.New(cfg); err != nil {
		tb.Fatal(err)
	}
	s.serve(tb, log)
	return s
}

func (s *shop) openGateway(tb testing.TB, o options, log *slog.Logger) {
	tb.Helper()
	cfg := tosssim.Config{Clock: s.clock}
	if o.sim != nil {
		o.sim(&cfg)
	}
	s.sim = tosssim.New(cfg)
	s.sim.SetDelivery(tosssim.DeliveryPlan{Hold: true})
	server := httptest.NewServer(s.sim.Handler())
	tb.Cleanup(func() {
		s.sim.Close()
		server.Close()
	})
	var err error
	s.gateway, err = pgclient.New(pgclient.Config{
		BaseURL: server.URL, SecretKey: "test_sk_simulator", SecurityKey: securityKey, Paths: o.paths,
		Metrics: pgclient.NewMetrics(s.reg), Log: log, Now: s.clock.Now,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.gateway.Close)
}

// securityKey signs what is signed.
const securityKey = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// serve runs the handler behind the adapter that the service uses.
func (s *shop) serve(tb testing.TB, log *slog.Logger) {
	tb.Helper()
	problems, err := web.NewProblems(refusals())
	if err != nil {
		tb.Fatal(err)
	}
	adapter, err := web.New(web.Config{Problems: problems, Log: log})
	if err != nil {
		tb.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhooks/toss", adapter.Handle(s.handler.Receive))
	server := httptest.NewServer(mux)
	s.client = server.Client()
	tb.Cleanup(server.Close)
	s.url = server.URL + "/webhooks/toss"
	s.sim.SetWebhookURL(s.url)
}

func refusals() []web.ProblemRow {
	return []web.ProblemRow{
		{Err: webhook.ErrBodyUnparsable, Status: 400, Code: "body_unparsable", Title: "Not a notice"},
		{Err: webhook.ErrSignatureRejected, Status: 401, Code: "signature_rejected", Title: "Not from the gateway"},
		{Err: webhook.ErrPaymentNotFound, Status: 404, Code: "payment_not_found", Title: "Payment never seen"},
		{Err: webhook.ErrQueryFailed, Status: 502, Code: "query_failed", Title: "Gateway not reached"},
		{Err: webhook.ErrStateMismatch, Status: 409, Code: "state_mismatch", Title: "Not confirmed"},
		{Err: webhook.ErrApplyFailed, Status: 500, Code: "apply_failed", Title: "Refused by the books"},
		{Err: webhook.ErrDBFailed, Status: 503, Code: "db_failed", Title: "Not recorded"},
	}
}

// order creates an order whose payment the buyer has authenticated, and returns the payment's key.
func (s *shop) order(tb testing.TB, orderID string, amount int64, method tosssim.Method) (paymentKey string) {
	tb.Helper()
	err := postgres.InTx(tb.Context(), s.db, func(tx pgx.Tx) error {
		_, err := s.books.CreateOrder(tb.Context(), tx, ledger.Order{
			ID: orderID, Amount: ledger.Won(amount), CustomerID: "customer-1", Credits: 100, Name: "시험 상품",
			ExpiresAt: s.clock.Now().Add(30 * time.Minute),
		})
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return s.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: amount, Method: method})
}

// intend commits the intent to confirm.
func (s *shop) intend(tb testing.TB, orderID, paymentKey string, amount int64) ledger.Intended {
	tb.Helper()
	var intended ledger.Intended
	err := postgres.InTx(tb.Context(), s.db, func(tx pgx.Tx) (err error) {
		intended, err = s.books.Intend(tb.Context(), tx, ledger.Intent{PaymentKey: paymentKey, OrderID: orderID, Amount: ledger.Won(amount)})
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return intended
}

// paid is an order that is paid at the gateway and in the books.
func (s *shop) paid(tb testing.TB, orderID string, amount int64) (paymentKey string) {
	tb.Helper()
	return s.paidBy(tb, orderID, amount, tosssim.Card)
}

func (s *shop) paidBy(tb testing.TB, orderID string, amount int64, method tosssim.Method) (paymentKey string) {
	tb.Helper()
	key := s.order(tb, orderID, amount, method)
	s.intend(tb, orderID, key, amount)
	if err := s.sim.Approve(key); err != nil {
		tb.Fatal(err)
	}
	s.learn(tb, key, ledger.ChannelConfirm)
	return key
}

// learn asks the gateway and records the answer, as another channel does.
func (s *shop) learn(tb testing.TB, paymentKey string, channel ledger.Channel) ledger.Recorded {
	tb.Helper()
	seen, err := s.gateway.Recover(tb.Context(), channel, paymentKey)
	if err != nil {
		tb.Fatal(err)
	}
	var recorded ledger.Recorded
	err = postgres.InTx(tb.Context(), s.db, func(tx pgx.Tx) (err error) {
		recorded, err = s.books.Record(tb.Context(), tx, seen)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return recorded
}

// cancel cancels at the gateway and returns the transaction key and the notice's body.
func (s *shop) cancel(tb testing.TB, paymentKey string, amount int64) (transactionKey string, notice []byte) {
	tb.Helper()
	key, err := s.sim.CancelInDashboard(paymentKey, amount, "고객 변심")
	if err != nil {
		tb.Fatal(err)
	}
	return key, s.lastNotice(tb)
}

// lastNotice is the body of the newest notice of the gateway.
func (s *shop) lastNotice(tb testing.TB) []byte {
	tb.Helper()
	notices := s.sim.Notices()
	if len(notices) == 0 {
		tb.Fatal("the gateway has no notice")
	}
	return notices[len(notices)-1].Body
}

// answer is what the sender sees.
type answer struct {
	status  int
	outcome string
	body    string
}

// send posts a notice as the gateway does.
func (s *shop) send(tb testing.TB, body []byte) answer {
	tb.Helper()
	return s.sendWith(tb, bytes.NewReader(body), map[string]string{"Content-Type": "application/json"})
}

func (s *shop) sendWith(tb testing.TB, body io.Reader, headers map[string]string) answer {
	tb.Helper()
	got, err := s.post(tb.Context(), body, headers)
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

func (s *shop) post(ctx context.Context, body io.Reader, headers map[string]string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, body)
	if err != nil {
		return answer{}, err
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	got := answer{status: response.StatusCode, body: string(text)}
	if _, rest, ok := strings.Cut(got.body, `"outcome":"`); ok {
		got.outcome, _, _ = strings.Cut(rest, `"`)
	}
	return got, nil
}

// want fails the test unless the answer is this one.
func (a answer) want(tb testing.TB, status int, outcome webhook.Outcome) {
	tb.Helper()
	if a.status != status || a.outcome != string(outcome) {
		tb.Fatalf("got %d %s (%s), want %d %s", a.status, a.outcome, a.body, status, outcome)
	}
}

// payment reads a payment from the books.
func (s *shop) payment(tb testing.TB, paymentKey string) ledger.Payment {
	tb.Helper()
	p, _, err := ledger.Load(tb.Context(), s.db, paymentKey)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// wantBooks fails the test unless the payment stands so.
func (s *shop) wantBooks(tb testing.TB, paymentKey string, status ledger.Status, canceled int64, cancels int) {
	tb.Helper()
	p := s.payment(tb, paymentKey)
	if p.Status != status || p.Canceled() != ledger.Won(canceled) || len(p.Cancels) != cancels {
		tb.Fatalf("got %s with %d cancels of %s, want %s with %d of %d", p.Status, len(p.Cancels), p.Canceled(), status, cancels, canceled)
	}
}

// counted is the value of an outcome's counter.
func (s *shop) counted(tb testing.TB, metric string, labels ...string) int {
	tb.Helper()
	families, err := s.reg.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, m := range family.GetMetric() {
			values := make([]string, 0, len(labels))
			for _, label := range m.GetLabel() {
				values = append(values, label.GetValue())
			}
			if strings.Join(values, ",") == strings.Join(labels, ",") {
				if m.GetHistogram() != nil {
					return int(m.GetHistogram().GetSampleCount())
				}
				return int(m.GetCounter().GetValue())
			}
		}
	}
	tb.Fatalf("there is no %s%v", metric, labels)
	return 0
}

// one reads one row of one value.
func one[T any](tb testing.TB, db *pgxpool.Pool, sql string, args ...any) T {
	tb.Helper()
	rows, err := db.Query(tb.Context(), sql, args...)
	if err != nil {
		tb.Fatal(err)
	}
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return value
}

// text reads rows of one text each.
func text(tb testing.TB, db *pgxpool.Pool, sql string, args ...any) []string {
	tb.Helper()
	rows, err := db.Query(tb.Context(), sql, args...)
	if err != nil {
		tb.Fatal(err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return values
}

// work lists the open work: kind, cancel, due and deadline as distances from now.
func (s *shop) work(tb testing.TB) []string {
	tb.Helper()
	return text(tb, s.db, `
		SELECT format('%s %s due %s deadline %s', kind, COALESCE(transaction_key, '-'), due_at - $1, deadline - $1)
		FROM work WHERE closed_at IS NULL ORDER BY kind, transaction_key`, s.clock.Now())
}
