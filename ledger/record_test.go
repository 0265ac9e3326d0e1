package ledger_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

// heard is a Notifier that keeps what it was told, by several at once as well.
type heard struct {
	mu  sync.Mutex
	all []ledger.Announcement
}

func (h *heard) Notify(_ context.Context, _ *pgx.Batch, a []ledger.Announcement) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, a...)
	return nil
}

type books struct {
	t      *testing.T
	pool   *pgxpool.Pool
	ledger *ledger.Ledger
	heard  *heard
	now    time.Time
}

func open(t *testing.T) *books {
	t.Helper()
	b := &books{t: t, pool: postgrestest.New(t), heard: &heard{}, now: time.Date(2026, 5, 1, 3, 0, 0, 0, time.UTC)}
	l, err := ledger.New(ledger.Config{
		Notify: b.heard, Metrics: ledger.NewMetrics(prometheus.NewPedanticRegistry()), Now: func() time.Time { return b.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.ledger = l
	return b
}

func (b *books) order(id string, amount, credits int64) {
	b.t.Helper()
	b.do(func(tx pgx.Tx) error {
		_, err := b.ledger.CreateOrder(b.t.Context(), tx, ledger.Order{
			ID: id, Amount: ledger.Won(amount), CustomerID: "cus_1", Credits: credits, ExpiresAt: b.now.Add(30 * time.Minute),
		})
		return err
	})
}

func (b *books) intend(key, order string, amount int64) ledger.Intended {
	b.t.Helper()
	var in ledger.Intended
	b.do(func(tx pgx.Tx) (err error) {
		in, err = b.ledger.Intend(b.t.Context(), tx, ledger.Intent{PaymentKey: key, OrderID: order, Amount: ledger.Won(amount)})
		return err
	})
	return in
}

func (b *books) record(o ledger.Observation) ledger.Recorded {
	b.t.Helper()
	var r ledger.Recorded
	b.do(func(tx pgx.Tx) (err error) {
		r, err = b.ledger.Record(b.t.Context(), tx, o)
		return err
	})
	return r
}

func (b *books) do(fn func(pgx.Tx) error) {
	b.t.Helper()
	if err := postgres.InTx(b.t.Context(), b.pool, fn); err != nil {
		b.t.Fatal(err)
	}
}

func (b *books) captured(key, order string, amount int64, cancels ...ledger.ObservedCancel) ledger.Observation {
	o := ledger.Observation{
		PaymentKey: key, OrderID: order, Channel: ledger.ChannelWebhook, Evidence: ledger.EvidenceCaptured,
		AskedAt: b.now, SeenAt: b.now, Word: "DONE", Total: ledger.Won(amount), Balance: ledger.Won(amount),
		LastTransactionKey: "tx_" + key, CapturedAt: b.now, Cancels: cancels,
	}
	for _, c := range cancels {
		if c.State == ledger.CancelDone {
			o.Balance.Minor -= c.Amount.Minor
		}
		o.LastTransactionKey = c.TransactionKey
	}
	return o
}

func done(key string, amount int64) ledger.ObservedCancel {
	return ledger.ObservedCancel{TransactionKey: key, State: ledger.CancelDone, Amount: ledger.Won(amount)}
}

func TestRecord_CaptureThenTwoPartialCancelsToZero(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 7)
	if in := b.intend("pk_1", "order_1", 50_000); !in.Started || in.Payment.Attempt != 1 {
		t.Fatalf("got %+v, want a started first attempt", in)
	}
	if r := b.record(b.captured("pk_1", "order_1", 50_000)); r.Outcome != ledger.OutcomeApplied || r.After.Status != ledger.StatusDone {
		t.Fatalf("got %s %s, want applied done", r.Outcome, r.After.Status)
	}
	r := b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 12_000)))
	if len(r.Applied) != 1 || r.After.Status != ledger.StatusPartiallyCanceled || r.Order.Status != ledger.OrderPartiallyCanceled {
		t.Fatalf("got %+v, want one applied part", r)
	}
	r = b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 12_000), done("c2", 38_000)))
	if len(r.Applied) != 1 || r.After.Status != ledger.StatusCanceled || !r.After.Balance().IsZero() {
		t.Fatalf("got %+v, want the rest applied", r)
	}
	if r.After.CreditsRevoked != 7 {
		t.Errorf("got %d credits revoked, want 7", r.After.CreditsRevoked)
	}
	if again := b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 12_000), done("c2", 38_000))); again.Outcome != ledger.OutcomeUnchanged {
		t.Errorf("got %s, want unchanged", again.Outcome)
	}
	if stale := b.record(b.captured("pk_1", "order_1", 50_000)); stale.Outcome != ledger.OutcomeUnchanged {
		t.Errorf("got %s for an old answer, want unchanged", stale.Outcome)
	}
	if got, want := len(b.heard.all), 1+2+2; got != want {
		t.Errorf("got %d announcements, want %d", got, want)
	}
	ledgertest.RequireSound(t, b.pool)
}
