package report

import (
	"context"
	"flag"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/reconcile"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing them")

func TestMain(m *testing.M) { postgrestest.Run(m) }

// silent tells nobody.
type silent struct{}

func (silent) Notify(context.Context, *pgx.Batch, []ledger.Announcement) error { return nil }

// shop is books with a clock that the test moves.
type shop struct {
	t       *testing.T
	db      *pgxpool.Pool
	now     time.Time
	books   *ledger.Ledger
	auditor *reconcile.Auditor
	*Reporter
}

// noon is a Monday in Seoul.
func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, ledger.Seoul()) }

func open(t *testing.T, db *pgxpool.Pool) *shop {
	t.Helper()
	s := &shop{t: t, db: db, now: noon()}
	clock := func() time.Time { return s.now }
	var err error
	s.books, err = ledger.New(ledger.Config{Notify: silent{}, Metrics: ledger.NewMetrics(prometheus.NewRegistry()), Now: clock})
	s.must(err)
	s.auditor, err = reconcile.NewAuditor(reconcile.Config{
		DB: db, Metrics: reconcile.NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler), Now: clock,
		OpeningAt: noon().Add(-24 * time.Hour),
	})
	s.must(err)
	s.Reporter, err = New(Config{DB: db, Auditor: s.auditor, Now: clock})
	s.must(err)
	return s
}

func (s *shop) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) exec(sql string, args ...any) {
	s.t.Helper()
	_, err := s.db.Exec(s.t.Context(), sql, args...)
	s.must(err)
}

func (s *shop) tx(fn func(tx pgx.Tx) error) {
	s.t.Helper()
	s.must(postgres.InTx(s.t.Context(), s.db, fn))
}

// pass lets time go by.
func (s *shop) pass(d time.Duration) { s.now = s.now.Add(d) }

// sold is an order that was paid, and that the gateway's list shows.
func (s *shop) sold(order, key, name string, amount ledger.Money, credits int64) {
	s.t.Helper()
	s.sent(order, key, name, amount, credits)
	seen := s.captured(order, key, amount)
	seen.Attempt = 1
	s.record(seen)
	s.listed("tx_"+key, key, order, "capture", "DONE", amount)
	s.pass(400 * time.Millisecond)
}

// sent is an order whose payment was sent to the gateway.
func (s *shop) sent(order, key, name string, amount ledger.Money, credits int64) {
	s.t.Helper()
	s.pass(350 * time.Millisecond)
	s.tx(func(tx pgx.Tx) error {
		_, err := s.books.CreateOrder(s.t.Context(), tx, ledger.Order{
			ID: order, Amount: amount, Name: name, Credits: credits, CustomerID: "kim-cheolsu", ExpiresAt: s.now.Add(30 * time.Minute),
		})
		return err
	})
	s.pass(50 * time.Millisecond)
	s.tx(func(tx pgx.Tx) error {
		_, err := s.books.Intend(s.t.Context(), tx, ledger.Intent{PaymentKey: key, OrderID: order, Amount: amount})
		return err
	})
	s.pass(200 * time.Millisecond)
}

// captured is what the gateway says about a payment with these cancels.
func (s *shop) captured(order, key string, amount ledger.Money, cancels ...ledger.ObservedCancel) ledger.Observation {
	o := ledger.Observation{
		PaymentKey: key, OrderID: order, Channel: ledger.ChannelConfirm, Evidence: ledger.EvidenceCaptured, AskedAt: s.now, SeenAt: s.now,
		Word: "DONE", Method: "카드", Total: amount, Balance: amount, LastTransactionKey: "tx_" + key, CapturedAt: s.now.Truncate(time.Second), Cancels: cancels,
	}
	for _, c := range cancels {
		o.Channel, o.LastTransactionKey = ledger.ChannelWebhook, c.TransactionKey
		o.Balance.Minor -= c.Amount.Minor
	}
	return o
}

// canceled is a finished cancel at the gateway, which its list shows.
func (s *shop) canceled(transactionKey, key, order string, amount ledger.Money) ledger.ObservedCancel {
	s.t.Helper()
	s.listed(transactionKey, key, order, "cancel", "PARTIAL_CANCELED", amount)
	return ledger.ObservedCancel{
		TransactionKey: transactionKey, State: ledger.CancelDone, Amount: amount, CanceledAt: s.now.Truncate(time.Second), Reason: "=1+1 고객 변심 김철수",
	}
}

