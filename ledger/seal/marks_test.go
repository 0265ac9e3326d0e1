package seal

import (
	"errors"
	"slices"
	"testing"

	"daesa/ledger"
)

// TestMarks_OverManyParts reads the marks of a long section back, one part in memory at a time.
func TestMarks_OverManyParts(t *testing.T) {
	t.Parallel()
	const transactions = 80_000
	var parts [][]byte
	s := newSection(41)
	s.keep = func(part []byte) error {
		parts = append(parts, slices.Clone(part))
		return nil
	}
	leaves := make(map[int64]ledger.Digest, transactions)
	for n := range int64(transactions) {
		tx := &ledger.JournalTransaction{ID: 42 + 3*n}
		leaves[tx.ID] = s.leaf(tx)
		if err := s.add(tx); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.flush(); err != nil {
		t.Fatal(err)
	}
	if len(parts) < 3 {
		t.Fatalf("got %d parts, want several", len(parts))
	}
	broken := errors.New("the connection is gone")
	m := marks{id: 41, more: func() ([]byte, error) {
		if len(parts) == 0 {
			return nil, broken
		}
		part := parts[0]
		parts = parts[1:]
		return part, nil
	}}
	for n := range int64(transactions) {
		left, err := m.next()
		if id := 42 + 3*n; err != nil || !left || !m.fits(id, leaves[id]) {
			t.Fatalf("transaction %d: got mark %d, %v, %v", id, m.id, left, err)
		}
	}
	if _, err := m.next(); !errors.Is(err, broken) {
		t.Errorf("got %v, want what the database said", err)
	}
}
