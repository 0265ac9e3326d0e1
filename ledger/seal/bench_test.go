package seal_test

import (
	"crypto/ed25519"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/postgres/postgrestest"
	"daesa/ledger/seal"
)

var payments = flag.Int("payments", 20_000, "how many payments BenchmarkVerify generates, a tenth of them canceled")

// BenchmarkVerify measures a whole verification beside a plain COPY … TO of the same tables, in the same run:
//
//	go test ./ledger/seal -run '^$' -bench Verify -benchtime 1x -payments 500000
func BenchmarkVerify(b *testing.B) {
	db := postgrestest.New(b)
	generate(b, db, *payments)
	key, err := seal.GenerateKey(filepath.Join(b.TempDir(), "seal.pem"))
	if err != nil {
		b.Fatal(err)
	}
	sealer, err := seal.New(seal.Config{
		DB: db, Metrics: seal.NewMetrics(prometheus.NewPedanticRegistry()), Log: slog.New(slog.DiscardHandler),
		Now: time.Now, Key: key, Witness: seal.NewWitness(filepath.Join(b.TempDir(), "heads")),
	})
	if err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	if err := sealer.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	sealing := time.Since(begin)
	copyAll(b, db) // once for the caches
	for b.Loop() {
		copying := copyAll(b, db)
		if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		report, err := seal.Verify(b.Context(), db, seal.Options{Keys: []ed25519.PublicKey{key.Public()}, Now: time.Now()})
		if err != nil || !report.Whole() || report.Transactions < int64(*payments) {
			b.Fatalf("got %+v and %v, want everything whole", report, err)
		}
		verifying := time.Since(begin)
		b.ReportMetric(sealing.Seconds(), "seal-s")
		b.ReportMetric(copying.Seconds(), "copy-s")
		b.ReportMetric(verifying.Seconds(), "verify-s")
		b.ReportMetric(copying.Seconds()/verifying.Seconds(), "of-copy-speed")
		b.ReportMetric(peakMiB(b), "peak-MiB")
	}
}

// copyAll is how long COPY takes for what verify reads.
func copyAll(b *testing.B, db *pgxpool.Pool) time.Duration {
	b.Helper()
	conn, err := db.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	begin := time.Now()
	for _, table := range []string{
		"journal_transactions", "journal_entries", "payments", "captures", "cancels", "orders", "credit_accounts",
		"credit_spends", "journal_balances", "journal_heads",
	} {
		if _, err := conn.Conn().PgConn().CopyTo(b.Context(), io.Discard, "COPY "+table+" TO STDOUT"); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(begin)
}

// peakMiB is the most memory that the process had resident since the mark was reset.
func peakMiB(b *testing.B) float64 { //nolint:forbidigo // no money
	b.Helper()
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(raw)
	if found == nil {
		b.Fatal("no VmHWM in /proc/self/status")
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		b.Fatal(err)
	}
	return float64(kib) / 1024 //nolint:forbidigo // no money
}

// generate writes payments as the ledger would have, a tenth of them canceled.
func generate(b *testing.B, db *pgxpool.Pool, n int) {
	b.Helper()
	key := `'tgen_20260501' || lpad(n::text, 10, '0') || 'AbCdEfGhIjKlMnOpQrStUvWx'`
	cancel := `'tx_c_' || lpad(n::text, 10, '0') || 'AbCdEfGhIjKlMnOpQrStUv'`
	at := `'2026-05-01T00:00:00Z'::timestamptz + n * interval '10 milliseconds'`
	statements := fmt.Sprintf(`
		SET session_replication_role = replica;
		SET statement_timeout = 0;
		INSERT INTO orders (order_id, status, currency, amount, created_at, expires_at)
			SELECT 'order_' || lpad(n::text, 10, '0'), CASE WHEN n %% 10 = 0 THEN 'canceled' ELSE 'paid' END, 'KRW', 10000 + n, %[2]s, %[2]s FROM generate_series(1, %[1]d) n;
		INSERT INTO payments (payment_key, order_id, status, currency, amount, captured, canceled, created_at, updated_at)
			SELECT %[3]s, 'order_' || lpad(n::text, 10, '0'), CASE WHEN n %% 10 = 0 THEN 'canceled' ELSE 'done' END, 'KRW', 10000 + n, 10000 + n,
				CASE WHEN n %% 10 = 0 THEN 10000 + n ELSE 0 END, %[2]s, %[2]s FROM generate_series(1, %[1]d) n;
		INSERT INTO captures (payment_key, number, transaction_key, currency, amount, captured_at, channel, recorded_at)
			SELECT %[3]s, 1, 'tx_' || n, 'KRW', 10000 + n, %[2]s, 'confirm', %[2]s FROM generate_series(1, %[1]d) n;
		INSERT INTO cancels (transaction_key, payment_key, order_id, currency, amount, canceled_at, channel, recorded_at)
			SELECT %[4]s, %[3]s, 'order_' || lpad(n::text, 10, '0'), 'KRW', 10000 + n, %[2]s, 'webhook', %[2]s FROM generate_series(10, %[1]d, 10) n;
		INSERT INTO journal_transactions (kind, reference, payment_key, order_id, occurred_at, recorded_at)
			SELECT k, CASE k WHEN 'capture' THEN %[3]s || '#1' ELSE %[4]s END, %[3]s, 'order_' || lpad(n::text, 10, '0'), %[2]s, %[2]s
			FROM generate_series(1, %[1]d) n, unnest(ARRAY['capture', 'cancel']) k WHERE k = 'capture' OR n %% 10 = 0 ORDER BY n, k DESC;
		INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
			SELECT t.transaction_id, l, CASE WHEN (t.kind = 'capture') = (l = 1) THEN 'gateway_receivable' WHEN l = 1 THEN 'refunds' ELSE 'sales' END,
				'KRW', (CASE l WHEN 1 THEN 1 ELSE -1 END) * (10000 + right(t.order_id, 10)::bigint)
			FROM journal_transactions t, generate_series(1, 2) l ORDER BY t.transaction_id, l;
		RESET session_replication_role; RESET statement_timeout`, n, at, key, cancel)
	for _, statement := range []string{statements, `VACUUM ANALYZE`} {
		if _, err := db.Exec(b.Context(), statement); err != nil {
			b.Fatal(err)
		}
	}
}