func (s *shop) record(o ledger.Observation) {
	s.t.Helper()
	s.tx(func(tx pgx.Tx) error {
		_, err := s.books.Record(s.t.Context(), tx, o)
		return err
	})
}

// listed puts a row into the mirror, read a little later.
func (s *shop) listed(transactionKey, key, order, kind, word string, amount ledger.Money) {
	s.t.Helper()
	s.exec(`
		INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
		VALUES ($1, $2, $3, $4, $5, $6, $7, false, $8, $9::date, $10, $10, 1)`,
		transactionKey, key, order, kind, word, amount.Currency, amount.Minor, s.now.Truncate(time.Second), string(ledger.DayOf(s.now)), s.now.Add(40*time.Second))
}

// notice stores a delivery as the handler does.
func (s *shop) notice(key, order, outcome string, retried, status int) {
	s.t.Helper()
	s.exec(`
		INSERT INTO deliveries (received_at, retried_count, sent_at, source, event_type, word, payment_key, order_id, body, body_hash, body_bytes,
			outcome, reason, status, answered_at, query_ms)
		VALUES ($1, $2, $3, '192.0.2.7', 'PAYMENT_STATUS_CHANGED', 'PARTIAL_CANCELED', $4, $5, '{"data": {"cancelReason": "***"}}', 'x', 90,
			$6, CASE WHEN $7 = 502 THEN 'timeout' ELSE '' END, $7, $8, 12)`,
		s.now, retried, s.now.Truncate(time.Second), key, order, outcome, status, s.now.Add(31*time.Millisecond))
}

// claim opens work as the handler does for a notice that could not be applied.
func (s *shop) claim(key, transactionKey string, kind ledger.WorkKind, attempt int, amount ledger.Money) {
	s.t.Helper()
	s.tx(func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		ledger.QueueWork(b, ledger.Work{
			Kind: kind, PaymentKey: key, TransactionKey: transactionKey, AtRisk: amount, DueAt: s.now, Deadline: s.now.Add(91*time.Hour + 16*time.Minute),
		}, s.now)
		return tx.SendBatch(s.t.Context(), b).Close()
	})
	s.exec(`UPDATE work SET notice_failed_at = $1, notice_attempt = $2, notice_next_at = $3 WHERE transaction_key = $4`,
		s.now, attempt, s.now.Add(16*time.Hour), transactionKey)
}

