package seal_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/ledger/seal"
)

// shop is books with a clock, a key and a witness file.
type shop struct {
	t       *testing.T
	db      *pgxpool.Pool
	ledger  *ledger.Ledger
	now     time.Time
	keyFile string
	heads   string
	key     *seal.Key
	metrics *prometheus.Registry
	count   int
	shown   map[string]ledger.Observation

	oldKeys       []ed25519.PublicKey
	databaseAhead time.Duration
}

// quiet is told what happened and tells nobody.
type quiet struct{}

// Notify tells nobody.
func (quiet) Notify(context.Context, *pgx.Batch, []ledger.Announcement) error { return nil }

// open is a shop on the morning of 1 May 2026 in Seoul.
func open(t *testing.T) *shop {
	t.Helper()
	return openOn(t, postgrestest.New(t))
}

func openOn(t *testing.T, db *pgxpool.Pool) *shop {
	t.Helper()
	s := &shop{t: t, db: db, now: time.Date(2026, 5, 1, 1, 0, 0, 0, time.UTC), shown: make(map[string]ledger.Observation)}
	l, err := ledger.New(ledger.Config{
		Notify: quiet{}, Metrics: ledger.NewMetrics(prometheus.NewPedanticRegistry()), Now: func() time.Time { return s.now },
	})
	s.must(err)
	s.ledger = l
	s.keyFile = filepath.Join(t.TempDir(), "seal.pem")
	s.heads = s.keyFile + ".heads"
	s.key, err = seal.GenerateKey(s.keyFile)
	s.must(err)
	return s
}

func (s *shop) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) do(fn func(pgx.Tx) error) {
	s.t.Helper()
	s.must(postgres.InTx(s.t.Context(), s.db, fn))
}

// sealer seals with the shop's key and witness.
func (s *shop) sealer() *seal.Sealer {
	s.t.Helper()
	return s.sealerOn(s.db, s.key, s.heads)
}

func (s *shop) sealerOn(db *pgxpool.Pool, key *seal.Key, heads string) *seal.Sealer {
	s.t.Helper()
	s.metrics = prometheus.NewPedanticRegistry()
	sealer, err := seal.New(seal.Config{
		DB: db, Metrics: seal.NewMetrics(s.metrics), Log: slog.New(slog.DiscardHandler),
		Now:         func() time.Time { return s.now },
		DatabaseNow: func(context.Context) (time.Time, error) { return s.now.Add(s.databaseAhead), nil },
		Key:         key, OldKeys: s.oldKeys, Witness: seal.NewWitness(heads),
	})
	s.must(err)
	return sealer
}

