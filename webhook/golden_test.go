package webhook_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// standing is how a payment stands in the books before the notice comes.
type standing string

func standings() []standing {
	return []standing{"never seen", "ready", "confirming", "unknown", "failed", "waiting", "done", "partially_canceled", "canceled"}
}

// prepare brings a payment of 10,000 won there, and at the gateway to what goes with it.
func (s *shop) prepare(tb testing.TB, orderID string, to standing) (paymentKey string) {
	tb.Helper()
	switch to {
	case "never seen":
		key := s.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 10_000})
		s.approve(tb, key)
		return key
	case "ready", "confirming", "unknown", "failed":
		key := s.order(tb, orderID, 10_000, tosssim.Card)
		intended := s.intend(tb, orderID, key, 10_000)
		evidence := map[standing]ledger.Evidence{
			"ready": ledger.EvidenceUnprocessed, "unknown": ledger.EvidenceLost, "failed": ledger.EvidenceRefused,
		}[to]
		if evidence != "" {
			s.record(tb, ledger.Observation{
				PaymentKey: key, OrderID: orderID, Channel: ledger.ChannelConfirm, Evidence: evidence,
				AskedAt: s.clock.Now(), SeenAt: s.clock.Now(), Attempt: intended.Payment.Attempt,
			})
		}
		return key
	case "waiting":
		return s.paidBy(tb, orderID, 10_000, tosssim.VirtualAccount)
	case "partially_canceled":
		key := s.paid(tb, orderID, 10_000)
		s.cancel(tb, key, 3_000)
		s.learn(tb, key, ledger.ChannelSweep)
		return key
	case "canceled":
		key := s.paid(tb, orderID, 10_000)
		s.cancel(tb, key, 0)
		s.learn(tb, key, ledger.ChannelSweep)
		return key
	}
	return s.paid(tb, orderID, 10_000)
}

func (s *shop) approve(tb testing.TB, paymentKey string) {
	tb.Helper()
	if err := s.sim.Approve(paymentKey); err != nil {
		tb.Fatal(err)
	}
}

func (s *shop) record(tb testing.TB, o ledger.Observation) {
	tb.Helper()
	err := postgres.InTx(tb.Context(), s.db, func(tx pgx.Tx) error {
		_, err := s.books.Record(tb.Context(), tx, o)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// TestReceive_Decisions prints what every notice leads to for every standing of the books and every answer of the
// gateway, for a person to review.
func TestReceive_Decisions(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	fmt.Fprintf(&out, "%-19s %-17s %-8s | %-3s %-18s %-13s | books after, open work\n", "books", "notice", "gateway", "", "outcome", "reason")
	for _, gateway := range []string{"agrees", "denies", "silent"} {
		s := open(t, options{})
		for i, books := range standings() {
			for j, notice := range []string{"DONE", "WAITING", "EXPIRED", "CANCELED named", "CANCELED", "REVERSED"} {
				orderID := fmt.Sprintf("order-%02d-%02d", i, j)
				key := s.prepare(t, orderID, books)
				fmt.Fprintln(&out, s.decide(t, key, orderID, books, notice, gateway))
			}
		}
	}
	golden(t, "testdata/decisions.golden", out.String())
}

// decide sends one notice and describes what came of it.
func (s *shop) decide(tb testing.TB, key, orderID string, books standing, notice, gateway string) string {
	tb.Helper()
	named := `null`
	if gateway == "agrees" {
		s.cancelSomehow(tb, key, books)
	}
	if notice == "CANCELED named" {
		named = `[{"transactionKey":"tx_made_up"}]`
		if p, ok := s.sim.Payment(key); ok && strings.Contains(string(p), `"cancels":[`) {
			named = string(p[strings.Index(string(p), `"cancels":`)+len(`"cancels":`) : strings.Index(string(p), `,"secret"`)])
		}
	}
	if gateway == "silent" {
		s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, N: -1})
		defer s.sim.Heal()
	}
	word, _, _ := strings.Cut(notice, " ")
	if word == "WAITING" {
		word = "WAITING_FOR_DEPOSIT"
	}
	got := s.send(tb, fmt.Appendf(nil, `{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":%q,"orderId":%q,"status":%q,"cancels":%s}}`,
		key, orderID, word, named))
	after := "never seen"
	if books != "never seen" {
		p := s.payment(tb, key)
		after = fmt.Sprintf("%s %d/%d", p.Status, p.Canceled().Minor, p.Captured().Minor)
	}
	reason := one[string](tb, s.db, `SELECT reason FROM deliveries ORDER BY delivery_id DESC LIMIT 1`)
	if gateway == "silent" && reason == "breaker_open" {
		reason = "server_error" // whether the breaker is open by now is not what is shown here
	}
	work := text(tb, s.db, `
		SELECT format('%s%s', kind, CASE WHEN due_at <= $2 THEN ' due' ELSE '' END)
		FROM work WHERE payment_key = $1 AND closed_at IS NULL ORDER BY kind`, key, s.clock.Now())
	line := fmt.Sprintf("%-19s %-17s %-8s | %3d %-18s %-13s | %s  %s", books, notice, gateway, got.status, got.outcome, reason, after, strings.Join(work, ", "))
	return strings.TrimRight(line, " ")
}

// cancelSomehow makes the gateway have canceled the payment, whatever it was before.
func (s *shop) cancelSomehow(tb testing.TB, key string, books standing) {
	tb.Helper()
	switch books {
	case "ready", "confirming", "unknown", "failed":
		s.approve(tb, key)
	case "canceled":
		return
	case "never seen", "waiting", "done", "partially_canceled":
	}
	s.cancel(tb, key, 0)
}

func golden(tb testing.TB, path, got string) {
	tb.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		tb.Errorf("%s differs (-want +got); run with -update after a look at it:\n%s", path, diff)
	}
}
