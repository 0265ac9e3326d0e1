package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// The names that open what is hashed and signed: bytes of one kind can never be taken for another's.
const (
	transactionTag = "daesa journal transaction v1"
	headTag        = "daesa journal head v1"
)

// Text is a text field of the canonical bytes that may be NULL. It borrows its bytes: whoever streams millions of
// transactions makes no copies.
type Text struct {
	Bytes []byte
	Valid bool
}

// JournalTransaction is one journal transaction with its lines, as it is hashed.
type JournalTransaction struct {
	ID         int64
	Kind       Text
	Reference  Text
	PaymentKey Text
	OrderID    Text
	CustomerID Text
	OccurredAt int64 // microseconds since 1970, UTC
	RecordedAt int64
	Lines      []JournalLine
}

// JournalLine is one entry of a journal transaction.
type JournalLine struct {
	Line     int64
	Account  Text
	Currency Text
	Amount   int64 // minor units; debits positive
}

// AppendCanonical appends the canonical bytes of the transaction to b: docs/journal.md says what they are, byte by byte.
func (t *JournalTransaction) AppendCanonical(b []byte) []byte {
	b = appendText(b, transactionTag)
	b = appendInteger(b, t.ID)
	for _, f := range [...]Text{t.Kind, t.Reference, t.PaymentKey, t.OrderID, t.CustomerID} {
		b = appendNullable(b, f)
	}
	b = appendInteger(b, t.OccurredAt)
	b = appendInteger(b, t.RecordedAt)
	b = appendInteger(b, int64(len(t.Lines)))
	for i := range t.Lines {
		l := &t.Lines[i]
		b = appendInteger(b, l.Line)
		b = appendNullable(b, l.Account)
		b = appendNullable(b, l.Currency)
		b = appendInteger(b, l.Amount)
	}
	return b
}

// Canonical is the bytes that are signed and whose hash the next head names.
func (h Head) Canonical() []byte {
	b := appendText(nil, headTag)
	b = append(b, h.Previous[:]...)
	b = appendInteger(b, h.Sequence)
	b = appendText(b, string(h.Day))
	b = appendInteger(b, h.FromID)
	b = appendInteger(b, h.UpToID)
	b = appendInteger(b, h.Transactions)
	b = appendInteger(b, h.Entries)
	b = appendInteger(b, int64(len(h.Debits)))
	for _, m := range h.Debits {
		b = appendText(b, string(m.Currency))
		b = appendInteger(b, m.Minor)
	}
	b = append(b, h.Content[:]...)
	b = append(b, h.Marks[:]...)
	b = appendInteger(b, micros(h.SealedAt))
	return appendText(b, h.KeyID)
}

// Digest is the hash that the head must bear.
func (h Head) Digest() Digest { return sha256.Sum256(h.Canonical()) }

func appendInteger(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // two's complement is the canonical form
}

func appendText(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s))) //nolint:gosec // no field is that long
	return append(b, s...)
}

func appendNullable(b []byte, t Text) []byte {
	if !t.Valid {
		return append(b, 0)
	}
	b = append(b, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(len(t.Bytes))) //nolint:gosec // no field is that long
	return append(b, t.Bytes...)
}

func micros(t time.Time) int64 { return t.UnixMicro() }
