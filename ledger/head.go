package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNotSealed reports a business day whose journal has no head: it has not ended, or no key to seal with was set.
var ErrNotSealed = errors.New("the day's journal is not sealed")

// Digest is a SHA-256.
type Digest [sha256.Size]byte

// String writes the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes the digest in hexadecimal.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// ParseDigest reads 64 hexadecimal digits.
func ParseDigest(text string) (d Digest, err error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(d) {
		return d, fmt.Errorf("%.80q is not a SHA-256 in hexadecimal", text)
	}
	return Digest(raw), nil
}

// Head seals one section of the journal: what was recorded from the head before until a business day had ended. It is
// signed with a key that the database never sees, and names the head before: whoever keeps one head outside can tell
// that nothing up to it was changed.
type Head struct {
	Sequence     int64
	Day          Day
	FromID       int64 // the section is the transaction ids above it,
	UpToID       int64 // up to and with this one
	Transactions int64
	Entries      int64
	Debits       []Money // per currency, ordered by its code; the credits are as much
	Content      Digest
	Marks        Digest
	Previous     Digest
	Hash         Digest
	KeyID        string
	Signature    []byte
	SealedAt     time.Time
}

// headRow is a head as the table has it.
type headRow struct {
	Sequence     int64     `db:"sequence"`
	Day          Day       `db:"day"`
	FromID       int64     `db:"from_id"`
	UpToID       int64     `db:"up_to_id"`
	Transactions int64     `db:"transactions"`
	Entries      int64     `db:"entries"`
	Currencies   []string  `db:"currencies"`
	Debits       []int64   `db:"debits"`
	Content      []byte    `db:"content"`
	Marks        []byte    `db:"marks"`
	Previous     []byte    `db:"previous"`
	Hash         []byte    `db:"hash"`
	KeyID        string    `db:"key_id"`
	Signature    []byte    `db:"signature"`
	SealedAt     time.Time `db:"sealed_at"`
}

const headColumns = `
	SELECT sequence, to_char(day, 'YYYY-MM-DD') AS day, from_id, up_to_id, transactions, entries, currencies, debits, content,
		marks, previous, hash, key_id, signature, sealed_at
	FROM journal_heads`

// HeadOf reads the head of a business day. A day without one gives ErrNotSealed.
func HeadOf(ctx context.Context, db Querier, day Day) (Head, error) {
	h, err := oneHead(ctx, db, headColumns+` WHERE day = @day::date`, pgx.StrictNamedArgs{"day": string(day)})
	if err != nil {
		return Head{}, fmt.Errorf("head of %s: %w", day, err)
	}
	return h, nil
}

// LastHead reads the newest head. Without any it gives ErrNotSealed.
func LastHead(ctx context.Context, db Querier) (Head, error) {
	h, err := oneHead(ctx, db, headColumns+` ORDER BY sequence DESC LIMIT 1`)
	if err != nil {
		return Head{}, fmt.Errorf("newest head: %w", err)
	}
	return h, nil
}

// HeadsAfter reads up to limit heads that follow a sequence number, in order.
func HeadsAfter(ctx context.Context, db Querier, sequence int64, limit int) ([]Head, error) {
	rows, err := db.Query(ctx, headColumns+` WHERE sequence > @sequence ORDER BY sequence LIMIT @limit`,
		pgx.StrictNamedArgs{"sequence": sequence, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("read heads: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[headRow])
	if err != nil {
		return nil, fmt.Errorf("read heads: %w", err)
	}
	heads := make([]Head, 0, len(found))
	for _, r := range found {
		heads = append(heads, r.head())
	}
	return heads, nil
}

func oneHead(ctx context.Context, db Querier, sql string, args ...any) (Head, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return Head{}, err
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[headRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return Head{}, ErrNotSealed
	}
	if err != nil {
		return Head{}, err
	}
	return row.head(), nil
}

// head copies what fits: a digest that a stranger cut short stays zero and fits nothing.
func (r headRow) head() Head {
	h := Head{
		Sequence: r.Sequence, Day: r.Day, FromID: r.FromID, UpToID: r.UpToID, Transactions: r.Transactions, Entries: r.Entries,
		KeyID: r.KeyID, Signature: r.Signature, SealedAt: r.SealedAt,
	}
	for i := range min(len(r.Currencies), len(r.Debits)) {
		h.Debits = append(h.Debits, Money{Minor: r.Debits[i], Currency: Currency(r.Currencies[i])})
	}
	copy(h.Content[:], r.Content)
	copy(h.Marks[:], r.Marks)
	copy(h.Previous[:], r.Previous)
	copy(h.Hash[:], r.Hash)
	return h
}

// QueueHead adds the insert of a head to the batch.
func QueueHead(b *pgx.Batch, h Head) {
	currencies, debits := make([]string, 0, len(h.Debits)), make([]int64, 0, len(h.Debits))
	for _, m := range h.Debits {
		currencies, debits = append(currencies, string(m.Currency)), append(debits, m.Minor)
	}
	b.Queue(`
		INSERT INTO journal_heads (sequence, day, from_id, up_to_id, transactions, entries, currencies, debits, content,
			marks, previous, hash, key_id, signature, sealed_at)
		VALUES (@sequence, @day::date, @from_id, @up_to_id, @transactions, @entries, @currencies, @debits, @content,
			@marks, @previous, @hash, @key_id, @signature, @sealed_at)`,
		pgx.StrictNamedArgs{
			"sequence": h.Sequence, "day": string(h.Day), "from_id": h.FromID, "up_to_id": h.UpToID,
			"transactions": h.Transactions, "entries": h.Entries, "currencies": currencies, "debits": debits,
			"content": h.Content[:], "marks": h.Marks[:], "previous": h.Previous[:], "hash": h.Hash[:], "key_id": h.KeyID,
			"signature": h.Signature, "sealed_at": h.SealedAt,
		})
}