// day plays a business day with something on every line that a closed day can have, and closes it.
func (s *shop) day() {
	s.t.Helper()
	won := ledger.Won
	name := hostile(s.t)[0].Text

	// An order with a long story: a cancel of ours and one from the dashboard, whose notice failed at first.
	s.sold("order-0001", "pay_0001", name, won(50_000), 50)
	s.pass(time.Minute)
	s.tx(func(tx pgx.Tx) error {
		amount := won(12_000)
		_, err := s.books.RequestCancel(s.t.Context(), tx, ledger.CancelOrder{
			RequestID: "can_0001", PaymentKey: "pay_0001", Amount: &amount, Reason: "=cmd|' /C calc'!A0 김철수", RequestedBy: "back-office",
		})
		return err
	})
	s.pass(300 * time.Millisecond)
	ours := s.canceled("cx_0001", "pay_0001", "order-0001", won(12_000))
	s.tx(func(tx pgx.Tx) error {
		if _, err := s.books.Record(s.t.Context(), tx, s.captured("order-0001", "pay_0001", won(50_000), ours)); err != nil {
			return err
		}
		return s.books.SettleCancelRequest(s.t.Context(), tx, "can_0001", ledger.CancelAnswer{
			Status: ledger.CancelRequestDone, TransactionKey: "cx_0001", Word: "PARTIAL_CANCELED",
		})
	})
	s.pass(time.Minute)
	theirs := s.canceled("cx_0002", "pay_0001", "order-0001", won(10_000))
	s.claim("pay_0001", "cx_0002", ledger.WorkCancelClaimed, 0, won(10_000))
	s.notice("pay_0001", "order-0001", "query_failed", 0, 502)
	s.tx(func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		ledger.QueueMismatch(b, ledger.Finding{
			Kind: ledger.KindCancelMissingHere, PaymentKey: "pay_0001", OrderID: "order-0001", TransactionKey: "cx_0002", AtRisk: won(10_000),
			Detail: "the gateway lists a cancel that is not in our books, and nobody is asking about it",
		}, s.now)
		return tx.SendBatch(s.t.Context(), b).Close()
	})
	s.pass(time.Minute)
	s.record(s.captured("order-0001", "pay_0001", won(50_000), ours, theirs))
	s.notice("pay_0001", "order-0001", "applied_partial", 1, 200)
	s.exec(`UPDATE events SET attempts = 2, last_answer = '200', delivered_at = $1 WHERE order_id = 'order-0001' AND kind = 'order.paid'`, s.now)
	s.exec(`
		INSERT INTO river.river_job (args, attempt, created_at, kind, max_attempts, queue, state, scheduled_at, finalized_at, attempted_at)
		SELECT jsonb_build_object('event_id', event_id), 2, created_at, 'deliver_event', 30, 'events', 'completed', created_at, delivered_at, delivered_at
		FROM events WHERE delivered_at IS NOT NULL`)

	// Dollars and cents.
	s.sold("order-usd1", "pay_usd1", "+82-10-0000-0000", ledger.Money{Minor: 72_624, Currency: ledger.USD}, 0)
	s.pass(time.Minute)
	cents := s.canceled("cx_usd1", "pay_usd1", "order-usd1", ledger.Money{Minor: 5, Currency: ledger.USD})
	s.record(s.captured("order-usd1", "pay_usd1", ledger.Money{Minor: 72_624, Currency: ledger.USD}, cents))

	// A cancel that is owed, one that nobody asks about, one of another amount, a confirm whose reply was lost, and money for
	// an order of nobody's.
	s.sold("order-0003", "pay_0003", "정상 이름", won(30_000), 0)
	s.canceled("cx_0003", "pay_0003", "order-0003", won(30_000))
	s.claim("pay_0003", "cx_0003", ledger.WorkCancelListed, 2, won(30_000))
	s.sold("order-0004", "pay_0004", "정상 이름", won(40_000), 0)
	s.canceled("cx_0004", "pay_0004", "order-0004", won(4_000))
	s.sold("order-0005", "pay_0005", "정상 이름", won(50_000), 0)
	s.record(s.captured("order-0005", "pay_0005", won(50_000), s.canceled("cx_0005", "pay_0005", "order-0005", won(5_000))))
	s.sent("order-0006", "pay_0006", "정상 이름", won(60_000), 0)
	s.record(ledger.Observation{PaymentKey: "pay_0006", Channel: ledger.ChannelConfirm, Evidence: ledger.EvidenceLost, Attempt: 1, AskedAt: s.now, SeenAt: s.now, Word: "timeout"})
	s.listed("tx_pay_0006", "pay_0006", "order-0006", "capture", "DONE", won(60_000))
	s.listed("tx_nobody", "pay_nobody", "20261130000001", "capture", "DONE", won(9_900))

	s.read()
	s.now = ledger.Day("2026-12-01").Start().Add(20 * time.Minute)
	s.close("2026-11-30")

	// Somebody signs it, and then the gateway's list has another amount.
	s.exec(`INSERT INTO day_signoffs (day, signed_by, signed_at, run_id, digest, facts, note)
		SELECT day, 'os:kim', $1, run_id, digest, facts, '=agreed by phone' FROM audit_runs WHERE day = '2026-11-30'`, s.now.Add(time.Minute))
	s.exec(`UPDATE mirror SET amount = 5500 WHERE transaction_key = 'cx_0005'`)
	s.pass(5 * time.Minute)
	s.close("2026-11-30")
}

// read is a list that was read completely for the day and those beside it.
func (s *shop) read() {
	s.t.Helper()
	s.exec(`INSERT INTO list_runs (reason, window_from, window_to, started_at, ended_at, result) VALUES ('poll', $1, $2, $2, $2, 'complete')`,
		noon().Add(-25*time.Hour), noon().Add(48*time.Hour))
	s.exec(`INSERT INTO list_covered (stretches) VALUES (tstzmultirange(tstzrange($1, $2, '[]')))`, noon().Add(-25*time.Hour), noon().Add(48*time.Hour))
}

// close audits a day as the service does.
func (s *shop) close(day ledger.Day) reconcile.Statement {
	s.t.Helper()
	statement, err := s.auditor.Close(s.t.Context(), day)
	s.must(err)
	return statement
}
