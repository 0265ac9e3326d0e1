package seal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math"
	"slices"
	"strings"

	"daesa/ledger"
)

// errOverflow reports debits of one section that no 64 bits hold.
var errOverflow = errors.New("the debits of one section are too large to add up")

// markBytes is how much of a transaction's hash its mark keeps: enough to tell one change from another; that the marks
// themselves are whole is what the head proves.
const markBytes = 8

// marksPart is how large a part of the marks grows before it is handed on.
const marksPart = 256 << 10

// section adds up one section of the journal.
type section struct {
	content      hash.Hash
	marks        hash.Hash
	transactions int64
	entries      int64
	debits       []ledger.Money
	last         int64 // the id of the transaction before
	canonical    []byte
	part         []byte
	keep         func(part []byte) error // takes the marks; nil: only their hash is wanted
}

func newSection(fromID int64) *section {
	s := &section{content: sha256.New(), marks: sha256.New()}
	s.reset(fromID)
	return s
}

// reset begins another section in the same memory.
func (s *section) reset(fromID int64) {
	s.content.Reset()
	s.marks.Reset()
	s.transactions, s.entries, s.debits, s.last, s.part = 0, 0, s.debits[:0], fromID, s.part[:0]
}

// add takes the next transaction.
func (s *section) add(t *ledger.JournalTransaction) error {
	leaf := s.leaf(t)
	s.content.Write(leaf[:])
	s.part = appendMark(s.part, t.ID-s.last, leaf)
	s.last = t.ID
	s.transactions++
	s.entries += int64(len(t.Lines))
	for i := range t.Lines {
		if l := &t.Lines[i]; l.Amount > 0 && !s.debit(l.Currency.Bytes, l.Amount) {
			return fmt.Errorf("%w: in %s", errOverflow, l.Currency.Bytes)
		}
	}
	if len(s.part) < marksPart {
		return nil
	}
	return s.flush()
}

// leaf is the hash of one transaction.
func (s *section) leaf(t *ledger.JournalTransaction) ledger.Digest {
	s.canonical = t.AppendCanonical(s.canonical[:0])
	return sha256.Sum256(s.canonical)
}

// appendMark writes how far the id is from the one before, and the beginning of the hash.
func appendMark(b []byte, distance int64, leaf ledger.Digest) []byte {
	b = binary.AppendUvarint(b, uint64(distance)) //nolint:gosec // ids rise; a stranger's do not fit the head either way
	return append(b, leaf[:markBytes]...)
}

func (s *section) debit(currency []byte, amount int64) bool {
	for i := range s.debits {
		if string(currency) == string(s.debits[i].Currency) {
			if s.debits[i].Minor > math.MaxInt64-amount {
				return false
			}
			s.debits[i].Minor += amount
			return true
		}
	}
	s.debits = append(s.debits, ledger.Money{Minor: amount, Currency: ledger.Currency(currency)})
	return true
}

func (s *section) flush() error {
	if len(s.part) == 0 {
		return nil
	}
	s.marks.Write(s.part)
	var err error
	if s.keep != nil {
		err = s.keep(s.part)
	}
	s.part = s.part[:0]
	return err
}

// fill writes what was added up into a head.
func (s *section) fill(h *ledger.Head) error {
	if err := s.flush(); err != nil {
		return err
	}
	slices.SortFunc(s.debits, func(a, b ledger.Money) int { return strings.Compare(string(a.Currency), string(b.Currency)) })
	h.Transactions, h.Entries, h.Debits = s.transactions, s.entries, slices.Clone(s.debits)
	s.content.Sum(h.Content[:0])
	s.marks.Sum(h.Marks[:0])
	return nil
}

// marks reads the marks of a section one by one. Each part of them ends with a whole mark.
type marks struct {
	more func() ([]byte, error) // the next part; nil at the end
	rest []byte
	id   int64
	leaf []byte
}

// next reads the next mark; false at the end, or where the marks are no marks.
func (m *marks) next() (bool, error) {
	if len(m.rest) == 0 {
		var err error
		if m.rest, err = m.more(); err != nil {
			return false, err
		}
	}
	distance, n := binary.Uvarint(m.rest)
	if n <= 0 || len(m.rest) < n+markBytes {
		return false, nil
	}
	m.id += int64(distance) //nolint:gosec // the inverse of appendMark
	m.leaf = m.rest[n : n+markBytes]
	m.rest = m.rest[n+markBytes:]
	return true, nil
}

// fits reports whether the transaction is the one that was marked.
func (m *marks) fits(id int64, leaf ledger.Digest) bool {
	return id == m.id && bytes.Equal(m.leaf, leaf[:markBytes])
}
