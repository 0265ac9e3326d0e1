package ledger_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"daesa/ledger"
)

// TestCanonical_WorkedExample makes the example of docs/journal.md and requires the document to show it, byte by byte.
func TestCanonical_WorkedExample(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 1, 2, 3, 456789000, time.UTC)
	transaction := ledger.JournalTransaction{
		ID: 4, Kind: some("cancel"), Reference: some("tx_c1"), PaymentKey: some("pk_1"), OrderID: some("order_1"),
		OccurredAt: at.UnixMicro(), RecordedAt: at.Add(time.Second).UnixMicro(),
		Lines: []ledger.JournalLine{
			{Line: 1, Account: some("refunds"), Currency: some("KRW"), Amount: 20_000},
			{Line: 2, Account: some("gateway_receivable"), Currency: some("KRW"), Amount: -20_000},
		},
	}
	canonical := transaction.AppendCanonical(nil)
	leaf := sha256.Sum256(canonical)
	content := sha256.Sum256(leaf[:])
	mark := append([]byte{4}, leaf[:8]...)
	head := ledger.Head{
		Sequence: 1, Day: "2026-05-01", UpToID: 4, Transactions: 1, Entries: 2, Debits: []ledger.Money{ledger.Won(20_000)},
		Content: content, Marks: sha256.Sum256(mark), SealedAt: time.Date(2026, 5, 1, 15, 0, 30, 0, time.UTC),
	}
	seed := sha256.Sum256([]byte("the key of the worked example"))
	private := ed25519.NewKeyFromSeed(seed[:])
	public, ok := private.Public().(ed25519.PublicKey)
	if !ok {
		t.Fatal("no public key")
	}
	name := sha256.Sum256(public)
	head.KeyID = hex.EncodeToString(name[:8])
	document, err := os.ReadFile("../docs/journal.md")
	if err != nil {
		t.Fatal(err)
	}
	for what, raw := range map[string][]byte{
		"the transaction's bytes": canonical, "its hash": leaf[:], "the content": content[:], "the marks": mark,
		"the head's bytes": head.Canonical(), "the head's hash": digest(head), "the public key": public,
		"the signature": ed25519.Sign(private, head.Canonical()),
	} {
		if want := wrapped(raw); !strings.Contains(string(document), want) {
			t.Errorf("docs/journal.md does not show %s, want:\n%s", what, want)
		}
	}
}

func digest(h ledger.Head) []byte {
	d := h.Digest()
	return d[:]
}

func some(s string) ledger.Text { return ledger.Text{Bytes: []byte(s), Valid: true} }

// wrapped writes bytes as the document does: hexadecimal, 32 bytes a line.
func wrapped(raw []byte) string {
	var lines []string
	for from := 0; from < len(raw); from += 32 {
		lines = append(lines, hex.EncodeToString(raw[from:min(from+32, len(raw))]))
	}
	return strings.Join(lines, "\n")
}

// TestCanonical_NothingReadsAlike: fields cannot run into each other, and NULL is not empty.
func TestCanonical_NothingReadsAlike(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, tx := range map[string]ledger.JournalTransaction{
		"nothing":     {},
		"empty":       {Kind: some("")},
		"ab":          {Kind: some("ab"), Reference: some("")},
		"a b":         {Kind: some("a"), Reference: some("b")},
		"a later b":   {Kind: some("a"), PaymentKey: some("b")},
		"a time":      {OccurredAt: 1},
		"other time":  {RecordedAt: 1},
		"a line":      {Lines: []ledger.JournalLine{{Amount: 1}}},
		"a less line": {Lines: []ledger.JournalLine{{Amount: -1}}},
		"two lines":   {Lines: []ledger.JournalLine{{}, {}}},
	} {
		text := fmt.Sprintf("%x", tx.AppendCanonical(nil))
		if other, known := seen[text]; known {
			t.Errorf("%s and %s have the same bytes", name, other)
		}
		seen[text] = name
	}
}
