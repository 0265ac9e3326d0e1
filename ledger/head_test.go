package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// TestHeadOf reads back what was written, field by field, and nothing of a day without a head.
func TestHeadOf(t *testing.T) {
	t.Parallel()
	b := open(t)
	want := ledger.Head{
		Sequence: 1, Day: "2026-05-01", FromID: 0, UpToID: 9, Transactions: 3, Entries: 7,
		Debits:  []ledger.Money{{Minor: 5, Currency: ledger.Credits}, ledger.Won(70_000)},
		Content: ledger.Digest{1}, Marks: ledger.Digest{2}, Previous: ledger.Digest{3}, KeyID: "0123456789abcdef",
		Signature: make([]byte, 64), SealedAt: b.now,
	}
	want.Hash = want.Digest()
	b.do(func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(`INSERT INTO journal_sections (day, from_id, up_to_id, transactions, recorded_first, recorded_last, cut_at)
			SELECT '2026-05-01', 0, 9, 3, now() - interval '2 hours', now() - interval '1 hour', now()`)
		ledger.QueueHead(batch, want)
		return tx.SendBatch(t.Context(), batch).Close()
	})
	for name, read := range map[string]func() (ledger.Head, error){
		"of its day": func() (ledger.Head, error) { return ledger.HeadOf(t.Context(), b.pool, "2026-05-01") },
		"newest":     func() (ledger.Head, error) { return ledger.LastHead(t.Context(), b.pool) },
	} {
		got, err := read()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got.SealedAt = got.SealedAt.UTC()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got.Digest() != got.Hash {
			t.Errorf("%s: got another hash after reading, want the same", name)
		}
	}
	if _, err := ledger.HeadOf(t.Context(), b.pool, "2026-05-02"); !errors.Is(err, ledger.ErrNotSealed) {
		t.Errorf("a day without a head: got %v, want %v", err, ledger.ErrNotSealed)
	}
}

// TestHead_EveryFieldIsHashed changes one field after the other.
func TestHead_EveryFieldIsHashed(t *testing.T) {
	t.Parallel()
	base := ledger.Head{Sequence: 1, Day: "2026-05-01", UpToID: 9, Debits: []ledger.Money{ledger.Won(1)}, KeyID: "k", SealedAt: time.UnixMicro(5)}
	for name, change := range map[string]func(*ledger.Head){
		"sequence": func(h *ledger.Head) { h.Sequence++ }, "day": func(h *ledger.Head) { h.Day = "2026-05-02" },
		"from": func(h *ledger.Head) { h.FromID++ }, "up to": func(h *ledger.Head) { h.UpToID++ },
		"transactions": func(h *ledger.Head) { h.Transactions++ }, "entries": func(h *ledger.Head) { h.Entries++ },
		"debits":   func(h *ledger.Head) { h.Debits = []ledger.Money{ledger.Won(2)} },
		"currency": func(h *ledger.Head) { h.Debits = []ledger.Money{{Minor: 1, Currency: ledger.JPY}} },
		"content":  func(h *ledger.Head) { h.Content[31]++ }, "marks": func(h *ledger.Head) { h.Marks[0]++ },
		"previous": func(h *ledger.Head) { h.Previous[0]++ }, "sealed at": func(h *ledger.Head) { h.SealedAt = time.UnixMicro(6) },
		"key": func(h *ledger.Head) { h.KeyID = "l" },
	} {
		changed := base
		change(&changed)
		if changed.Digest() == base.Digest() {
			t.Errorf("%s: got the same hash after a change, want another", name)
		}
	}
}

// TestBalances_AsOfAndAsKnownAt: what counts is when a fact occurred, and whether it was recorded by then.
func TestBalances_AsOfAndAsKnownAt(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 7)
	sale := b.now
	b.now = b.now.Add(time.Hour)
	b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 12_000)))
	at := func(asOf, knownAt time.Time) []string {
		t.Helper()
		trial, err := ledger.Balances(t.Context(), b.pool, asOf, knownAt)
		if err != nil {
			t.Fatal(err)
		}
		if !trial.Zero() {
			t.Errorf("got %v, want a sum of nothing", trial.Totals())
		}
		var lines []string
		for _, l := range trial.Lines {
			lines = append(lines, string(l.Account)+" "+l.Debits.Decimal()+" "+l.Credits.Decimal()+" "+string(l.Debits.Currency))
		}
		return lines
	}
	before := []string{
		"credits_issued 7 0 CREDIT", "customer_credits 0 7 CREDIT",
		"gateway_receivable 50000 0 KRW", "sales 0 50000 KRW",
	}
	if diff := cmp.Diff(before, at(b.now, b.now.Add(-time.Microsecond))); diff != "" {
		t.Errorf("before the cancel was known (-want +got):\n%s", diff)
	}
	after := []string{
		"credits_issued 7 1 CREDIT", "customer_credits 1 7 CREDIT",
		"gateway_receivable 50000 12000 KRW", "sales 0 50000 KRW", "refunds 12000 0 KRW",
	}
	if diff := cmp.Diff(after, at(b.now, b.now)); diff != "" {
		t.Errorf("after the cancel (-want +got):\n%s", diff)
	}
	if got := at(sale.Add(-24*time.Hour), b.now); len(got) != 0 {
		t.Errorf("before the sale: got %v, want nothing", got)
	}
}
