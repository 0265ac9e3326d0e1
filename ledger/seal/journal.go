package seal

import (
	"encoding/binary"
	"fmt"
	"time"

	"daesa/ledger"
)

// The columns that are read of the journal, in the order of the canonical bytes.
const (
	transactionColumns = `transaction_id, kind, reference, payment_key, order_id, customer_id, occurred_at, recorded_at`
	entryColumns       = `transaction_id, line, account, currency, amount`
)

// journal reads transactions with their lines, merged from two streams that are ordered by transaction id.
type journal struct {
	transactions *copied
	entries      *copied
	entry        [][]byte // read and not yet used; nil at the end
	started      bool
	current      ledger.JournalTransaction
	arena        []byte // holds what the lines of the current transaction say
	entryCount   int64
}

// orphan reports an entry whose transaction does not exist.
type orphan struct{ id int64 }

func (o orphan) Error() string {
	return fmt.Sprintf("transaction %d has entries and does not exist", o.id)
}

// next reads the next transaction; nil after the last. It is valid until the next call. An orphan is an error after which
// reading may go on.
func (j *journal) next() (*ledger.JournalTransaction, error) {
	if !j.started {
		if err := j.advance(); err != nil {
			return nil, err
		}
		j.started = true
	}
	row, err := j.transactions.row()
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, j.leftOver()
	}
	t := &j.current
	t.ID, t.OccurredAt, t.RecordedAt = integer(row[0]), instant(row[6]), instant(row[7])
	t.Kind, t.Reference = text(row[1]), text(row[2])
	t.PaymentKey, t.OrderID, t.CustomerID = text(row[3]), text(row[4]), text(row[5])
	t.Lines = t.Lines[:0]
	j.arena = j.arena[:0]
	var stray error
	for j.entry != nil && integer(j.entry[0]) <= t.ID {
		if id := integer(j.entry[0]); id < t.ID {
			stray = orphan{id}
		} else {
			t.Lines = append(t.Lines, ledger.JournalLine{
				Line: integer(j.entry[1]), Account: j.keep(j.entry[2]), Currency: j.keep(j.entry[3]), Amount: integer(j.entry[4]),
			})
			j.entryCount++
		}
		if err := j.advance(); err != nil {
			return nil, err
		}
	}
	return t, stray
}

// each hands over every transaction.
func (j *journal) each(fn func(*ledger.JournalTransaction) error) error {
	for {
		t, err := j.next()
		if err != nil {
			return err
		}
		if t == nil {
			return nil
		}
		if err := fn(t); err != nil {
			return err
		}
	}
}

// leftOver is what remains of the entries after the last transaction.
func (j *journal) leftOver() error {
	if j.entry == nil {
		return nil
	}
	stray := orphan{integer(j.entry[0])}
	j.entry = nil
	for {
		row, err := j.entries.row()
		if err != nil {
			return err
		}
		if row == nil {
			return stray
		}
	}
}

func (j *journal) advance() (err error) {
	j.entry, err = j.entries.row()
	return err
}

// keep copies a field of an entry, whose batch may go back before the transaction is whole.
func (j *journal) keep(field []byte) ledger.Text {
	if field == nil {
		return ledger.Text{}
	}
	at := len(j.arena)
	j.arena = append(j.arena, field...)
	return ledger.Text{Bytes: j.arena[at:len(j.arena):len(j.arena)], Valid: true}
}

func text(field []byte) ledger.Text { return ledger.Text{Bytes: field, Valid: field != nil} }

// integer reads a whole number of either width. NULL reads as nothing: no column of ours that is read as a number may be
// NULL, and none that takes part in a sum is nothing.
func integer(field []byte) int64 {
	switch len(field) {
	case 8:
		return int64(binary.BigEndian.Uint64(field)) //nolint:gosec // two's complement
	case 4:
		return int64(int32(binary.BigEndian.Uint32(field))) //nolint:gosec // two's complement
	}
	return 0
}

// postgresEpoch is where the database counts microseconds from, in microseconds since 1970.
const postgresEpoch = 946_684_800_000_000

// instant reads a timestamptz as microseconds since 1970.
func instant(field []byte) int64 { return integer(field) + postgresEpoch }

// seoulDay numbers the Korean business day of an instant: days since 1970.
func seoulDay(micros int64) int64 {
	const offset, day = int64(9 * time.Hour / time.Microsecond), int64(24 * time.Hour / time.Microsecond)
	n := micros + offset
	if n < 0 {
		return (n+1)/day - 1
	}
	return n / day
}