// gauge reads a metric of the newest sealer.
func (s *shop) gauge(name string) int64 {
	s.t.Helper()
	families, err := s.metrics.Gather()
	s.must(err)
	for _, f := range families {
		if f.GetName() == name {
			return int64(f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	s.t.Fatalf("no metric %s", name)
	return 0
}

// nextDay is ten in the morning of the following day.
func (s *shop) nextDay() { s.now = ledger.DayOf(s.now).Next().Start().Add(10 * time.Hour) }

// sell is an order of a customer, paid; the payment's key is pk_n.
func (s *shop) sell(amount, credits int64) string {
	s.t.Helper()
	s.count++
	s.now = s.now.Add(time.Minute)
	key, order := fmt.Sprintf("pk_%d", s.count), fmt.Sprintf("order_%d", s.count)
	o := ledger.Observation{
		PaymentKey: key, OrderID: order, Channel: ledger.ChannelWebhook, Evidence: ledger.EvidenceCaptured,
		AskedAt: s.now, SeenAt: s.now, Word: "DONE", Total: ledger.Won(amount), Balance: ledger.Won(amount),
		LastTransactionKey: "tx_" + key, CapturedAt: s.now,
	}
	s.do(func(tx pgx.Tx) error {
		_, err := s.ledger.CreateOrder(s.t.Context(), tx, ledger.Order{
			ID: order, Amount: ledger.Won(amount), CustomerID: "cus_1", Credits: credits, ExpiresAt: s.now.Add(30 * time.Minute),
		})
		return err
	})
	s.record(o)
	return key
}

// cancel gives a part back.
func (s *shop) cancel(key string, amount int64) {
	s.t.Helper()
	s.now = s.now.Add(time.Minute)
	o := s.shown[key]
	o.AskedAt, o.SeenAt = s.now, s.now
	cancel := ledger.ObservedCancel{
		TransactionKey: fmt.Sprintf("%s_c%d", key, len(o.Cancels)+1), State: ledger.CancelDone, Amount: ledger.Won(amount), CanceledAt: s.now,
	}
	o.Cancels = append(append([]ledger.ObservedCancel(nil), o.Cancels...), cancel)
	o.Balance.Minor -= amount
	o.LastTransactionKey = cancel.TransactionKey
	s.record(o)
}

func (s *shop) record(o ledger.Observation) {
	s.t.Helper()
	s.shown[o.PaymentKey] = o
	s.do(func(tx pgx.Tx) error {
		r, err := s.ledger.Record(s.t.Context(), tx, o)
		if err == nil && r.Outcome != ledger.OutcomeApplied {
			return fmt.Errorf("got %s, want applied", r.Outcome)
		}
		return err
	})
}

func (s *shop) spend(id string, credits int64) {
	s.t.Helper()
	s.now = s.now.Add(time.Minute)
	s.do(func(tx pgx.Tx) error {
		_, err := s.ledger.Spend(s.t.Context(), tx, id, "cus_1", credits)
		return err
	})
}

// seal runs the sealer; what a run that died has left may stand in its way for a moment.
func (s *shop) seal() {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		err := s.sealer().Run(s.t.Context())
		if errors.Is(err, seal.ErrBusy) {
			continue
		}
		s.must(err)
		return
	}
	s.t.Fatal("the sealer stayed busy")
}

// days are three days of business, the first two sealed by heads 2 and 3: transactions 1 to 6, 8 to 11, and 12 to 15. No
// transaction has id 7.
func (s *shop) days() {
	s.t.Helper()
	s.seal()
	pk1 := s.sell(50_000, 10) // 1 capture, 2 grant
	s.sell(30_000, 0)         // 3 capture
	s.cancel(pk1, 20_000)     // 4 cancel, 5 revoke
	s.spend("spend_1", 3)     // 6 spend
	s.nextDay()
	s.seal()
	s.do(func(tx pgx.Tx) error {
		_, err := tx.Exec(s.t.Context(), `SELECT nextval('journal_transactions_transaction_id_seq')`)
		return err
	})
	pk3 := s.sell(70_000, 5) // 8 capture, 9 grant
	s.cancel("pk_2", 30_000) // 10 cancel
	s.cancel(pk3, 1_000)     // 11 cancel; no credit is lost to so small a part
	s.nextDay()
	s.seal()
	s.sell(90_000, 0)     // 12 capture
	s.cancel("pk_4", 500) // 13 cancel
	s.sell(11_000, 0)     // 14 capture
	s.cancel(pk3, 9_000)  // 15 cancel
	s.now = s.now.Add(time.Hour)
}

// verify holds the books against the public key and the witness.
func (s *shop) verify() *seal.Report {
	s.t.Helper()
	witnessed, err := seal.NewWitness(s.heads).Read()
	s.must(err)
	return s.verifyWith(seal.Options{Keys: []ed25519.PublicKey{s.key.Public()}, Witnessed: witnessed})
}

func (s *shop) verifyWith(o seal.Options) *seal.Report {
	s.t.Helper()
	o.Now = s.now
	report, err := seal.Verify(context.WithoutCancel(s.t.Context()), s.db, o)
	s.must(err)
	return report
}
